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
    /// What it is about, in a line.
    #[param(default)]
    pub title: String,
    /// Seed of every random stream.
    #[param(default = 1)]
    pub seed: u64,
    /// Offered load as a fraction of the bottleneck's rate: the average throughput that the same
    /// sources cause on an uncongested network. Sources without a number of users (or a rate) of
    /// their own are calibrated to it.
    #[param(check = load, unwritten)]
    pub load: Option<f64>,
    /// What is measured, and when.
    #[param(default, table)]
    pub measure: Measure,
    /// The network.
    pub topology: Topology,
    /// Who talks.
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

/// What is measured, and when.
#[parameters]
pub struct Measure {
    /// Simulated time before anything is counted.
    #[param(default = "60 s", check = limits::time)]
    pub warm_up: Time,
    /// Simulated time that is measured.
    #[param(default = "300 s", check = duration)]
    pub duration: Time,
    /// Period of the queue samples in `queue.parquet`.
    #[param(default = "100 ms", check = limits::positive)]
    pub queue_sample: Time,
    /// Which tables are written beside the summary.
    #[param(default = vec![Record::Responses, Record::Flows, Record::Queue])]
    pub record: Vec<Record>,
    /// Whether the time of each response is broken down into its parts, in `breakdown.parquet` and in
    /// the summary.
    #[cfg(feature = "breakdown")]
    #[param(default, unwritten)]
    pub breakdown: bool,
    /// Serial number of a connection whose events are recorded in `story.parquet`; needs
    /// `breakdown`. Left out: none.
    #[cfg(feature = "breakdown")]
    #[param(unwritten)]
    pub story: Option<u64>,
    /// From when on the response time of a connection's first exchange is counted; `connect` is what a
    /// user waits.
    #[cfg(feature = "breakdown")]
    #[param(default, unwritten)]
    pub response_time: ResponseTime,
    /// Connections to follow in `flow_trace.parquet`; left out: none.
    #[param(table, unwritten)]
    pub flow_trace: Option<FlowTrace>,
    /// A link whose packets are recorded in `capture.pcapng`: its name, or a table. Left out: none.
    #[param(table, unwritten)]
    #[serde(deserialize_with = "crate::capture::read")]
    #[schemars(with = "Option<crate::capture::Readable>")]
    pub capture: Option<Capture>,
}

fn duration(key: &str, found: Time) -> Result<(), Problem> {
    limits::positive(key, found)?;
    limits::time(key, found)
}

/// When the first exchange of a connection begins.
#[cfg(feature = "breakdown")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseTime {
    /// With the client's first SYN.
    #[default]
    Connect,
    /// With its last SYN: waiting for the retransmission timer of a SYN does not count. QUIC has no
    /// SYN, so there it is the first packet.
    LastSyn,
    /// With the request, which the client sends once its connection is open: the handshake does not
    /// count.
    Request,
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
    /// `packets.parquet`: a row for each packet that reaches a queue. A simulated run only, and not
    /// together with `breakdown`.
    Packets,
    /// `subscribers.parquet`: a row for each subscriber of a tree of rates.
    Subscribers,
    /// `sojourn.parquet`: how long packets were in the queues, as counts in bins. It is written in
    /// every run; naming it changes nothing.
    Sojourn,
}

/// Connections whose inner state is recorded in `flow_trace.parquet`, at the end that sends the
/// responses.
#[parameters]
#[derive(Eq)]
pub struct FlowTrace {
    /// How many connections of each class: the first ones that fit.
    #[param(default = 1)]
    pub flows: u32,
    /// Only connections whose responses have at least this many bytes together.
    #[param(default)]
    pub min_response: Bytes,
    /// Only connections that begin from this time of the run on.
    #[param(default)]
    pub after: Time,
    /// Shortest time between two rows of a connection. With 0 there is a row for each segment that
    /// its sender gets and for each of its timers.
    #[param(default)]
    pub period: Time,
}
