//! What a table of parameters says of itself.
//!
//! - [`mod@tagged`]: reading tables whose `kind` decides what else they hold, with errors that know
//!   where they are.
//! - [`About`] and [`Parameters`]: where an algorithm comes from, and what its parameters may be.
//! - [`macro@parameters`]: from one declaration of each parameter, how it is read and written, its
//!   schema, and the check of its [`Bounds`].
//! - [`check`]: the checks that many parameters share.
//! - [`registry!`]: from one line per kind, the enum that a scenario reads, with its checks and
//!   what each kind says of itself.
//! - [`schema`]: the JSON Schema of a type, and a view of it from which lists and pages are made.

mod about;
mod bounds;
pub mod check;
mod located;
mod reader;
mod registry;
pub mod schema;
pub mod tagged;

pub use about::{About, Declared, Parameters};
pub use aqmlab_declare_macros::{JsonSchema, parameters};
pub use bounds::{Bounds, Extremes, Measure, Refused, extremes, refusals};
pub use check::Problem;

/// Whether a parameter is what it is where it is left out.
#[doc(hidden)]
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
