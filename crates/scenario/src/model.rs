//! What a scenario is, with every default spelled out.

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::Problem;
use aqmlab_declare::parameters;
use aqmlab_net::{Bytes, Time};
use serde::{Deserialize, Serialize};

use crate::{Capture, Change, Topology, Traffic, limits};

/// One experiment.
#[parameters]
pub struct Scenario {
    /// Title of the experiment. One line.
    #[param(default)]
    pub title: String,
    /// Seed of all random number streams.
    #[param(default = 1)]
    pub seed: u64,
    /// Offered load: mean throughput of the traffic in a network without congestion, as a fraction
    /// of the bottleneck rate. If a class has no number of users and no rate, aqmlab computes this
    /// number or rate from `load`.
    // A link is a wall at a higher load, and calibration would extrapolate far.
    #[param(
        above = 0.0,
        most = 2.0,
        words = "the load is a fraction of the bottleneck's rate, above 0 and at most 2",
        unwritten
    )]
    pub load: Option<f64>,
    /// Times and output tables of the measurement.
    #[param(default, table)]
    pub measure: Measure,
    /// Links, paths and hosts of the network.
    pub topology: Topology,
    /// Traffic classes. A class is a group of users, flows or connections with the same traffic
    /// model.
    pub traffic: Vec<Traffic>,
    /// Values that change during the run, in order of time.
    #[param(default, unwritten)]
    pub changes: Vec<Change>,
}

impl Scenario {
    /// JSON Schema (2020-12) of a scenario file.
    pub fn json_schema() -> serde_json::Value {
        aqmlab_declare::schema::schema_of::<Self>()
    }
}

/// Times and output tables of the measurement.
#[parameters]
pub struct Measure {
    /// Simulated time before the measurement starts.
    #[param(default = "60 s", check = limits::time)]
    pub warm_up: Time,
    /// Simulated time of the measurement, after the warm-up.
    #[param(default = "300 s", check = duration)]
    pub duration: Time,
    /// Interval between two samples in `queue.parquet`.
    #[param(default = "100 ms", check = limits::positive)]
    pub queue_sample: Time,
    /// Tables that the run writes in addition to the summary.
    #[param(default = vec![Record::Responses, Record::Flows, Record::Queue])]
    pub record: Vec<Record>,
    /// If true, `breakdown.parquet` and the summary contain the parts of each response time.
    #[param(default, unwritten)]
    pub breakdown: bool,
    /// Number of the connection to follow (`flow` in the output tables). The first connection that
    /// opens has the number 0. `story.parquet` records all events of this connection. Only with
    /// `breakdown`.
    #[param(unwritten)]
    pub story: Option<u64>,
    /// Event that starts the response time of a connection's first exchange. `connect` measures the
    /// time that a user waits.
    #[param(default, unwritten)]
    pub response_time: ResponseTime,
    /// Connections to trace. `flow_trace.parquet` records the state of the sender of each traced
    /// connection.
    #[param(table, unwritten)]
    pub flow_trace: Option<FlowTrace>,
    /// Link to record in `capture.pcapng`: its name, or a table.
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
    /// The client sends its first SYN.
    #[default]
    Connect,
    /// The client sends its last SYN. The response time excludes the wait for a lost SYN. With
    /// QUIC, the first packet starts the response time.
    LastSyn,
    /// The client sends the request. The response time excludes the handshake.
    Request,
}

/// Table of a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// `responses.parquet`: one row for each exchange (a request and its response).
    Responses,
    /// `flows.parquet`: one row for each connection.
    Flows,
    /// `queue.parquet`: samples of the queues at the bottleneck.
    Queue,
    /// `packets.parquet`: one row for each packet that arrives at a queue. Not available with
    /// `breakdown`.
    Packets,
    /// `subscribers.parquet`: one row for each subscriber of the discipline `htb`.
    Subscribers,
    /// `sojourn.parquet`: a histogram of the time that packets spend in the queues. Every run
    /// writes this table, even without this word.
    Sojourn,
}

/// Connections for which the internal state of the end that sends responses is recorded in
/// `flow_trace.parquet`.
#[parameters]
#[derive(Eq)]
pub struct FlowTrace {
    /// Number of traced connections in each class: the first connections that meet the conditions
    /// below.
    #[param(default = 1)]
    pub flows: u32,
    /// Minimum number of response bytes of a traced connection, summed over its responses.
    #[param(default)]
    pub min_response: Bytes,
    /// Earliest start time of a traced connection, counted from the start of the run.
    #[param(default)]
    pub after: Time,
    /// Minimum time between two rows of a connection. With 0, every ACK and every timer gives a
    /// row.
    #[param(default)]
    pub period: Time,
}
