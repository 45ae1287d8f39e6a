//! Plays the rows of a worked example through an AQM and compares everything after each.

use std::collections::{HashMap, VecDeque};

use aqmlab_aqm::{Backlog, Discipline, FifoQueue, LinkFacts, Outcome};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, Rate, Time};

const TOLERANCE: f64 = 1e-9;

/// A row of an example, by column name.
pub(crate) struct Row(HashMap<String, String>);

impl Row {
    pub(crate) fn text(&self, column: &str) -> &str {
        &self.0[column]
    }

    pub(crate) fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap()
    }

    pub(crate) fn time(&self) -> Time {
        Time::from_secs_f64(self.number("time_s"))
    }

    pub(crate) fn step(&self) -> &str {
        self.text("step")
    }

    pub(crate) fn event(&self) -> &str {
        self.text("event")
    }

    /// The packet of the row. Flows are named by a word, whose first letters are the key.
    pub(crate) fn packet(&self) -> Packet {
        Packet {
            size: self.text("size_bytes").parse().unwrap(),
            ecn: match self.text("ect") {
                "true" => Ecn::Ect0,
                _ => Ecn::NotEct,
            },
            dscp: 0,
            flow: flow(self.text("flow")),
        }
    }

    /// What waits before the event.
    pub(crate) fn queue(&self) -> Backlog {
        Backlog {
            packets: self.number("queue_packets_before") as u32,
            bytes: self.number("queue_bytes_before") as u64,
        }
    }

    /// The random numbers that the event draws, in order.
    pub(crate) fn draws(&self) -> VecDeque<f64> {
        let draws = self.text("random_draw").split(';');
        draws.filter_map(|draw| draw.parse().ok()).collect()
    }
}

/// The key of a flow that an example calls by name.
pub(crate) fn flow(name: &str) -> FlowKey {
    FlowKey(name.bytes().fold(0, |key, byte| key << 8 | u64::from(byte)))
}

pub(crate) fn rows(csv: &str) -> Vec<Row> {
    csv::Reader::from_reader(csv.as_bytes())
        .into_deserialize()
        .map(|row| Row(row.unwrap()))
        .collect()
}

pub(crate) fn assert_close(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() <= TOLERANCE * expected.abs().max(TOLERANCE),
        "{what}: found {found}, expected {expected}"
    );
}

/// A link without framing that carries this many packets of `mean` bytes per second.
pub(crate) fn link(packets_per_second: u64, mean: u64) -> LinkFacts {
    LinkFacts {
        rate: Rate::from_bps(packets_per_second * 8 * mean),
        framing: Bytes(0),
    }
}

/// The word that the examples use for a outcome.
pub(crate) fn decision(outcome: Outcome) -> String {
    match outcome {
        Outcome::Enqueue => "enqueue".to_owned(),
        Outcome::Mark(_) => "mark".to_owned(),
        Outcome::Drop(reason) => format!("drop_{}", reason.name().replace("non_", "non")),
    }
}

/// An AQM on its way through an example.
pub(crate) struct Played {
    pub(crate) fifo: FifoQueue,
    /// The packets that wait, and when they came.
    waiting: VecDeque<(Packet, Time)>,
}

impl Played {
    pub(crate) fn new(discipline: &Discipline, link: LinkFacts) -> Self {
        Self {
            fifo: FifoQueue::new(discipline, link, 1).expect("an AQM"),
            waiting: VecDeque::new(),
        }
    }

    /// Plays one row and compares the decision.
    pub(crate) fn step(&mut self, row: &Row) {
        let step = row.step();
        assert_eq!(self.fifo.backlog(), row.queue(), "row {step}");
        match row.event() {
            "arrive" => {
                let mut draws = row.draws();
                let mut draw = || draws.pop_front().expect("a draw that the example lacks");
                let mut packet = row.packet();
                let outcome = self.fifo.arrive(row.time(), &packet, &mut draw);
                assert!(draws.is_empty(), "row {step}: a draw was not made");
                assert_eq!(decision(outcome), row.text("decision"), "row {step}");
                if let Outcome::Mark(_) = outcome {
                    packet.ecn = Ecn::Ce;
                }
                if !matches!(outcome, Outcome::Drop(_)) {
                    self.waiting.push_back((packet, row.time()));
                }
            }
            "depart" => {
                let (packet, arrived) = self.waiting.pop_front().expect("a packet waits");
                self.fifo.depart(row.time(), &packet, arrived);
            }
            "idle" => self.fifo.idle(row.time()),
            timer if timer.starts_with("timer") => {
                assert_eq!(self.fifo.next_tick(), row.time(), "row {step}");
                self.fifo.tick();
            }
            event => panic!("row {step}: unknown event {event}"),
        }
    }

    /// The value of an inner variable.
    pub(crate) fn probe(&self, name: &str) -> f64 {
        let mut values = Vec::new();
        self.fifo.probe(&mut values);
        let index = self.fifo.probe_names().iter().position(|n| *n == name);
        values[index.unwrap_or_else(|| panic!("no inner variable is called {name}"))]
    }
}

/// Plays a whole example. `variables` are compared after every row, `per_arrival` after arrivals:
/// pairs of the AQM's inner variable and the example's column.
pub(crate) fn follow(
    csv: &str,
    discipline: &Discipline,
    link: LinkFacts,
    variables: &[(&str, &str)],
    per_arrival: &[(&str, &str)],
) {
    let mut played = Played::new(discipline, link);
    for row in rows(csv) {
        played.step(&row);
        let arrival = (row.event() == "arrive").then_some(per_arrival);
        for (name, column) in variables.iter().chain(arrival.unwrap_or_default()) {
            let what = format!("row {}, {name}", row.step());
            assert_close(played.probe(name), row.number(column), &what);
        }
    }
}
