//! Two ends and a wire.
#![allow(dead_code, reason = "each test uses some of it")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Ecn, FNV_BASIS, Role, Time, fnv1a};
use aqmlab_stacks::{Burst, Class, End, HEADER, Progress};

/// Nanoseconds that a byte of the server takes: 10 Mbit/s.
pub(crate) const BYTE: u64 = 800;

/// What comes next: when, in which order, at which end, and the datagram, or a timer.
type Due = Reverse<(Time, u64, u8, Option<Vec<u8>>)>;

/// A client that asks for an answer, and what happened.
pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
    due: BinaryHeap<Due>,
    pushed: u64,
    /// When the server's wire falls free.
    free: Time,
    pub(crate) now: Time,
    answer: u64,
    asked: bool,
    /// Datagrams of the server that the wire loses, by number.
    lost: Box<dyn Fn(u64) -> bool>,
    way: Time,
    pub(crate) sent: [u64; 2],
    /// When the server's datagrams reach the client, or would.
    pub(crate) reach: Vec<Time>,
    /// Every datagram: when it left, from where, and its UDP payload.
    pub(crate) log: Vec<(Time, Role, usize)>,
    pub(crate) received: u64,
    pub(crate) connected: Option<Time>,
    pub(crate) first_byte: Option<Time>,
    pub(crate) finished: Option<Time>,
    /// The hash of everything that was sent.
    pub(crate) hash: u64,
    pub(crate) losses: u32,
    /// Bytes of answers that the client asks for on streams of their own, and their urgencies; when each
    /// arrived.
    pub(crate) answers: Vec<(u64, u8)>,
    pub(crate) arrived: Vec<Option<Time>>,
}

impl Pair {
    /// The ends of a connection over a path with so much delay each way.
    pub(crate) fn new(
        class: &Class,
        (seed, way): (u64, Time),
        answer: u64,
        lost: impl Fn(u64) -> bool + 'static,
    ) -> Self {
        Self {
            ends: class.connect((seed, 1), Time::ZERO),
            due: BinaryHeap::new(),
            pushed: 0,
            free: Time::ZERO,
            now: Time::ZERO,
            answer,
            asked: false,
            lost: Box::new(lost),
            way,
            sent: [0; 2],
            reach: Vec::new(),
            log: Vec::new(),
            received: 0,
            connected: None,
            first_byte: None,
            finished: None,
            hash: FNV_BASIS,
            losses: 0,
            answers: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// The client asks for these answers instead, each on a stream of its own.
    pub(crate) fn with_answers(mut self, answers: &[(u64, u8)]) -> Self {
        self.answers = answers.to_vec();
        self.arrived = vec![None; answers.len()];
        for end in &mut self.ends {
            end.split(Time::ZERO);
        }
        self
    }

    /// Until nothing is left to happen.
    pub(crate) fn run(mut self) -> Self {
        self.settle(Role::Client);
        while let Some(Reverse((time, _, role, datagram))) = self.due.pop() {
            self.now = time;
            let role = Role::from_bit(role);
            let end = &mut self.ends[role as usize];
            match datagram {
                Some(datagram) => end.receive(time, Ecn::Ect0, &datagram),
                None if end.deadline() <= time => end.expire(time),
                None => continue,
            }
            self.settle(role);
        }
        assert!(self.ends[0].is_silent(), "the client has closed");
        self
    }

    fn push(&mut self, time: Time, role: Role, datagram: Option<Vec<u8>>) {
        self.pushed += 1;
        let entry = (time, self.pushed, role as u8, datagram);
        self.due.push(Reverse(entry));
    }

    fn settle(&mut self, role: Role) {
        let mut payload = Vec::new();
        loop {
            let progress = self.ends[role as usize].progress();
            assert!(!progress.failed);
            self.on_progress(role, progress);
            let end = &mut self.ends[role as usize];
            let Some(burst) = end.transmit(self.now, &mut payload) else {
                break;
            };
            for datagram in payload.chunks(burst.datagram) {
                self.send(role, datagram, &burst);
            }
            payload.clear();
        }
        self.losses += self.ends[role as usize].losses();
        let deadline = self.ends[role as usize].deadline();
        if deadline < Time::NEVER {
            self.push(deadline.max(self.now), role, None);
        }
    }

    fn on_progress(&mut self, role: Role, progress: Progress) {
        let now = self.now;
        let end = &mut self.ends[role as usize];
        if !self.answers.is_empty() {
            if role == Role::Client && progress.established {
                self.connected = Some(now);
                self.answers.iter().for_each(|_| end.ask(now, 60));
            }
            self.received += match role {
                Role::Client => progress.received,
                Role::Server => 0,
            };
            while let Some(number) = end.message() {
                if role == Role::Server {
                    let (bytes, urgency) = self.answers[number as usize];
                    end.answer(now, number, bytes, urgency);
                    continue;
                }
                self.arrived[number as usize] = Some(now);
                if self.arrived.iter().all(Option::is_some) {
                    self.finished = Some(now);
                    end.write(now, 0, true);
                }
            }
            return;
        }
        if role == Role::Server {
            if progress.received > 0 && !std::mem::replace(&mut self.asked, true) {
                end.write(now, self.answer, true);
            }
            return;
        }
        if progress.established {
            self.connected = Some(now);
            end.write(now, 100, false);
        }
        if progress.received > 0 {
            self.first_byte.get_or_insert(now);
            self.received += progress.received;
        }
        if progress.finished {
            self.finished = Some(now);
            end.write(now, 0, true);
        }
    }

    fn send(&mut self, role: Role, datagram: &[u8], burst: &Burst) {
        let ecn = burst.ecn;
        let payload = (datagram.len() as isize + burst.left_out) as usize;
        self.log.push((self.now, role, payload));
        let time = self.now.as_nanos().to_be_bytes();
        let bytes = time.into_iter().chain([role as u8, ecn as u8]);
        self.hash = fnv1a(self.hash, bytes.chain(datagram.iter().copied()));
        self.sent[role as usize] += 1;
        let size = u64::from(HEADER) + payload as u64;
        let leaves = match role {
            Role::Client => self.now,
            Role::Server => {
                self.free = self.free.max(self.now) + Time::from_nanos(size * BYTE);
                self.reach.push(self.free + self.way);
                self.free
            }
        };
        if role == Role::Client || !(self.lost)(self.sent[1]) {
            self.push(leaves + self.way, role.other(), Some(datagram.to_vec()));
        }
    }
}
