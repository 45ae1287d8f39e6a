//! What a port says of itself between the events, against the plain rules of a first-come,
//! first-served queue with a device ring.

use crate::{Known, plain};

use aqmlab_aqm::{Details, Discipline, Reason};
use aqmlab_declare::tagged;
use aqmlab_link::{Dropped, Port, Served, Transmission};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::{Framing, Link, Measure, Packets};
use toml::{Table, Value};

const LIMIT: u32 = 6;
const DELAY: Time = Time::from_millis(3);
const FRAMING: u64 = 38;

/// A byte at 8 Mbit/s.
const NANOS_PER_BYTE: u64 = 1000;

/// CoDel never signals within an hour, but it decides on departure.
const DISCIPLINES: [&str; 2] = [
    "kind = \"droptail\"\nlimit = \"6 packets\"",
    "kind = \"codel\"\nlimit = \"6 packets\"\ntarget = \"7 ms\"\ninterval = \"3600 s\"",
];

fn link(discipline: &str, ring: u32) -> Link {
    let table: Table = discipline.parse().expect("TOML");
    let discipline: Discipline = tagged::from_value(Value::Table(table)).expect("valid");
    Link {
        delay: DELAY,
        framing: Framing(FRAMING as u32),
        device_ring: Packets(ring),
        discipline,
        ..plain::link(8, LIMIT)
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
struct Course {
    arrives: Time,
    size: u32,
    /// When it leaves the queue, its transmission begins, and its transmission ends; nothing: it
    /// finds no room.
    way: Option<[Time; 3]>,
}

impl Course {
    fn is_sent(&self) -> bool {
        self.way.is_some()
    }

    /// Whether it has come and waits in the queue when what happens before `now` has happened.
    fn waits(&self, now: Time) -> bool {
        let stays = |[leaves, ..]: [Time; 3]| leaves > self.arrives && leaves >= now;
        self.arrives < now && self.way.is_some_and(stays)
    }

    /// Whether it has come and its transmission has not begun.
    fn is_stored(&self, now: Time) -> bool {
        let stays = |[_, begin, _]: [Time; 3]| begin > self.arrives && begin >= now;
        self.arrives < now && self.way.is_some_and(stays)
    }
}

/// A packet enters the ring when that begins its transmission which came so many places earlier.
fn courses(arrivals: &[(Time, u32)], ring: usize) -> Vec<Course> {
    let mut courses: Vec<Course> = Vec::new();
    for &(arrives, size) in arrivals {
        let sent: Vec<[Time; 3]> = courses.iter().filter_map(|it| it.way).collect();
        let waiting = sent.iter().filter(|[leaves, ..]| *leaves > arrives).count();
        let free = sent.last().map_or(Time::ZERO, |[_, _, end]| *end);
        let begin = arrives.max(free);
        let leaves = match sent.len().checked_sub(ring) {
            _ if ring == 0 => begin,
            Some(before) => arrives.max(sent[before][1]),
            None => arrives,
        };
        let takes = Time::from_nanos(NANOS_PER_BYTE * (u64::from(size) + FRAMING));
        let fits = waiting < LIMIT as usize;
        courses.push(Course {
            arrives,
            size,
            way: fits.then(|| [leaves, begin, begin + takes]),
        });
    }
    courses
}

/// Bursts and pauses; some packets come at the moment at which others leave.
fn arrivals(seed: u64) -> Vec<(Time, u32)> {
    let mut draws = RandomStream::new(seed, "arrivals", 0);
    let mut now = Time::from_millis(1);
    let arrivals = (0..400).map(|_| {
        let size = [62, 462, 962, 3962][draws.below(4)];
        now += match draws.below(8) {
            0 => Time::from_secs_f64(draws.exponential(0.02)),
            1..4 => Time::from_micros(500 * draws.below(4) as u64),
            4 => Time::from_secs_f64(draws.exponential(0.001)),
            _ => Time::ZERO,
        };
        (now, size)
    });
    arrivals.collect()
}

type Make = fn(&LinkDirection, &Link, u64, &Measure) -> Port<usize>;

/// A port whose packets are the numbers of their arrivals, and what is expected of them.
struct Watched {
    port: Port<usize>,
    courses: Vec<Course>,
    stores: bool,
    dropped: Vec<Dropped<usize>>,
    seen: usize,
    woken: u64,
}

impl Watched {
    fn sent(&mut self, sent: Option<(usize, Transmission)>) {
        for Dropped { item, reason, .. } in std::mem::take(&mut self.dropped) {
            assert_eq!(reason, Some(Reason::OVERFLOW));
            assert!(!self.courses[item].is_sent(), "{item}");
            self.seen += 1;
        }
        let Some((number, transmission)) = sent else {
            return;
        };
        self.seen += 1;
        let course = self.courses[number];
        let Some([leaves, begin, end]) = course.way else {
            assert_eq!(transmission, Transmission::Dropped(Reason::OVERFLOW));
            return;
        };
        let expected = Transmission::Arrives(end + DELAY, Ecn::NotEct);
        assert_eq!(transmission, expected, "{number} {course:?}");
        let served = Served {
            left: leaves,
            end,
            transmission: end - begin,
            delay: DELAY,
            holder: None,
        };
        let found = self.port.last_served(course.arrives, course.size);
        assert_eq!(found, served, "{number} {course:?}");
    }

    fn arrive(&mut self, number: usize) {
        let Course { arrives, size, .. } = self.courses[number];
        let packet = Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        };
        let was_quiet = self.port.next_departure() == Time::NEVER;
        let decided = self.port.arrive(arrives, packet, 0);
        if decided != Transmission::Waits {
            self.sent(Some((number, decided)));
            assert!(!self.port.has_woken());
            return;
        }
        let (details, dropped): (Known<'_>, _) = (&Details::default, &mut self.dropped);
        let begun = self
            .port
            .take_in(arrives, (packet, 0), number, details, dropped);
        let has_woken = begun.is_none() && was_quiet && self.port.next_departure() < Time::NEVER;
        self.sent(begun);
        assert_eq!(self.port.has_woken(), has_woken, "{number}");
        // It is said once.
        assert!(!self.port.has_woken());
    }

    fn depart(&mut self) {
        self.woken += 1;
        let sent = self
            .port
            .depart(self.port.next_departure(), &mut self.dropped);
        self.sent(sent);
    }

    /// All before `now` has happened.
    fn look(&mut self, now: Time) {
        let state = self.port.observe(now);
        let waiting = || self.courses.iter().filter(|it| it.waits(now));
        let (packets, bytes) = (
            waiting().count(),
            waiting().map(|it| u64::from(it.size)).sum(),
        );
        let found = (state.backlog.packets as usize, state.backlog.bytes);
        assert_eq!(found, (packets, bytes), "{now}");
        let come = || self.courses.iter().filter(|it| it.arrives < now);
        let gone = || come().filter(|it| it.is_sent() && !it.waits(now));
        let counters = &state.counters;
        assert_eq!(counters.arrived_packets as usize, come().count());
        assert_eq!(counters.departed_packets as usize, gone().count(), "{now}");
        let bytes: u64 = gone().map(|it| u64::from(it.size)).sum();
        assert_eq!(counters.departed_bytes, bytes, "{now}");
        let refused = come().filter(|it| !it.is_sent()).count();
        assert_eq!(counters.dropped_packets() as usize, refused);
        let ends = || come().filter_map(|it| it.way).map(|[_, _, end]| end);
        let last = ends().max().unwrap_or(Time::ZERO);
        assert_eq!(state.drain, last.saturating_sub(now), "{now}");
        assert_eq!(
            (state.rate.bps(), state.next_tick),
            (8_000_000, Time::NEVER)
        );
        assert!(!self.port.is_held());
        let stored = come().filter(|it| it.is_stored(now)).count() as u64;
        if self.stores {
            assert_eq!(self.port.stored_packets(), stored, "{now}");
        } else {
            assert!(self.port.stored_packets() <= stored, "{now}");
        }
        // A port that stores is woken when a transmission ends.
        if self.stores || state.probes.len() > 1 {
            let ended = ends().filter(|end| *end < now).count() as u64;
            let computed = self.port.computed_departures(now);
            assert_eq!(self.woken + computed, ended, "{now}");
            assert!(computed == 0 || !self.stores);
        }
        self.port.check_conservation().expect("a balance");
    }
}

/// Plays the arrivals, and looks at moments of its own and at those at which something happens.
fn watch(make: Make, stores: bool, link: &Link, seed: u64) {
    let name = LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    };
    let measure = Measure {
        warm_up: Time::ZERO,
        duration: Time::from_secs(100),
        queue_sample: Time::from_secs(1),
        ..Measure::default()
    };
    let arrivals = arrivals(seed);
    let courses = courses(&arrivals, link.hidden_ring()[0]);
    let refused = courses.iter().filter(|it| !it.is_sent()).count();
    assert!((20..200).contains(&refused), "{refused}");
    let mut draws = RandomStream::new(seed, "looks", 0);
    let ways = courses.iter().filter_map(|it| it.way).flatten();
    let edges: Vec<Time> = ways.collect();
    let mut looks: Vec<Time> = (0..300)
        .map(|look| match look % 3 {
            0 => edges[draws.below(edges.len())],
            1 => edges[draws.below(edges.len())] + Time::from_nanos(1),
            _ => Time::from_secs_f64(draws.uniform_in(0.0, edges[edges.len() - 1].as_secs_f64())),
        })
        .collect();
    looks.sort_unstable();
    let mut watched = Watched {
        port: make(&name, link, 1, &measure),
        courses,
        stores,
        dropped: Vec::new(),
        seen: 0,
        woken: 0,
    };
    let (mut number, mut looked) = (0, 0);
    loop {
        let departure = watched.port.next_departure();
        let arrival = arrivals.get(number).map_or(Time::NEVER, |it| it.0);
        let look = looks.get(looked).copied().unwrap_or(Time::NEVER);
        if look <= departure.min(arrival) && look < Time::NEVER {
            watched.look(look);
            looked += 1;
        } else if departure <= arrival && departure < Time::NEVER {
            watched.depart();
        } else if arrival < Time::NEVER {
            watched.arrive(number);
            number += 1;
        } else {
            break;
        }
    }
    assert_eq!(watched.seen, arrivals.len());
}

#[test]
fn a_port_says_what_waits_and_how_long_that_takes() {
    let makes: [(Make, bool); 2] = [(Port::new, false), (Port::stored, true)];
    for discipline in DISCIPLINES {
        for ring in [0, 3] {
            for (seed, (make, stores)) in (1..).zip(makes.into_iter().cycle().take(6)) {
                // A ring keeps CoDel from computing.
                let stores = stores || (ring > 0 && discipline.contains("codel"));
                watch(make, stores, &link(discipline, ring), seed / 2);
            }
        }
    }
}
