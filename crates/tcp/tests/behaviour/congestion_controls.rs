//! What congestion controls do to a bottleneck of 10 Mbit/s and 40 ms whose queue never ends: Reno
//! fills the peer's window, those that look at delays stop where they mean to.

use aqmlab_net::{Bytes, RandomStream, Rate, Time};
use aqmlab_tcp::control::{
    bbr1, bbr3, fast, ledbat_plus_plus, prague, reno, santa_cruz, sync_tcp, vegas,
};
use aqmlab_tcp::{CongestionControlKind, DelayedAck, EcnEcho, EctOn, HostClock, Profile, Recovery};

use crate::behaviour::pair::{Fate, Pair, Way, at_first_repair};

const MSS: u64 = 1460;
const LINK: [(Option<Rate>, Time); 1] = [(Some(Rate::from_mbps(10)), Time::from_millis(20))];
/// Segments that fill the path without a queue: 41.232 ms of 1.2 ms each.
const PATH: f64 = 34.4;

fn stack(congestion_control: CongestionControlKind) -> Profile {
    Profile {
        congestion_control,
        recovery: Recovery::Sack,
        delayed_ack: DelayedAck::Off,
        ack_every: 1,
        send_buffer: Bytes(300 * MSS),
        receive_buffer: Bytes(300 * MSS),
        ..Profile::named("rfc").expect("a shipped profile")
    }
}

/// Mean and largest number of segments in flight over the last 20 of 60 s, and segments received.
fn in_flight(stack: &Profile, hosts: [HostClock; 2]) -> (f64, f64, u64) {
    let mut pair = Pair::new(stack, &LINK, |_, _| Fate::Pass);
    pair.hosts = hosts;
    let (mut sum, mut largest, mut count) = (0.0, 0.0_f64, 0.0);
    let mut next = Time::from_secs(40);
    pair.exchange(100, u64::MAX / 4, Time::from_secs(40));
    while next <= Time::from_secs(60) {
        pair.go_on(next);
        let out = pair.server.in_flight() as f64 / MSS as f64;
        (sum, largest, count) = (sum + out, largest.max(out), count + 1.0);
        next += Time::from_millis(7);
    }
    assert_eq!(pair.server.retransmissions().data, 0);
    (sum / count, largest, pair.client.next_expected() / MSS)
}

const SAME: [HostClock; 2] = [HostClock {
    slow: Time::ZERO,
    fast: Time::ZERO,
    offset: 0,
    drift: 0,
}; 2];

#[test]
fn reno_fills_any_queue() {
    let (mean, ..) = in_flight(
        &stack(CongestionControlKind::Reno(reno::Params::default())),
        SAME,
    );
    assert!(mean > 290.0, "{mean}");
}

#[test]
fn vegas_keeps_one_to_three_segments_in_the_queue() {
    let (mean, largest, received) = in_flight(
        &stack(CongestionControlKind::Vegas(vegas::Params::default())),
        SAME,
    );
    assert!((PATH..PATH + 4.0).contains(&mean), "{mean}");
    assert!(largest < PATH + 6.0, "{largest}");
    assert!(received > 45_000, "the link is busy: {received}");
}

#[test]
fn fast_keeps_alpha_segments_in_the_queue() {
    let fast = stack(CongestionControlKind::Fast(fast::Params {
        alpha: 20.0,
        beta: 20.0,
        ..fast::Params::default()
    }));
    let (mean, _, received) = in_flight(&fast, SAME);
    assert!((mean - PATH - 20.0).abs() < 3.0, "{mean}");
    assert!(received > 45_000, "the link is busy: {received}");
}

#[test]
fn santa_cruz_keeps_its_target_in_the_queue() {
    let (mean, largest, received) = in_flight(
        &stack(CongestionControlKind::SantaCruz(
            santa_cruz::Params::default(),
        )),
        SAME,
    );
    assert!((PATH + 1.0..PATH + 8.0).contains(&mean), "{mean}");
    assert!(largest < PATH + 10.0, "{largest}");
    assert!(received > 45_000, "the link is busy: {received}");
}

#[test]
fn sync_tcp_backs_off_before_the_queue_is_full_whatever_the_clocks_show() {
    let sync = Profile {
        initial_ssthresh: Bytes(60 * MSS),
        ..stack(CongestionControlKind::SyncTcp(sync_tcp::Params::default()))
    };
    let (reference, _, received) = in_flight(&sync, SAME);
    assert!((PATH..150.0).contains(&reference), "{reference}");
    assert!(received > 45_000, "the link is busy: {received}");
    let mut apart = SAME;
    apart[0].offset = 3_000_000_000;
    let (offset, ..) = in_flight(&sync, apart);
    assert_eq!(
        offset, reference,
        "the difference of the clocks cancels out"
    );
}

/// Segments received in the first 3 s, with this drift of the receiver's clock.
fn early(stack: &Profile, drift: i32) -> u64 {
    let mut pair = Pair::new(stack, &LINK, |_, _| Fate::Pass);
    pair.hosts = SAME;
    pair.hosts[0].drift = drift;
    pair.exchange(100, u64::MAX / 4, Time::from_secs(3));
    pair.client.next_expected() / MSS
}

/// The paper allows for clocks that drift apart by 500 us/s. Transfers of seconds do not notice.
/// In a long one the smallest transit time, which never expires, recedes: to a receiver whose
/// clock gains on the sender's the queue seems to grow for ever.
#[test]
fn sync_tcp_bears_drift_in_transfers_of_seconds() {
    let sync = Profile {
        initial_ssthresh: Bytes(60 * MSS),
        ..stack(CongestionControlKind::SyncTcp(sync_tcp::Params::default()))
    };
    let without = early(&sync, 0) as f64;
    for drift in [-500, 500] {
        let with = early(&sync, drift) as f64;
        assert!(
            (with / without - 1.0).abs() < 0.05,
            "drift {drift}: {with} against {without}"
        );
    }
    let mut behind = SAME;
    behind[0].drift = -500;
    let (mean, ..) = in_flight(&sync, behind);
    assert!((PATH..150.0).contains(&mean), "{mean}");
    let mut ahead = SAME;
    ahead[0].drift = 500;
    let (mean, ..) = in_flight(&sync, ahead);
    assert!(mean < 4.0, "{mean}");
}

/// A stack that keeps a record of each segment.
fn tracked(congestion_control: CongestionControlKind) -> Profile {
    Profile {
        recovery: Recovery::RackTlp,
        ..stack(congestion_control)
    }
}

fn bbrs() -> [Profile; 3] {
    let google = bbr3::Params {
        constants: bbr3::Constants::Google,
    };
    [
        tracked(CongestionControlKind::Bbr1(bbr1::Params::default())),
        tracked(CongestionControlKind::Bbr3(bbr3::Params::default())),
        tracked(CongestionControlKind::Bbr3(google)),
    ]
}

#[test]
fn bbr_fills_the_path_and_hardly_any_queue() {
    for stack in bbrs() {
        let (mean, largest, received) = in_flight(&stack, SAME);
        let name = &stack.congestion_control;
        assert!((0.8 * PATH..1.3 * PATH).contains(&mean), "{name:?}: {mean}");
        assert!(largest < 2.0 * PATH, "{name:?}: {largest}");
        assert!(received > 46_000, "{name:?}: the link is busy: {received}");
    }
}

/// The draft's target is 60 ms, here 50 segments; slowdowns cost a tenth of the rate at most.
#[test]
fn ledbat_plus_plus_keeps_its_delay_and_fills_the_link() {
    let params = ledbat_plus_plus::Params::default();
    let stack = tracked(CongestionControlKind::LedbatPlusPlus(params));
    let (mean, largest, received) = in_flight(&stack, SAME);
    assert!((PATH + 40.0..PATH + 54.0).contains(&mean), "{mean}");
    assert!(largest < PATH + 60.0, "{largest}");
    assert!(received > 45_000, "the link is busy: {received}");
}

#[test]
fn bbr_hardly_minds_random_losses() {
    for stack in bbrs() {
        let mut draws = RandomStream::new(1, "losses", 0);
        let mut pair = Pair::new(&stack, &LINK, |way, segment| {
            let data = way == Way::ToClient && segment.len > 0;
            if data && draws.uniform() < 0.01 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.exchange(100, u64::MAX / 4, Time::from_secs(1));
        pair.go_on(Time::from_secs(30));
        let received = pair.client.next_expected() / MSS;
        let name = &stack.congestion_control;
        // With some 40 segments in flight a single loss is more than version 3 bears in a probe.
        let least = match stack.congestion_control {
            CongestionControlKind::Bbr1(_) => 22_000,
            _ => 17_500,
        };
        assert!(received > least, "{name:?}: of 24,999: {received}");
        let timeouts = pair.server.retransmissions().timeouts;
        assert!(timeouts <= 3, "{name:?}: {timeouts}");
    }
}

/// PG08. Each segment is marked with probability p = 0.1, on a path of infinite rate. With a cut in every
/// round trip the window would be 2 / p = 20. But a cut is only due a round trip after the last one, and
/// then waits for a mark: n = W + 1 / p segments from cut to cut. What grows in between is taken back by
/// W alpha / 2 with alpha = p, so that W^2 (1 - (1 - p / 2)^2) = 2 (1 - p) (W + 1 / p): W = 25.7 before a cut
/// and 24.4 behind it.
#[test]
fn pg08_prague_has_the_window_that_its_cuts_leave_under_marks_at_random() {
    for ecn_echo in [EcnEcho::Accurate, EcnEcho::EachChange] {
        let stack = Profile {
            ecn: true,
            ecn_echo,
            ect_on: EctOn::AllData,
            ..tracked(CongestionControlKind::Prague(prague::Params::default()))
        };
        let mut draws = RandomStream::new(1, "marks", 0);
        let path = [(None, Time::from_millis(50))];
        let mut pair = Pair::new(&stack, &path, |way, segment| {
            let data = way == Way::ToClient && segment.len > 0;
            if data && draws.uniform() < 0.1 {
                Fate::Mark
            } else {
                Fate::Pass
            }
        });
        pair.exchange(100, u64::MAX / 4, Time::from_secs(1));
        pair.go_on(Time::from_secs(20));
        let before = pair.client.next_expected();
        pair.go_on(Time::from_secs(220));
        let rounds = 200.0 / 0.1;
        let mean = (pair.client.next_expected() - before) as f64 / MSS as f64 / rounds;
        assert!((mean / 25.0 - 1.0).abs() < 0.1, "{ecn_echo:?}: {mean}");
    }
}

/// PG06: a loss halves the window, which grows again only when it is repaired.
#[test]
fn pg06_a_loss_halves_pragues_window() {
    let stack = Profile {
        ecn: true,
        ecn_echo: EcnEcho::Accurate,
        initial_ssthresh: Bytes(40 * MSS),
        ..tracked(CongestionControlKind::Prague(prague::Params::default()))
    };
    let (mut pair, before, now) = at_first_repair(&stack);
    let halved = pair.server.ssthresh() as f64 / before as f64;
    assert!((halved - 0.5).abs() < 0.02, "{halved}");
    pair.go_on(now + Time::from_millis(150));
    let after = pair.server.cwnd() as f64 / before as f64;
    assert!((after - 0.5).abs() < 0.06, "{after}");
}

/// PG07: in congestion avoidance segments leave one by one, a round trip over the window apart.
#[test]
fn pg07_prague_spreads_its_window_over_the_round_trip() {
    let stack = Profile {
        ecn: true,
        ecn_echo: EcnEcho::Accurate,
        initial_ssthresh: Bytes(20 * MSS),
        ..tracked(CongestionControlKind::Prague(prague::Params::default()))
    };
    let path = [(None, Time::from_millis(50))];
    let mut pair = Pair::new(&stack, &path, |_, _| Fate::Pass);
    pair.exchange(100, u64::MAX / 4, Time::from_secs(3));
    let before = pair.server_data().len();
    pair.go_on(Time::from_millis(3100));
    let sent = pair.server_data();
    let gaps: Vec<f64> = sent[before..]
        .windows(2)
        .map(|pair| pair[1].0.as_secs_f64() - pair[0].0.as_secs_f64())
        .collect();
    let expected = 0.1 / (pair.server.cwnd() as f64 / MSS as f64);
    for gap in &gaps {
        assert!((gap / expected - 1.0).abs() < 0.15, "{gap} and {expected}");
    }
    assert!(gaps.len() > 30, "{}", gaps.len());
}
