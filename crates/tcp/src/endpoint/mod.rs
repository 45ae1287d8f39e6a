//! One end of a connection: its phases, resets, and its end. The work is done by three parts: the
//! [`Handshake`], the [`Receiver`] and the [`Sender`].

mod opening;
mod timers;

use aqmlab_net::Time;

pub use timers::{SendLimit, Timers};

use crate::agreed::Agreed;
use crate::context::Context;
use crate::handshake::Handshake;
use crate::profile::Profile;
use crate::receiver::{Delivered, Receiver};
use crate::segment::{Flags, NO_NUMBER, Outbox, Segment, Stamps};
use crate::sender::{Probe, Retransmissions, Sender};

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
    const FAILED: Self = Self {
        established: false,
        received: 0,
        eof: false,
        failed: true,
    };

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

/// One end of a connection: handshake, data both ways, close.
///
/// Sans-IO: segments come in through [`on_segment`](Self::on_segment), go out into an [`Outbox`], and
/// [`wake_at`](Self::wake_at) says when [`on_timer`](Self::on_timer) wants to be called.
#[derive(Clone, Debug)]
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
    handshake: Handshake,
    phase: Phase,
}

impl Endpoint {
    /// An end point that waits for a SYN.
    #[inline(always)]
    pub fn listen(profile: &Profile) -> Self {
        let mut end = Self {
            sender: Sender::new(profile),
            receiver: Receiver::new(),
            handshake: Handshake::default(),
            phase: Phase::Listen,
        };
        if profile.keeps_log() {
            end.sender.keep_log();
        }
        end
    }

    /// An end point that opens a connection now.
    pub fn connect(cx: Context<'_>, out: &mut impl Outbox) -> Self {
        let mut client = Self::listen(cx.profile);
        client.ask(cx, out);
        client
    }

    /// An end point that has only waited opens the connection now.
    pub fn ask(&mut self, cx: Context<'_>, out: &mut impl Outbox) {
        self.handshake.ask();
        if cx.profile.handshake {
            self.phase = Phase::SynSent;
            let ends = (&mut self.sender, &mut self.receiver);
            self.handshake.begin(false, ends, &cx, out);
        } else {
            self.skip_handshake(&cx);
        }
    }

    /// Seeds the draws of the random delay before segments ([`Profile::random_send_delay`]): end points with
    /// equal seeds draw equal delays.
    pub fn seed(&mut self, seed: u64) {
        self.sender.seed(seed);
    }

    /// Says which initial sequence number stands for 0 here. It matters where `recover` starts at zero
    /// ([`Profile::initial_recover`]): that lies ahead of numbers from 2^31 on.
    pub fn set_initial_sequence_number(&mut self, number: u32) {
        self.sender.space_mut().set_initial_sequence_number(number);
    }

    /// No segment takes the fast path, in either direction (or any may again). Results do not depend on
    /// it: a test compares both.
    pub fn avoid_fast_path(&mut self, avoid: bool) {
        self.receiver.avoid_fast_path(avoid);
    }

    // ---- the application ----

    /// Whether data can be written and read. Without a handshake that is so from the start.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, bytes: u64, cx: Context<'_>, out: &mut impl Outbox) {
        self.sender.write(bytes);
        self.output(&cx, out);
    }

    /// The application takes back what it has written and what was never sent.
    pub fn withdraw(&mut self) {
        self.sender.space_mut().withdraw();
    }

    /// The application writes its last `bytes`, and closes, in one call. The connection is
    /// established.
    pub fn write_last(&mut self, bytes: u64, cx: Context<'_>, out: &mut impl Outbox) {
        self.sender.write(bytes);
        self.sender.space_mut().close();
        self.output(&cx, out);
    }

    /// The application has nothing more to write. A connection that nobody has answered yet is
    /// forgotten (RFC 9293, section 3.10.4).
    pub fn close(&mut self, cx: Context<'_>, out: &mut impl Outbox) {
        self.sender.space_mut().close();
        if matches!(self.phase, Phase::Listen | Phase::SynSent) {
            self.fail();
        }
        self.output(&cx, out);
    }

    /// The application drops the connection and all that it has written (RFC 9293, section
    /// 3.10.5).
    pub fn abort(&mut self, cx: Context<'_>, out: &mut impl Outbox) {
        let seq = match self.phase {
            Phase::Established => Some(self.sender.space().nxt()),
            Phase::SynReceived => Some(1),
            _ => None,
        };
        if let Some(seq) = seq {
            let flags = Flags::RST.with(Flags::ACK);
            let ack = self.pure_ack(seq, &cx);
            let reset = Segment { flags, ..ack };
            self.receiver.hand_over(reset, &cx, out);
        }
        self.fail();
    }

    // ---- what others ask ----

    /// The earliest time at which [`on_timer`](Self::on_timer) has something to do.
    #[inline]
    pub fn wake_at(&self) -> Time {
        self.sender.wake_at().min(self.receiver.wake_at())
    }

    /// Everything sent is acknowledged, the FIN included, and the peer has closed. Such an end
    /// point (TIME-WAIT, or closed) still answers what the peer repeats.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.sender.space().is_finished() && self.receiver.is_at_end()
    }

    /// The congestion window in bytes, with what fast recovery has added.
    pub fn cwnd(&self) -> u64 {
        self.sender.cwnd()
    }

    /// The slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.sender.space().control().ssthresh()
    }

    /// Bytes sent and not acknowledged, SYN and FIN counted as one each.
    pub fn in_flight(&self) -> u64 {
        self.sender.space().in_flight()
    }

    /// Bytes that the application has written and that were never sent.
    pub fn unsent(&self) -> u64 {
        self.sender.space().unsent()
    }

    /// Whether the application has closed, and everything that it wrote has been sent.
    pub fn is_all_sent(&self) -> bool {
        self.sender.space().is_all_sent()
    }

    /// The oldest sequence number not acknowledged: restores those that were cut to 32 bits.
    #[inline]
    pub fn oldest_unacknowledged(&self) -> u64 {
        self.sender.space().una()
    }

    /// The next sequence number expected from the peer.
    #[inline]
    pub fn next_expected(&self) -> u64 {
        self.receiver.next()
    }

    /// What was sent more than once so far.
    pub fn retransmissions(&self) -> Retransmissions {
        let of_data = self.sender.retransmissions();
        Retransmissions {
            syn: self.handshake.resent(),
            timeouts: of_data.timeouts + self.handshake.timeouts(),
            ..of_data
        }
    }

    /// How often a loss was found by duplicate ACKs, so that its repair did not wait for the timer.
    pub fn fast_retransmits(&self) -> u32 {
        self.sender.fast_retransmits()
    }

    /// What a trace shows.
    pub fn probe(&self, profile: &Profile) -> Probe {
        self.sender.probe(profile)
    }

    /// What its sender counts, if that one keeps a log of its segments.
    pub(crate) fn counters(&self) -> Option<crate::counters::Counters> {
        self.sender.counters()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    #[cfg(test)]
    pub(crate) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    pub(crate) fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }

    // ---- segments and timers ----

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

    /// Takes a segment of an established connection if it is the next data, or acknowledges new data, and
    /// nothing unusual is going on: what the application gets. Else it is left to
    /// [`slow_path`](Self::slow_path), and nothing has changed.
    #[inline(always)]
    pub fn fast_path(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Delivered> {
        if !self.is_established() || !segment.options.is_empty() {
            return None;
        }
        self.sender.fast_path(segment, &mut self.receiver, cx, out)
    }

    /// Takes any segment; [`fast_path`](Self::fast_path) takes those that it can in less time, and does
    /// the same.
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
        self.sender.space_mut().note_arrival(segment, cx);
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
        let established = self.is_established();
        if self.sender.space_mut().is_released(cx.now) {
            if !established {
                return self.fail();
            }
            self.sender.send_delayed(&mut self.receiver, &cx, out);
        }
        self.receiver.on_timer(cx.now);
        if self.sender.space().is_timed_out(cx.now) {
            let goes_on = if established {
                self.sender.on_timer(&mut self.receiver, &cx, out)
            } else {
                self.on_handshake_timer(&cx, out)
            };
            if !goes_on {
                return self.fail();
            }
        }
        self.output(&cx, out);
        Events::default()
    }

    /// Sends what window, Nagle's rule and the ACK policy allow.
    #[inline(always)]
    fn output(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        if self.is_established() {
            self.sender.output(&mut self.receiver, cx, out);
        }
    }

    /// An ACK without payload, and so far without options.
    fn pure_ack(&self, seq: u64, cx: &Context<'_>) -> Segment {
        let ecn = self.sender.space().code_point_of_control(cx);
        self.receiver.segment(seq, 0, Flags::default(), ecn)
    }

    /// RFC 9293, sections 3.5.3 and 3.10.7; RFC 5961, section 3.2.
    fn on_reset(&mut self, reset: &Segment, cx: &Context<'_>, out: &mut impl Outbox) -> Events {
        let next = self.receiver.next();
        match self.phase {
            Phase::Listen | Phase::Failed => Events::default(),
            Phase::SynSent if reset.flags.has(Flags::ACK) && reset.ack == 1 => self.fail(),
            Phase::SynSent => Events::default(),
            Phase::SynReceived if reset.seq == next && self.handshake.is_active() => self.fail(),
            Phase::SynReceived if reset.seq == next => {
                *self = Self::listen(cx.profile);
                Events::default()
            }
            Phase::Established if reset.seq == next => self.fail(),
            // In the window, but not exact: a challenge shows whether the peer means it.
            _ if (next..next + cx.profile.receive_buffer.0).contains(&reset.seq) => {
                let challenge = self.pure_ack(self.sender.space().nxt(), cx);
                self.receiver.hand_over(challenge, cx, out);
                Events::default()
            }
            _ => Events::default(),
        }
    }

    fn on_established_segment(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        let (sender, receiver) = (&mut self.sender, &mut self.receiver);
        if segment.flags.has(Flags::SYN) {
            // A repeated SYN-ACK: our ACK of it was lost.
            receiver.ack_at_once();
            let space = sender.space();
            if space.agreed().has(Agreed::ACCURATE) && space.max() == 1 {
                sender.send_opening_code(receiver, cx, out);
            }
            self.output(cx, out);
            return Events::default();
        }
        let mut delivered = Delivered::default();
        if accept_stamps(segment, sender, receiver, cx) && sender.on_ack(segment, receiver, cx, out)
        {
            let fin = segment.flags.has(Flags::FIN);
            receiver.count_mark(segment);
            if segment.len > 0 || fin {
                if receiver.owes_old_echo(segment) {
                    sender.space().send_ack(receiver, cx, out);
                }
                receiver.note_mark(segment);
                let len = u64::from(segment.len);
                #[cfg(feature = "linux")]
                if cx.profile.sack_compression.is_some() {
                    receiver.note_rtt(sender.space().rto().smoothed(cx.profile));
                }
                delivered = receiver.on_data(segment.seq, len, fin, cx);
            }
        }
        self.output(cx, out);
        delivered.into()
    }

    fn fail(&mut self) -> Events {
        self.phase = Phase::Failed;
        self.sender.space_mut().stop();
        self.receiver.stop();
        Events::FAILED
    }
}

/// Time stamps of a segment of an established connection; whether it is new enough.
fn accept_stamps(
    segment: &Segment,
    sender: &mut Sender,
    receiver: &mut Receiver,
    cx: &Context<'_>,
) -> bool {
    let agreed = sender.space().agreed().has(Agreed::STAMPS);
    let Some(stamps) = segment.options.timestamps().filter(|_| agreed) else {
        return true;
    };
    if cx.profile.stamps() == Some(Stamps::Rfc7323) {
        return receiver.accept_stamps(&stamps, segment, cx);
    }
    sender.space_mut().on_timestamps(&stamps);
    receiver.note_stamps(segment, cx);
    true
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
            assert_eq!(end.sender.space().recover(), recover, "{number}");
        }
    }

    #[test]
    fn an_end_point_is_small_because_runs_hold_many() {
        assert!(size_of::<Endpoint>() <= 240, "{}", size_of::<Endpoint>());
    }
}
