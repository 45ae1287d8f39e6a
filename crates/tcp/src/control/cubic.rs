//! CUBIC. RFC 9438 (L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, 2023), with the constants of Linux and
//! HyStart (S. Ha, I. Rhee, 2008). Departures: [`Parameters::ABOUT`].

mod whole;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;
use serde::{Deserialize, Serialize};

use super::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlMetrics, ControlParameters, Decrease, Sample,
};
use super::history::History;
use super::window::Window;
use crate::profile::{DecreaseBase, Pacing, Profile, RackRules};
use whole::Count;

/// Parameters of CUBIC.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Constant C of the cubic function, in segments per second cubed. A larger value makes the
    /// window grow faster.
    #[param(default = 0.4, above = 0.0)]
    pub c: f64,
    /// Factor on the window at a loss. A smaller value gives other flows a larger share.
    #[param(default = 0.7, above = 0.0, below = 1.0)]
    pub beta: f64,
    /// If true, HyStart can end slow start before a loss occurs.
    #[param(default = true)]
    pub hystart: bool,
    /// Round-trip time for the target window (RFC 9438, section 4.2).
    #[param(default, unwritten)]
    pub rtt: TargetRtt,
    /// Factor on the window at an ECN echo. RFC 8511 proposes 0.85. Default: value of `beta`.
    #[param(above = 0.0, below = 1.0, unwritten)]
    pub beta_ecn: Option<f64>,
    /// Minimum growth of the window per round trip, as a fraction of the window. The minimum
    /// applies while W_max has no value, for example after HyStart ends the first slow start. RFC
    /// 9438 has no such minimum.
    #[param(default = SEARCH_GROWTH, least = 0.0, most = 1.0, unwritten)]
    pub search_growth: f64,
    /// If true, the cubic function includes the time in which the flow does not use its whole
    /// window, as in Linux. If false, the function excludes this time (RFC 9438, section 5.8).
    #[param(default = true, unwritten)]
    pub counts_unused_time: bool,
    /// Method to compute W_est, the estimate of the window of a Reno flow (RFC 9438, section 4.3).
    #[param(default, unwritten)]
    pub reno_estimate: RenoEstimate,
}

/// How CUBIC estimates the window that Reno would have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RenoEstimate {
    /// W_est grows by 3 (1 - beta) / (1 + beta) segments per round trip (RFC 8312, section 4.2;
    /// Linux).
    #[default]
    Rfc8312,
    /// W_est grows as with `rfc8312` up to the window size before the last congestion event. Above
    /// this size, W_est grows by one segment per round trip.
    Rfc9438,
}

/// Which round-trip time CUBIC uses in its window target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetRtt {
    /// Minimum measured round-trip time, as in Linux.
    #[default]
    Min,
    /// Smoothed round-trip time (RFC 9438, section 4.2). It needs `recovery = "rack-tlp"` in the
    /// TCP stack.
    Smoothed,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "CUBIC",
        paper: "L. Xu et al., CUBIC for Fast and Long-Distance Networks, RFC 9438, 2023; S. Ha, I. \
                Rhee, Hybrid Slow Start, 2008 (HyStart)",
        purpose: "The congestion window is a cubic function of the time since the last congestion \
                  event. W_max is the window at that event. The window grows slowly near W_max \
                  and faster away from W_max.",
        departures: &[
            "The defaults follow Linux. RFC 9438 needs `rtt = \"smoothed\"`, `counts_unused_time = \
             false`, `search_growth = 0.0` and `reno_estimate = \"rfc9438\"`.",
            "HyStart follows Linux. After HyStart ends a slow start, it stays off until the \
             next retransmission timeout.",
            "`multiplicative_decrease_base` of the TCP stack selects the base of the \
             multiplicative decrease: the window or FlightSize (RFC 9438, section 4.6).",
            "Profile `linux` sets `rack_rules = \"linux\"`. CUBIC then also follows Linux in its \
             units, retransmission timeouts, spurious congestion events and minimum round-trip \
             time.",
        ],
        memory: "the send time of each segment in flight",
    };
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
/// What a share of a window may lack to the next whole segment by the arithmetic of binary fractions.
const ROUNDING: f64 = 1e-9;
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
    /// HyStart has ended a slow start.
    found: bool,
    /// The smoothed round trip in seconds, where the stack tells it.
    smoothed: Option<f64>,
    /// What the last congestion took the place of.
    before: Option<Before>,
    count: Count,
}

/// What congestion changes.
#[derive(Clone, Copy, Debug)]
struct Before {
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Time>,
    /// `origin`, `k` and `w_est` of that epoch.
    curve: (f64, f64, f64),
    from_plateau: bool,
    /// When the congestion was.
    at: Time,
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
            found: false,
            smoothed: None,
            before: None,
            count: Count::default(),
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

    /// Whether slow start is to end: the path is full. `slack`: how much later the ACKs of a burst may come.
    fn is_full(
        &mut self,
        rtt: Option<f64>,
        (min_rtt, slack): (f64, f64),
        is_paced: bool,
        now: Time,
    ) -> bool {
        if now - self.train <= HYSTART_SPACING {
            self.train = now;
            // A pacer spreads a window over most of a round trip; then a long train shows no queue (Linux).
            let most = (min_rtt + slack) * if is_paced { 1.0 } else { 0.5 };
            if (now - self.start).as_secs_f64() > most {
                return true;
            }
        }
        let Some(rtt) = rtt else {
            return false;
        };
        self.min_rtt = self.min_rtt.min(rtt);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            return false;
        }
        let growth = (min_rtt / 8.0).clamp(HYSTART_DELAY.0, HYSTART_DELAY.1);
        self.min_rtt > min_rtt + growth
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

    /// Whether HyStart ends slow start at an ACK, before the window grows. Once it has, it is off until a
    /// time-out (Linux).
    fn ends_slow_start(
        &mut self,
        window: &Window,
        (una, max): (u64, u64),
        now: Time,
        profile: &Profile,
        rtt: Option<f64>,
    ) -> bool {
        if una > self.round.end {
            self.round = Round::begin(max, now);
        }
        let segments = window.cwnd / profile.mss.0 as f64;
        let is_paced = profile.pacing == Pacing::Linux;
        let slack = if self.count.is_whole {
            self.burst_time(window)
        } else {
            0.0
        };
        self.found = segments >= HYSTART_LOW_WINDOW
            && self
                .round
                .is_full(rtt, (self.min_rtt, slack), is_paced, now);
        self.found
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
        let rtt = match (params.rtt, self.smoothed) {
            (TargetRtt::Smoothed, Some(smoothed)) => smoothed,
            _ if self.min_rtt.is_finite() => self.min_rtt,
            _ => 0.0,
        };
        let target = curve(t.as_secs_f64() + rtt).clamp(cwnd, 1.5 * cwnd);
        let alpha = match params.reno_estimate {
            RenoEstimate::Rfc9438 if self.w_est >= self.cwnd_prior => 1.0,
            _ => 3.0 * (1.0 - beta) / (1.0 + beta),
        };
        self.w_est += alpha * acked / cwnd;
        let step = if curve(t.as_secs_f64()) < self.w_est {
            (self.w_est - cwnd).max(0.0)
        } else {
            (target - cwnd) / cwnd * acked
        };
        if self.w_max == 0.0 {
            return step.max(params.search_growth * acked);
        }
        step
    }
}

impl CongestionControl for Cubic {
    type Params = Params;

    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        if self.count.is_whole {
            self.note_sent(now);
            return;
        }
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
        if let Some(counted) = ack.counted {
            self.grow_whole(params, window, ack, counted);
            return;
        }
        let rtt = self.measure(ack);
        self.last_ack = ack.now;
        if window.in_slow_start(ack.profile) {
            let round = (ack.una, ack.max);
            let ends = params.hystart
                && !self.found
                && self.ends_slow_start(window, round, ack.now, ack.profile, rtt);
            if !ends {
                window.slow_start(ack.acked, ack.profile);
                return;
            }
            window.ssthresh = window.cwnd;
        }
        let mss = ack.profile.mss.0 as f64;
        let step = self.avoid(params, window.cwnd / mss, ack.acked as f64 / mss, ack.now);
        window.cwnd += step * mss;
    }

    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        if self.count.is_whole {
            return;
        }
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
        let beta = match (congestion.cause, params.beta_ecn) {
            (Cause::Echo, Some(beta)) => beta,
            _ => params.beta,
        };
        self.before = Some(Before {
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
            epoch: self.epoch,
            curve: (self.origin, self.k, self.w_est),
            from_plateau: self.from_plateau,
            at: congestion.now,
        });
        let cwnd = window.cwnd / congestion.profile.mss.0 as f64;
        let is_whole = congestion.whole;
        self.w_max = if cwnd < self.w_max {
            let less = cwnd * (1.0 + beta) / 2.0;
            if is_whole { libm::floor(less) } else { less }
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.from_plateau = congestion.cause == Cause::Timeout;
        self.found &= congestion.cause != Cause::Timeout;
        // RFC 9438, section 4.6: flight_size, or cwnd, as implementations do.
        Decrease::Bytes(match congestion.profile.multiplicative_decrease_base {
            DecreaseBase::FlightSize => beta * congestion.flight as f64,
            DecreaseBase::FractionalCwnd => beta * congestion.window as f64,
            DecreaseBase::Cwnd => {
                let mss = congestion.profile.mss.0 as f64;
                // A share of whole segments is a whole number where decimal fractions say so.
                libm::floor(beta * (congestion.window as f64 / mss) + ROUNDING) * mss
            }
        })
    }

    /// Linux begins anew: only the window itself is kept.
    fn on_loss_state(&mut self, _: &Params, _: &Window) {
        (self.w_max, self.min_rtt) = (0.0, f64::INFINITY);
        (self.epoch, self.from_plateau, self.found) = (None, true, false);
        self.count = Count {
            is_whole: true,
            ..Count::default()
        };
    }

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        self.smoothed = sample.srtt.map(Time::as_secs_f64);
        if sample.profile.rack_rules == RackRules::Linux {
            self.measure_whole(params, window, sample);
        }
        if !params.counts_unused_time
            && !sample.window_limited
            && let Some(epoch) = self.epoch
        {
            let since = self.last_ack.max(epoch);
            self.epoch = Some(epoch + sample.now.saturating_sub(since));
        }
    }

    fn samples_when_idle(&self, params: &Params, _: &Window, _: &Profile, _: Time) -> bool {
        !params.counts_unused_time || self.smoothed.is_none()
    }

    /// Section 4.9: what a spurious congestion has changed is restored; the time since then does
    /// not count.
    fn on_undo(&mut self, _: &Params, _: &mut Window) {
        // Linux restores the window alone.
        if !self.count.is_whole
            && let Some(before) = self.before.take()
        {
            (self.w_max, self.cwnd_prior) = (before.w_max, before.cwnd_prior);
            (self.origin, self.k, self.w_est) = before.curve;
            self.from_plateau = before.from_plateau;
            let passed = self.last_ack.saturating_sub(before.at);
            self.epoch = before.epoch.map(|epoch| epoch + passed);
        }
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
            whole: false,
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
                    counted: None,
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

    /// cubic_rfc9438.csv: a step per round trip, after a reduction from `cwnd_before_loss`.
    #[test]
    fn cb01_cb02_the_window_is_that_of_the_trace() {
        let rows = include_str!("../../tests/data/modern/cubic_rfc9438.csv");
        let mut cases: Vec<Vec<Vec<f64>>> = Vec::new();
        for row in rows.lines().skip(1) {
            let numbers = row.split(',').take(9).map(|cell| cell.parse().unwrap());
            let numbers: Vec<f64> = numbers.collect();
            if numbers[3] == 1.0 {
                cases.push(Vec::new());
            }
            cases.last_mut().unwrap().push(numbers);
        }
        assert!(cases.len() >= 3);
        let profile = profile();
        let params = Params {
            reno_estimate: RenoEstimate::Rfc9438,
            ..Params::default()
        };
        for case in cases {
            let (before, rtt) = (case[0][0], case[0][1]);
            let mut cubic = Cubic::default();
            cubic.on_congestion(
                &params,
                &window(before),
                &congestion(&profile, before as u64),
            );
            cubic.min_rtt = rtt;
            let mut cwnd = 0.7 * before;
            cubic.begin_epoch(cwnd, params.c, Time::ZERO);
            let mut expected = case.iter().peekable();
            for round in 1..=60 {
                let now = Time::from_secs_f64(f64::from(round) * rtt);
                cwnd += cubic.avoid(&params, cwnd, cwnd, now);
                if let Some(row) = expected.next_if(|row| row[3] == f64::from(round)) {
                    assert!((cubic.k - row[2]).abs() < 1e-6, "{row:?}: {}", cubic.k);
                    assert!(
                        (cubic.w_est - row[7]).abs() < 1e-6,
                        "{row:?}: {}",
                        cubic.w_est
                    );
                    assert!((cwnd - row[8]).abs() < 1e-5, "{row:?}: {cwnd}");
                }
            }
            assert_eq!(expected.next(), None);
        }
    }

    /// 2,749 round trips of a kernel's CUBIC: the same growth below and above the last window.
    #[test]
    fn the_estimate_of_renos_window_grows_as_chosen() {
        for (reno_estimate, above) in [
            (RenoEstimate::Rfc8312, 0.9 / 1.7),
            (RenoEstimate::Rfc9438, 1.0),
        ] {
            let params = Params {
                reno_estimate,
                ..Params::default()
            };
            for (cwnd, expected) in [(30.0, 0.9 / 1.7), (50.0, above)] {
                let mut cubic = Cubic {
                    w_max: 40.0,
                    cwnd_prior: 40.0,
                    ..Cubic::default()
                };
                cubic.begin_epoch(cwnd, params.c, Time::ZERO);
                let grown = cubic.avoid(&params, cwnd, cwnd, at(0.001));
                assert!((grown - expected).abs() < 1e-9, "{grown}, not {expected}");
            }
        }
    }

    /// 0.7 of 25.5 segments, by what it is a share of.
    #[test]
    fn congestion_leaves_whole_segments_of_a_whole_window() {
        for (base, expected) in [
            (DecreaseBase::Cwnd, 17_000.0),
            (DecreaseBase::FractionalCwnd, 17_850.0),
            (DecreaseBase::FlightSize, 17_500.0),
        ] {
            let profile = Profile {
                multiplicative_decrease_base: base,
                ..profile()
            };
            let cut = Congestion {
                window: 25_500,
                ..congestion(&profile, 25)
            };
            let left = Cubic::default().on_congestion(&Params::default(), &window(25.5), &cut);
            assert_eq!(left, Decrease::Bytes(expected));
        }
    }

    #[test]
    fn cb06_after_a_time_out_the_curve_begins_at_its_plateau() {
        let (profile, params) = (profile(), Params::default());
        let mut cubic = Cubic::default();
        let timeout = Congestion {
            cause: Cause::Timeout,
            ..congestion(&profile, 100)
        };
        cubic.on_congestion(&params, &window(100.0), &timeout);
        cubic.begin_epoch(35.0, params.c, at(1.0));
        assert_eq!((cubic.origin, cubic.k), (35.0, 0.0));
    }

    #[test]
    fn cb07_a_spurious_congestion_leaves_the_curve_as_it_was() {
        let (profile, params) = (profile(), Params::default());
        let mut cubic = Cubic::default();
        cubic.on_congestion(&params, &window(100.0), &congestion(&profile, 100));
        cubic.begin_epoch(70.0, params.c, at(1.0));
        let known = (cubic.w_max, cubic.cwnd_prior, cubic.k, cubic.epoch);
        let again = Congestion {
            now: at(2.0),
            ..congestion(&profile, 80)
        };
        cubic.last_ack = at(2.0);
        cubic.on_congestion(&params, &window(80.0), &again);
        assert_eq!(cubic.w_max, 68.0);
        cubic.on_undo(&params, &mut window(56.0));
        let found = (cubic.w_max, cubic.cwnd_prior, cubic.k, cubic.epoch);
        assert_eq!(found, known);
    }

    #[test]
    fn cb08_unused_time_does_not_count_where_the_rfc_is_followed() {
        for (counts, expected) in [(true, 1.0), (false, 11.0)] {
            let params = Params {
                counts_unused_time: counts,
                ..Params::default()
            };
            let mut cubic = Cubic::default();
            cubic.begin_epoch(70.0, params.c, at(1.0));
            cubic.last_ack = at(2.0);
            let mut feed = crate::control::tests::Feed {
                now: at(12.0),
                ..Default::default()
            };
            let mut sample = feed.acks(1, 0);
            sample.window_limited = false;
            cubic.on_sample(&params, &mut window(70.0), &sample);
            assert_eq!(cubic.epoch, Some(at(expected)));
        }
    }

    #[test]
    fn cb10_an_echo_may_leave_more_than_a_loss() {
        let profile = profile();
        let params = Params {
            beta_ecn: Some(0.85),
            ..Params::default()
        };
        let echo = Congestion {
            cause: Cause::Echo,
            ..congestion(&profile, 100)
        };
        let left = Cubic::default().on_congestion(&params, &window(100.0), &echo);
        assert_eq!(left, Decrease::Bytes(85_000.0));
    }

    /// Far beyond the plateau a window of data adds half of it; far below nothing.
    #[test]
    fn cb03_the_target_is_between_the_window_and_half_as_much_again() {
        for (origin, k, expected) in [(100.0, 0.0, 0.5), (50.0, 60.0, 0.0)] {
            let mut cubic = Cubic {
                epoch: Some(at(0.0)),
                origin,
                k,
                w_max: 100.0,
                ..Cubic::default()
            };
            let grown = cubic.avoid(&Params::default(), 100.0, 1.0, at(60.0));
            assert!((grown - expected).abs() < 1e-9, "{grown}, not {expected}");
        }
    }

    /// With a loss every 1 / p segments the mean window is that of RFC 9438, section 5.1.
    #[test]
    fn cb11_regular_losses_hold_the_mean_window_of_the_formula() {
        let (rtt, period) = (0.1, 10_000_u64);
        let (mut cubic, mut window, profile) = (Cubic::default(), window(150.0), profile());
        let (mut now, mut una, mut left) = (0.0, 1, period);
        let (mut sum, mut rounds) = (0.0, 0.0);
        while now < 4000.0 {
            let round = (window.cwnd / MSS as f64) as u64;
            cubic.on_send(una, una + MSS, false, at(now));
            now += rtt;
            if now > 1000.0 {
                (sum, rounds) = (sum + window.cwnd / MSS as f64, rounds + 1.0);
            }
            for _ in 0..round {
                una += MSS;
                let ack = Ack {
                    now: at(now),
                    profile: &profile,
                    acked: MSS,
                    una,
                    max: una,
                    counted: None,
                };
                cubic.on_ack(&Params::default(), &mut window, &ack);
            }
            if left > round {
                left -= round;
                continue;
            }
            left = period;
            let cut = Congestion {
                flight: window.cwnd as u64,
                window: window.cwnd as u64,
                ..congestion(&profile, 1)
            };
            if let Decrease::Bytes(bytes) = cubic.on_congestion(&Params::default(), &window, &cut) {
                (window.cwnd, window.ssthresh) = (bytes, bytes);
            }
        }
        let mean = sum / rounds;
        let formula = 1.054 * (rtt * period as f64).powf(0.75);
        assert!((mean / formula - 1.0).abs() < 0.1, "{mean}, not {formula}");
    }

    /// An ACK a millisecond, all after a round trip of 100 ms: how long may a round have them?
    #[test]
    fn hystart_takes_the_pace_of_a_sender_for_no_queue() {
        let unpaced = profile();
        let paced = Profile {
            pacing: Pacing::Linux,
            ..profile()
        };
        for (profile, last, ends) in [
            (&unpaced, 50, false),
            (&unpaced, 51, true),
            (&paced, 100, false),
            (&paced, 101, true),
        ] {
            let mut cubic = Cubic::default();
            let mut window = Window {
                ssthresh: 1e9,
                ..window(100.0)
            };
            for number in 0..=last {
                let una = 1 + number * MSS;
                let sent = Time::from_millis(number);
                cubic.on_send(una, una + MSS, false, sent);
                let ack = Ack {
                    now: sent + Time::from_millis(100),
                    profile,
                    acked: MSS,
                    una: una + MSS,
                    max: 1 + 1000 * MSS,
                    counted: None,
                };
                cubic.on_ack(&Params::default(), &mut window, &ack);
            }
            assert_eq!(window.in_slow_start(profile), !ends, "{last}");
        }
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
