//! What a scenario is, with every default spelled out.

use aqmlab_aqm::Discipline;
use aqmlab_net::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bottleneck, Framing, Packets, Traffic};

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, in a line.
    #[serde(default)]
    pub title: String,
    /// Seed of every random stream.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Offered load as a fraction of the bottleneck's rate: the average throughput that the same
    /// sources cause on an uncongested network. Sources without a number of users (or a rate) of
    /// their own are calibrated to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// What is measured, and when.
    #[serde(default)]
    pub measure: Measure,
    /// The network.
    pub topology: Topology,
    /// Who talks.
    pub traffic: Vec<Traffic>,
}

/// What is measured, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Simulated time before anything is counted.
    #[serde(default = "default_warm_up")]
    pub warm_up: Time,
    /// Simulated time that is measured.
    #[serde(default = "default_duration")]
    pub duration: Time,
    /// Period of the queue samples in `queue.parquet`.
    #[serde(default = "default_queue_sample")]
    pub queue_sample: Time,
    /// Which tables are written beside the summary.
    #[serde(default = "default_record")]
    pub record: Vec<Record>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            warm_up: default_warm_up(),
            duration: default_duration(),
            queue_sample: default_queue_sample(),
            record: default_record(),
        }
    }
}

/// A table of a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// `responses.parquet`: a row for each exchange.
    Responses,
    /// `flows.parquet`: a row for each connection.
    Flows,
    /// `queue.parquet`: samples of the bottleneck's queues.
    Queue,
}

aqmlab_net::tagged! {
    /// The network between the hosts.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Topology {
        /// Clients on one side, servers on the other, one link between them.
        Dumbbell(Dumbbell),
    }
}

/// Clients on one side, servers on the other, one link between them. *Forward* is the direction
/// from the servers to the clients, *reverse* the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// The link in the middle.
    pub bottleneck: Bottleneck,
    /// The hosts at the ends.
    #[serde(default)]
    pub hosts: Hosts,
}

/// One direction of a link and the queue in front of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bits per second on the wire, framing included.
    pub rate: Rate,
    /// One-way propagation delay; part of every connection's round-trip time.
    #[serde(default)]
    pub delay: Time,
    /// Bytes that each packet costs on the wire beyond its IP length.
    #[serde(default)]
    pub framing: Framing,
    /// Packets in the network card's ring, which the discipline cannot see.
    #[serde(default)]
    pub device_ring: Packets,
    /// Probability that a packet is lost at random on the wire.
    #[serde(default)]
    pub loss: f64,
    /// The queue discipline: a table with its `kind` and parameters, the name of a preset, or a
    /// table whose `preset` names one and whose other keys replace its values.
    #[serde(deserialize_with = "crate::discipline::read")]
    #[schemars(with = "crate::discipline::Readable")]
    pub discipline: Discipline,
}

/// The hosts of a dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Number of client hosts. Users are spread over them.
    #[serde(default = "default_hosts")]
    pub clients: u32,
    /// Number of server hosts.
    #[serde(default = "default_hosts")]
    pub servers: u32,
    /// Rate of every host's own link, both ways; left out: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Framing on the hosts' links.
    #[serde(default)]
    pub framing: Framing,
    /// Hosts' clocks are ahead of the true time by a random part of this. It matters to transports
    /// that put time stamps into their segments.
    #[serde(default)]
    pub clock_offset: Time,
    /// Hosts' clocks are fast or slow by a random part of this, in microseconds per second, up to
    /// 100000.
    #[serde(default)]
    #[schemars(range(max = 100_000))]
    pub clock_drift: u32,
}

impl Default for Hosts {
    fn default() -> Self {
        Self {
            clients: default_hosts(),
            servers: default_hosts(),
            rate: None,
            framing: Framing::default(),
            clock_offset: Time::ZERO,
            clock_drift: 0,
        }
    }
}

fn default_seed() -> u64 {
    1
}

fn default_warm_up() -> Time {
    Time::from_secs(60)
}

fn default_duration() -> Time {
    Time::from_secs(300)
}

fn default_queue_sample() -> Time {
    Time::from_millis(100)
}

fn default_record() -> Vec<Record> {
    vec![Record::Responses, Record::Flows, Record::Queue]
}

fn default_hosts() -> u32 {
    10
}
