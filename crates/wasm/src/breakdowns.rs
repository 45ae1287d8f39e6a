//! Where the time of responses went: rows that stay in memory.

use aqmlab_net::Time;
use aqmlab_record::{Breakdown, Exchange, Part, PathCount, PortParts};

/// Rows of numbers that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Breakdowns {
    columns: Vec<String>,
    rows: Vec<f64>,
    /// What the columns with the number of a word mean.
    words: Vec<String>,
}

impl Breakdowns {
    /// The ports are known: names the columns.
    pub(crate) fn begin(&mut self, ports: &[PortParts]) {
        let ahead = ["end_s", "class", "flow", "response_bytes", "response_ns"];
        let parts = Part::ALL.map(|part| part.column().to_owned());
        let of_ports = ports.iter().flat_map(|PortParts { name, .. }| {
            ["wait", "ring", "transmission"]
                .map(|what| format!("{what}_{}_{}_ns", name.link, name.direction))
        });
        let counts = PathCount::ALL.map(|count| count.column().to_owned());
        let loss = ["loss_ns", "loss_segment", "loss_port", "loss_reason"];
        self.columns = (ahead.map(str::to_owned).into_iter())
            .chain(parts)
            .chain(of_ports)
            .chain(counts)
            .chain(loss.map(str::to_owned))
            .collect();
        self.words = ports
            .iter()
            .map(|PortParts { name, .. }| format!("{} {}", name.link, name.direction))
            .collect();
    }

    pub(crate) fn push(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        let exact = |nanos: u64| nanos as f64;
        self.rows.extend([
            row.end.as_secs_f64(),
            row.class as f64,
            exact(row.flow),
            exact(row.response_bytes),
            exact(row.response_time().as_nanos()),
        ]);
        let numbers = breakdown.parts.iter().chain(breakdown.counts);
        self.rows.extend(numbers.map(|&number| exact(number)));
        let loss = match &breakdown.loss {
            Some(loss) => [
                exact(loss.time.as_nanos()),
                self.word(loss.segment.name()),
                loss.port.map_or(f64::NAN, f64::from),
                self.word(loss.reason),
            ],
            None => [exact(Time::ZERO.as_nanos()), f64::NAN, f64::NAN, f64::NAN],
        };
        self.rows.extend(loss);
    }

    /// The number of a word.
    fn word(&mut self, word: &str) -> f64 {
        let known = self.words.iter().position(|other| other == word);
        let number = known.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        });
        number as f64
    }

    pub(crate) fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.words.clone()
    }

    /// The rows since the last call.
    pub(crate) fn take(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.rows)
    }
}
