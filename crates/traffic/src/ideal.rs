//! A source at work on a network without limits: what it asks for when nothing is in its way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use aqmlab_net::{Role, Time};

use crate::player::{AppAction, Delivery, Player};
use crate::script::{Action, Connect, Script};
use crate::source::Source;

/// No limit to the bytes that are under way.
pub const UNLIMITED: u64 = u64::MAX;

/// Bytes that one end of a connection sends in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Which end.
    pub party: Role,
    /// How many.
    pub bytes: u64,
    /// When the first one leaves.
    pub from: Time,
    /// When the last one leaves.
    pub until: Time,
}

/// Somebody who watches what a source does on an ideal network.
pub trait Watch {
    /// A connection opens, and will have played its script at `end`; what its ends send until then.
    fn connection(&mut self, at: Time, end: Time, connect: &Connect, bursts: &[Burst]);
    /// A connection whose script is open plays one more exchange; what its ends send for it.
    fn exchange(&mut self, _connect: &Connect, _bursts: &[Burst]) {}
    /// A datagram of a flow is sent.
    fn datagram(&mut self, at: Time, token: u32, size: u32);
    /// A connection was refused: the source had as many as it may.
    fn refused(&mut self, at: Time);
}

/// Lets a source work until `end` on a network that loses nothing and where only the round trip
/// takes time: one to connect, one for each exchange, and one for each `window` of bytes.
pub fn play(source: &mut Source, end: Time, window: u64, watch: &mut impl Watch) {
    let (mut agenda, mut actions, mut order) = (BinaryHeap::new(), Vec::new(), 0_u64);
    let (mut bursts, mut open) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    source.start(&mut actions);
    loop {
        for action in actions.drain(..) {
            let (at, event) = match action {
                Action::WakeAt { at, token } => (at, Event::Wake(token)),
                Action::Connect(connect) => {
                    bursts.clear();
                    let over = talk(&connect.script, now, connect.rtt, window, &mut bursts);
                    watch.connection(now, over, &connect, &bursts);
                    let token = connect.token;
                    if matches!(connect.script, Script::Open(_)) {
                        open.retain(|other: &Connect| other.token != token);
                        open.push(connect);
                        (over, Event::Answered(token))
                    } else {
                        (over, Event::Finished(token))
                    }
                }
                Action::Ask { token, exchange } => {
                    let connect = open.iter().find(|connect| connect.token == token);
                    let Some(connect) = connect else {
                        continue;
                    };
                    // The connection is there already.
                    let opened = now.saturating_sub(connect.rtt);
                    bursts.clear();
                    let script = Script::Open(vec![exchange]);
                    let over = talk(&script, opened, connect.rtt, window, &mut bursts);
                    watch.exchange(connect, &bursts);
                    (over, Event::Answered(token))
                }
                Action::Datagram { token, size } => {
                    watch.datagram(now, token, size);
                    continue;
                }
                Action::Refused => {
                    watch.refused(now);
                    continue;
                }
                Action::OpenDatagrams(_)
                | Action::EndConnections
                | Action::EndConnection { .. } => continue,
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
            Event::Answered(token) => source.on_answered(now, token, &mut actions),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(u32),
    Finished(u32),
    Answered(u32),
}

/// Plays a script from `start` on: when the initiator is done, and what both ends have sent.
fn talk(script: &Script, start: Time, rtt: Time, window: u64, bursts: &mut Vec<Burst>) -> Time {
    let path = Path {
        way: Time::from_nanos(rtt.as_nanos() / 2),
        rtt,
        window,
    };
    let mut talk = Talk {
        player: Player::new(script.at_once().unwrap_or_else(|| script.clone()), start),
        ends: [rtt, path.way].map(|wait| End::opening(start.saturating_add(wait))),
        path,
        bursts,
    };
    // An end goes on until it has to wait for something that the other has not yet sent. When
    // both do, nothing more will happen.
    loop {
        let mut moved = false;
        for role in Role::BOTH {
            while talk.hear(role) {
                talk.act(role);
                moved = true;
            }
        }
        if !moved {
            return talk.ends[Role::Client as usize].now;
        }
    }
}

/// What lies between both ends.
struct Path {
    way: Time,
    rtt: Time,
    window: u64,
}

impl Path {
    /// How long it takes to send bytes.
    fn duration(&self, bytes: u64) -> Time {
        if self.window == UNLIMITED {
            return Time::ZERO;
        }
        let windows = bytes as f64 / self.window as f64;
        Time::from_secs_f64(self.rtt.as_secs_f64() * windows)
    }
}

/// An end of a connection.
#[derive(Debug)]
struct End {
    /// How far its program has come.
    now: Time,
    /// When the last byte of what it has written leaves.
    sent: Time,
    /// What will be delivered to it, in order of time.
    deliveries: VecDeque<(Time, Delivery)>,
}

impl End {
    /// It hears at that time that the connection is there.
    fn opening(at: Time) -> Self {
        let established = Delivery {
            established: true,
            ..Delivery::default()
        };
        Self {
            now: at,
            sent: Time::ZERO,
            deliveries: VecDeque::from([(at, established)]),
        }
    }
}

/// A connection on an ideal path.
struct Talk<'a> {
    player: Player<Script>,
    ends: [End; 2],
    path: Path,
    bursts: &'a mut Vec<Burst>,
}

impl Talk<'_> {
    /// Delivers to an end what it waits for. False if it does not come.
    fn hear(&mut self, role: Role) -> bool {
        let end = &mut self.ends[role as usize];
        while let Some((at, delivery)) = end.deliveries.pop_front() {
            if self.player.on_delivery(role, delivery) {
                end.now = end.now.max(at);
                return true;
            }
        }
        false
    }

    /// Lets an end act until it waits for a delivery.
    fn act(&mut self, role: Role) {
        loop {
            let now = self.ends[role as usize].now;
            match self.player.next(role, now) {
                AppAction::Wait | AppAction::End => return,
                AppAction::Pause(pause) => {
                    self.ends[role as usize].now = now.saturating_add(pause);
                }
                AppAction::Write { bytes, close } => self.write(role, bytes, close),
                AppAction::Withdraw => {}
                // All objects of a page share a stream here.
                AppAction::Fetch { .. } | AppAction::Answer { .. } => {}
                AppAction::Asked | AppAction::Loaded | AppAction::Answered(_) => {}
            }
        }
    }

    fn write(&mut self, role: Role, bytes: u64, closed: bool) {
        let end = &mut self.ends[role as usize];
        let from = end.now.max(end.sent);
        let until = from.saturating_add(self.path.duration(bytes));
        end.sent = until;
        if bytes > 0 {
            self.bursts.push(Burst {
                party: role,
                bytes,
                from,
                until,
            });
        }
        let delivery = Delivery {
            bytes,
            closed,
            ..Delivery::default()
        };
        let arrival = until.saturating_add(self.path.way);
        let other = &mut self.ends[role.other() as usize];
        other.deliveries.push_back((arrival, delivery));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Exchange, Step};

    #[test]
    fn a_script_takes_its_round_trips_and_its_pauses() {
        let ms = Time::from_millis;
        let rtt = ms(100);
        let duration =
            |script: &Script, rtt| talk(script, Time::ZERO, rtt, UNLIMITED, &mut Vec::new());
        assert_eq!(duration(&Script::single(1, 1_000_000), rtt), ms(200));
        let exchange = Exchange {
            request: 10,
            think: ms(7),
            response: 20,
            pause: ms(1000),
        };
        for (closer, expected) in [
            // The last pause passes only before the client's close.
            (Role::Server, 100 + 3 * 107 + 2 * 1000),
            (Role::Client, 100 + 3 * 107 + 3 * 1000),
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

    #[test]
    fn a_window_of_bytes_takes_a_round_trip() {
        let ms = Time::from_millis;
        let mut bursts = Vec::new();
        let script = Script::single(1_000, 25_000);
        let end = talk(&script, ms(50), ms(100), 10_000, &mut bursts);
        // Connect, a tenth of a window, half a round trip each way, two windows and a half.
        assert_eq!(end, ms(50 + 100 + 10 + 50 + 250 + 50));
        let sizes = bursts
            .iter()
            .map(|it| (it.party, it.bytes, it.from, it.until));
        assert_eq!(
            sizes.collect::<Vec<_>>(),
            [
                (Role::Client, 1_000, ms(150), ms(160)),
                (Role::Server, 25_000, ms(210), ms(460)),
            ]
        );
        // What is written while something is on its way waits for it; so does the close.
        let twice = [
            vec![Step::Send(10_000), Step::Send(10_000), Step::Close],
            vec![Step::ReceiveClose, Step::Close],
        ];
        bursts.clear();
        let script = Script::Programs(Box::new(twice));
        talk(&script, Time::ZERO, ms(100), 10_000, &mut bursts);
        assert_eq!((bursts[1].from, bursts[1].until), (ms(200), ms(300)));
    }
}
