//! The receiving half of an end point: reassembly, SACK blocks (RFC 2018), when to acknowledge.

use aqmlab_net::Time;

use crate::profile::{DelayedAck, Profile};
use crate::rto::{HostClock, nth_tick_after};
use crate::segment::{Flags, Options};

/// The receiving half of an end point.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next sequence number expected.
    pub(crate) next: u64,
    /// The peer's FIN has been received in order.
    pub(crate) eof: bool,
    /// An ACK must go out with the next output.
    pub(crate) ack_now: bool,
    /// When the delayed ACK falls due.
    pub(crate) delayed_until: Time,
    /// What every segment says of marks: ECE until the sender says CWR (RFC 3168, section 6.1.3), or a
    /// counter (RFC 9768).
    pub(crate) echo: Flags,
    /// The highest acknowledgement sent.
    acked: u64,
    /// Sequence number of the peer's FIN, once seen.
    fin_at: u64,
    /// In-order segments acknowledged at once so far, of those that the stack grants.
    quick_acks: u32,
    /// What was received beyond `next`, once anything was.
    held: Option<Box<Held>>,
}

/// Data that waits for what is missing before it.
#[derive(Clone, Debug, Default)]
struct Held {
    /// Disjoint, ascending, not adjacent.
    islands: Vec<Island>,
    /// Arrivals out of order so far.
    arrivals: u64,
    /// What arrived for the second time, for the next ACK to tell (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

/// A piece of data between two holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Island {
    from: u64,
    to: u64,
    /// Which arrival touched it last: the newest is reported first.
    touched: u64,
}

/// What an arrival gave the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) bytes: u64,
    pub(crate) eof: bool,
}

impl Receiver {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            eof: false,
            ack_now: false,
            delayed_until: Time::NEVER,
            echo: Flags::default(),
            acked: 0,
            fin_at: u64::MAX,
            quick_acks: 0,
            held: None,
        }
    }

    /// The highest acknowledgement sent.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// Whether there are holes, which every ACK is to report.
    #[inline]
    pub(crate) fn has_holes(&self) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| !held.islands.is_empty())
    }

    /// Whether an ACK has something to report: holes, or a duplicate.
    #[inline]
    pub(crate) fn has_reports(&self) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| !held.islands.is_empty() || held.duplicate.is_some())
    }

    /// RFC 2018, section 4: the block of the last arrival first, then the others, newest first; a
    /// duplicate before them, once.
    pub(crate) fn report(&mut self, most: u32, options: &mut Options) {
        let Some(held) = &mut self.held else {
            return;
        };
        let mut most = most;
        if let Some((from, to)) = held.duplicate.take() {
            options.push_sack_block(from, to);
            most -= 1;
        }
        let mut before = u64::MAX;
        for _ in 0..most {
            let older = held.islands.iter().filter(|island| island.touched < before);
            let Some(island) = older.max_by_key(|island| island.touched) else {
                return;
            };
            options.push_sack_block(island.from, island.to);
            before = island.touched;
        }
    }

    /// The peer's SYN, sequence number `seq`, was accepted.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.next = seq + 1;
        self.acked = self.next;
    }

    /// An ACK has gone out, alone or on data.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self) {
        self.acked = self.next;
        self.ack_now = false;
        self.delayed_until = Time::NEVER;
    }

    /// Whether `[seq, seq + len)` is the next data, with nothing waiting behind it: no islands, no
    /// FIN that it reaches, and all of it in the window.
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
    pub(crate) fn on_next(&mut self, len: u64, now: Time, profile: &Profile, host: &HostClock) {
        self.next += len;
        self.delay_ack(now, profile, host);
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
    pub(crate) fn on_data(
        &mut self,
        seq: u64,
        len: u64,
        fin: bool,
        now: Time,
        profile: &Profile,
        host: &HostClock,
    ) -> Delivered {
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
        if profile.dsack {
            self.note_duplicate(seq, reach);
        }
        let had_holes = self.has_holes();
        let before = self.next;
        if seq > self.next {
            // Where a lone FIN is no island, `fin_at` remembers it.
            if reach > seq {
                self.held.get_or_insert_default().insert(seq, reach);
            }
        } else if end > self.next {
            self.next = end;
            if had_holes && let Some(held) = &mut self.held {
                self.next = held.absorb(end).min(self.fin_at);
            }
        }
        let bytes = self.next - before;
        let eof = self.next == self.fin_at && !self.eof;
        if eof {
            self.eof = true;
            self.next += 1;
        }
        // RFC 5681, section 4.2: at once if out of order, duplicate or filling a hole; and a FIN.
        if bytes == 0 || had_holes || fin {
            self.ack_now = true;
        } else {
            self.delay_ack(now, profile, host);
        }
        Delivered { bytes, eof }
    }

    /// RFC 2883, section 4: the part of `[seq, end)` that had arrived before.
    fn note_duplicate(&mut self, seq: u64, end: u64) {
        let duplicate = if seq < self.next {
            Some((seq, end.min(self.next)))
        } else {
            let islands = self.held.iter().flat_map(|held| &held.islands);
            let overlap = |island: &Island| (seq.max(island.from), end.min(island.to));
            islands.map(overlap).find(|(from, to)| from < to)
        };
        if duplicate.is_some() || self.held.is_some() {
            self.held.get_or_insert_default().duplicate = duplicate.filter(|(from, to)| from < to);
        }
    }

    /// In-order data: every second full segment is acknowledged at once, a lone one waits. The
    /// second rule is BSD's window update: half of the buffer has been read.
    #[inline]
    fn delay_ack(&mut self, now: Time, profile: &Profile, host: &HostClock) {
        let unacked = self.next - self.acked;
        if unacked >= u64::from(profile.ack_every) * profile.mss.0
            || 2 * unacked >= profile.receive_buffer.0
        {
            self.ack_now = true;
        } else if self.quick_acks < profile.quick_acks {
            self.quick_acks += 1;
            self.ack_now = true;
        } else if self.delayed_until == Time::NEVER {
            match profile.delayed_ack {
                DelayedAck::Off => self.ack_now = true,
                DelayedAck::Grid { period } => {
                    self.delayed_until = nth_tick_after(1, now, host.fast, period);
                }
                DelayedAck::Timer { delay } => self.delayed_until = now + delay,
            }
        }
    }
}

impl Held {
    fn insert(&mut self, from: u64, to: u64) {
        self.arrivals += 1;
        let islands = &mut self.islands;
        let first = islands.partition_point(|island| island.to < from);
        let last = islands.partition_point(|island| island.from <= to);
        let mut merged = Island {
            from,
            to,
            touched: self.arrivals,
        };
        if first == last {
            islands.insert(first, merged);
        } else {
            merged.from = from.min(islands[first].from);
            merged.to = to.max(islands[last - 1].to);
            islands.drain(first + 1..last);
            islands[first] = merged;
        }
    }

    /// Everything below `next` has arrived: drops the islands that this reaches, and returns the
    /// end of the last of them.
    fn absorb(&mut self, next: u64) -> u64 {
        let reached = self.islands.partition_point(|island| island.from <= next);
        let end = self.islands[..reached].last().map_or(next, |last| last.to);
        self.islands.drain(..reached);
        next.max(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> (Receiver, Profile) {
        let mut receiver = Receiver::new();
        receiver.on_syn(0);
        (receiver, Profile::named("freebsd-2.2.8").unwrap())
    }

    fn data(r: &mut Receiver, p: &Profile, seq: u64, len: u64) -> u64 {
        let host = HostClock {
            fast: Time::from_millis(50),
            ..HostClock::default()
        };
        r.on_data(seq, len, false, Time::from_millis(60), p, &host)
            .bytes
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
        assert_eq!(blocks(&mut r, 4), [(101, 251), (301, 401)]);
        r.on_ack_sent();
        assert_eq!(data(&mut r, &p, 1, 100), 250);
        assert!(r.ack_now, "filling a hole is acknowledged at once");
        assert_eq!(data(&mut r, &p, 201, 100), 150);
        assert_eq!((r.next, r.has_holes()), (401, false));
        assert_eq!(data(&mut r, &p, 1, 100), 0, "a duplicate delivers nothing");
    }

    fn blocks(r: &mut Receiver, most: u32) -> Vec<(u32, u32)> {
        let mut options = Options::NONE;
        r.report(most, &mut options);
        options.sack_blocks().collect()
    }

    #[test]
    fn sack_blocks_come_newest_first_and_merge() {
        let (mut r, p) = receiver();
        for seq in [201, 401, 601, 801, 1001] {
            data(&mut r, &p, seq, 100);
        }
        assert_eq!(blocks(&mut r, 3), [(1001, 1101), (801, 901), (601, 701)]);
        assert_eq!(blocks(&mut r, 4).len(), 4);
        // An arrival in the second island brings that to the front; one between two merges them.
        data(&mut r, &p, 451, 50);
        assert_eq!(blocks(&mut r, 2), [(401, 501), (1001, 1101)]);
        data(&mut r, &p, 501, 100);
        assert_eq!(blocks(&mut r, 2), [(401, 701), (1001, 1101)]);
        // The hole before the first island is filled: no block reports what is acknowledged.
        data(&mut r, &p, 1, 200);
        assert_eq!(r.next, 301);
        assert_eq!(blocks(&mut r, 4), [(401, 701), (1001, 1101), (801, 901)]);
    }

    #[test]
    fn a_fin_counts_once_and_only_in_order() {
        let (mut r, p) = receiver();
        let host = HostClock::default();
        let delivered = r.on_data(101, 50, true, Time::ZERO, &p, &host);
        assert_eq!(delivered, Delivered::default());
        let delivered = r.on_data(1, 100, false, Time::ZERO, &p, &host);
        assert_eq!(
            delivered,
            Delivered {
                bytes: 150,
                eof: true
            }
        );
        assert_eq!(r.next, 152);
        let again = r.on_data(101, 50, true, Time::ZERO, &p, &host);
        assert_eq!(again, Delivered::default());
        assert!(r.ack_now);
    }

    /// Segments, each with whether a FIN is behind it; the bytes delivered, `next`, and whether it is over.
    fn take(segments: &[(u64, u64, bool)], profile: &str) -> (u64, u64, bool) {
        let (mut r, host) = (Receiver::new(), HostClock::default());
        r.on_syn(0);
        let p = Profile::named(profile).unwrap();
        let (mut bytes, mut next) = (0, r.next);
        for &(seq, len, fin) in segments {
            bytes += r.on_data(seq, len, fin, Time::ZERO, &p, &host).bytes;
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
