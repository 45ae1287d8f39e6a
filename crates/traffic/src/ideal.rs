//! A source at work on a network without limits: what it asks for when nothing is in its way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::Time;

use crate::script::{Action, Connect, Exchange, Script};
use crate::source::Source;

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

/// How long a script takes where only the round trip takes time.
fn duration(script: &Script, rtt: Time) -> Time {
    let exchanges = std::iter::once(&script.first).chain(&script.rest);
    let took = |exchange: &Exchange| rtt.saturating_add(exchange.pause);
    exchanges.fold(rtt, |sum, exchange| sum.saturating_add(took(exchange)))
}
