//! AVQ.

use aqmlab_aqm::avq::Params;
use aqmlab_aqm::red::Unit;
use aqmlab_aqm::{Discipline, FifoQueue, Outcome, Reason};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, Time};

use crate::model::once::Judged;
use crate::worked::trace::{follow, link};

#[test]
fn avq() {
    let params = Params {
        virtual_buffer: QueueSize::Bytes(3000),
        limit: QueueSize::Packets(100.0),
        gamma: 0.98,
        alpha: 0.15,
        count_signalled: true,
        unit: Unit::Bytes,
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

#[test]
fn a_virtual_queue_of_whole_packets_weighs_them_alike() {
    let params = Params {
        virtual_buffer: QueueSize::Packets(2.0),
        limit: QueueSize::Packets(100.0),
        gamma: 0.98,
        alpha: 0.15,
        count_signalled: true,
        unit: Unit::Packets,
        mean_packet: Bytes(500),
        ecn: false,
    };
    // 1,000 packets of the mean size a second.
    let mut fifo = FifoQueue::new(&Discipline::Avq(params), link(1000, 500), 1).expect("an AQM");
    let mut arrive = |ms, size| {
        let packet = Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        };
        fifo.come(Time::from_millis(ms), &packet, &mut || {
            unreachable!("nothing is left to chance")
        })
    };
    let sizes = [40, 1500, 40];
    let outcomes = sizes.map(|size| arrive(0, size));
    let dropped = Outcome::Drop(Reason::EARLY);
    assert_eq!(outcomes, [Outcome::Enqueue, Outcome::Enqueue, dropped]);
    // A packet's time, and a little because the virtual capacity has fallen by 0.45 packets a second.
    assert_eq!(arrive(1, 1500), dropped);
    assert_eq!(arrive(2, 1500), Outcome::Enqueue);
}
