//! RED and gentle RED.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::red::{Gap, Params, Unit};
use aqmlab_net::{Bytes, QueueSize};

use crate::worked::trace::{Played, assert_close, follow, link, rows};

fn follow_red(csv: &str, params: Params) {
    let variables = [("avg", "avg"), ("count", "count")];
    let per_arrival = [("p_b", "p_b"), ("p_a", "p_a")];
    let link = link(1000, params.mean_packet.0);
    follow(
        csv,
        &Discipline::Red(params),
        link,
        &variables,
        &per_arrival,
    );
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
    follow_red(include_str!("../data/red.csv"), example());
}

#[test]
fn red_measured_in_bytes_decides_the_same_when_all_packets_have_the_mean_size() {
    let bytes = Params {
        unit: Unit::Bytes,
        scale_by_size: true,
        ..example()
    };
    let mut played = Played::new(&Discipline::Red(bytes), link(1000, 500));
    for row in rows(include_str!("../data/red.csv")) {
        played.step(&row);
        assert_close(played.probe("avg"), 500.0 * row.number("avg"), row.step());
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
    follow_red(include_str!("../data/red_gentle.csv"), params);
}

#[test]
fn red_gap_modes() {
    for row in rows(include_str!("../data/red_gap_modes.csv")) {
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
