//! PIE: R. Pan, P. Natarajan, F. Baker, G. White, "Proportional Integral Controller Enhanced
//! (PIE): A Lightweight Control Scheme to Address the Bufferbloat Problem", RFC 8033, 2017,
//! sections 4, 5 and appendix A. Departures: [`Parameters::ABOUT`].

#[cfg(test)]
mod tests;

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, happens};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, Limit, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of PIE.
#[parameters]
pub struct Params {
    /// Target queueing delay (QDELAY_REF).
    #[param(default = "15 ms", above = Time::ZERO, changeable)]
    pub qdelay_ref: Time,
    /// Time between two updates of the probability (T_UPDATE).
    #[param(default = PUBLISHED_T_UPDATE, least = check::SHORTEST_TICK)]
    pub t_update: Time,
    /// Integral gain: each update adds this probability for each second by which the delay exceeds
    /// `qdelay_ref`. Default: 0.125 x `t_update` / 15 ms.
    #[param(least = 0.0, most = LARGEST_GAIN, changeable)]
    pub alpha: Option<f64>,
    /// Proportional gain: each update adds this probability for each second by which the delay grew
    /// since the last update. Default: 1.25 + (0.125 - a) / 2, where a is the default `alpha`.
    #[param(least = 0.0, most = LARGEST_GAIN, changeable)]
    pub beta: Option<f64>,
    /// Burst allowance: PIE drops and marks nothing for this long when an idle queue fills
    /// (MAX_BURST).
    #[param(default = "150 ms", changeable)]
    pub max_burst: Time,
    /// Mean packet size (MEAN_PKTSIZE). PIE does nothing while at most two such packets wait.
    #[param(default = "1500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// Buffer size.
    #[param(default = "1000 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// How the queueing delay is measured.
    #[param(default)]
    pub delay: Delay,
    /// If true, the probability is multiplied by packet size / `mean_packet`.
    #[param(default)]
    pub scale_by_size: bool,
    /// If true, drops and marks are spaced more evenly (section 5.4). Default: true with `rules =
    /// "linux"`, else false.
    pub derandomize: Option<bool>,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
    /// From this probability on, ECN-capable packets are dropped instead of marked.
    #[param(default = 0.1, least = 0.0, most = 1.0, changeable)]
    pub mark_ecnth: f64,
    /// Which rules apply where Linux and RFC 8033 differ.
    #[param(default)]
    pub rules: Rules,
    /// Upper bound of the probability. From a value above 1, the probability takes longer to fall.
    /// Default: 1, or 256 with `rules = "linux"`.
    #[param(least = 1.0, most = LARGEST_P, changeable)]
    pub p_max: Option<f64>,
}

/// Which rules PIE follows where Linux and RFC 8033 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// The rules of RFC 8033.
    #[default]
    Rfc,
    /// The rules of Linux (table on the page of `pie`).
    Linux,
}

impl Rules {
    /// How far the probability may grow: as given, or as the rules have it.
    pub(crate) fn p_max(self, given: Option<f64>) -> f64 {
        given.unwrap_or(match self {
            Self::Rfc => 1.0,
            Self::Linux => LARGEST_P,
        })
    }
}

/// How PIE measures the queueing delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// The time that the last departed packet waited, or 0 if the queue was empty after it.
    #[default]
    Sojourn,
    /// Waiting bytes / departure rate. The rate is measured over 16384 bytes and averaged.
    Rate,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Proportional Integral controller Enhanced",
        paper: "RFC 8033, Proportional Integral Controller Enhanced (PIE): A Lightweight Control \
                Scheme to Address the Bufferbloat Problem, 2017, sections 4, 5 and appendix A",
        purpose: "Holds the queueing delay at a target at any link rate, with a PI controller of \
                  the drop probability.",
        departures: &[
            "The delay is the waiting time of the last departed packet; `delay = \"rate\"` takes \
             the RFC's estimate.",
            "PIE is never inactive (section 5.3). From a probability of 0.1 on, each update adds \
             at most 0.02 (section 5.5).",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        if self.delay == Delay::Rate && self.rules == Rules::Linux {
            let message = "found \"rate\"; rules = \"linux\" needs \"sojourn\"";
            return check::problem("delay", message);
        }
        let limit = Unit::Bytes.threshold(self.limit, self.mean_packet);
        if self.delay == Delay::Rate && limit < CYCLE as f64 {
            let message = format!(
                "found {}; to measure the rate of departures takes {CYCLE} bytes waiting",
                self.limit
            );
            return check::problem("limit", message);
        }
        Ok(())
    }
}

impl AqmParameters for Params {
    type Aqm = Pie;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Pie {
        let (alpha, beta) = gains(self.t_update, self.alpha, self.beta);
        let settings = Settings {
            qdelay_ref: self.qdelay_ref.as_secs_f64(),
            t_update: self.t_update,
            alpha,
            beta,
            max_burst: self.max_burst,
            mean_packet: self.mean_packet.0,
            scale_by_size: self.scale_by_size,
            derandomize: self.derandomize.unwrap_or(self.rules == Rules::Linux),
            mark_ecnth: self.mark_ecnth,
            rules: self.rules,
            p_max: self.rules.p_max(self.p_max),
        };
        Pie {
            limit: Limit::new(self.limit),
            control: Control::new(&settings),
            next_tick: settings.t_update,
            settings,
            meter: (self.delay == Delay::Rate).then(Meter::default),
        }
    }
}

/// The range of Linux's probability, which begins at 1 again behind it.
pub(crate) const LARGEST_P: f64 = 256.0;

/// Gains beyond this would mean nothing, and could not be added.
pub(crate) const LARGEST_GAIN: f64 = 1e6;

/// The RFC's gains, in 1/s, for an update every 15 ms.
const ALPHA: f64 = 0.125;
/// The time between updates that these gains are for.
pub(crate) const PUBLISHED_T_UPDATE: Time = Time::from_millis(15);
const BETA: f64 = 1.25;

/// alpha and beta: as given, or as the RFC's follow the time between updates.
pub(crate) fn gains(t_update: Time, alpha: Option<f64>, beta: Option<f64>) -> (f64, f64) {
    let scaled = ALPHA * t_update.as_secs_f64() / PUBLISHED_T_UPDATE.as_secs_f64();
    let beta = beta.unwrap_or_else(|| (BETA + (ALPHA - scaled) / 2.0).max(0.0));
    (alpha.unwrap_or(scaled), beta)
}

/// What PIE aims at and how, times in seconds where they meet gains.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) qdelay_ref: f64,
    pub(crate) t_update: Time,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) max_burst: Time,
    pub(crate) mean_packet: u64,
    pub(crate) scale_by_size: bool,
    pub(crate) derandomize: bool,
    pub(crate) mark_ecnth: f64,
    pub(crate) rules: Rules,
    pub(crate) p_max: f64,
}

impl Settings {
    fn is_linux(&self) -> bool {
        self.rules == Rules::Linux
    }
}

/// The controller of PIE over one queue: what it remembers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Control {
    /// Signal probability (the RFC's drop_prob_).
    pub(crate) p: f64,
    /// Queueing delay, in seconds.
    pub(crate) qdelay: f64,
    /// Queueing delay at the last update.
    pub(crate) qdelay_old: f64,
    /// Time for which a burst still passes (burst_allowance_).
    pub(crate) burst: Time,
    /// Sum of the probabilities since the last signal (accu_prob_).
    accu: f64,
    /// With Linux's rules: when a packet left last, of those that use up the allowance.
    left: Option<Time>,
}

/// Below this sum of probabilities a de-randomized PIE does not signal yet; above, it must.
const TOO_SOON: f64 = 0.85;
const TOO_LATE: f64 = 8.5;

/// A probability below the first number moves by its change over the second.
const CAUTION: [(f64, f64); 6] = [
    (1e-6, 2048.0),
    (1e-5, 512.0),
    (1e-4, 128.0),
    (1e-3, 32.0),
    (1e-2, 8.0),
    (1e-1, 2.0),
];

/// Most that a higher one may grow at once.
const LARGEST_STEP: f64 = 0.02;

/// What is kept of a probability at each update while the queue is empty.
const DECAY: f64 = 0.98;

/// The decay of the probability in Linux.
const DECAY_LINUX: f64 = 1.0 - 1.0 / 64.0;

/// Above this delay, in seconds, Linux adds the largest step once more.
const HIGH_DELAY: f64 = 0.25;

impl Control {
    pub(crate) const fn new(settings: &Settings) -> Self {
        Self {
            p: 0.0,
            qdelay: 0.0,
            qdelay_old: 0.0,
            burst: settings.max_burst,
            accu: 0.0,
            left: None,
        }
    }

    /// Decides about an arrival of `size` bytes, which `fits` or not.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        settings: &Settings,
        size: u32,
        queue: Backlog,
        fits: bool,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let p = self.chance(settings, size, queue, fits);
        match happens(p, draw) {
            true => self.signal(settings),
            false => Decision::Admit,
        }
    }

    /// What an arrival meets.
    #[inline(never)]
    fn signal(&mut self, settings: &Settings) -> Decision {
        self.accu = 0.0;
        if self.p < settings.mark_ecnth || settings.is_linux() && self.p == settings.mark_ecnth {
            Decision::Signal(Reason::EARLY)
        } else {
            Decision::Drop(Reason::EARLY)
        }
    }

    /// The chance that an arrival is signalled, spaced if it is to be.
    #[inline(never)]
    fn chance(&mut self, settings: &Settings, size: u32, queue: Backlog, fits: bool) -> f64 {
        if self.spares(settings, queue, fits) {
            return 0.0;
        }
        let mut p = self.p;
        if settings.scale_by_size {
            p = (p * f64::from(size) / settings.mean_packet as f64).min(1.0);
        }
        if settings.derandomize {
            if self.p == 0.0 {
                self.accu = 0.0;
            }
            self.accu += p;
            if self.accu < TOO_SOON {
                return 0.0;
            }
            if self.accu >= TOO_LATE {
                return 1.0;
            }
        }
        p
    }

    /// Whether an arrival needs no draw.
    fn spares(&mut self, settings: &Settings, queue: Backlog, fits: bool) -> bool {
        let half = settings.qdelay_ref / 2.0;
        let (mut delay, mut short) = (self.qdelay_old, 2 * settings.mean_packet);
        if settings.is_linux() {
            if !fits {
                self.accu = 0.0;
                return true;
            }
            (delay, short) = (self.qdelay, short - 1);
        } else if self.p == 0.0 && self.qdelay < half && self.qdelay_old < half {
            self.burst = settings.max_burst;
        }
        let harmless = delay < half && self.p < 0.2;
        self.burst > Time::ZERO || harmless || queue.bytes <= short
    }

    /// A packet that waited for `sojourn` has left `queue` behind.
    pub(crate) fn departed(
        &mut self,
        settings: &Settings,
        now: Time,
        sojourn: Time,
        queue: Backlog,
    ) {
        if settings.is_linux() {
            let since = self.left.replace(now).unwrap_or(now);
            self.burst = self.burst.saturating_sub(now - since);
        }
        self.qdelay = if queue.packets == 0 {
            0.0
        } else {
            sojourn.as_secs_f64()
        };
    }

    /// The probability moves; whether packets wait counts in Linux.
    #[inline(never)]
    pub(crate) fn update(&mut self, settings: &Settings, is_busy: bool) {
        let is_linux = settings.is_linux();
        let mut step = settings.alpha * (self.qdelay - settings.qdelay_ref)
            + settings.beta * (self.qdelay - self.qdelay_old);
        match CAUTION.iter().find(|(below, _)| self.p < *below) {
            Some((_, divisor)) => step /= divisor,
            None => step = step.min(LARGEST_STEP),
        }
        if is_linux && self.qdelay > HIGH_DELAY {
            step += LARGEST_STEP;
        }
        let mut p = self.p + step;
        if self.qdelay == 0.0 && self.qdelay_old == 0.0 && !(is_linux && is_busy) {
            p *= if is_linux { DECAY_LINUX } else { DECAY };
        }
        self.p = match p > LARGEST_P {
            true => 1.0,
            false => p.clamp(0.0, settings.p_max),
        };
        if is_linux {
            let half = settings.qdelay_ref / 2.0;
            if self.p == 0.0 && self.qdelay < half && self.qdelay_old < half {
                *self = Self {
                    qdelay: self.qdelay,
                    ..Self::new(settings)
                };
            }
        } else {
            self.burst = self.burst.saturating_sub(settings.t_update);
        }
        self.qdelay_old = self.qdelay;
    }

    /// Other parameters: an allowance that nothing has used yet is the new one.
    pub(crate) fn adopt(&mut self, old: &Settings, new: &Settings) {
        if self.burst == old.max_burst && old.is_linux() {
            self.burst = new.max_burst;
        }
    }

    pub(crate) fn probe(&self, out: &mut Vec<f64>) {
        out.extend([
            self.qdelay,
            self.qdelay_old,
            self.p.min(1.0),
            self.burst.as_secs_f64(),
        ]);
    }
}

/// Measures how long a byte takes to depart while enough of them wait (section 5.2).
#[derive(Clone, Debug, Default)]
struct Meter {
    /// Start of the measurement under way, and bytes that left since.
    cycle: Option<(Time, u64)>,
    /// Average, once there is one.
    seconds_per_byte: Option<f64>,
}

/// Bytes of one measurement, and that must wait for it to begin (DQ_THRESHOLD).
const CYCLE: u64 = 1 << 14;

/// Weight of the newest measurement.
const WEIGHT: f64 = CYCLE as f64 / (1 << 16) as f64;

impl Meter {
    /// A packet of `size` bytes leaves and `queue` still waits.
    fn departed(&mut self, now: Time, size: u32, queue: Backlog) {
        if let Some((since, bytes)) = &mut self.cycle {
            *bytes += u64::from(size);
            if *bytes < CYCLE {
                return;
            }
            let sample = (now - *since).as_secs_f64() / *bytes as f64;
            let old = self.seconds_per_byte.unwrap_or(sample);
            self.seconds_per_byte = Some(WEIGHT * sample + (1.0 - WEIGHT) * old);
        }
        self.cycle = (queue.bytes >= CYCLE).then_some((now, 0));
    }

    fn delay(&self, queue: Backlog) -> f64 {
        queue.bytes as f64 * self.seconds_per_byte.unwrap_or(0.0)
    }
}

/// The AQM of PIE.
#[derive(Clone, Debug)]
pub struct Pie {
    settings: Settings,
    control: Control,
    limit: Limit,
    next_tick: Time,
    /// If the delay is to be found from the rate of departures.
    meter: Option<Meter>,
}

impl Aqm for Pie {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let fits = self.limit.admits(queue, packet.size);
        self.control
            .judge(&self.settings, packet.size, queue, fits, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::DEPARTURES
    }

    #[inline]
    fn on_departure(&mut self, now: Time, packet: &Packet, arrived: Time, queue: Backlog) {
        match &mut self.meter {
            Some(meter) => meter.departed(now, packet.size, queue),
            None => self
                .control
                .departed(&self.settings, now, now - arrived, queue),
        }
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, now: Time, queue: Backlog) {
        if let Some(meter) = &self.meter {
            self.control.qdelay = meter.delay(queue);
        }
        self.control.update(&self.settings, queue.packets > 0);
        self.next_tick = now.saturating_add(self.settings.t_update);
    }

    fn adopt(&mut self, fresh: Self) {
        self.control.adopt(&self.settings, &fresh.settings);
        (self.settings, self.limit) = (fresh.settings, fresh.limit);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["qdelay_s", "qdelay_old_s", "p", "burst_allowance_s"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.control.probe(out);
    }
}
