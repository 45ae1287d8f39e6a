//! Traffic models: who talks, how much, when.
//!
//! A [`Source`] is one class of traffic at work. It says which connections to open, with a
//! [`Script`] for each, and when it wants to be woken; it is told when a connection is over. It
//! knows no network and no clock: time comes in as an argument, wishes go out as [`Action`]s.
//!
//! - Closed loop: web users ([`MahWeb`], [`UncWeb`]), who fetch the next file when one has come,
//!   and simpler sessions ([`WebSessions`], [`Telnet`]).
//! - Open loop: connections that arrive as a Poisson process ([`Poisson`]) or with long memory
//!   ([`PackMime`]), recorded ones ([`Vectors`]), those of many applications ([`GeneralTcp`]).
//! - Long-lived transfers ([`Bulk`]).
//! - Datagrams at a constant rate ([`Cbr`]) or in bursts ([`OnOff`]).

mod bulk;
mod cbr;
mod check;
mod curve;
mod general_tcp;
pub mod ideal;
mod long_memory;
mod mah;
mod normal;
mod offered;
mod on_off;
mod packmime;
mod params;
mod part;
mod poisson;
mod replay;
mod rtt;
mod script;
mod session;
mod sizes;
mod source;
mod telnet;
mod unc;
pub mod vector;

pub use general_tcp::Generator;
pub use offered::Offered;
pub use on_off::OnOff;
pub use packmime::{Http, PackMime};
pub use params::{
    Bulk, Cbr, Gaps, GeneralTcp, MahWeb, Model, Poisson, Replies, Rtt, Sizes, Vectors,
};
pub use part::Part;
pub use replay::VectorFile;
pub use rtt::{GeneralFit, PackMimeRtt};
pub use script::{
    Action, Connect, Direction, Exchange, HostCounts, Limits, OpenDatagrams, Script, Step,
};
pub use session::WebSessions;
pub use source::{Activity, OpenFile, PopulationUnset, Source, SourceError};
pub use telnet::Telnet;
pub use unc::UncWeb;
