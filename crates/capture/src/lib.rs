//! Captures: read into connection vectors, written from simulated packets.
//!
//! - [`CaptureReader`] reads pcap and pcapng files, [`decode()`] the TCP headers of their packets;
//! - [`Extractor`] makes [connection vectors](aqmlab_traffic::vector) of TCP headers: what the
//!   applications did, free of network effects;
//! - [`convert`] does all of it, from a capture to a file of vectors in order, with a [`Report`] of
//!   what was read, made and skipped;
//! - [`arrivals()`] counts packets and bytes over time, [`segments()`] lists TCP segments;
//! - [`CaptureWriter`] writes pcapng files.
//!
//! Nothing here opens a file: everything goes over [`Read`](std::io::Read) and
//! [`Write`](std::io::Write).
//!
//! Both formats are read here rather than by a library, for reasons found in pcap-file 2.0: it
//! refuses packets longer than the snap length (all that matter, where only headers are captured)
//! and options without end mark, and takes every interface's time stamps for nanoseconds. Headers
//! are decoded here because etherparse refuses a TCP header whose options the snap length cuts; the
//! tests compare with it.

mod arrivals;
mod buffer;
mod connection;
mod conversation;
mod convert;
mod counts;
mod decode;
mod error;
mod extract;
mod gap;
mod hash;
mod layers;
mod names;
mod numbers;
mod order;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod reasons;
mod record;
mod report;
mod segments;
mod sides;
mod sort;
mod streams;
mod table;
mod tidy;
mod twins;
mod writer;

pub use arrivals::{Arrivals, By, Series, arrivals};
pub use convert::{ConvertError, Format, convert};
pub use counts::{Counts, Reason};
pub use decode::{
    ACK, Endpoint, FIN, Inside, RST, SYN, Skip, Skipped, SynOptions, TcpHeader, decode, tcp_options,
};
pub use error::CaptureError;
pub use extract::{Extractor, Options, Partial};
pub use packet::Packet;
pub use reader::CaptureReader;
pub use reasons::{Omission, Origin, Part};
pub use record::Record;
pub use report::{ConnectionReport, PacketReport, Report, VectorReport};
pub use segments::{SegmentList, WORDS_OF_DATAGRAM, WORDS_OF_SEGMENT, segments};
pub use sides::{Shown, Sides};
pub use tidy::{Notes, Plan, Tidy};
pub use writer::{CaptureWriter, Checksums, PacketImage, TcpImage, Transport, checksum};
