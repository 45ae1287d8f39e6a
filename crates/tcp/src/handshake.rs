//! How a connection opens: SYN, SYN-ACK and what both ends agree on (RFC 9293, section 3.5; RFC 3168,
//! section 6.1.1; RFC 9768, section 3.1).

use aqmlab_net::Ecn;

use crate::accecn::{self, ASKING_SYNS, Offer};
use crate::agreed::Agreed;
use crate::context::Context;
use crate::profile::{EcnEcho, EctOn};
use crate::receiver::Receiver;
use crate::segment::{Flags, Options, Outbox, Segment, SegmentKind};
use crate::sender::Sender;

/// SYN-ACKs that answer an offer of accurate feedback.
const CODED_SYN_ACKS: u32 = 2;

/// What a handshake remembers beside the agreement, which the sender keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// SYNs or SYN-ACKs sent again because the timer expired, and because the peer repeated its SYN.
    timeouts: u16,
    repeats: u16,
    /// This end has asked for the connection.
    active: bool,
}

impl Handshake {
    /// This end asks for the connection.
    pub(crate) fn ask(&mut self) {
        self.active = true;
    }

    /// Whether this end has asked for the connection.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// SYNs and SYN-ACKs sent again so far.
    pub(crate) fn resent(&self) -> u32 {
        u32::from(self.timeouts) + u32::from(self.repeats)
    }

    /// The time-outs behind them.
    pub(crate) fn timeouts(&self) -> u32 {
        u32::from(self.timeouts)
    }

    /// The first SYN leaves, or SYN-ACK (`answers`).
    pub(crate) fn begin(
        &self,
        answers: bool,
        (sender, receiver): (&mut Sender, &mut Receiver),
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let patience = if answers {
            cx.profile.accept_timeout
        } else {
            cx.profile.connect_timeout
        };
        let space = sender.space_mut();
        space.begin_handshake(patience, cx.now);
        if !answers {
            space.rto_mut().set_syn_gap(cx.profile, 0);
        }
        space.arm(cx);
        self.send_syn(answers, (sender, receiver), cx, out);
    }

    /// Sends a SYN, or SYN-ACK (`answers`).
    pub(crate) fn send_syn(
        &self,
        answers: bool,
        (sender, receiver): (&Sender, &mut Receiver),
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let profile = cx.profile;
        let agreed = sender.space().agreed();
        let accurate = answers && agreed.has(Agreed::ACCURATE);
        // RFC 3168, section 6.1.1: an ECN-setup SYN has both bits, its answer only ECE.
        let ecn = match answers {
            false if profile.wants_accecn() => accecn::offer(self.resent()),
            false if profile.ecn => Flags::ECE.with(Flags::CWR),
            // The third SYN-ACK asks for nothing, in case the bits do not pass (RFC 9768, section 3.2.3.2.2).
            true if accurate && self.resent() >= CODED_SYN_ACKS => Flags::default(),
            true if accurate => receiver.opening_code(),
            true if agreed.has(Agreed::ECN) => Flags::ECE,
            _ => Flags::default(),
        };
        let mut options = Options::NONE;
        if profile.wants_sack() && (!answers || agreed.has(Agreed::SACK)) {
            options.permit_sack();
        }
        if let Some(stamps) = profile.stamps()
            && (!answers || agreed.has(Agreed::STAMPS))
        {
            options.set_timestamps(receiver.stamps(stamps, cx));
        }
        // A SYN-ACK reports the counters, if it is the first.
        if accurate && profile.accecn_option && self.resent() == 0 {
            receiver.add_opening_option(&mut options);
        }
        let ack = if answers {
            Flags::ACK
        } else {
            Flags::default()
        };
        let asks = profile.ecn && profile.ect_on == EctOn::AllPackets;
        let capable = agreed.has(Agreed::ECN) || (!answers && asks);
        out.send(Segment {
            seq: 0,
            ack: receiver.next(),
            len: 0,
            flags: Flags::SYN.with(ack).with(ecn),
            ecn: sender.space().code_point_of_opening(capable, cx),
            options,
        });
        if answers {
            receiver.on_ack_sent();
        }
    }

    /// The timer has expired: the SYN, or SYN-ACK (`answers`), goes again.
    pub(crate) fn on_timeout(
        &mut self,
        answers: bool,
        (sender, receiver): (&mut Sender, &mut Receiver),
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.timeouts = self.timeouts.saturating_add(1);
        out.on_retransmission(SegmentKind::Syn);
        let space = sender.space_mut();
        if !answers {
            space.rto_mut().set_syn_gap(cx.profile, self.resent());
        }
        space.arm(cx);
        if let Some(bytes) = cx.profile.syn_timeout_ssthresh {
            space.control_mut().set_ssthresh(if answers {
                2 * cx.profile.mss.0
            } else {
                bytes.0
            });
        }
        self.send_syn(answers, (sender, receiver), cx, out);
    }

    /// The peer has sent its SYN again. With accurate feedback a SYN that asks for nothing warns that ECN
    /// may not pass (RFC 9768, section 3.1.4).
    pub(crate) fn on_repeated_syn(
        &mut self,
        syn: &Segment,
        (sender, receiver): (&mut Sender, &mut Receiver),
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let space = sender.space_mut();
        let accurate = space.agreed().has(Agreed::ACCURATE);
        if accurate && Offer::of_syn(syn.flags) == Offer::None {
            space.disable_ecn();
        }
        if cx.profile.answers_repeated_syn {
            space.stop_timing();
            self.repeats = self.repeats.saturating_add(1);
            out.on_retransmission(SegmentKind::Syn);
            self.send_syn(true, (sender, receiver), cx, out);
        }
    }

    // ---- what both ends agree on ----

    /// ns's one-way TCP: as if the handshake had been.
    pub(crate) fn skip(&self, (sender, receiver): (&mut Sender, &mut Receiver), cx: &Context<'_>) {
        receiver.on_syn(0);
        let mut agreed = Agreed::default();
        agreed.set(Agreed::SACK, cx.profile.wants_sack());
        agreed.set(Agreed::STAMPS, cx.profile.stamps().is_some());
        agreed.set(Agreed::ECN, cx.profile.ecn);
        if cx.profile.wants_accecn() {
            agreed.set(Agreed::ACCURATE, true);
            receiver.count_marks(Ecn::NotEct, false, 0);
        }
        sender.space_mut().agree(agreed);
        self.complete((sender, receiver), cx);
    }

    /// The peer's SYN: its offer, as far as this stack wants it.
    pub(crate) fn agree_with_syn(
        &self,
        syn: &Segment,
        (sender, receiver): (&mut Sender, &mut Receiver),
        cx: &Context<'_>,
    ) {
        let mut agreed = agreed_options(syn, receiver, cx);
        if cx.profile.wants_accecn() {
            let offer = Offer::of_syn(syn.flags);
            agreed.set(Agreed::ECN, offer != Offer::None);
            if offer == Offer::Accurate {
                agreed.set(Agreed::ACCURATE, true);
                receiver.count_marks(syn.ecn, false, 1);
            }
        } else {
            let asks = syn.flags.has(Flags::ECE.with(Flags::CWR));
            agreed.set(Agreed::ECN, cx.profile.ecn && asks);
        }
        sender.space_mut().agree(agreed);
    }

    /// The peer's SYN-ACK: its answer, as far as this stack has asked for it.
    pub(crate) fn agree_with_syn_ack(
        &self,
        segment: &Segment,
        (sender, receiver): (&mut Sender, &mut Receiver),
        cx: &Context<'_>,
    ) {
        let mut agreed = agreed_options(segment, receiver, cx);
        if cx.profile.wants_accecn() {
            let has_asked = self.resent() < ASKING_SYNS;
            let offer = Offer::of_syn_ack(segment.flags);
            agreed.set(Agreed::ECN, offer != Offer::None && has_asked);
            if offer == Offer::Accurate {
                agreed.set(Agreed::ACCURATE, true);
                receiver.count_marks(segment.ecn, segment.ecn == Ecn::Ce, 2);
            }
        } else {
            // A SYN-ACK with both bits reflects the SYN: no agreement.
            let flags = segment.flags;
            let agrees = flags.has(Flags::ECE) && !flags.has(Flags::CWR);
            agreed.set(Agreed::ECN, cx.profile.ecn && agrees);
        }
        sender.space_mut().agree(agreed);
    }

    /// The handshake is complete.
    pub(crate) fn complete(
        &self,
        (sender, receiver): (&mut Sender, &mut Receiver),
        cx: &Context<'_>,
    ) {
        sender.establish(self.resent() > 0, cx);
        let mut agreed = sender.space().agreed();
        let echoes_changes = cx.profile.ecn_echo == EcnEcho::EachChange;
        agreed.set(
            Agreed::EACH_CHANGE,
            agreed.has(Agreed::ECN) && echoes_changes,
        );
        receiver.open(agreed);
    }
}

/// The options that the peer's SYN or SYN-ACK offers and this stack wants.
fn agreed_options(segment: &Segment, receiver: &mut Receiver, cx: &Context<'_>) -> Agreed {
    receiver.on_syn(segment.seq);
    let mut agreed = Agreed::default();
    let sacks = cx.profile.wants_sack() && segment.options.sack_permitted();
    agreed.set(Agreed::SACK, sacks);
    if cx.profile.stamps().is_some() && segment.options.timestamps().is_some() {
        agreed.set(Agreed::STAMPS, true);
        receiver.note_stamps(segment, cx);
    }
    agreed
}
