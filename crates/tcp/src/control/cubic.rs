//! CUBIC. RFC 9438 (L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, 2023), with the constants of Linux and
//! HyStart (S. Ha, I. Rhee, 2008). Departures: [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, Problem, check};
use aqmlab_net::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlMetrics, ControlParameters, Decrease,
};
use super::history::History;
use super::window::Window;
use crate::profile::DecreaseBase;

/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// C: how fast the window grows away from W_max, in segments per second cubed.
    pub c: f64,
    /// Share of the window that congestion leaves.
    pub beta: f64,
    /// Whether slow start may end before a loss (HyStart).
    pub hystart: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            hystart: true,
        }
    }
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "CUBIC",
        paper: "L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, CUBIC for Fast and Long-Distance Networks, \
                RFC 9438, 2023; S. Ha, I. Rhee, Hybrid Slow Start, 2008 (HyStart)",
        purpose: "Grows by the time since the last congestion, not by the round trip: flat near the \
                  window that was lost, steep away from it. The default of Linux.",
        departures: &[
            "The round trip of the target (section 4.2) is the smallest one seen, as in Linux.",
            "HyStart as Linux words it: slow start ends at a train of ACKs that lasts longer than half \
             of the smallest round trip, or at round trips that have grown by an eighth of it.",
            "Before the first congestion the window grows by a twentieth per round trip at least, as \
             in Linux.",
            "Section 4.6 asks for a share of FlightSize; `multiplicative_decrease_base` of the stack \
             says what it is a share of, as for Reno.",
        ],
        memory: "when each segment in flight was sent",
    };

    fn check(&self) -> Result<(), Problem> {
        check::above("c", self.c, 0.0)?;
        check::share("beta", self.beta)
    }
}

impl ControlParameters for Params {
    type Control = Cubic;

    const LINUX: Option<&'static str> = Some("cubic");
}

/// HyStart: the smallest window, in segments, that it ends the growth of.
const HYSTART_LOW_WINDOW: f64 = 16.0;
/// HyStart: ACKs closer than this form a train.
const HYSTART_SPACING: Time = Time::from_millis(2);
/// HyStart: round trips that a round must show before they count.
const HYSTART_SAMPLES: u32 = 8;
/// HyStart: bounds of the growth of the round trip that counts, in seconds.
const HYSTART_DELAY: (f64, f64) = (0.004, 0.016);
/// Before the first congestion: the least growth per round trip (Linux).
const SEARCH_GROWTH: f64 = 0.05;

/// The state of CUBIC; windows in segments.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    history: History,
    /// The smallest round trip seen, in seconds.
    min_rtt: f64,
    /// The window before the last congestion, lowered by fast convergence; 0: none yet.
    w_max: f64,
    /// The window before the last congestion.
    cwnd_prior: f64,
    /// Since when the window follows the cubic function.
    epoch: Option<Time>,
    /// The plateau of that function, and the seconds until it is reached.
    origin: f64,
    k: f64,
    /// What Reno would have (section 4.3).
    w_est: f64,
    /// The next epoch begins at its plateau (section 4.8).
    from_plateau: bool,
    last_ack: Time,
    round: Round,
}

/// A round of HyStart.
#[derive(Clone, Copy, Debug)]
struct Round {
    end: u64,
    start: Time,
    /// The last ACK of the train that began with the round.
    train: Time,
    samples: u32,
    min_rtt: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            history: History::default(),
            min_rtt: f64::INFINITY,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            origin: 0.0,
            k: 0.0,
            w_est: 0.0,
            from_plateau: false,
            last_ack: Time::ZERO,
            round: Round::begin(0, Time::ZERO),
        }
    }
}

impl Round {
    const fn begin(end: u64, now: Time) -> Self {
        Self {
            end,
            start: now,
            train: now,
            samples: 0,
            min_rtt: f64::INFINITY,
        }
    }

    /// Whether slow start is to end: the path is full.
    fn is_full(&mut self, rtt: Option<f64>, min_rtt: f64, now: Time) -> bool {
        if now - self.train <= HYSTART_SPACING {
            self.train = now;
            if (now - self.start).as_secs_f64() > min_rtt / 2.0 {
                return true;
            }
        }
        if let Some(rtt) = rtt
            && self.samples < HYSTART_SAMPLES
        {
            self.samples += 1;
            self.min_rtt = self.min_rtt.min(rtt);
        }
        let growth = (min_rtt / 8.0).clamp(HYSTART_DELAY.0, HYSTART_DELAY.1);
        self.samples >= HYSTART_SAMPLES && self.min_rtt > min_rtt + growth
    }
}

impl Cubic {
    /// The round trip that this ACK measures, in seconds.
    fn measure(&mut self, ack: &Ack<'_>) -> Option<f64> {
        let sent = self.history.acknowledge(ack.una)?;
        if sent.resent {
            return None;
        }
        let rtt = (ack.now - sent.at).as_secs_f64();
        self.min_rtt = self.min_rtt.min(rtt);
        Some(rtt)
    }

    fn slow_start(
        &mut self,
        params: &Params,
        window: &mut Window,
        ack: &Ack<'_>,
        rtt: Option<f64>,
    ) {
        if ack.una > self.round.end {
            self.round = Round::begin(ack.max, ack.now);
        }
        window.slow_start(ack.acked, ack.profile);
        let segments = window.cwnd / ack.profile.mss.0 as f64;
        if params.hystart
            && segments >= HYSTART_LOW_WINDOW
            && self.round.is_full(rtt, self.min_rtt, ack.now)
        {
            window.ssthresh = window.cwnd;
        }
    }

    fn begin_epoch(&mut self, cwnd: f64, c: f64, now: Time) {
        self.epoch = Some(now);
        self.w_est = cwnd;
        (self.origin, self.k) = if self.from_plateau || cwnd >= self.w_max {
            (cwnd, 0.0)
        } else {
            (self.w_max, libm::cbrt((self.w_max - cwnd) / c))
        };
        self.from_plateau = false;
    }

    /// Section 4.2 to 4.5: the growth for `acked` segments, in segments.
    fn avoid(&mut self, params: &Params, cwnd: f64, acked: f64, now: Time) -> f64 {
        let Params { c, beta, .. } = *params;
        if self.epoch.is_none() {
            self.begin_epoch(cwnd, c, now);
        }
        let t = now - self.epoch.unwrap_or(now);
        let curve = |t: f64| {
            let x = t - self.k;
            c * x * x * x + self.origin
        };
        let rtt = if self.min_rtt.is_finite() {
            self.min_rtt
        } else {
            0.0
        };
        let target = curve(t.as_secs_f64() + rtt).clamp(cwnd, 1.5 * cwnd);
        let alpha = if self.w_est >= self.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - beta) / (1.0 + beta)
        };
        self.w_est += alpha * acked / cwnd;
        if curve(t.as_secs_f64()) < self.w_est {
            return (self.w_est - cwnd).max(0.0);
        }
        let mut step = (target - cwnd) / cwnd * acked;
        if self.w_max == 0.0 {
            step = step.max(SEARCH_GROWTH * acked);
        }
        step
    }
}

impl CongestionControl for Cubic {
    type Params = Params;

    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        // Time without anything in flight is none in which the window could have grown.
        if self.history.len() == 0
            && let Some(epoch) = self.epoch
            && self.last_ack > epoch
        {
            self.epoch = Some(epoch + (now - self.last_ack));
        }
        self.history.on_send(seq, end, resent, now);
    }

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        let rtt = self.measure(ack);
        self.last_ack = ack.now;
        if window.in_slow_start(ack.profile) {
            self.slow_start(params, window, ack, rtt);
            return;
        }
        let mss = ack.profile.mss.0 as f64;
        let step = self.avoid(params, window.cwnd / mss, ack.acked as f64 / mss, ack.now);
        window.cwnd += step * mss;
    }

    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        self.measure(ack);
        self.last_ack = ack.now;
    }

    /// Section 4.6 and 4.7.
    fn on_congestion(
        &mut self,
        params: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        let beta = params.beta;
        let cwnd = window.cwnd / congestion.profile.mss.0 as f64;
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + beta) / 2.0
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.from_plateau = congestion.cause == Cause::Timeout;
        // RFC 9438, section 4.6: flight_size, or cwnd, as implementations do.
        let before = match congestion.profile.multiplicative_decrease_base {
            DecreaseBase::FlightSize => congestion.flight,
            DecreaseBase::Cwnd | DecreaseBase::FractionalCwnd => congestion.window,
        };
        Decrease::Bytes(beta * before as f64)
    }

    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: None,
            segments: Some(self.w_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Bytes;

    use super::*;
    use crate::profile::Profile;

    const MSS: u64 = 1000;

    fn profile() -> Profile {
        Profile {
            mss: Bytes(MSS),
            ..Profile::named("linux").unwrap()
        }
    }

    fn congestion(profile: &Profile, segments: u64) -> Congestion<'_> {
        Congestion {
            now: Time::ZERO,
            profile,
            flight: segments * MSS,
            window: segments * MSS,
            cause: Cause::Loss,
        }
    }

    fn window(segments: f64) -> Window {
        Window {
            cwnd: segments * MSS as f64,
            ssthresh: 0.0,
        }
    }

    #[test]
    fn congestion_sets_w_max_with_fast_convergence() {
        let profile = profile();
        let mut cubic = Cubic::default();
        let ssthresh = cubic.on_congestion(
            &Params::default(),
            &window(100.0),
            &congestion(&profile, 100),
        );
        assert_eq!((ssthresh, cubic.w_max), (Decrease::Bytes(70_000.0), 100.0));
        cubic.on_congestion(&Params::default(), &window(80.0), &congestion(&profile, 80));
        assert_eq!(cubic.w_max, 80.0 * 0.85);
    }

    /// Feeds an ACK per segment for `seconds`, a window per round trip; the window at the end.
    fn run(cubic: &mut Cubic, window: &mut Window, rtt: f64, seconds: f64, profile: &Profile) {
        let (mut now, mut una) = (0.0, 1);
        while now < seconds {
            let round = (window.cwnd / MSS as f64) as u64;
            for n in 0..round {
                cubic.on_send(una + n * MSS, una + (n + 1) * MSS, false, at(now));
            }
            let max = una + round * MSS;
            now += rtt;
            for _ in 0..round {
                una += MSS;
                let ack = Ack {
                    now: at(now),
                    profile,
                    acked: MSS,
                    una,
                    max,
                };
                cubic.on_ack(&Params::default(), window, &ack);
            }
        }
    }

    fn at(seconds: f64) -> Time {
        Time::from_secs_f64(seconds)
    }

    #[test]
    fn the_window_follows_the_cubic_function() {
        let profile = profile();
        let mut cubic = Cubic::default();
        cubic.on_congestion(
            &Params::default(),
            &window(1000.0),
            &congestion(&profile, 1000),
        );
        let mut after = window(700.0);
        run(&mut cubic, &mut after, 0.1, 6.0, &profile);
        // The epoch begins with the first ACK, at 0.1 s; K = cbrt(300 / 0.4) = 9.086 s.
        let x: f64 = 6.0 - 0.1 - libm::cbrt(300.0 / 0.4);
        let expected = 0.4 * x * x * x + 1000.0;
        let found = after.cwnd / MSS as f64;
        assert!((found - expected).abs() < 3.0, "{found} against {expected}");
    }

    #[test]
    fn on_a_short_path_the_window_is_that_of_an_aimd() {
        let profile = profile();
        let mut cubic = Cubic::default();
        cubic.on_congestion(&Params::default(), &window(20.0), &congestion(&profile, 20));
        let mut after = window(14.0);
        // 10 round trips of 1 ms: 10 times 0.529 segments, where the cubic function gives none.
        run(&mut cubic, &mut after, 0.001, 0.0095, &profile);
        let found = after.cwnd / MSS as f64;
        assert!((found - 19.29).abs() < 0.3, "{found}");
    }

    #[test]
    fn hystart_ends_slow_start_when_round_trips_grow() {
        let profile = profile();
        let mut cubic = Cubic::default();
        let mut growing = Window {
            cwnd: 20.0 * MSS as f64,
            ssthresh: 1e9,
        };
        run(&mut cubic, &mut growing, 0.1, 0.05, &profile);
        assert_eq!(growing.cwnd, 40.0 * MSS as f64);
        assert!(growing.in_slow_start(&profile));
        cubic.min_rtt = 0.08;
        run(&mut cubic, &mut growing, 0.1, 0.05, &profile);
        assert!(!growing.in_slow_start(&profile));
    }
}
