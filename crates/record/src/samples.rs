//! Samples of a queue that wait to be recorded.

use aqmlab_aqm::Backlog;
use aqmlab_net::Time;

use crate::LinkDirection;

/// Samples of the queue of one direction of a link that wait to be recorded.
#[derive(Clone, Debug)]
pub struct QueueSamples {
    name: LinkDirection,
    probes: &'static [&'static str],
    rows: Vec<(Time, Backlog)>,
    /// The probes of every row, one after another.
    values: Vec<f64>,
}

impl QueueSamples {
    /// None yet. `probes` are the names of the discipline's inner variables.
    pub(crate) const fn new(name: LinkDirection, probes: &'static [&'static str]) -> Self {
        Self {
            name,
            probes,
            rows: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Whose they are.
    pub const fn name(&self) -> &LinkDirection {
        &self.name
    }

    /// The names of the discipline's inner variables.
    pub const fn probes(&self) -> &'static [&'static str] {
        self.probes
    }

    /// Looks at the queue: what waits, and the discipline's inner variables, which `probe` appends.
    pub(crate) fn add(&mut self, time: Time, backlog: Backlog, probe: impl FnOnce(&mut Vec<f64>)) {
        self.rows.push((time, backlog));
        probe(&mut self.values);
    }

    /// The samples: when, what waited, and the inner variables in the order of their names.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (Time, Backlog, &[f64])> {
        let width = self.probes.len();
        let rows = self.rows.iter().enumerate();
        rows.map(move |(row, &(time, backlog))| {
            let values = &self.values[row * width..(row + 1) * width];
            (time, backlog, values)
        })
    }

    /// Forgets them: they are recorded.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_of_samples_has_its_own_inner_variables() {
        let name = LinkDirection {
            link: "bottleneck".to_owned(),
            direction: "forward",
        };
        let mut samples = QueueSamples::new(name, &["p", "count"]);
        let groups: [&[[f64; 2]]; 3] = [&[[0.1, 1.0], [0.2, 2.0]], &[[0.3, 3.0]], &[]];
        for group in groups {
            for values in group {
                samples.add(Time::ZERO, Backlog::default(), |row| row.extend(values));
            }
            let rows: Vec<_> = samples.rows().map(|(_, _, values)| values).collect();
            assert_eq!(rows, group);
            samples.clear();
        }
        assert_eq!(samples.rows().len(), 0);
    }
}
