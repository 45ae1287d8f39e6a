//! The scenario file: schema, defaults, units, errors that name the field.
//!
//! [`Scenario::load`] turns a file into a [`Scenario`] in which every default is spelled out and
//! every value makes sense, or into a [`ScenarioError`]: one sentence that names the field, what
//! was found and what would be right. [`Scenario::parse`] does so where there are no files.
//! [`Scenario::sources`] has its classes of traffic, ready to work.

mod bottleneck;
mod capture;
mod catalog;
mod change;
mod changes;
mod check;
mod discipline;
mod error;
mod limits;
mod link;
mod model;
mod overrides;
mod parse;
mod population;
#[cfg(test)]
mod refused;
mod sources;
mod stacks;
mod tables;
mod topology;
mod traffic;
mod transport;
mod units;
mod variable;
mod vector_files;
mod watched;
#[cfg(feature = "air")]
mod wifi;

pub use aqmlab_stacks::{Quic, Quinn};
pub use aqmlab_traffic::Direction;
pub use bottleneck::Bottleneck;
pub use capture::{Capture, Checksums};
pub use catalog::{
    LIVE_KEYS, ProfileSheet, ProfileValue, built_in, catalog, catalog_of, class_keys, plugins,
    profile_keys,
};
pub use change::Change;
pub use changes::{Changed, Changes, LinkChange};
pub use error::ScenarioError;
pub use link::{Input, Link, RateChange, Reordering};
pub use model::{FlowTrace, HAS_BREAKDOWN, Measure, Record, ResponseTime, Scenario};
pub use parse::content;
pub use sources::ClassError;
pub use stacks::Stacks;
pub use tables::{MAX_SCENARIO_BYTES, MAX_TABLE_BYTES, ReadFile};
pub use topology::{DelayAt, Dumbbell, Hop, Hosts, MOST_HOPS, Network, ParkingLot, Path, Topology};
pub use traffic::Traffic;
pub use transport::Transport;
pub use units::{Framing, Packets};
pub use variable::{DelayChange, LossChange, OPPORTUNITY_BYTES, Outage, Trace};
pub use watched::{Effect, Watched};
#[cfg(feature = "air")]
pub use wifi::{AccessPointQueue, Ampdu, Edca, Modulation, Phy, Stations, Wifi};
