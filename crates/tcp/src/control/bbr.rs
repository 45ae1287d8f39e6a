//! What both versions of BBR share.

use aqmlab_net::{RandomStream, Time};

use super::congestion_control::Sample;
use crate::profile::Profile;
use crate::sender::rack::pace::LARGEST_BURST;
use crate::sender::rack::segment_log::Rate;

/// Share of the estimated bandwidth that is paced: 1 % less, so that queues drain.
pub(super) const PACING_MARGIN: f64 = 0.99;
/// The smallest window, in segments.
pub(super) const MIN_SEGMENTS: f64 = 4.0;
/// Growth of the bandwidth per round that shows that the pipe is not full, and rounds without it.
pub(super) const FULL_GROWTH: f64 = 1.25;
pub(super) const FULL_ROUNDS: u32 = 3;
/// How long the window stays small for a round trip without a queue.
pub(super) const PROBE_RTT_TIME: Time = Time::from_millis(200);

/// Linux: rounds of a slot of aggregation, and the most of it, as seconds of the bandwidth.
pub(super) const EXTRA_SLOT_ROUNDS: u32 = 5;
pub(super) const EXTRA_TIME: f64 = 0.1;

/// Below this rate single segments leave, in bytes per second (1.2 Mbit/s).
const SLOW: f64 = 150_000.0;
/// The time that a burst takes.
const BURST_TIME: f64 = 0.001;

/// The smallest burst at a rate in bytes per second, in segments.
pub(super) fn least_burst(rate: f64) -> u32 {
    if rate < SLOW { 1 } else { 2 }
}

/// The burst that a rate in bytes per second allows, in bytes: a millisecond of it, two segments at least.
/// Three bursts are what the window leaves room for.
pub(super) fn quantum(rate: f64, mss: f64) -> f64 {
    let least = f64::from(least_burst(rate)) * mss;
    (rate * BURST_TIME).clamp(least, LARGEST_BURST.max(least))
}

/// A number from 0 to below 1. It comes from the time of the ACK, which differs between connections and
/// between seeds, so that a control needs no seed of its own.
pub(super) fn draw(now: Time, delivered: u64, name: &str) -> f64 {
    RandomStream::new(now.as_nanos() ^ delivered.rotate_left(32), name, 0).uniform()
}

/// Bytes on the wire for a byte of payload.
#[inline]
pub(super) fn wire(profile: &Profile) -> f64 {
    (profile.mss.0 + profile.header.0) as f64 / profile.mss.0 as f64
}

/// What Linux's unit of bandwidth is a share of: a segment a microsecond.
const BW_UNIT: f64 = (1_u32 << 24) as f64;
/// What a whole number of units may lack or have too much by the arithmetic of binary fractions.
const ROUNDING: f64 = 1e-9;

/// The bandwidth that a sample shows in bytes per second, rounded to Linux's unit.
pub(super) fn fixed_point(rate: &Rate, mss: f64, round: fn(f64) -> f64) -> f64 {
    let micros = (rate.interval.as_nanos() / 1000).max(1) as f64;
    let units = rate.delivered as f64 / mss * BW_UNIT / micros;
    round(units) * mss * 1e6 / BW_UNIT
}

/// `bytes` in whole units, at least that many; a unit of 0: unchanged.
pub(super) fn round_up(bytes: f64, unit: f64) -> f64 {
    if unit > 0.0 {
        (bytes / unit - ROUNDING).ceil() * unit
    } else {
        bytes
    }
}

/// `bytes` in whole units, at most that many; a unit of 0: unchanged.
pub(super) fn round_down(bytes: f64, unit: f64) -> f64 {
    if unit > 0.0 {
        (bytes / unit + ROUNDING).floor() * unit
    } else {
        bytes
    }
}

/// What ACKs deliver beyond the bandwidth, because they come in lumps; bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// When the epoch began, and what has been delivered since.
    epoch_at: Time,
    acked: f64,
    /// The largest of the last two slots of rounds.
    slots: [f64; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    /// A new epoch.
    pub(super) fn restart(&mut self, now: Time) {
        (self.epoch_at, self.acked) = (now, 0.0);
    }

    /// An ACK: what the epoch has had beyond `bw` bytes per second, in units of `unit`.
    pub(super) fn excess(&mut self, sample: &Sample<'_>, bw: f64, unit: f64) -> f64 {
        let expected = bw * (sample.now - self.epoch_at).as_secs_f64();
        let mut expected = round_down(expected, unit);
        if self.acked <= expected {
            self.restart(sample.now);
            expected = 0.0;
        }
        self.acked += sample.acked as f64;
        self.acked - expected
    }

    /// Linux's filter: two slots of `rounds` rounds.
    pub(super) fn keep(&mut self, extra: f64, round_start: bool, rounds: u32) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= rounds {
                self.rounds = 0;
                self.slot ^= 1;
                self.slots[self.slot] = 0.0;
            }
        }
        let slot = &mut self.slots[self.slot];
        *slot = slot.max(extra);
    }

    /// The largest of late.
    pub(super) fn most(&self) -> f64 {
        self.slots[0].max(self.slots[1])
    }
}
