//! What a scenario is, with every default spelled out.

use aqmlab_declare::check::Problem;
use aqmlab_declare::parameters;
use aqmlab_net::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Capture, Change, Topology, Traffic, limits};

/// One experiment.
#[parameters]
pub struct Scenario {
    /// Title of the experiment, one line.
    #[param(default)]
    pub title: String,
    /// Seed of every random stream.
    #[param(default = 1)]
    pub seed: u64,
    /// Offered load as a share of the bottleneck rate. The offered load is the mean throughput of
    /// the traffic in a network without congestion. Some classes have neither a number of users nor
    /// a rate. aqmlab computes the size of these classes from `load`.
    #[param(check = load, unwritten)]
    pub load: Option<f64>,
    /// Times and tables of the measurement.
    #[param(default, table)]
    pub measure: Measure,
    /// The network.
    pub topology: Topology,
    /// The classes of traffic: who uses the network, and how.
    pub traffic: Vec<Traffic>,
    /// Values that change during the run, in order of time.
    #[param(default, unwritten)]
    pub changes: Vec<Change>,
}

/// A link is a wall at a higher load, and calibration would extrapolate far.
fn load(key: &str, found: f64) -> Result<(), Problem> {
    let right = "the load is a fraction of the bottleneck's rate, above 0 and at most 2";
    limits::require(key, found, |it| *it > 0.0 && *it <= 2.0, right)
}

impl Scenario {
    /// JSON Schema (2020-12) of a scenario file.
    pub fn json_schema() -> serde_json::Value {
        aqmlab_declare::schema::schema_of::<Self>()
    }
}

/// Times and tables of the measurement.
#[parameters]
pub struct Measure {
    /// Simulated time before anything is counted.
    #[param(default = "60 s", check = limits::time)]
    pub warm_up: Time,
    /// Simulated time that is measured, after the warm-up.
    #[param(default = "300 s", check = duration)]
    pub duration: Time,
    /// Period of the queue samples in `queue.parquet`.
    #[param(default = "100 ms", check = limits::positive)]
    pub queue_sample: Time,
    /// Tables that are written next to the summary.
    #[param(default = vec![Record::Responses, Record::Flows, Record::Queue])]
    pub record: Vec<Record>,
    /// If true, each response time is broken down into its parts, in `breakdown.parquet` and in the
    /// summary.
    #[param(default, unwritten)]
    pub breakdown: bool,
    /// Number of the connection that `story.parquet` records event by event. Only with `breakdown`.
    /// Not given: none.
    #[param(unwritten)]
    pub story: Option<u64>,
    /// Event that starts the response time of a connection's first exchange. `connect` measures the
    /// time that a user waits.
    #[param(default, unwritten)]
    pub response_time: ResponseTime,
    /// Choice of connections. `flow_trace.parquet` records the state of the sender of each of them.
    /// Not given: none.
    #[param(table, unwritten)]
    pub flow_trace: Option<FlowTrace>,
    /// Link to record in `capture.pcapng`: its name, or a table. Not given: none.
    #[param(table, unwritten)]
    #[serde(deserialize_with = "crate::capture::read")]
    #[schemars(with = "Option<crate::capture::Readable>")]
    pub capture: Option<Capture>,
}

fn duration(key: &str, found: Time) -> Result<(), Problem> {
    limits::positive(key, found)?;
    limits::time(key, found)
}

/// Whether this build breaks down response times.
pub const HAS_BREAKDOWN: bool = cfg!(feature = "breakdown");

/// When the first exchange of a connection starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseTime {
    /// The client's first SYN.
    #[default]
    Connect,
    /// The client's last SYN: the wait for a lost SYN does not count. With QUIC: the first packet.
    LastSyn,
    /// The request: the handshake does not count.
    Request,
}

/// Table of a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// `responses.parquet`: one row for each exchange.
    Responses,
    /// `flows.parquet`: one row for each connection.
    Flows,
    /// `queue.parquet`: samples of the bottleneck's queues.
    Queue,
    /// `packets.parquet`: one row for each packet that reaches a queue. Not with `breakdown`.
    Packets,
    /// `subscribers.parquet`: one row for each subscriber of a tree of rates.
    Subscribers,
    /// `sojourn.parquet`: a histogram of the time that packets spend in the queues. Every run
    /// writes it.
    Sojourn,
}

/// Connections for which the internal state of the end that sends responses is recorded in
/// `flow_trace.parquet`.
#[parameters]
#[derive(Eq)]
pub struct FlowTrace {
    /// Number of recorded connections of each class. The first ones that match are recorded.
    #[param(default = 1)]
    pub flows: u32,
    /// Records only connections with at least this many response bytes in total.
    #[param(default)]
    pub min_response: Bytes,
    /// Records only connections that start at this time of the run or later.
    #[param(default)]
    pub after: Time,
    /// Minimum time between two rows of a connection. 0 records every ACK and timer.
    #[param(default)]
    pub period: Time,
}
