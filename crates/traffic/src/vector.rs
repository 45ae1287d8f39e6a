//! Connection vectors: what the applications at the ends of a TCP connection did, free of network
//! effects (the a-b-t model).
//!
//! F. Hernandez-Campos, F. D. Smith, K. Jeffay, "Generating Realistic TCP Workloads", CMG 2004;
//! M. Weigle, P. Adurthi, F. Hernandez-Campos, K. Jeffay, F. D. Smith, "Tmix: A Tool for
//! Generating Realistic TCP Application Workloads in ns-2", CCR 36(3), 2006, whose two text
//! formats [`VectorReader`] reads and [`write_original`] and [`write_alternate`] write. The side
//! that opens a connection is the initiator, the other the acceptor; what a side writes in one go
//! is an application data unit (ADU).
//!
//! Conventions of the formats that the types do not show:
//!
//! - a stated time of 0 is read as 1 microsecond;
//! - a connection without a closing time is closed [`CLOSE_AFTER`] after its last ADU;
//! - a window, segment size or round-trip time of 0 is one that is not known;
//! - an ADU of 0 bytes carries nothing: only its pause counts;
//! - the numbers of epochs and ADUs in head lines are informative, and so is the first identity.

mod read;
mod types;
mod write;

pub use read::VectorReader;
pub use types::{
    Adu, Body, CLOSE_AFTER, ConnectionVector, MAX_ADUS, MAX_BYTES, MAX_LINE, MAX_TIME, VectorError,
};
pub use write::{write_alternate, write_original};
