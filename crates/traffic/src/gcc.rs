//! Google congestion control for interactive video: draft-ietf-rmcat-gcc-02 (S. Holmer et al., 2016),
//! with the trend filter of today's WebRTC in place of the draft's Kalman filter (G. Carlucci et al.,
//! "Congestion Control for Web Real-Time Communication", IEEE/ACM ToN 25(5), 2017).

use std::collections::VecDeque;

use aqmlab_net::Time;

/// Packets sent within that time are a group.
const GROUP_MS: f64 = 5.0;
/// Points of the trend, and what smooths them.
const POINTS: usize = 20;
const SMOOTHING: f64 = 0.9;
/// The trend is scaled by this, and by the number of points up to a most.
const GAIN: f64 = 4.0;
const MOST_DELTAS: f64 = 60.0;
/// The threshold in ms: where it begins, its limits, what it does not follow, its gains per ms.
const THRESHOLD_MS: f64 = 12.5;
const THRESHOLDS_MS: (f64, f64) = (6.0, 600.0);
const TOO_FAR_MS: f64 = 15.0;
const GAIN_UP: f64 = 0.0087;
const GAIN_DOWN: f64 = 0.039;
/// Overuse has to last so long.
const OVERUSE_MS: f64 = 10.0;
/// What a decrease leaves of the received rate, and what the estimate never exceeds it by.
const DECREASE: f64 = 0.85;
const MOST_ABOVE: f64 = 1.5;
/// Growth per second away from the last decreases.
const GROWTH: f64 = 1.08;
/// Span of the received rate.
const RATE_SPAN: Time = Time::from_millis(500);

/// What the delay says of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Usage {
    /// The queue neither grows nor shrinks.
    #[default]
    Normal,
    /// It grows.
    Over,
    /// It shrinks.
    Under,
}

/// The arrival filter and the overuse detector of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    /// First and last sending, and last arrival, of the group under way and of the one before it, ms.
    group: Option<[f64; 3]>,
    before: Option<[f64; 3]>,
    accumulated: f64,
    smoothed: f64,
    /// (arrival, smoothed delay), ms.
    points: VecDeque<(f64, f64)>,
    deltas: f64,
    threshold: f64,
    updated: Option<f64>,
    over_for: f64,
    last_trend: f64,
    usage: Usage,
}

impl Default for Detector {
    fn default() -> Self {
        Self {
            group: None,
            before: None,
            accumulated: 0.0,
            smoothed: 0.0,
            points: VecDeque::with_capacity(POINTS + 1),
            deltas: 0.0,
            threshold: THRESHOLD_MS,
            updated: None,
            over_for: 0.0,
            last_trend: 0.0,
            usage: Usage::Normal,
        }
    }
}

impl Detector {
    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }

    /// A packet that was sent at one of these times has arrived at the other.
    pub(crate) fn on_packet(&mut self, sent: Time, arrived: Time) {
        let [sent, arrived] = [sent, arrived].map(|time| time.as_secs_f64() * 1e3);
        match &mut self.group {
            Some(group) if sent - group[0] <= GROUP_MS => {
                group[1] = group[1].max(sent);
                group[2] = group[2].max(arrived);
            }
            group => {
                let done = group.replace([sent, sent, arrived]);
                if let Some(done) = done
                    && let Some(before) = self.before.replace(done)
                {
                    let gap = done[2] - before[2];
                    self.on_delta(gap, gap - (done[1] - before[1]), done[2]);
                }
            }
        }
    }

    /// The delay of a group of packets differs from that of the one before it by `delta`; `gap` lies
    /// between their arrivals.
    fn on_delta(&mut self, gap: f64, delta: f64, arrived: f64) {
        self.deltas += 1.0;
        self.accumulated += delta;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.accumulated;
        self.points.push_back((arrived, self.smoothed));
        if self.points.len() > POINTS {
            self.points.pop_front();
        }
        if self.points.len() < POINTS {
            return;
        }
        let trend = slope(&self.points);
        let scaled = self.deltas.min(MOST_DELTAS) * trend * GAIN;
        if scaled > self.threshold {
            self.over_for += gap;
            if self.over_for > OVERUSE_MS && trend >= self.last_trend {
                self.over_for = 0.0;
                self.usage = Usage::Over;
            }
        } else {
            self.over_for = 0.0;
            self.usage = if scaled < -self.threshold {
                Usage::Under
            } else {
                Usage::Normal
            };
        }
        self.last_trend = trend;
        self.adapt(scaled.abs(), arrived);
    }

    fn adapt(&mut self, found: f64, now: f64) {
        let elapsed = now - self.updated.replace(now).unwrap_or(now);
        if found > self.threshold + TOO_FAR_MS {
            return;
        }
        let gain = if found < self.threshold {
            GAIN_DOWN
        } else {
            GAIN_UP
        };
        let (least, most) = THRESHOLDS_MS;
        let moved = self.threshold + gain * (found - self.threshold) * elapsed.min(100.0);
        self.threshold = moved.clamp(least, most);
    }
}

/// Slope of the least-squares line.
fn slope(points: &VecDeque<(f64, f64)>) -> f64 {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let product = |point: &(f64, f64)| (point.0 - x) * (point.1 - y);
    let square = |point: &(f64, f64)| (point.0 - x) * (point.0 - x);
    let denominator: f64 = points.iter().map(square).sum();
    if denominator > 0.0 {
        points.iter().map(product).sum::<f64>() / denominator
    } else {
        0.0
    }
}

/// The rate that a receiver allows, from what the delay says.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    rate: f64,
    /// Moving mean and variance of the received rate at decreases.
    at_decrease: Option<(f64, f64)>,
    increasing: bool,
    /// Arrivals (time, bits) of the span of the received rate.
    arrivals: VecDeque<(Time, f64)>,
}

impl RateControl {
    pub(crate) fn new(rate: f64) -> Self {
        Self {
            rate,
            at_decrease: None,
            increasing: true,
            arrivals: VecDeque::new(),
        }
    }

    pub(crate) fn on_packet(&mut self, now: Time, bits: f64) {
        self.arrivals.push_back((now, bits));
    }

    /// Bits per second that arrived lately.
    fn received(&mut self, now: Time) -> f64 {
        while let Some(&(time, _)) = self.arrivals.front() {
            if now - time <= RATE_SPAN {
                break;
            }
            self.arrivals.pop_front();
        }
        let bits: f64 = self.arrivals.iter().map(|&(_, bits)| bits).sum();
        bits / RATE_SPAN.as_secs_f64()
    }

    /// What is allowed after another `elapsed` seconds; `response_s` is the round trip and 100 ms.
    pub(crate) fn update(
        &mut self,
        now: Time,
        elapsed: f64,
        usage: Usage,
        response_s: f64,
        packet_bits: f64,
    ) -> f64 {
        let received = self.received(now);
        match usage {
            Usage::Over => {
                self.rate = self.rate.min(DECREASE * received);
                let (mean, variance) = self.at_decrease.unwrap_or((received, 0.0));
                let off = received - mean;
                let far = off.abs() > 3.0 * variance.sqrt() && self.at_decrease.is_some();
                self.at_decrease = Some(if far {
                    (received, variance)
                } else {
                    (mean + 0.05 * off, 0.95 * variance + 0.05 * off * off)
                });
                self.increasing = false;
            }
            // The queue drains first.
            Usage::Under => self.increasing = false,
            Usage::Normal if !self.increasing => self.increasing = true,
            Usage::Normal => {
                let is_near = self.at_decrease.is_some_and(|(mean, variance)| {
                    let deviation = variance.sqrt().max(0.05 * mean);
                    (received - mean).abs() < 3.0 * deviation
                });
                self.rate = if is_near {
                    self.rate + packet_bits * elapsed / response_s
                } else {
                    self.rate * libm::pow(GROWTH, elapsed)
                };
                // Nothing is known of rates that nobody has sent at.
                self.rate = self.rate.min((MOST_ABOVE * received).max(packet_bits));
            }
        }
        self.rate
    }
}

/// The rate that losses allow, from a report: above 10 % it falls by half of them, below 2 % it grows
/// by 5 %.
pub(crate) fn by_loss(rate: f64, lost: f64) -> f64 {
    if lost > 0.1 {
        rate * (1.0 - 0.5 * lost)
    } else if lost < 0.02 {
        rate * 1.05
    } else {
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of a packet each 20 ms, each delayed by so much more than the one before.
    fn usage(growth_us: i64) -> Usage {
        let mut detector = Detector::default();
        for n in 0..100_i64 {
            let sent = Time::from_millis(20 * n as u64);
            let delay = Time::from_micros((200_000 + growth_us * n) as u64);
            detector.on_packet(sent, sent + delay);
        }
        detector.usage()
    }

    #[test]
    fn a_growing_delay_is_overuse_and_a_shrinking_one_underuse() {
        assert_eq!(
            [0, 2_000, -1_900].map(usage),
            [Usage::Normal, Usage::Over, Usage::Under]
        );
    }

    #[test]
    fn a_decrease_leaves_85_percent_of_what_arrived() {
        let mut control = RateControl::new(2e6);
        for n in 0..50 {
            control.on_packet(Time::from_millis(10 * n), 10_000.0);
        }
        let now = Time::from_millis(500);
        let found = control.update(now, 0.1, Usage::Over, 0.2, 1e4);
        assert!((found - 0.85e6).abs() < 1e-6, "{found}");
        // One that holds, then growth by a packet per response time: it is near.
        assert_eq!(control.update(now, 0.1, Usage::Normal, 0.2, 1e4), found);
        let grown = control.update(now, 0.1, Usage::Normal, 0.2, 1e4);
        assert!((grown - found - 5e3).abs() < 1e-6, "{grown}");
    }

    #[test]
    fn losses_count_from_ten_percent_on() {
        assert_eq!(
            [0.2, 0.05, 0.0].map(|lost| by_loss(1e6, lost)),
            [9e5, 1e6, 1.05e6]
        );
    }
}
