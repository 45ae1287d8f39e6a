//! Self-configuring RED, the first adaptive RED: W. Feng, D. Kandlur, D. Saha, K. Shin, "A
//! Self-Configuring RED Gateway", IEEE INFOCOM 1999. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::{self, Gap, Red, Unit};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of adaptive RED after Feng et al.
#[parameters]
pub struct Params {
    /// Minimum threshold of the average queue length. Below it, there are no early drops and no
    /// marks.
    pub min_th: QueueSize,
    /// Maximum threshold. From this average on, every arrival is dropped.
    pub max_th: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Weight of the newest sample in the average. With a larger weight, the average follows the
    /// queue faster.
    #[param(default = 0.002, above = 0.0, most = 1.0)]
    pub w_q: f64,
    /// Drop or mark probability at `max_th` when the run starts.
    #[param(default = 0.1, least = FLOOR, most = 1.0)]
    pub max_p: f64,
    /// Divisor of `max_p` when the average falls below `min_th`.
    #[param(default = 3.0, above = 1.0)]
    pub alpha: f64,
    /// Factor on `max_p` when the average rises above `max_th`.
    #[param(default = 2.0, above = 1.0)]
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
    #[param(default)]
    pub ecn: bool,
}

/// The least that `max_p` is divided down to.
const FLOOR: f64 = 1e-6;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Adaptive RED after Feng, Kandlur, Saha and Shin",
        paper: "W. Feng, D. Kandlur, D. Saha, K. Shin, A Self-Configuring RED Gateway, IEEE \
                INFOCOM 1999",
        purpose: "RED that learns how often to signal: max_p grows when the average queue rises \
                  above the thresholds and shrinks when it falls below.",
        departures: &[],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.red().check_together()
    }
}

impl AqmParameters for Params {
    type Aqm = AredFeng;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> AredFeng {
        AredFeng {
            red: Red::new(&self.red(), link),
            alpha: self.alpha,
            beta: self.beta,
            status: Status::Between,
        }
    }
}

impl Params {
    /// The RED that is adapted.
    fn red(&self) -> red::Params {
        red::Params {
            min_th: self.min_th,
            max_th: self.max_th,
            limit: self.limit,
            w_q: self.w_q,
            max_p: self.max_p,
            gentle: false,
            gap: self.gap,
            unit: self.unit,
            scale_by_size: self.scale_by_size,
            mean_packet: self.mean_packet,
            ecn: self.ecn,
        }
    }
}

/// Which threshold the average crossed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Below,
    Between,
    Above,
}

/// The AQM of adaptive RED after Feng et al.
#[derive(Clone, Debug)]
pub struct AredFeng {
    red: Red,
    alpha: f64,
    beta: f64,
    status: Status,
}

impl AredFeng {
    /// Moves max_p, once per crossing of a threshold.
    #[inline]
    fn adapt(&mut self) {
        let avg = self.red.average.avg;
        let max_p = self.red.max_p;
        if avg < self.red.settings.min_th {
            if self.status != Status::Below {
                self.status = Status::Below;
                self.red.max_p = (max_p / self.alpha).max(FLOOR);
            }
        } else if avg > self.red.settings.max_th {
            if self.status != Status::Above {
                self.status = Status::Above;
                self.red.max_p = (max_p * self.beta).min(1.0);
            }
        } else if avg > self.red.settings.min_th && avg < self.red.settings.max_th {
            self.status = Status::Between;
        }
    }
}

impl Aqm for AredFeng {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.red.observe(now, queue);
        self.adapt();
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

    fn set_link(&mut self, link: LinkFacts) {
        self.red.set_link(link);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["avg", "count", "p_b", "p_a", "max_p", "status"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.red.probe(out);
        let status = match self.status {
            Status::Below => -1.0,
            Status::Between => 0.0,
            Status::Above => 1.0,
        };
        out.extend([self.red.max_p, status]);
    }
}
