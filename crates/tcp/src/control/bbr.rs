//! What both versions of BBR share.

use aqmlab_net::{RandomStream, Time};

use crate::profile::Profile;
use crate::sender::rack::pace::LARGEST_BURST;

/// Share of the estimated bandwidth that is paced: 1 % less, so that queues drain.
pub(super) const PACING_MARGIN: f64 = 0.99;
/// The smallest window, in segments.
pub(super) const MIN_SEGMENTS: f64 = 4.0;
/// Growth of the bandwidth per round that shows that the pipe is not full, and rounds without it.
pub(super) const FULL_GROWTH: f64 = 1.25;
pub(super) const FULL_ROUNDS: u32 = 3;
/// How long the window stays small for a round trip without a queue.
pub(super) const PROBE_RTT_TIME: Time = Time::from_millis(200);

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
