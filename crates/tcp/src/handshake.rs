//! How a connection opens: SYN, SYN-ACK and what both ends agree on (RFC 9293, section 3.5; RFC 3168,
//! section 6.1.1; RFC 9768, section 3.1).

use aqmlab_net::{Ecn, Time};

use crate::agreed::Agreed;
use crate::context::Context;
use crate::endpoint::{Endpoint, Events, Phase};
use crate::profile::EcnEcho;
use crate::segment::{Flags, Options, Outbox, Segment, SegmentKind};

impl Endpoint {
    pub(crate) fn begin_handshake(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        (self.timed_seq, self.timed_at) = (0, cx.now);
        let patience = match self.phase {
            Phase::SynSent => cx.profile.connect_timeout,
            _ => cx.profile.accept_timeout,
        };
        self.hold_until = cx.now + patience;
        if self.phase == Phase::SynSent {
            self.rto.set_syn_gap(cx.profile, 0);
        }
        self.arm(cx);
        self.send_syn(cx, out);
    }

    /// ns's one-way TCP: as if the handshake had been.
    pub(crate) fn skip_handshake(&mut self, cx: &Context<'_>) {
        self.receiver.on_syn(0);
        self.ecn.agreed = cx.profile.ecn;
        self.ecn.accurate = cx.profile.wants_accecn();
        if self.ecn.accurate {
            self.receiver.count_marks(Ecn::NotEct, false, 0);
        }
        self.sacking = cx.profile.wants_sack();
        self.stamping = cx.profile.stamps().is_some();
        self.establish(cx);
    }

    pub(crate) fn send_syn(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let active = self.phase == Phase::SynSent;
        let flags = match self.phase {
            Phase::SynSent if cx.profile.wants_accecn() => Flags::SYN.with(self.accecn_offer()),
            _ if !active && self.ecn.accurate => {
                let syn_ack = Flags::SYN.with(Flags::ACK);
                syn_ack.with(self.receiver.opening_code())
            }
            // RFC 3168, section 6.1.1: an ECN-setup SYN has both bits, its answer only ECE.
            Phase::SynSent if cx.profile.ecn => Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            Phase::SynSent => Flags::SYN,
            _ if self.ecn.agreed => Flags::SYN.with(Flags::ACK).with(Flags::ECE),
            _ => Flags::SYN.with(Flags::ACK),
        };
        let stamps = cx.profile.stamps();
        let mut options = Options::NONE;
        if cx.profile.wants_sack() && (active || self.sacking) {
            options.permit_sack();
        }
        if let Some(stamps) = stamps
            && (active || self.stamping)
        {
            options.set_timestamps(self.receiver.stamps(stamps, cx));
        }
        // A SYN-ACK reports the counters, if it is the first.
        let is_first = self.retransmissions().syn == 0;
        if !active && self.ecn.accurate && cx.profile.accecn_option && is_first {
            self.receiver.add_opening_option(&mut options);
        }
        out.send(Segment {
            seq: 0,
            ack: self.receiver.next(),
            len: 0,
            flags,
            ecn: self.code_point_of_control(active, cx),
            options,
        });
        if flags.has(Flags::ACK) {
            self.receiver.on_ack_sent();
        }
    }

    /// What the peer's SYN or SYN-ACK offers and this stack wants.
    fn agree(&mut self, segment: &Segment, cx: &Context<'_>) {
        self.receiver.on_syn(segment.seq);
        self.sacking = cx.profile.wants_sack() && segment.options.sack_permitted();
        self.stamping = cx.profile.stamps().is_some() && segment.options.timestamps().is_some();
        if self.stamping {
            self.receiver.note_stamps(segment, cx);
        }
    }

    /// What the peer's SYN offers of ECN and this stack wants.
    fn agree_on_ecn(&mut self, syn: &Segment, cx: &Context<'_>) {
        if cx.profile.wants_accecn() {
            self.accecn_on_syn(syn);
        } else {
            self.ecn.agreed = cx.profile.ecn && syn.flags.has(Flags::ECE.with(Flags::CWR));
        }
    }

    pub(crate) fn on_syn(
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
            self.agree(syn, cx);
            self.agree_on_ecn(syn, cx);
            self.begin_handshake(cx, out);
        }
        Events::default()
    }

    /// Simultaneous open (RFC 9293, section 3.5): both ends have sent a SYN.
    pub(crate) fn on_crossing_syn(
        &mut self,
        syn: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        if syn.flags.has(Flags::SYN) {
            self.agree(syn, cx);
            self.agree_on_ecn(syn, cx);
            self.phase = Phase::SynReceived;
            self.send_syn(cx, out);
        }
    }

    pub(crate) fn on_syn_ack(
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
        self.agree(segment, cx);
        if cx.profile.wants_accecn() {
            self.accecn_on_syn_ack(segment);
        } else {
            // A SYN-ACK with both bits reflects the SYN: no agreement.
            self.ecn.agreed =
                cx.profile.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR);
        }
        self.establish(cx);
        self.receiver.ack_at_once();
        if self.ecn.accurate {
            self.accecn_react_to_opening(segment.flags, cx);
            if self.end == 1 && !self.closed {
                self.send_opening_code(cx, out);
            }
        }
        self.output(cx, out);
        Events {
            established: true,
            ..Events::default()
        }
    }

    pub(crate) fn on_handshake_ack(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Events {
        let crossing = self.active && segment.flags.has(Flags::SYN.with(Flags::ACK));
        if segment.flags.has(Flags::SYN) && !crossing {
            self.accecn_on_repeated_syn(segment);
            if cx.profile.answers_repeated_syn {
                self.timed_at = Time::NEVER;
                self.cold_mut().retransmissions.syn += 1;
                out.on_retransmission(SegmentKind::Syn);
                self.send_syn(cx, out);
            }
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
        if self.ecn.accurate {
            self.accecn_on_handshake_ack(segment, cx);
        }
        if cx.profile.handshake_opens_window {
            self.open(1, cx);
        }
        let events = self.on_established_segment(segment, cx, out);
        Events {
            established: true,
            ..events
        }
    }

    pub(crate) fn establish(&mut self, cx: &Context<'_>) {
        self.phase = Phase::Established;
        self.una = 1;
        self.retransmit_at = Time::NEVER;
        self.hold_until = Time::NEVER;
        if let Some(sent) = self.take_timed(1) {
            self.rto.sample(cx.profile, cx.host, sent, cx.now);
        }
        self.rto.on_established(cx.profile);
        // RFC 5681, section 3.1: one segment if a SYN was lost.
        let lost_syn = self.retransmissions().syn > 0;
        let segments = if lost_syn {
            1
        } else {
            cx.profile.initial_window
        };
        self.control.start(segments, cx.profile);
        let mut agreed = Agreed::default();
        agreed.set(Agreed::SACK, self.sacking);
        agreed.set(Agreed::STAMPS, self.stamping);
        agreed.set(Agreed::ECN, self.ecn.agreed);
        agreed.set(Agreed::ACCURATE, self.ecn.accurate);
        let echoes_changes = cx.profile.ecn_echo == EcnEcho::EachChange;
        agreed.set(Agreed::EACH_CHANGE, self.ecn.agreed && echoes_changes);
        self.receiver.open(agreed);
        self.unpredicted = self.receiver.reads_headers();
        if cx.profile.keeps_records() {
            self.unpredicted = true;
            self.keeps_records = true;
            self.cold_mut().tracked = Some(Box::default());
            self.set_pace(cx);
        }
    }

    pub(crate) fn send_syn_again(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let retransmissions = &mut self.cold_mut().retransmissions;
        retransmissions.syn += 1;
        let syns = retransmissions.syn;
        out.on_retransmission(SegmentKind::Syn);
        let client = self.phase == Phase::SynSent;
        if client {
            self.rto.set_syn_gap(cx.profile, syns);
        }
        self.arm(cx);
        if let Some(bytes) = cx.profile.syn_timeout_ssthresh {
            self.control.set_ssthresh(if client {
                bytes.0
            } else {
                2 * cx.profile.mss.0
            });
        }
        self.send_syn(cx, out);
    }
}
