//! What every segment that leaves says of what has arrived: acknowledgement, echo, options.

use aqmlab_net::{Ecn, Time};

use super::Receiver;
use super::accecn::MarkCounter;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::segment::{Flags, MAX_SACK_BLOCKS, Options, Outbox, Segment, Stamps, Timestamps};

impl Receiver {
    /// Whether nothing has to be added to new data on the fast path: neither an option nor an echo.
    #[inline(always)]
    pub(crate) fn adds_nothing(&self) -> bool {
        const REASONS: Agreed = Agreed::STAMPS.with(Agreed::ACCURATE).with(Agreed::SLOW);
        !self.agreed.has(REASONS) && self.echo.is_empty() && !self.reports_gaps()
    }

    /// Whether segments may carry options beside SACK blocks.
    #[inline(always)]
    fn has_agreed_options(&self) -> bool {
        self.agreed.has(Agreed::STAMPS.with(Agreed::ACCURATE))
    }

    #[inline(always)]
    fn reports_gaps(&self) -> bool {
        self.agreed.has(Agreed::SACK) && self.has_reports()
    }

    /// A segment of an established connection that acknowledges what has arrived; its options are not
    /// there yet.
    #[inline(always)]
    pub(crate) fn segment(&self, seq: u64, len: u64, flags: Flags, ecn: Ecn) -> Segment {
        Segment {
            seq,
            ack: self.next,
            len: len as u32,
            flags: Flags::ACK.with(self.echo).with(flags),
            ecn,
            options: Options::NONE,
        }
    }

    /// A segment leaves, with the options that both ends agreed on.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, segment: Segment, cx: &Context<'_>, out: &mut impl Outbox) {
        let optioned = self.has_agreed_options() && !self.has_reported_marks();
        if optioned || self.reports_gaps() {
            let options = self.agreed_options(cx);
            out.send(Segment { options, ..segment });
        } else {
            out.send_common(segment);
        }
    }

    /// Sends an ACK without payload.
    pub(crate) fn send_ack(&mut self, seq: u64, ecn: Ecn, cx: &Context<'_>, out: &mut impl Outbox) {
        self.hand_over(self.segment(seq, 0, Flags::default(), ecn), cx, out);
        self.on_ack_sent();
    }

    /// Whether accurate feedback is all that options are for, and the last segment has reported all of it.
    #[inline]
    fn has_reported_marks(&self) -> bool {
        !self.agreed.has(Agreed::STAMPS) && self.marks().is_some_and(MarkCounter::is_reported)
    }

    /// An ACK has gone out, alone or on data.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self) {
        self.acked = self.next;
        self.ack_now = false;
        self.delayed_until = Time::NEVER;
    }

    #[inline(never)]
    fn agreed_options(&mut self, cx: &Context<'_>) -> Options {
        let mut options = Options::NONE;
        if self.agreed.has(Agreed::STAMPS)
            && let Some(stamps) = cx.profile.stamps()
        {
            options.set_timestamps(self.stamps(stamps, cx));
        }
        // SACK blocks, if there are any, find room for two beside time stamps.
        let reports_gaps = self.reports_gaps();
        let has_stamps =
            self.agreed.has(Agreed::STAMPS) || cx.profile.sack_blocks < MAX_SACK_BLOCKS as u32;
        let Some(rare) = &mut self.rare else {
            return options;
        };
        if let Some(marks) = &mut rare.marks
            && let Some(option) = marks.report(reports_gaps && has_stamps, cx)
        {
            options.set_accecn(option);
        }
        if reports_gaps {
            rare.reassembly.report(cx.profile.sack_blocks, &mut options);
        }
        options
    }

    // ---- the handshake ----

    /// The time stamps of a segment that leaves now.
    pub(crate) fn stamps(&self, stamps: Stamps, cx: &Context<'_>) -> Timestamps {
        self.stamp_echo().stamps(stamps, cx)
    }

    /// How the handshake reports the ECN field of the peer's opening segment.
    pub(crate) fn opening_code(&self) -> Flags {
        self.marks()
            .map_or(Flags::default(), |marks| marks.opening_code())
    }

    /// A SYN-ACK reports the counters from the start.
    pub(crate) fn add_opening_option(&self, options: &mut Options) {
        if let Some(marks) = self.marks() {
            options.set_accecn(marks.option());
        }
    }

    /// The answer to a SYN-ACK, a pure ACK, reports the ECN field of the SYN-ACK (RFC 9768, section
    /// 3.2.2.1).
    pub(crate) fn send_opening_code(
        &mut self,
        seq: u64,
        ecn: Ecn,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let counter = self.echo;
        self.echo = self.opening_code();
        self.send_ack(seq, ecn, cx, out);
        self.echo = counter;
    }
}
