//! BBR, version 3. N. Cardwell, I. Swett, J. Beshay, "BBR Congestion Control",
//! draft-ietf-ccwg-bbr, 2025; google/bbr, branch v3. Departures: [`Parameters::ABOUT`].

mod bounds;
mod numbers;
mod shown;
mod state;

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;

use crate::control::bbr::{
    Aggregation, EXTRA_SLOT_ROUNDS, EXTRA_TIME, MIN_SEGMENTS, PACING_MARGIN, PROBE_RTT_TIME, draw,
    fixed_point, least_burst, quantum, round_down, round_up, wire,
};
use crate::control::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlParameters, ControlState, Decrease, Restart,
    Sample,
};
use crate::control::window::Window;
use crate::filter::Largest;
use crate::profile::Profile;
use crate::rate::Rate;
use crate::recovery::RecoveryState;
use crate::sender::rack::pace;
pub use numbers::Constants;
use numbers::Numbers;
use state::{AckPhase, Bounds, FullPipe, State};

/// Parameters of BBR, version 3.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Constants and rules of the draft, or of Google's branch.
    #[param(default)]
    pub constants: Constants,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "BBR, version 3",
        paper: "N. Cardwell, I. Swett, J. Beshay, BBR Congestion Control, draft-ietf-ccwg-bbr, 2025; \
                google/bbr, branch v3",
        purpose: "Paces at the largest recent delivery rate, and limits the data in flight after a \
                  probe that lost more than 2 %. Needs `recovery = \"rack-tlp\"`.",
        departures: &[
            "Segments are paced one by one unless `pacing_burst` changes that. The window has room \
             for three bursts.",
            "The segments that one ACK finds lost count as one loss.",
            "The branch's ECN for data centres is left out, so data is not ECN-capable.",
            "The time of an ACK replaces each random number.",
        ],
        memory: "filters of the bandwidth, the round-trip time and the ACK aggregation, and bounds \
                 of the data in flight",
    };
}

impl ControlParameters for Params {
    type Control = Bbr3;

    const OWNS_WINDOW: bool = true;
    const ANSWERS_MARKS: bool = true;
}

const CWND_GAIN: f64 = 2.0;
const UP_PACING_GAIN: f64 = 1.25;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const MIN_RTT_WINDOW: Time = Time::from_secs(10);
const PROBE_RTT_INTERVAL: Time = Time::from_secs(5);
/// Cycles for which a bandwidth counts, rounds for which an aggregation does.
const BW_CYCLES: u64 = 2;
const EXTRA_ROUNDS: u64 = 10;
/// Losses in a round of Startup that end it.
const STARTUP_LOSSES: u32 = 6;
/// Rounds between probes at most: Reno's period for a window of so many segments.
const MOST_ROUNDS: f64 = 63.0;
/// Segments before whose delivery the window grows whatever the model says.
const INITIAL_SEGMENTS: f64 = 10.0;

/// The state of BBR; bytes, seconds. The names are the draft's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bbr3 {
    /// The rules of the branch hold: `constants = "google"`.
    branch: bool,
    state: State,
    max_bw: Largest<f64>,
    cycle_count: u64,
    bounds: Bounds,
    round_count: u64,
    round_start: bool,
    next_round_delivered: u64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events: u32,
    /// Bytes lost when the round began, and whether all of the round was in recovery.
    lost_before_round: u64,
    round_in_recovery: bool,
    full: FullPipe,
    full_reached: bool,
    drain_since_round: u64,
    extra: Largest<f64>,
    aggregation: Aggregation,
    min_rtt: Option<Time>,
    min_rtt_at: Time,
    probe_rtt_min: Option<Time>,
    probe_rtt_min_at: Time,
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,
    ack_phase: AckPhase,
    probe_samples: bool,
    rounds_since_probe: u32,
    probe_wait: Time,
    cycle_at: Time,
    prev_probe_too_high: bool,
    stopped_early: bool,
    /// Something was sent after nothing was out, and none of it has arrived.
    idle_restart: bool,
    probe_up_rounds: u32,
    probe_up_acks: f64,
    probe_up_count: f64,
    prior_cwnd: f64,
    recovering: bool,
    /// A time-out has declared everything lost.
    timed_out: bool,
    before: Option<(Bounds, State)>,
    /// A probe that a loss ended, which was none, is to begin anew.
    probes_anew: bool,
    /// Bytes of payload per second; 0: not set yet.
    pacing: f64,
    /// Random numbers that somebody else has drawn.
    #[cfg(test)]
    pub(super) draws: std::collections::VecDeque<(u32, Time)>,
}

impl Bbr3 {
    fn max_bw(&self) -> f64 {
        self.max_bw.get().unwrap_or(0.0)
    }

    fn bw(&self) -> f64 {
        self.max_bw().min(self.bounds.bw_shortterm)
    }

    fn pacing_gain(&self, numbers: &Numbers) -> f64 {
        match self.state {
            State::Startup => numbers.startup_gain,
            State::Drain => numbers.drain_gain,
            State::Down => numbers.down_gain,
            State::Up => UP_PACING_GAIN,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => UP_CWND_GAIN,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// What bytes are counted in: segments by the branch, nothing by the draft.
    fn unit(&self, mss: f64) -> f64 {
        if self.branch { mss } else { 0.0 }
    }

    fn bdp(&self, bw: f64, gain: f64, mss: f64) -> f64 {
        match self.min_rtt {
            None => INITIAL_SEGMENTS * mss,
            Some(rtt) => round_up(gain * bw * rtt.as_secs_f64(), self.unit(mss)),
        }
    }

    /// What leaves at once, in bytes (section 5.6.3). The branch lets go more where round trips are short.
    fn burst(&self, mss: f64) -> f64 {
        if self.branch {
            f64::from(pace::linux_burst(self.pacing, self.min_rtt, mss as u64, 2)) * mss
        } else {
            quantum(self.pacing / PACING_MARGIN, mss)
        }
    }

    /// Section 5.6.4.2: three bursts, four segments at least, two more while probing.
    fn with_room(&self, bytes: f64, mss: f64) -> f64 {
        let burst = self.burst(mss);
        let bytes = bytes.max(3.0 * burst).max(MIN_SEGMENTS * mss);
        bytes
            + if self.state == State::Up {
                2.0 * mss
            } else {
                0.0
            }
    }

    fn inflight(&self, bw: f64, gain: f64, mss: f64) -> f64 {
        self.with_room(self.bdp(bw, gain, mss), mss)
    }

    fn target_inflight(&self, window: &Window, mss: f64) -> f64 {
        let bdp = self.bdp(self.bw(), 1.0, mss);
        let target = if self.branch {
            self.with_room(bdp, mss)
        } else {
            bdp
        };
        target.min(window.cwnd)
    }

    fn with_headroom(&self, numbers: &Numbers, mss: f64) -> f64 {
        let long = self.bounds.inflight_longterm;
        if long.is_infinite() {
            return long;
        }
        let headroom = round_down(numbers.headroom * long, self.unit(mss)).max(mss);
        (long - headroom).max(MIN_SEGMENTS * mss)
    }

    // ---- rounds and signals (section 5.5) ----

    fn start_round(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    fn update_round(&mut self, rate: &Rate, sample: &Sample<'_>) {
        self.round_start = rate.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round(sample.delivered);
            self.round_count += 1;
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1).min(255);
        }
    }

    fn update_latest(&mut self, rate: &Rate, bw: f64, sample: &Sample<'_>) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(rate.delivered as f64);
        if rate.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = sample.delivered;
            self.loss_round_start = true;
        }
    }

    fn advance_latest(&mut self, rate: &Rate, bw: f64) {
        if self.loss_round_start {
            self.bw_latest = bw;
            self.inflight_latest = rate.delivered as f64;
        }
    }

    /// The bandwidth that a sample shows. The branch counts segments a microsecond and rounds up.
    fn bandwidth(&self, rate: &Rate, mss: f64) -> f64 {
        if self.branch {
            fixed_point(rate, mss, f64::ceil)
        } else {
            rate.bytes_per_second()
        }
    }

    fn update_max_bw(&mut self, bw: f64, app_limited: bool) {
        if bw >= self.max_bw() || !app_limited {
            self.max_bw.add(self.cycle_count, bw, BW_CYCLES);
        }
    }

    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// Section 5.5.10.3: once per round with a loss.
    fn adapt_lower_bounds(&mut self, numbers: &Numbers, window: &Window, mss: f64) {
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !self.is_probing() {
            let bounds = &mut self.bounds;
            if bounds.bw_shortterm.is_infinite() {
                bounds.bw_shortterm = self.max_bw.get().unwrap_or(0.0);
            }
            if bounds.inflight_shortterm.is_infinite() {
                bounds.inflight_shortterm = window.cwnd;
            }
            bounds.bw_shortterm = self.bw_latest.max(numbers.beta * bounds.bw_shortterm);
            let unit = if self.branch { mss } else { 0.0 };
            bounds.inflight_shortterm = self
                .inflight_latest
                .max(round_down(numbers.beta * bounds.inflight_shortterm, unit));
        }
        self.loss_in_round = false;
    }

    fn reset_lower_bounds(&mut self) {
        self.bounds.bw_shortterm = f64::INFINITY;
        self.bounds.inflight_shortterm = f64::INFINITY;
    }

    fn reset_signals(&mut self) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// Section 5.5.9. The branch keeps two slots of rounds.
    fn update_aggregation(&mut self, sample: &Sample<'_>, window: &Window, mss: f64) {
        let (bw, unit) = (self.bw(), self.unit(mss));
        let extra = self.aggregation.excess(sample, bw, unit).min(window.cwnd);
        if self.branch {
            let rounds = if self.full_reached {
                EXTRA_SLOT_ROUNDS
            } else {
                1
            };
            self.aggregation.keep(extra, self.round_start, rounds);
        } else {
            let rounds = if self.full_reached { EXTRA_ROUNDS } else { 1 };
            self.extra.add(self.round_count, extra, rounds);
        }
    }

    fn extra(&self, mss: f64) -> f64 {
        if self.branch {
            let most = round_down(EXTRA_TIME * self.bw(), mss);
            self.aggregation.most().min(most)
        } else {
            self.extra.get().unwrap_or(0.0)
        }
    }

    // ---- states (section 5.3) ----

    /// Section 5.3.1.3: a round of recovery with more than 2 % and six holes ends Startup. For the branch
    /// it need not have been in recovery all the time.
    fn check_startup(&mut self, numbers: &Numbers, rate: &Rate, sample: &Sample<'_>) {
        let mss = sample.profile.mss.0 as f64;
        let repairs = sample.state == RecoveryState::Recovery;
        let (is_over, lost, in_recovery) = if self.branch {
            (self.loss_round_start, rate.lost, repairs)
        } else {
            let lost = sample.lost - self.lost_before_round;
            (self.round_start, lost, self.round_in_recovery)
        };
        if self.state == State::Startup && is_over && !self.full_reached {
            let too_much = Self::is_too_high(lost as f64, rate.in_flight as f64, numbers);
            if in_recovery && too_much && self.loss_events >= STARTUP_LOSSES {
                self.full_reached = true;
                let mut bdp = self.bdp(self.max_bw(), 1.0, mss);
                if self.branch {
                    bdp = self.with_room(bdp, mss);
                }
                self.bounds.inflight_longterm = bdp.max(self.inflight_latest);
            }
        }
        if is_over {
            self.loss_events = 0;
            self.lost_before_round = sample.lost;
            self.round_in_recovery = repairs;
        }
        self.round_in_recovery &= repairs;
    }

    fn leave_startup(&mut self) {
        if self.state == State::Startup && self.full_reached {
            self.state = State::Drain;
            self.drain_since_round = self.round_count;
            if self.branch {
                self.reset_signals();
            }
        }
    }

    fn check_drain(&mut self, numbers: &Numbers, sample: &Sample<'_>) {
        if self.state != State::Drain {
            return;
        }
        let mss = sample.profile.mss.0 as f64;
        let bw = if self.branch {
            self.max_bw()
        } else {
            self.bw()
        };
        let bdp = self.inflight(bw, 1.0, mss);
        let rounds = self.round_count - self.drain_since_round;
        if sample.in_flight as f64 <= bdp || rounds > numbers.drain_rounds {
            self.start_down(sample.now, sample.delivered);
        }
    }

    fn start_down(&mut self, now: Time, delivered: u64) {
        self.reset_signals();
        self.probe_up_count = f64::INFINITY;
        let draws = |name| draw(now, delivered, name);
        self.rounds_since_probe = if draws("bbr-rounds") < 0.5 { 0 } else { 1 };
        self.probe_wait = Time::from_secs_f64(2.0 + draws("bbr-wait"));
        #[cfg(test)]
        if let Some(drawn) = self.draws.pop_front() {
            (self.rounds_since_probe, self.probe_wait) = drawn;
        }
        self.cycle_at = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(delivered);
        self.state = State::Down;
    }

    fn start_refill(&mut self, sample: &Sample<'_>) {
        self.reset_lower_bounds();
        self.probe_up_rounds = 0;
        self.probe_up_acks = 0.0;
        self.ack_phase = AckPhase::Refilling;
        self.stopped_early = false;
        self.start_round(sample.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, rate: &Rate, window: &Window, sample: &Sample<'_>) {
        self.probe_samples = true;
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(sample.delivered);
        self.full = FullPipe {
            bw: self.bandwidth(rate, sample.profile.mss.0 as f64),
            ..FullPipe::default()
        };
        self.state = State::Up;
        self.raise_slope(window, sample.profile.mss.0 as f64);
    }

    fn is_time_to_probe(&self, window: &Window, sample: &Sample<'_>) -> bool {
        let mss = sample.profile.mss.0 as f64;
        let rounds = (self.target_inflight(window, mss) / mss).min(MOST_ROUNDS);
        let lasted = sample.now.saturating_sub(self.cycle_at);
        lasted > self.probe_wait
            || lasted == self.probe_wait && !self.branch
            || f64::from(self.rounds_since_probe) >= rounds
    }

    fn update_cycle(
        &mut self,
        numbers: &Numbers,
        window: &Window,
        rate: &Rate,
        sample: &Sample<'_>,
    ) {
        if !self.full_reached {
            return;
        }
        if self.adapt_upper_bounds(numbers, window, rate, sample) {
            return;
        }
        let mss = sample.profile.mss.0 as f64;
        let in_flight = sample.in_flight_before as f64;
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(window, sample) => {
                self.start_refill(sample);
            }
            State::Down
                if in_flight <= self.with_headroom(numbers, mss)
                    && in_flight <= self.inflight(self.max_bw(), 1.0, mss) =>
            {
                self.state = State::Cruise;
                let bounds = &mut self.bounds;
                if self.branch && bounds.inflight_shortterm.is_finite() {
                    bounds.inflight_shortterm =
                        bounds.inflight_shortterm.min(bounds.inflight_longterm);
                }
            }
            State::Refill if self.round_start => self.start_up(rate, window, sample),
            State::Up => self.check_up(rate, window, sample),
            _ => {}
        }
    }

    fn check_up(&mut self, rate: &Rate, window: &Window, sample: &Sample<'_>) {
        let long = self.bounds.inflight_longterm;
        let mss = sample.profile.mss.0 as f64;
        // With the burst that leaves next, in whole segments: the bound need not be a multiple of one.
        let burst = (self.burst(mss) / mss).floor();
        let segments = (sample.in_flight_before as f64 / mss).ceil() + burst;
        if self.prev_probe_too_high && segments >= (long / mss).floor() {
            self.prev_probe_too_high = false;
            self.start_down(sample.now, sample.delivered);
            self.stopped_early = true;
            return;
        }
        if sample.window_limited && window.cwnd >= long {
            let bw = if self.branch {
                self.bandwidth(rate, mss)
            } else {
                self.bw_latest
            };
            self.full = FullPipe {
                bw,
                now: self.full.now && !self.branch,
                ..FullPipe::default()
            };
        } else if self.full.now {
            self.prev_probe_too_high = false;
            self.start_down(sample.now, sample.delivered);
        }
    }

    // ---- the round trip (section 5.3.4) ----

    fn update_min_rtt(&mut self, window: &mut Window, sample: &Sample<'_>) {
        let now = sample.now;
        let expired = now > self.probe_rtt_min_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (expired || self.probe_rtt_min.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (Some(rtt), now);
        }
        let is_old = now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = self.probe_rtt_min
            && (is_old
                || self
                    .min_rtt
                    .is_none_or(|least| rtt < least || rtt == least && self.branch))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), self.probe_rtt_min_at);
        }
        let may_begin = !self.idle_restart && self.round_count > 0;
        if expired && may_begin && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save(window);
            self.probe_rtt_until = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(sample.delivered);
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(window, sample);
        }
        self.idle_restart &= sample.acked == 0;
    }

    fn probe_rtt_cwnd(&self, mss: f64) -> f64 {
        self.bdp(self.bw(), PROBE_RTT_CWND_GAIN, mss)
            .max(MIN_SEGMENTS * mss)
    }

    fn probe_rtt(&mut self, window: &mut Window, sample: &Sample<'_>) {
        let mss = sample.profile.mss.0 as f64;
        match self.probe_rtt_until {
            None if sample.in_flight as f64 <= self.probe_rtt_cwnd(mss) => {
                self.probe_rtt_until = Some(sample.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.start_round(sample.delivered);
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && sample.now > until {
                    self.leave_probe_rtt(window, sample.now, sample.delivered);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, window: &mut Window, now: Time, delivered: u64) {
        self.probe_rtt_min_at = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.reset_lower_bounds();
        if self.full_reached {
            self.start_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    // ---- what follows (section 5.6) ----

    /// The first round trip is the smallest one, that of the handshake too (section 5.2.1). The first rate,
    /// by it and the initial window, is a rate like any other: Startup does not lower it (section 5.6.2).
    fn begin(&mut self, numbers: &Numbers, window: &Window, srtt: Option<Time>, now: Time) {
        if let Some(srtt) = srtt
            && self.pacing == 0.0
            && self.min_rtt.is_none()
        {
            (self.min_rtt, self.min_rtt_at) = (Some(srtt), now);
            (self.probe_rtt_min, self.probe_rtt_min_at) = (Some(srtt), now);
            let first = numbers.startup_gain * window.cwnd / srtt.as_secs_f64();
            self.pacing = first * PACING_MARGIN;
        }
    }

    fn update_pacing(&mut self, numbers: &Numbers) {
        self.set_pacing(self.pacing_gain(numbers) * self.bw() * PACING_MARGIN);
    }

    fn set_pacing(&mut self, rate: f64) {
        if rate > 0.0 && (self.full_reached || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn save(&mut self, window: &Window) {
        self.prior_cwnd = if self.recovering || self.state == State::ProbeRtt {
            self.prior_cwnd.max(window.cwnd)
        } else {
            window.cwnd
        };
    }

    fn update_cwnd(&mut self, numbers: &Numbers, window: &mut Window, sample: &Sample<'_>) {
        let mss = sample.profile.mss.0 as f64;
        let repairing = sample.state != RecoveryState::Open;
        let timed_out = sample.state == RecoveryState::Loss;
        // The branch cuts the window at a time-out alone.
        let is_repaired = if self.branch {
            self.timed_out && !timed_out
        } else {
            self.recovering && !repairing
        };
        if is_repaired {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        (self.recovering, self.timed_out) = (repairing, timed_out);
        let acked = sample.acked as f64;
        let extra = self.extra(mss);
        let most = self.with_room(self.bdp(self.bw(), self.cwnd_gain(), mss) + extra, mss);
        let begins = if self.branch {
            window.cwnd < 2.0 * INITIAL_SEGMENTS * mss
        } else {
            (sample.delivered as f64) < INITIAL_SEGMENTS * mss
        };
        if self.full_reached && (acked > 0.0 || !self.branch) {
            window.cwnd = (window.cwnd + acked).min(most);
        } else if !self.full_reached && (window.cwnd < most || begins) {
            window.cwnd += acked;
        }
        window.cwnd = window.cwnd.max(MIN_SEGMENTS * mss);
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd(mss));
        }
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.with_headroom(numbers, mss),
        };
        let cap = cap.min(self.bounds.inflight_shortterm);
        window.cwnd = window.cwnd.min(cap.max(MIN_SEGMENTS * mss));
    }
}

impl CongestionControl for Bbr3 {
    type Params = Params;

    fn on_ack(&mut self, _: &Params, _: &mut Window, _: &Ack<'_>) {}

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        let numbers = &params.constants.numbers();
        self.branch = params.constants == Constants::Google;
        self.begin(numbers, window, sample.srtt, sample.now);
        if std::mem::take(&mut self.probes_anew) {
            self.start_refill(sample);
        }
        self.take_losses(numbers, window, sample);
        let mss = sample.profile.mss.0 as f64;
        let rate = sample.rate.as_ref();
        let rate = rate.map(|rate| (rate, self.bandwidth(rate, mss)));
        if let Some((rate, bw)) = rate {
            self.update_latest(rate, bw, sample);
            self.update_round(rate, sample);
            self.update_max_bw(bw, rate.app_limited);
            self.adapt_lower_bounds(numbers, window, mss);
            self.update_aggregation(sample, window, mss);
            self.full
                .check(bw, self.round_start, rate.app_limited, numbers.any_ack);
            self.full_reached |= self.full.now;
            self.check_startup(numbers, rate, sample);
            self.leave_startup();
            self.check_drain(numbers, sample);
            self.update_cycle(numbers, window, rate, sample);
        } else {
            self.round_start = false;
        }
        self.update_min_rtt(window, sample);
        if let Some((rate, bw)) = rate {
            self.advance_latest(rate, bw);
        }
        self.update_pacing(numbers);
        if sample.acked > 0 || !sample.losses.is_empty() {
            self.update_cwnd(numbers, window, sample);
        }
    }

    /// Section 5.4.1.
    fn on_restart(&mut self, params: &Params, window: &mut Window, restart: &Restart<'_>) {
        let numbers = &params.constants.numbers();
        self.branch = params.constants == Constants::Google;
        self.begin(numbers, window, restart.srtt, restart.now);
        self.idle_restart = true;
        self.aggregation.restart(restart.now);
        match self.state {
            State::Down | State::Cruise | State::Refill | State::Up => {
                self.set_pacing(self.bw() * PACING_MARGIN);
            }
            State::ProbeRtt => {
                if self
                    .probe_rtt_until
                    .is_some_and(|until| restart.now > until)
                {
                    self.leave_probe_rtt(window, restart.now, restart.delivered);
                }
            }
            State::Startup | State::Drain => {}
        }
    }

    fn on_congestion(
        &mut self,
        params: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        self.save(window);
        self.before = Some((self.bounds, self.state));
        if congestion.cause == Cause::Timeout {
            self.on_loss_state(params, window);
        }
        Decrease::Bytes(window.ssthresh)
    }

    fn on_loss_state(&mut self, _: &Params, window: &Window) {
        (self.recovering, self.timed_out) = (true, true);
        if self.branch {
            self.full = FullPipe::default();
            if !self.is_probing() && self.bounds.inflight_shortterm.is_infinite() {
                self.bounds.inflight_shortterm = window.cwnd.max(self.prior_cwnd);
            }
        }
    }

    /// Section 5.5.11: the bounds are at least those of before, and probing begins anew: with the
    /// sample of the same ACK.
    fn on_undo(&mut self, _: &Params, _: &mut Window) {
        self.loss_in_round = false;
        self.full = FullPipe::default();
        let Some((before, state)) = self.before.take() else {
            return;
        };
        let bounds = &mut self.bounds;
        bounds.bw_shortterm = bounds.bw_shortterm.max(before.bw_shortterm);
        bounds.inflight_shortterm = bounds.inflight_shortterm.max(before.inflight_shortterm);
        bounds.inflight_longterm = bounds.inflight_longterm.max(before.inflight_longterm);
        if self.branch || self.state == State::ProbeRtt || self.state == state {
            return;
        }
        if state == State::Startup {
            self.full_reached = false;
            self.state = State::Startup;
        }
        self.probes_anew = state == State::Up;
    }

    fn pacing_rate(
        &self,
        params: &Params,
        window: &Window,
        profile: &Profile,
        srtt: Option<Time>,
    ) -> Option<f64> {
        let rate = if self.pacing > 0.0 {
            self.pacing
        } else {
            let rtt = srtt.unwrap_or(Time::from_millis(1)).as_secs_f64();
            params.constants.numbers().startup_gain * window.cwnd / rtt
        };
        Some(rate * wire(profile))
    }

    fn limits_samples(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn linux_burst(&self, rate: f64, min_rtt: Option<Time>, len: u64) -> u32 {
        let least = if self.branch { 2 } else { least_burst(rate) };
        pace::linux_burst(rate, min_rtt, len, least)
    }

    fn state(&self) -> Option<ControlState> {
        Some(self.shown())
    }

    const PHASES: &'static [&'static str] = &State::PHASES;
}

#[cfg(test)]
impl Bbr3 {
    pub(super) fn phase_shown(&self) -> String {
        let name = match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::Down => "down",
            State::Cruise => "cruise",
            State::Refill => "refill",
            State::Up => "up",
            State::ProbeRtt => "probe-rtt",
        };
        name.to_owned()
    }

    pub(super) fn model_shown(&self) -> (f64, f64, Time) {
        (self.max_bw(), self.pacing, self.min_rtt.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
