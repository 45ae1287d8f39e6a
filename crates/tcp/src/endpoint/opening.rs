//! The phases of an end point until it is established (RFC 9293, section 3.10.7).

use super::{Endpoint, Events, Phase};
use crate::agreed::Agreed;
use crate::context::Context;
use crate::segment::{Flags, Outbox, Segment};

impl Endpoint {
    pub(super) fn skip_handshake(&mut self, cx: &Context<'_>) {
        let ends = (&mut self.sender, &mut self.receiver);
        self.handshake.skip(ends, cx);
        self.phase = Phase::Established;
    }

    fn establish(&mut self, cx: &Context<'_>) {
        let ends = (&mut self.sender, &mut self.receiver);
        self.handshake.complete(ends, cx);
        self.phase = Phase::Established;
    }

    pub(super) fn on_syn(
        &mut self,
        syn: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        if !cx.profile.handshake {
            self.skip_handshake(cx);
            let events = self.on_established_segment(syn, cx, out);
            return Events {
                established: true,
                ..events
            };
        }
        if syn.flags.has(Flags::SYN) && !syn.flags.has(Flags::ACK) {
            self.phase = Phase::SynReceived;
            let Self {
                sender,
                receiver,
                handshake,
                ..
            } = self;
            handshake.agree_with_syn(syn, (sender, receiver), cx);
            handshake.begin(true, (sender, receiver), cx, out);
        }
        Events::default()
    }

    /// Simultaneous open (RFC 9293, section 3.5): both ends have sent a SYN.
    pub(super) fn on_crossing_syn(
        &mut self,
        syn: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        if syn.flags.has(Flags::SYN) {
            self.phase = Phase::SynReceived;
            let Self {
                sender,
                receiver,
                handshake,
                ..
            } = self;
            handshake.agree_with_syn(syn, (sender, receiver), cx);
            handshake.send_syn(true, (sender, receiver), cx, out);
        }
    }

    pub(super) fn on_syn_ack(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        if segment.ack != 1 {
            // It acknowledges what was not sent: RFC 9293, section 3.10.7.3.
            if let Some(refusal) = segment.refusal() {
                out.send(refusal);
            }
            return Events::default();
        }
        if !segment.flags.has(Flags::SYN) {
            return Events::default();
        }
        let ends = (&mut self.sender, &mut self.receiver);
        self.handshake.agree_with_syn_ack(segment, ends, cx);
        self.establish(cx);
        let (sender, receiver) = (&mut self.sender, &mut self.receiver);
        receiver.ack_at_once();
        if sender.space().agreed().has(Agreed::ACCURATE) {
            sender.on_opening_code(segment.flags, cx);
            if sender.space().is_untouched() {
                sender.send_opening_code(receiver, cx, out);
            }
        }
        self.output(cx, out);
        Events {
            established: true,
            ..Events::default()
        }
    }

    pub(super) fn on_handshake_ack(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        let crossing = self.handshake.is_active() && segment.flags.has(Flags::SYN.with(Flags::ACK));
        if segment.flags.has(Flags::SYN) && !crossing {
            let ends = (&mut self.sender, &mut self.receiver);
            self.handshake.on_repeated_syn(segment, ends, cx, out);
            return Events::default();
        }
        if !segment.flags.has(Flags::ACK) {
            return Events::default();
        }
        if segment.ack != 1 {
            if let Some(refusal) = segment.refusal() {
                out.send(refusal);
            }
            return Events::default();
        }
        self.establish(cx);
        if self.sender.space().agreed().has(Agreed::ACCURATE) {
            self.sender.on_handshake_code(segment, cx);
        }
        if cx.profile.handshake_opens_window {
            self.sender.space_mut().open(1, cx);
        }
        let events = self.on_established_segment(segment, cx, out);
        Events {
            established: true,
            ..events
        }
    }

    /// The SYN or SYN-ACK was not answered; false: too often.
    pub(super) fn on_handshake_timer(&mut self, cx: &Context<'_>, out: &mut impl Outbox) -> bool {
        let goes_on = self.sender.space_mut().on_expiry(cx);
        if goes_on {
            let answers = self.phase == Phase::SynReceived;
            let ends = (&mut self.sender, &mut self.receiver);
            self.handshake.on_timeout(answers, ends, cx, out);
        }
        goes_on
    }
}
