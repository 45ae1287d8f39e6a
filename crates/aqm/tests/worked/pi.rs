//! PI.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::pi::Params;
use aqmlab_aqm::red::Unit;
use aqmlab_net::{Bytes, QueueSize, Time};

use crate::worked::trace::{follow, link};

#[test]
fn pi() {
    let params = Params {
        q_ref: QueueSize::Packets(2.0),
        limit: QueueSize::Packets(100.0),
        a: Some(0.12),
        b: Some(0.1),
        design: None,
        interval: Time::from_millis(10),
        unit: Unit::Bytes,
        scale_by_size: true,
        mean_packet: Bytes(500),
        ecn: true,
    };
    follow(
        include_str!("../data/pi.csv"),
        &Discipline::Pi(params),
        link(1000, 500),
        &[("p", "p"), ("q_old", "q_old_packets")],
        &[("p_packet", "p_packet")],
    );
}
