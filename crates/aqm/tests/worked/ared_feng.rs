//! Adaptive RED after Feng et al.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::ared_feng::Params;
use aqmlab_aqm::red::{Gap, Unit};
use aqmlab_net::{Bytes, QueueSize};

use crate::worked::trace::{Played, assert_close, link, rows};

#[test]
fn ared_feng() {
    let params = Params {
        min_th: QueueSize::Packets(2.0),
        max_th: QueueSize::Packets(4.0),
        limit: QueueSize::Packets(100.0),
        w_q: 0.5,
        max_p: 0.12,
        alpha: 3.0,
        beta: 2.0,
        gap: Gap::Uniform,
        unit: Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(500),
        ecn: false,
    };
    let mut played = Played::new(&Discipline::AredFeng(params), link(1000, 500));
    for row in rows(include_str!("../data/ared_feng.csv")) {
        played.step(&row);
        let step = row.step();
        for name in ["avg", "max_p", "count"] {
            assert_close(played.probe(name), row.number(name), step);
        }
        if row.event() == "arrive" {
            assert_close(played.probe("p_b"), row.number("p_b"), step);
            assert_close(played.probe("p_a"), row.number("p_a"), step);
        }
        let status = match row.text("status") {
            "below" => -1.0,
            "between" => 0.0,
            "above" => 1.0,
            word => panic!("row {step}: unknown status {word}"),
        };
        assert_eq!(played.probe("status"), status, "row {step}");
    }
}
