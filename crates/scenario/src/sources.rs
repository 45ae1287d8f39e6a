//! The sources of a scenario: its classes of traffic, ready to work.

use std::fmt;

use aqmlab_traffic::{Setting, Source, SourceError};

use crate::{Scenario, vector_files};

/// Why a class cannot begin.
#[derive(Debug)]
pub struct ClassError {
    /// The class.
    pub class: String,
    /// Why.
    pub error: SourceError,
}

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, error } = self;
        match error {
            SourceError::PopulationUnset(_) => write!(f, "traffic.{class}: {error}"),
            SourceError::NoTables => write!(f, "traffic.{class}.kind: {error}"),
            SourceError::File(_) => write!(f, "traffic.{class}.file: {error}"),
        }
    }
}

impl std::error::Error for ClassError {}

impl Scenario {
    /// The sources of all classes, in their order. Files of connection vectors are opened, if they
    /// are still what the scenario says.
    pub fn sources(&self) -> Result<Vec<Source>, ClassError> {
        (0..self.traffic.len())
            .map(|class| self.source(class))
            .collect()
    }

    /// The source of one class. What it does does not depend on the others.
    pub fn source(&self, class: usize) -> Result<Source, ClassError> {
        let class = &self.traffic[class];
        let network = self.topology.network();
        let setting = Setting {
            rtt: &class.rtt,
            direction: class.direction,
            hosts: class.hosts(&network),
            seed: self.seed,
            class: class.drawn_as(),
        };
        let source = Source::with_files(&class.model, &setting, &mut vector_files::open);
        let source = source.map_err(|error| ClassError {
            class: class.name.clone(),
            error,
        })?;
        let source = source.with_activity(class.activity());
        Ok(source.with_subset(class.subset.as_ref(), self.seed))
    }
}
