//! Pacing: segments leave at a rate, not in bursts (A. Aggarwal, S. Savage, T. Anderson, "Understanding
//! the Performance of TCP Pacing", INFOCOM 2000; Linux's internal pacing).

use aqmlab_net::Time;

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Bytes per second, headers included; none: whenever the window allows.
    pub(super) rate: Option<f64>,
    next: Time,
}

impl Pace {
    /// Whether segments leave at a rate.
    pub(super) fn is_set(&self) -> bool {
        self.rate.is_some()
    }

    /// When a segment may leave that could do so now; none: at once.
    pub(super) fn wait(&self, now: Time) -> Option<Time> {
        (self.rate.is_some() && self.next > now).then_some(self.next)
    }

    /// A segment of `bytes` leaves now. After an idle time the spacing starts afresh.
    pub(super) fn on_send(&mut self, bytes: u64, now: Time) {
        if let Some(rate) = self.rate {
            let gap = Time::from_secs_f64(bytes as f64 / rate);
            self.next = self.next.max(now) + gap;
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
            next: Time::ZERO,
        };
        assert_eq!(pace.wait(ms(5)), None);
        pace.on_send(1000, ms(5));
        assert_eq!(pace.wait(ms(5)), Some(ms(15)));
        pace.on_send(1000, ms(15));
        assert_eq!(pace.wait(ms(1025)), None, "no more than one after a second");
        pace.on_send(1000, ms(1025));
        assert_eq!(pace.wait(ms(1025)), Some(ms(1035)));
    }
}
