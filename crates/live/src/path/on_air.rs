//! Both ways through the router with Wi-Fi between the link and the clients: an access point, whose
//! stations the program and the users beside it are.
//!
//! Both ways share the air, so what happens in one moves the other. Each way has a thread of its
//! own; a lock lets one of them at a time do what is due. What it does is decided in the time at
//! which it should happen, as on one way alone.

use aqmlab_link::{Air, Dropped, PortState, Stations, Transmission, Way};
use aqmlab_net::{Ecn, Time};
use aqmlab_record::{LinkStats, StationsOnAir};
use aqmlab_scenario::{Scenario, Wifi};

use super::{Frame, Jitter, Path};
use crate::due::EventQueue;
use crate::ip;
use crate::ledger::Ledger;
use crate::routes::Side;

/// The client host that the program is.
const PROGRAM: usize = 0;

/// Both ways, and the air between them and the clients.
#[derive(Debug)]
pub(crate) struct OnAir {
    paths: [Path; 2],
    air: Air<Frame>,
    stations: Stations,
    /// What the air has delivered to the clients, and when it goes out.
    leaving: EventQueue<Frame>,
    /// Of packets to the clients, behind the air.
    jitter: Option<Jitter>,
    /// What the air has dropped; empty between calls.
    dropped: Vec<Dropped<Frame>>,
    /// Up to where everything is done.
    now: Time,
}

impl OnAir {
    /// The ways of the packets that servers send, and clients.
    pub(crate) fn new(scenario: &Scenario, wifi: &Wifi, mut paths: [Path; 2]) -> Self {
        let classes = scenario.traffic.iter().map(|it| it.name.as_str());
        let classes: Vec<&str> = classes.collect();
        Self {
            jitter: paths[Side::Servers as usize].exit.jitter.take(),
            paths,
            air: Air::new(wifi, scenario.seed, &scenario.measure),
            stations: Stations::new(wifi, &classes),
            leaving: EventQueue::new(),
            dropped: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// A host of a side has sent a packet.
    pub(crate) fn enter(&mut self, from: Side, now: Time, bytes: &[u8]) {
        // The other way may have gone ahead while this one waited for its turn.
        let now = now.max(self.now);
        self.paths[from as usize].enter(now, bytes);
    }

    /// When something happens next between entrance and exit of a way, or on the air.
    fn next_inside(&self, from: Side) -> Time {
        let path = &self.paths[from as usize];
        let mut next = path.port.next_departure().min(path.delayed.next());
        if from == Side::Servers {
            next = next.min(path.exit.leaving.next());
        }
        next.min(self.air.next_departure())
    }

    /// When a way has something to do next.
    pub(crate) fn next(&self, from: Side) -> Time {
        let out = match from {
            Side::Servers => self.leaving.next(),
            Side::Clients => self.paths[from as usize].exit.leaving.next(),
        };
        self.next_inside(from).min(out)
    }

    /// Does what had to be done by `now`, both ways, in its order: departures before arrivals.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(at) = self.step(now) {
            debug_assert!(at >= self.now, "nothing happens before what is done");
            self.now = at;
        }
        self.now = self.now.max(now);
        for path in &mut self.paths {
            path.port.catch_up(now);
        }
        self.air.catch_up(now);
    }

    /// Does what is due first, by `now`: when that was.
    fn step(&mut self, now: Time) -> Option<Time> {
        let at = Side::BOTH.map(|from| self.next_inside(from));
        let at = at[0].min(at[1]);
        if at > now {
            return None;
        }
        let [down, up] = &mut self.paths;
        if down.port.next_departure() == at {
            down.depart(at);
        } else if up.port.next_departure() == at {
            up.depart(at);
        } else if self.air.next_departure() == at {
            if let Some((frame, Transmission::Arrives(at, ecn))) =
                self.air.depart(at, &mut self.dropped)
            {
                self.come_through(at, frame, ecn);
            }
            self.count_drops();
        } else if let Some((at, (packet, frame))) = down.delayed.pop(at) {
            down.arrive(at, packet, frame);
        } else if let Some((at, frame)) = down.exit.leaving.pop(at) {
            self.go_through(at, frame);
        } else if let Some((at, (_, frame))) = up.delayed.pop(at) {
            self.go_through(at, frame);
        }
        Some(at)
    }

    /// A packet reaches the air.
    fn go_through(&mut self, at: Time, frame: Frame) {
        let way = way_of(frame.from);
        let station = self.station(&frame, way);
        let (details, class) = (ip::details(&frame.bytes), frame.class);
        self.air.take_in(
            at,
            (frame.packet(), class),
            frame,
            (station, way),
            || details.clone(),
            &mut self.dropped,
        );
        self.count_drops();
    }

    /// The station that a packet goes to, or comes from.
    fn station(&self, frame: &Frame, way: Way) -> usize {
        let [source, destination] = ip::hosts(&frame.bytes);
        let client = match way {
            Way::Down => destination,
            Way::Up => source,
        };
        let host = match Side::Clients.has(client) {
            true => Side::Clients.host(client),
            false => PROGRAM,
        };
        self.stations.of(usize::from(frame.class), host)
    }

    /// A packet has crossed the air.
    fn come_through(&mut self, at: Time, mut frame: Frame, ecn: Ecn) {
        if ecn == Ecn::Ce {
            ip::set_ce(&mut frame.bytes);
        }
        match frame.from {
            Side::Clients => self.paths[Side::Clients as usize].arrive(at, frame.packet(), frame),
            Side::Servers => {
                let out = match &mut self.jitter {
                    Some(jitter) => jitter.out(at),
                    None => at,
                };
                self.leaving.push(out, frame);
            }
        }
    }

    /// Datagrams that the air has dropped count as those of a link.
    fn count_drops(&mut self) {
        for Dropped { at, item, .. } in self.dropped.drain(..) {
            self.paths[0].exit.count_loss(at, &item);
        }
    }

    /// A packet that should be out by `now`, and since when.
    pub(crate) fn pop(&mut self, from: Side, now: Time) -> Option<(Time, Box<[u8]>)> {
        let path = &mut self.paths[from as usize];
        match from {
            Side::Clients => path.pop(now),
            Side::Servers => {
                let (due, frame) = self.leaving.pop(now)?;
                Some((due, path.deliver(due, frame)))
            }
        }
    }

    /// What a way is doing at `now`: its link, and its queues on the air. The rate is at most that at
    /// which the program's station sends.
    pub(crate) fn observe(&mut self, from: Side, now: Time) -> PortState {
        let way = way_of(from);
        let state = self.paths[from as usize].observe(now);
        let rate = self.air.rate(self.stations.of(0, PROGRAM));
        let (waiting, counters) = (self.air.backlog(way), self.air.counters(way));
        let mut both = state.counters.with(&counters);
        both.departed_bytes = match from {
            Side::Servers => counters.departed_bytes,
            Side::Clients => state.counters.departed_bytes,
        };
        PortState {
            backlog: state.backlog.with(waiting),
            counters: both,
            rate: state.rate.min(rate),
            drain: state.drain + rate.transmission_time(waiting.bytes),
            ..state
        }
    }

    /// What is known of a program's connections from one way, and how many packets of no connection
    /// were thrown away there.
    pub(crate) fn take_ledger(&mut self, from: Side) -> (Option<Ledger>, u64) {
        let path = &mut self.paths[from as usize];
        (path.take_ledger(), path.strays())
    }

    /// The run is over at `end`, which is not part of it. What was counted of the link's directions
    /// and of those of the air, and of the stations.
    pub(crate) fn close(mut self, end: Time) -> (Vec<LinkStats>, Vec<StationsOnAir>) {
        self.advance(end.saturating_sub(Time::from_nanos(1)));
        self.air.close(end);
        let (of_air, tallies) = self.air.into_stats();
        let links = self.paths.into_iter().flat_map(|path| path.end(end));
        (links.chain(of_air).collect(), self.stations.sums(&tallies))
    }
}

/// The way on the air of packets that a side sends.
const fn way_of(from: Side) -> Way {
    match from {
        Side::Servers => Way::Down,
        Side::Clients => Way::Up,
    }
}

#[cfg(test)]
mod tests;
