//! Adaptive RED: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001; with the byte mode and the wider marking
//! region ("new gentle") of L. Le, dissertation, University of North Carolina, 2005, sections 4.6
//! and 4.7. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::{self, Gap, Red, Settings, Unit};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of adaptive RED.
#[parameters]
pub struct Params {
    /// Minimum threshold of the average queue length. Below it, there are no early drops and no
    /// marks. Default: the number of packets that the link sends in half of `target_delay`, at
    /// least 5.
    #[param(changeable)]
    pub min_th: Option<QueueSize>,
    /// Maximum threshold. The probability is `max_p` at this average and 1 at twice it. Default:
    /// 3 x `min_th`.
    #[param(changeable)]
    pub max_th: Option<QueueSize>,
    /// Queueing delay for which the automatic thresholds are computed.
    #[param(default = "5 ms", above = Time::ZERO, changeable)]
    pub target_delay: Time,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Weight of the newest sample in the average. Default: 1 - exp(-1 / C), where C is the link
    /// rate in packets of `mean_packet` per second.
    #[param(above = 0.0, most = 1.0, changeable)]
    pub w_q: Option<f64>,
    /// Drop or mark probability at `max_th` when the run starts.
    #[param(default = 0.1, above = 0.0, most = 1.0)]
    pub max_p: f64,
    /// Lower bound of `max_p`.
    #[param(default = 0.01, above = 0.0, most = 1.0)]
    pub max_p_bottom: f64,
    /// Upper bound of `max_p`.
    #[param(default = 0.5, above = 0.0, most = 1.0)]
    pub max_p_top: f64,
    /// Time between two updates of `max_p`.
    #[param(default = "500 ms", above = Time::ZERO)]
    pub interval: Time,
    /// Increment of `max_p` when the average is above its target band, at most a quarter of
    /// `max_p`.
    #[param(default = 0.01, above = 0.0, most = 1.0, changeable)]
    pub alpha: f64,
    /// Factor on `max_p` when the average is below its target band. The paper asks for more than
    /// 0.83.
    #[param(default = 0.9, above = 0.0, below = 1.0, changeable)]
    pub beta: f64,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// Unit of the queue length.
    #[param(default)]
    pub unit: Unit,
    /// If true, the probability is multiplied by packet size / `mean_packet`.
    #[param(default)]
    pub scale_by_size: bool,
    /// Mean packet size. It converts thresholds between packets and bytes. While the link is idle,
    /// the average falls as if packets of this size arrived at the link rate and found an empty
    /// queue.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
    /// Up to which average queue length an ECN-capable packet is marked instead of dropped.
    #[param(default)]
    pub mark_region: MarkRegion,
    /// Probability at which the slope from `max_th` to twice `max_th` starts.
    #[param(default)]
    pub gentle_slope: GentleSlope,
}

/// Probability at which the slope from `max_th` to twice `max_th` starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GentleSlope {
    /// At the current `max_p`, so the probability has no step at `max_th`.
    #[default]
    PresentMaxP,
    /// At the initial `max_p`, as in ns-2 and ns-3. The probability falls at `max_th` if `max_p`
    /// has grown.
    FirstMaxP,
}

/// Up to which average queue length an ECN-capable packet is marked instead of dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkRegion {
    /// Up to `max_th`, as RFC 3168 asks.
    #[default]
    BelowMaxTh,
    /// Up to twice `max_th`: the "new gentle" of Le 2005. Needs `ecn = true`.
    BelowTwiceMaxTh,
}

/// The band in which max_p does not change, in shares of the way from min_th to max_th.
const BAND: [f64; 2] = [0.4, 0.6];

/// Packets that the automatic min_th is at least.
const SMALLEST_MIN_TH: f64 = 5.0;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Adaptive RED",
        paper: "S. Floyd, R. Gummadi, S. Shenker, Adaptive RED: An Algorithm for Increasing the \
                Robustness of RED's Active Queue Management, 2001; byte mode and new gentle: L. \
                Le, dissertation, 2005, sections 4.6 and 4.7",
        purpose: "Gentle RED that keeps its average queue half-way between the thresholds. It \
                  adapts max_p twice a second and derives weight and thresholds from link rate and \
                  target delay.",
        departures: &[],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        if let (None, Some(max_th)) = (self.min_th, self.max_th) {
            return check::problem(
                "min_th",
                format!("not stated, but max_th is, {max_th}; state both, or neither"),
            );
        }
        // Automatic thresholds grow with the link's rate: what fails on the slowest fails on all.
        self.red(1.0).check_together()?;
        if self.max_p_bottom > self.max_p_top {
            return check::problem(
                "max_p_bottom",
                format!(
                    "found {}; it must not exceed max_p_top, {}",
                    self.max_p_bottom, self.max_p_top
                ),
            );
        }
        check::between("max_p", self.max_p, self.max_p_bottom, self.max_p_top)?;
        if self.mark_region == MarkRegion::BelowTwiceMaxTh && !self.ecn {
            return check::problem(
                "mark_region",
                "found below-twice-max-th without ECN, where nothing is marked; set ecn = true"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

impl AqmParameters for Params {
    type Aqm = Ared;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Ared {
        let mut ared = Ared {
            red: Red::new(&self.red_before(link), link),
            next_change: self.interval,
            params: self.clone(),
        };
        ared.set_link(link);
        ared
    }
}

impl Params {
    /// The RED that is adapted, in front of `link`.
    fn red_before(&self, link: LinkFacts) -> red::Params {
        self.red(red::packets_per_second(link, self.mean_packet))
    }

    /// The RED that is adapted, with what is not stated set for a link of this C.
    fn red(&self, packets_per_second: f64) -> red::Params {
        let target = packets_per_second * self.target_delay.as_secs_f64();
        let min_th = self
            .min_th
            .unwrap_or(QueueSize::Packets((target / 2.0).max(SMALLEST_MIN_TH)));
        let max_th = self.max_th.unwrap_or(match min_th {
            QueueSize::Packets(packets) => QueueSize::Packets(3.0 * packets),
            QueueSize::Bytes(bytes) => QueueSize::Bytes(3 * bytes),
        });
        red::Params {
            min_th,
            max_th,
            limit: self.limit,
            w_q: self
                .w_q
                .unwrap_or(-libm::expm1(-packets_per_second.recip())),
            max_p: self.max_p,
            gentle: true,
            gap: self.gap,
            unit: self.unit,
            scale_by_size: self.scale_by_size,
            mean_packet: self.mean_packet,
            ecn: self.ecn,
        }
    }
}

/// The AQM of adaptive RED.
#[derive(Clone, Debug)]
pub struct Ared {
    red: Red,
    /// The first arrival from then on may move max_p.
    next_change: Time,
    params: Params,
}

impl Ared {
    /// Adds to max_p or multiplies it, to bring the average into the band.
    fn adapt(&mut self) {
        let Params {
            alpha,
            beta,
            max_p_bottom,
            max_p_top,
            ..
        } = self.params;
        let Settings { min_th, max_th, .. } = self.red.settings;
        let [low, high] = BAND.map(|share| min_th + share * (max_th - min_th));
        let avg = self.red.average.avg;
        let max_p = &mut self.red.max_p;
        if avg > high {
            *max_p += alpha.min(*max_p / 4.0);
        } else if avg < low {
            *max_p *= beta;
        }
        *max_p = max_p.clamp(max_p_bottom, max_p_top);
    }
}

impl Aqm for Ared {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.red.observe(now, queue);
        if now >= self.next_change {
            self.adapt();
            self.next_change = now + self.params.interval;
        }
        self.red.decide(packet, queue, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::OVERFLOWS
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, queue: Backlog, outcome: Outcome) {
        self.red.on_outcome(now, packet, queue, outcome);
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.red.on_idle(since);
    }

    /// What is automatic follows the link; the average and max_p stay.
    fn set_link(&mut self, link: LinkFacts) {
        let params = self.params.red_before(link);
        self.red.set_link(link);
        self.red.average.w_q = params.w_q;
        self.red.settings = Settings::new(&params);
        if self.params.mark_region == MarkRegion::BelowTwiceMaxTh {
            self.red.settings.mark_below = self.red.settings.forced_th;
        }
        if self.params.gentle_slope == GentleSlope::FirstMaxP {
            self.red.settings.gentle_max_p = Some(self.params.max_p);
        }
    }

    fn adopt(&mut self, fresh: Self) {
        self.red.settings = fresh.red.settings;
        self.red.average.w_q = fresh.red.average.w_q;
        self.params = fresh.params;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["avg", "count", "p_b", "p_a", "max_p"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.red.probe(out);
        out.push(self.red.max_p);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_declare::tagged;
    use aqmlab_net::Rate;

    use super::*;

    fn automatic(mean_packet: u64) -> Params {
        let table = format!("limit = \"100000 packets\"\nmean_packet = \"{mean_packet} bytes\"");
        tagged::from_value(toml::Value::Table(table.parse().unwrap())).unwrap()
    }

    fn link(bps: u64) -> LinkFacts {
        LinkFacts {
            rate: Rate::from_bps(bps),
            framing: Bytes(38),
        }
    }

    #[test]
    fn what_is_not_stated_is_set_from_the_link() {
        let mut reader =
            csv::Reader::from_reader(include_str!("../tests/data/ared_auto.csv").as_bytes());
        // rate_bps, mean_packet_bytes, C, target_delay_s, w_q, min_th, max_th, ...
        for row in reader.records().map(Result::unwrap) {
            let number = |column: usize| row[column].parse::<f64>().unwrap();
            let params = automatic(number(1) as u64);
            assert_eq!(params.target_delay.as_secs_f64(), number(3));
            let ared = params.aqm(link(number(0) as u64), 1);
            let Settings { min_th, max_th, .. } = ared.red.settings;
            assert!(
                (ared.red.average.w_q / number(4) - 1.0).abs() < 1e-11,
                "{row:?}"
            );
            assert_eq!((min_th, max_th), (number(5), number(6)), "{row:?}");
        }
    }

    #[test]
    fn what_is_not_stated_follows_a_link_that_changes_and_the_rest_stays() {
        let mut ared = automatic(500).aqm(link(10_000_000), 1);
        ared.red.average.avg = 7.0;
        ared.red.max_p = 0.3;
        ared.set_link(link(100_000_000));
        let fresh = automatic(500).aqm(link(100_000_000), 1);
        assert_eq!(ared.red.settings.min_th, 62.5);
        assert_eq!(ared.red.settings.forced_th, 375.0);
        assert_eq!(ared.red.average.w_q, fresh.red.average.w_q);
        assert_eq!((ared.red.average.avg, ared.red.max_p), (7.0, 0.3));

        let stated = Params {
            min_th: Some(QueueSize::Packets(20.0)),
            w_q: Some(0.25),
            ..automatic(500)
        };
        let mut ared = stated.aqm(link(10_000_000), 1);
        ared.set_link(link(100_000_000));
        assert_eq!(ared.red.settings.min_th, 20.0);
        assert_eq!(ared.red.settings.max_th, 60.0);
        assert_eq!(ared.red.average.w_q, 0.25);
        assert_eq!(ared.red.average.packets_per_second, 25_000.0);
    }

    #[test]
    fn the_gentle_slope_may_stay_where_max_p_was_first() {
        // Half-way from max_th to twice that, after max_p has risen from 0.1 to 0.5.
        for (gentle_slope, expected) in [
            (GentleSlope::PresentMaxP, 0.75),
            (GentleSlope::FirstMaxP, 0.55),
        ] {
            let params = Params {
                w_q: Some(1e-12),
                gentle_slope,
                ..automatic(500)
            };
            let mut ared = params.aqm(link(10_000_000), 1);
            ared.red.max_p = 0.5;
            ared.on_idle(Time::ZERO);
            ared.red.average.end_idle(Time::ZERO);
            ared.red.average.avg = 1.5 * ared.red.settings.max_th;
            let packet = Packet {
                size: 500,
                ecn: aqmlab_net::Ecn::NotEct,
                dscp: 0,
                flow: aqmlab_net::FlowKey(1),
            };
            let queue = Backlog {
                packets: 20,
                bytes: 10_000,
            };
            ared.on_arrival(Time::ZERO, &packet, queue, &mut || 0.99);
            let mut probes = Vec::new();
            ared.probe(&mut probes);
            let p_b = probes[2];
            assert!((p_b - expected).abs() < 1e-9, "{gentle_slope:?}: {p_b}");
        }
    }
}
