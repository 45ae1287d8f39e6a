//! Step marking, worked by hand: K = 2 packets, room for 4.

use aqmlab_aqm::step::Params;
use aqmlab_aqm::{Discipline, FifoQueue, Outcome, Reason};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, Time};

use crate::model::once::Judged;
use crate::worked::trace::link;

#[test]
fn step() {
    let params = Params {
        threshold: QueueSize::Packets(2.0),
        limit: QueueSize::Packets(4.0),
        mean_packet: Bytes(1500),
        ecn: true,
    };
    let mut fifo = FifoQueue::new(&Discipline::Step(params), link(1000, 1500), 1).expect("an AQM");
    let mut arrive = |ecn| {
        let packet = Packet {
            size: 1500,
            ecn,
            dscp: 0,
            flow: FlowKey(1),
        };
        fifo.come(Time::ZERO, &packet, &mut || {
            unreachable!("nothing is left to chance")
        })
    };
    // The arrivals find 0, 1 and 2 packets: not more than K.
    for _ in 0..3 {
        assert_eq!(arrive(Ecn::Ect0), Outcome::Enqueue);
    }
    // 3 are more than K: a mark, or a drop without ECN. With 4 the buffer is full.
    assert_eq!(arrive(Ecn::NotEct), Outcome::Drop(Reason::EARLY));
    assert_eq!(arrive(Ecn::Ect0), Outcome::Mark(Reason::EARLY));
    assert_eq!(arrive(Ecn::Ect0), Outcome::Drop(Reason::OVERFLOW));
    assert_eq!(arrive(Ecn::NotEct), Outcome::Drop(Reason::EARLY));
}
