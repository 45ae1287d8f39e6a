//! Messages on streams of their own, as HTTP/3 has them (RFC 9114), whatever the stack.

use std::collections::VecDeque;

/// Bytes of the streams that each end opens for HTTP/3 itself. The control stream has its type, and SETTINGS
/// with the size of QPACK's table, the streams that it may block, and the size of a field section (RFC 9114,
/// sections 6.2.1 and 7.2.4; RFC 9204, section 5). Those of QPACK's encoder and decoder have their types.
pub(crate) const CONTROL: [u64; 3] = [1 + 2 + (1 + 4) + (1 + 2) + (1 + 4), 1, 1];

/// What an end has of its messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// How many of the streams of [`CONTROL`] are open.
    pub(crate) controls: usize,
    /// Bytes of requests whose streams the peer does not let us open yet.
    pub(crate) waiting: VecDeque<u64>,
    /// Those that have arrived, which the application does not know of.
    pub(crate) arrived: VecDeque<u32>,
    /// The client has closed.
    pub(crate) is_closed: bool,
}
