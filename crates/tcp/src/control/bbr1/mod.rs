//! BBR, version 1. N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, "BBR: Congestion-Based
//! Congestion Control", ACM Queue 14(5), 2016, as Linux has it since 4.9. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;

use crate::control::bbr::{
    Aggregation, EXTRA_SLOT_ROUNDS, EXTRA_TIME, FULL_GROWTH, FULL_ROUNDS, MIN_SEGMENTS,
    PACING_MARGIN, PROBE_RTT_TIME, draw, fixed_point, least_burst, quantum, round_up, wire,
};
use crate::control::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlParameters, ControlState, Decrease, Restart,
    Sample,
};
#[cfg(feature = "linux")]
use crate::control::policer::{Policer, Seen};
use crate::control::window::Window;
use crate::filter::ThreeLargest;
use crate::profile::{Profile, RackRules};
use crate::recovery::RecoveryState;
use crate::sender::rack::pace;

/// Parameters of BBR, version 1.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Limit on data in flight while BBR probes for bandwidth, in bandwidth-delay products. A
    /// larger gain keeps a longer queue.
    #[param(default = 2.0, above = 0.0)]
    pub cwnd_gain: f64,
    /// Time for which a minimum round-trip time is valid.
    #[param(default = "10 s", above = Time::ZERO)]
    pub min_rtt_window: Time,
    /// Number of round trips for which a delivery-rate sample is valid.
    #[param(default = 10, least = 1)]
    pub bw_rounds: u32,
    /// If true, BBR detects a policer (Linux: lt_bw) by two intervals of equal bandwidth with 20 %
    /// loss or more. It then keeps this bandwidth for 48 round trips.
    #[cfg(feature = "linux")]
    #[param(default, unwritten)]
    pub policers: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "BBR, version 1",
        paper: "N. Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 14(5), \
                2016; tcp_bbr.c of Linux",
        purpose: "Paces at the largest recent delivery rate and keeps twice the bandwidth-delay \
                  product in flight, whatever is lost or marked. Needs `recovery = \"rack-tlp\"`.",
        departures: &[
            "The policer detector is off by default and sees ACKs only.",
            "Segments are paced one by one unless `pacing_burst` changes that.",
            "The first phase of the cycle comes from the time of an ACK, not from a random number.",
        ],
        memory: "filters of the bandwidth (`bw_rounds`), the round-trip time and the ACK \
                 aggregation",
    };
}

impl ControlParameters for Params {
    type Control = Bbr1;

    const OWNS_WINDOW: bool = true;
    const ANSWERS_MARKS: bool = true;
    const LINUX: Option<&'static str> = Some("bbr");
}

/// 2 / ln 2, the least gain that doubles the rate each round, as Linux has it in 1/256; its inverse.
const HIGH_GAIN: f64 = 740.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// The gains of the cycle.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Until so many segments have been delivered the window grows whatever the model says.
const INITIAL_SEGMENTS: f64 = 10.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state of BBR; bytes, seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bbr1 {
    mode: Mode,
    max_bw: ThreeLargest,
    round: u64,
    next_round_delivered: u64,
    round_start: bool,
    min_rtt: Option<Time>,
    min_rtt_at: Time,
    full_bw: f64,
    full_bw_count: u32,
    full: bool,
    cycle_index: usize,
    cycle_at: Time,
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,
    /// The window before recovery or before the probe of the round trip.
    prior_cwnd: f64,
    packet_conservation: bool,
    /// Something was sent after nothing was out, and none of it has arrived.
    idle_restart: bool,
    recovering: bool,
    /// They are those of a time-out.
    timed_out: bool,
    aggregation: Aggregation,
    /// Bytes of payload per second; 0: not set yet.
    pacing: f64,
    #[cfg(feature = "linux")]
    policer: Policer,
    /// Random numbers that somebody else has drawn.
    #[cfg(test)]
    pub(super) draws: std::collections::VecDeque<(u32, Time)>,
}

impl Bbr1 {
    /// The largest of late.
    fn most_bw(&self) -> f64 {
        self.max_bw.get()
    }

    /// The bandwidth that is used.
    fn bw(&self) -> f64 {
        self.policed().unwrap_or_else(|| self.most_bw())
    }

    #[cfg(feature = "linux")]
    fn policed(&self) -> Option<f64> {
        self.policer.bw()
    }

    #[cfg(not(feature = "linux"))]
    #[expect(clippy::unused_self, reason = "without the feature it has no state")]
    const fn policed(&self) -> Option<f64> {
        None
    }

    /// What the cycle paces at.
    fn cycle_gain(&self) -> f64 {
        match self.policed() {
            Some(_) => 1.0,
            None => CYCLE[self.cycle_index],
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw => self.cycle_gain(),
            Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self, params: &Params) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw => params.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// A bandwidth times round trip times `gain`, in whole segments.
    fn bdp(&self, bw: f64, gain: f64, mss: f64) -> f64 {
        match self.min_rtt {
            None => INITIAL_SEGMENTS * mss,
            Some(rtt) => round_up(bw * rtt.as_secs_f64() * gain, mss),
        }
    }

    /// The same with room for three bursts, an even number of segments, and two more while probing.
    fn with_room(&self, bytes: f64, mss: f64) -> f64 {
        let burst = (quantum(self.pacing, mss) / mss).floor();
        let segments = bytes / mss + 3.0 * burst;
        let even = (segments / 2.0).ceil() * 2.0;
        let probing = self.mode == Mode::ProbeBw && self.cycle_index == 0;
        (even + if probing { 2.0 } else { 0.0 }) * mss
    }

    fn inflight(&self, gain: f64, mss: f64) -> f64 {
        self.with_room(self.bdp(self.most_bw(), gain, mss), mss)
    }

    // ---- the model ----

    fn update_bw(&mut self, params: &Params, sample: &Sample<'_>) {
        self.round_start = false;
        let Some(rate) = sample.rate else {
            return;
        };
        if rate.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = sample.delivered;
            self.round += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        #[cfg(feature = "linux")]
        if params.policers {
            self.detect_policer(sample, rate.app_limited);
        }
        let bw = fixed_point(&rate, sample.profile.mss.0 as f64, f64::floor);
        if !rate.app_limited || bw >= self.most_bw() {
            self.max_bw.add(self.round, bw, params.bw_rounds.into());
        }
    }

    #[cfg(feature = "linux")]
    fn detect_policer(&mut self, sample: &Sample<'_>, app_limited: bool) {
        let seen = Seen {
            now: sample.now,
            delivered: sample.delivered,
            lost: sample.lost,
            loses: !sample.losses.is_empty(),
            round_start: self.round_start,
            app_limited,
            probes_bw: self.mode == Mode::ProbeBw,
        };
        if self.policer.on_sample(&seen) {
            self.begin_probe_bw(sample.now, sample.delivered);
        }
    }

    fn update_aggregation(&mut self, sample: &Sample<'_>, window: &Window) {
        if sample.rate.is_none() || sample.acked == 0 {
            return;
        }
        let extra = self.aggregation.excess(sample, self.bw(), 0.0);
        let extra = extra.min(window.cwnd);
        self.aggregation
            .keep(extra, self.round_start, EXTRA_SLOT_ROUNDS);
    }

    fn extra(&self) -> f64 {
        if !self.full {
            return 0.0;
        }
        let most = EXTRA_TIME * self.bw();
        self.aggregation.most().min(most)
    }

    fn update_cycle(&mut self, sample: &Sample<'_>, mss: f64) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let lasted = sample.now.saturating_sub(self.cycle_at);
        let is_long = self.min_rtt.is_some_and(|rtt| lasted > rtt);
        let in_flight = sample.in_flight_before as f64;
        let gain = self.cycle_gain();
        let next = if gain > 1.0 {
            // With the burst that leaves next (Linux).
            let burst = (quantum(self.pacing, mss) / mss).floor() * mss;
            is_long && (!sample.losses.is_empty() || in_flight + burst >= self.inflight(gain, mss))
        } else if gain < 1.0 {
            is_long || in_flight <= self.inflight(1.0, mss)
        } else {
            is_long
        };
        if next {
            self.next_phase(sample.now);
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    /// The cycle begins in any phase but that of 3/4.
    fn begin_probe_bw(&mut self, now: Time, delivered: u64) {
        self.mode = Mode::ProbeBw;
        #[cfg(not(test))]
        let drawn = draw(now, delivered, "bbr-cycle") * 7.0;
        #[cfg(test)]
        let drawn = match self.draws.pop_front() {
            Some((drawn, _)) => f64::from(drawn),
            None => draw(now, delivered, "bbr-cycle") * 7.0,
        };
        self.cycle_index = CYCLE.len() - 1 - drawn as usize;
        self.next_phase(now);
    }

    fn check_full(&mut self, app_limited: bool) {
        if self.full || !self.round_start || app_limited {
            return;
        }
        if self.most_bw() >= FULL_GROWTH * self.full_bw {
            (self.full_bw, self.full_bw_count) = (self.most_bw(), 0);
            return;
        }
        self.full_bw_count += 1;
        self.full = self.full_bw_count >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, sample: &Sample<'_>, mss: f64) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && sample.in_flight as f64 <= self.inflight(1.0, mss) {
            self.begin_probe_bw(sample.now, sample.delivered);
        }
    }

    fn update_min_rtt(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        let now = sample.now;
        let expired = now > self.min_rtt_at + params.min_rtt_window;
        if let Some(rtt) = sample.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt && self.round > 0 {
            self.mode = Mode::ProbeRtt;
            self.save(window);
            self.probe_rtt_until = None;
        }
        self.idle_restart &= sample.acked == 0;
        if self.mode != Mode::ProbeRtt {
            return;
        }
        let least = MIN_SEGMENTS * sample.profile.mss.0 as f64;
        match self.probe_rtt_until {
            None if sample.in_flight as f64 <= least => {
                self.probe_rtt_until = Some(now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = sample.delivered;
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && now > until {
                    self.leave_probe_rtt(window, now, sample.delivered);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, window: &mut Window, now: Time, delivered: u64) {
        self.min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full {
            self.begin_probe_bw(now, delivered);
        } else {
            self.mode = Mode::Startup;
        }
    }

    // ---- what follows from it ----

    /// The first round trip is the smallest one, that of the handshake too. The first rate, by it and the
    /// initial window, is a rate like any other: Startup does not lower it.
    fn begin(&mut self, window: &Window, srtt: Option<Time>, now: Time) {
        if let Some(srtt) = srtt
            && self.pacing == 0.0
            && self.min_rtt.is_none()
        {
            (self.min_rtt, self.min_rtt_at) = (Some(srtt), now);
            self.pacing = HIGH_GAIN * window.cwnd / srtt.as_secs_f64() * PACING_MARGIN;
        }
    }

    fn set_pacing(&mut self, rate: f64) {
        if self.bw() > 0.0 && (self.full || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn save(&mut self, window: &Window) {
        self.prior_cwnd = if self.recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(window.cwnd)
        } else {
            window.cwnd
        };
    }

    fn update_cwnd(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        let mss = sample.profile.mss.0 as f64;
        let acked = sample.acked as f64;
        if sample.acked > 0 {
            self.recover_or_restore(window, sample);
            let target = self.with_room(
                self.bdp(self.bw(), self.cwnd_gain(params), mss) + self.extra(),
                mss,
            );
            if self.packet_conservation {
                window.cwnd = window.cwnd.max(sample.in_flight as f64 + acked);
            } else if self.full {
                window.cwnd = (window.cwnd + acked).min(target);
            } else if window.cwnd < target || (sample.delivered as f64) < INITIAL_SEGMENTS * mss {
                window.cwnd += acked;
            }
            // What is conserved is no more than what has arrived (Linux).
            if !(self.packet_conservation && sample.profile.rack_rules == RackRules::Linux) {
                window.cwnd = window.cwnd.max(MIN_SEGMENTS * mss);
            }
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_SEGMENTS * mss);
        }
    }

    /// The first round of recovery conserves packets; its end gives the window back.
    fn recover_or_restore(&mut self, window: &mut Window, sample: &Sample<'_>) {
        let lost: u64 = sample.losses.iter().map(|loss| loss.len).sum();
        let mss = sample.profile.mss.0 as f64;
        if lost > 0 {
            window.cwnd = (window.cwnd - lost as f64).max(mss);
        }
        let repairing = sample.state != RecoveryState::Open;
        // Losses that RACK finds while a time-out is repaired begin a recovery of their own (Linux).
        let linux = sample.profile.rack_rules == RackRules::Linux;
        let begins = !self.recovering || (linux && self.timed_out);
        if sample.state == RecoveryState::Recovery && begins {
            self.packet_conservation = true;
            self.next_round_delivered = sample.delivered;
            window.cwnd = (sample.in_flight + sample.acked) as f64;
        } else if self.recovering && !repairing {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.recovering = repairing;
        self.timed_out = sample.state == RecoveryState::Loss;
    }
}

impl CongestionControl for Bbr1 {
    type Params = Params;

    fn on_ack(&mut self, _: &Params, _: &mut Window, _: &Ack<'_>) {}

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        let mss = sample.profile.mss.0 as f64;
        self.begin(window, sample.srtt, sample.now);
        self.update_bw(params, sample);
        self.update_aggregation(sample, window);
        self.update_cycle(sample, mss);
        self.check_full(sample.rate.is_some_and(|rate| rate.app_limited));
        self.check_drain(sample, mss);
        self.update_min_rtt(params, window, sample);
        self.set_pacing(self.bw() * self.pacing_gain() * PACING_MARGIN);
        self.update_cwnd(params, window, sample);
    }

    fn on_restart(&mut self, _: &Params, window: &mut Window, restart: &Restart<'_>) {
        self.begin(window, restart.srtt, restart.now);
        self.idle_restart = true;
        self.aggregation.restart(restart.now);
        match self.mode {
            Mode::ProbeBw => {
                let rate = self.bw() * PACING_MARGIN;
                self.set_pacing(rate);
            }
            Mode::ProbeRtt => {
                let is_over = self
                    .probe_rtt_until
                    .is_some_and(|until| restart.now > until);
                if is_over {
                    self.leave_probe_rtt(window, restart.now, restart.delivered);
                }
            }
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Neither a loss nor a time-out changes the model; the window of before comes back.
    fn on_congestion(
        &mut self,
        params: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        self.save(window);
        if congestion.cause == Cause::Timeout {
            self.on_loss_state(params, window);
        }
        Decrease::Bytes(window.ssthresh)
    }

    fn on_loss_state(&mut self, _: &Params, _: &Window) {
        (self.recovering, self.timed_out) = (true, true);
        self.full_bw = 0.0;
    }

    fn on_undo(&mut self, _: &Params, _: &mut Window) {
        (self.full_bw, self.full_bw_count) = (0.0, 0);
        #[cfg(feature = "linux")]
        self.policer.forget();
    }

    fn pacing_rate(
        &self,
        _: &Params,
        window: &Window,
        profile: &Profile,
        srtt: Option<Time>,
    ) -> Option<f64> {
        let rate = if self.pacing > 0.0 {
            self.pacing
        } else {
            let rtt = srtt.unwrap_or(Time::from_millis(1)).as_secs_f64();
            HIGH_GAIN * window.cwnd / rtt
        };
        Some(rate * wire(profile))
    }

    fn limits_samples(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    fn linux_burst(&self, rate: f64, min_rtt: Option<Time>, len: u64) -> u32 {
        pace::linux_burst(rate, min_rtt, len, least_burst(rate))
    }

    fn state(&self) -> Option<ControlState> {
        let known = self.min_rtt.is_some();
        Some(ControlState {
            phase: Self::PHASES[self.mode as usize],
            max_bw: known.then(|| self.most_bw()),
            bw: known.then(|| self.bw()),
            min_rtt: self.min_rtt,
            extra_acked: Some(self.aggregation.most()),
            full_bw_reached: Some(self.full),
            round: Some(self.round),
            cycle: Some(self.cycle_index as u64),
            ..ControlState::default()
        })
    }

    const PHASES: &'static [&'static str] = &["startup", "drain", "probe-bw", "probe-rtt"];
}

#[cfg(test)]
impl Bbr1 {
    pub(super) fn phase_shown(&self) -> String {
        match self.mode {
            Mode::Startup => "startup".to_owned(),
            Mode::Drain => "drain".to_owned(),
            Mode::ProbeBw => format!("probe-bw-{}", self.cycle_index),
            Mode::ProbeRtt => "probe-rtt".to_owned(),
        }
    }

    pub(super) fn model_shown(&self) -> (f64, f64, Time) {
        (
            self.most_bw(),
            self.pacing,
            self.min_rtt.unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests;
