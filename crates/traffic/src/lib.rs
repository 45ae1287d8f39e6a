//! Traffic models: who talks, how much, when.
//!
//! A [`Source`] is one class of traffic at work. It says which connections to open, with a
//! [`Script`] for each, and when it wants to be woken; it is told when a connection is over. It
//! knows no network and no clock: time comes in as an argument, wishes go out as [`Action`]s.
//!
//! - Closed loop: web users ([`MahWeb`]), who fetch the next file when one has come.
//! - Open loop: connections that arrive as a Poisson process ([`Poisson`]).
//! - Long-lived transfers ([`Bulk`]).
//! - Datagrams at a constant rate ([`Cbr`]).

mod bulk;
mod cbr;
mod check;
mod mah;
mod params;
mod poisson;
mod script;
mod sizes;
mod source;
pub mod vector;

pub use params::{Bulk, Cbr, Gaps, MahWeb, Model, Poisson, Replies, Rtt, Sizes};
pub use script::{Action, Connect, Direction, Exchange, HostCounts, OpenDatagrams, Script};
pub use source::{PopulationUnset, Source};
