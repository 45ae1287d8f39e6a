//! The base probability: a PI controller of the longer of the two delays.

use aqmlab_net::Time;

use super::{Overload, Rules};
use crate::aqm::happens;

/// What the controller works with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gains {
    pub(super) target: Time,
    pub(super) t_update: Time,
    /// Probability per second of delay, at each update.
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

impl Gains {
    /// Linux's, in steps of 1/256.
    pub(super) const LINUX: Self = Self {
        target: Time::from_millis(15),
        t_update: Time::from_millis(16),
        alpha: 41.0 / 256.0,
        beta: 819.0 / 256.0,
    };

    /// RFC 9332, appendix A.1: stable up to the round trip `max`.
    pub(super) fn for_rtt(max: Time, typical: Time) -> Self {
        let third = Time::from_nanos(max.as_nanos() / 3);
        let t_update = typical.min(third);
        let max_s = max.as_secs_f64();
        Self {
            target: typical,
            t_update,
            alpha: 0.1 * t_update.as_secs_f64() / (max_s * max_s),
            beta: 0.3 / max_s,
        }
    }
}

/// The controller and its probabilities, which change at ticks only.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    gains: Gains,
    coupling: f64,
    overload: Overload,
    rules: Rules,
    /// The base probability p', the square root of the classic one.
    pub(super) base: f64,
    /// k p', which may exceed 1.
    coupled: f64,
    overloaded: bool,
    /// The delay that the last update saw, in seconds.
    pub(super) previous: f64,
    /// The delays of the heads of both queues at the last update, L4S first, in seconds.
    delays: [f64; 2],
    next_tick: Time,
}

impl Controller {
    pub(super) fn new(gains: Gains, coupling: u32, overload: Overload, rules: Rules) -> Self {
        Self {
            gains,
            coupling: f64::from(coupling),
            overload,
            rules,
            base: 0.0,
            coupled: 0.0,
            overloaded: false,
            previous: 0.0,
            delays: [0.0; 2],
            next_tick: gains.t_update,
        }
    }

    /// Takes other parameters, and keeps its probabilities.
    pub(super) fn adopt(&mut self, fresh: &Self) {
        (self.gains, self.coupling) = (fresh.gains, fresh.coupling);
    }

    pub(super) const fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// An update: the heads of the two queues, L4S first, have waited for so long.
    pub(super) fn update(&mut self, now: Time, delays: [Time; 2]) {
        self.next_tick = now + self.gains.t_update;
        self.delays = delays.map(Time::as_secs_f64);
        let delay = self.delays[0].max(self.delays[1]);
        let gains = &self.gains;
        let change = gains.alpha * (delay - gains.target.as_secs_f64())
            + gains.beta * (delay - self.previous);
        self.set(self.base + change);
        self.previous = delay;
    }

    /// Sets the base probability, within its bounds.
    pub(super) fn set(&mut self, base: f64) {
        let most = match self.overload {
            Overload::Drop => 1.0,
            Overload::Overflow => self.coupling.recip(),
        };
        self.base = base.clamp(0.0, most);
        self.coupled = self.coupling * self.base;
        self.overloaded = self.overload == Overload::Drop
            && match self.rules {
                Rules::Linux => self.coupled > 1.0,
                Rules::Rfc => self.coupled >= 1.0,
            };
    }

    /// Whether marks are not enough.
    #[inline]
    pub(super) const fn is_overloaded(&self) -> bool {
        self.overloaded
    }

    /// The probability of a signal in the classic queue.
    pub(super) const fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// The probability of a mark in the L4S queue, unbounded.
    pub(super) const fn coupled(&self) -> f64 {
        self.coupled
    }

    /// A chance of the classic probability: two of its root.
    #[inline]
    pub(super) fn hits_classic(&self, draw: &mut impl FnMut() -> f64) -> bool {
        hits(self.base, draw) && hits(self.base, draw)
    }

    /// A chance of the coupled probability.
    #[inline]
    pub(super) fn hits_coupled(&self, draw: &mut impl FnMut() -> f64) -> bool {
        hits(self.coupled, draw)
    }

    pub(super) fn probe(&self, out: &mut Vec<f64>) {
        out.extend([self.base, self.classic(), self.coupled.min(1.0)]);
        out.extend(self.delays);
    }
}

/// A draw at most as large as the probability, as Linux compares them.
#[inline]
fn hits(probability: f64, draw: &mut impl FnMut() -> f64) -> bool {
    if probability > 0.0 && probability < 1.0 {
        draw() <= probability
    } else {
        happens(probability, draw)
    }
}

/// The RFC's recur(): every time that the sum of probabilities passes 1.
pub(super) fn recurs(sum: &mut f64, probability: f64) -> bool {
    *sum += probability;
    let hit = *sum > 1.0;
    if hit {
        *sum -= 1.0;
    }
    hit
}
