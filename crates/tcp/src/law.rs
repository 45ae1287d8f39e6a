//! The congestion controls for a transport that is not TCP: one whose packets have numbers of their
//! own and are acknowledged one by one, as those of QUIC are.
//!
//! The controls count in bytes of a sequence. Here that is what has been sent so far: a packet ends
//! where all that was sent up to it ends, and what is sent again is sent anew.

use std::sync::Arc;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_net::{Bytes, Ecn, Time};

use crate::control::{
    Ack, Cause, Congestion, CongestionControlKind, Control, ControlMetrics, ControlState, Marks,
    Restart, Sample,
};
use crate::profile::{DecreaseBase, Ect, Pacing, Profile, RackRules, SlowStart, SlowStartExit};
use crate::rate::{Delivery, Loss, Then};
use crate::recovery::RecoveryState;
use crate::sender::rack::hystart::{Arrival, HyStart};

/// What a packet remembers of the connection when it was sent: for [`Law::acknowledge`] and
/// [`Law::lose`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Behind its last byte.
    end: u64,
    then: Then,
}

/// What an acknowledgement reports beside the packets themselves.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The current time.
    pub now: Time,
    /// Packets newly reported as marked.
    pub marks: u64,
    /// The round trip of the newest packet, if it was measured.
    pub rtt: Option<Time>,
    /// The smoothed round trip, and the least one.
    pub srtt: Option<Time>,
    /// The least round trip.
    pub min_rtt: Option<Time>,
    /// Bytes in flight before and after it.
    pub in_flight: (u64, u64),
    /// The window was used before it.
    pub window_limited: bool,
    /// Losses are being repaired: some packet that was sent before the last congestion is not
    /// acknowledged.
    pub recovering: bool,
    /// It has shown congestion, and the window has been reduced for that.
    pub reduced: bool,
}

/// A congestion control with its window, for one sender.
#[derive(Clone, Debug)]
pub struct Law {
    control: Control,
    hystart: HyStart,
    profile: Arc<Profile>,
    /// Behind the last byte sent, and behind the newest packet acknowledged.
    max: u64,
    una: u64,
    delivery: Delivery,
    // What the acknowledgement at hand reports.
    acked: u64,
    /// Of these, bytes of packets that open the window.
    opening: u64,
    newest: Option<(Time, Stamp)>,
    losses: Vec<Loss>,
}

impl Law {
    /// What the controls need to know of a stack, for datagrams of `datagram` bytes: additive and
    /// exact, without what is TCP's own.
    pub fn stack(
        kind: CongestionControlKind,
        exit: SlowStartExit,
        datagram: Bytes,
    ) -> Arc<Profile> {
        let linux = Profile::named("linux").expect("it ships");
        Arc::new(Profile {
            congestion_control: kind,
            mss: datagram,
            header: Bytes(0),
            slow_start: SlowStart::ByteCounting { limit: u32::MAX },
            slow_start_exit: exit,
            // RFC 9002, section 7.7.
            pacing: Pacing::Linux,
            // Bytes, and no whole segments.
            multiplicative_decrease_base: DecreaseBase::FlightSize,
            rack_rules: RackRules::Rfc8985,
            ecn: true,
            ..linux
        })
    }

    /// Refuses a control that needs what only TCP has, or marks where there are none.
    pub fn check(kind: &CongestionControlKind, ecn: bool) -> Result<(), Problem> {
        if kind.stamps().is_some() {
            let message = "found a control that needs the time stamps of TCP; expected another";
            return problem("congestion_control", message);
        }
        if kind.goes_by_marks() && !ecn {
            let message = "found one that goes by ECN marks, and there are none; expected ecn = true \
                           with it";
            return problem("congestion_control", message);
        }
        let checked = kind.check();
        checked.map_err(|(field, message)| (format!("congestion_control.{field}"), message))
    }

    /// A sender with a window of so many bytes, and a [stack](Self::stack).
    pub fn new(stack: Arc<Profile>, window: u64) -> Self {
        let mut control = Control::new(&stack);
        control.set_window(window);
        Self {
            control,
            hystart: HyStart::default(),
            profile: stack,
            max: 1,
            una: 1,
            delivery: Delivery::default(),
            acked: 0,
            opening: 0,
            newest: None,
            losses: Vec::new(),
        }
    }

    /// The congestion window in bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        self.control.window()
    }

    /// The slow-start threshold in bytes; none before the first congestion.
    pub fn ssthresh(&self) -> Option<u64> {
        let ssthresh = self.control.ssthresh();
        (ssthresh < self.profile.initial_ssthresh.0).then_some(ssthresh)
    }

    /// The inner state, for traces. `srtt` is the smoothed round trip.
    pub fn state(&self, srtt: Option<Time>) -> ControlState {
        self.control.state(&self.profile, srtt)
    }

    /// For traces.
    pub fn metrics(&self) -> ControlMetrics {
        self.control.metrics()
    }

    /// Whether it answers marks by what [`Report::marks`] says: then nobody else does.
    pub fn answers_marks(&self) -> bool {
        self.profile.congestion_control.answers_marks()
    }

    /// Whether it sets the window itself, after losses too.
    pub fn owns_window(&self) -> bool {
        self.profile.congestion_control.owns_window()
    }

    /// The ECN field of what it sends where that is ECN-capable.
    pub fn code_point(&self) -> Ecn {
        match self.profile.congestion_control.ect() {
            Ect::Ect0 => Ecn::Ect0,
            Ect::Ect1 => Ecn::Ect1,
        }
    }

    /// Bytes per second at which it wants packets to leave; none: it leaves that to others.
    #[inline]
    pub fn pacing_rate(&self, srtt: Option<Time>) -> Option<f64> {
        self.control.pacing_rate(&self.profile, srtt)
    }

    /// A packet of so many bytes leaves, with `in_flight` bytes on their way before it.
    #[inline]
    pub fn on_send(&mut self, bytes: u64, in_flight: u64, now: Time) -> Stamp {
        if in_flight == 0 {
            self.control.on_restart(&Restart {
                now,
                profile: &self.profile,
                srtt: None,
                delivered: self.delivery.delivered,
            });
        }
        let start = self.max;
        self.max += bytes;
        self.control.on_send(start, self.max, false, now);
        Stamp {
            end: self.max,
            then: self.delivery.on_send(in_flight, bytes, now),
        }
    }

    /// The application has nothing to send though the window would allow it.
    #[inline]
    pub fn limit_by_application(&mut self, in_flight: u64) {
        self.delivery.limit_by_application(in_flight);
    }

    /// A packet of so many bytes, sent at `sent`, has arrived. `opens`: it was sent after the last
    /// congestion. [`finish`](Self::finish) ends the acknowledgement.
    #[inline]
    pub fn acknowledge(&mut self, bytes: u64, sent: Time, stamp: &Stamp, opens: bool, now: Time) {
        self.delivery.on_arrival(bytes, now);
        self.acked += bytes;
        self.opening += if opens { bytes } else { 0 };
        if self.newest.is_none_or(|(_, newest)| stamp.end > newest.end) {
            self.newest = Some((sent, *stamp));
        }
    }

    /// A packet of so many bytes is lost.
    pub fn lose(&mut self, bytes: u64, stamp: &Stamp) {
        self.losses.push(self.delivery.on_loss(bytes, &stamp.then));
    }

    /// Congestion that packets show which were lost, or marked: the window falls, not below `least`.
    pub fn reduce(&mut self, is_loss: bool, least: u64, now: Time) {
        let window = self.control.window();
        let cause = if is_loss { Cause::Loss } else { Cause::Echo };
        let left = self.cut(cause, now);
        if !self.owns_window() {
            self.control
                .set_window(left.max(least).min(window.max(least)));
            // The window has whole bytes. A threshold with a fraction above it would be slow start.
            let window = self.control.window();
            if self.control.ssthresh() == window {
                self.control.set_ssthresh(window);
            }
        }
    }

    /// Everything was lost for a long time: the window falls to `least`.
    pub fn collapse(&mut self, least: u64, now: Time) {
        self.cut(Cause::Timeout, now);
        self.control.set_window(least);
    }

    fn cut(&mut self, cause: Cause, now: Time) -> u64 {
        let window = self.control.window();
        self.control.on_congestion(&Congestion {
            now,
            profile: &self.profile,
            flight: window,
            window,
            cause,
            whole: false,
        })
    }

    /// The acknowledgement is taken in: samples, and the window grows.
    pub fn finish(&mut self, report: &Report) {
        let before = self.una;
        let newest = self.newest.map(|(sent, stamp)| (sent, stamp.then));
        let rate = self.delivery.sample(newest, report.min_rtt);
        if let Some((_, newest)) = self.newest.take() {
            self.una = self.una.max(newest.end);
        }
        let marks = Marks {
            bytes: report.marks * self.profile.mss.0,
            segments: report.marks,
        };
        let answers = self.answers_marks();
        let sample = Sample {
            now: report.now,
            profile: &self.profile,
            state: match report.recovering {
                true => RecoveryState::Recovery,
                false => RecoveryState::Open,
            },
            una: self.una,
            max: self.max,
            acked: self.acked,
            advances: self.una > before,
            marks,
            losses: &self.losses,
            rtt: report.rtt,
            srtt: report.srtt,
            rate,
            delivered: self.delivery.delivered,
            lost: self.delivery.lost,
            in_flight_before: report.in_flight.0,
            in_flight: report.in_flight.1,
            window_limited: report.window_limited,
        };
        if self.control.on_sample(&sample) {
            self.limit_by_application(report.in_flight.1);
        }
        self.losses.clear();
        let acked = std::mem::take(&mut self.acked);
        let opening = std::mem::take(&mut self.opening);
        let echoed = report.marks > 0 && !answers;
        let opens = opening > 0 && report.window_limited && !report.reduced && !echoed;
        if acked == 0 || (opens && self.open_by_hystart(opening, report)) {
            return;
        }
        let news = Ack {
            now: report.now,
            profile: &self.profile,
            acked: if opens { opening } else { acked },
            una: self.una,
            max: self.max,
            counted: None,
        };
        if opens {
            self.control.on_ack(&news);
        } else {
            self.control.on_recovery_ack(&news);
        }
    }

    /// In the first slow start HyStart++ opens the window, where it is wanted.
    fn open_by_hystart(&mut self, acked: u64, report: &Report) -> bool {
        let ack = Arrival {
            acked,
            rtt: report.rtt,
            una: self.una,
            max: self.max,
        };
        // Packets are paced: RFC 9406, section 4.3.
        let (control, profile) = (&mut self.control, &self.profile);
        self.hystart.opens(control, profile, &ack, u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acknowledgement_behind_a_cut_is_no_slow_start() {
        const DATAGRAM: u64 = 1000;
        let start = Time::from_secs(1);
        for kind in CongestionControlKind::all() {
            let name = format!("{kind:?}");
            if !["Reno", "Cubic", "Scalable"]
                .iter()
                .any(|it| name.starts_with(it))
            {
                continue;
            }
            let stack = Law::stack(kind, SlowStartExit::Control, Bytes(DATAGRAM));
            let mut law = Law::new(stack, 10_003);
            let stamp = law.on_send(DATAGRAM, 0, start);
            law.reduce(true, 2 * DATAGRAM, start);
            let cut = law.window();
            let now = start + Time::from_millis(40);
            law.acknowledge(DATAGRAM, start, &stamp, true, now);
            law.finish(&Report {
                now,
                marks: 0,
                rtt: Some(Time::from_millis(40)),
                srtt: Some(Time::from_millis(40)),
                min_rtt: Some(Time::from_millis(40)),
                in_flight: (DATAGRAM, 0),
                window_limited: true,
                recovering: false,
                reduced: false,
            });
            // A datagram for each window, not for each datagram.
            let more = law.window().saturating_sub(cut);
            assert!(more < DATAGRAM / 2, "{name}: {cut} and {more}");
        }
    }
}
