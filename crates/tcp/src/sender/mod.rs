//! The sending half of an end point: what is out, what an ACK says of it, what may leave.
//!
//! Two senders share a [`Space`]: [`ClassicSender`] counts duplicate ACKs or keeps a scoreboard,
//! [`RackSender`] keeps a log of each segment. A stack's `recovery` says which one it has.

mod classic;
mod congestion;
pub(crate) mod prr;
pub(crate) mod rack;
mod scoreboard;
mod space;

use aqmlab_net::Time;

pub use space::Retransmissions;

use crate::context::Context;
use crate::control::{ControlMetrics, ControlState};
use crate::profile::Profile;
use crate::receiver::{Delivered, Receiver};
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox, Segment};
use classic::ClassicSender;
use rack::RackSender;
use space::{Counts, Space};

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
    /// Its inner state; none of a sender that shows none.
    pub control_state: Option<ControlState>,
}

/// The sending half of an end point.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    space: Space,
    kind: Kind,
}

/// Which of the two senders it is, and what that one has beside the space.
#[derive(Clone, Debug)]
enum Kind {
    Classic(ClassicSender),
    Rack(Box<RackSender>),
}

impl Sender {
    /// The classic one, until it is to [keep a log](Self::keep_log).
    #[inline(always)]
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            space: Space::new(profile),
            kind: Kind::Classic(ClassicSender::default()),
        }
    }

    /// Nothing has been sent: the sender becomes the one with a log of each segment.
    #[inline(never)]
    pub(crate) fn keep_log(&mut self) {
        self.kind = Kind::Rack(Box::default());
    }

    /// What both have.
    #[inline(always)]
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    #[inline(always)]
    pub(crate) fn space_mut(&mut self) -> &mut Space {
        &mut self.space
    }

    fn counts(&self) -> Counts {
        match &self.kind {
            Kind::Classic(sender) => sender.counts(),
            Kind::Rack(sender) => sender.counts,
        }
    }

    /// What was sent again since the handshake.
    pub(crate) fn retransmissions(&self) -> Retransmissions {
        self.counts().retransmissions
    }

    /// How often a loss was found without a time-out.
    pub(crate) fn fast_retransmits(&self) -> u32 {
        self.counts().fast_retransmits
    }

    /// The congestion window in bytes, with what fast recovery has added.
    pub(crate) fn cwnd(&self) -> u64 {
        match &self.kind {
            Kind::Classic(sender) => sender.cwnd(&self.space),
            Kind::Rack(_) => self.space.control().window(),
        }
    }

    /// What a trace shows.
    pub(crate) fn probe(&self, profile: &Profile) -> Probe {
        let space = &self.space;
        Probe {
            cwnd: self.cwnd(),
            ssthresh: space.control().ssthresh(),
            in_flight: space.in_flight(),
            round_trip: space.rto().smoothed(profile),
            timeout: space.rto().timeout(profile),
            recovery_state: space.recovery_state(),
            control: space.control().metrics(),
            control_state: Some(
                space
                    .control()
                    .state(profile, space.rto().smoothed(profile)),
            ),
        }
    }

    #[inline]
    pub(crate) fn wake_at(&self) -> Time {
        self.space.wake_at()
    }

    /// When the timers of retransmission, of reordering and of the tail loss probe expire.
    pub(crate) fn timers(&self) -> [Time; 3] {
        match &self.kind {
            Kind::Rack(sender) if self.space.una() > 0 => sender.timers(),
            _ => [self.space.retransmit_at, Time::NEVER, Time::NEVER],
        }
    }

    /// The application writes `bytes`.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.space.write(bytes);
        if let Kind::Rack(sender) = &mut self.kind {
            sender.begin_write();
        }
    }

    /// Seeds the draws of the random delay before segments.
    pub(crate) fn seed(&mut self, seed: u64) {
        if let Kind::Classic(sender) = &mut self.kind {
            sender.seed(seed);
        }
    }

    /// The handshake is complete; `lost_syn`: a SYN had to be sent again.
    pub(crate) fn establish(&mut self, lost_syn: bool, cx: &Context<'_>) {
        let took = self.space.establish(lost_syn, cx);
        if let Kind::Rack(sender) = &mut self.kind {
            sender.establish(&mut self.space, took, cx);
        }
    }

    /// The flags of a SYN-ACK with accurate feedback report the ECN field of the SYN.
    pub(crate) fn on_opening_code(&mut self, flags: Flags, cx: &Context<'_>) {
        if let Kind::Rack(sender) = &mut self.kind {
            sender.on_opening_code(&mut self.space, flags, cx);
        }
    }

    /// The ACK of a SYN-ACK with accurate feedback reports the ECN field of the SYN-ACK.
    pub(crate) fn on_handshake_code(&mut self, segment: &Segment, cx: &Context<'_>) {
        if let Kind::Rack(sender) = &mut self.kind {
            sender.on_handshake_code(&mut self.space, segment, cx);
        }
    }

    /// Takes a segment of an established connection without options by the fast path, if it can, and sends
    /// what may leave then; else nothing has changed.
    #[inline(always)]
    pub(crate) fn fast_path(
        &mut self,
        segment: &Segment,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Delivered> {
        let space = &mut self.space;
        match &mut self.kind {
            Kind::Classic(sender) => sender.fast_path(space, segment, receiver, cx, out),
            Kind::Rack(sender) => sender.fast_path(space, segment, receiver, cx, out),
        }
    }

    /// Takes the acknowledgement of a segment; whether the segment's data may be taken too.
    pub(crate) fn on_ack(
        &mut self,
        segment: &Segment,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        if segment.ack > self.space.max() {
            // It acknowledges what was never sent: RFC 9293, section 3.10.7.4.
            receiver.ack_at_once();
            return false;
        }
        let space = &mut self.space;
        match &mut self.kind {
            Kind::Classic(sender) => sender.on_ack(space, segment, receiver, cx, out),
            Kind::Rack(sender) => sender.on_ack(space, segment, cx, out),
        }
        true
    }

    /// The timer has expired; false: too often for the same data.
    pub(crate) fn on_timer(
        &mut self,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let space = &mut self.space;
        match &mut self.kind {
            Kind::Classic(sender) => sender.on_timer(space, cx),
            Kind::Rack(sender) => sender.on_timer(space, receiver, cx, out),
        }
    }

    /// The time is over for which the next segment was held back.
    pub(crate) fn send_delayed(
        &mut self,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        // A paced segment leaves with the output that follows.
        if let Kind::Classic(sender) = &mut self.kind {
            sender.send_delayed(&mut self.space, receiver, cx, out);
        }
    }

    /// Sends what may leave now, and an ACK if one must go.
    #[inline(always)]
    pub(crate) fn output(
        &mut self,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let space = &mut self.space;
        match &mut self.kind {
            Kind::Classic(sender) => sender.output(space, receiver, cx, out),
            Kind::Rack(sender) => sender.output(space, receiver, cx, out),
        }
    }

    /// Sends the ACK of a SYN-ACK with accurate feedback: it reports the ECN field of the SYN-ACK.
    pub(crate) fn send_opening_code(
        &self,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let space = &self.space;
        receiver.send_opening_code(space.nxt(), space.code_point_of_control(cx), cx, out);
    }

    /// What a sender with a log counts, as Linux counts it.
    pub(crate) fn counters(&self) -> Option<crate::counters::Counters> {
        match &self.kind {
            Kind::Classic(_) => None,
            Kind::Rack(sender) => Some(sender.counters(&self.space)),
        }
    }

    /// Marked packets that the peer has reported.
    #[cfg(test)]
    pub(crate) fn reported_marks(&self) -> u64 {
        match &self.kind {
            Kind::Classic(_) => 0,
            Kind::Rack(sender) => sender.reported_marks(),
        }
    }
}
