//! What a scenario says of a stack.

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::parameters;
use aqmlab_net::Bytes;
use serde::{Deserialize, Serialize};

/// Whether this build has quinn.
pub const HAS_QUINN: bool = cfg!(feature = "quinn");

/// Whether this build has our QUIC.
pub const HAS_QUIC: bool = cfg!(feature = "quic");

/// Whether this build has any stack of datagrams.
pub const HAS_STACKS: bool = HAS_QUINN || HAS_QUIC;

/// Largest UDP payload that quinn's search for the path's datagram size tries.
const LARGEST_SEARCHED: Bytes = Bytes(1452);

/// Congestion control of quinn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// CUBIC (RFC 8312), without HyStart.
    #[default]
    Cubic,
    /// NewReno (RFC 9002, section 7).
    NewReno,
}

/// quinn-proto's QUIC, at both ends of a connection. Keys that are not given keep the defaults of
/// quinn.
#[parameters]
pub struct Quinn {
    /// Congestion control of both ends. The BBR of quinn is not available.
    #[param(default)]
    pub congestion_control: Control,
    /// Maximum UDP payload of a datagram at the start of a connection. The IP and UDP headers add
    /// 28 bytes.
    #[param(default = "1200 bytes", least = Bytes(1200), most = Bytes(9000))]
    pub datagram: Bytes,
    /// If true, the endpoints probe for a larger maximum payload, up to 1,452 bytes. The search
    /// ends early if a full queue drops probes.
    #[param(default = true)]
    pub mtu_discovery: bool,
    /// Initial congestion window.
    #[param(default = "12000 bytes", least = Bytes(2400))]
    pub initial_window: Bytes,
    /// If true, all datagrams are ECN-capable (ECT(0)), including datagrams with only ACKs. quinn
    /// disables ECN if the path clears the ECN bits.
    #[param(default = true)]
    pub ecn: bool,
    /// Maximum number of datagrams in a burst, as with segmentation offload.
    #[param(default = 10, least = 1, most = 64)]
    pub burst: u32,
    /// Size of the TLS messages that the server sends after its ServerHello, mainly certificates.
    /// Above about 3,400 bytes, the handshake needs one more round trip.
    #[param(default = "2500 bytes", least = Bytes(300), most = Bytes(15_000))]
    pub server_flight: Bytes,
    /// Flow-control window of a stream: maximum number of bytes that are in flight or not yet read
    /// by the receiving application.
    #[param(default = "1250000 bytes", least = Bytes(2400), most = Bytes(1_000_000_000))]
    pub receive_window: Bytes,
}

impl Quinn {
    /// Refuses what this build, or a combination, does not have. The error is the field and the
    /// message.
    pub fn check(&self) -> Result<(), Problem> {
        if self.mtu_discovery && self.datagram > LARGEST_SEARCHED {
            let found = self.datagram;
            let message = format!(
                "found {found}, but the search for larger datagrams ends at {LARGEST_SEARCHED}; \
                 give mtu_discovery = false, or at most {LARGEST_SEARCHED}"
            );
            return problem("datagram", message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_beyond_the_search_is_refused() {
        let quinn = Quinn {
            datagram: Bytes(1500),
            ..Quinn::default()
        };
        assert_eq!(quinn.check().unwrap_err().0, "datagram");
        let fixed = Quinn {
            mtu_discovery: false,
            ..quinn
        };
        assert_eq!(fixed.check(), Ok(()));
    }
}
