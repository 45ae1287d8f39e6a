//! What an ACK reports, and what follows for losses, the window and the timers.

use aqmlab_net::Time;

use super::RackSender;
use super::hystart::{Arrival, LIMIT};
use super::linux::Said;
use super::rules::{self, DUP_THRESH};
use crate::agreed::Agreed;
use crate::context::Context;
use crate::control::{Cause, CongestionControlKind, Marks, Sample};
use crate::profile::{BackoffEnd, RackRules, RateReduction, RtoMinBounds};
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox, Segment, Stamps};
use crate::sender::prr::Prr;
use crate::sender::space::Space;

/// Blocks that the options of a segment have room for.
const MOST_BLOCKS: usize = 4;
/// What Linux adds to the reordering timer: two ticks of 1 ms.
const REORDERING_MARGIN: Time = Time::from_millis(2);

/// What was so before an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) una: u64,
    pub(super) pipe: u64,
    /// The window was used.
    pub(super) window_limited: bool,
    pub(super) state: RecoveryState,
    /// By this ACK nothing had been lost.
    pub(super) undone: bool,
}

impl RackSender {
    /// Takes an acknowledgement of what was sent; it is no more than that.
    #[inline(never)]
    pub(in crate::sender) fn on_ack(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let pipe = self.pipe(space, cx);
        let mut before = Before {
            una: space.una,
            pipe,
            window_limited: space.uses_window(cx),
            state: space.recovery_state,
            undone: false,
        };
        let dsack = self.take_arrivals(space, segment, cx);
        self.measure_arrivals(space, segment, cx, out);
        let linux = rules::applies(cx);
        let (marks, echo) = self.take_marks(space, segment, linux, cx);
        space.una = space.una.max(segment.ack);
        space.nxt = space.nxt.max(space.una);
        let advances = space.una > before.una;
        let had = self.dup_acks;
        self.count_duplicates(space, segment, advances, cx);
        self.end_probe(space, segment.ack, advances, dsack, before.pipe, cx);
        self.duplicate_end = None;
        if linux {
            self.count_arrived(space, had, advances, cx);
            let duplicate = self.dup_acks > had;
            let said = Said {
                from: before.una,
                advances,
                echo,
                duplicate,
            };
            self.take_as_linux(space, said, cx);
            self.sample_control(space, &before, marks, cx);
            self.move_as_linux(space, advances, cx);
            self.set_pace(space, cx);
            self.restart_timers(space, advances, cx);
            return;
        }
        match space.recovery_state {
            RecoveryState::Recovery if space.una >= space.recover => self.end_recovery(space, cx),
            RecoveryState::Loss => self.judge_timeout(space, advances, cx),
            _ => {}
        }
        before.undone = self.undo_by_reports(space, advances, before.state, cx);
        self.find_losses(space, advances, cx);
        if space.is_open() && self.log.holes() > 0 {
            self.enter_recovery(space, before.pipe, cx);
        }
        self.sample_control(space, &before, marks, cx);
        self.move_window(space, &before, advances, marks, cx);
        self.set_pace(space, cx);
        self.restart_timers(space, advances, cx);
    }

    /// Whether the ACK reports what was sent before the oldest segment was sent last, so that this one is not
    /// late yet (Linux).
    pub(super) fn overtakes_repair(&self, cx: &Context<'_>) -> bool {
        rules::applies(cx)
            && self
                .log
                .news
                .longest_rtt(true)
                .is_some_and(|rtt| self.log.oldest_sent_at() > Some(cx.now.saturating_sub(rtt)))
    }

    /// What has arrived by this ACK; whether it reports a duplicate (D-SACK: RFC 2883).
    fn take_arrivals(&mut self, space: &mut Space, segment: &Segment, cx: &Context<'_>) -> bool {
        let (una, max, recover) = (space.una, space.max, space.recover);
        let (sacking, echoed) = (space.sacks(), space.echoed(segment, cx));
        let probed = self.probe.end.filter(|_| self.probe.is_resend);
        let Self {
            log, rack, undo, ..
        } = self;
        log.begin();
        rack.begin(echoed, cx.profile.rack_rules);
        let una = una.max(segment.ack);
        let mut dsack = false;
        let mut late = None;
        if sacking {
            let full = |(from, to)| (Segment::unwrap_seq(from, una), Segment::unwrap_seq(to, una));
            let mut blocks = segment.options.sack_blocks().map(full);
            let first = blocks.next();
            let second = blocks.next();
            if let Some((from, to)) = first {
                let is_inside = second.is_some_and(|(low, high)| low <= from && to <= high);
                dsack = to <= segment.ack || is_inside;
                if dsack {
                    undo.on_duplicate(from);
                    self.duplicate_end = Some(to);
                    if cx.profile.rack_rules == RackRules::Linux {
                        log.on_duplicate(cx.profile.mss.0);
                        late = Some(from).filter(|&from| log.has_repaired_and_seen(from));
                    }
                }
            }
            // They come newest first (RFC 2018, section 4): in their order they are no reordering.
            let mut sorted = [(0, 0); MOST_BLOCKS];
            let mut count = 0;
            for (from, to) in first.into_iter().chain(second).chain(blocks) {
                if una <= from && from < to && to <= max {
                    sorted[count] = (from, to);
                    count += 1;
                }
            }
            sorted[..count].sort_unstable();
            for &(from, to) in &sorted[..count] {
                log.on_sack(from, to, recover, cx.now, rack);
            }
        }
        if segment.ack > space.una {
            log.acknowledge(segment.ack, recover, cx.now, rack);
        }
        // A duplicate of the probe is no sign of reordering (Linux).
        let of_probe = rules::applies(cx) && probed.is_some() && self.duplicate_end == probed;
        let delivers = log.news.segments > 0;
        rack.on_ack(una, max, dsack && !of_probe, delivers);
        if let Some(from) = late {
            rack.on_late(from);
        }
        dsack
    }

    /// The round trip of this ACK, for the retransmission timer.
    pub(super) fn measure_arrivals(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let advances = segment.ack > space.una;
        let echoed = self.rack.echoed.filter(|_| advances);
        let by_stamp = echoed.map(|echoed| cx.now.saturating_sub(echoed));
        let longest = self.log.news.longest_rtt(rules::applies(cx));
        if let Some(time) = longest.or(by_stamp) {
            self.probe.on_round_trip();
            let (sent, cwnd) = (cx.now.saturating_sub(time), space.control.window());
            let srtt = space.rto.smoothed(cx.profile);
            space.on_round_trip(sent, cwnd, cx, out);
            self.keep_deviation(space, (time, srtt), segment.ack, cx);
        }
        if advances && cx.profile.backoff_ends_with != BackoffEnd::Sample {
            space.rto.end_backoff(cx.profile);
        }
    }

    /// Linux keeps the deviation of round trips by a rule of its own.
    pub(super) fn keep_deviation(
        &mut self,
        space: &mut Space,
        sample: (Time, Option<Time>),
        ack: u64,
        cx: &Context<'_>,
    ) {
        if cx.profile.rack_rules == RackRules::Linux
            && cx.profile.rto_min_bounds == RtoMinBounds::Variance
        {
            let (places, least) = ((space.una.max(ack), space.max), cx.profile.rto_min);
            let deviation = self.deviation.on_round_trip(sample, places, least);
            space.rto.set_deviation(cx.profile, deviation);
        }
    }

    /// The marks that the ACK reports, for the congestion control; the stack answers marks that the control
    /// leaves to it.
    /// Whether it is left: in Linux it has its place among losses.
    fn take_marks(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        linux: bool,
        cx: &Context<'_>,
    ) -> (Marks, bool) {
        let news = &self.log.news;
        let reported = Marks {
            bytes: news.delivered,
            segments: news.segments,
        };
        let marks = if space.agreed.has(Agreed::ACCURATE) {
            let segments = self.read_counter(space, segment, &reported, cx);
            let bytes = segments * cx.profile.mss.0;
            Marks { bytes, segments }
        } else if space.agreed.has(Agreed::ECN) && segment.flags.has(Flags::ECE) {
            reported
        } else {
            return (Marks::default(), false);
        };
        let control = &cx.profile.congestion_control;
        // Linux's BBR, which marks do not concern, leaves them to the stack.
        let is_deaf = linux && matches!(control, CongestionControlKind::Bbr1(_));
        let answers = control.answers_marks() && !is_deaf;
        if answers && !space.falls_back(cx) {
            space.answer_echo(segment.ack);
            return (marks, false);
        }
        let is_classic = !space.agreed.has(Agreed::ACCURATE);
        let echo = linux && (marks.segments > 0 || is_classic);
        if marks.segments > 0 && !linux {
            self.reduce_for_echo(space, segment.ack, cx);
        }
        // Without accurate feedback it is Reno: marks are no concern of its own.
        (if answers { Marks::default() } else { marks }, echo)
    }

    /// An echo takes the window down to ssthresh as a loss does, over a round trip (RFC 9937; the state CWR
    /// of Linux), or at once.
    fn reduce_for_echo(&mut self, space: &mut Space, ack: u64, cx: &Context<'_>) {
        let window = space.control.window();
        let Some(cwnd) = space.cut_for_echo(ack, cx) else {
            return;
        };
        if self.spreads_reductions(cx) && space.is_open() {
            self.is_reducing = true;
            self.prr = Prr::begin(window);
        } else {
            space.control.set_window(cwnd);
        }
    }

    /// Whether the window falls over a round trip.
    pub(super) fn spreads_reductions(&self, cx: &Context<'_>) -> bool {
        !cx.profile.congestion_control.owns_window()
            && cx.profile.rate_reduction == RateReduction::Proportional
    }

    /// Without SACK duplicate ACKs stand for what has arrived beyond a gap.
    fn count_duplicates(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        advances: bool,
        cx: &Context<'_>,
    ) {
        if space.sacks() {
            return;
        }
        let pure = segment.len == 0 && !segment.flags.has(Flags::FIN);
        if advances {
            let delivered = self.log.news.segments.saturating_sub(1);
            self.dup_acks = match space.recovery_state {
                RecoveryState::Recovery => self.dup_acks.saturating_sub(delivered as u32),
                _ => 0,
            };
        } else if segment.ack == space.una && space.una < space.max && pure {
            let linux = rules::applies(cx);
            // While a time-out is repaired Linux counts them if new data is out.
            let (una, max, recover) = (space.una, space.max, space.recover);
            let passes = max <= recover || una >= recover;
            if linux && passes && space.recovery_state == RecoveryState::Loss {
                return;
            }
            self.dup_acks += 1;
            let most = space.in_flight().div_ceil(cx.profile.mss.0) as u32;
            let missing = match linux {
                true => self.log.lost_segments.max(1) as u32,
                false => 1,
            };
            self.dup_acks = self.dup_acks.min(most.saturating_sub(missing));
        }
    }

    // ---- losses ----

    /// Marks what is lost, and sets the reordering timer to the next time when something will be.
    pub(super) fn find_losses(&mut self, space: &mut Space, advances: bool, cx: &Context<'_>) {
        let (una, recover) = (space.una, space.recover);
        let recovering = !space.is_open();
        let srtt = space.rto.smoothed(cx.profile);
        let (sacking, dup_acks) = (space.sacks(), self.dup_acks);
        let in_recovery = space.recovery_state == RecoveryState::Recovery;
        self.reo_at = Time::NEVER;
        if !sacking {
            let free = una >= recover || rules::applies(cx);
            let third = dup_acks >= self.dup_thresh(cx) && !recovering && free;
            if third || (in_recovery && advances) {
                self.log.lose_oldest();
            }
            return;
        }
        if self.log.is_doubtful(una, &self.rack) {
            let sacked = self.log.sacked_segments;
            let patience = self.rack.patience(srtt, recovering, sacked);
            let next = self.log.detect(&self.rack, patience, cx.now);
            let margin = match cx.profile.rack_rules {
                RackRules::Rfc8985 => Time::ZERO,
                RackRules::Linux => REORDERING_MARGIN,
            };
            self.reo_at = next.map_or(Time::NEVER, |due| due + margin);
        }
    }

    /// A loss was found: the window is cut once, and what is lost goes again. `pipe`: bytes on
    /// their way before.
    pub(super) fn enter_recovery(&mut self, space: &mut Space, pipe: u64, cx: &Context<'_>) {
        self.remember_window(space, cx);
        let cwnd = space.cut_for_loss(pipe, cx);
        self.counts.fast_retransmits += 1;
        space.recover = space.max;
        space.recovery_state = RecoveryState::Recovery;
        if !cx.profile.congestion_control.owns_window()
            && cx.profile.rate_reduction == RateReduction::AtOnce
        {
            space.control.set_window(cwnd);
        }
        // What an echo has begun goes on.
        if !std::mem::take(&mut self.is_reducing) {
            self.prr = Prr::begin(pipe.max(cx.profile.mss.0));
        }
        self.restart_rto(space, cx);
    }

    /// All that was out when the loss was found has arrived.
    fn end_recovery(&mut self, space: &mut Space, cx: &Context<'_>) {
        space.recovery_state = RecoveryState::Open;
        self.dup_acks = 0;
        self.rack.on_recovered();
        if !cx.profile.congestion_control.owns_window() {
            space.control.set_window(space.control.ssthresh());
        }
    }

    /// The retransmission timer has expired (RFC 8985, section 6.3): the oldest segment is lost, and
    /// what is overdue; the rest is left to RACK.
    pub(super) fn lose_by_timeout(&mut self, space: &mut Space, cx: &Context<'_>) {
        let (una, state, sacking) = (space.una, space.recovery_state, space.sacks());
        let srtt = space.rto.smoothed(cx.profile);
        // Lost once more, the same data is the same congestion; and what a recovery has cut for.
        let repeated = std::mem::replace(&mut self.timed_out_at, una) == una;
        let linux = rules::applies(cx);
        let (cut, judged) = match state {
            _ if linux => self.judges_timeout(space, repeated),
            RecoveryState::Open => (true, true),
            _ => (una >= space.recover && !repeated, false),
        };
        if cut {
            self.remember_window(space, cx);
        }
        let outstanding = self.pipe(space, cx);
        self.log.begin();
        if self.log.is_reneged() {
            self.log.forget_sacks();
        }
        let sacked = self.log.sacked_segments;
        let patience = match linux {
            true => Some(self.rack.rtt()),
            false => sacking.then(|| self.rack.patience(srtt, true, sacked)),
        };
        self.log.lose_oldest();
        self.log.lose_overdue(patience, cx.now);
        self.reo_at = Time::NEVER;
        self.pto_at = Time::NEVER;
        self.probe.forget();
        self.begin_judging(judged, cx);
        if cut {
            space.cut(outstanding, Cause::Timeout, cx);
        }
        if linux {
            space.control.on_loss_state(cx.profile);
            space.say_cwr();
        }
        self.dup_acks = 0;
        self.is_reducing = false;
        space.recovery_state = RecoveryState::Loss;
        space.recover = space.max;
        let window = self.pipe(space, cx) + cx.profile.mss.0;
        space.control.set_window(window);
        self.counted = 0;
        self.restart_rto(space, cx);
    }

    // ---- the window ----

    pub(super) fn move_window(
        &mut self,
        space: &mut Space,
        before: &Before,
        advances: bool,
        marks: Marks,
        cx: &Context<'_>,
    ) {
        let news = &self.log.news;
        let (delivered, lost) = (news.delivered, !news.losses.is_empty());
        if space.recovery_state == RecoveryState::Recovery {
            if delivered > 0 && advances {
                space.pass(delivered, cx);
            }
            self.reduce(space, advances && !lost, cx);
            return;
        }
        if self.is_reducing && space.una > space.cut_until {
            self.is_reducing = false;
            space.control.set_window(space.control.ssthresh());
            space.pass(delivered, cx);
            return;
        }
        if self.is_reducing {
            if delivered > 0 && advances {
                space.pass(delivered, cx);
            }
            self.reduce(space, advances && !lost, cx);
            return;
        }
        if !advances {
            return;
        }
        let echoed = marks.segments > 0 && !cx.profile.congestion_control.answers_marks();
        let opens =
            before.state != RecoveryState::Recovery || cx.profile.recovery_exit_opens_window;
        let opens = before.window_limited && opens && !echoed;
        if opens && !self.open_by_hystart(space, delivered, cx) {
            space.open(delivered, cx);
        } else {
            space.pass(delivered, cx);
        }
    }

    /// Whether what arrives beyond a gap opens the window like the rest: where segments come late, Linux
    /// does not wait for the gap to close.
    pub(super) fn opens_by_sack(&self, cx: &Context<'_>) -> bool {
        self.rack.latest() > u64::from(DUP_THRESH) * cx.profile.mss.0
    }

    /// Proportional rate reduction (RFC 9937): the window is what is on its way and what the ACK
    /// allows beside it.
    pub(super) fn reduce(&mut self, space: &mut Space, safe: bool, cx: &Context<'_>) {
        if !self.spreads_reductions(cx) {
            return;
        }
        let mss = cx.profile.mss.0;
        let (ssthresh, pipe) = (space.control.ssthresh(), self.pipe(space, cx));
        let dup_ack = u64::from(!space.sacks() && !safe) * mss;
        let news = self.log.news.delivered.max(dup_ack);
        if news == 0 && self.log.news.losses.is_empty() {
            return;
        }
        let allowed = self.prr.on_delivered(news, pipe, ssthresh, safe, mss);
        space.control.set_window(pipe + allowed);
    }

    /// The congestion control gets a sample of each ACK.
    pub(super) fn sample_control(
        &mut self,
        space: &mut Space,
        before: &Before,
        marks: Marks,
        cx: &Context<'_>,
    ) {
        // With nothing out an ACK says nothing of the path.
        let was_idle = before.una == space.max;
        if was_idle && !space.control.samples_when_idle(cx.profile, cx.now) {
            return;
        }
        let in_flight = self.pipe(space, cx);
        let srtt = space.rto.smoothed(cx.profile);
        let (una, max, state) = (space.una, space.max, space.recovery_state);
        let min_rtt = self.rack.min_rtt();
        let rate = self.log.rate(min_rtt);
        let rtt = self.sampled_rtt(una > before.una, cx);
        let log = &self.log;
        let sample = Sample {
            now: cx.now,
            profile: cx.profile,
            state,
            una,
            max,
            acked: log.news.delivered,
            advances: una > before.una,
            marks,
            losses: &log.news.losses,
            rtt,
            srtt,
            rate,
            delivered: log.delivery.delivered,
            lost: log.delivery.lost,
            in_flight_before: before.pipe,
            in_flight,
            window_limited: before.window_limited,
        };
        if space.control.on_sample(&sample) {
            self.log.delivery.limit_by_application(in_flight);
        }
    }

    /// The round trip that a sample has. In Linux what an ACK covers gives none if some of it was sent again,
    /// unless a time stamp is echoed.
    fn sampled_rtt(&self, advances: bool, cx: &Context<'_>) -> Option<Time> {
        let news = &self.log.news;
        if rules::applies(cx) && news.resent && news.sacked_rtt.is_none() {
            let echoed = self.rack.echoed.filter(|_| advances);
            return echoed.map(|echoed| cx.now.saturating_sub(echoed));
        }
        news.rtt
    }

    /// An ACK in the first slow start opens the window; false if the congestion control is to do so.
    pub(super) fn open_by_hystart(
        &mut self,
        space: &mut Space,
        acked: u64,
        cx: &Context<'_>,
    ) -> bool {
        let most = match self.pace.is_set() {
            true => u64::MAX,
            false => LIMIT * cx.profile.mss.0,
        };
        let ack = Arrival {
            acked,
            rtt: self.log.news.rtt,
            una: space.una,
            max: space.max,
        };
        let control = &mut space.control;
        self.hystart.opens(control, cx.profile, &ack, most)
    }
}

impl Space {
    /// When the segment was sent whose time stamp the peer echoes, to the millisecond.
    fn echoed(&self, segment: &Segment, cx: &Context<'_>) -> Option<Time> {
        if !self.agreed.has(Agreed::STAMPS) || cx.profile.stamps() != Some(Stamps::Rfc7323) {
            return None;
        }
        let stamps = segment.options.timestamps()?;
        let now = cx.host.millis(cx.now);
        let passed = Time::from_millis(u64::from(now.wrapping_sub(stamps.echo)));
        Some(Time::from_millis(u64::from(now)).saturating_sub(passed))
    }
}
