//! What an ACK tells such a sender, and what follows for losses, window and timers.

use aqmlab_net::Time;

use super::Tracked;
use super::hystart::{Arrival, LIMIT};
use crate::context::Context;
use crate::control::{Cause, Marks, Sample};
use crate::endpoint::{Endpoint, Events};
use crate::profile::{BackoffEnd, RateReduction, SlowStartExit};
use crate::prr::Prr;
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox, RoundTrip, Segment, Stamps};

/// Duplicate ACKs that mean a loss where the peer sends no SACK (RFC 5681, section 3.2).
const DUP_THRESH: u32 = 3;

/// What was so before an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) una: u64,
    pub(super) pipe: u64,
    /// The window was used.
    pub(super) window_limited: bool,
    pub(super) state: RecoveryState,
}

impl Endpoint {
    /// The records of a connection that keeps some: it has them from its establishment on.
    #[inline(always)]
    pub(super) fn tracked(&mut self) -> &mut Tracked {
        let cold = self.cold.as_mut();
        let tracked = cold.and_then(|cold| cold.tracked.as_mut());
        tracked.expect("who keeps records has some")
    }

    /// Bytes on their way. Without SACK each duplicate ACK tells of a segment that has arrived.
    pub(crate) fn pipe(&self, mss: u64) -> u64 {
        let cold = self.cold.as_ref();
        let Some(tracked) = cold.and_then(|cold| cold.tracked.as_ref()) else {
            return self.in_flight();
        };
        let pipe = tracked.flight.pipe(self.una, self.max);
        if self.sacking {
            return pipe;
        }
        pipe.saturating_sub(u64::from(self.dup_acks) * mss)
    }

    /// Takes an acknowledgement of what was sent; it is no more than that.
    #[inline(never)]
    pub(crate) fn on_tracked_ack(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let pipe = self.pipe(cx.profile.mss.0);
        let before = Before {
            una: self.una,
            pipe,
            window_limited: self.uses_window(pipe, cx),
            state: self.recovery_state,
        };
        let dsack = self.take_arrivals(segment, cx);
        self.measure_arrivals(segment, cx, out);
        let marks = self.take_marks(segment, cx);
        self.una = self.una.max(segment.ack);
        self.nxt = self.nxt.max(self.una);
        let advances = self.una > before.una;
        self.count_duplicates(segment, advances, cx);
        self.end_probe(segment.ack, advances, dsack, before.pipe, cx);
        match self.recovery_state {
            RecoveryState::Recovery if self.una >= self.recover => self.end_recovery(cx),
            RecoveryState::Loss => self.judge_timeout(advances, cx),
            _ => {}
        }
        self.undo_by_reports(advances, before.state, cx);
        self.find_losses(advances, cx);
        if self.recovery_state == RecoveryState::Open && self.tracked().flight.holes() > 0 {
            self.enter_recovery(before.pipe, cx);
        }
        self.tell_control(&before, marks, cx);
        self.move_window(&before, advances, marks, cx);
        self.set_pace(cx);
        self.restart_timers(advances, cx);
    }

    /// What has arrived by this ACK; whether it reports a duplicate (D-SACK: RFC 2883).
    fn take_arrivals(&mut self, segment: &Segment, cx: &Context<'_>) -> bool {
        let (una, max, recover, sacking) = (self.una, self.max, self.recover, self.sacking);
        let echoed = self.echoed(segment, cx);
        let tracked = self.tracked();
        tracked.flight.begin();
        tracked.rack.echoed = echoed;
        let (flight, rack) = (&mut tracked.flight, &mut tracked.rack);
        if segment.ack > una {
            flight.acknowledge(segment.ack, recover, cx.now, rack);
        }
        let una = una.max(segment.ack);
        let mut dsack = false;
        if sacking {
            let full = |(from, to)| (Segment::unwrap_seq(from, una), Segment::unwrap_seq(to, una));
            let mut blocks = segment.options.sack_blocks().map(full);
            let first = blocks.next();
            let second = blocks.next();
            if let Some((from, to)) = first {
                let is_inside = second.is_some_and(|(low, high)| low <= from && to <= high);
                dsack = to <= segment.ack || is_inside;
                if dsack {
                    tracked.undo.on_duplicate(from);
                }
            }
            for (from, to) in first.into_iter().chain(second).chain(blocks) {
                if una <= from && from < to && to <= max {
                    flight.on_sack(from, to, recover, cx.now, rack);
                }
            }
        }
        rack.on_ack(una, max, dsack);
        dsack
    }

    /// When the segment was sent whose time stamp the peer echoes, to the millisecond.
    fn echoed(&self, segment: &Segment, cx: &Context<'_>) -> Option<Time> {
        if !self.stamping || cx.profile.stamps() != Some(Stamps::Rfc7323) {
            return None;
        }
        let stamps = segment.options.timestamps()?;
        let now = cx.host.millis(cx.now);
        let passed = Time::from_millis(u64::from(now.wrapping_sub(stamps.echo)));
        Some(Time::from_millis(u64::from(now)).saturating_sub(passed))
    }

    /// The round trip of this ACK, for the retransmission timer.
    pub(super) fn measure_arrivals(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let advances = segment.ack > self.una;
        let tracked = self.tracked();
        let echoed = tracked.rack.echoed.filter(|_| advances);
        let by_stamp = echoed.map(|echoed| cx.now.saturating_sub(echoed));
        if let Some(time) = tracked.flight.news.longest_rtt.or(by_stamp) {
            tracked.probe.on_round_trip();
            self.rto
                .sample(cx.profile, cx.host, cx.now.saturating_sub(time), cx.now);
            out.on_round_trip(&RoundTrip {
                time,
                smoothed: self.rto.smoothed(cx.profile).unwrap_or(time),
                cwnd: self.cwnd(),
            });
        }
        if advances && cx.profile.backoff_ends_with != BackoffEnd::Sample {
            self.rto.end_backoff(cx.profile);
        }
    }

    /// What the ACK tells of marks; a control that leaves them to the stack has answered by then.
    fn take_marks(&mut self, segment: &Segment, cx: &Context<'_>) -> Marks {
        let news = &self.tracked().flight.news;
        let told = Marks {
            bytes: news.delivered,
            segments: news.segments,
        };
        let marks = if self.ecn.accurate {
            let segments = self.accecn_marks(segment, (told.segments, told.bytes), cx);
            let bytes = segments * cx.profile.mss.0;
            Marks { bytes, segments }
        } else if self.ecn.agreed && segment.flags.has(Flags::ECE) {
            told
        } else {
            return Marks::default();
        };
        let answers = cx.profile.congestion_control.answers_marks();
        if answers && !self.falls_back(cx) {
            self.answer_echo(segment.ack);
            return marks;
        }
        if marks.segments > 0 {
            self.on_echo(segment.ack, cx);
        }
        // Without accurate feedback it is Reno: marks are no concern of its own.
        if answers { Marks::default() } else { marks }
    }

    /// Without SACK duplicate ACKs stand for what has arrived beyond a gap.
    fn count_duplicates(&mut self, segment: &Segment, advances: bool, cx: &Context<'_>) {
        if self.sacking {
            return;
        }
        let pure = segment.len == 0 && !segment.flags.has(Flags::FIN);
        if advances {
            let told = self.tracked().flight.news.segments.saturating_sub(1);
            self.dup_acks = match self.recovery_state {
                RecoveryState::Recovery => self.dup_acks.saturating_sub(told as u32),
                _ => 0,
            };
        } else if segment.ack == self.una && self.una < self.max && pure {
            self.dup_acks += 1;
            let most = self.in_flight().div_ceil(cx.profile.mss.0) as u32;
            self.dup_acks = self.dup_acks.min(most.saturating_sub(1));
        }
    }

    // ---- losses ----

    /// Marks what is lost by now, and sets the reordering timer to the next time when something
    /// will be.
    fn find_losses(&mut self, advances: bool, cx: &Context<'_>) {
        let (una, recover) = (self.una, self.recover);
        let recovering = self.recovery_state != RecoveryState::Open;
        let srtt = self.rto.smoothed(cx.profile);
        let (sacking, dup_acks) = (self.sacking, self.dup_acks);
        let in_recovery = self.recovery_state == RecoveryState::Recovery;
        let tracked = self.tracked();
        tracked.reo_at = Time::NEVER;
        if !sacking {
            let third = dup_acks >= DUP_THRESH && !recovering && una >= recover;
            if third || (in_recovery && advances) {
                tracked.flight.lose_oldest();
            }
            return;
        }
        if tracked.flight.is_doubtful(una) {
            let sacked = tracked.flight.sacked_segments;
            let patience = tracked.rack.patience(srtt, recovering, sacked);
            let next = tracked.flight.detect(&tracked.rack, patience, cx.now);
            tracked.reo_at = next.unwrap_or(Time::NEVER);
        }
    }

    /// A loss was found: the window is cut once, and what is lost goes again. `pipe`: bytes on
    /// their way before.
    fn enter_recovery(&mut self, pipe: u64, cx: &Context<'_>) {
        self.remember_window();
        let cwnd = self.cut_for_loss(pipe, cx);
        self.cold_mut().fast_retransmits += 1;
        self.recover = self.max;
        self.timed_out = false;
        self.recovery_state = RecoveryState::Recovery;
        if !cx.profile.congestion_control.owns_window()
            && cx.profile.rate_reduction == RateReduction::AtOnce
        {
            self.control.set_window(cwnd);
        }
        self.tracked().prr = Prr::begin(pipe.max(cx.profile.mss.0));
        self.restart_rto(cx);
    }

    /// All that was out when the loss was found has arrived.
    fn end_recovery(&mut self, cx: &Context<'_>) {
        self.recovery_state = RecoveryState::Open;
        self.dup_acks = 0;
        self.tracked().rack.on_recovered();
        if !cx.profile.congestion_control.owns_window() {
            self.control.set_window(self.control.ssthresh());
        }
    }

    /// The retransmission timer has expired (RFC 8985, section 6.3): the oldest segment is lost, and
    /// what is overdue; the rest is left to RACK.
    pub(crate) fn lose_by_timeout(&mut self, cx: &Context<'_>) {
        let (una, state, sacking) = (self.una, self.recovery_state, self.sacking);
        let srtt = self.rto.smoothed(cx.profile);
        // Lost once more, the same data is the same congestion; and what a recovery has cut for.
        let cold = self.cold_mut();
        let repeated = cold.timed_out_at == una;
        cold.timed_out_at = una;
        let cut = match state {
            RecoveryState::Open => true,
            _ => una >= self.recover && !repeated,
        };
        if cut {
            self.remember_window();
        }
        let outstanding = self.pipe(cx.profile.mss.0);
        let tracked = self.tracked();
        tracked.flight.begin();
        if tracked.flight.is_reneged() {
            tracked.flight.forget_sacks();
        }
        let sacked = tracked.flight.sacked_segments;
        let patience = tracked.rack.patience(srtt, true, sacked);
        tracked.flight.lose_oldest();
        tracked
            .flight
            .lose_overdue(sacking.then_some(patience), cx.now);
        tracked.reo_at = Time::NEVER;
        tracked.pto_at = Time::NEVER;
        tracked.probe.forget();
        self.begin_judging(state, cx);
        if cut {
            self.cut(outstanding, Cause::Timeout, cx);
        }
        self.dup_acks = 0;
        self.recovery_state = RecoveryState::Loss;
        self.recover = self.max;
        self.timed_out = true;
        let window = self.pipe(cx.profile.mss.0) + cx.profile.mss.0;
        self.control.set_window(window);
        self.restart_rto(cx);
    }

    // ---- the window ----

    pub(super) fn move_window(
        &mut self,
        before: &Before,
        advances: bool,
        marks: Marks,
        cx: &Context<'_>,
    ) {
        let news = &self.tracked().flight.news;
        let (delivered, lost) = (news.delivered, !news.losses.is_empty());
        if self.recovery_state == RecoveryState::Recovery {
            if delivered > 0 && advances {
                let ack = self.news(delivered, cx);
                self.control.on_recovery_ack(&ack);
            }
            self.reduce_tracked(advances && !lost, cx);
            return;
        }
        if !advances {
            return;
        }
        let ack = self.news(delivered, cx);
        let echoed = marks.segments > 0 && !cx.profile.congestion_control.answers_marks();
        let opens =
            before.state != RecoveryState::Recovery || cx.profile.recovery_exit_opens_window;
        if before.window_limited && opens && !echoed {
            if self.open_by_hystart(delivered, cx) {
                self.control.on_recovery_ack(&ack);
                return;
            }
            self.control.on_ack(&ack);
        } else {
            self.control.on_recovery_ack(&ack);
        }
    }

    /// Proportional rate reduction (RFC 9937): the window is what is on its way and what the ACK
    /// allows beside it.
    fn reduce_tracked(&mut self, safe: bool, cx: &Context<'_>) {
        if cx.profile.congestion_control.owns_window()
            || cx.profile.rate_reduction == RateReduction::AtOnce
        {
            return;
        }
        let mss = cx.profile.mss.0;
        let (ssthresh, pipe) = (self.control.ssthresh(), self.pipe(mss));
        let dup_ack = u64::from(!self.sacking && !safe) * mss;
        let tracked = self.tracked();
        let news = tracked.flight.news.delivered.max(dup_ack);
        if news == 0 && tracked.flight.news.losses.is_empty() {
            return;
        }
        let allowed = tracked.prr.on_delivered(news, pipe, ssthresh, safe, mss);
        self.control.set_window(pipe + allowed);
    }

    /// What the congestion control, and what paces, hears of an ACK.
    pub(super) fn tell_control(&mut self, before: &Before, marks: Marks, cx: &Context<'_>) {
        let in_flight = self.pipe(cx.profile.mss.0);
        let srtt = self.rto.smoothed(cx.profile);
        let (una, max, state) = (self.una, self.max, self.recovery_state);
        let cold = self.cold.as_mut();
        let Some(tracked) = cold.and_then(|cold| cold.tracked.as_mut()) else {
            return;
        };
        let min_rtt = tracked.rack.min_rtt();
        let rate = tracked.flight.rate(min_rtt);
        let flight = &tracked.flight;
        self.control.on_sample(&Sample {
            now: cx.now,
            profile: cx.profile,
            state,
            una,
            max,
            acked: flight.news.delivered,
            advances: una > before.una,
            marks,
            losses: &flight.news.losses,
            rtt: flight.news.rtt,
            srtt,
            rate,
            delivered: flight.delivered,
            lost: flight.lost,
            in_flight_before: before.pipe,
            in_flight,
            window_limited: before.window_limited,
        });
        if self.control.limits_samples() {
            tracked.flight.limit_by_application(in_flight);
        }
    }

    // ---- timers ----

    pub(super) fn restart_rto(&mut self, cx: &Context<'_>) {
        let at = self.rto.deadline(cx.profile, cx.host, cx.now);
        self.tracked().rto_at = at;
    }

    pub(super) fn restart_timers(&mut self, advances: bool, cx: &Context<'_>) {
        if advances {
            self.restart_rto(cx);
            self.schedule_probe(cx);
        }
        let is_open = self.recovery_state == RecoveryState::Open;
        let tracked = self.tracked();
        if !is_open || tracked.reo_at < Time::NEVER {
            tracked.pto_at = Time::NEVER; // What is known to be late is not probed.
        }
        self.set_timer(cx);
    }

    /// The next of the timers is the one that runs.
    pub(super) fn set_timer(&mut self, cx: &Context<'_>) {
        let outstanding = self.una < self.max;
        if outstanding && self.tracked().rto_at == Time::NEVER {
            self.restart_rto(cx);
        }
        let tracked = self.tracked();
        if !outstanding {
            (tracked.rto_at, tracked.reo_at) = (Time::NEVER, Time::NEVER);
            tracked.pto_at = Time::NEVER;
        }
        let next = tracked.rto_at.min(tracked.reo_at).min(tracked.pto_at);
        self.retransmit_at = next;
        if self.ecn.hold && next == Time::NEVER {
            self.arm(cx);
        }
    }

    /// One of the timers has expired.
    #[inline(never)]
    pub(crate) fn on_tracked_timer(&mut self, cx: &Context<'_>, out: &mut impl Outbox) -> Events {
        let before = self.pipe(cx.profile.mss.0);
        let tracked = self.tracked();
        if tracked.reo_at <= cx.now {
            tracked.flight.begin();
            self.find_losses(false, cx);
            if self.recovery_state == RecoveryState::Open && self.tracked().flight.holes() > 0 {
                self.enter_recovery(before, cx);
                self.reduce_tracked(false, cx);
            }
        } else if tracked.pto_at <= cx.now {
            self.send_probe(cx, out);
        } else if tracked.rto_at <= cx.now {
            return self.on_timeout(cx, out);
        }
        self.set_timer(cx);
        self.output(cx, out);
        Events::default()
    }

    /// An ACK in the first slow start opens the window; false if the congestion control is to do so.
    pub(super) fn open_by_hystart(&mut self, acked: u64, cx: &Context<'_>) -> bool {
        let profile = cx.profile;
        // A later slow start has a threshold.
        let is_first = self.control.ssthresh() >= profile.initial_ssthresh.0;
        if profile.slow_start_exit != SlowStartExit::HystartPlusPlus
            || !is_first
            || !self.control.in_slow_start(profile)
        {
            return false;
        }
        let (una, max) = (self.una, self.max);
        let tracked = self.tracked();
        let most = match tracked.pace.is_set() {
            true => u64::MAX,
            false => LIMIT * profile.mss.0,
        };
        let rtt = tracked.flight.news.rtt;
        let ack = Arrival {
            acked,
            rtt,
            una,
            max,
        };
        let (bytes, over) = tracked.hystart.on_ack(&ack, most);
        self.control.open_by(bytes);
        if over {
            self.control.set_ssthresh(self.control.window());
        }
        true
    }
}
