//! The congestion controls for a transport whose packets are acknowledged one by one, on a link that is
//! simple enough to know what they should do.

use std::collections::VecDeque;

use aqmlab_net::{Bytes, Ecn, RandomStream, Time};
use aqmlab_tcp::control::{bbr1, cubic, dctcp, prague, reno, sync_tcp, vegas};
use aqmlab_tcp::{CongestionControlKind, Law, Report, SlowStartExit, Stamp};

/// Bytes of a datagram: a millisecond on the link.
const DATAGRAM: u64 = 1250;
/// Bytes per second of the link.
const RATE: f64 = 1_250_000.0;
/// Its round trip without a queue is this and a datagram's time.
const DELAY: Time = Time::from_millis(40);

fn reno() -> CongestionControlKind {
    CongestionControlKind::Reno(reno::Params::default())
}

fn law(kind: CongestionControlKind, exit: SlowStartExit) -> Law {
    Law::new(Law::stack(kind, exit, Bytes(DATAGRAM)), 10 * DATAGRAM)
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Pass,
    Mark,
    Drop,
}

struct Packet {
    acknowledged: Time,
    sent: Time,
    stamp: Stamp,
    fate: Fate,
}

/// A sender with a law, and the link.
struct Sender {
    law: Law,
    /// How long the link takes for a datagram.
    takes: Time,
    now: Time,
    next_send: Time,
    free: Time,
    out: VecDeque<Packet>,
    srtt: Option<Time>,
    min_rtt: Option<Time>,
    /// When the window was reduced last.
    reduced: Option<Time>,
    arrived: u64,
}

impl Sender {
    fn new(law: Law, takes: Time) -> Self {
        Self {
            law,
            takes,
            now: Time::from_secs(1),
            next_send: Time::ZERO,
            free: Time::ZERO,
            out: VecDeque::new(),
            srtt: None,
            min_rtt: None,
            reduced: None,
            arrived: 0,
        }
    }

    fn in_flight(&self) -> u64 {
        self.out.len() as u64 * DATAGRAM
    }

    /// Sends and receives until then. `has_data` says whether there is something to send.
    fn run(
        &mut self,
        until: Time,
        mut has_data: impl FnMut(Time) -> bool,
        mut fate: impl FnMut() -> Fate,
    ) {
        while self.now < until {
            let fits = |it: &Self| it.in_flight() + DATAGRAM <= it.law.window();
            while fits(self) && self.next_send <= self.now {
                if !has_data(self.now) {
                    self.law.limit_by_application(self.in_flight());
                    break;
                }
                self.send(fate());
            }
            let paced = fits(self) && self.next_send > self.now;
            let mut next = self.now + Time::from_millis(5);
            next = next.min(self.out.front().map_or(next, |packet| packet.acknowledged));
            next = next.min(if paced { self.next_send } else { next });
            self.now = next.max(self.now + Time::from_nanos(1));
            while self
                .out
                .front()
                .is_some_and(|it| it.acknowledged <= self.now)
            {
                self.hear();
            }
        }
    }

    fn send(&mut self, fate: Fate) {
        let stamp = self.law.on_send(DATAGRAM, self.in_flight(), self.now);
        self.free = self.free.max(self.now) + self.takes;
        self.out.push_back(Packet {
            acknowledged: self.free + DELAY,
            sent: self.now,
            stamp,
            fate,
        });
        if let Some(rate) = self.law.pacing_rate(self.srtt) {
            let gap = Time::from_secs_f64(DATAGRAM as f64 / rate);
            self.next_send = self.next_send.max(self.now) + gap;
        }
    }

    /// The oldest packet is acknowledged, or its successor would have been.
    fn hear(&mut self) {
        let before = self.in_flight();
        let packet = self.out.pop_front().unwrap();
        let is_new = self.reduced.is_none_or(|reduced| packet.sent > reduced);
        let answers = self.law.answers_marks();
        let reduces =
            is_new && (packet.fate == Fate::Drop || (packet.fate == Fate::Mark && !answers));
        if packet.fate == Fate::Drop {
            self.law.lose(DATAGRAM, &packet.stamp);
        } else {
            self.arrived += DATAGRAM;
            let (sent, stamp) = (packet.sent, &packet.stamp);
            self.law
                .acknowledge(DATAGRAM, sent, stamp, is_new, self.now);
            let rtt = self.now - sent;
            self.srtt = Some(rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if reduces {
            self.law
                .reduce(packet.fate == Fate::Drop, 2 * DATAGRAM, self.now);
            self.reduced = Some(self.now);
        }
        self.law.finish(&Report {
            now: self.now,
            marks: u64::from(packet.fate == Fate::Mark),
            rtt: (packet.fate != Fate::Drop).then(|| self.now - packet.sent),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            in_flight: (before, self.in_flight()),
            window_limited: before + DATAGRAM > self.law.window() || reduces,
            recovering: !is_new,
            reduced: reduces,
        });
    }

    fn datagrams(&self) -> f64 {
        self.law.window() as f64 / DATAGRAM as f64
    }
}

const SECOND: fn(u64) -> Time = Time::from_secs;
/// A datagram passes the link in no time to speak of.
const FAST: Time = Time::from_nanos(10);
const BUSY: Time = Time::from_millis(1);

#[test]
fn reno_doubles_halves_and_adds_a_datagram_per_round_trip() {
    let mut sender = Sender::new(law(reno(), SlowStartExit::Control), FAST);
    let mut windows = Vec::new();
    assert_eq!(sender.law.ssthresh(), None);
    for round in 1..4 {
        let end = SECOND(1) + DELAY * round + Time::from_millis(1);
        sender.run(end, |_| true, || Fate::Pass);
        windows.push(sender.datagrams());
    }
    assert_eq!(windows, [20.0, 40.0, 80.0]);
    let mut drops = [Fate::Drop].into_iter();
    let end = sender.now + DELAY * 2;
    sender.run(end, |_| true, || drops.next().unwrap_or(Fate::Pass));
    // The first packet of this round is lost; those before it have opened the window further.
    let half = sender.law.ssthresh().unwrap() as f64 / DATAGRAM as f64;
    assert!((40.0..=81.0).contains(&half), "{half}");
    let before = sender.datagrams();
    let end = sender.now + DELAY * 20;
    sender.run(end, |_| true, || Fate::Pass);
    let grown = sender.datagrams() - before;
    assert!((19.0..21.0).contains(&grown), "{before} and {grown}");
}

#[test]
fn a_reduction_halves_and_stops_at_the_least() {
    let mut law = law(reno(), SlowStartExit::Control);
    law.reduce(true, 2 * DATAGRAM, SECOND(1));
    assert_eq!(
        (law.window(), law.ssthresh()),
        (5 * DATAGRAM, Some(5 * DATAGRAM))
    );
    law.reduce(false, 2 * DATAGRAM, SECOND(2));
    assert_eq!(law.window(), 5 * DATAGRAM / 2);
    law.reduce(true, 2 * DATAGRAM, SECOND(3));
    assert_eq!(law.window(), 2 * DATAGRAM, "no less");
    let mut law = self::law(reno(), SlowStartExit::Control);
    law.collapse(DATAGRAM, SECOND(1));
    assert_eq!(
        (law.window(), law.ssthresh()),
        (DATAGRAM, Some(5 * DATAGRAM))
    );
}

#[test]
fn packets_from_before_the_congestion_and_unused_windows_open_nothing() {
    for (opens, window_limited, reduced, marks, grows) in [
        (true, true, false, 0, true),
        (false, true, false, 0, false),
        (true, false, false, 0, false),
        (true, true, true, 0, false),
        (true, true, false, 1, false),
    ] {
        let mut law = law(reno(), SlowStartExit::Control);
        let stamp = law.on_send(DATAGRAM, 0, SECOND(1));
        law.acknowledge(DATAGRAM, SECOND(1), &stamp, opens, SECOND(2));
        law.finish(&Report {
            now: SECOND(2),
            marks,
            rtt: Some(SECOND(1)),
            srtt: Some(SECOND(1)),
            min_rtt: Some(SECOND(1)),
            in_flight: (DATAGRAM, 0),
            window_limited,
            recovering: false,
            reduced,
        });
        let expected = if grows { 11 } else { 10 } * DATAGRAM;
        assert_eq!(
            law.window(),
            expected,
            "{opens} {window_limited} {reduced} {marks}"
        );
    }
}

#[test]
fn cubic_leaves_slow_start_before_the_queue_is_long() {
    let kind = CongestionControlKind::Cubic(cubic::Params {
        hystart: false,
        ..cubic::Params::default()
    });
    for (exit, leaves) in [
        (SlowStartExit::HystartPlusPlus, true),
        (SlowStartExit::Control, false),
    ] {
        let mut sender = Sender::new(law(kind, exit), BUSY);
        sender.run(SECOND(4), |_| true, || Fate::Pass);
        assert_eq!(sender.law.ssthresh().is_some(), leaves, "{exit:?}");
        // 41 datagrams fill the path.
        let window = sender.datagrams();
        assert_eq!(window < 1000.0, leaves, "{exit:?}: {window}");
    }
}

#[test]
fn vegas_keeps_one_to_three_datagrams_in_the_queue() {
    let kind = CongestionControlKind::Vegas(vegas::Params::default());
    let mut sender = Sender::new(law(kind, SlowStartExit::Control), BUSY);
    sender.run(SECOND(20), |_| true, || Fate::Pass);
    let window = sender.datagrams();
    assert!((41.9..44.1).contains(&window), "{window}");
    let shown = sender.law.metrics().segments.unwrap();
    assert!((1.0..=3.0).contains(&shown), "{shown}");
}

#[test]
fn bbr_finds_the_rate_of_the_link() {
    let kind = CongestionControlKind::Bbr1(bbr1::Params::default());
    let mut sender = Sender::new(law(kind, SlowStartExit::Control), BUSY);
    assert!(sender.law.owns_window());
    sender.run(SECOND(5), |_| true, || Fate::Pass);
    let before = sender.arrived;
    sender.run(SECOND(15), |_| true, || Fate::Pass);
    let goodput = (sender.arrived - before) as f64 / 10.0;
    assert!(goodput > 0.95 * RATE, "{goodput}");
    let window = sender.datagrams();
    assert!(
        (70.0..95.0).contains(&window),
        "two of the product: {window}"
    );
    // A window that falls to a loss is not BBR's.
    let window = sender.law.window();
    sender.law.reduce(true, 2 * DATAGRAM, SECOND(15));
    assert_eq!(sender.law.window(), window);
}

/// Rates that do not grow end BBR's start, in which it paces at 2.89 times the rate that it has seen. Those
/// that an application limits do not.
#[test]
fn an_application_that_sends_little_does_not_end_the_start_of_bbr() {
    let kind = CongestionControlKind::Bbr1(bbr1::Params::default());
    let mut sender = Sender::new(law(kind, SlowStartExit::Control), BUSY);
    let mut next = sender.now;
    let scarce = |now: Time| {
        let is_due = now >= next;
        if is_due {
            next = now + Time::from_millis(20);
        }
        is_due
    };
    sender.run(SECOND(4), scarce, || Fate::Pass);
    let seen = DATAGRAM as f64 / 0.02;
    let paced = sender.law.pacing_rate(sender.srtt).unwrap();
    // Or at the first rate, which was higher: nothing lowers it in the start.
    assert!(paced > 2.0 * seen, "{paced}");
}

#[test]
fn those_that_go_by_marks_see_their_share() {
    for kind in [
        CongestionControlKind::Dctcp(dctcp::Params::default()),
        CongestionControlKind::Prague(prague::Params::default()),
    ] {
        let mut sender = Sender::new(law(kind, SlowStartExit::Control), FAST);
        assert!(sender.law.answers_marks());
        let mut draws = RandomStream::new(1, "marks", 0);
        let (mut sum, mut count) = (0.0, 0.0);
        for second in 10..110 {
            let marks = || match draws.uniform() < 0.1 {
                true => Fate::Mark,
                false => Fate::Pass,
            };
            sender.run(SECOND(second), |_| true, marks);
            sum += sender.law.metrics().segments.unwrap();
            count += 1.0;
        }
        let share = sum / count;
        assert!((share - 10.0).abs() < 1.0, "{kind:?}: {share} %");
    }
}

#[test]
fn what_only_tcp_has_is_refused_and_code_points_follow_the_control() {
    let refused = |kind: CongestionControlKind, ecn| Law::check(&kind, ecn).err();
    let sync = CongestionControlKind::SyncTcp(sync_tcp::Params::default());
    let (field, message) = refused(sync, true).unwrap();
    assert_eq!(field, "congestion_control");
    assert!(message.contains("time stamps of TCP"), "{message}");
    let dctcp = CongestionControlKind::Dctcp(dctcp::Params::default());
    assert!(refused(dctcp, false).unwrap().1.contains("ecn = true"));
    assert_eq!(refused(dctcp, true), None);
    assert_eq!(refused(reno(), false), None);
    let wrong = CongestionControlKind::Reno(reno::Params {
        decrease: 7.0,
        ..reno::Params::default()
    });
    assert_eq!(
        refused(wrong, false).unwrap().0,
        "congestion_control.decrease"
    );
    let prague = CongestionControlKind::Prague(prague::Params::default());
    let of = |kind| law(kind, SlowStartExit::Control);
    assert_eq!(of(prague).code_point(), Ecn::Ect1);
    assert_eq!(of(reno()).code_point(), Ecn::Ect0);
    assert!(!of(reno()).answers_marks() && !of(reno()).owns_window());
}
