//! A packet of a capture.

use aqmlab_net::Time;

/// A packet as it stands in a file.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Since 1970; simple packet blocks have no time.
    pub time: Option<Time>,
    /// What the bytes begin with: the numbers of <https://www.tcpdump.org/linktypes.html>.
    pub link: u16,
    /// Where it was captured: interfaces are numbered from 0 within their section of the file.
    pub interface: u32,
    /// Whether the file says that it went out, or came in.
    pub outward: Option<bool>,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Length of the packet on the wire.
    pub original: u32,
}
