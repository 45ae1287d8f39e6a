//! Traffic models: who talks, how much, when.
//!
//! A [`Source`] is one class of traffic at work. It says which connections to open, with a
//! [`Script`] for each, and when it wants to be woken; it is told when a connection is over. It
//! knows no network and no clock: time comes in as an argument, wishes go out as [`Action`]s.
//!
//! - Closed loop: web users ([`MahWeb`]), who fetch the next file when one has come.
//! - Open loop: connections that arrive as a Poisson process ([`Poisson`]), recorded ones
//!   ([`Vectors`]), those of many applications ([`GeneralTcp`]).
//! - Long-lived transfers ([`Bulk`]).
//! - Datagrams at a constant rate ([`Cbr`]).

mod bulk;
mod cbr;
mod check;
mod general_tcp;
mod mah;
mod params;
mod poisson;
mod replay;
mod script;
mod sizes;
mod source;
pub mod vector;

pub use general_tcp::Generator;
pub use params::{
    Bulk, Cbr, Gaps, GeneralTcp, MahWeb, Model, Poisson, Replies, Rtt, Sizes, Vectors,
};
pub use replay::VectorFile;
pub use script::{
    Action, Connect, Direction, Exchange, HostCounts, Limits, OpenDatagrams, Script, Step,
};
pub use source::{OpenFile, PopulationUnset, Source, SourceError};
