//! What a trace shows of a congestion control, beside what is known of the path.

use aqmlab_net::{Bytes, RandomStream, Rate, Time};
use aqmlab_tcp::control::{
    bbr1, bbr3, cubic, dctcp, fast, ledbat_plus_plus, prague, reno, santa_cruz, sync_tcp, vegas,
};
use aqmlab_tcp::{
    CongestionControlKind, ControlMetrics, DelayedAck, EcnEcho, Probe, Profile, Recovery,
};

use crate::pair::{Fate, Pair, Way, at_first_repair};

const MSS: u64 = 1460;
/// 10 Mbit/s and 20 ms each way, with a queue that never ends.
const LINK: [(Option<Rate>, Time); 1] = [(Some(Rate::from_mbps(10)), Time::from_millis(20))];
/// A segment of 1,500 bytes on this link, in milliseconds.
const SEGMENT: f64 = 1.2;
/// The round trip without a queue, in milliseconds: twice 20, a segment and its ACK.
const PATH: f64 = 41.232;

fn stack(congestion_control: CongestionControlKind, recovery: Recovery) -> Profile {
    Profile {
        congestion_control,
        recovery,
        delayed_ack: DelayedAck::Off,
        ack_every: 1,
        send_buffer: Bytes(300 * MSS),
        receive_buffer: Bytes(300 * MSS),
        initial_ssthresh: Bytes(60 * MSS),
        ..Profile::named("rfc").expect("a shipped profile")
    }
}

/// What a long transfer alone shows at these times.
fn alone(stack: &Profile, times: impl IntoIterator<Item = Time>) -> Vec<Probe> {
    let mut pair = Pair::new(stack, &LINK, |_, _| Fate::Pass);
    pair.exchange(100, u64::MAX / 4, Time::from_millis(1));
    let probe = |time| {
        pair.go_on(time);
        pair.server.probe(stack)
    };
    times.into_iter().map(probe).collect()
}

/// A long transfer alone has a queue of the same length all the time.
fn steady(congestion_control: CongestionControlKind, recovery: Recovery) -> Probe {
    alone(&stack(congestion_control, recovery), [Time::from_secs(40)])[0]
}

fn milliseconds(time: Option<Time>) -> f64 {
    1e3 * time.expect("a time").as_secs_f64()
}

/// Segments that are in flight and not on the path.
fn in_queue(probe: &Probe) -> f64 {
    probe.in_flight as f64 / MSS as f64 - PATH / SEGMENT
}

#[test]
fn those_that_look_at_delay_show_that_of_the_queue() {
    let fast = fast::Params {
        alpha: 20.0,
        beta: 20.0,
        ..fast::Params::default()
    };
    for (kind, recovery) in [
        (
            CongestionControlKind::Vegas(vegas::Params::default()),
            Recovery::Sack,
        ),
        (CongestionControlKind::Fast(fast), Recovery::Sack),
        (
            CongestionControlKind::LedbatPlusPlus(ledbat_plus_plus::Params::default()),
            Recovery::RackTlp,
        ),
    ] {
        let probe = steady(kind, recovery);
        let delay = milliseconds(probe.control.queueing_delay);
        let queue = milliseconds(probe.round_trip) - PATH;
        assert!(
            (delay - queue).abs() < 0.01,
            "{kind:?}: {delay} and {queue}"
        );
        // A segment more is in flight just after one has left.
        let out = SEGMENT * in_queue(&probe);
        assert!((delay - out).abs() < 1.01 * SEGMENT, "{probe:?}");
    }
}

/// Sync-TCP weights the delays of packets, of which an empty link has few: its mean over time is that of
/// the queue up to a factor, and no packet waited for longer than the longest queue.
#[test]
fn sync_tcp_shows_an_average_of_the_queueing_delay() {
    let sync = CongestionControlKind::SyncTcp(sync_tcp::Params::default());
    let times = (2000..6000).map(|number| Time::from_millis(10 * number));
    let probes = alone(&stack(sync, Recovery::Sack), times);
    let queue = |probe: &Probe| SEGMENT * in_queue(probe).max(0.0);
    let shown = |probe: &Probe| milliseconds(probe.control.queueing_delay);
    let mean = |of: &dyn Fn(&Probe) -> f64| probes.iter().map(of).sum::<f64>() / 4000.0;
    let ratio = mean(&shown) / mean(&queue);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    let largest = |of: &dyn Fn(&Probe) -> f64| probes.iter().map(of).fold(0.0, f64::max);
    let (delay, longest) = (largest(&shown), largest(&queue));
    assert!(delay <= longest + SEGMENT, "{delay} and {longest}");
}

#[test]
fn those_that_count_segments_in_the_queue_show_them() {
    let vegas = steady(
        CongestionControlKind::Vegas(vegas::Params::default()),
        Recovery::Sack,
    );
    let shown = vegas.control.segments.unwrap();
    assert!((shown - in_queue(&vegas)).abs() < 0.1, "{shown}");
    let params = santa_cruz::Params::default();
    let santa_cruz = steady(CongestionControlKind::SantaCruz(params), Recovery::Sack);
    let shown = santa_cruz.control.segments.unwrap();
    assert!((shown - params.target).abs() < params.tolerance, "{shown}");
}

#[test]
fn those_that_look_at_losses_or_rates_alone_show_nothing() {
    for (kind, recovery) in [
        (
            CongestionControlKind::Reno(reno::Params::default()),
            Recovery::Sack,
        ),
        (
            CongestionControlKind::Bbr1(bbr1::Params::default()),
            Recovery::RackTlp,
        ),
        (
            CongestionControlKind::Bbr3(bbr3::Params::default()),
            Recovery::RackTlp,
        ),
    ] {
        let shown = steady(kind, recovery).control;
        assert_eq!(shown, ControlMetrics::default(), "{kind:?}");
    }
}

/// A path of 100 ms without a queue.
const LONG: [(Option<Rate>, Time); 1] = [(None, Time::from_millis(50))];

#[test]
fn cubic_shows_the_window_before_the_last_loss() {
    let stack = stack(
        CongestionControlKind::Cubic(cubic::Params::default()),
        Recovery::Sack,
    );
    let (pair, before, _) = at_first_repair(&stack);
    let shown = pair.server.probe(&stack).control;
    let expected = before as f64 / MSS as f64;
    // ACKs of the same instant open it by a twentieth at most (search_growth).
    let more = shown.segments.unwrap() - expected;
    assert!(
        (0.0..=expected / 20.0).contains(&more),
        "{shown:?}, {expected}"
    );
    assert_eq!(shown.queueing_delay, None);
}

#[test]
fn those_that_count_marks_show_their_share_in_per_cent() {
    for kind in [
        CongestionControlKind::Prague(prague::Params::default()),
        CongestionControlKind::Dctcp(dctcp::Params::default()),
    ] {
        let stack = Profile {
            ecn: true,
            ecn_echo: EcnEcho::Accurate,
            ..stack(kind, Recovery::RackTlp)
        };
        let mut draws = RandomStream::new(1, "marks", 0);
        let mut pair = Pair::new(&stack, &LONG, |way, segment| {
            let data = way == Way::ToClient && segment.len > 0;
            if data && draws.uniform() < 0.1 {
                Fate::Mark
            } else {
                Fate::Pass
            }
        });
        pair.exchange(100, u64::MAX / 4, Time::from_secs(1));
        let shares = (20..220).map(|second| {
            pair.go_on(Time::from_secs(second));
            let shown = pair.server.probe(&stack).control;
            assert_eq!(shown.queueing_delay, None);
            shown.segments.unwrap()
        });
        let mean = shares.sum::<f64>() / 200.0;
        assert!((mean - 10.0).abs() < 0.7, "{kind:?}: {mean}");
    }
}

#[test]
fn states_of_recovery_are_shown_by_their_names() {
    let reno = CongestionControlKind::Reno(reno::Params::default());
    let stack = stack(reno, Recovery::NewReno);
    let mut sent = 0;
    let mut pair = Pair::new(&stack, &LONG, |way, segment| {
        sent += u32::from(way == Way::ToClient && segment.len > 0);
        // One of many, and later all for a second.
        let lost = way == Way::ToClient && (sent == 60 || (400..500).contains(&sent));
        if lost { Fate::Drop } else { Fate::Pass }
    });
    pair.exchange(100, u64::MAX / 4, Time::from_millis(10));
    let mut seen: Vec<&str> = Vec::new();
    for number in 1..1000 {
        pair.go_on(Time::from_millis(5 * number));
        let name = pair.server.probe(&stack).recovery_state.name();
        if seen.last() != Some(&name) {
            seen.push(name);
        }
    }
    assert_eq!(seen[..3], ["open", "fast-recovery", "open"]);
    assert!(seen.contains(&"go-back"), "{seen:?}");
    assert!(
        seen.iter()
            .all(|name| ["open", "fast-recovery", "go-back"].contains(name))
    );
}
