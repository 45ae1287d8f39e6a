//! A source at work on a network without limits: what it asks for when nothing is in its way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::Time;

use crate::script::{Action, Connect, Script, Step};
use crate::source::Source;
use crate::vector::Party;

/// Somebody who watches what a source does on an ideal network.
pub trait Watch {
    /// A connection opens, and will have played its script at `end`.
    fn connection(&mut self, at: Time, end: Time, connect: &Connect);
    /// A datagram of a flow is sent.
    fn datagram(&mut self, at: Time, token: u32, size: u32);
    /// A connection was refused: the source had as many as it may.
    fn refused(&mut self, at: Time);
}

/// Lets a source work until `end` on a network that loses nothing and where bytes take no time but
/// the round trip: one to connect, one for each exchange.
pub fn play(source: &mut Source, end: Time, watch: &mut impl Watch) {
    let (mut agenda, mut actions, mut order) = (BinaryHeap::new(), Vec::new(), 0_u64);
    let mut now = Time::ZERO;
    source.start(&mut actions);
    loop {
        for action in actions.drain(..) {
            let (at, event) = match action {
                Action::WakeAt { at, token } => (at, Event::Wake(token)),
                Action::Connect(connect) => {
                    let over = now.saturating_add(duration(&connect.script, connect.rtt));
                    watch.connection(now, over, &connect);
                    (over, Event::Finished(connect.token))
                }
                Action::Datagram { token, size } => {
                    watch.datagram(now, token, size);
                    continue;
                }
                Action::Refused => {
                    watch.refused(now);
                    continue;
                }
                Action::OpenDatagrams(_) | Action::EndConnections => continue,
            };
            agenda.push(Reverse((at, order, event)));
            order += 1;
        }
        let Some(Reverse((at, _, event))) = agenda.pop() else {
            return;
        };
        if at >= end {
            return;
        }
        now = at;
        match event {
            Event::Wake(token) => source.on_wake(now, token, &mut actions),
            Event::Finished(token) => source.on_finished(now, token, &mut actions),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(u32),
    Finished(u32),
}

/// How long a script takes where only the round trip takes time: until the initiator is done.
fn duration(script: &Script, rtt: Time) -> Time {
    let way = Time::from_nanos(rtt.as_nanos() / 2);
    let mut ends = [rtt, way].map(End::at);
    // An end goes on until it has to wait for something that the other has not yet sent. When
    // both do, nothing more will happen.
    loop {
        let mut moved = false;
        for party in Party::BOTH {
            while let Some(step) = script.step(party, ends[party as usize].step) {
                if !advance(&mut ends, party, step, way) {
                    break;
                }
                moved = true;
            }
        }
        if !moved {
            return ends[Party::Initiator as usize].now;
        }
    }
}

/// How far an end of a script has come.
#[derive(Debug)]
struct End {
    step: u32,
    now: Time,
    /// Bytes that it has waited for.
    expected: u64,
    /// When how many bytes in all have arrived from the other end; and its close.
    arrivals: Vec<(Time, u64)>,
    closed: Option<Time>,
}

impl End {
    const fn at(now: Time) -> Self {
        Self {
            step: 0,
            now,
            expected: 0,
            arrivals: Vec::new(),
            closed: None,
        }
    }
}

/// Takes one step of an end, if it need not wait for the other.
fn advance(ends: &mut [End; 2], party: Party, step: Step, way: Time) -> bool {
    let now = ends[party as usize].now;
    let arrives = now.saturating_add(way);
    let (end, other) = match (party, ends) {
        (Party::Initiator, [end, other]) | (Party::Acceptor, [other, end]) => (end, other),
    };
    let until = match step {
        Step::Send(bytes) => {
            let before = other.arrivals.last().map_or(0, |arrival| arrival.1);
            other.arrivals.push((arrives, before.saturating_add(bytes)));
            Some(now)
        }
        Step::Close => {
            other.closed = Some(arrives);
            Some(now)
        }
        Step::Receive(bytes) => {
            let wanted = end.expected.saturating_add(bytes);
            let arrived = end.arrivals.partition_point(|arrival| arrival.1 < wanted);
            let until = end.arrivals.get(arrived).map(|arrival| arrival.0);
            if until.is_some() {
                end.expected = wanted;
            }
            until
        }
        Step::ReceiveClose => end.closed,
        Step::Pause(pause) => Some(now.saturating_add(pause)),
        Step::Ask | Step::Answered => Some(now),
    };
    let Some(until) = until else {
        return false;
    };
    end.now = now.max(until);
    end.step += 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Exchange;

    #[test]
    fn a_script_takes_its_round_trips_and_its_pauses() {
        let ms = Time::from_millis;
        let rtt = ms(100);
        assert_eq!(duration(&Script::single(1, 1_000_000), rtt), ms(200));
        let exchange = Exchange {
            request: 10,
            think: ms(7),
            response: 20,
            pause: ms(1000),
        };
        for (closer, expected) in [
            // The last pause passes only before the client's close.
            (Party::Acceptor, 100 + 3 * 107 + 2 * 1000),
            (Party::Initiator, 100 + 3 * 107 + 3 * 1000),
        ] {
            let script = Script::new(vec![exchange; 3], closer);
            assert_eq!(duration(&script, rtt), ms(expected), "{closer:?}");
        }
        // Both sides at once, and one that waits for what never comes.
        let both = [
            vec![
                Step::Send(5),
                Step::Pause(ms(500)),
                Step::ReceiveClose,
                Step::Close,
            ],
            vec![Step::Receive(5), Step::Pause(ms(800)), Step::Close],
        ];
        assert_eq!(
            duration(&Script::Programs(Box::new(both)), rtt),
            ms(150 + 800 + 50)
        );
        let stuck = [
            vec![Step::Receive(9), Step::Close],
            vec![Step::Send(5), Step::Close],
        ];
        assert_eq!(duration(&Script::Programs(Box::new(stuck)), rtt), ms(100));
    }
}
