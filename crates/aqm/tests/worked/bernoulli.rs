//! Bernoulli signals, worked by hand: p = 0.25, room for 2.

use aqmlab_aqm::bernoulli::Params;
use aqmlab_aqm::{Discipline, FifoQueue, Outcome, Reason};
use aqmlab_net::{Ecn, FlowKey, Packet, QueueSize, Time};

use crate::model::once::Judged;
use crate::worked::trace::link;

fn discipline(p: f64) -> Discipline {
    let (limit, ecn) = (QueueSize::Packets(2.0), true);
    Discipline::Bernoulli(Params { p, limit, ecn })
}

#[test]
fn bernoulli() {
    let facts = link(1000, 1500);
    let mut fifo = FifoQueue::new(&discipline(0.25), facts, 1).expect("an AQM");
    let mut numbers = [0.25, 0.24, 0.1, 0.9].into_iter();
    let mut arrive = |fifo: &mut FifoQueue, ecn| {
        let packet = Packet {
            size: 1500,
            ecn,
            dscp: 0,
            flow: FlowKey(1),
        };
        fifo.come(Time::ZERO, &packet, &mut || numbers.next().expect("a draw"))
    };
    // A number below p is a signal: a drop, or a mark where the packet is capable.
    assert_eq!(arrive(&mut fifo, Ecn::NotEct), Outcome::Enqueue);
    assert_eq!(arrive(&mut fifo, Ecn::NotEct), Outcome::Drop(Reason::EARLY));
    assert_eq!(arrive(&mut fifo, Ecn::Ect0), Outcome::Mark(Reason::EARLY));
    assert_eq!(
        arrive(&mut fifo, Ecn::Ect0),
        Outcome::Drop(Reason::OVERFLOW)
    );
    // At 0 and 1 nothing is left to chance. What waits stays.
    fifo.set_parameters(&discipline(1.0), facts, 1);
    assert_eq!(arrive(&mut fifo, Ecn::NotEct), Outcome::Drop(Reason::EARLY));
    assert_eq!(fifo.backlog().packets, 2);
}
