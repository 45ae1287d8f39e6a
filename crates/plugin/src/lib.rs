//! Algorithms that come from outside: queue disciplines and congestion controls in C, in compiled
//! Python, or in Python.
//!
//! - [`abi`]: the records that cross the border, as the C header `aqmlab.h` has them.
//! - [`Plugin`]: what one is called, its parameters and how its instances are made; [`register`]
//!   makes it known by its name. Nothing here loads a file.
//! - [`Instance`]: an algorithm at work. What it keeps is its own; events come in as a record.
//! - [`foreign`]: instances behind function pointers.
//! - [`Settings`]: a plug-in and its parameters, as a scenario states them.
//! - [`failure`]: what a callback raised, until the run that it ends has ended.

pub mod abi;
mod declared;
pub mod failure;
pub mod foreign;
mod instance;
mod recorded;
mod registry;
mod settings;

pub use declared::{Field, Form, Makers, Plugin, Role, Value};
pub use instance::{Callback, Callbacks, Instance, Maker, NOTHING};
pub use recorded::reading_a_record;
pub use registry::{PluginKind, find, register, registered};
pub use settings::Settings;
