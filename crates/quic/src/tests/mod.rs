//! Two ends and a wire between them: every rule of the conformance table that is not one of a part.

mod acks;
mod congestion;
mod flow;
mod handshake;
mod hostile;
mod recovery;

use std::collections::BTreeMap;
use std::sync::Arc;

use aqmlab_net::{Bytes, Ecn, Role, Time};
use aqmlab_tcp::{CongestionControlKind, Law, SlowStartExit};

use crate::config::Config;
use crate::connection::Connection;
use crate::streams::{Event, Limits};
use crate::wire::{AckFrame, Frame, Kind, Next, PREFIX, Reader, Writer};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// One way of the path.
pub(super) const WAY: Time = Time::from_millis(20);

/// A packet on the wire.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) kind: Kind,
    /// As it is on the wire: numbers are small here.
    pub(super) number: u64,
    pub(super) frames: Vec<Frame>,
    pub(super) ack: Option<AckFrame>,
}

impl Packet {
    pub(super) fn data(&self) -> u64 {
        let frames = self.frames.iter();
        frames
            .map(|frame| match frame {
                Frame::Stream { len, .. } => *len,
                _ => 0,
            })
            .sum()
    }

    pub(super) fn has(&self, wanted: &Frame) -> bool {
        self.frames.contains(wanted)
    }
}

/// A datagram that was sent.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: Time,
    pub(super) from: usize,
    pub(super) size: usize,
    pub(super) ecn: Ecn,
    pub(super) packets: Vec<Packet>,
    /// Window and bytes in flight of the sender behind it.
    pub(super) window: u64,
    pub(super) in_flight: u64,
}

impl Seen {
    pub(super) fn kinds(&self) -> Vec<Kind> {
        self.packets.iter().map(|packet| packet.kind).collect()
    }

    pub(super) fn data(&self) -> u64 {
        self.packets.iter().map(Packet::data).sum()
    }

    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.packets.iter().flat_map(|packet| &packet.frames)
    }

    pub(super) fn ack(&self) -> Option<&AckFrame> {
        self.packets.iter().find_map(|packet| packet.ack.as_ref())
    }
}

/// What the wire does to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Pass,
    Drop,
    /// It takes so much longer.
    Late(Time),
    /// Its ECN field is this one.
    Write(Ecn),
    /// It comes twice.
    Twice,
}

type Rule = Box<dyn FnMut(&Seen) -> Wire>;

/// What reaches an end: a datagram with its mark, or nothing, when a timer is due.
type Due = Option<(Ecn, Vec<u8>)>;

/// Two ends and a wire.
pub(super) struct Pair {
    pub(super) ends: [Connection; 2],
    pub(super) now: Time,
    pub(super) seen: Vec<Seen>,
    pub(super) events: [Vec<(Time, Event)>; 2],
    /// Whether the ends read at once what comes.
    pub(super) reads: [bool; 2],
    pub(super) read: [u64; 2],
    pub(super) way: Time,
    rule: Rule,
    due: BTreeMap<(Time, u64), (usize, Due)>,
    pushed: u64,
}

pub(super) fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

pub(super) fn config() -> Config {
    let reno = CongestionControlKind::all().remove(0);
    Config {
        stack: Law::stack(reno, SlowStartExit::Control, Bytes(1200)),
        datagram: 1200,
        initial_window: 12_000,
        ecn: false,
        burst: 10,
        in_bursts: false,
        connection_ids: 0,
        server_flight: 560,
        limits: Limits {
            data: 1 << 24,
            stream: 1 << 22,
            streams: [100, 100],
        },
        max_ack_delay: ms(25),
        idle_timeout: ms(30_000),
        early: None,
    }
}

/// What a carried datagram has.
pub(super) fn parse(carried: &[u8]) -> Vec<Packet> {
    let mut reader = Reader(&carried[PREFIX..]);
    let mut packets = Vec::new();
    while let Some((kind, number, _)) = reader.packet() {
        let mut packet = Packet {
            kind,
            number,
            frames: Vec::new(),
            ack: None,
        };
        let mut ack = AckFrame::default();
        while let Some(next) = reader.frame(&mut ack) {
            match next {
                Next::Ack => packet.ack = Some(ack.clone()),
                Next::Frame(frame) => packet.frames.push(frame),
                Next::Malformed => panic!("an end sends what cannot be read"),
            }
        }
        packets.push(packet);
    }
    packets
}

/// A carried 1-RTT datagram with these frames.
pub(super) fn datagram(number: u64, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = vec![0; PREFIX];
    let mut writer = Writer {
        out: &mut out,
        wire: 0,
    };
    writer.header(Kind::OneRtt, number, 2);
    write(&mut writer);
    let size = (writer.wire as u16).to_be_bytes();
    out[..PREFIX].copy_from_slice(&size);
    out
}

impl Pair {
    pub(super) fn new(config: Config) -> Self {
        Self::with(config, |_| Wire::Pass)
    }

    pub(super) fn with(config: Config, rule: impl FnMut(&Seen) -> Wire + 'static) -> Self {
        let config = Arc::new(config);
        let end = |role| Connection::new(Arc::clone(&config), role, Time::ZERO);
        Self {
            ends: Role::BOTH.map(end),
            now: Time::ZERO,
            seen: Vec::new(),
            events: [Vec::new(), Vec::new()],
            reads: [true; 2],
            read: [0; 2],
            way: WAY,
            rule: Box::new(rule),
            due: BTreeMap::new(),
            pushed: 0,
        }
    }

    /// A pair whose handshake is over, and nothing is under way.
    pub(super) fn connected(config: Config) -> Self {
        let mut pair = Self::new(config);
        pair.run(ms(300));
        assert!(pair.has(CLIENT, Event::Established) && pair.has(SERVER, Event::Established));
        pair.seen.clear();
        pair
    }

    pub(super) fn set_rule(&mut self, rule: impl FnMut(&Seen) -> Wire + 'static) {
        self.rule = Box::new(rule);
    }

    fn push(&mut self, at: Time, end: usize, what: Due) {
        self.pushed += 1;
        self.due.insert((at, self.pushed), (end, what));
    }

    /// Runs until that time.
    pub(super) fn run(&mut self, until: Time) {
        if self.seen.is_empty() && self.now == Time::ZERO {
            self.settle(CLIENT);
            self.settle(SERVER);
        }
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), (end, what)) = entry.remove_entry();
            self.now = at;
            match what {
                Some((ecn, carried)) => self.ends[end].receive(at, ecn, &carried),
                None if self.ends[end].deadline() <= at => self.ends[end].expire(at),
                None => continue,
            }
            self.settle(end);
        }
        self.now = until;
    }

    /// Something arrives that nobody has sent.
    pub(super) fn inject(&mut self, end: usize, carried: &[u8]) {
        self.ends[end].receive(self.now, Ecn::NotEct, carried);
        self.settle(end);
    }

    /// An end was given something: it sends what it has, and its timer is set.
    pub(super) fn settle(&mut self, end: usize) {
        while let Some(event) = self.ends[end].next_event() {
            if let Event::Readable(stream) = event
                && self.reads[end]
            {
                self.read[end] += self.ends[end].read(stream, u64::MAX);
            }
            self.events[end].push((self.now, event));
        }
        let mut carried = Vec::new();
        while let Some(sent) = self.ends[end].transmit(self.now, &mut carried) {
            let wire = usize::from(u16::from_be_bytes([carried[0], carried[1]]));
            assert_eq!(wire, sent.size);
            let seen = Seen {
                at: self.now,
                from: end,
                size: sent.size,
                ecn: sent.ecn,
                packets: parse(&carried),
                window: self.ends[end].window().0,
                in_flight: self.ends[end].in_flight(),
            };
            assert!(!seen.packets.is_empty());
            let fate = (self.rule)(&seen);
            let (way, ecn, copies) = match fate {
                Wire::Pass => (self.way, sent.ecn, 1),
                Wire::Drop => (self.way, sent.ecn, 0),
                Wire::Late(more) => (self.way + more, sent.ecn, 1),
                Wire::Write(ecn) => (self.way, ecn, 1),
                Wire::Twice => (self.way, sent.ecn, 2),
            };
            self.seen.push(seen);
            for _ in 0..copies {
                self.push(self.now + way, 1 - end, Some((ecn, carried.clone())));
            }
            carried.clear();
        }
        let deadline = self.ends[end].deadline();
        if deadline < Time::NEVER {
            self.push(deadline.max(self.now), end, None);
        }
    }

    /// An end opens a stream and writes so much, and no more.
    pub(super) fn send(&mut self, end: usize, bytes: u64) -> u64 {
        let stream = self.ends[end].open(true).expect("the peer lets it");
        self.write(end, stream, bytes, true);
        stream
    }

    pub(super) fn write(&mut self, end: usize, stream: u64, bytes: u64, close: bool) {
        self.ends[end].write(stream, bytes, close);
        self.settle(end);
    }

    pub(super) fn has(&self, end: usize, event: Event) -> bool {
        self.at(end, event).is_some()
    }

    /// When something happened first.
    pub(super) fn at(&self, end: usize, event: Event) -> Option<Time> {
        let mut events = self.events[end].iter();
        events.find(|(_, it)| *it == event).map(|(at, _)| *at)
    }

    /// What an end has sent.
    pub(super) fn of(&self, end: usize) -> Vec<&Seen> {
        self.seen.iter().filter(|it| it.from == end).collect()
    }
}

/// A small number that is the same for the same input: which packets a wire loses.
pub(super) fn hash(value: u64) -> u64 {
    let mixed = (value + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

#[test]
fn whatever_the_wire_does_every_byte_arrives_once() {
    for seed in 0..40 {
        let mut count = seed * 1000;
        let mut pair = Pair::with(config(), move |_| {
            count += 1;
            match hash(count) % 20 {
                0 | 1 => Wire::Drop,
                2 => Wire::Late(ms(30)),
                3 => Wire::Twice,
                _ => Wire::Pass,
            }
        });
        pair.run(ms(5_000));
        let up = pair.send(CLIENT, 30_000);
        let down = pair.send(SERVER, 300_000);
        pair.run(ms(60_000));
        assert_eq!(pair.read, [300_000, 30_000], "seed {seed}");
        assert!(pair.has(CLIENT, Event::Finished(down)) && pair.has(SERVER, Event::Finished(up)));
        assert!(pair.has(SERVER, Event::Delivered(down)), "seed {seed}");
        for end in [CLIENT, SERVER] {
            assert_eq!(pair.ends[end].in_flight(), 0, "seed {seed}");
        }
    }
}
