//! What the connections of a capture have sent: numbers and time stamps, which say whether time
//! has passed.

use crate::decode::Endpoint;
use crate::hash::Map;
use crate::packet::Packet;

/// Connections that are remembered.
const MOST: usize = 1 << 17;
/// Ticks of a sender's clock that show its rate.
const TICKS: u32 = 20;
/// Ticks in a second that systems use.
const RATES: [f64; 6] = [10.0, 100.0, 250.0, 300.0, 1e3, 1e6];
/// A rate that is so near to one of them is that one.
const NEAR: f64 = 1.25;

/// The connections, by their ends in order.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Map<[Endpoint; 2], [Sent; 2]>);

/// What one end of a connection has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// The number of its first packet.
    first: Option<u64>,
    /// Behind its last byte.
    pub(crate) high: u32,
    /// Behind the last byte that the other end has.
    pub(crate) acked: Option<u32>,
    /// When its last new byte passed.
    pub(crate) data_at: u64,
    /// The first and the last time stamp, and when they passed.
    stamps: Option<[(u64, u32); 2]>,
}

impl Numbers {
    /// A connection, and which of its ends sends a packet.
    pub(crate) fn ends(packet: &Packet) -> Option<([Endpoint; 2], usize)> {
        let header = packet.header.ok()?;
        Some(match header.source <= header.destination {
            true => ([header.source, header.destination], 0),
            false => ([header.destination, header.source], 1),
        })
    }

    pub(crate) fn get(&self, ends: &[Endpoint; 2]) -> Option<&[Sent; 2]> {
        self.0.get(ends)
    }

    /// Adds a packet. Whether its numbers go on from what its sender had sent, `None` if that is not
    /// known; with `before` the sender must be older than this packet.
    pub(crate) fn add(
        &mut self,
        number: u64,
        time: u64,
        packet: &Packet,
        before: Option<u64>,
    ) -> Option<bool> {
        let header = packet.header.ok()?;
        let (ends, side) = Self::ends(packet)?;
        if self.0.len() >= MOST && !self.0.contains_key(&ends) {
            self.0.clear();
        }
        let both = self.0.entry(ends).or_default();
        if header.flags & crate::decode::ACK != 0 {
            let other = &mut both[1 - side];
            let is_new = |old: u32| header.ack.wrapping_sub(old).cast_signed() > 0;
            if other.acked.is_none_or(is_new) {
                other.acked = Some(header.ack);
            }
        }
        let sent = &mut both[side];
        if let Some(ticks) = packet.ticks {
            sent.stamp(time, ticks);
        }
        let end = header.seq.wrapping_add(header.payload);
        let Some(first) = sent.first else {
            sent.first = Some(number);
            sent.high = end;
            sent.data_at = time;
            return None;
        };
        let ahead = header.seq.wrapping_sub(sent.high).cast_signed();
        if end.wrapping_sub(sent.high).cast_signed() > 0 {
            sent.high = end;
            sent.data_at = time;
        }
        before
            .is_none_or(|before| first < before)
            .then_some(ahead >= 0)
    }

    /// What passed from a time on passed so much earlier.
    pub(crate) fn move_back(&mut self, from: u64, by: u64) {
        let moved = |time: &mut u64| {
            if *time >= from {
                *time -= by;
            }
        };
        for sent in self.0.values_mut().flatten() {
            moved(&mut sent.data_at);
            for stamp in sent.stamps.iter_mut().flatten() {
                moved(&mut stamp.0);
            }
        }
    }
}

impl Sent {
    fn stamp(&mut self, time: u64, ticks: u32) {
        match &mut self.stamps {
            // Packets overtake one another.
            Some([_, last]) if ticks.wrapping_sub(last.1).cast_signed() < 0 => {}
            Some([_, last]) => *last = (time, ticks),
            None => self.stamps = Some([(time, ticks); 2]),
        }
    }

    /// When the last time stamp passed.
    pub(crate) fn stamped_at(&self) -> Option<u64> {
        self.stamps.map(|[_, last]| last.0)
    }

    /// Nanoseconds that its sender's clock says passed since an earlier state; `None` if the rate of
    /// that clock is not known.
    pub(crate) fn passed_since(&self, earlier: &Self) -> Option<f64> {
        let [from, to] = earlier.stamps?;
        let ticks = to.1.wrapping_sub(from.1);
        if ticks < TICKS || to.0 <= from.0 {
            return None;
        }
        let measured = f64::from(ticks) * 1e9 / (to.0 - from.0) as f64;
        let off = |rate: &f64| (measured / rate).max(rate / measured);
        let known = RATES.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
        let rate = if off(&known) < NEAR { known } else { measured };
        let more = self.stamps?[1].1.wrapping_sub(to.1);
        Some(f64::from(more) * 1e9 / rate)
    }
}
