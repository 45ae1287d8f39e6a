//! Round-trip estimation and the retransmission time-out.
//!
//! Three clocks, three estimators: BSD's integer arithmetic on the ticks of a host-wide slow timer
//! (FreeBSD 2.2.8 `tcp_xmit_timer`), ns's on counted ticks, and RFC 6298 on exact times.

use aqmlab_net::Time;

use crate::profile::{Clock, Profile, RtoMinBounds};

/// When a host's periodic timers tick: their phases are those of the host's boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    /// Phase of the slow timer, which drives [`Clock::Ticks`].
    pub slow: Time,
    /// Phase of the fast timer, which drives delayed ACKs on a grid.
    pub fast: Time,
    /// What the host's clock showed at time 0, in microseconds.
    pub offset: u32,
    /// How much faster than real time the host's clock runs, in microseconds per second.
    pub drift: i32,
}

impl HostClock {
    /// The host's clock in microseconds, which wraps.
    pub fn micros(&self, now: Time) -> u32 {
        let micros = now.as_nanos() / 1000;
        let drifted = micros as i64 / 1000 * i64::from(self.drift) / 1000;
        (micros as u32)
            .wrapping_add(drifted as u32)
            .wrapping_add(self.offset)
    }

    /// The host's clock in milliseconds, which wraps.
    pub fn millis(&self, now: Time) -> u32 {
        (now.as_nanos() / 1_000_000) as u32
    }
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
    /// Smoothed round trip: ticks scaled by 32 (BSD) or 8 (ns), nanoseconds (RFC 6298). 0: no
    /// sample yet.
    srtt: i64,
    /// Deviation: ticks scaled by 16 (BSD) or 4 (ns), nanoseconds (RFC 6298).
    rttvar: i64,
    /// The time-out in force, back-off included: ticks (BSD), nanoseconds (the others).
    current: u64,
    /// Expiries since the last round-trip sample.
    expiries: u8,
    /// Round-trip samples, as far as this counts.
    samples: u8,
}

impl Rto {
    #[inline]
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            current: in_units(profile, profile.rto_initial),
            ..Self::default()
        }
    }

    /// The smoothed round trip; none before the first sample.
    pub(crate) fn smoothed(&self, profile: &Profile) -> Option<Time> {
        let srtt = self.srtt as u64;
        let nanos = match profile.clock {
            Clock::Ticks { period } => srtt * period.as_nanos() / 32,
            Clock::RttTicks { period } => srtt * period.as_nanos() / 8,
            Clock::Fine { .. } => srtt,
        };
        (self.srtt > 0).then(|| Time::from_nanos(nanos))
    }

    /// Round-trip samples so far; from 255 on they are not counted.
    pub(crate) fn samples(&self) -> u8 {
        self.samples
    }

    /// The smoothed round trip and its deviation, each zero where there is none.
    pub(crate) fn estimates(&self, profile: &Profile) -> [Time; 2] {
        let (unit, [of_srtt, of_rttvar]) = scales(profile);
        [(self.srtt, of_srtt), (self.rttvar, of_rttvar)]
            .map(|(value, scale)| Time::from_nanos(value as u64 * unit / scale))
    }

    /// Starts from the estimates of an earlier connection, unless there are own ones.
    ///
    /// FreeBSD's `tcp_mss` takes the time-out from them by the formula of an older scale: with r and
    /// v for the round trip and its deviation, 4 r + 8 v where `TCP_REXMTVAL` has r + 4 v.
    pub(crate) fn recall(&mut self, profile: &Profile, [srtt, rttvar]: [Time; 2]) {
        let (unit, [of_srtt, of_rttvar]) = scales(profile);
        let scaled = |time: Time, scale: u64| (time.as_nanos() * scale / unit) as i64;
        let srtt = scaled(srtt, of_srtt);
        if self.srtt != 0 || srtt == 0 {
            return;
        }
        (self.srtt, self.rttvar) = (srtt, scaled(rttvar, of_rttvar));
        self.current = match profile.clock {
            Clock::Ticks { period } => (((self.srtt / 4 + self.rttvar) / 2) as u64)
                .max(ticks(profile.rto_min, period))
                .min(ticks(profile.rto_max, period)),
            Clock::RttTicks { period } => self.base_rtt_ticks(profile, period),
            Clock::Fine { granularity } => self.base_fine(profile, granularity),
        };
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
            Clock::RttTicks { period } => {
                let passed = ticks_by(now, host.slow, period) - ticks_by(sent, host.slow, period);
                self.sample_rtt_ticks(profile, period, passed.max(1) as i64);
            }
            Clock::Fine { granularity } => {
                self.sample_fine(profile, granularity, (now - sent).as_nanos() as i64);
            }
        }
        self.expiries = 0;
        self.samples = self.samples.saturating_add(1);
    }

    /// ns's integers: gains 1/8 and 1/4, the time-out in whole ticks.
    fn sample_rtt_ticks(&mut self, profile: &Profile, period: Time, r: i64) {
        if self.srtt == 0 {
            self.srtt = 8 * r;
            self.rttvar = 2 * r;
        } else {
            let delta = r - self.srtt / 8;
            self.srtt = (self.srtt + delta).max(1);
            self.rttvar = (self.rttvar + delta.abs() - self.rttvar / 4).max(1);
        }
        self.current = self.base_rtt_ticks(profile, period);
    }

    fn base_rtt_ticks(&self, profile: &Profile, period: Time) -> u64 {
        let ticks = (8 * self.rttvar + self.srtt) / 8;
        (ticks as u64 * period.as_nanos())
            .clamp(profile.rto_min.as_nanos(), profile.rto_max.as_nanos())
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
        self.current = self.base_fine(profile, granularity);
    }

    fn base_fine(&self, profile: &Profile, granularity: Time) -> u64 {
        let (min, max) = (profile.rto_min.as_nanos(), profile.rto_max.as_nanos());
        let mut deviation = (4 * self.rttvar as u64).max(granularity.as_nanos());
        if profile.rto_min_bounds == RtoMinBounds::Variance {
            deviation = deviation.max(min);
        }
        (self.srtt as u64 + deviation).clamp(min, max)
    }

    /// Four times the deviation is this, as another rule keeps it.
    pub(crate) fn set_deviation(&mut self, profile: &Profile, deviation: Time) {
        if let Clock::Fine { granularity } = profile.clock {
            self.rttvar = deviation.as_nanos() as i64 / 4;
            self.current = self.base_fine(profile, granularity);
        }
    }

    /// ns: new data is acknowledged, however often it was sent; the back-off ends.
    pub(crate) fn end_backoff(&mut self, profile: &Profile) {
        if self.expiries == 0 || self.srtt == 0 {
            return;
        }
        self.expiries = 0;
        self.current = match profile.clock {
            Clock::Ticks { period } => self.base_ticks(profile, period),
            Clock::RttTicks { period } => self.base_rtt_ticks(profile, period),
            Clock::Fine { granularity } => self.base_fine(profile, granularity),
        };
    }

    /// A SYN's time-out is set by the stack's table, as long as that goes.
    pub(crate) fn set_syn_gap(&mut self, profile: &Profile, syns: u32) {
        if let Some(&gap) = profile.syn_backoff.get(syns as usize) {
            let initial = in_units(profile, profile.rto_initial);
            let gap = initial.saturating_mul(u64::from(gap));
            self.current = gap.min(in_units(profile, profile.rto_max));
        }
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
            Clock::RttTicks { .. } | Clock::Fine { .. } => {
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
    #[inline]
    pub(crate) fn deadline(&self, profile: &Profile, host: &HostClock, now: Time) -> Time {
        match profile.clock {
            Clock::Ticks { period } => nth_tick_after(self.current, now, host.slow, period),
            Clock::RttTicks { .. } | Clock::Fine { .. } => now + Time::from_nanos(self.current),
        }
    }

    /// The time-out in force.
    pub(crate) fn timeout(&self, profile: &Profile) -> Time {
        match profile.clock {
            Clock::Ticks { period } => period * self.current,
            Clock::RttTicks { .. } | Clock::Fine { .. } => Time::from_nanos(self.current),
        }
    }
}

/// The estimators' unit in nanoseconds, and how many of the values of smoothed round trip and deviation
/// make one.
fn scales(profile: &Profile) -> (u64, [u64; 2]) {
    match profile.clock {
        Clock::Ticks { period } => (period.as_nanos(), [32, 16]),
        Clock::RttTicks { period } => (period.as_nanos(), [8, 4]),
        Clock::Fine { .. } => (1, [1, 1]),
    }
}

fn ticks(time: Time, period: Time) -> u64 {
    time.as_nanos() / period.as_nanos()
}

/// A time in the units of [`Rto::current`].
#[inline]
fn in_units(profile: &Profile, time: Time) -> u64 {
    match profile.clock {
        Clock::Ticks { period } => ticks(time, period),
        Clock::RttTicks { .. } | Clock::Fine { .. } => time.as_nanos(),
    }
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
            ..HostClock::default()
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
    fn ns_counts_ticks_and_ends_the_back_off_with_any_new_ack() {
        let ns = profile("ns-one-way");
        let host = HostClock::default();
        let mut rto = Rto::new(&ns);
        assert_eq!(rto.timeout(&ns), MS(6000));
        // A sample of one tick (also of less): 0.3 s; of two: 0.6 s.
        rto.sample(&ns, &host, MS(110), MS(120));
        assert_eq!(rto.timeout(&ns), MS(300));
        let mut rto = Rto::new(&ns);
        rto.sample(&ns, &host, MS(110), MS(310));
        assert_eq!(rto.timeout(&ns), MS(600));
        rto.back_off(&ns);
        assert_eq!(rto.timeout(&ns), MS(1200));
        rto.end_backoff(&ns);
        assert_eq!(rto.timeout(&ns), MS(600));
    }

    #[test]
    fn linux_bounds_the_variance_and_starts_with_equal_syn_gaps() {
        let linux = profile("linux");
        let host = HostClock::default();
        let mut rto = Rto::new(&linux);
        let gaps: Vec<_> = (0..6)
            .map(|syns| {
                if syns > 0 {
                    rto.back_off(&linux);
                }
                rto.set_syn_gap(&linux, syns);
                rto.timeout(&linux).as_nanos() / 1_000_000_000
            })
            .collect();
        assert_eq!(gaps, [1, 1, 1, 1, 1, 2]);
        let mut rto = Rto::new(&linux);
        for _ in 0..50 {
            rto.sample(&linux, &host, MS(0), MS(100));
        }
        assert_eq!(rto.timeout(&linux), MS(300));
    }

    #[test]
    fn clocks_of_hosts_drift_and_differ() {
        let host = HostClock {
            offset: u32::MAX,
            drift: -500,
            ..HostClock::default()
        };
        assert_eq!(host.micros(Time::ZERO), u32::MAX);
        assert_eq!(host.micros(Time::from_secs(10)), 10_000_000 - 5_000 - 1);
    }

    #[test]
    fn a_steady_round_trip_leaves_the_granularity() {
        let mut rfc = profile("rfc");
        rfc.rto_min = MS(1);
        rfc.clock = Clock::Fine {
            granularity: MS(10),
        };
        let mut rto = Rto::new(&rfc);
        for _ in 0..100 {
            rto.sample(&rfc, &HostClock::default(), MS(0), MS(100));
        }
        assert_eq!(rto.timeout(&rfc), MS(110));
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
