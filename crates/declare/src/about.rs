//! What an algorithm says of itself: for `aqmlab explain`, the documentation and the checks.

use serde::Serialize;

use crate::check::within;
use crate::{Problem, Refused};

/// Where an algorithm comes from, what it is for, and where it departs from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its full name.
    pub title: &'static str,
    /// Authors, title, place, year, and the figure or equation of the pseudocode.
    pub paper: &'static str,
    /// What it is for, in a sentence or two.
    pub purpose: &'static str,
    /// Where it departs from its source, and why.
    pub departures: &'static [&'static str],
    /// What it stores, as the object of a sentence.
    pub memory: &'static str,
}

/// A table of parameters, as [`macro@crate::parameters`] makes it.
pub trait Declared {
    /// All parameters, where they are known beforehand.
    const KEYS: &'static [&'static str] = &[];

    /// Parameters that can change during a run.
    const CHANGEABLE: &'static [&'static str];

    /// Refuses a parameter that is out of its own bounds. The error names the field and says what
    /// was found and what would be right.
    fn check_each(&self) -> Result<(), Problem>;

    /// For tests: values on both sides of each bound.
    fn refused() -> Vec<Refused>;
}

/// Tables in a list go by their numbers.
impl<T: Declared> Declared for Vec<T> {
    const CHANGEABLE: &'static [&'static str] = &[];

    fn check_each(&self) -> Result<(), Problem> {
        let mut tables = self.iter().enumerate();
        tables.try_for_each(|(index, table)| within(&index.to_string(), table.check_each()))
    }

    fn refused() -> Vec<Refused> {
        Vec::new()
    }
}

/// The parameters of an algorithm.
pub trait Parameters: Declared {
    /// What the algorithm says of itself.
    const ABOUT: About;

    /// Refuses parameters that contradict each other.
    fn check_together(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Refuses parameters that contradict each other or mean nothing. The error names the field
    /// and says what was found and what would be right.
    fn check(&self) -> Result<(), Problem> {
        self.check_each()?;
        self.check_together()
    }
}
