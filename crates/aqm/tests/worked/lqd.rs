//! LQD.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::lqd::Params;
use aqmlab_aqm::red::Unit;
use aqmlab_net::{Bytes, QueueSize, Time};

use crate::worked::trace::{follow, link};

#[test]
fn lqd() {
    let params = Params {
        q_ref: QueueSize::Packets(2.0),
        p_ref: 0.0,
        limit: QueueSize::Packets(100.0),
        a: 0.05,
        b: 0.5,
        interval: Time::from_millis(10),
        loss_interval: None,
        count_marks: false,
        unit: Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(500),
        ecn: true,
    };
    let variables = ["p", "loss_rate", "arrivals", "losses"].map(|name| (name, name));
    follow(
        include_str!("../data/lqd.csv"),
        &Discipline::Lqd(params),
        link(1000, 500),
        &variables,
        &[],
    );
}
