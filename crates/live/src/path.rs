//! One way through the router, without the reading and writing: the hosts' own links, the delay of
//! each connection, the port, and the packets that wait for their moment to go out.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use aqmlab_net::{FlowKey, Packet, Rate, Time};
use aqmlab_scenario::{Dumbbell, Scenario};
use aqmlab_sim::LinkAccounts;

use crate::ip::{self, Headers};
use crate::port::{Beyond, Port};
use crate::routes::{Route, Routes, Side};

/// A packet inside the router.
#[derive(Debug)]
struct Frame {
    bytes: Box<[u8]>,
    route: Arc<Route>,
    /// The host that it goes to, on its side.
    receiver: usize,
    is_datagram: bool,
}

/// Something that is due at a time; among equal times in the order of insertion.
#[derive(Debug)]
struct Due<T> {
    at: Time,
    serial: u64,
    what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    /// The earliest is the greatest, for a heap that hands out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

/// Things by the time at which they are due.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Due<T>>,
    serial: u64,
}

impl<T> Agenda<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            serial: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Time, what: T) {
        self.serial += 1;
        let serial = self.serial;
        self.heap.push(Due { at, serial, what });
    }

    /// When the first of them is due.
    pub(crate) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |due| due.at)
    }

    /// The first of them, if it is due by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|due| (due.at, due.what))
    }
}

/// The hosts' own links.
#[derive(Clone, Copy, Debug)]
struct AccessLink {
    rate: Rate,
    framing: u64,
}

impl AccessLink {
    /// A packet wants to use a host's link, which is free from `free` on: when it has passed.
    fn pass(self, now: Time, free: &mut Time, size: u32) -> Time {
        let occupied = self.rate.transmission_time(u64::from(size) + self.framing);
        *free = now.max(*free) + occupied;
        *free
    }
}

/// What lies behind the port: the receivers' links, and the way out.
#[derive(Debug)]
struct Exit {
    access: Option<AccessLink>,
    /// When each receiver's link falls free.
    free: Vec<Time>,
    leaving: Agenda<Box<[u8]>>,
    /// The measured span, in which lost datagrams count.
    measured: (Time, Time),
}

impl Beyond<Frame> for Exit {
    fn arrives(&mut self, at: Time, packet: Packet, mut frame: Frame) {
        if packet.ecn == aqmlab_net::Ecn::Ce {
            ip::set_ce(&mut frame.bytes);
        }
        let out = match (self.access, self.free.get_mut(frame.receiver)) {
            (Some(link), Some(free)) => link.pass(at, free, packet.size),
            _ => at,
        };
        self.leaving.push(out, frame.bytes);
    }

    fn lost(&mut self, at: Time, frame: Frame) {
        let (start, end) = self.measured;
        if frame.is_datagram && start <= at && at < end {
            frame.route.note_lost();
        }
    }
}

/// One way through the router.
#[derive(Debug)]
pub(crate) struct Path {
    routes: Arc<Routes>,
    from: Side,
    access: Option<AccessLink>,
    /// When each sender's link falls free.
    free: Vec<Time>,
    delayed: Agenda<(Packet, Frame)>,
    port: Port<Frame>,
    exit: Exit,
    /// Packets of no connection, which are thrown away.
    strays: u64,
}

impl Path {
    /// The way of the packets that the hosts of one side send.
    pub(crate) fn new(
        scenario: &Scenario,
        dumbbell: &Dumbbell,
        from: Side,
        routes: Arc<Routes>,
    ) -> Self {
        let hosts = &dumbbell.hosts;
        let access = hosts.rate.map(|rate| AccessLink {
            rate,
            framing: u64::from(hosts.framing.0),
        });
        let [servers, clients] =
            [hosts.servers, hosts.clients].map(|count| vec![Time::ZERO; count as usize]);
        let (link, senders, receivers) = match from {
            Side::Servers => (&dumbbell.bottleneck.forward, servers, clients),
            Side::Clients => (&dumbbell.bottleneck.reverse, clients, servers),
        };
        let start = scenario.measure.warm_up;
        Self {
            routes,
            from,
            access,
            free: senders,
            delayed: Agenda::new(),
            port: Port::new(scenario, link, from as usize),
            exit: Exit {
                access,
                free: receivers,
                leaving: Agenda::new(),
                measured: (start, start + scenario.measure.duration),
            },
            strays: 0,
        }
    }

    pub(crate) const fn accounts(&self) -> &LinkAccounts {
        self.port.accounts()
    }

    pub(crate) const fn strays(&self) -> u64 {
        self.strays
    }

    /// A host has sent a packet.
    pub(crate) fn enter(&mut self, now: Time, bytes: &[u8]) {
        let found = Headers::read(bytes).and_then(|headers| {
            let (route, sender) = self.routes.find(headers.source, headers.destination)?;
            Some((headers, route, sender))
        });
        let Some((headers, route, sender)) = found else {
            self.strays += 1;
            return;
        };
        if let Some(segment) = &headers.segment {
            route.note_sent(sender, segment);
        }
        let packet = Packet {
            size: bytes.len() as u32,
            ecn: headers.ecn,
            dscp: headers.dscp,
            flow: FlowKey(route.flow << 1 | sender as u64),
        };
        let host = self.from.host(*headers.source.ip());
        let leaves = match (self.access, self.free.get_mut(host)) {
            (Some(link), Some(free)) => link.pass(now, free, packet.size),
            _ => now,
        };
        let frame = Frame {
            bytes: bytes.into(),
            receiver: self.from.other().host(*headers.destination.ip()),
            is_datagram: headers.segment.is_none(),
            route,
        };
        let reaches = leaves + frame.route.access_delay;
        self.delayed.push(reaches, (packet, frame));
    }

    /// Does what had to be done by `now`, in its order: departures before arrivals.
    pub(crate) fn advance(&mut self, now: Time) {
        loop {
            let departure = self.port.next_departure();
            if departure <= now.min(self.delayed.next()) {
                self.port.depart(departure, &mut self.exit);
            } else if let Some((at, (packet, frame))) = self.delayed.pop(now) {
                self.port.arrive(at, packet, frame, &mut self.exit);
            } else {
                break;
            }
        }
        self.port.observe_before(now);
    }

    /// When [`advance`](Self::advance) or [`pop`](Self::pop) has something to do next.
    pub(crate) fn next(&self) -> Time {
        let inside = self.port.next_departure().min(self.delayed.next());
        inside.min(self.exit.leaving.next())
    }

    /// A packet that should be out by `now`, and since when.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Box<[u8]>)> {
        self.exit.leaving.pop(now)
    }

    /// The run is over at `end`.
    pub(crate) fn close(mut self, end: Time) -> LinkAccounts {
        self.advance(end);
        self.port.close(end)
    }
}
