//! What a scenario says about its traffic.

use aqmlab_net::{Bytes, Frequency, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::on_off::OnOff;
use crate::packmime::PackMime;
use crate::rtt::{GeneralFit, PackMimeRtt};
use crate::session::WebSessions;
use crate::telnet::Telnet;
use crate::unc::UncWeb;

aqmlab_declare::tagged! {
    /// A traffic model and its parameters.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Model {
        /// Closed loop: web users who fetch pages over HTTP/1.0 (Mah 1997).
        MahWeb(MahWeb),
        /// Closed loop: web users whose pages come from several servers, some over persistent
        /// connections (UNC, Smith et al. 2001; reconstructed).
        UncWeb(UncWeb),
        /// Closed loop: sessions that fetch a transfer, think, fetch the next (Zhang and Qiu 2000).
        WebSessions(WebSessions),
        /// Open loop: connections arrive as a Poisson process, each with one exchange.
        Poisson(Poisson),
        /// Open loop: HTTP connections with long memory (PackMime, Cao et al. 2004).
        Packmime(PackMime),
        /// Open loop: connection vectors, from a file.
        Vectors(Vectors),
        /// Open loop: connections of many applications with heavy-tailed sizes, in the manner of a
        /// backbone (Le 2005, chapters 6 and 7).
        GeneralTcp(GeneralTcp),
        /// Long-lived transfers.
        Bulk(Bulk),
        /// Datagrams (UDP) at a constant rate that nothing slows down.
        Cbr(Cbr),
        /// Datagrams (UDP) in bursts of Pareto length.
        OnOff(OnOff),
        /// Keystrokes and their echoes, with the pauses of tcplib's telnet.
        Telnet(Telnet),
    }
}

/// Web users after Mah's empirical model of 1995 traffic, as Christiansen et al. 2000 drove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MahWeb {
    /// Number of users; left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Connections that a user keeps open at once for the files embedded in a page.
    #[serde(default = "default_parallel")]
    pub parallel: u32,
    /// Longest think time; longer ones of the table are cut to this. Left out: 445.5 s, which
    /// gives the paper's rate of requests (the table's longest is a day).
    #[serde(default = "default_think_cap")]
    pub think_cap: Time,
    /// Distribution of reply sizes.
    #[serde(default)]
    pub replies: Replies,
    /// Factor on every reply size.
    #[serde(default = "default_one")]
    pub reply_scale: f64,
    /// Users begin their first page at random within this time. Left out: they are met in the
    /// middle of their think times, as if they had browsed for long, so that no rush begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Time>,
}

/// Distribution of web reply sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// Mah's table up to its 90th percentile, then bounded Pareto tails (one for primary, one for
    /// embedded files) fitted to the traffic that Christiansen et al. 2000 measured.
    #[default]
    Christiansen2000,
    /// Mah's table as published, one for primary and embedded files.
    Mah1997,
}

/// Connections that arrive as a Poisson process; each carries one request and one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Connections per second; left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Distribution of request sizes.
    pub request: Sizes,
    /// Distribution of response sizes.
    pub response: Sizes,
}

/// Recorded (or synthetic) connections, which start at their times and follow their own course: the
/// connection vectors of the a-b-t model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vectors {
    /// A file of connection vectors, in the original or the alternate format of tmix. It is sought
    /// beside the scenario and checked when the scenario is read; the effective scenario has its
    /// whole path.
    pub file: String,
    /// Length of the file in bytes; found when the scenario is read. A file with another length is
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// FNV-1a hash of the file, 64 bits in hexadecimal; found when the scenario is read. A file
    /// with another hash is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_hash: Option<String>,
    /// How often each connection is replayed, on average: below 1 some are left out, above 1 some
    /// are superimposed. Left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<f64>,
    /// Further copies of a connection start at random within this time behind it.
    #[serde(default = "default_spread")]
    pub spread: Time,
    /// Factor on start times; times inside a connection stay as they are.
    #[serde(default = "default_one")]
    pub stretch: f64,
    /// Whether the file begins anew when it ends; otherwise nothing starts any more.
    #[serde(default)]
    pub repeat: bool,
    /// Whether a connection keeps to the windows and segment sizes of its vector, where it has any.
    #[serde(default = "default_true")]
    pub windows: bool,
    /// Whether packets of a connection are lost at random as its vector says, beside what the
    /// network loses.
    #[serde(default)]
    pub losses: bool,
}

/// Connections of many applications, in the manner of a backbone. Shares are of connections,
/// relative to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneralTcp {
    /// Connections per second; left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Share of web transfers.
    #[serde(default = "default_web")]
    pub web: f64,
    /// Share of mail messages.
    #[serde(default = "default_mail")]
    pub mail: f64,
    /// Share of news feeds.
    #[serde(default = "default_news")]
    pub news: f64,
    /// Share of file transfers.
    #[serde(default = "default_files")]
    pub files: f64,
    /// Share of chats.
    #[serde(default = "default_chat")]
    pub chat: f64,
    /// Share of connections between peers of file-sharing networks.
    #[serde(default = "default_peer_to_peer")]
    pub peer_to_peer: f64,
    /// Tail index of the heavy-tailed sizes.
    #[serde(default = "default_tail")]
    pub tail: f64,
    /// Largest of the heavy-tailed sizes.
    #[serde(default = "default_largest")]
    pub largest: Bytes,
}

/// Transfers that never end, or all have the same size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Number of transfers.
    pub flows: u32,
    /// Bytes of each; left out: endless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Transfers start at random within this time.
    #[serde(default = "default_bulk_start")]
    pub start_within: Time,
}

/// Flows of datagrams at a constant rate, from servers to clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Number of flows.
    pub flows: u32,
    /// Bits per second of each flow, IP headers included.
    pub rate: Rate,
    /// Length of each datagram in IP bytes, headers included: 29 bytes to 65,535.
    #[serde(default = "default_datagram")]
    pub packet: Bytes,
    /// Distribution of the gaps between datagrams.
    #[serde(default)]
    pub gaps: Gaps,
    /// Flows start at random within this time.
    #[serde(default = "default_cbr_start")]
    pub start_within: Time,
}

/// Distribution of the gaps between the datagrams of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// All the same.
    #[default]
    Constant,
    /// Uniform between half and one and a half of the mean (the random CBR of ns-2).
    Uniform,
    /// Exponential: a Poisson process.
    Exponential,
}

aqmlab_declare::tagged! {
    /// A distribution of sizes in bytes of application data. Drawn sizes are rounded up to a byte.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Sizes {
        /// Always the same.
        Constant {
            /// The size.
            size: Bytes,
        },
        /// Log-normal.
        Lognormal {
            /// Median.
            median: Bytes,
            /// Standard deviation of the logarithm.
            sigma: f64,
        },
        /// Pareto: P(X > x) = (minimum / x)^shape.
        Pareto {
            /// Tail index.
            shape: f64,
            /// Smallest size.
            minimum: Bytes,
        },
        /// Pareto cut off at a maximum: quantile minimum (1 - u (1 - (minimum/maximum)^shape))^(-1/shape).
        BoundedPareto {
            /// Tail index.
            shape: f64,
            /// Smallest size.
            minimum: Bytes,
            /// Largest size.
            maximum: Bytes,
        },
        /// A table: the first row whose cumulative probability reaches a uniform draw.
        Empirical {
            /// A CSV file with a header, sizes in the first column, cumulative probabilities in the
            /// last. It is read when the scenario is, and replaced by `cdf`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            /// Rows of (bytes, cumulative probability), both ascending, the last probability 1.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            cdf: Vec<(f64, f64)>,
        },
    }
}

aqmlab_declare::tagged! {
    /// Minimum round-trip times, one per connection; the bottleneck's own delay is part of it.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Rtt {
        /// The same for all.
        Constant {
            /// The round-trip time.
            rtt: Time,
        },
        /// That of each connection vector; only with `kind = "vectors"` and `kind = "general-tcp"`.
        /// One that is shorter than the bottleneck's delays is raised to them.
        Vector {
            /// Of vectors that have none.
            #[serde(default = "default_fallback")]
            fallback: Time,
        },
        /// Uniform.
        Uniform {
            /// Shortest.
            min: Time,
            /// Longest.
            max: Time,
        },
        /// Fixed for every pair of server and client host.
        Pairs {
            /// A CSV file: a header `server,<client>,<client>...`, then one row per server with
            /// milliseconds. It is read when the scenario is, and replaced by `matrix`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            /// Rows are servers, columns clients.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            matrix: Vec<Vec<Time>>,
            /// Added to every entry.
            #[serde(default)]
            extra: Time,
        },
        /// A table of its own; between its rows the logarithm of the round-trip time is linear.
        Empirical {
            /// A CSV file with a header, milliseconds in the first column, cumulative probabilities
            /// in the last. It is read when the scenario is, and replaced by `cdf`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            /// Rows of (round-trip time, cumulative probability), both ascending, the last
            /// probability 1. What the first row has of it is exactly the first row's time.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            cdf: Vec<(Time, f64)>,
        },
        /// The wide distribution of Aikat et al. 2003: 10 ms to 25 s, median 80 ms, one in ten
        /// above 1.1 s. Reconstructed.
        General {
            /// Which compromise it makes.
            #[serde(default)]
            fit: GeneralFit,
        },
        /// Those of PackMime. With traffic of kind `packmime` they have long memory, as the model
        /// says; with others they are independent.
        Packmime {
            /// Which table.
            #[serde(default)]
            table: PackMimeRtt,
            /// Added to every round trip: the propagation delay of the topology.
            #[serde(default)]
            extra: Time,
        },
    }
}

fn default_parallel() -> u32 {
    2
}

fn default_think_cap() -> Time {
    Time::from_millis(445_500)
}

fn default_one() -> f64 {
    1.0
}

fn default_datagram() -> Bytes {
    Bytes(500)
}

fn default_cbr_start() -> Time {
    Time::from_secs(1)
}

fn default_bulk_start() -> Time {
    Time::from_secs(1)
}

fn default_true() -> bool {
    true
}

fn default_spread() -> Time {
    Time::from_secs(10)
}

fn default_fallback() -> Time {
    Time::from_millis(100)
}

fn default_web() -> f64 {
    0.6
}

fn default_mail() -> f64 {
    0.1
}

fn default_news() -> f64 {
    0.04
}

fn default_files() -> f64 {
    0.06
}

fn default_chat() -> f64 {
    0.04
}

fn default_peer_to_peer() -> f64 {
    0.16
}

fn default_tail() -> f64 {
    1.2
}

fn default_largest() -> Bytes {
    Bytes(100_000_000)
}
