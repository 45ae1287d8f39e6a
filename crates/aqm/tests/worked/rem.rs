//! REM.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::red::Unit;
use aqmlab_aqm::rem::Params;
use aqmlab_net::{Bytes, QueueSize, Time};

use crate::worked::trace::{follow, link};

#[test]
fn rem() {
    let params = Params {
        q_ref: QueueSize::Packets(2.0),
        limit: QueueSize::Packets(100.0),
        gamma: 0.1,
        alpha: 0.1,
        phi: 2.0,
        interval: Time::from_millis(10),
        unit: Unit::Bytes,
        scale_by_size: true,
        mean_packet: Bytes(500),
        ecn: true,
    };
    // 3 packets per tick.
    follow(
        include_str!("../data/rem.csv"),
        &Discipline::Rem(params),
        link(300, 500),
        &[("price", "price"), ("x", "x_packets"), ("p", "p")],
        &[("p_packet", "p_packet")],
    );
}
