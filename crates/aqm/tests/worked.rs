//! RED follows worked examples row by row; what they are: `tests/data/README.md`.

use std::collections::HashMap;

use aqmlab_aqm::red::{Gap, Params, Unit};
use aqmlab_aqm::{Backlog, Discipline, Fate, Gate, LinkFacts, Reason};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, Rate, Time};

const TOLERANCE: f64 = 1e-9;

/// A row of an example, by column name.
struct Row(HashMap<String, String>);

impl Row {
    fn text(&self, column: &str) -> &str {
        &self.0[column]
    }

    fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap()
    }

    fn time(&self) -> Time {
        Time::from_secs_f64(self.number("time_s"))
    }

    fn size(&self) -> u32 {
        self.text("size_bytes").parse().unwrap()
    }

    fn step(&self) -> &str {
        self.text("step")
    }
}

fn rows(csv: &str) -> Vec<Row> {
    csv::Reader::from_reader(csv.as_bytes())
        .into_deserialize()
        .map(|row| Row(row.unwrap()))
        .collect()
}

fn assert_close(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() <= TOLERANCE * expected.abs().max(TOLERANCE),
        "{what}: found {found}, expected {expected}"
    );
}

/// Plays the rows through a gate and compares everything after each.
fn follow(csv: &str, params: Params) {
    let mean_bits = 8 * params.mean_packet.0;
    let link = LinkFacts {
        rate: Rate::from_bps(1000 * mean_bits),
    };
    let mut gate = Gate::new(&Discipline::Red(params), link);
    for row in rows(csv) {
        let step = row.step();
        let expected = Backlog {
            packets: row.number("queue_packets_before") as u32,
            bytes: row.number("queue_bytes_before") as u64,
        };
        assert_eq!(gate.backlog(), expected, "row {step}");
        match row.text("event") {
            "arrive" => arrive(&mut gate, &row),
            "depart" => gate.depart(row.size()),
            "idle" => gate.idle(row.time()),
            event => panic!("row {step}: unknown event {event}"),
        }
        let mut probed = Vec::new();
        gate.probe(&mut probed);
        for (name, found) in gate.probe_names().iter().zip(probed) {
            // The probe keeps p_b and p_a of the last arrival.
            if row.text("event") == "arrive" || !name.starts_with("p_") {
                assert_close(found, row.number(name), &format!("row {step}, {name}"));
            }
        }
    }
}

fn arrive(gate: &mut Gate, row: &Row) {
    let ecn = match row.text("ect") {
        "true" => Ecn::Ect0,
        _ => Ecn::NotEct,
    };
    let packet = Packet {
        size: row.size(),
        ecn,
        flow: FlowKey(1),
    };
    let mut given = row.text("random_draw").parse::<f64>().ok();
    let mut draw = || given.take().expect("a draw that the example does not make");
    let fate = gate.arrive(row.time(), &packet, &mut draw);
    assert!(given.is_none(), "row {}: no draw was made", row.step());
    let decision = match fate {
        Fate::Enqueue => "enqueue",
        Fate::EnqueueMarked => "mark",
        Fate::Drop(Reason::Early) => "drop_early",
        Fate::Drop(Reason::Forced) => "drop_forced",
        Fate::Drop(Reason::Overflow) => "drop_overflow",
    };
    assert_eq!(decision, row.text("decision"), "row {}", row.step());
}

fn packets(number: f64) -> QueueSize {
    QueueSize::Packets(number)
}

fn example() -> Params {
    Params {
        min_th: packets(2.0),
        max_th: packets(6.0),
        limit: packets(9.0),
        w_q: 0.25,
        max_p: 0.2,
        gentle: false,
        gap: Gap::Uniform,
        unit: Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(500),
        ecn: true,
    }
}

#[test]
fn red() {
    follow(include_str!("data/red.csv"), example());
}

#[test]
fn red_measured_in_bytes_decides_the_same_when_all_packets_have_the_mean_size() {
    let bytes = Params {
        unit: Unit::Bytes,
        scale_by_size: true,
        ..example()
    };
    let link = LinkFacts {
        rate: Rate::from_mbps(4),
    };
    let mut gate = Gate::new(&Discipline::Red(bytes), link);
    for row in rows(include_str!("data/red.csv")) {
        match row.text("event") {
            "arrive" => arrive(&mut gate, &row),
            "depart" => gate.depart(row.size()),
            _ => gate.idle(row.time()),
        }
        let mut probed = Vec::new();
        gate.probe(&mut probed);
        assert_close(probed[0], 500.0 * row.number("avg"), row.step());
    }
}

#[test]
fn red_gentle() {
    let params = Params {
        min_th: packets(1.0),
        max_th: packets(3.0),
        limit: packets(100.0),
        w_q: 0.5,
        max_p: 0.1,
        gentle: true,
        ..example()
    };
    follow(include_str!("data/red_gentle.csv"), params);
}

#[test]
fn red_gap_modes() {
    for row in rows(include_str!("data/red_gap_modes.csv")) {
        let (p_b, count) = (row.number("p_b"), row.number("count") as i64);
        for (gap, column) in [
            (Gap::Uniform, "p_a_1993"),
            (Gap::Wait, "p_a_ns2_wait"),
            (Gap::Altq, "p_a_altq"),
        ] {
            let what = format!("p_b {p_b}, count {count}, {column}");
            assert_close(
                gap.signal_probability(p_b, count),
                row.number(column),
                &what,
            );
        }
        assert_eq!(Gap::None.signal_probability(p_b, count), p_b);
    }
}
