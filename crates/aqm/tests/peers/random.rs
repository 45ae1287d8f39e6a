//! Queues that draw: 40 runs of the peer against 40 of ours, mean against mean.

use crate::peers::{ARRIVALS, Case, Run, SIZES, table};

/// Runs of each side.
pub(crate) const RUNS: u64 = 40;

/// Bytes of the kinds of packets whose drops are counted apart.
const KINDS: [u32; 4] = [40, 500, 1000, 1500];

/// Standard errors by which a count may differ: 99.9 % of all do not by chance (Student's t, 78
/// degrees of freedom).
const COUNT: f64 = 3.42;

/// And a value of a bin: with 99.9 % none of the 4275 values compared here and for RED does.
const VALUE: f64 = 5.67;

/// Mean and standard deviation of a quantity over runs.
#[derive(Clone, Copy, Debug)]
struct Spread {
    mean: f64,
    deviation: f64,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        Self { mean, deviation }
    }
}

/// A quantity that both sides have.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ours: Spread,
    theirs: Spread,
}

impl Pair {
    /// Our mean less theirs, in standard errors. The peers' values are rounded to five digits.
    fn z(&self) -> f64 {
        let error = self.ours.deviation.hypot(self.theirs.deviation) / (RUNS as f64).sqrt();
        let rounding = 1e-4 * self.theirs.mean.abs() + 1e-4;
        (self.ours.mean - self.theirs.mean) / error.hypot(rounding)
    }
}

/// What both sides made of the same packets.
pub(crate) struct Outcome {
    name: &'static str,
    /// Drops of each kind of packet, then of all, then marks.
    counts: Vec<(String, Pair)>,
    /// The queue in each bin, in packets.
    queue: Vec<Pair>,
    /// The inner variable near the end of each; none if the peer does not show it.
    variable: Vec<Pair>,
}

impl Outcome {
    fn of(case: &Case) -> Self {
        let runs: Vec<Run> = (1..=RUNS).map(|seed| case.play(seed)).collect();
        Self::new(case.name, &runs)
    }

    /// Of a peer's runs and others.
    pub(crate) fn new(name: &'static str, runs: &[Run]) -> Self {
        let (columns, rows) = table(&format!("{name}.csv"));
        let pairs = |first: usize, ours: &dyn Fn(&Run, usize) -> f64| {
            let pair = |(bin, row): (usize, &Vec<String>)| Pair {
                ours: Spread::of(runs.iter().map(|run| ours(run, bin))),
                theirs: Spread {
                    mean: row[first].parse().unwrap(),
                    deviation: row[first + 1].parse().unwrap(),
                },
            };
            rows.iter().enumerate().map(pair).collect::<Vec<_>>()
        };
        Self {
            name,
            counts: counts(name, runs),
            queue: pairs(0, &|run, bin| run.queue[bin]),
            variable: if columns.len() > 2 {
                pairs(2, &|run, bin| run.variable[bin])
            } else {
                Vec::new()
            },
        }
    }

    /// Everything is the same except the random numbers.
    pub(crate) fn agrees(&self) {
        for (what, pair) in &self.counts {
            assert!(pair.z().abs() < COUNT, "{}: {what}: {pair:?}", self.name);
        }
        for (what, values) in [("queue", &self.queue), ("variable", &self.variable)] {
            for (bin, pair) in values.iter().enumerate() {
                assert!(
                    pair.z().abs() < VALUE,
                    "{}: {what} {bin}: {pair:?}",
                    self.name
                );
            }
        }
    }
}

fn counts(name: &str, runs: &[Run]) -> Vec<(String, Pair)> {
    let (columns, rows) = table(&format!("{name}.drops.csv"));
    let dropped = |run: &Run, kinds: &[u32]| {
        let size = |&&number: &&usize| SIZES[ARRIVALS[number].1 as usize];
        let count = |number: &&usize| kinds.contains(&size(number));
        run.dropped.iter().filter(count).count() as f64
    };
    let theirs = |columns: std::ops::Range<usize>| {
        Spread::of(rows.iter().map(|row| {
            let numbers = row[columns.clone()].iter();
            numbers.map(|number| number.parse::<f64>().unwrap()).sum()
        }))
    };
    let ours = |value: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().map(value));
    let drops = |first: usize, last: usize| Pair {
        ours: ours(&|run| dropped(run, &KINDS[first..last])),
        theirs: theirs(first..last),
    };
    let marks = Pair {
        ours: ours(&|run| run.marked.len() as f64),
        theirs: theirs(4..5),
    };
    let kinds = (0..4).map(|kind| (columns[kind].clone(), drops(kind, kind + 1)));
    kinds
        .chain([
            ("dropped".to_owned(), drops(0, 4)),
            ("marked".to_owned(), marks),
        ])
        .collect()
}

const BYTES: &str = "\nunit = 'bytes'\nscale_by_size = true";

fn pi(name: &'static str, rest: &str) -> Case {
    let table = "kind = 'pi'\na = 2e-3\nb = 1.9e-3\nq_ref = '20 packets'\n\
                 interval = '6250 us'\nmean_packet = '1000 bytes'\n";
    Case::new(name, format!("{table}{rest}"), "p")
}

fn rem(name: &'static str, rest: &str) -> Case {
    let table = "kind = 'rem'\ngamma = 0.05\nphi = 1.001\nalpha = 0.1\ninterval = '10 ms'\n\
                 q_ref = '20 packets'\nmean_packet = '1000 bytes'\n";
    Case::new(name, format!("{table}{rest}"), "p")
}

#[test]
fn pi_and_rem_signal_as_in_ns2() {
    for case in [
        pi("ns2-pi", "limit = '100 packets'"),
        pi("ns2-pi-bytes", &format!("limit = '1000 packets'{BYTES}")),
        rem("ns2-rem", "limit = '100 packets'"),
        rem("ns2-rem-bytes", &format!("limit = '1000 packets'{BYTES}")),
    ] {
        Outcome::of(&case).agrees();
    }
}

#[test]
fn pie_signals_as_in_ns3() {
    let table = "kind = 'pie'\nmean_packet = '1000 bytes'".to_owned();
    Outcome::of(&Case::new("ns3-pie", table, "p")).agrees();
}
