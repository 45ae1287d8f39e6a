//! What the stacks do, shown by hand-computed schedules, worked traces and theory.

mod congestion_controls;
mod pair;
mod plugin;
mod shown;
mod table;

use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};
use aqmlab_tcp::{Context, DelayedAck, Endpoint, Flags, HostClock, Profile, Recovery};
use pair::{Fate, Pair, Way, ms};

fn profile(name: &str) -> Profile {
    Profile::named(name).expect("a shipped profile")
}

/// A link without transmission time and 50 ms of delay each way.
const PURE_DELAY: [(Option<Rate>, Time); 1] = [(None, Time::from_millis(50))];

#[test]
fn freebsd_transfer_follows_the_slow_start_schedule() {
    // RTT 100 ms, no transmission time. Handshake and request: the server answers at 150 ms with
    // a window of two segments (one, opened by the handshake's ACK). Two segments are
    // acknowledged at once: +1. The third flight is 3: its first two are acknowledged at once,
    // the third by the fast tick or with the next; and so on.
    let freebsd = profile("freebsd-2.2.8");
    let mut pair = Pair::new(&freebsd, &PURE_DELAY, |_, _| Fate::Pass);
    pair.hosts = [HostClock {
        slow: Time::from_millis(499),
        fast: Time::from_millis(199),
        ..HostClock::default()
    }; 2];
    pair.exchange(300, 10 * 1440, Time::from_secs(10));
    let sent: Vec<(f64, u64)> = pair
        .server_data()
        .iter()
        .map(|&(time, segment, _)| (ms(time), segment))
        .collect();
    // 150: cwnd 2. 250: one ACK for 0-1, cwnd 3: 2, 3, 4. 350: one ACK for 2-3, cwnd 4, segment 4
    // outstanding: 5, 6, 7. Client at 400: segment 4 was acknowledged by the fast tick at 399,
    // which reaches the server at 449: cwnd 5, 5-7 outstanding: 8 and 9 go (with the FIN).
    assert_eq!(
        sent,
        [
            (150.0, 0),
            (150.0, 1),
            (250.0, 2),
            (250.0, 3),
            (250.0, 4),
            (350.0, 5),
            (350.0, 6),
            (350.0, 7),
            (449.0, 8),
            (449.0, 9),
        ]
    );
    assert_eq!(pair.complete_at, Some(Time::from_millis(499)));
    assert!(pair.client.is_finished() && pair.server.is_finished());
}

#[test]
fn uncontended_transfer_takes_the_hand_computed_time_to_the_microsecond() {
    // RFC stack, window 3, an ACK for every segment, 10 Mbit/s and 20 ms each way. A segment of
    // 1500 bytes takes 1.2 ms, an ACK 32 us, a SYN 35.2 us, the request of 100 bytes 112 us.
    let mut rfc = profile("rfc");
    rfc.delayed_ack = DelayedAck::Off;
    rfc.ack_every = 1;
    let link = [(Some(Rate::from_mbps(10)), Time::from_millis(20))];
    let mut pair = Pair::new(&rfc, &link, |_, _| Fate::Pass);
    pair.exchange(100, 15 * 1460, Time::from_secs(10));
    // SYN 20.0352, SYN-ACK 40.0704, ACK and request 60.2144; the server acknowledges the request
    // at once (32 us), so the first flight of 3 leaves the link at 61.4464, 62.6464, 63.8464.
    // Its first ACK is back 20 + 0.032 + 20 ms later, at 101.4784; every ACK lets 2 segments go,
    // which take 2.4 ms while ACKs come every 1.2 ms: the link stays busy with 6 segments. The
    // first of them leaves at 102.6784, its ACK is back at 142.7104. 15 - 3 - 6 = 6 segments are
    // left; the last leaves at 142.7104 + 6 x 1.2 = 149.9104 and carries the FIN.
    let complete = pair.complete_at.expect("the transfer ends");
    assert_eq!(complete, Time::from_nanos(169_910_400));
}

#[test]
fn syn_is_sent_again_on_the_slow_ticks_of_the_host() {
    let freebsd = profile("freebsd-2.2.8");
    let mut pair = Pair::new(&freebsd, &PURE_DELAY, |_, _| Fate::Drop);
    pair.hosts[0].slow = Time::from_millis(100);
    pair.exchange(1, 1, Time::from_secs(100));
    let times: Vec<f64> = pair.log.iter().map(|sent| ms(sent.time)).collect();
    // Six ticks (at 100, 600, ..., 2600 ms), then 12, 24, 48: "0, 3, 9, 21, 45 s, early by up to
    // half a second".
    assert_eq!(times, [0.0, 2600.0, 8600.0, 20600.0, 44600.0]);
    assert_eq!(pair.failures, [(Time::from_secs(75), Way::ToServer)]);
    assert_eq!(pair.client.retransmissions().syn, 4);
}

#[test]
fn rfc_syn_backs_off_and_data_then_starts_from_three_seconds() {
    let rfc = profile("rfc");
    let mut syns = 0;
    let mut lost_data = false;
    let mut pair = Pair::new(&rfc, &PURE_DELAY, |way, segment| {
        syns += u32::from(way == Way::ToServer && segment.flags.has(Flags::SYN));
        let first_request = way == Way::ToServer && segment.len > 0 && !lost_data;
        lost_data |= first_request;
        if syns <= 2 && segment.flags.has(Flags::SYN) || first_request {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.exchange(100, 100, Time::from_secs(60));
    let to_server: Vec<_> = pair
        .log
        .iter()
        .filter(|sent| sent.way == Way::ToServer)
        .collect();
    let syns: Vec<f64> = to_server
        .iter()
        .filter(|sent| sent.segment.flags.has(Flags::SYN))
        .map(|sent| ms(sent.time))
        .collect();
    assert_eq!(syns, [0.0, 1000.0, 3000.0]);
    let requests: Vec<f64> = to_server
        .iter()
        .filter(|sent| sent.segment.len > 0)
        .map(|sent| ms(sent.time))
        .collect();
    // RFC 6298, rule 5.7: three seconds after a SYN that had to be sent again.
    assert_eq!(requests, [3100.0, 6100.0]);
}

/// Segments that are lost once, and the retransmissions that follow: (segment, milliseconds).
type RecoveryState = (&'static [u64], &'static [(u64, i64)]);

/// The set-up of Fall and Floyd 1996: 8 Mbit/s, then 800 kbit/s and 100 ms; segments of 1000
/// bytes with their headers; a receiver window of 28; an ACK for every segment.
fn fall_and_floyd(recovery: Recovery, lost: &[u64]) -> Vec<(u64, i64)> {
    let mut stack = profile("rfc");
    stack.recovery = recovery;
    stack.mss = Bytes(960);
    stack.initial_window = 1;
    stack.multiplicative_decrease_base = aqmlab_tcp::DecreaseBase::Cwnd;
    stack.receive_buffer = Bytes(28 * 960);
    stack.send_buffer = Bytes(28 * 960);
    stack.delayed_ack = DelayedAck::Off;
    stack.ack_every = 1;
    let links = [
        (Some(Rate::from_bps(800_000)), Time::from_millis(100)),
        (Some(Rate::from_mbps(8)), Time::ZERO),
    ];
    let mut to_lose = lost.to_vec();
    let mut pair = Pair::new(&stack, &links, |way, segment| {
        let number = segment.seq.wrapping_sub(1) / 960;
        match to_lose.iter().position(|&lost| lost == number) {
            Some(index) if way == Way::ToClient && segment.len > 0 => {
                to_lose.swap_remove(index);
                Fate::Drop
            }
            _ => Fate::Pass,
        }
    });
    pair.exchange(1, 400 * 960, Time::from_secs(6));
    let data = pair.server_data();
    let start = data[0].0;
    data.iter()
        .filter(|(_, _, new)| !new)
        .take(6)
        // The published runs start to send at 1 s.
        .map(|&(time, segment, _)| (segment, 1000 + ms(time - start).round() as i64))
        .collect()
}

/// Asserts retransmissions (segment, milliseconds) against the published ones, to 2 ms: the
/// original has no handshake, and counts segments where we count bytes.
fn assert_resent(found: &[(u64, i64)], expected: &[(u64, i64)], case: &str) {
    let close = found.len() >= expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(f, e)| f.0 == e.0 && (f.1 - e.1).abs() <= 2);
    assert!(close, "{case}: resent {found:?}, expected {expected:?}");
}

#[test]
fn tahoe_repairs_like_fall_and_floyd() {
    let cases: [RecoveryState; 4] = [
        (&[14], &[(14, 2077)]),
        (&[14, 28], &[(14, 2077), (28, 2289)]),
        (
            &[14, 26, 28],
            &[(14, 2077), (26, 2289), (27, 2289), (28, 2500)],
        ),
        (
            &[14, 24, 26, 28],
            &[
                (14, 2077),
                (24, 2289),
                (25, 2289),
                (26, 2500),
                (27, 2500),
                (28, 2500),
            ],
        ),
    ];
    for (lost, expected) in cases {
        assert_resent(
            &fall_and_floyd(Recovery::Tahoe, lost),
            expected,
            &format!("lost {lost:?}"),
        );
    }
}

#[test]
fn reno_repairs_like_fall_and_floyd() {
    let cases: [RecoveryState; 4] = [
        (&[14], &[(14, 2077)]),
        (&[14, 28], &[(14, 2077), (28, 2369)]),
        (&[14, 26, 28], &[(14, 2077), (26, 2369), (28, 3580)]),
        (
            &[14, 24, 26, 28],
            &[(14, 2077), (24, 2369), (26, 3580), (28, 3792), (29, 3792)],
        ),
    ];
    for (lost, expected) in cases {
        assert_resent(
            &fall_and_floyd(Recovery::Reno, lost),
            expected,
            &format!("lost {lost:?}"),
        );
    }
}

#[test]
fn freebsd_window_after_recovery_is_ssthresh_and_one_segment() {
    let freebsd = profile("freebsd-2.2.8");
    let mut windows = Vec::new();
    for end in 10..40 {
        let mut count = 0;
        let mut pair = Pair::new(&freebsd, &PURE_DELAY, |way, segment| {
            let data = way == Way::ToClient && segment.len > 0;
            count += u32::from(data);
            if data && count == 40 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.exchange(300, 300 * 1440, Time::from_millis(100 * end));
        assert_eq!(pair.server.retransmissions().timeouts, 0);
        windows.push((pair.server.ssthresh() / 1440, pair.server.cwnd() / 1440));
    }
    // Peer's window 12 segments: ssthresh 6; the ACK that ends recovery makes the window 6 + 1.
    assert!(windows.contains(&(6, 7)), "{windows:?}");
    assert!(!windows.contains(&(6, 6)), "{windows:?}");
}

#[test]
fn ecn_is_negotiated_and_answered_once_per_window() {
    let mut rfc = profile("rfc");
    rfc.ecn = true;
    rfc.delayed_ack = DelayedAck::Off; // The second flight is then segments 3 to 8, all at once.
    let mut marked = 0;
    let mut pair = Pair::new(&rfc, &PURE_DELAY, |way, segment| {
        let second_flight = (3 * 1460..9 * 1460).contains(&segment.seq);
        if way == Way::ToClient && segment.len > 0 && second_flight {
            marked += 1;
            Fate::Mark
        } else {
            Fate::Pass
        }
    });
    pair.exchange(100, 60 * 1460, Time::from_secs(20));
    let log = &pair.log;
    let syn = log[0].segment;
    assert!(syn.flags.has(Flags::ECE.with(Flags::CWR)) && syn.ecn == Ecn::NotEct);
    let syn_ack = log
        .iter()
        .find(|sent| sent.way == Way::ToClient)
        .unwrap()
        .segment;
    assert!(syn_ack.flags.has(Flags::ECE) && !syn_ack.flags.has(Flags::CWR));
    for sent in log {
        let data = sent.segment.len > 0;
        assert_eq!(
            sent.segment.ecn.is_capable(),
            data,
            "ECT on data only: {sent:?}"
        );
    }
    // All marks fall in one window: one reduction, reported once.
    let reductions = log
        .iter()
        .filter(|s| s.way == Way::ToClient && s.segment.flags.has(Flags::CWR))
        .count();
    assert_eq!(reductions, 1);
    let last_ack = log
        .iter()
        .rev()
        .find(|sent| sent.way == Way::ToServer)
        .unwrap();
    assert!(!last_ack.segment.flags.has(Flags::ECE), "CWR ends the echo");
    assert_eq!(pair.server.retransmissions().data, 0);
    drop(pair);
    assert!(marked > 1);
}

#[test]
fn without_agreement_nothing_is_capable() {
    let rfc = profile("rfc");
    let mut pair = Pair::new(&rfc, &PURE_DELAY, |_, _| Fate::Mark);
    pair.exchange(100, 60 * 1460, Time::from_secs(20));
    assert!(pair.complete_at.is_some());
    assert!(pair.log.iter().all(|sent| !sent.segment.ecn.is_capable()));
}

#[test]
fn a_small_last_segment_of_an_idle_connection_goes_at_once_and_the_fin_alone() {
    // 1.5 segments from an idle connection go at once: Nagle asks only whether anything was
    // outstanding before.
    let freebsd = profile("freebsd-2.2.8");
    let mut pair = Pair::new(&freebsd, &PURE_DELAY, |_, _| Fate::Pass);
    pair.exchange(300, 2160, Time::from_secs(5));
    let data = pair.server_data();
    assert_eq!(data.len(), 2);
    assert_eq!(data[0].0, data[1].0);
    // All data has left before the close: the FIN travels alone.
    let fins: Vec<_> = pair
        .log
        .iter()
        .filter(|sent| sent.way == Way::ToClient && sent.segment.flags.has(Flags::FIN))
        .collect();
    assert_eq!(fins.len(), 1);
    assert_eq!(fins[0].segment.len, 0);
}

/// When a sender of eight segments with this seed sends them, in nanoseconds, if a delay is for one
/// of them or, as in ns, for all that the window allows.
fn delayed_sends(seed: u64, fills_window: bool) -> Vec<u64> {
    let ns = Profile {
        initial_window: 8,
        delayed_send_fills_window: fills_window,
        ..profile("ns-one-way")
    };
    let host = HostClock::default();
    let at = |now| Context {
        now,
        profile: &ns,
        host: &host,
    };
    let mut out = Vec::new();
    let mut sender = Endpoint::connect(at(Time::ZERO), &mut out);
    sender.seed(seed);
    sender.write(8 * 460, at(Time::ZERO), &mut out);
    assert!(out.is_empty(), "the first segment waits, too");
    let mut times = Vec::new();
    while times.len() < 8 {
        let now = sender.wake_at();
        sender.on_timer(at(now), &mut out);
        assert_eq!(out.len(), if fills_window { 8 } else { 1 });
        for segment in out.drain(..) {
            assert_eq!(segment.seq, 1 + 460 * times.len() as u64);
            times.push(now.as_nanos());
        }
    }
    times
}

#[test]
fn a_random_delay_comes_before_each_segment() {
    let times = delayed_sends(1, false);
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.chain([times[0]]).all(|gap| gap < 2_590_000));
    // Eight uniform delays: between 1/4 and 3/4 of their largest sum.
    assert!((5_000_000..16_000_000).contains(&times[7]), "{times:?}");
    assert_eq!(times, delayed_sends(1, false));
    assert_ne!(times, delayed_sends(2, false));
}

#[test]
fn in_ns_a_random_delay_comes_before_all_that_the_window_allows() {
    assert!(profile("ns-one-way").delayed_send_fills_window);
    let times = delayed_sends(1, true);
    assert!(times.iter().all(|&at| at == times[0] && at < 2_590_000));
    assert_ne!(times, delayed_sends(2, true));
}

/// Padhye, Firoiu, Towsley, Kurose 1998, equation 32: segments per second of a Reno sender.
fn pftk(p: f64, rtt: f64, rto: f64, b: f64, window: f64) -> f64 {
    let term = (2.0 + b) / (3.0 * b);
    let expected = term + (8.0 * (1.0 - p) / (3.0 * b * p) + term * term).sqrt();
    let q = |w: f64| {
        let r = 1.0 - p;
        let lost =
            (1.0 - r.powi(3)) * (1.0 + r.powi(3) * (1.0 - r.powf(w - 3.0))) / (1.0 - r.powf(w));
        lost.min(1.0)
    };
    let f: f64 = 1.0 + (1..=6).map(|i| 2f64.powi(i - 1) * p.powi(i)).sum::<f64>();
    if expected < window {
        let q = q(expected);
        ((1.0 - p) / p + expected + q / (1.0 - p))
            / (rtt * (b / 2.0 * expected + 1.0) + q * rto * f / (1.0 - p))
    } else {
        let q = q(window);
        ((1.0 - p) / p + window + q / (1.0 - p))
            / (rtt * (b / 8.0 * window + (1.0 - p) / (p * window) + 2.0) + q * rto * f / (1.0 - p))
    }
}

#[test]
fn bulk_transfers_under_random_loss_reach_the_pftk_throughput() {
    // Delayed ACKs (b = 2) only at small p: at 3 % most windows are so small that lone segments
    // wait for the delayed-ACK timer, of which the formula knows nothing.
    for (p, b) in [(0.001, 1), (0.01, 1), (0.03, 1), (0.001, 2), (0.01, 2)] {
        let mut stack = profile("rfc");
        stack.receive_buffer = Bytes(1 << 20);
        stack.send_buffer = Bytes(1 << 20);
        stack.rto_min = Time::from_millis(400);
        stack.ack_every = b;
        if b == 1 {
            stack.delayed_ack = DelayedAck::Off;
        }
        let mut draws = RandomStream::new(7, "pftk", u64::from(b));
        let mut pair = Pair::new(&stack, &PURE_DELAY, |way, segment| {
            if way == Way::ToServer || segment.len == 0 {
                return Fate::Pass;
            }
            if draws.uniform() < p {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        let duration = Time::from_secs(if p < 0.01 { 20_000 } else { 6_000 });
        pair.exchange(100, u64::MAX / 2, duration);
        let delivered = (pair.client.next_expected() - 1) / 1460;
        let rate = delivered as f64 / duration.as_secs_f64();
        let expected = pftk(p, 0.1, 0.4, f64::from(b), 1e9);
        let ratio = rate / expected;
        println!("p {p}, b {b}: {rate:.1} segments/s, PFTK {expected:.1}, ratio {ratio:.3}");
        assert!((ratio - 1.0).abs() < 0.15, "p {p}, b {b}: ratio {ratio}");
    }
}
