//! One end of a connection.

use aqmlab_net::{RandomStream, Time};

use crate::accecn::AccEcn;
use crate::context::Context;
use crate::control::{Control, ControlMetrics};
use crate::profile::{EcnReaction, Profile};
use crate::prr::Prr;
use crate::receiver::{Delivered, Receiver};
use crate::recovery::RecoveryState;
use crate::rto::Rto;
use crate::scoreboard::Scoreboard;
use crate::segment::{Flags, NO_NUMBER, Outbox, Segment, Stamps};
use crate::tracked::Tracked;

/// What an input means to the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The handshake is complete.
    pub established: bool,
    /// Bytes that became readable.
    pub received: u64,
    /// The peer has closed and everything before that has been received.
    pub eof: bool,
    /// The connection was aborted: no answer to the SYN, or to a segment sent too often.
    pub failed: bool,
}

impl Events {
    /// Whether nothing has happened.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.received == 0 && !(self.established | self.eof | self.failed)
    }
}

impl From<Delivered> for Events {
    #[inline(always)]
    fn from(Delivered { received, eof }: Delivered) -> Self {
        Self {
            received,
            eof,
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Listen,
    SynSent,
    SynReceived,
    Established,
    Failed,
}

/// Segments sent more than once, and the time-outs behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmissions {
    /// SYN and SYN-ACK segments.
    pub syn: u32,
    /// FIN segments without data.
    pub fin: u32,
    /// Segments with data.
    pub data: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
}

/// What a trace of a connection shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// The congestion window in bytes, with what fast recovery has added.
    pub cwnd: u64,
    /// The slow-start threshold in bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round trip; none before the first sample.
    pub round_trip: Option<Time>,
    /// The retransmission time-out in force.
    pub timeout: Time,
    /// What the sender is doing about losses.
    pub recovery_state: RecoveryState,
    /// What the congestion control sees.
    pub control: ControlMetrics,
}

/// One end of a connection: handshake, data both ways, close.
///
/// Sans-IO: segments come in through [`on_segment`](Self::on_segment), go out into an [`Outbox`], and
/// [`wake_at`](Self::wake_at) tells when [`on_timer`](Self::on_timer) wants to be called.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The oldest byte not acknowledged.
    pub(crate) una: u64,
    /// The next byte to send; falls back to `una` when losses are repaired by going back.
    pub(crate) nxt: u64,
    /// The highest byte ever sent.
    pub(crate) max: u64,
    /// Behind the last byte that the application has written.
    pub(crate) end: u64,
    pub(crate) control: Control,
    /// Bytes by which fast recovery has inflated the window; partial ACKs deflate it again.
    pub(crate) inflation: i64,
    pub(crate) receiver: Receiver,
    pub(crate) rto: Rto,
    /// The segment whose round trip is being timed, and when it was sent; [`Time::NEVER`]: none.
    pub(crate) timed_seq: u64,
    pub(crate) timed_at: Time,
    pub(crate) retransmit_at: Time,
    /// While the handshake is under way: when it is aborted. Later: when the random delay before
    /// the next segment is over.
    pub(crate) hold_until: Time,
    pub(crate) last_received: Time,
    /// What was out at the last loss: `recover` of RFC 6582, RecoveryPoint of RFC 6675.
    pub(crate) recover: u64,
    pub(crate) ecn: EcnSender,
    /// What only some connections need: losses, time stamps, random delays.
    pub(crate) cold: Option<Box<Cold>>,
    pub(crate) dup_acks: u32,
    /// Limited transmit has sent something since the first of them.
    pub(crate) limited: bool,
    pub(crate) phase: Phase,
    pub(crate) recovery_state: RecoveryState,
    /// This end has asked for the connection.
    pub(crate) active: bool,
    pub(crate) closed: bool,
    /// The last loss was found by the timer.
    pub(crate) timed_out: bool,
    /// A partial ACK has arrived in this recovery.
    pub(crate) partial: bool,
    /// The peer takes SACK blocks, and sends them.
    pub(crate) sacking: bool,
    /// The peer stamps its segments.
    pub(crate) stamping: bool,
    /// ACKs and options need the long way: time stamps, records.
    pub(crate) unpredicted: bool,
    /// It keeps a record of each segment.
    pub(crate) keeps_records: bool,
}

/// The sender's side of RFC 3168, section 6.1.2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnSender {
    /// Echoes are ignored until the peer acknowledges more than this: one cut per window.
    pub(crate) cut_until: u64,
    /// Both ends agreed on ECN: data is sent as capable.
    pub(crate) agreed: bool,
    /// They agreed on accurate feedback (RFC 9768): flags and options tell of a counter.
    pub(crate) accurate: bool,
    /// The last cut answered an echo: a loss in the same window cuts no further.
    pub(crate) cut_by_echo: bool,
    /// The next new data segment says that the window has been reduced.
    pub(crate) cwr_pending: bool,
    /// An echo found a window of one segment: nothing new is sent until the timer fires.
    pub(crate) hold: bool,
}

/// The state that most connections never need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cold {
    pub(crate) retransmissions: Retransmissions,
    pub(crate) fast_retransmits: u32,
    pub(crate) board: Scoreboard,
    pub(crate) prr: Prr,
    /// `una` at the last time-out: a further one with the same value repeats it.
    pub(crate) timed_out_at: u64,
    /// Draws of the random delay before a segment.
    pub(crate) draws: Option<RandomStream>,
    /// What accurate feedback of marks counts.
    pub(crate) accecn: Option<Box<AccEcn>>,
    /// The record of each segment, of a sender that keeps one.
    pub(crate) tracked: Option<Box<Tracked>>,
}

impl Endpoint {
    /// An end point that waits for a SYN.
    #[inline(always)]
    pub fn listen(profile: &Profile) -> Self {
        Self {
            una: 0,
            nxt: 1,
            max: 1,
            end: 1,
            control: Control::new(profile),
            inflation: 0,
            receiver: Receiver::new(),
            rto: Rto::new(profile),
            timed_seq: 0,
            timed_at: Time::NEVER,
            retransmit_at: Time::NEVER,
            hold_until: Time::NEVER,
            last_received: Time::ZERO,
            recover: 0,
            ecn: EcnSender::default(),
            cold: None,
            dup_acks: 0,
            limited: false,
            phase: Phase::Listen,
            recovery_state: RecoveryState::Open,
            active: false,
            closed: false,
            timed_out: false,
            partial: false,
            sacking: false,
            stamping: false,
            unpredicted: false,
            keeps_records: false,
        }
    }

    /// An end point that opens a connection now.
    pub fn connect(cx: Context<'_>, out: &mut impl Outbox) -> Self {
        let mut client = Self::listen(cx.profile);
        client.ask(cx, out);
        client
    }

    /// An end point that has only waited opens the connection now.
    pub fn ask(&mut self, cx: Context<'_>, out: &mut impl Outbox) {
        self.phase = Phase::SynSent;
        self.active = true;
        if cx.profile.handshake {
            self.begin_handshake(&cx, out);
        } else {
            self.skip_handshake(&cx);
        }
    }

    /// Seeds the draws of the random delay before segments ([`Profile::random_send_delay`]): end points with
    /// equal seeds draw equal delays.
    pub fn seed(&mut self, seed: u64) {
        self.cold_mut().draws = Some(RandomStream::new(seed, "send-overhead", 0));
    }

    /// Says which initial sequence number stands for 0 here. It matters where `recover` starts at zero
    /// ([`Profile::initial_recover`]): that lies ahead of numbers from 2^31 on.
    pub fn set_initial_sequence_number(&mut self, number: u32) {
        if number > i32::MAX as u32 {
            self.recover = u64::from(number.wrapping_neg());
        }
    }

    /// Whether data can be written and read. Without a handshake that is so from the start.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, bytes: u64, cx: Context<'_>, out: &mut impl Outbox) {
        self.end += bytes;
        self.output(&cx, out);
    }

    /// The application writes its last `bytes`, and closes, in one call. The connection is
    /// established.
    pub fn write_last(&mut self, bytes: u64, cx: Context<'_>, out: &mut impl Outbox) {
        self.end += bytes;
        self.closed = true;
        self.output(&cx, out);
    }

    /// The application has nothing more to write. A connection that nobody has answered yet is
    /// forgotten (RFC 9293, section 3.10.4).
    pub fn close(&mut self, cx: Context<'_>, out: &mut impl Outbox) {
        self.closed = true;
        if matches!(self.phase, Phase::Listen | Phase::SynSent) {
            self.fail();
        }
        self.output(&cx, out);
    }

    /// The application drops the connection and all that it has written (RFC 9293, section
    /// 3.10.5).
    pub fn abort(&mut self, cx: Context<'_>, out: &mut impl Outbox) {
        if matches!(self.phase, Phase::SynReceived | Phase::Established) {
            let seq = if self.is_established() { self.nxt } else { 1 };
            let flags = Flags::RST.with(Flags::ACK);
            let segment = Segment {
                flags,
                ..self.pure_ack(seq, &cx)
            };
            self.receiver.hand_over(segment, &cx, out);
        }
        self.fail();
    }

    /// The earliest time at which [`on_timer`](Self::on_timer) has something to do.
    #[inline]
    pub fn wake_at(&self) -> Time {
        self.retransmit_at
            .min(self.receiver.wake_at())
            .min(self.hold_until)
    }

    /// Everything sent is acknowledged, the FIN included, and the peer has closed. Such an end
    /// point (TIME-WAIT, or closed) still answers what the peer repeats.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.closed && self.una == self.end + 1 && self.receiver.is_at_end()
    }

    /// The congestion window in bytes, with what fast recovery has added.
    pub fn cwnd(&self) -> u64 {
        (self.control.window() as i64 + self.inflation).max(0) as u64
    }

    /// The slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.control.ssthresh()
    }

    /// Bytes sent and not acknowledged, SYN and FIN counted as one each.
    pub fn in_flight(&self) -> u64 {
        self.max - self.una
    }

    /// The oldest sequence number not acknowledged: restores those that were cut to 32 bits.
    #[inline]
    pub fn oldest_unacknowledged(&self) -> u64 {
        self.una
    }

    /// The next sequence number expected from the peer.
    #[inline]
    pub fn next_expected(&self) -> u64 {
        self.receiver.next()
    }

    /// What was sent more than once so far.
    pub fn retransmissions(&self) -> Retransmissions {
        self.cold
            .as_ref()
            .map_or_else(Retransmissions::default, |cold| cold.retransmissions)
    }

    /// How often a loss was found by duplicate ACKs, so that its repair did not wait for the timer.
    pub fn fast_retransmits(&self) -> u32 {
        self.cold.as_ref().map_or(0, |cold| cold.fast_retransmits)
    }

    /// What a trace shows.
    pub fn probe(&self, profile: &Profile) -> Probe {
        Probe {
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            in_flight: self.in_flight(),
            round_trip: self.rto.smoothed(profile),
            timeout: self.rto.timeout(profile),
            recovery_state: self.recovery_state,
            control: self.control.metrics(),
        }
    }

    /// A segment has arrived.
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        cx: Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        match self.fast_path(segment, &cx, out) {
            Some(delivered) => delivered.into(),
            None => self.slow_path(segment, &cx, out),
        }
    }

    /// The same, for a segment that [`fast_path`](Self::fast_path) has refused; any other segment
    /// takes more time here.
    #[inline(never)]
    pub fn slow_path(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        if segment.seq > NO_NUMBER {
            return Events::default(); // From before the connection: restored to less than 0.
        }
        if segment.flags.has(Flags::RST) {
            return self.on_reset(segment, cx, out);
        }
        let is_ack = segment.len == 0 || segment.ack > self.una;
        if is_ack || !cx.profile.idle_since_ack {
            self.last_received = cx.now;
        }
        match self.phase {
            Phase::Listen => self.on_syn(segment, cx, out),
            Phase::SynSent if !segment.flags.has(Flags::ACK) => {
                self.on_crossing_syn(segment, cx, out);
                Events::default()
            }
            Phase::SynSent => self.on_syn_ack(segment, cx, out),
            Phase::SynReceived => self.on_handshake_ack(segment, cx, out),
            Phase::Established => self.on_established_segment(segment, cx, out),
            Phase::Failed => Events::default(),
        }
    }

    /// The time of [`wake_at`](Self::wake_at) has come (or a later one).
    pub fn on_timer(&mut self, cx: Context<'_>, out: &mut impl Outbox) -> Events {
        if self.hold_until <= cx.now {
            if self.phase != Phase::Established {
                return self.fail();
            }
            self.hold_until = Time::NEVER;
            self.send_delayed(&cx, out);
        }
        self.receiver.on_timer(cx.now);
        if self.retransmit_at <= cx.now {
            self.ecn.hold = false;
            if self.keeps_records && self.is_established() {
                return self.on_tracked_timer(&cx, out);
            }
            if self.una < self.max {
                return self.on_timeout(&cx, out);
            }
            self.retransmit_at = Time::NEVER; // It ran for an echo at a window of one segment.
            if cx.profile.ecn_reaction == EcnReaction::Fractional {
                let initial = u64::from(cx.profile.initial_window) * cx.profile.mss.0;
                self.control.set_window(initial);
            }
        }
        self.output(&cx, out);
        Events::default()
    }

    pub(crate) fn cold_mut(&mut self) -> &mut Cold {
        self.cold.get_or_insert_default()
    }

    /// RFC 9293, sections 3.5.3 and 3.10.7; RFC 5961, section 3.2.
    fn on_reset(&mut self, reset: &Segment, cx: &Context<'_>, out: &mut impl Outbox) -> Events {
        let next = self.receiver.next();
        match self.phase {
            Phase::Listen | Phase::Failed => Events::default(),
            Phase::SynSent if reset.flags.has(Flags::ACK) && reset.ack == 1 => self.fail(),
            Phase::SynSent => Events::default(),
            Phase::SynReceived if reset.seq == next && self.active => self.fail(),
            Phase::SynReceived if reset.seq == next => {
                *self = Self::listen(cx.profile);
                Events::default()
            }
            Phase::Established if reset.seq == next => self.fail(),
            // In the window, but not exact: a challenge shows whether the peer means it.
            _ if (next..next + cx.profile.receive_buffer.0).contains(&reset.seq) => {
                let challenge = self.pure_ack(self.nxt, cx);
                self.receiver.hand_over(challenge, cx, out);
                Events::default()
            }
            _ => Events::default(),
        }
    }

    pub(crate) fn on_established_segment(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        if segment.flags.has(Flags::SYN) {
            // A repeated SYN-ACK: our ACK of it was lost.
            self.receiver.ack_at_once();
            if self.ecn.accurate && self.max == 1 {
                self.send_opening_code(cx, out);
            }
            self.output(cx, out);
            return Events::default();
        }
        let mut delivered = Delivered::default();
        let accepted =
            (!self.stamping || self.accept_stamps(segment, cx)) && self.on_ack(segment, cx, out);
        if accepted {
            let fin = segment.flags.has(Flags::FIN);
            self.receiver.count_mark(segment);
            if segment.len > 0 || fin {
                if self.receiver.owes_old_echo(segment) {
                    self.send_pure_ack(cx, out);
                }
                self.receiver.note_mark(segment);
                let len = u64::from(segment.len);
                delivered = self.receiver.on_data(segment.seq, len, fin, cx);
            }
        }
        self.output(cx, out);
        delivered.into()
    }

    /// Time stamps of a segment of an established connection; whether it is new enough.
    fn accept_stamps(&mut self, segment: &Segment, cx: &Context<'_>) -> bool {
        let Some(stamps) = segment.options.timestamps() else {
            return true;
        };
        if cx.profile.stamps() == Some(Stamps::Rfc7323) {
            return self.receiver.accept_stamps(&stamps, segment, cx);
        }
        let of_data = self.una < self.max;
        self.control.on_timestamps(&stamps, of_data);
        self.receiver.note_stamps(segment, cx);
        true
    }

    // ---- timers ----

    #[inline]
    pub(crate) fn arm(&mut self, cx: &Context<'_>) {
        self.retransmit_at = self.rto.deadline(cx.profile, cx.host, cx.now);
    }

    pub(crate) fn on_timeout(&mut self, cx: &Context<'_>, out: &mut impl Outbox) -> Events {
        if u32::from(self.rto.expiries()) >= cx.profile.max_retransmissions {
            return self.fail();
        }
        self.cold_mut().retransmissions.timeouts += 1;
        self.rto.back_off(cx.profile);
        self.timed_at = Time::NEVER; // Karn: what is sent again is not timed.
        if self.phase == Phase::Established {
            self.arm(cx);
            if self.keeps_records {
                self.lose_by_timeout(cx);
            } else {
                self.go_back(cx);
            }
            self.output(cx, out);
        } else {
            self.send_syn_again(cx, out);
        }
        Events::default()
    }

    pub(crate) fn fail(&mut self) -> Events {
        self.phase = Phase::Failed;
        self.retransmit_at = Time::NEVER;
        self.hold_until = Time::NEVER;
        self.receiver.stop();
        Events {
            failed: true,
            ..Events::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_recover_lies_ahead_of_half_of_all_sequence_numbers() {
        let profile = Profile::named("freebsd-4.5").expect("a shipped profile");
        for (number, recover) in [
            (1, 0),
            (0x7fff_ffff, 0),
            (0x8000_0000, 1 << 31),
            (u32::MAX, 1),
        ] {
            let mut end = Endpoint::listen(&profile);
            end.set_initial_sequence_number(number);
            assert_eq!(end.recover, recover, "{number}");
        }
    }

    #[test]
    fn an_end_point_is_small_because_runs_hold_many() {
        assert!(size_of::<Endpoint>() <= 240, "{}", size_of::<Endpoint>());
    }
}
