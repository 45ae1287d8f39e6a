//! The connections of a program as the router sees them: what each end sent again before the queue,
//! and what came out of the link for the other end.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddrV4;
use std::sync::Arc;

use aqmlab_net::Time;
use aqmlab_tcp::Retransmissions;

use crate::ends::{Ends, Numbers};
use crate::ip::{self, Headers, Segment};
use crate::routes::{Sent, Side};

/// What has come out of one direction of the link.
#[derive(Debug)]
pub(crate) struct Ledger {
    from: Side,
    numbers: Arc<Numbers>,
    ways: HashMap<Ends, Way>,
    /// Bytes of datagrams in fragments, whose ports are in the first one only.
    in_fragments: u64,
}

/// One direction of a connection.
#[derive(Debug)]
struct Way {
    /// The connection's.
    number: u64,
    begun: Time,
    last: Time,
    /// Number of the SYN that came last: a new connection has another number.
    opening: Option<u32>,
    sent: Sent,
    /// What earlier connections between these ends sent again.
    before: Retransmissions,
    delivered: Delivered,
    is_finished: bool,
    is_reset: bool,
}

impl Way {
    fn new(number: u64, now: Time) -> Self {
        Self {
            number,
            begun: now,
            last: now,
            opening: None,
            sent: Sent::default(),
            before: Retransmissions::default(),
            delivered: Delivered::default(),
            is_finished: false,
            is_reset: false,
        }
    }

    fn again(&self) -> Retransmissions {
        sum(self.before, self.sent.again())
    }
}

/// What the receiver of a direction has got in order.
#[derive(Debug, Default)]
struct Delivered {
    /// Bytes of all connections.
    bytes: u64,
    opening: Option<u32>,
    /// Number of the byte that is missing first.
    next: Option<u32>,
    /// Ranges of numbers behind it: in their order, apart from each other or overlapping.
    later: Vec<(u32, u32)>,
}

impl Delivered {
    fn take(&mut self, segment: &Segment) {
        let begin = segment.seq.wrapping_add(u32::from(segment.syn));
        if segment.syn && self.opening.replace(segment.seq) != Some(segment.seq) {
            self.next = Some(begin);
            self.later.clear();
        }
        let end = begin.wrapping_add(segment.len);
        let first = *self.next.get_or_insert(begin);
        // Numbers wrap: what lies less than half the circle behind is old.
        let ahead = |number: u32| number.wrapping_sub(first) as i32;
        if ahead(end) <= 0 {
            return;
        }
        if ahead(begin) > 0 {
            let place = self.later.partition_point(|it| ahead(it.0) <= ahead(begin));
            match place
                .checked_sub(1)
                .and_then(|before| self.later.get_mut(before))
            {
                Some(before) if ahead(before.1) >= ahead(begin) => {
                    if ahead(before.1) < ahead(end) {
                        before.1 = end;
                    }
                }
                _ => self.later.insert(place, (begin, end)),
            }
            return;
        }
        let mut next = end;
        let filled = self.later.iter().take_while(|range| {
            let joins = ahead(range.0) <= ahead(next);
            if joins && ahead(range.1) > ahead(next) {
                next = range.1;
            }
            joins
        });
        let filled = filled.count();
        self.later.drain(..filled);
        self.bytes += u64::from(next.wrapping_sub(first));
        self.next = Some(next);
    }
}

impl Ledger {
    /// Nothing yet, of the packets that one side sends.
    pub(crate) fn new(from: Side, numbers: Arc<Numbers>) -> Self {
        Self {
            from,
            numbers,
            ways: HashMap::new(),
            in_fragments: 0,
        }
    }

    /// What is known of a packet's connection; nothing if users of a scenario have it.
    fn way(&mut self, now: Time, headers: &Headers) -> Option<&mut Way> {
        let ends = Ends::of(self.from, headers);
        if Side::Clients.has(*ends.near.ip()) {
            return None;
        }
        let new = || Way::new(self.numbers.of(ends), now);
        Some(self.ways.entry(ends).or_insert_with(new))
    }

    /// A packet was sent.
    pub(crate) fn note_sent(&mut self, now: Time, packet: &[u8]) {
        let Some(headers) = Headers::read(packet) else {
            return;
        };
        let Some(way) = self.way(now, &headers) else {
            return;
        };
        if let Some(segment) = &headers.segment {
            if segment.syn && way.opening.replace(segment.seq) != Some(segment.seq) {
                way.before = way.again();
                way.sent = Sent::default();
            }
            way.sent.note(segment);
        }
    }

    /// A packet has left the link.
    pub(crate) fn note_delivered(&mut self, at: Time, packet: &[u8]) {
        let Some(headers) = Headers::read(packet) else {
            self.in_fragments += ip::datagram_in_fragments(packet);
            return;
        };
        let Some(way) = self.way(at, &headers) else {
            return;
        };
        way.last = at;
        match &headers.segment {
            Some(segment) => {
                if segment.syn {
                    (way.is_finished, way.is_reset) = (false, false);
                }
                way.is_finished |= segment.fin;
                way.is_reset |= segment.rst;
                way.delivered.take(segment);
            }
            None => way.delivered.bytes += ip::datagram_bytes(packet),
        }
    }
}

/// A connection, or a flow of datagrams: of several between the same ends all that they had.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Connection {
    /// Its number in results.
    pub(crate) number: u64,
    /// The end that is not the program's.
    pub(crate) far: SocketAddrV4,
    /// Whether anything but a reset has come from there.
    pub(crate) is_answered: bool,
    pub(crate) is_tcp: bool,
    pub(crate) start: Time,
    /// When its last packet left the link.
    pub(crate) end: Time,
    /// Application bytes for the program.
    pub(crate) received: u64,
    /// Application bytes from the program.
    pub(crate) sent: u64,
    /// Expiries of timers cannot be seen from outside.
    pub(crate) again: Retransmissions,
    /// Whether both ends have closed it, or one has reset it.
    pub(crate) is_over: bool,
    pub(crate) is_reset: bool,
}

/// What a program did.
#[derive(Debug)]
pub(crate) struct Account {
    /// In the order in which they began.
    pub(crate) connections: Vec<Connection>,
    /// Bytes of datagrams in fragments to the program, and from it.
    pub(crate) in_fragments: [u64; 2],
}

impl Account {
    /// From the directions to the program and from it.
    pub(crate) fn new(down: &Ledger, up: &Ledger) -> Self {
        let ends: HashSet<Ends> = down.ways.keys().chain(up.ways.keys()).copied().collect();
        let both = |ends: Ends| {
            let ways = [down, up].map(|ledger| ledger.ways.get(&ends));
            let seen = || ways.into_iter().flatten();
            let bytes = |way: Option<&Way>| way.map_or(0, |way| way.delivered.bytes);
            let is_reset = seen().any(|way| way.is_reset);
            let is_answered = ways[0].is_some_and(|way| !ends.are_tcp() || way.opening.is_some());
            let connection = Connection {
                number: seen().next().map_or(0, |way| way.number),
                far: ends.far,
                is_answered,
                is_tcp: ends.are_tcp(),
                start: seen().map(|way| way.begun).min().unwrap_or_default(),
                end: seen().map(|way| way.last).max().unwrap_or_default(),
                received: bytes(ways[0]),
                sent: bytes(ways[1]),
                again: seen().map(Way::again).fold(Retransmissions::default(), sum),
                is_over: is_reset || ways.iter().all(|way| way.is_some_and(|it| it.is_finished)),
                is_reset,
            };
            (connection.start, ends, connection)
        };
        let mut found: Vec<_> = ends.into_iter().map(both).collect();
        found.sort_by_key(|(start, ends, _)| (*start, *ends));
        Self {
            connections: found.into_iter().map(|(_, _, it)| it).collect(),
            in_fragments: [down.in_fragments, up.in_fragments],
        }
    }
}

fn sum(one: Retransmissions, other: Retransmissions) -> Retransmissions {
    Retransmissions {
        syn: one.syn + other.syn,
        fin: one.fin + other.fin,
        data: one.data + other.data,
        timeouts: one.timeouts + other.timeouts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::tests::{tcp, udp};

    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const FIN: u8 = 1;
    const RST: u8 = 4;

    fn ends() -> [SocketAddrV4; 2] {
        ["100.64.0.2:5000", "100.64.0.1:80"].map(|text| text.parse().unwrap())
    }

    /// Has segments cross the link: their numbers, flags and lengths, and whether they are lost.
    fn ledger(from: Side, segments: &[(u32, u8, usize, bool)]) -> Ledger {
        let mut ledger = Ledger::new(from, Arc::default());
        let [program, far] = ends();
        let (source, destination) = match from {
            Side::Clients => (program, far),
            Side::Servers => (far, program),
        };
        for (number, &(seq, flags, len, is_lost)) in segments.iter().enumerate() {
            let packet = tcp(source, destination, 0, (seq, flags, len));
            let at = Time::from_millis(number as u64);
            ledger.note_sent(at, &packet);
            if !is_lost {
                ledger.note_delivered(at + Time::from_millis(10), &packet);
            }
        }
        ledger
    }

    fn account(down: &[(u32, u8, usize, bool)], up: &[(u32, u8, usize, bool)]) -> Connection {
        let ledgers = [(Side::Servers, down), (Side::Clients, up)];
        let [down, up] = ledgers.map(|(side, segments)| ledger(side, segments));
        let [connection] = Account::new(&down, &up).connections.try_into().unwrap();
        connection
    }

    #[test]
    fn bytes_count_once_and_in_order() {
        // The numbers wrap; the second and the third segment are lost, and repaired the other way
        // round, one of them twice.
        let start = u32::MAX - 150;
        let at = |offset: u32| start.wrapping_add(1 + offset);
        let found = account(
            &[
                (start, SYN | ACK, 0, false),
                (at(0), ACK, 100, false),
                (at(100), ACK, 100, true),
                (at(200), ACK, 100, true),
                (at(300), ACK, 100, false),
                (at(400), ACK, 50, false),
                (at(200), ACK, 100, false),
                (at(200), ACK, 100, false),
                (at(100), ACK, 100, false),
                (at(450), ACK | FIN, 50, false),
            ],
            &[
                (7, SYN, 0, false),
                (8, ACK, 20, false),
                (28, ACK | FIN, 0, false),
            ],
        );
        assert_eq!((found.received, found.sent), (500, 20));
        assert_eq!(found.again.data, 3);
        assert!(found.is_tcp && found.is_over && !found.is_reset);
        assert_eq!(
            (found.start, found.end),
            (Time::ZERO, Time::from_millis(19))
        );
    }

    #[test]
    fn what_a_hole_keeps_back_does_not_count() {
        let data: Vec<_> = (0..10).map(|n| (1 + 100 * n, ACK, 100, n == 4)).collect();
        let found = account(&data, &[(0, SYN, 0, false)]);
        assert_eq!(found.received, 400);
        assert!(!found.is_over);
    }

    #[test]
    fn ends_may_meet_again_and_reset() {
        let found = account(
            &[(40, SYN | ACK, 0, false), (41, ACK, 10, false)],
            &[
                (9, SYN, 0, true),
                (9, SYN, 0, false),
                (10, ACK, 30, false),
                (5000, SYN, 0, false),
                (5001, ACK, 3, false),
                (5004, RST, 0, false),
            ],
        );
        assert_eq!((found.received, found.sent), (10, 33));
        assert_eq!((found.again.syn, found.again.data), (1, 0));
        assert!(found.is_over && found.is_reset);
    }

    #[test]
    fn a_reset_is_no_answer() {
        let refused = account(&[(0, RST | ACK, 0, false)], &[(9, SYN, 0, false)]);
        assert!(refused.is_reset && !refused.is_answered);
        assert_eq!(refused.far, ends()[1]);
        let silent = account(&[], &[(9, SYN, 0, false), (9, SYN, 0, false)]);
        assert!(!silent.is_reset && !silent.is_answered);
        let broken = account(
            &[(40, SYN | ACK, 0, false), (41, RST, 0, false)],
            &[(9, SYN, 0, false)],
        );
        assert!(broken.is_reset && broken.is_answered);
    }

    #[test]
    fn users_of_a_scenario_are_none_of_the_program() {
        let user = SocketAddrV4::new(Side::Clients.address(3), 2000);
        let server = SocketAddrV4::new(Side::Servers.address(0), 80);
        let [mut down, mut up] =
            [Side::Servers, Side::Clients].map(|from| Ledger::new(from, Arc::default()));
        for (ledger, packet) in [
            (&mut up, tcp(user, server, 0, (1, ACK, 10))),
            (&mut down, tcp(server, user, 0, (1, ACK, 10))),
        ] {
            ledger.note_sent(Time::ZERO, &packet);
            ledger.note_delivered(Time::ZERO, &packet);
        }
        assert_eq!(Account::new(&down, &up).connections, []);
    }

    #[test]
    fn datagrams_count_whole_and_in_parts() {
        let [program, far] = ends();
        let mut up = Ledger::new(Side::Clients, Arc::default());
        let mut packet = udp(program, far, 100);
        up.note_sent(Time::ZERO, &packet);
        up.note_delivered(Time::ZERO, &packet);
        // The first fragment has the header of UDP, others only data.
        packet[6] = 0x20;
        up.note_delivered(Time::ZERO, &packet);
        packet[6..8].copy_from_slice(&[0, 20]);
        up.note_delivered(Time::ZERO, &packet);
        let found = Account::new(&Ledger::new(Side::Servers, Arc::default()), &up);
        assert_eq!(found.in_fragments, [0, 208]);
        let [flow] = found.connections.try_into().unwrap();
        assert_eq!((flow.is_tcp, flow.received, flow.sent), (false, 0, 100));
    }
}
