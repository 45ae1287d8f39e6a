//! Pacing: segments leave at a rate, not in bursts (A. Aggarwal, S. Savage, T. Anderson, "Understanding
//! the Performance of TCP Pacing", INFOCOM 2000; Linux's internal pacing).

use aqmlab_net::Time;

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Bytes per second, headers included; none: whenever the window allows.
    rate: Option<f64>,
    next: Time,
    /// Segments that may leave with the first one of a burst.
    followers: u32,
    /// When the last burst began, and how many may still leave with it.
    burst_at: Time,
    left: u32,
    /// Segments that have left without a time of their own: the first ones of the connection.
    free: u32,
    /// What the free segments of the present burst would have made others wait.
    owed: Time,
    /// How late the present burst has left, as far as it has not shortened a gap yet.
    late: Time,
    /// Whether that shortens gaps, by half at most (Linux).
    catches_up: bool,
}

/// Segments at the beginning of a connection that make no other wait (Linux).
const FREE: u32 = 9;

/// The largest burst in bytes: what Linux hands down at most before it is cut into segments.
pub(crate) const LARGEST_BURST: f64 = 65_536.0;

/// How many segments of `len` bytes leave at once at a rate, where no less than `least` do: `min_rtt` is the
/// smallest round trip (Linux, `tcp_tso_autosize`).
#[inline(never)]
pub(crate) fn linux_burst(rate: f64, min_rtt: Option<Time>, len: u64, least: u32) -> u32 {
    let halvings = min_rtt.unwrap_or(Time::NEVER).as_nanos() / 512_000;
    let more = if halvings < 32 {
        LARGEST_BURST / f64::from(1_u32 << halvings)
    } else {
        0.0
    };
    let bytes = (rate / 1024.0 + more).min(LARGEST_BURST);
    least.max((bytes / len as f64) as u32)
}

impl Pace {
    /// Whether segments leave at a rate.
    pub(super) fn is_set(&self) -> bool {
        self.rate.is_some()
    }

    /// A segment that leaves late shortens the next gap.
    pub(super) fn catch_up(&mut self) {
        self.catches_up = true;
    }

    /// Bytes per second, and how many segments leave with the first one of a burst.
    pub(super) fn set(&mut self, rate: Option<f64>, followers: u32) {
        (self.rate, self.followers) = (rate, followers);
    }

    /// When a segment may leave that could do so now; none: at once.
    pub(super) fn wait(&self, now: Time) -> Option<Time> {
        if self.rate.is_none() || self.next <= now {
            return None;
        }
        let is_in_burst = self.left > 0 && self.burst_at == now;
        (!is_in_burst).then_some(self.next)
    }

    /// A segment of `bytes` leaves now. After an idle time the spacing starts afresh. The first ten
    /// segments of a connection wait for nothing; the burst that the tenth belongs to is waited for.
    pub(super) fn on_send(&mut self, bytes: u64, now: Time) {
        let is_free = self.free < FREE;
        let is_tenth = self.free == FREE;
        self.free = (self.free + 1).min(FREE + 1);
        let Some(rate) = self.rate else {
            return;
        };
        if self.burst_at == now && (self.left > 0 || !(is_free || is_tenth)) {
            self.left = self.left.saturating_sub(1);
        } else {
            (self.burst_at, self.left) = (now, self.followers);
            self.owed = Time::ZERO;
            self.late = match self.catches_up {
                true => now.saturating_sub(self.next),
                false => Time::ZERO,
            };
        }
        let gap = Time::from_secs_f64(bytes as f64 / rate);
        if is_free {
            self.owed += gap;
            if self.catches_up {
                self.next = self.next.max(now);
            }
        } else {
            let gap = std::mem::take(&mut self.owed) + gap;
            let shorter = self.late.min(Time::from_nanos(gap.as_nanos() / 2));
            self.late = self.late.saturating_sub(shorter);
            self.next = self.next.max(now) + gap.saturating_sub(shorter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pa02_after_idling_the_first_leaves_at_once() {
        let ms = Time::from_millis;
        let mut pace = Pace {
            rate: Some(100_000.0),
            free: FREE + 1,
            ..Pace::default()
        };
        assert_eq!(pace.wait(ms(5)), None);
        pace.on_send(1000, ms(5));
        assert_eq!(pace.wait(ms(5)), Some(ms(15)));
        pace.on_send(1000, ms(15));
        assert_eq!(pace.wait(ms(1025)), None, "no more than one after a second");
        pace.on_send(1000, ms(1025));
        assert_eq!(pace.wait(ms(1025)), Some(ms(1035)));
    }

    #[test]
    fn the_first_ten_segments_wait_for_nothing() {
        let ms = Time::from_millis;
        let mut pace = Pace::default();
        pace.set(Some(100_000.0), 0);
        for _ in 0..10 {
            assert_eq!(pace.wait(ms(5)), None);
            pace.on_send(1000, ms(5));
        }
        assert_eq!(pace.wait(ms(5)), Some(ms(15)));
    }

    #[test]
    fn a_burst_leaves_at_once_and_is_waited_for_as_a_whole() {
        let ms = Time::from_millis;
        let mut pace = Pace::default();
        pace.set(Some(100_000.0), 2);
        pace.free = FREE + 1;
        for _ in 0..3 {
            assert_eq!(pace.wait(ms(5)), None);
            pace.on_send(1000, ms(5));
        }
        assert_eq!(pace.wait(ms(5)), Some(ms(35)));
        pace.on_send(1000, ms(35));
        // What did not leave with the first one is the next burst's.
        assert_eq!(pace.wait(ms(36)), Some(ms(45)));
        pace.set(None, 0);
        assert_eq!(pace.wait(ms(36)), None);
    }

    #[test]
    fn bursts_have_the_sizes_of_linux() {
        let mbps = |rate: f64| rate * 1e6 / 8.0;
        let ms = Time::from_millis;
        for (rate, min_rtt, least, expected) in [
            (1.0, ms(50), 1, 1),
            (10.0, ms(50), 2, 2),  // 1,220 bytes: less than two segments
            (100.0, ms(50), 2, 8), // 12,207 bytes
            (100.0, ms(2), 2, 13), // and 64 KiB halved three times
            (100.0, Time::from_nanos(32 * 512_000), 2, 8), // so often that nothing is left
            (1_000_000.0, ms(50), 2, 43),
        ] {
            assert_eq!(
                linux_burst(mbps(rate), Some(min_rtt), 1514, least),
                expected,
                "{rate} Mbit/s, {min_rtt:?}"
            );
        }
    }
}
