//! The receiving half of an end point: reassembly and when to acknowledge.

use aqmlab_net::Time;

use crate::profile::{DelayedAck, Profile};
use crate::rto::{HostClock, nth_tick_after};

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
    /// CE marks are echoed until the sender says CWR (RFC 3168, section 6.1.3).
    pub(crate) echo: bool,
    /// The highest acknowledgement sent.
    acked: u64,
    /// Sequence number of the peer's FIN, once seen.
    fin_at: u64,
    /// Received beyond `next`: disjoint, ascending, not adjacent.
    islands: Vec<(u64, u64)>,
}

/// What an arrival gave the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) bytes: u64,
    pub(crate) eof: bool,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            eof: false,
            ack_now: false,
            delayed_until: Time::NEVER,
            echo: false,
            acked: 0,
            fin_at: u64::MAX,
            islands: Vec::new(),
        }
    }

    /// The peer's SYN, sequence number `seq`, was accepted.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.next = seq + 1;
        self.acked = self.next;
    }

    /// An ACK has gone out, alone or on data.
    pub(crate) fn on_ack_sent(&mut self) {
        self.acked = self.next;
        self.ack_now = false;
        self.delayed_until = Time::NEVER;
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
        let end = seq + len;
        if fin {
            self.fin_at = end;
        }
        let had_islands = !self.islands.is_empty();
        let before = self.next;
        if seq > self.next {
            self.insert(seq, end);
        } else if end > self.next {
            self.next = end;
            self.absorb_islands();
        }
        let bytes = self.next - before;
        let eof = self.next == self.fin_at && !self.eof;
        if eof {
            self.eof = true;
            self.next += 1;
        }
        // RFC 5681, section 4.2: at once if out of order, duplicate or filling a hole; and a FIN.
        if bytes == 0 || had_islands || fin {
            self.ack_now = true;
        } else {
            self.delay_ack(now, profile, host);
        }
        Delivered { bytes, eof }
    }

    /// In-order data: every second full segment is acknowledged at once, a lone one waits. The
    /// second rule is BSD's window update: half of the buffer has been read.
    fn delay_ack(&mut self, now: Time, profile: &Profile, host: &HostClock) {
        let unacked = self.next - self.acked;
        if unacked >= u64::from(profile.ack_every) * profile.mss.0
            || 2 * unacked >= profile.receive_buffer.0
        {
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

    fn insert(&mut self, seq: u64, end: u64) {
        if seq == end {
            return; // A lone FIN: `fin_at` remembers it.
        }
        let first = self.islands.partition_point(|&(_, to)| to < seq);
        let last = self.islands.partition_point(|&(from, _)| from <= end);
        if first == last {
            self.islands.insert(first, (seq, end));
        } else {
            let merged = (
                seq.min(self.islands[first].0),
                end.max(self.islands[last - 1].1),
            );
            self.islands.drain(first + 1..last);
            self.islands[first] = merged;
        }
    }

    fn absorb_islands(&mut self) {
        let reached = self
            .islands
            .iter()
            .take_while(|&&(from, _)| from <= self.next)
            .count();
        if let Some(&(_, to)) = self.islands[..reached].last() {
            self.next = self.next.max(to);
            self.islands.drain(..reached);
        }
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
            slow: Time::ZERO,
            fast: Time::from_millis(50),
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
        assert_eq!(r.islands, [(101, 251), (301, 401)]);
        r.on_ack_sent();
        assert_eq!(data(&mut r, &p, 1, 100), 250);
        assert!(r.ack_now, "filling a hole is acknowledged at once");
        assert_eq!(data(&mut r, &p, 201, 100), 150);
        assert_eq!((r.next, r.islands.len()), (401, 0));
        assert_eq!(data(&mut r, &p, 1, 100), 0, "a duplicate delivers nothing");
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
}
