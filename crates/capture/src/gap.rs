//! A gap that all flows share: nothing was sent, or the clock of the capture was set forward.
//!
//! Two things contradict a pause. The time stamps of both ends of a connection (RFC 7323) say that
//! little time has passed; those of one end alone may have waited in a queue. And data that were
//! under way are answered before they are sent again, although the timers of their senders had to
//! expire (RFC 6298, section 2).

use crate::decode::{ACK, Endpoint};
use crate::hash::Map;
use crate::numbers::{Numbers, Sent};
use crate::packet::Packet;

/// So many packets, and so long behind the gap, say what it was.
const TRIAL: u64 = 64;
const BEHIND: u64 = 250_000_000;
/// No more packets are asked: memory.
const MOST: u64 = 1 << 16;
/// Data that passed longer before the gap say nothing: their acknowledgement was missed.
const UNDER_WAY: u64 = 500_000_000;
/// What the clocks of the ends lack of a gap is no chance from this share of it on, and from so many
/// nanoseconds on: queues grow.
const SHARE: f64 = 0.25;
const LEAST: f64 = 4e8;
/// Timers that have not expired by then are hardly found.
const TIMER: u64 = 3_000_000_000;
/// Connections that must say so where there are no time stamps.
const ENOUGH: usize = 3;

/// Why nothing passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The clock was set forward by so much.
    Set(u64),
    /// Nothing was sent.
    Pause,
    /// Either.
    Unclear,
}

/// A gap, and what stands behind it.
#[derive(Debug)]
pub(crate) struct Gap {
    /// When the last packet in front of it passed, and the first one behind it.
    pub(crate) last: u64,
    pub(crate) end: u64,
    latest: u64,
    packets: u64,
    /// The connections behind it, as they were in front of it.
    before: Map<[Endpoint; 2], [Before; 2]>,
}

/// One end of a connection in front of the gap, and what became of its data under way.
#[derive(Clone, Copy, Debug)]
struct Before {
    sent: Sent,
    is_under_way: bool,
    /// Whether the first sign behind the gap is an answer or new data, not a repetition.
    goes_on: Option<bool>,
}

impl Gap {
    pub(crate) fn new(last: u64, end: u64) -> Self {
        Self {
            last,
            end,
            latest: end,
            packets: 0,
            before: Map::default(),
        }
    }

    /// Whether enough has been seen when the next packet passes at a time.
    pub(crate) fn is_over(&self, now: u64, silence: u64) -> bool {
        let is_enough = self.packets >= TRIAL && self.latest >= self.end + BEHIND;
        is_enough || self.packets >= MOST || now >= self.latest.saturating_add(silence)
    }

    /// A packet behind the gap.
    pub(crate) fn add(&mut self, time: u64, packet: &Packet, numbers: &mut Numbers) {
        self.packets += 1;
        self.latest = self.latest.max(time);
        if let (Ok(header), Some((ends, side))) = (packet.header, Numbers::ends(packet)) {
            if let (false, Some(both)) = (self.before.contains_key(&ends), numbers.get(&ends)) {
                let before = both.map(|sent| self.before(sent));
                self.before.insert(ends, before);
            }
            if let Some(both) = self.before.get_mut(&ends) {
                let own = &mut both[side];
                if header.payload > 0 {
                    let is_old = header.seq.wrapping_sub(own.sent.high).cast_signed() < 0;
                    own.goes_on.get_or_insert(!is_old);
                }
                if header.flags & ACK != 0 {
                    both[1 - side].goes_on.get_or_insert(true);
                }
            }
        }
        // Who begins behind the gap says nothing of it.
        numbers.add(u64::MAX, time, packet, None);
    }

    fn before(&self, sent: Sent) -> Before {
        let ahead = sent.acked.map(|acked| sent.high.wrapping_sub(acked));
        Before {
            sent,
            is_under_way: ahead.is_some_and(|ahead| ahead.cast_signed() > 0)
                && self.last.saturating_sub(sent.data_at) < UNDER_WAY,
            goes_on: None,
        }
    }

    /// What it was, once the packets behind it are among the `numbers`.
    pub(crate) fn cause(&self, numbers: &Numbers) -> Cause {
        let long = (self.end - self.last) as f64;
        let (mut surplus, mut agree, mut is_both) = (Vec::new(), 0, false);
        let (mut goes_on, mut repeats) = (0, 0);
        for (ends, before) in &self.before {
            let Some(now) = numbers.get(ends) else {
                continue;
            };
            let found = [0, 1].map(|side| self.surplus(&now[side], &before[side].sent));
            let against = |one: &f64| *one > (long * SHARE).max(LEAST);
            is_both |= found.iter().all(|one| one.as_ref().is_some_and(against));
            agree += found.iter().flatten().filter(|one| !against(one)).count();
            surplus.extend(found.into_iter().flatten().filter(against));
            for one in before.iter().filter(|one| one.is_under_way) {
                repeats += usize::from(one.goes_on == Some(false));
                goes_on += usize::from(one.goes_on == Some(true));
            }
        }
        surplus.sort_unstable_by(f64::total_cmp);
        if agree > 0 {
            return Cause::Pause;
        }
        if is_both {
            return self.set(surplus[surplus.len() / 2]);
        }
        if !surplus.is_empty() {
            return Cause::Unclear;
        }
        match long > TIMER as f64 && goes_on >= ENOUGH && goes_on > repeats {
            true => self.set(long),
            false if repeats > goes_on => Cause::Pause,
            false => Cause::Unclear,
        }
    }

    /// The clock of the capture went on, the time of the ends did not: by how much.
    fn surplus(&self, now: &Sent, before: &Sent) -> Option<f64> {
        let (from, to) = (before.stamped_at()?, now.stamped_at()?);
        // What was silent for long has a clock whose rate is not known well enough.
        if to <= from || self.last.saturating_sub(from) > self.end - self.last {
            return None;
        }
        Some((to - from) as f64 - now.passed_since(before)?)
    }

    /// By so much, but packets stay in order.
    fn set(&self, by: f64) -> Cause {
        Cause::Set((by as u64).min(self.end - self.last))
    }
}
