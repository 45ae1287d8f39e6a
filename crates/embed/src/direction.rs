//! A direction of a link, and what has become of its packets.

use std::collections::VecDeque;

use aqmlab_aqm::{Details, Reason};
use aqmlab_link::{Dropped, Port, Transmission};
use aqmlab_net::{Packet, Time};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::{Scenario, Topology};

/// What stands before the caller's description of the link. Its one user stays away.
const AROUND: &str = r#"
measure = { warm_up = "0 s", duration = "1 s", queue_sample = "1 s" }
[[traffic]]
name = "caller"
kind = "bulk"
flows = 1
rtt = { kind = "constant", rtt = "10 s" }
[topology]
kind = "dumbbell"
[topology.bottleneck]
"#;

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is at the far end at this time, with this ECN field.
    Arrives(Time, u8),
    /// The queue has dropped it.
    Dropped(Time, Reason),
    /// The wire has lost it.
    Lost(Time),
}

/// A direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    port: Port<u64>,
    fates: VecDeque<(u64, Fate)>,
    dropped: Vec<Dropped<u64>>,
    now: Time,
}

impl Direction {
    /// The forward way of a link, or its reverse, that a TOML text describes
    /// as `topology.bottleneck` does.
    pub(crate) fn open(text: &str, is_reverse: bool, seed: u64) -> Result<Self, String> {
        let scenario = format!("{AROUND}{text}");
        let files = &mut |_: &str| Err(std::io::ErrorKind::Unsupported.into());
        let scenario = Scenario::parse(&scenario, &[], files).map_err(|error| error.to_string())?;
        let Topology::Dumbbell(dumbbell) = &scenario.topology else {
            return Err("topology.kind: expected a dumbbell".to_owned());
        };
        if let Some(watched) = scenario.watched().iter().flatten().next() {
            let phase = &watched.when.phase;
            return Err(format!(
                "when: found a change at the phase {phase}, but no congestion control is at the ends of \
                 this link; expected at with a time"
            ));
        }
        let names = LinkDirection::all(&scenario.topology.network());
        let ways = [&dumbbell.bottleneck.forward, &dumbbell.bottleneck.reverse];
        let way = usize::from(is_reverse);
        Ok(Self {
            port: Port::stored(&names[way], ways[way], seed, &scenario.measure),
            fates: VecDeque::new(),
            dropped: Vec::new(),
            now: Time::ZERO,
        })
    }

    /// Goes to a time: packets leave that are due by then.
    pub(crate) fn advance(&mut self, to: Time) {
        loop {
            let due = self.port.next_departure();
            if due > to {
                break;
            }
            self.now = self.now.max(due);
            let sent = self.port.depart(self.now, &mut self.dropped);
            self.settle(sent);
        }
        self.now = self.now.max(to);
    }

    /// A packet arrives at the present time.
    pub(crate) fn arrive(&mut self, packet: Packet, number: u64) {
        let sent = match self.port.arrive(self.now, packet, 0) {
            Transmission::Waits => self.port.take_in(
                self.now,
                (packet, 0),
                number,
                Details::default,
                &mut self.dropped,
            ),
            decided => Some((number, decided)),
        };
        self.settle(sent);
    }

    /// Keeps what has become of packets until it is asked for.
    fn settle(&mut self, sent: Option<(u64, Transmission)>) {
        let dropped = self.dropped.drain(..).map(|it| {
            let fate = it
                .reason
                .map_or(Fate::Lost(it.at), |reason| Fate::Dropped(it.at, reason));
            (it.item, fate)
        });
        self.fates.extend(dropped);
        if let Some((number, transmission)) = sent {
            let fate = match transmission {
                Transmission::Arrives(at, ecn) => Fate::Arrives(at, ecn as u8),
                Transmission::Dropped(reason) => Fate::Dropped(self.now, reason),
                Transmission::Lost(at) => Fate::Lost(at),
                Transmission::Waits => return,
            };
            self.fates.push_back((number, fate));
        }
    }

    /// The next packet of which it is known what has become of it.
    pub(crate) fn next_fate(&mut self) -> Option<(u64, Fate)> {
        self.fates.pop_front()
    }

    pub(crate) fn next_departure(&self) -> Time {
        self.port.next_departure()
    }

    /// Packets and bytes that wait, and how long it takes to send them all.
    pub(crate) fn waiting(&mut self) -> (u64, u64, Time) {
        let state = self.port.observe(self.now);
        (
            state.backlog.packets.into(),
            state.backlog.bytes,
            state.drain,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody at the ends of this link has phases.
    #[test]
    fn changes_that_wait_for_a_phase_are_refused() {
        let link = "rate = '10 Mbit/s'\ndiscipline = 'droptail-240'\n";
        let with = |key: &str| {
            let text = format!("{link}rate_changes = [{{ {key}, rate = '5 Mbit/s' }}]");
            Direction::open(&text, false, 1).err().unwrap_or_default()
        };
        assert_eq!(with("at = '1 s'"), "");
        let message = with("when = { flow = 1, phase = 'avoidance' }");
        assert!(message.starts_with("when: found a change at the phase avoidance"));
    }
}
