//! Whatever the network does, the stream arrives exactly once; and whatever arrives, nothing
//! panics.

use crate::net;

use aqmlab_net::{Bytes, Ecn, Time};
use aqmlab_tcp::{
    CongestionControlKind, Context, Endpoint, Flags, HostClock, Profile, Recovery, Segment,
};
use net::{Harm, Net, blocks};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

fn recoveries() -> impl Strategy<Value = Recovery> {
    select(vec![
        Recovery::Tahoe,
        Recovery::Reno,
        Recovery::NewReno,
        Recovery::Sack,
        Recovery::SackPipe,
        Recovery::RackTlp,
    ])
}

prop_compose! {
    fn stacks()(
        name in select(&Profile::NAMES[..]),
        congestion_control in select(CongestionControlKind::all()),
        recovery in recoveries(),
        ecn: bool,
        limited_transmit: bool,
        timestamps: bool,
        nagle: bool,
        mss in 100_u64..1500,
    ) -> Profile {
        Profile {
            congestion_control,
            recovery,
            ecn,
            limited_transmit,
            timestamps,
            nagle,
            mss: Bytes(mss),
            ..Profile::named(name).expect("a name from the list")
        }
    }
}

prop_compose! {
    fn harms()(
        loss in 0.0..0.25_f64,
        duplication in 0.0..0.3_f64,
        marking in 0.0..0.3_f64,
        jitter in 0_u64..60,
    ) -> Harm {
        Harm { loss, duplication, marking, jitter: Time::from_millis(jitter) }
    }
}

const LONG: Time = Time::from_secs(200_000);

proptest! {
    // The same cases every time: a change that breaks one of them is to blame, not chance.
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_stream_arrives_exactly_once(
        stack in stacks(),
        harm in harms(),
        writes in (1_u64..60_000, 0_u64..60_000),
        seed: u64,
    ) {
        let mut net = Net::new([&stack, &stack], [writes.0, writes.1], harm, seed);
        net.run(LONG);
        prop_assert!(net.received[1] <= writes.0 && net.received[0] <= writes.1);
        if !net.failed {
            prop_assert_eq!(net.received, [writes.1, writes.0], "at {}", net.now);
            prop_assert_eq!(net.eof, [true; 2]);
        }
    }

    #[test]
    fn stacks_that_differ_understand_each_other(
        (ours, theirs) in (stacks(), stacks()),
        harm in harms(),
        seed: u64,
    ) {
        let (mut ours, mut theirs) = (ours, theirs);
        for stack in [&mut ours, &mut theirs] {
            stack.handshake = true;
            // The window of both: it is not carried.
            stack.receive_buffer = Bytes(40_000);
        }
        let mut net = Net::new([&ours, &theirs], [30_000, 20_000], harm, seed);
        net.run(LONG);
        if !net.failed {
            prop_assert_eq!(net.received, [20_000, 30_000], "at {}", net.now);
        }
    }

    #[test]
    fn no_segment_panics(
        stack in stacks(),
        active: bool,
        segments in prop::collection::vec(garbage(), 1..80),
    ) {
        let host = HostClock::default();
        let mut out = Vec::new();
        let at = |now| Context { now, profile: &stack, host: &host };
        let mut end = if active {
            Endpoint::connect(at(Time::ZERO), &mut out)
        } else {
            Endpoint::listen(&stack)
        };
        let mut now = Time::ZERO;
        for (segment, wait) in segments {
            now += Time::from_millis(wait);
            if end.wake_at() <= now {
                end.on_timer(at(now), &mut out);
            }
            let events = end.on_segment(&segment, at(now), &mut out);
            if events.established {
                end.write(100_000, at(now), &mut out);
            }
            let sent = end.oldest_unacknowledged() + end.in_flight();
            prop_assert!(sent <= 100_002);
        }
    }
}

/// Any segment near the beginning of a connection, and how many milliseconds it comes after the one
/// before.
fn garbage() -> impl Strategy<Value = (Segment, u64)> {
    let number = || prop_oneof![0_u64..5, 0_u64..100_000, any::<u32>().prop_map(u64::from)];
    let sack = prop::collection::vec((0_u32..50_000, 0_u32..50_000), 0..5);
    (
        number(),
        number(),
        0_u32..3000,
        0_u8..64,
        sack,
        any::<bool>(),
        0_u64..3000,
    )
        .prop_map(|(seq, ack, len, flags, sack, ce, wait)| {
            let mut options = blocks(&sack);
            if flags & 1 == 1 {
                options.permit_sack();
            }
            let segment = Segment {
                seq,
                ack,
                len,
                // Resets end the game too soon to be frequent.
                flags: Flags(if flags < 60 { flags & 31 } else { flags }),
                ecn: if ce { Ecn::Ce } else { Ecn::Ect0 },
                options,
            };
            (segment, wait)
        })
}

/// A segment that goes again with every duplicate ACK, as overdue, breeds where the network copies
/// packets: before a round trip is measured it is overdue once.
#[test]
fn copies_of_resent_segments_do_not_breed() {
    let stack = Profile {
        congestion_control: CongestionControlKind::all()
            .into_iter()
            .find(|control| matches!(control, CongestionControlKind::Fast(_)))
            .unwrap(),
        recovery: Recovery::Tahoe,
        mss: Bytes(130),
        limited_transmit: true,
        ..Profile::named("rfc").unwrap()
    };
    let harm = Harm {
        loss: 0.104_988_961_331_958_41,
        duplication: 0.277_866_003_829_905_1,
        marking: 0.0,
        jitter: Time::from_millis(2),
    };
    let mut net = Net::new(
        [&stack, &stack],
        [13_521, 911],
        harm,
        13_631_411_063_667_251_621,
    );
    net.run(LONG);
    assert_eq!(net.received, [911, 13_521]);
}

/// A stream of more than 4 GiB: sequence numbers, acknowledgements and SACK blocks wrap.
#[test]
fn numbers_wrap_without_harm() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let stack = Profile {
            recovery,
            mss: Bytes(60_000),
            send_buffer: Bytes(3_000_000),
            receive_buffer: Bytes(3_000_000),
            ..Profile::named("rfc").unwrap()
        };
        let bytes = (1 << 32) + 100_000_000;
        let harm = Harm {
            loss: 0.01,
            ..Harm::NONE
        };
        let mut net = Net::new([&stack, &stack], [bytes, 0], harm, 5);
        net.run(LONG);
        assert!(net.lost > 100);
        assert_eq!(net.received, [0, bytes]);
    }
}
