//! What a scenario is, with every default spelled out.

use aqmlab_net::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Capture, Change, Topology, Traffic};

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
    /// Values that become other ones during the run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

impl Scenario {
    /// JSON Schema (2020-12) of a scenario file.
    pub fn json_schema() -> serde_json::Value {
        aqmlab_declare::schema::schema_of::<Self>()
    }
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
    /// Connections to follow in `flow_trace.parquet`; left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_trace: Option<FlowTrace>,
    /// A link whose packets are recorded in `capture.pcapng`: its name, or a table. Left out: none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::capture::read"
    )]
    #[schemars(with = "Option<crate::capture::Readable>")]
    pub capture: Option<Capture>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            warm_up: default_warm_up(),
            duration: default_duration(),
            queue_sample: default_queue_sample(),
            record: default_record(),
            flow_trace: None,
            capture: None,
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
    /// `sojourn.parquet`: how long packets were in the queues, as counts in bins. It is written in
    /// every run; naming it changes nothing.
    Sojourn,
}

/// Connections whose inner state is recorded in `flow_trace.parquet`, at the end that sends the
/// responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTrace {
    /// How many connections of each class: the first ones that fit.
    #[serde(default = "default_traced")]
    pub flows: u32,
    /// Only connections whose responses have at least this many bytes together.
    #[serde(default)]
    pub min_response: Bytes,
    /// Only connections that begin from this time of the run on.
    #[serde(default)]
    pub after: Time,
    /// Shortest time between two rows of a connection. With 0 there is a row for each segment that
    /// its sender gets and for each of its timers.
    #[serde(default)]
    pub period: Time,
}

fn default_traced() -> u32 {
    1
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
