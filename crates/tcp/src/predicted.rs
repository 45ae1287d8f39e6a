//! Header prediction (Van Jacobson, 1990): two kinds of segments are nearly all that an end point
//! sees, the next data, which may end with a FIN, and the acknowledgement of new data. They take a
//! short way here; it leaves out what cannot matter for them and calls the same code for the rest.

use aqmlab_net::Ecn;

use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::receiver::Delivered;
use crate::recovery::RecoveryState;
use crate::segment::{Flags, NO_NUMBER, Outbox, Segment};

impl Endpoint {
    /// Takes a segment of an established connection if it is one of the two kinds and nothing
    /// unusual is going on: what the application gets. Else it is left to
    /// [`slow_path`](Self::slow_path), and nothing has changed.
    #[inline(always)]
    pub fn fast_path(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Delivered> {
        let fin = segment.flags.has(Flags::FIN);
        let flags = segment.flags.without(Flags::FIN);
        if (flags != Flags::ACK && !self.counts_marks_by(flags))
            || !self.is_established()
            || self.ecn.hold
            || !segment.options.is_empty()
        {
            return None;
        }
        if self.unpredicted {
            return self.on_expected(segment, cx, out);
        }
        let mut received = 0;
        if (segment.len == 0) & !fin {
            // An ACK of new data, while none is lost.
            let acknowledges = self.una < segment.ack && segment.ack <= self.max;
            let is_open = self.recovery_state == RecoveryState::Open;
            if !acknowledges || !is_open || segment.seq > NO_NUMBER {
                return None;
            }
            self.last_received = cx.now;
            self.on_new_ack(segment, false, cx, out);
        } else {
            // The next data, which may be the first to acknowledge what it answers.
            received = u64::from(segment.len);
            let is_next = self.receiver.is_next(segment.seq, received, cx.profile);
            if !is_next || segment.ecn == Ecn::Ce {
                return None;
            }
            if segment.ack > self.una {
                let is_open = self.recovery_state == RecoveryState::Open;
                if segment.ack > self.max || !is_open {
                    return None;
                }
                self.last_received = cx.now;
                self.on_other_new_ack(segment, false, cx, out);
            } else if received == 0 || !cx.profile.idle_since_ack {
                self.last_received = cx.now;
            }
            self.dup_acks = 0;
            if fin {
                self.receiver.on_next_and_fin(received);
            } else {
                self.receiver.on_next(received, cx);
            }
        }
        self.output(cx, out);
        Some(Delivered { received, eof: fin })
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{RandomStream, Time};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::control::CongestionControlKind;
    use crate::endpoint::Events;
    use crate::profile::{EcnEcho, Pacing, PacingBurst, Profile, Recovery};
    use crate::rto::HostClock;

    /// Two end points that write to each other over a network that loses, marks and reorders.
    struct Pair {
        profile: Profile,
        ends: [Endpoint; 2],
        /// What each end writes before it closes.
        bytes: [u64; 2],
        /// When, to which end, what.
        under_way: Vec<(Time, usize, Segment)>,
        draws: RandomStream,
        loss: f64,
        jitter: f64,
        segments: u32,
        predicted: u32,
    }

    impl Pair {
        fn run(profile: Profile, bytes: [u64; 2], loss: f64, jitter: f64, seed: u64) -> Self {
            let (host, now) = (HostClock::default(), Time::ZERO);
            let mut out = Vec::new();
            let cx = Context {
                now,
                profile: &profile,
                host: &host,
            };
            let client = Endpoint::connect(cx, &mut out);
            let mut pair = Self {
                ends: [client, Endpoint::listen(&profile)],
                bytes,
                profile,
                under_way: Vec::new(),
                draws: RandomStream::new(seed, "network", 0),
                loss,
                jitter,
                segments: 0,
                predicted: 0,
            };
            pair.send(now, 0, &mut out);
            if pair.ends[0].is_established() {
                pair.write(now, 0); // ns's one-way TCP has no handshake.
            }
            while pair.segments < 2000 && pair.step() {}
            pair
        }

        fn send(&mut self, now: Time, from: usize, out: &mut Vec<Segment>) {
            for mut segment in out.drain(..) {
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

        fn at<T>(
            &mut self,
            now: Time,
            end: usize,
            act: impl FnOnce(&mut Endpoint, Context<'_>, &mut Vec<Segment>) -> T,
        ) -> T {
            let (host, mut out) = (HostClock::default(), Vec::new());
            let cx = Context {
                now,
                profile: &self.profile,
                host: &host,
            };
            let result = act(&mut self.ends[end], cx, &mut out);
            self.send(now, end, &mut out);
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
                    let (events, predicted) =
                        self.at(now, end, |end, cx, out| deliver(end, &segment, cx, out));
                    if events.established {
                        self.write(now, end);
                    }
                    self.segments += 1;
                    self.predicted += u32::from(predicted);
                }
                None if wake == Time::NEVER => return false,
                None => {
                    self.at(wake, sleeper, |end, cx, out| end.on_timer(cx, out));
                }
            }
            true
        }
    }

    /// Hands a segment over, and to a copy that goes the long way; what it told, and
    /// whether it was predicted.
    fn deliver(
        end: &mut Endpoint,
        segment: &Segment,
        cx: Context<'_>,
        out: &mut Vec<Segment>,
    ) -> (Events, bool) {
        let predicted = end.clone().fast_path(segment, &cx, &mut Vec::new());
        let (mut other, mut other_out) = (end.clone(), Vec::new());
        let expected = other.slow_path(segment, &cx, &mut other_out);
        let events = end.on_segment(segment, cx, out);
        assert_eq!(events, expected, "{segment:?}");
        assert_eq!(*out, other_out, "{segment:?}");
        assert_eq!(format!("{end:?}"), format!("{other:?}"), "{segment:?}");
        (events, predicted.is_some())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn the_short_way_does_what_the_long_one_does(
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
            let pair = Pair::run(profile, bytes.into(), loss, jitter, seed);
            prop_assert!(pair.segments > 0 || loss > 0.0);
        }
    }

    #[test]
    fn nearly_all_segments_of_a_transfer_are_predicted() {
        for name in ["rfc", "linux"] {
            let profile = Profile::named(name).expect("a shipped profile");
            let pair = Pair::run(profile, [1_000_000, 0], 0.0, 0.0, 1);
            let others = pair.segments - pair.predicted;
            assert!(
                pair.predicted > 900 && others < 20,
                "{name}: {} and {others}",
                pair.predicted
            );
        }
    }
}
