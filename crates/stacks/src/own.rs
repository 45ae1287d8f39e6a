//! What a scenario says of our QUIC.

use std::sync::Arc;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::parameters;
use aqmlab_declare::tagged::{self, WordOrTable};
use aqmlab_net::{Bytes, Time};
use aqmlab_quic::{Config, Limits};
use aqmlab_tcp::{CongestionControlKind, Law, SlowStartExit};

/// QUIC of our own, at both ends of a connection.
#[parameters]
pub struct Quic {
    /// Congestion control: its name, or a table with its `kind` and parameters. All of TCP's but
    /// those that need its time stamps.
    #[serde(deserialize_with = "tagged::word_or_table")]
    #[schemars(with = "WordOrTable<CongestionControlKind>")]
    #[param(default = cubic())]
    pub congestion_control: CongestionControlKind,
    /// What ends the first slow start beside congestion.
    #[param(default)]
    pub slow_start_exit: SlowStartExit,
    /// UDP payload of the largest datagrams; with their headers they have 28 bytes more.
    #[param(default = "1200 bytes", least = Bytes(1200), most = Bytes(9000))]
    pub datagram: Bytes,
    /// Window of the congestion control at first. Left out: ten datagrams, at most the larger of
    /// 14,720 bytes and two of them (RFC 9002, section 7.2).
    #[param(least = Bytes(2400))]
    pub initial_window: Option<Bytes>,
    /// Whether datagrams are ECN-capable: all of them, ACKs too. An end turns this off if the path
    /// clears the field.
    #[param(default = true)]
    pub ecn: bool,
    /// Most datagrams that leave in one moment after an idle time; the others are paced.
    #[param(default = 10, least = 1, most = 64)]
    pub burst: u32,
    /// TLS messages of the server behind its hello, its certificates above all. Over some 3,400
    /// bytes the limit of three times what the client has sent costs a round trip.
    #[param(default = "2500 bytes", least = Bytes(300), most = Bytes(15_000))]
    pub server_flight: Bytes,
    /// Most bytes that an end may have received and not yet read, or have on their way: the limit of
    /// a large bandwidth-delay product.
    #[param(default = "6 MiB", least = Bytes(2400), most = Bytes(1_000_000_000))]
    pub receive_window: Bytes,
    /// How long an ACK may wait for a second packet.
    #[param(default = "25 ms", most = Time::from_secs(16))]
    pub max_ack_delay: Time,
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

    /// What connections with these settings have in common.
    pub(crate) fn config(&self) -> Arc<Config> {
        let standard = Config::standard_window(self.datagram.0);
        Arc::new(Config {
            stack: Law::stack(self.congestion_control, self.slow_start_exit, self.datagram),
            datagram: self.datagram.0,
            initial_window: self.initial_window.map_or(standard, |window| window.0),
            ecn: self.ecn,
            burst: self.burst,
            server_flight: self.server_flight.0,
            limits: Limits {
                data: self.receive_window.0,
                stream: self.receive_window.0,
                streams: [STREAMS; 2],
            },
            max_ack_delay: self.max_ack_delay,
            idle_timeout: IDLE,
            early: None,
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
