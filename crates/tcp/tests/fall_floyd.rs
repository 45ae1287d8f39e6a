//! One to four losses in a window, as in K. Fall, S. Floyd: Simulation-based Comparisons of Tahoe,
//! Reno, and SACK TCP, CCR 1996: against every packet that ns-2 sends (profile `ns-one-way`), and
//! against the same losses worked by the letter of RFC 5681, 6582 and 6675.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Bytes, Rate, Time};
use aqmlab_tcp::{
    Clock, Context, CwndArithmetic, DecreaseBase, DelayedAck, Endpoint, FastRetransmitGuard,
    HostClock, Profile, Recovery, RecoveryState, Segment,
};

const MSS: u64 = 960;
const START: Time = Time::from_secs(1);

/// A data packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    time: f64,
    packet: u64,
    again: bool,
}

/// What one run showed.
#[derive(Debug, Default)]
struct Outcome {
    sent: Vec<Sent>,
    /// (seconds, cwnd and ssthresh in segments, what happened).
    events: Vec<(f64, f64, f64, &'static str)>,
    timeouts: u32,
    /// Fast retransmits as the sender counts them.
    fast: u32,
    /// The highest packet acknowledged at 6 s.
    ack_at_6s: u64,
}

/// A sender behind 8 Mbit/s, then 800 kbit/s and 100 ms; a receiver; ACKs of 40 bytes.
struct Run<'a> {
    profile: &'a Profile,
    host: HostClock,
    now: Time,
    sender: Endpoint,
    receiver: Endpoint,
    /// When each link is free: access and bottleneck, forth and back.
    free: [[Time; 2]; 2],
    arrivals: BinaryHeap<Reverse<(Time, usize, bool)>>,
    segments: Vec<Segment>,
    lose: Vec<u64>,
    /// Bytes that a SACK block adds to an ACK.
    block_bytes: u64,
    highest: u64,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(profile: &'a Profile, lose: &[u64], block_bytes: u64) -> Self {
        let host = HostClock::default();
        let cx = Context {
            now: START,
            profile,
            host: &host,
        };
        let mut out = Vec::new();
        let sender = Endpoint::connect(cx, &mut out);
        assert!(out.is_empty() && sender.is_established());
        Self {
            profile,
            host,
            now: START,
            sender,
            receiver: Endpoint::listen(profile),
            free: [[Time::ZERO; 2]; 2],
            arrivals: BinaryHeap::new(),
            segments: Vec::new(),
            lose: lose.to_vec(),
            block_bytes,
            highest: 0,
            outcome: Outcome::default(),
        }
    }

    fn cross(&mut self, forth: bool, bytes: u64) -> Time {
        let links = [
            (Rate::from_mbps(8), Time::ZERO),
            (Rate::from_bps(800_000), Time::from_millis(100)),
        ];
        let order = if forth { [0, 1] } else { [1, 0] };
        order.into_iter().fold(self.now, |at, link| {
            let free = &mut self.free[usize::from(forth)][link];
            *free = at.max(*free) + links[link].0.transmission_time(bytes);
            *free + links[link].1
        })
    }

    /// Puts what was sent on its way.
    fn transmit(&mut self, forth: bool, out: &[Segment]) {
        for segment in out {
            if forth && segment.len > 0 {
                let packet = (segment.seq - 1) / MSS;
                let again = segment.seq < self.highest;
                self.highest = self.highest.max(segment.seq + u64::from(segment.len));
                self.outcome.sent.push(Sent {
                    time: self.now.as_secs_f64(),
                    packet,
                    again,
                });
                if let Some(index) = self.lose.iter().position(|&lost| lost == packet) {
                    self.lose.swap_remove(index);
                    continue; // Lost where the access link ends; no link is ever full.
                }
            }
            let blocks = segment.options.sack_blocks().len() as u64;
            let bytes = u64::from(segment.len) + 40 + blocks * self.block_bytes;
            let arrival = self.cross(forth, bytes);
            self.arrivals
                .push(Reverse((arrival, self.segments.len(), forth)));
            self.segments.push(*segment);
        }
    }

    fn run(mut self) -> Outcome {
        let mut out = Vec::new();
        let (host, profile) = (self.host, self.profile);
        let at = |now| Context {
            now,
            profile,
            host: &host,
        };
        self.sender.write(u64::MAX / 2, at(self.now), &mut out);
        self.transmit(true, &out);
        loop {
            let arrival = self
                .arrivals
                .peek()
                .map_or(Time::NEVER, |Reverse((time, ..))| *time);
            self.now = arrival
                .min(self.sender.wake_at())
                .min(self.receiver.wake_at());
            if self.now > Time::from_secs(6) {
                break;
            }
            out.clear();
            let before = self.sender.probe(profile);
            let mut forth = true;
            if arrival == self.now {
                let Some(Reverse((_, index, to_receiver))) = self.arrivals.pop() else {
                    unreachable!()
                };
                let segment = self.segments[index];
                forth = !to_receiver;
                let end = if to_receiver {
                    &mut self.receiver
                } else {
                    &mut self.sender
                };
                end.on_segment(&segment, at(self.now), &mut out);
            } else if self.sender.wake_at() == self.now {
                self.sender.on_timer(at(self.now), &mut out);
            } else {
                forth = false;
                self.receiver.on_timer(at(self.now), &mut out);
            }
            self.note(before.recovery_state);
            self.transmit(forth, &out);
        }
        self.outcome.fast = self.sender.fast_retransmits();
        self.outcome.ack_at_6s = (self.sender.oldest_unacknowledged() - 1) / MSS - 1;
        self.outcome
    }

    fn note(&mut self, before: RecoveryState) {
        let timeouts = self.sender.retransmissions().timeouts;
        let after = self.sender.probe(self.profile);
        let what = match (before, after.recovery_state) {
            _ if timeouts > self.outcome.timeouts => "timeout",
            (RecoveryState::Recovery, RecoveryState::Recovery) => return,
            (_, RecoveryState::Recovery) => "fast retransmit",
            (RecoveryState::Recovery, _) => "exit",
            _ => return,
        };
        self.outcome.timeouts = timeouts;
        let segments = |bytes: u64| bytes as f64 / MSS as f64;
        self.outcome.events.push((
            self.now.as_secs_f64(),
            segments(after.cwnd),
            segments(after.ssthresh),
            what,
        ));
    }
}

fn packets(list: &str) -> Vec<u64> {
    list.split(' ')
        .map(|packet| packet.parse().unwrap())
        .collect()
}

/// The rows of a data file, split into cells, without the heading.
fn table(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// ns-2.35's one-way TCP in the set `rfc`: bugFix, exitFastRetrans, limited transmit, halves of
/// the exact window, a minimum RTO of 1 s, ticks of 10 ms.
fn ns(recovery: Recovery) -> Profile {
    Profile {
        recovery,
        mss: Bytes(MSS),
        send_buffer: Bytes(28 * MSS),
        receive_buffer: Bytes(28 * MSS),
        initial_ssthresh: Bytes(28 * MSS),
        limited_transmit: true,
        fast_retransmit_guard: FastRetransmitGuard::Always,
        clock: Clock::RttTicks {
            period: Time::from_millis(10),
        },
        rto_min: Time::from_secs(1),
        random_send_delay: Time::ZERO,
        ..Profile::named("ns-one-way").unwrap()
    }
}

/// By the letter of the RFCs, without handshake and delayed ACKs.
fn rfc(recovery: Recovery) -> Profile {
    Profile {
        recovery,
        mss: Bytes(MSS),
        header: Bytes(40),
        send_buffer: Bytes(28 * MSS),
        receive_buffer: Bytes(28 * MSS),
        handshake: false,
        initial_window: 1,
        initial_ssthresh: Bytes(28 * MSS),
        limited_transmit: true,
        multiplicative_decrease_base: DecreaseBase::FlightSize,
        delayed_ack: DelayedAck::Off,
        ack_every: 1,
        cwnd_arithmetic: CwndArithmetic::Real,
        ..Profile::named("rfc").unwrap()
    }
}

#[test]
fn every_packet_is_that_of_ns() {
    let schemes = [
        ("Tahoe", Recovery::Tahoe),
        ("Reno", Recovery::Reno),
        ("Newreno", Recovery::NewReno),
        ("Sack1", Recovery::SackPipe),
    ];
    for (scheme, recovery) in schemes {
        for lost in ["14", "14 28", "14 26 28", "14 24 26 28"] {
            let expected: Vec<Sent> = table(include_str!("data/fall_floyd_sends.csv"))
                .filter(|row| (row[0], row[2]) == (scheme, lost))
                .map(|row| Sent {
                    time: row[3].parse().unwrap(),
                    packet: row[4].parse().unwrap(),
                    again: row[5] == "1",
                })
                .collect();
            assert!(expected.len() > 50);
            let profile = ns(recovery);
            let found = Run::new(&profile, &packets(lost), 8).run().sent;
            for (index, expected) in expected.iter().enumerate() {
                let sent = found[index];
                let same = (sent.packet, sent.again) == (expected.packet, expected.again)
                    && (sent.time - expected.time).abs() < 1.1e-5;
                assert!(
                    same,
                    "{scheme}, lost {lost}, number {index}: sent {sent:?}, ns {expected:?}"
                );
            }
        }
    }
}

#[test]
fn recovery_is_as_worked_from_the_rfcs() {
    for row in table(include_str!("data/fall_floyd_rfc.csv")) {
        let [scheme, lost, timeouts, fast, needless, resent, events, ack] = row[..] else {
            panic!("a row has eight cells: {row:?}");
        };
        let case = format!("{scheme}, lost {lost}");
        let profile = rfc(match scheme {
            "reno_5681" => Recovery::Reno,
            "newreno_6582" => Recovery::NewReno,
            _ => Recovery::Sack,
        });
        let lost = packets(lost);
        let outcome = Run::new(&profile, &lost, 0).run();
        let again: Vec<_> = outcome.sent.iter().filter(|sent| sent.again).collect();
        let found: Vec<_> = again
            .iter()
            .map(|sent| format!("{}@{:.3}", sent.packet, sent.time))
            .collect();
        assert_eq!(found.join(" "), resent, "{case}");
        let found: Vec<_> = outcome
            .events
            .iter()
            .map(|(time, cwnd, ssthresh, what)| {
                format!("{time:.3} {what} cwnd {cwnd} ssthresh {ssthresh}")
            })
            .collect();
        assert_eq!(found.join("; "), events, "{case}");
        let count = |what| {
            outcome
                .events
                .iter()
                .filter(|event| event.3 == what)
                .count()
        };
        assert_eq!(count("timeout").to_string(), timeouts, "{case}");
        assert_eq!(count("fast retransmit").to_string(), fast, "{case}");
        assert_eq!(outcome.fast.to_string(), fast, "{case}");
        let needed = again.iter().filter(|sent| lost.contains(&sent.packet));
        assert_eq!(
            (again.len() - needed.count()).to_string(),
            needless,
            "{case}"
        );
        assert_eq!(outcome.ack_at_6s.to_string(), ack, "{case}");
    }
}

#[test]
fn the_schemes_compare_as_in_the_paper() {
    for row in table(include_str!("data/fall_floyd_expected.csv")) {
        let recovery = match row[0] {
            "Tahoe" => Recovery::Tahoe,
            "Reno" => Recovery::Reno,
            "Newreno" => Recovery::NewReno,
            _ => Recovery::SackPipe,
        };
        let profile = ns(recovery);
        let outcome = Run::new(&profile, &packets(row[2]), 8).run();
        let again: Vec<_> = outcome
            .sent
            .iter()
            .filter(|sent| sent.again)
            .map(|sent| format!("{}@{:.3}", sent.packet, sent.time))
            .collect();
        let case = format!("{}, lost {}", row[0], row[2]);
        assert_eq!(again.join(" "), row[8], "{case}");
        assert_eq!(outcome.timeouts.to_string(), row[4], "{case}");
        assert_eq!(outcome.ack_at_6s.to_string(), row[18], "{case}");
    }
}
