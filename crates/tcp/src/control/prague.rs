//! TCP Prague. K. De Schepper, O. Tilmans, B. Briscoe, V. Goel, "Prague Congestion Control",
//! draft-briscoe-iccrg-prague-congestion-control; tcp_prague.c of L4STeam/linux, 0.6. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;

use super::bbr::wire;
use super::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlMetrics, ControlParameters, Decrease, Sample,
};
use super::window::Window;
use crate::profile::{EcnEcho, Ect, Profile};
use crate::recovery::RecoveryState;
use crate::sender::rack::pace::LARGEST_BURST;

/// Parameters of TCP Prague.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Flows with a shorter round-trip time grow as if they had this one.
    #[param(default = "25 ms", above = Time::ZERO)]
    pub rtt_target: Time,
    /// Number of round trips after slow start before `rtt_target` applies.
    #[param(default = 500)]
    pub transition: u64,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "TCP Prague",
        paper: "K. De Schepper et al., Prague Congestion Control, \
                draft-briscoe-iccrg-prague-congestion-control; tcp_prague.c of L4STeam/linux, 0.6",
        purpose: "DCTCP for the Internet, with pacing and fractional windows. Flows grow no faster \
                  than a flow with a round trip of `rtt_target`. A loss halves the window. Needs \
                  `ecn` and `recovery = \"rack-tlp\"`. Defaults: `ect = \"ect1\"`, `ecn_echo = \
                  \"accurate\"`.",
        departures: &[
            "With `ecn_echo = \"each-change\"` a lost ACK loses its marks (RFC 8257, section 3.2).",
            "Only the rate mode of the draft's RTT independence is implemented.",
            "Slow start also grows the window in fractions.",
        ],
        memory: "the fraction of marked packets, the fractional window and a few counters",
    };
}

impl ControlParameters for Params {
    type Control = Prague;

    const ANSWERS_MARKS: bool = true;
    const ECHO: EcnEcho = EcnEcho::Accurate;
    const ECT: Ect = Ect::Ect1;
}

/// A segment, and the share 1, in fixed point.
const SHIFT: u32 = 20;
const ONE: u64 = 1 << SHIFT;
/// The share of marks is kept 16 times as exactly; that is also its gain, 1/16.
const GAIN_SHIFT: u32 = 4;
const LEAST_SEGMENTS: u64 = 2;

/// The state of Prague.
#[derive(Clone, Debug)]
pub(crate) struct Prague {
    /// The share of marks in 2^-24.
    alpha: u64,
    /// The window in 2^-20 segments; 0: that of the connection has not been taken over yet.
    cwnd: u64,
    saw_mark: bool,
    /// Rounds since slow start ended.
    round: u64,
    next_seq: u64,
    /// Segments delivered and marked since the share was renewed.
    delivered: u64,
    marked: u64,
    /// No cut until this is acknowledged.
    cut_until: u64,
    cut_at: Time,
    /// Since it is independent of the round trip: when the last round was over.
    renewed_at: Time,
    /// Growth per round trip, in 2^-20 segments.
    increase: u64,
    independent: bool,
    srtt: Option<Time>,
}

impl Default for Prague {
    fn default() -> Self {
        Self {
            alpha: ONE << GAIN_SHIFT,
            cwnd: 0,
            saw_mark: false,
            round: 0,
            next_seq: 0,
            delivered: 0,
            marked: 0,
            cut_until: 0,
            cut_at: Time::ZERO,
            renewed_at: Time::ZERO,
            increase: ONE,
            independent: false,
            srtt: None,
        }
    }
}

/// The window in segments, to the nearest one.
fn whole(window: &Window, mss: f64) -> u64 {
    (window.cwnd / mss + 0.5) as u64
}

impl Prague {
    fn rounded_up(&self) -> u64 {
        self.cwnd.div_ceil(ONE)
    }

    /// A mark: the window falls by half of the share of marks, once per round trip.
    fn take_mark(&mut self, params: &Params, sample: &Sample<'_>) {
        if sample.una < self.cut_until {
            return;
        }
        let recent = sample.now.saturating_sub(self.cut_at) < params.rtt_target;
        if self.independent && self.cut_at > Time::ZERO && recent {
            return;
        }
        let alpha = u128::from(self.alpha >> GAIN_SHIFT);
        let less = (alpha * u128::from(self.cwnd) + u128::from(ONE)) >> (SHIFT + 1);
        self.cwnd = (self.cwnd - less as u64).max(LEAST_SEGMENTS * ONE);
        self.cut_until = sample.max;
        self.cut_at = sample.now;
    }

    /// Segments without a mark open the window, in the round trip of a mark as well.
    fn grow(&mut self, unmarked: u64, window: &mut Window, sample: &Sample<'_>) {
        if unmarked == 0 || sample.state == RecoveryState::Recovery || !sample.window_limited {
            return;
        }
        if window.in_slow_start(sample.profile) {
            window.cwnd += (unmarked * sample.profile.mss.0) as f64;
            self.cwnd += unmarked * ONE;
            return;
        }
        let segments = self.rounded_up();
        let more = (unmarked * self.increase + segments / 2) / segments;
        self.cwnd += more.max(unmarked);
    }

    /// The whole window follows the exact one, a segment per ACK.
    fn follow(&self, window: &mut Window, mss: f64) {
        let (target, whole) = (self.rounded_up(), whole(window, mss));
        if whole > target {
            window.cwnd = (whole - 1) as f64 * mss;
            window.ssthresh = window.cwnd;
        } else if whole < target {
            window.cwnd = (whole + 1) as f64 * mss;
        }
    }

    /// A round is over: the share of marks is renewed from the first mark on.
    fn end_round(&mut self, params: &Params, window: &Window, sample: &Sample<'_>) {
        let since = sample.now.saturating_sub(self.renewed_at);
        if sample.una < self.next_seq || (self.independent && since < params.rtt_target) {
            return;
        }
        if self.saw_mark && self.delivered > 0 {
            let share = self.marked * ONE / self.delivered;
            self.alpha = (self.alpha - (self.alpha >> GAIN_SHIFT) + share).min(ONE << GAIN_SHIFT);
        }
        (self.delivered, self.marked) = (0, 0);
        self.next_seq = sample.max;
        if !window.in_slow_start(sample.profile) {
            self.round += 1;
        }
        self.scale(params);
        if self.independent {
            self.renewed_at = sample.now;
        }
    }

    /// The rate grows by as much as it does with the round trip that is the target.
    fn scale(&mut self, params: &Params) {
        let srtt = self.srtt.filter(|srtt| *srtt < params.rtt_target);
        self.independent = self.round >= params.transition && srtt.is_some();
        self.increase = match srtt {
            Some(srtt) if self.independent => {
                let share = srtt.as_secs_f64() / params.rtt_target.as_secs_f64();
                (share * share * ONE as f64) as u64
            }
            _ => ONE,
        };
    }
}

impl CongestionControl for Prague {
    type Params = Params;

    fn on_ack(&mut self, _: &Params, _: &mut Window, _: &Ack<'_>) {}

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        let mss = sample.profile.mss.0;
        self.srtt = sample.srtt;
        if self.cwnd == 0 || sample.state == RecoveryState::Loss {
            self.cwnd = (window.cwnd / mss as f64 * ONE as f64) as u64;
        }
        let segments = sample.acked.div_ceil(mss);
        let marked = sample.marks.segments;
        self.delivered += segments;
        self.marked += marked;
        if marked > 0 {
            self.saw_mark = true;
            self.take_mark(params, sample);
            if window.in_slow_start(sample.profile) {
                window.ssthresh = self.rounded_up() as f64 * mss as f64;
            }
        }
        self.grow(segments.saturating_sub(marked), window, sample);
        if sample.state == RecoveryState::Open {
            self.follow(window, mss as f64);
        }
        self.end_round(params, window, sample);
    }

    /// Rounds go on without anything out, and count once slow start is over; the whole window follows the
    /// exact one.
    fn samples_when_idle(&self, _: &Params, window: &Window, profile: &Profile, _: Time) -> bool {
        let is_settled = window.cwnd == (self.rounded_up() * profile.mss.0) as f64;
        !is_settled || self.cwnd == 0 || self.independent || !window.in_slow_start(profile)
    }

    fn on_congestion(
        &mut self,
        _: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        let mss = congestion.profile.mss.0 as f64;
        if self.cwnd == 0 {
            self.cwnd = (window.cwnd / mss * ONE as f64) as u64;
        }
        if congestion.cause != Cause::Timeout {
            self.cwnd = (self.cwnd / 2).max(LEAST_SEGMENTS * ONE);
        }
        Decrease::Share(0.5)
    }

    /// A 4,096th of a second (`prague_burst_shift`).
    fn linux_burst(&self, rate: f64, _: Option<Time>, len: u64) -> u32 {
        ((rate / 4096.0).min(LARGEST_BURST) / len as f64).max(1.0) as u32
    }

    fn on_undo(&mut self, _: &Params, _: &mut Window) {
        self.cwnd = 0; // It is that of before, which the stack has restored.
    }

    fn pacing_rate(
        &self,
        _: &Params,
        window: &Window,
        profile: &Profile,
        srtt: Option<Time>,
    ) -> Option<f64> {
        let mss = profile.mss.0 as f64;
        let cwnd = match self.cwnd {
            0 => window.cwnd,
            cwnd => cwnd as f64 / ONE as f64 * mss,
        };
        let early = window.cwnd < window.ssthresh / 2.0;
        let factor = if early { 2.0 } else { 1.0 };
        srtt.map(|srtt| factor * cwnd * wire(profile) / srtt.as_secs_f64())
    }

    /// The share of marks, in per cent.
    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: None,
            segments: Some(100.0 * self.alpha as f64 / (ONE << GAIN_SHIFT) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::{Feed, segments};

    #[test]
    fn bursts_take_a_4096th_of_a_second() {
        let burst = |mbps: f64| Prague::default().linux_burst(mbps * 1e6 / 8.0, None, 1514);
        assert_eq!((burst(20.0), burst(1000.0)), (1, 20));
    }

    #[test]
    fn the_first_loss_halves_the_window_and_a_time_out_takes_it_over() {
        let feed = Feed::default();
        for (cause, left) in [(Cause::Loss, 10), (Cause::Timeout, 20)] {
            let congestion = Congestion {
                now: Time::ZERO,
                profile: &feed.profile,
                flight: 20 * Feed::MSS,
                window: 20 * Feed::MSS,
                cause,
                whole: false,
            };
            let mut prague = Prague::default();
            let _ = prague.on_congestion(&Params::default(), &segments(20.0), &congestion);
            assert_eq!(prague.cwnd, left * ONE, "{cause:?}");
        }
    }

    /// prague_acks.csv: each ACK covers two segments.
    fn follow_trace(rows: &str, round: u64) {
        let params = Params::default();
        let mut prague = Prague {
            alpha: (ONE / 2) << GAIN_SHIFT,
            cwnd: 20 * ONE,
            round,
            srtt: Some(Time::from_millis(10)),
            next_seq: 20 * Feed::MSS,
            ..Prague::default()
        };
        prague.scale(&params);
        let mut window = segments(20.0);
        let mut feed = Feed {
            rtt: prague.srtt,
            una: 0,
            ..Feed::default()
        };
        let mut count = 0;
        for row in rows.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let number = |at: usize| cells[at].parse::<u64>().unwrap();
            feed.now = Time::from_secs_f64(cells[1].parse().unwrap());
            feed.max = number(4) * Feed::MSS;
            let sample = feed.acks_of_what_is_out(2, number(2));
            let before = (prague.cut_at, prague.alpha);
            prague.on_sample(&params, &mut window, &sample);
            assert_eq!(prague.alpha >> GAIN_SHIFT, number(5), "{row}");
            assert_eq!(prague.cwnd, number(7), "{row}");
            assert_eq!(window.cwnd, number(9) as f64 * Feed::MSS as f64, "{row}");
            assert_eq!(
                prague.cut_at != before.0,
                cells[10].contains("cut"),
                "{row}"
            );
            assert_eq!(
                prague.alpha != before.1,
                cells[10].contains("alpha"),
                "{row}"
            );
            count += 1;
        }
        assert_eq!(count, 50);
    }

    #[test]
    fn pg02_pg03_every_ack_is_that_of_the_trace() {
        follow_trace(include_str!("../../tests/data/modern/prague_acks.csv"), 0);
    }

    #[test]
    fn pg02_pg04_so_is_every_ack_of_a_short_round_trip() {
        let rows = include_str!("../../tests/data/modern/prague_acks_rtt_independent.csv");
        follow_trace(rows, 500);
    }

    #[test]
    fn pg05_the_first_mark_halves() {
        let params = Params::default();
        let mut prague = Prague::default();
        let mut window = segments(40.0);
        let mut feed = Feed::default();
        for _ in 0..100 {
            prague.on_sample(&params, &mut window, &feed.acks(40, 0));
        }
        assert_eq!(prague.alpha, ONE << GAIN_SHIFT);
        let before = prague.cwnd;
        feed.send(40);
        prague.on_sample(&params, &mut window, &feed.acks_of_what_is_out(1, 1));
        assert_eq!(prague.cwnd, before - before.div_ceil(2));
    }
}
