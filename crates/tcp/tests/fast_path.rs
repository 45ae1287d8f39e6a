//! The fast path against the slow path: two end points get the same inputs, and one of them avoids the
//! fast path.

use std::fmt::Debug;

use aqmlab_net::{Ecn, RandomStream, Time};
use aqmlab_tcp::{
    CongestionControlKind, Context, EcnEcho, Endpoint, HostClock, Pacing, PacingBurst, Profile,
    Recovery, Segment,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Two end points that write to each other over a network that loses, marks and reorders.
struct Pair {
    profile: Profile,
    ends: [Endpoint; 2],
    /// Two ends with equal input that avoid the fast path.
    twins: [Endpoint; 2],
    /// What each end writes before it closes.
    bytes: [u64; 2],
    /// When, to which end, what.
    under_way: Vec<(Time, usize, Segment)>,
    draws: RandomStream,
    loss: f64,
    jitter: f64,
    segments: u32,
    /// How many of them took the fast path.
    fast: u32,
}

impl Pair {
    fn run(profile: &Profile, bytes: [u64; 2], loss: f64, jitter: f64, seed: u64) -> Self {
        let listening = |avoid| {
            let mut end = Endpoint::listen(profile);
            end.avoid_fast_path(avoid);
            end
        };
        let mut pair = Self {
            ends: [listening(false), listening(false)],
            twins: [listening(true), listening(true)],
            bytes,
            profile: profile.clone(),
            under_way: Vec::new(),
            draws: RandomStream::new(seed, "network", 0),
            loss,
            jitter,
            segments: 0,
            fast: 0,
        };
        pair.at(Time::ZERO, 0, |end, cx, out| end.ask(cx, out));
        if pair.ends[0].is_established() {
            pair.write(Time::ZERO, 0); // ns's one-way TCP has no handshake.
        }
        while pair.segments < 2000 && pair.step() {}
        pair
    }

    fn send(&mut self, now: Time, from: usize, out: Vec<Segment>) {
        for mut segment in out {
            if self.draws.uniform() < self.loss {
                continue;
            }
            if segment.ecn.is_capable() && self.draws.uniform() < self.loss {
                segment.ecn = Ecn::Ce;
            }
            let delay = 0.05 + self.draws.uniform() * self.jitter;
            let arrives = now + Time::from_secs_f64(delay);
            self.under_way.push((arrives, 1 - from, segment));
        }
    }

    /// An input to an end and to its twin: what is sent, what comes of it and what is left are equal.
    fn at<T: Debug + PartialEq>(
        &mut self,
        now: Time,
        end: usize,
        act: impl Fn(&mut Endpoint, Context<'_>, &mut Vec<Segment>) -> T,
    ) -> T {
        let (host, mut out, mut twins_out) = (HostClock::default(), Vec::new(), Vec::new());
        let cx = Context {
            now,
            profile: &self.profile,
            host: &host,
        };
        let result = act(&mut self.ends[end], cx, &mut out);
        assert_eq!(act(&mut self.twins[end], cx, &mut twins_out), result);
        assert_eq!(twins_out, out);
        let mut twin = self.twins[end].clone();
        twin.avoid_fast_path(false);
        assert_eq!(format!("{twin:?}"), format!("{:?}", self.ends[end]));
        self.send(now, end, out);
        result
    }

    fn write(&mut self, now: Time, end: usize) {
        let bytes = self.bytes[end];
        self.at(now, end, |end, cx, out| {
            end.write(bytes, cx, out);
            end.close(cx, out);
        });
    }

    /// What comes next: an arrival or a timer. False if nothing does.
    fn step(&mut self) -> bool {
        let wakes = [0, 1].map(|end| (self.ends[end].wake_at(), end));
        let (wake, sleeper) = wakes.into_iter().min().expect("two ends");
        let first = (0..self.under_way.len()).min_by_key(|&n| self.under_way[n].0);
        match first.filter(|&n| self.under_way[n].0 <= wake) {
            Some(n) => {
                let (now, end, segment) = self.under_way.remove(n);
                let mut copy = self.ends[end].clone();
                self.fast += u32::from(is_fast(&mut copy, &segment, now, &self.profile));
                let events = self.at(now, end, |end, cx, out| end.on_segment(&segment, cx, out));
                if events.established {
                    self.write(now, end);
                }
                self.segments += 1;
            }
            None if wake == Time::NEVER => return false,
            None => {
                self.at(wake, sleeper, |end, cx, out| end.on_timer(cx, out));
            }
        }
        true
    }
}

/// Whether the fast path takes the segment.
fn is_fast(end: &mut Endpoint, segment: &Segment, now: Time, profile: &Profile) -> bool {
    let host = HostClock::default();
    let cx = Context {
        now,
        profile,
        host: &host,
    };
    end.fast_path(segment, &cx, &mut Vec::new()).is_some()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_path_does_what_the_slow_path_does(
        name in select(&Profile::NAMES[..]),
        recovery in select(vec![
            Recovery::Reno,
            Recovery::NewReno,
            Recovery::Sack,
            Recovery::RackTlp,
        ]),
        (ecn, timestamps, accurate) in any::<(bool, bool, bool)>(),
        (pacing, pacing_burst) in (
            select(vec![Pacing::Control, Pacing::Linux]),
            select(vec![PacingBurst::Segment, PacingBurst::Linux]),
        ),
        control in select(CongestionControlKind::all()),
        bytes in (1..200_000_u64, 1..20_000_u64),
        (loss, jitter) in (0.0..0.1_f64, 0.0..0.02_f64),
        seed: u64,
    ) {
        let named = Profile::named(name).expect("a name from the list");
        let ecn_echo = match recovery {
            Recovery::RackTlp if accurate => EcnEcho::Accurate,
            _ => EcnEcho::UntilCwr,
        };
        let congestion_control = match recovery {
            Recovery::RackTlp => control,
            _ => named.congestion_control,
        };
        let profile = Profile {
            recovery,
            congestion_control,
            ecn,
            ecn_echo,
            timestamps,
            pacing,
            pacing_burst,
            ..named
        };
        let pair = Pair::run(&profile, bytes.into(), loss, jitter, seed);
        prop_assert!(pair.segments > 0 || loss > 0.0);
    }
}

#[test]
fn nearly_all_segments_of_a_transfer_take_the_fast_path() {
    for name in ["rfc", "linux"] {
        let profile = Profile::named(name).expect("a shipped profile");
        let pair = Pair::run(&profile, [1_000_000, 0], 0.0, 0.0, 1);
        let others = pair.segments - pair.fast;
        assert!(
            pair.fast > 900 && others < 20,
            "{name}: {} and {others}",
            pair.fast
        );
    }
}
