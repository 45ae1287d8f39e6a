//! The receiving half of an end point: what has arrived, and what every segment that leaves says of it.

mod accecn;
#[cfg(feature = "linux")]
mod compression;
mod delayed_ack;
mod ecn_echo;
mod headers;
mod reassembly;
mod stamps;

use aqmlab_net::{Ecn, Time};

use crate::agreed::Agreed;
use crate::context::Context;
use crate::profile::Profile;
use crate::segment::{Flags, Segment, Timestamps};
use accecn::MarkCounter;
#[cfg(feature = "linux")]
use compression::Compression;
use reassembly::Reassembly;
use stamps::Echo;

/// The receiving half of an end point.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next sequence number expected.
    next: u64,
    /// The highest acknowledgement sent.
    acked: u64,
    /// Sequence number of the peer's FIN, once seen.
    fin_at: u64,
    /// When the delayed ACK falls due.
    delayed_until: Time,
    /// What only some connections need: gaps, time stamps, accurate ECN.
    rare: Option<Box<Rare>>,
    /// In-order segments acknowledged at once so far, limited by what the stack grants.
    quick_acks: u32,
    /// The peer's FIN has been received in order.
    eof: bool,
    /// An ACK must go out with the next output.
    ack_now: bool,
    /// What every segment says of marks.
    echo: Flags,
    agreed: Agreed,
}

/// The state that most connections never need.
#[derive(Clone, Debug, Default)]
struct Rare {
    reassembly: Reassembly,
    echo: Echo,
    marks: Option<Box<MarkCounter>>,
    #[cfg(feature = "linux")]
    compression: Compression,
}

/// What an arrival gave the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Bytes that became readable.
    pub received: u64,
    /// The peer has closed, and everything before that has been received.
    pub eof: bool,
}

impl Receiver {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            acked: 0,
            fin_at: u64::MAX,
            delayed_until: Time::NEVER,
            rare: None,
            quick_acks: 0,
            eof: false,
            ack_now: false,
            echo: Flags::default(),
            agreed: Agreed::default(),
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The next sequence number expected.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the peer's FIN has been received in order.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.eof
    }

    /// The peer's SYN, sequence number `seq`, was accepted.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.next = seq + 1;
        self.acked = self.next;
    }

    /// The handshake is complete.
    pub(crate) fn open(&mut self, agreed: Agreed) {
        self.agreed = self.agreed.with(agreed);
        if let Some(marks) = self.marks() {
            self.echo = marks.flags();
        }
    }

    // ---- what arrives ----

    /// Both ends have agreed on accurate feedback ([`MarkCounter::new`]).
    pub(crate) fn count_marks(&mut self, opening: Ecn, marked: bool, options_due: u8) {
        let counter = MarkCounter::new(opening, marked, options_due);
        self.rare().marks = Some(Box::new(counter));
    }

    fn marks(&self) -> Option<&MarkCounter> {
        self.rare.as_ref().and_then(|rare| rare.marks.as_deref())
    }

    /// Marked packets that have arrived.
    #[cfg(test)]
    pub(crate) fn marked_packets(&self) -> u64 {
        self.marks().map_or(0, MarkCounter::marked_packets)
    }

    /// Keeps the time stamp of a segment, which the next segments echo.
    pub(crate) fn note_stamps(&mut self, segment: &Segment, cx: &Context<'_>) {
        if let Some(stamps) = segment.options.timestamps() {
            self.rare().echo = Echo::of(&stamps, cx);
        }
    }

    /// A segment of an established connection with time stamps of RFC 7323; whether it is new enough
    /// (PAWS: section 5).
    pub(crate) fn accept_stamps(
        &mut self,
        stamps: &Timestamps,
        segment: &Segment,
        cx: &Context<'_>,
    ) -> bool {
        if self.stamp_echo().is_newer_than(stamps) {
            // An answer to a mere ACK could be answered in turn, without end (RFC 5961, section 7).
            self.ack_now |= segment.len > 0 || segment.flags.has(Flags::FIN);
            return false;
        }
        // Section 4.3: a delayed ACK echoes the first segment that it covers.
        if segment.seq <= self.acked {
            self.note_stamps(segment, cx);
        }
        true
    }

    fn stamp_echo(&self) -> Echo {
        self.rare.as_ref().map_or(Echo::default(), |rare| rare.echo)
    }

    /// No segment takes the fast path (or any may again), in either direction.
    pub(crate) fn avoid_fast_path(&mut self, avoid: bool) {
        self.agreed.set(Agreed::SLOW, avoid);
    }

    #[inline]
    pub(crate) fn avoids_fast_path(&self) -> bool {
        self.agreed.has(Agreed::SLOW)
    }

    /// Whether a segment must take the slow path, however plain it is: its header counts.
    #[inline(always)]
    pub(crate) fn needs_slow_path(&self) -> bool {
        const REASONS: Agreed = Agreed::STAMPS.with(Agreed::EACH_CHANGE).with(Agreed::SLOW);
        self.agreed.has(REASONS)
    }

    /// Whether `[seq, seq + len)` is the next data, with nothing waiting behind it: no gaps, no FIN
    /// that it reaches, and all of it in the window.
    #[inline]
    pub(crate) fn is_next(&self, seq: u64, len: u64, profile: &Profile) -> bool {
        seq == self.next
            && len <= profile.receive_buffer.0
            && seq + len < self.fin_at
            && !self.has_reports()
    }

    /// The next data has arrived: [`on_data`](Self::on_data) where [`is_next`](Self::is_next)
    /// holds.
    #[inline]
    pub(crate) fn on_next(&mut self, len: u64, cx: &Context<'_>) {
        self.next += len;
        self.delay_ack(cx);
    }

    /// The same, with a FIN behind it: nothing delays its acknowledgement.
    #[inline]
    pub(crate) fn on_next_and_fin(&mut self, len: u64) {
        self.fin_at = self.next + len;
        self.next = self.fin_at + 1;
        self.eof = true;
        self.ack_now = true;
    }

    /// Payload [seq, seq + len) and perhaps a FIN behind it has arrived.
    pub(crate) fn on_data(&mut self, seq: u64, len: u64, fin: bool, cx: &Context<'_>) -> Delivered {
        let profile = cx.profile;
        // RFC 9293, section 3.10.7.4: what lies beyond the window is cut off, its FIN too.
        let edge = self.next + profile.receive_buffer.0;
        if seq > edge {
            self.ack_now = true;
            return Delivered::default();
        }
        // A FIN below what has arrived is none, and the first one stays: what lies behind it is cut off.
        if fin && self.fin_at == u64::MAX && (self.next..=edge).contains(&(seq + len)) {
            self.fin_at = seq + len;
        }
        let end = (seq + len).min(edge).min(self.fin_at);
        let takes_fin = fin && self.fin_at == end && profile.reports_fin();
        let reach = end + u64::from(takes_fin);
        if profile.dsack && (seq < self.next || self.rare.is_some()) {
            let next = self.next;
            self.rare().reassembly.note_duplicate(next, seq, reach);
        }
        let had_holes = self.has_holes();
        let before = self.next;
        if seq > self.next {
            // Where a lone FIN is no island, `fin_at` remembers it.
            if reach > seq {
                self.rare().reassembly.insert(seq, reach);
            }
        } else if end > self.next {
            self.next = end;
            if had_holes && let Some(rare) = &mut self.rare {
                self.next = rare.reassembly.absorb(end).min(self.fin_at);
            }
        }
        let received = self.next - before;
        let eof = self.next == self.fin_at && !self.eof;
        if eof {
            self.eof = true;
            self.next += 1;
        }
        // RFC 5681, section 4.2: at once if out of order, duplicate or filling a hole; and a FIN.
        if received == 0 || had_holes || fin {
            self.ack_now |= !self.compresses(seq, received, cx);
        } else {
            self.delay_ack(cx);
        }
        Delivered { received, eof }
    }

    #[cfg(not(feature = "linux"))]
    #[expect(clippy::unused_self, reason = "without the feature it has no state")]
    const fn compresses(&self, _: u64, _: u64, _: &Context<'_>) -> bool {
        false
    }

    #[inline]
    fn has_holes(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.reassembly.has_holes())
    }

    /// Whether an ACK has something to report: holes, or a duplicate.
    #[inline]
    fn has_reports(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.reassembly.has_reports())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rto::HostClock;

    pub(super) fn receiver() -> (Receiver, Profile) {
        let mut receiver = Receiver::new();
        receiver.on_syn(0);
        (receiver, Profile::named("freebsd-2.2.8").unwrap())
    }

    /// A segment at 60 ms, on a host whose fast timer ticks at 50 ms first.
    fn arrive(r: &mut Receiver, p: &Profile, seq: u64, len: u64, fin: bool) -> Delivered {
        let host = HostClock {
            fast: Time::from_millis(50),
            ..HostClock::default()
        };
        let cx = Context {
            now: Time::from_millis(60),
            profile: p,
            host: &host,
        };
        r.on_data(seq, len, fin, &cx)
    }

    pub(super) fn data(r: &mut Receiver, p: &Profile, seq: u64, len: u64) -> u64 {
        arrive(r, p, seq, len, false).received
    }

    #[test]
    fn a_lone_segment_waits_for_the_fast_tick_and_the_second_is_acknowledged() {
        let (mut r, p) = receiver();
        assert_eq!(data(&mut r, &p, 1, 1440), 1440);
        assert!(!r.ack_now);
        assert_eq!(r.delayed_until, Time::from_millis(250));
        assert_eq!(data(&mut r, &p, 1441, 1440), 1440);
        assert!(r.ack_now);
        r.on_ack_sent();
        assert_eq!(r.delayed_until, Time::NEVER);
    }

    #[test]
    fn reassembles_whatever_the_order() {
        let (mut r, p) = receiver();
        assert_eq!(data(&mut r, &p, 101, 100), 0);
        assert!(r.ack_now);
        assert_eq!(data(&mut r, &p, 301, 100), 0);
        assert_eq!(data(&mut r, &p, 151, 100), 0); // overlaps the first island
        assert_eq!(
            reassembly::tests::blocks(&mut r, 4),
            [(101, 251), (301, 401)]
        );
        r.on_ack_sent();
        assert_eq!(data(&mut r, &p, 1, 100), 250);
        assert!(r.ack_now, "filling a hole is acknowledged at once");
        assert_eq!(data(&mut r, &p, 201, 100), 150);
        assert_eq!((r.next, r.has_holes()), (401, false));
        assert_eq!(data(&mut r, &p, 1, 100), 0, "a duplicate delivers nothing");
    }

    #[test]
    fn a_fin_counts_once_and_only_in_order() {
        let (mut r, p) = receiver();
        let delivered = arrive(&mut r, &p, 101, 50, true);
        assert_eq!(delivered, Delivered::default());
        let delivered = arrive(&mut r, &p, 1, 100, false);
        assert_eq!(
            delivered,
            Delivered {
                received: 150,
                eof: true
            }
        );
        assert_eq!(r.next, 152);
        let again = arrive(&mut r, &p, 101, 50, true);
        assert_eq!(again, Delivered::default());
        assert!(r.ack_now);
    }

    /// Segments, each with whether a FIN is behind it; the bytes delivered, `next`, and whether it is over.
    fn take(segments: &[(u64, u64, bool)], profile: &str) -> (u64, u64, bool) {
        let mut r = Receiver::new();
        r.on_syn(0);
        let p = Profile::named(profile).unwrap();
        let (mut bytes, mut next) = (0, r.next);
        for &(seq, len, fin) in segments {
            bytes += arrive(&mut r, &p, seq, len, fin).received;
            assert!(r.next >= next, "{segments:?}: {} after {next}", r.next);
            next = r.next;
        }
        (bytes, next, r.eof)
    }

    #[test]
    fn a_fin_that_contradicts_what_has_arrived_takes_nothing_back() {
        for profile in ["freebsd-2.2.8", "linux"] {
            for (segments, left) in [
                // A FIN below what has arrived.
                (&[(1, 100, false), (1, 50, true)][..], (100, 101, false)),
                // The same, with a hole that is filled afterwards.
                (
                    &[
                        (1, 100, false),
                        (201, 100, false),
                        (1, 50, true),
                        (101, 100, false),
                    ],
                    (300, 301, false),
                ),
                // A second FIN, earlier and later than the first.
                (
                    &[(201, 50, true), (1, 100, true), (101, 100, false)],
                    (250, 252, true),
                ),
                (&[(101, 50, true), (1, 300, true)], (150, 152, true)),
                // Data behind the FIN, that came before it and after it.
                (
                    &[(201, 100, false), (1, 100, true), (102, 100, false)],
                    (100, 102, true),
                ),
                (&[(1, 100, true), (102, 100, false)], (100, 102, true)),
            ] {
                assert_eq!(take(segments, profile), left, "{profile}: {segments:?}");
            }
        }
    }
}
