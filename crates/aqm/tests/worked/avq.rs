//! AVQ.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::avq::Params;
use aqmlab_net::{Bytes, QueueSize};

use crate::trace::{follow, link};

#[test]
fn avq() {
    let params = Params {
        virtual_buffer: QueueSize::Bytes(3000),
        limit: QueueSize::Packets(100.0),
        gamma: 0.98,
        alpha: 0.15,
        count_signalled: true,
        mean_packet: Bytes(500),
        ecn: true,
    };
    // 1 250 000 bytes per second.
    follow(
        include_str!("../data/avq.csv"),
        &Discipline::Avq(params),
        link(2500, 500),
        &[
            ("virtual_queue", "virtual_queue_bytes"),
            ("virtual_capacity", "virtual_capacity_bytes_per_s"),
        ],
        &[],
    );
}
