//! Adaptive RED, its byte mode and its wider marking region.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::ared::{GentleSlope, MarkRegion, Params};
use aqmlab_aqm::red::{Gap, Unit};
use aqmlab_net::{Bytes, QueueSize, Time};

use crate::worked::trace::{follow, link};

fn packets(number: f64) -> QueueSize {
    QueueSize::Packets(number)
}

fn example() -> Params {
    Params {
        min_th: Some(packets(2.0)),
        max_th: Some(packets(6.0)),
        target_delay: Time::from_millis(5),
        limit: packets(100.0),
        w_q: Some(0.5),
        max_p: 0.1,
        max_p_bottom: 0.01,
        max_p_top: 0.5,
        interval: Time::from_millis(500),
        alpha: 0.01,
        beta: 0.9,
        gap: Gap::Uniform,
        unit: Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(500),
        ecn: true,
        mark_region: MarkRegion::BelowMaxTh,
        gentle_slope: GentleSlope::PresentMaxP,
    }
}

fn follow_ared(csv: &str, params: Params, packets_per_second: u64) {
    let variables = [("avg", "avg"), ("max_p", "max_p"), ("count", "count")];
    let per_arrival = [("p_b", "p_b"), ("p_a", "p_a")];
    let link = link(packets_per_second, 500);
    let discipline = Discipline::Ared(params);
    assert_eq!(discipline.check(), Ok(()));
    follow(csv, &discipline, link, &variables, &per_arrival);
}

#[test]
fn ared() {
    follow_ared(include_str!("../data/ared_floyd.csv"), example(), 10);
}

#[test]
fn ared_byte() {
    let params = Params {
        max_th: Some(packets(12.0)),
        w_q: Some(0.25),
        unit: Unit::Bytes,
        scale_by_size: true,
        ecn: false,
        ..example()
    };
    follow_ared(include_str!("../data/ared_byte.csv"), params, 1000);
}

#[test]
fn ared_new_gentle() {
    let params = Params {
        min_th: Some(packets(1.0)),
        max_th: Some(packets(3.0)),
        mark_region: MarkRegion::BelowTwiceMaxTh,
        ..example()
    };
    follow_ared(include_str!("../data/ared_new_gentle.csv"), params, 1000);
}
