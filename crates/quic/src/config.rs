//! What an end is made with.

use std::sync::Arc;

use aqmlab_net::Time;
use aqmlab_tcp::Profile;

use crate::streams::Limits;

/// Both ends of a connection: what they have in common.
#[derive(Clone, Debug)]
pub struct Config {
    /// The congestion control and what belongs to it: [`aqmlab_tcp::Law::stack`].
    pub stack: Arc<Profile>,
    /// UDP payload of the largest datagrams.
    pub datagram: u64,
    /// Window of the congestion control at first, in bytes.
    pub initial_window: u64,
    /// Whether datagrams are ECN-capable.
    pub ecn: bool,
    /// Datagrams that leave at once after an idle time.
    pub burst: u32,
    /// Whether the pacer, once it has to wait, waits until so many may leave again, as with segmentation
    /// offload. Otherwise each datagram has a time of its own.
    pub in_bursts: bool,
    /// TLS messages of the server behind its hello, without its transport parameters, in bytes.
    pub server_flight: u64,
    /// Connection ids beside the first that each end offers the other, once it has the keys.
    pub connection_ids: u64,
    /// What each end lets the other do.
    pub limits: Limits,
    /// How long an acknowledgement may wait.
    pub max_ack_delay: Time,
    /// The connection is given up if nothing comes for so long.
    pub idle_timeout: Time,
    /// The client has spoken to this server before, and sends data at once.
    pub early: Option<Early>,
}

/// Data in the client's first flight (0-RTT).
#[derive(Clone, Copy, Debug)]
pub struct Early {
    /// What the server let the client do then.
    pub remembered: Limits,
    /// Whether the server takes such data.
    pub accepted: bool,
}

/// Bytes of a client's hello, with its transport parameters.
pub(crate) const CLIENT_HELLO: u64 = 278;

/// Bytes of a server's hello.
pub(crate) const SERVER_HELLO: u64 = 90;

/// Bytes of a server's transport parameters.
const PARAMETERS: u64 = 73;

/// Bytes of a client's last message.
pub(crate) const FINISHED: u64 = 52;

/// Bytes of the two tickets that a server sends behind the handshake.
pub(crate) const TICKETS: u64 = 178;

/// Unit of the acknowledgement delay: 2 to this power, in microseconds.
pub(crate) const ACK_DELAY_EXPONENT: u32 = 3;

/// Least UDP payload of a datagram with an Initial packet (RFC 9000, section 14.1).
pub(crate) const LEAST_INITIAL: usize = 1200;

impl Config {
    /// Bytes of the server's messages behind its hello.
    pub(crate) const fn flight(&self) -> u64 {
        self.server_flight + PARAMETERS
    }

    /// RFC 9002, section 7.2: ten datagrams, and not above the larger of 14,720 bytes and two of them.
    pub const fn standard_window(datagram: u64) -> u64 {
        let most = if 2 * datagram > 14_720 {
            2 * datagram
        } else {
            14_720
        };
        if 10 * datagram < most {
            10 * datagram
        } else {
            most
        }
    }
}
