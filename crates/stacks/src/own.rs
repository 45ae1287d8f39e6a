//! What a scenario says of our QUIC.

use std::sync::Arc;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::parameters;
use aqmlab_declare::tagged::{self, WordOrTable};
use aqmlab_net::{Bytes, Time};
use aqmlab_quic::{Config, Early, Limits};
use aqmlab_tcp::{CongestionControlKind, Law, SlowStartExit};
use serde::{Deserialize, Serialize};

/// aqmlab's own QUIC, at both ends of a connection.
#[parameters]
pub struct Quic {
    /// Congestion control: its name, or a table with a `kind` and its parameters. Congestion
    /// controls that need TCP time stamps are not available.
    #[serde(deserialize_with = "tagged::word_or_table")]
    #[schemars(with = "WordOrTable<CongestionControlKind>")]
    #[param(default = cubic())]
    pub congestion_control: CongestionControlKind,
    /// Rule that can end the first slow start before a packet is lost or marked.
    #[param(default)]
    pub slow_start_exit: SlowStartExit,
    /// Maximum UDP payload of a datagram. The IP and UDP headers add 28 bytes.
    #[param(default = "1200 bytes", least = Bytes(1200), most = Bytes(9000))]
    pub datagram: Bytes,
    /// Initial congestion window. Default: ten datagrams, limited to the larger of 14,720 bytes and
    /// two datagrams (RFC 9002, section 7.2).
    #[param(least = Bytes(2400))]
    pub initial_window: Option<Bytes>,
    /// If true, all datagrams are ECN-capable, including datagrams with only ACKs. An endpoint
    /// disables ECN if the path clears the ECN bits.
    #[param(default = true)]
    pub ecn: bool,
    /// Maximum number of datagrams in a burst after an idle time. The endpoint paces further
    /// datagrams.
    #[param(default = 10, least = 1, most = 64)]
    pub burst: u32,
    /// If true, the endpoint paces bursts of `burst` datagrams, as with segmentation offload. If
    /// false, it paces single datagrams.
    #[param(default = false)]
    pub pace_bursts: bool,
    /// Size of the TLS messages that the server sends after its ServerHello, mainly certificates.
    /// Above about 3,400 bytes, the handshake needs one more round trip.
    #[param(default = "2500 bytes", least = Bytes(300), most = Bytes(15_000))]
    pub server_flight: Bytes,
    /// Number of additional connection IDs that each endpoint offers to its peer. Each ID needs a
    /// frame of 28 bytes.
    #[param(default = 4, most = 7)]
    pub connection_ids: u32,
    /// Early data (0-RTT): application data that the client sends with its ClientHello, as on a
    /// repeated visit.
    #[param(default)]
    pub early_data: EarlyData,
    /// Flow-control window: maximum number of bytes that are in flight or not yet read by the
    /// receiving application.
    #[param(default = "6 MiB", least = Bytes(2400), most = Bytes(1_000_000_000))]
    pub receive_window: Bytes,
    /// Maximum time for which a receiver delays an ACK.
    #[param(default = "25 ms", most = Time::from_secs(16))]
    pub max_ack_delay: Time,
}

/// Data in the client's first flight (0-RTT; RFC 9001, section 4.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyData {
    /// The client sends no early data.
    #[default]
    Off,
    /// The server accepts early data.
    Accepted,
    /// The server rejects early data. The client sends the data again after the handshake.
    Rejected,
}

fn cubic() -> CongestionControlKind {
    CongestionControlKind::Cubic(Default::default())
}

/// Streams that either end may have open in each direction.
const STREAMS: u64 = 100;

/// Nothing has come for so long: the connection is given up.
const IDLE: Time = Time::from_secs(30);

impl Quic {
    /// Refuses a congestion control that QUIC cannot have. The error is the field and the message.
    pub fn check(&self) -> Result<(), Problem> {
        if let CongestionControlKind::Plugin(_) | CongestionControlKind::External(_) =
            self.congestion_control
        {
            let message = "found a control that is set from outside, which only TCP has; expected \
                           another";
            return problem("congestion_control", message);
        }
        Law::check(&self.congestion_control, self.ecn)
    }

    /// The phases of its congestion control.
    pub const fn phases(&self) -> &'static [&'static str] {
        self.congestion_control.phases()
    }

    /// What connections with these settings have in common.
    pub(crate) fn config(&self) -> Arc<Config> {
        let standard = Config::standard_window(self.datagram.0);
        let limits = Limits {
            data: self.receive_window.0,
            stream: self.receive_window.0,
            streams: [STREAMS; 2],
        };
        let accepted = self.early_data == EarlyData::Accepted;
        let early = (self.early_data != EarlyData::Off).then_some(Early {
            remembered: limits,
            accepted,
        });
        Arc::new(Config {
            stack: Law::stack(self.congestion_control, self.slow_start_exit, self.datagram),
            datagram: self.datagram.0,
            initial_window: self.initial_window.map_or(standard, |window| window.0),
            ecn: self.ecn,
            burst: self.burst,
            in_bursts: self.pace_bursts,
            server_flight: self.server_flight.0,
            connection_ids: u64::from(self.connection_ids),
            limits,
            max_ack_delay: self.max_ack_delay,
            idle_timeout: IDLE,
            early,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_that_need_tcp_are_refused_and_the_others_are_not() {
        for congestion_control in CongestionControlKind::all() {
            let refused = ["SyncTcp", "SantaCruz", "External"];
            let name = format!("{congestion_control:?}");
            let quic = Quic {
                congestion_control,
                ..Quic::default()
            };
            let is_refused = refused.iter().any(|it| name.starts_with(it));
            assert_eq!(quic.check().is_err(), is_refused, "{name}");
        }
        let dctcp = Quic {
            congestion_control: CongestionControlKind::Dctcp(Default::default()),
            ecn: false,
            ..Quic::default()
        };
        assert_eq!(dctcp.check().unwrap_err().0, "congestion_control");
    }
}
