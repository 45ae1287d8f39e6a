//! Round-trip estimation and the retransmission time-out.
//!
//! Two clocks, two estimators: BSD's integer arithmetic on the ticks of a host-wide slow timer
//! (FreeBSD 2.2.8 `tcp_xmit_timer`), and RFC 6298 on exact times.

use aqmlab_net::Time;

use crate::profile::{Clock, Profile};

/// When a host's periodic timers tick: their phases are those of the host's boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    /// Phase of the slow timer, which drives [`Clock::Ticks`].
    pub slow: Time,
    /// Phase of the fast timer, which drives delayed ACKs on a grid.
    pub fast: Time,
}

/// Ticks of a timer with this period and phase that have passed by `now`.
fn ticks_by(now: Time, phase: Time, period: Time) -> u64 {
    // One period is added so that a phase later than `now` needs no signed arithmetic.
    (now + period).saturating_sub(phase).as_nanos() / period.as_nanos()
}

/// The `n`-th tick after `now`.
pub(crate) fn nth_tick_after(n: u64, now: Time, phase: Time, period: Time) -> Time {
    period * (ticks_by(now, phase, period) + n - 1) + phase
}

/// Multipliers of BSD's back-off table.
const BACKOFF: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64];

/// Expiries in a row after which BSD distrusts its smoothed round-trip time.
const BSD_FORGETS_SRTT_AFTER: u8 = 3;

/// The RTO of RFC 6298, rule 5.7: used for data if the SYN had to be sent again.
const RTO_AFTER_LOST_SYN: Time = Time::from_secs(3);

/// The state of the retransmission time-out of one end point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rto {
    /// Smoothed round trip: ticks scaled by 32 (BSD), nanoseconds (RFC 6298). 0: no sample yet.
    srtt: i64,
    /// Deviation: ticks scaled by 16 (BSD), nanoseconds (RFC 6298).
    rttvar: i64,
    /// The time-out in force, back-off included: ticks (BSD), nanoseconds (RFC 6298).
    current: u64,
    /// Expiries since the last round-trip sample.
    expiries: u8,
}

impl Rto {
    pub(crate) fn new(profile: &Profile) -> Self {
        let current = match profile.clock {
            Clock::Ticks { period } => ticks(profile.rto_initial, period),
            Clock::Fine { .. } => profile.rto_initial.as_nanos(),
        };
        Self {
            current,
            ..Self::default()
        }
    }

    /// Expiries since the last round-trip sample.
    pub(crate) fn expiries(&self) -> u8 {
        self.expiries
    }

    /// Learns from a segment sent at `sent`, never retransmitted (Karn), and acknowledged `now`.
    pub(crate) fn sample(&mut self, profile: &Profile, host: &HostClock, sent: Time, now: Time) {
        match profile.clock {
            Clock::Ticks { period } => {
                let passed = ticks_by(now, host.slow, period) - ticks_by(sent, host.slow, period);
                self.sample_ticks(profile, period, passed as i64 + 1);
            }
            Clock::Fine { granularity } => {
                self.sample_fine(profile, granularity, (now - sent).as_nanos() as i64);
            }
        }
        self.expiries = 0;
    }

    fn sample_ticks(&mut self, profile: &Profile, period: Time, r: i64) {
        if self.srtt == 0 {
            self.srtt = 32 * r;
            self.rttvar = 8 * r;
        } else {
            let delta = 4 * (r - 1) - self.srtt / 8;
            self.srtt = (self.srtt + delta).max(1);
            self.rttvar = (self.rttvar + delta.abs() - self.rttvar / 4).max(1);
        }
        let (min, max) = (
            ticks(profile.rto_min, period),
            ticks(profile.rto_max, period),
        );
        self.current = self
            .base_ticks(profile, period)
            .max(min)
            .max(r as u64 + 2)
            .min(max);
    }

    /// BSD's `TCP_REXMTVAL`, in ticks, before any sample the initial value.
    fn base_ticks(&self, profile: &Profile, period: Time) -> u64 {
        if self.srtt == 0 && self.rttvar == 0 {
            return ticks(profile.rto_initial, period);
        }
        (((self.srtt / 8 + self.rttvar) / 4) as u64).max(ticks(profile.rto_min, period))
    }

    /// RFC 6298, section 2.
    fn sample_fine(&mut self, profile: &Profile, granularity: Time, r: i64) {
        if self.srtt == 0 {
            self.srtt = r.max(1);
            self.rttvar = r / 2;
        } else {
            self.rttvar += ((self.srtt - r).abs() - self.rttvar) / 4;
            self.srtt = (self.srtt + (r - self.srtt) / 8).max(1);
        }
        let deviation = (4 * self.rttvar).max(granularity.as_nanos() as i64);
        self.current = ((self.srtt + deviation) as u64)
            .clamp(profile.rto_min.as_nanos(), profile.rto_max.as_nanos());
    }

    /// The timer expired: the next time-out is longer (RFC 6298, rule 5.5).
    pub(crate) fn back_off(&mut self, profile: &Profile) {
        self.expiries = self.expiries.saturating_add(1);
        match profile.clock {
            Clock::Ticks { period } => {
                let factor = BACKOFF[usize::from(self.expiries).min(BACKOFF.len() - 1)];
                let min = ticks(profile.rto_min, period);
                let max = ticks(profile.rto_max, period);
                self.current = (self.base_ticks(profile, period) * factor).clamp(min, max);
                if self.expiries > BSD_FORGETS_SRTT_AFTER && self.srtt != 0 {
                    // The next sample starts afresh, but until then the time-out stays as long.
                    self.rttvar += self.srtt / 8;
                    self.srtt = 0;
                }
            }
            Clock::Fine { .. } => {
                self.current = (self.current * 2).min(profile.rto_max.as_nanos());
            }
        }
    }

    /// The handshake is over: RFC 6298, rule 5.7.
    pub(crate) fn on_established(&mut self, profile: &Profile) {
        if matches!(profile.clock, Clock::Fine { .. }) && self.expiries > 0 {
            self.current = RTO_AFTER_LOST_SYN.as_nanos();
        }
    }

    /// When a timer that is started `now` expires.
    pub(crate) fn deadline(&self, profile: &Profile, host: &HostClock, now: Time) -> Time {
        match profile.clock {
            Clock::Ticks { period } => nth_tick_after(self.current, now, host.slow, period),
            Clock::Fine { .. } => now + Time::from_nanos(self.current),
        }
    }

    /// The time-out in force.
    pub(crate) fn timeout(&self, profile: &Profile) -> Time {
        match profile.clock {
            Clock::Ticks { period } => period * self.current,
            Clock::Fine { .. } => Time::from_nanos(self.current),
        }
    }
}

fn ticks(time: Time, period: Time) -> u64 {
    time.as_nanos() / period.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str) -> Profile {
        Profile::named(name).expect("a shipped profile")
    }

    const MS: fn(u64) -> Time = Time::from_millis;

    #[test]
    fn ticks_fall_on_the_grid_of_the_host() {
        let (phase, period) = (MS(120), MS(500));
        assert_eq!(nth_tick_after(1, MS(0), phase, period), MS(120));
        assert_eq!(nth_tick_after(6, MS(0), phase, period), MS(2620));
        assert_eq!(nth_tick_after(1, MS(121), phase, period), MS(620));
        assert_eq!(nth_tick_after(3, MS(700), phase, period), MS(2120));
    }

    #[test]
    fn bsd_first_timeout_is_three_ticks_or_six() {
        let freebsd = profile("freebsd-2.2.8");
        let host = HostClock {
            slow: MS(100),
            fast: MS(0),
        };
        // No tick within the round trip: r = 1.
        let mut rto = Rto::new(&freebsd);
        assert_eq!(rto.timeout(&freebsd), MS(3000));
        rto.sample(&freebsd, &host, MS(200), MS(300));
        assert_eq!(rto.timeout(&freebsd), MS(1500));
        // The round trip straddles the tick at 600 ms: r = 2.
        let mut rto = Rto::new(&freebsd);
        rto.sample(&freebsd, &host, MS(550), MS(650));
        assert_eq!(rto.timeout(&freebsd), MS(3000));
    }

    #[test]
    fn bsd_settles_at_three_ticks_and_doubles_from_two() {
        let freebsd = profile("freebsd-2.2.8");
        let host = HostClock::default();
        let mut rto = Rto::new(&freebsd);
        for _ in 0..40 {
            rto.sample(&freebsd, &host, MS(100), MS(200));
        }
        // The base value is 2 ticks, but never less than the sample + 2.
        assert_eq!(rto.timeout(&freebsd), MS(1500));
        let mut seen = Vec::new();
        for _ in 0..8 {
            rto.back_off(&freebsd);
            seen.push(rto.timeout(&freebsd).as_nanos() / 500_000_000);
        }
        assert_eq!(seen, [4, 8, 16, 32, 64, 128, 128, 128]);
    }

    #[test]
    fn rfc_6298_arithmetic() {
        let mut rfc = profile("rfc");
        rfc.rto_min = MS(1);
        let host = HostClock::default();
        let mut rto = Rto::new(&rfc);
        rto.sample(&rfc, &host, MS(0), MS(100));
        // SRTT = 100, RTTVAR = 50: RTO = 100 + 4 x 50.
        assert_eq!(rto.timeout(&rfc), MS(300));
        rto.sample(&rfc, &host, MS(0), MS(140));
        // RTTVAR = 3/4 x 50 + 1/4 x 40 = 47.5, SRTT = 105: RTO = 105 + 190.
        assert_eq!(rto.timeout(&rfc), MS(295));
        rto.back_off(&rfc);
        assert_eq!(rto.timeout(&rfc), MS(590));
        for _ in 0..10 {
            rto.back_off(&rfc);
        }
        assert_eq!(rto.timeout(&rfc), rfc.rto_max);
    }
}
