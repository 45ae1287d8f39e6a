//! Errors that close a connection (RFC 9000, section 20.1).

/// Why an end closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing is wrong.
    None = 0x0,
    /// More data than the limits allow.
    FlowControl = 0x3,
    /// More streams than the limit allows.
    StreamLimit = 0x4,
    /// A frame for a stream that cannot have it.
    StreamState = 0x5,
    /// A stream ends elsewhere than was said.
    FinalSize = 0x6,
    /// A frame that cannot be read.
    FrameEncoding = 0x7,
    /// Something else that is not allowed: an acknowledgement of what was never sent.
    ProtocolViolation = 0xa,
}
