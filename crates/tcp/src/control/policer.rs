//! BBR's detector of policers: the long-term bandwidth of `tcp_bbr.c` of Linux. What a policer drops
//! says nothing of a queue, so the rate that it lets through is measured between losses and kept.

use aqmlab_net::Time;

/// An interval of measurement has so many rounds, and ends with a loss.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 16;
/// Share of what is delivered that is lost in an interval, at least (Linux: 50 of 256).
const LOSS: f64 = 50.0 / 256.0;
/// Two intervals agree when their bandwidths differ by no more than this share, or by 4 kbit/s.
const RATIO: f64 = 1.0 / 8.0;
const DIFFERENCE: f64 = 500.0;
/// Rounds for which the bandwidth is used before the path is probed again.
const USED_ROUNDS: u32 = 48;

/// What the detector sees of an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Time,
    /// Bytes since the connection began.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// A loss was found by this ACK.
    pub(super) loses: bool,
    pub(super) round_start: bool,
    pub(super) app_limited: bool,
    /// The control cycles through its gains.
    pub(super) probes_bw: bool,
}

/// The state of the detector; bytes, seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    measures: bool,
    is_used: bool,
    rounds: u32,
    /// 0: no interval yet.
    bw: f64,
    began: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The bandwidth of the policer while it is in use.
    pub(super) fn bw(&self) -> Option<f64> {
        self.is_used.then_some(self.bw)
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes an ACK in; true: the path is to be probed again.
    pub(super) fn on_sample(&mut self, seen: &Seen) -> bool {
        let rounds = u32::from(seen.round_start);
        if self.is_used {
            if seen.probes_bw {
                self.rounds += rounds;
                if self.rounds >= USED_ROUNDS {
                    self.forget();
                    return true;
                }
            }
            return false;
        }
        if !self.measures {
            if !seen.loses {
                return false;
            }
            self.begin(seen);
            self.measures = true;
        }
        if seen.app_limited {
            self.forget();
            return false;
        }
        self.rounds += rounds;
        if self.rounds > MOST_ROUNDS {
            self.forget();
        } else if self.rounds >= LEAST_ROUNDS && seen.loses {
            self.end(seen);
        }
        false
    }

    fn begin(&mut self, seen: &Seen) {
        (self.began, self.rounds) = (seen.now, 0);
        (self.delivered, self.lost) = (seen.delivered, seen.lost);
    }

    /// An interval ends where enough was lost in it. Two that agree are a policer.
    fn end(&mut self, seen: &Seen) {
        let delivered = (seen.delivered - self.delivered) as f64;
        let lost = (seen.lost - self.lost) as f64;
        let lasted = seen.now.saturating_sub(self.began);
        if delivered == 0.0 || lost < LOSS * delivered || lasted < Time::from_millis(1) {
            return;
        }
        let bw = delivered / lasted.as_secs_f64();
        let difference = (bw - self.bw).abs();
        if self.bw > 0.0 && (difference <= RATIO * self.bw || difference <= DIFFERENCE) {
            self.bw = f64::midpoint(bw, self.bw);
            (self.is_used, self.rounds) = (true, 0);
            return;
        }
        self.bw = bw;
        self.begin(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a tenth of a second, each with 10,000 bytes delivered and a share of them lost.
    struct Rounds {
        policer: Policer,
        seen: Seen,
    }

    impl Rounds {
        fn new() -> Self {
            Self {
                policer: Policer::default(),
                seen: Seen {
                    now: Time::ZERO,
                    delivered: 0,
                    lost: 0,
                    loses: true,
                    round_start: true,
                    app_limited: false,
                    probes_bw: true,
                },
            }
        }

        fn pass(&mut self, delivered: u64, lost: u64) -> bool {
            self.seen.now += Time::from_millis(100);
            self.seen.delivered += delivered;
            self.seen.lost += lost;
            self.seen.loses = lost > 0;
            self.policer.on_sample(&self.seen)
        }

        fn pass_many(&mut self, rounds: u32, delivered: u64, lost: u64) {
            for _ in 0..rounds {
                assert!(!self.pass(delivered, lost));
            }
        }
    }

    #[test]
    fn two_intervals_that_lose_a_fifth_and_agree_are_a_policer_for_48_rounds() {
        let mut path = Rounds::new();
        // The first loss begins an interval, and its round counts; three more, and a loss ends it.
        path.pass_many(4, 10_000, 2_000);
        assert_eq!(path.policer.bw(), None, "a single interval");
        path.pass_many(3, 11_000, 2_200);
        assert_eq!(path.policer.bw(), None, "three rounds");
        path.pass_many(1, 11_000, 2_200);
        assert_eq!(path.policer.bw(), Some(105_000.0), "the mean of both");
        path.pass_many(47, 10_000, 0);
        assert_eq!(path.policer.bw(), Some(105_000.0));
        assert!(path.pass(10_000, 0), "the 48th round");
        assert_eq!(path.policer.bw(), None);
    }

    #[test]
    fn less_loss_or_other_bandwidths_are_no_policer() {
        let mut path = Rounds::new();
        path.pass_many(100, 10_000, 1_900);
        assert_eq!(path.policer.bw(), None, "19 %");
        let mut path = Rounds::new();
        for delivered in [10_000, 20_000, 10_000, 20_000] {
            path.pass_many(4, delivered, 5_000);
        }
        assert_eq!(path.policer.bw(), None, "one is twice the other");
    }

    #[test]
    fn an_application_that_limits_and_a_lack_of_losses_end_the_measurement() {
        let mut path = Rounds::new();
        path.pass_many(4, 10_000, 2_000);
        path.seen.app_limited = true;
        path.pass_many(1, 10_000, 2_000);
        path.seen.app_limited = false;
        path.pass_many(4, 10_000, 2_000);
        assert_eq!(path.policer.bw(), None, "it has begun anew");
        path.pass_many(17, 10_000, 0);
        path.pass_many(4, 10_000, 2_000);
        assert_eq!(path.policer.bw(), None, "more than 16 rounds");
    }
}
