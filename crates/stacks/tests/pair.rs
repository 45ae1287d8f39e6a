//! Two ends and a wire: times to the nanosecond, and the same bytes for the same seed.
#![cfg(feature = "quinn")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Bytes, Ecn, Role, Time};
use aqmlab_stacks::{Class, Control, End, HEADER, Quinn, Stack};

/// One way of the path.
const WAY: Time = Time::from_millis(20);

/// Nanoseconds that a byte of the server takes: 10 Mbit/s.
const BYTE: u64 = 800;

/// What comes next: when, in which order, at which end, and the datagram, or a timer.
type Due = Reverse<(Time, u64, u8, Option<Vec<u8>>)>;

/// A client that asks for an answer, and what happened.
struct Pair {
    ends: [End; 2],
    due: BinaryHeap<Due>,
    pushed: u64,
    /// When the server's wire falls free.
    free: Time,
    now: Time,
    answer: u64,
    asked: bool,
    /// Datagrams of the server that the wire loses, by number.
    lost: fn(u64) -> bool,
    sent: [u64; 2],
    received: u64,
    connected: Option<Time>,
    first_byte: Option<Time>,
    finished: Option<Time>,
    /// FNV-1a over everything that was sent.
    hash: u64,
    losses: u32,
}

fn quinn(control: Control) -> Quinn {
    Quinn {
        congestion_control: control,
        server_flight: Bytes(560),
        ..Quinn::default()
    }
}

impl Pair {
    fn new(settings: &Quinn, seed: u64, answer: u64, lost: fn(u64) -> bool) -> Self {
        let class = Class::quinn(settings).unwrap();
        Self {
            ends: class.connect((seed, 1), Time::ZERO),
            due: BinaryHeap::new(),
            pushed: 0,
            free: Time::ZERO,
            now: Time::ZERO,
            answer,
            asked: false,
            lost,
            sent: [0; 2],
            received: 0,
            connected: None,
            first_byte: None,
            finished: None,
            hash: 0xcbf2_9ce4_8422_2325,
            losses: 0,
        }
    }

    fn run(mut self) -> Self {
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
                self.send(role, datagram, burst.ecn);
            }
            payload.clear();
        }
        self.losses += self.ends[role as usize].losses();
        let deadline = self.ends[role as usize].deadline();
        if deadline < Time::NEVER {
            self.push(deadline.max(self.now), role, None);
        }
    }

    fn on_progress(&mut self, role: Role, progress: aqmlab_stacks::Progress) {
        let now = self.now;
        let end = &mut self.ends[role as usize];
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

    fn send(&mut self, role: Role, datagram: &[u8], ecn: Ecn) {
        let time = self.now.as_nanos().to_be_bytes();
        for byte in time.iter().chain(&[role as u8, ecn as u8]).chain(datagram) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.sent[role as usize] += 1;
        let size = u64::from(HEADER) + datagram.len() as u64;
        let leaves = match role {
            Role::Client => self.now,
            Role::Server => {
                self.free = self.free.max(self.now) + Time::from_nanos(size * BYTE);
                self.free
            }
        };
        if role == Role::Client || !(self.lost)(self.sent[1]) {
            self.push(leaves + WAY, role.other(), Some(datagram.to_vec()));
        }
    }
}

#[test]
fn handshake_and_first_byte_take_what_arithmetic_says() {
    for control in [Control::Cubic, Control::NewReno] {
        let pair = Pair::new(&quinn(control), 1, 20_000, |_| false).run();
        // A round trip, and a datagram of 1,200 bytes with its headers on the server's wire.
        let round_trip = Time::from_nanos(40_000_000 + 1_228 * BYTE);
        assert_eq!(round_trip, Time::from_nanos(40_982_400));
        assert_eq!(pair.connected, Some(round_trip));
        assert_eq!(pair.first_byte, Some(round_trip + round_trip));
        assert_eq!(pair.received, 20_000);
    }
}

#[test]
fn a_server_sends_three_times_what_it_has_received_and_no_more() {
    // The limit, and a full datagram while any byte of it is left.
    for (flight, round_trips) in [(700, 1), (3_000, 1), (4_500, 2), (6_000, 2)] {
        let settings = Quinn {
            server_flight: Bytes(flight),
            ..Quinn::default()
        };
        let pair = Pair::new(&settings, 1, 1_000, |_| false).run();
        let connected = pair.connected.unwrap().as_nanos();
        let found = (connected - connected % 40_000_000) / 40_000_000;
        assert_eq!(found, round_trips, "{flight} bytes: {connected} ns");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |control, seed| Pair::new(&quinn(control), seed, 1_000_000, |it| it % 97 == 0).run();
    let [cubic, again, reno, other] = [
        (Control::Cubic, 1),
        (Control::Cubic, 1),
        (Control::NewReno, 1),
        (Control::Cubic, 2),
    ]
    .map(|(control, seed)| run(control, seed));
    assert_eq!((cubic.received, cubic.hash), (1_000_000, again.hash));
    assert!(cubic.losses > 0 && cubic.finished == again.finished);
    assert!(cubic.hash != reno.hash && cubic.hash != other.hash);
    // Another hash is another behaviour of quinn or of its random generator: results change.
    let pinned = [11_061_195_279_100_579_285, 2_424_064_481_760_711_507];
    assert_eq!([cubic.hash, reno.hash], pinned);
}

#[test]
fn what_the_wire_loses_comes_again() {
    for seed in 1..20 {
        let pair = Pair::new(&quinn(Control::Cubic), seed, 100_000, |it| it % 7 == 3).run();
        assert_eq!(pair.received, 100_000);
        assert!(pair.finished.is_some() && pair.losses > 0);
    }
}
