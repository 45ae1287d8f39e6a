//! The scenario file: schema, defaults, units, errors that name the field.
//!
//! [`Scenario::parse`] turns a text into a [`Scenario`] in which every default is spelled out and
//! every value makes sense, or into a [`ScenarioError`]: one sentence that names the field, what
//! was found and what would be right. Files are read through a function of the caller's.

mod bottleneck;
mod capture;
mod catalog;
mod check;
mod discipline;
mod error;
mod model;
mod overrides;
mod pages;
mod parse;
mod population;
mod reference;
mod stacks;
mod tables;
mod topology;
mod traffic;
mod units;

pub use aqmlab_traffic::Direction;
pub use bottleneck::Bottleneck;
pub use capture::{Capture, Checksums};
pub use catalog::catalog;
pub use error::ScenarioError;
pub use model::{FlowTrace, Link, Measure, RateChange, Record, Reordering, Scenario};
pub use pages::{BY_HAND, Folder, page_heads};
pub use reference::reference;
pub use stacks::Stacks;
pub use tables::{MAX_SCENARIO_BYTES, MAX_TABLE_BYTES, ReadFile};
pub use topology::{DelayAt, Dumbbell, Hop, Hosts, MOST_HOPS, Network, ParkingLot, Path, Topology};
pub use traffic::Traffic;
pub use units::{Framing, Packets};
