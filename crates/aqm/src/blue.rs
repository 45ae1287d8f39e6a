//! BLUE: W. Feng, D. Kandlur, D. Saha, K. Shin, "BLUE: A New Class of Active Queue Management
//! Algorithms", University of Michigan CSE-TR-387-99, 1999; "The BLUE Active Queue Management
//! Algorithms", IEEE/ACM Transactions on Networking 10(4), 2002. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
use crate::check;
use crate::counters::Reason;
use crate::link::{Backlog, Limit, LinkFacts};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of BLUE.
#[parameters]
pub struct Params {
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Increase of the probability at an overflow.
    #[param(default = 0.02, above = 0.0, most = 1.0, changeable)]
    pub d1: f64,
    /// Decrease of the probability when the link is idle. Keep it far below `d1`.
    #[param(default = 0.002, above = 0.0, most = 1.0, changeable)]
    pub d2: f64,
    /// Minimum time between two changes of the probability, about one round-trip time.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub freeze_time: Time,
    /// An arrival that finds a longer queue also counts as an overflow, but is admitted.
    #[param(changeable)]
    pub threshold: Option<QueueSize>,
    /// How idle time lowers the probability.
    #[param(default)]
    pub on_idle: OnIdle,
    /// Minimum number of waiting packets before BLUE drops or marks. ALTQ uses 2.
    #[param(default)]
    pub min_queue: u32,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
}

/// How idle time lowers BLUE's probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnIdle {
    /// The probability falls by `d2` once when the link becomes idle, as in the paper.
    #[default]
    Once,
    /// Also, the first arrival after an idle time lowers the probability by `d2` for each
    /// `freeze_time` of the idle time.
    Decay,
    /// As in ALTQ on FreeBSD: the first arrival after more than `freeze_time` of idle time lowers
    /// the probability by `d2`. After more than 1 s, it sets the probability to `d2`.
    Altq,
}

/// After so much silence ALTQ's probability starts anew.
const ALTQ_FORGETS: Time = Time::from_secs(1);

impl Parameters for Params {
    const ABOUT: About = About {
        title: "BLUE",
        paper: "W. Feng, D. Kandlur, D. Saha, K. Shin, The BLUE Active Queue Management \
                Algorithms, IEEE/ACM Transactions on Networking 10(4), 2002; University of \
                Michigan CSE-TR-387-99, 1999",
        purpose: "Learns how often to signal from events instead of the queue length: more after \
                  an overflow, less when the link is idle.",
        departures: &[
            "The preset blue-altq drops the arrival at an overflow. ALTQ drops a random packet \
             from the buffer.",
        ],
        memory: "a few numbers",
    };
}

impl AqmParameters for Params {
    type Aqm = Blue;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Blue {
        Blue {
            threshold: self.threshold.map(Limit::new),
            params: self.clone(),
            p_m: 0.0,
            last_update: None,
            idle_since: None,
        }
    }
}

/// The AQM of BLUE.
#[derive(Clone, Debug)]
pub struct Blue {
    params: Params,
    threshold: Option<Limit>,
    /// Signal probability.
    p_m: f64,
    /// When the clock that `freeze_time` is measured by started: at the last change, if any.
    last_update: Option<Time>,
    /// Start of the idle time, while idle.
    idle_since: Option<Time>,
}

impl Blue {
    /// Changes the probability by `step`, if the last change is long enough ago.
    #[inline]
    fn change(&mut self, now: Time, step: f64) {
        let frozen = self
            .last_update
            .is_some_and(|last| now.saturating_sub(last) <= self.params.freeze_time);
        if !frozen {
            self.set(now, self.p_m + step);
        }
    }

    #[inline]
    fn set(&mut self, now: Time, p_m: f64) {
        self.p_m = p_m.clamp(0.0, 1.0);
        self.last_update = Some(now);
    }

    /// An arrival ends the idle time that began at `since`.
    fn end_idle(&mut self, now: Time, since: Time) {
        let Params {
            d2,
            freeze_time,
            on_idle,
            ..
        } = self.params;
        let idle = now.saturating_sub(since);
        match on_idle {
            OnIdle::Once => {}
            OnIdle::Decay => {
                let steps = idle.as_nanos() / freeze_time.as_nanos();
                if steps > 0 {
                    self.set(now, self.p_m - d2 * steps as f64);
                }
            }
            OnIdle::Altq if idle > ALTQ_FORGETS => self.set(now, d2),
            OnIdle::Altq => self.change(now, -d2),
        }
    }
}

impl Aqm for Blue {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        _packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        if let Some(since) = self.idle_since.take() {
            self.end_idle(now, since);
        }
        if queue.packets < self.params.min_queue {
            return Decision::Admit;
        }
        Decision::by_chance(self.p_m, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::OUTCOMES
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, _packet: &Packet, queue: Backlog, outcome: Outcome) {
        let over = self.threshold.is_some_and(|level| level.is_exceeded(queue));
        if over || outcome == Outcome::Drop(Reason::OVERFLOW) {
            self.change(now, self.params.d1);
        }
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        let known = self.idle_since.is_some();
        self.idle_since.get_or_insert(since);
        match self.params.on_idle {
            OnIdle::Once | OnIdle::Decay => self.change(since, -self.params.d2),
            OnIdle::Altq if known => {}
            OnIdle::Altq => self.last_update = Some(since),
        }
    }

    fn adopt(&mut self, fresh: Self) {
        self.threshold = fresh.threshold;
        self.params = fresh.params;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p_m", "last_update_s"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let last_update = self.last_update.unwrap_or_default();
        out.extend([self.p_m, last_update.as_secs_f64()]);
    }
}
