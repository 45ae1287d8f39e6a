//! One direction of a link, as a scenario states it.

#[cfg(feature = "shapers")]
use aqmlab_aqm::policer;
use aqmlab_aqm::{Discipline, droptail};
use aqmlab_declare::check::{Problem, problem, within};
use aqmlab_declare::tagged::Located;
use aqmlab_declare::{Declared, parameters};
use aqmlab_net::{QueueSize, Rate, Time};
use aqmlab_traffic::When;

use crate::variable::{self, DelayChange, LossChange, Outage, Trace};
use crate::{Framing, Packets, limits};

/// One direction of a link, and the queue before it.
#[parameters]
pub struct Link {
    /// Bit rate on the wire, including the framing. A link with a `trace` does not need this key:
    /// its rate is then the mean rate of the trace.
    #[param(check = limits::rate)]
    pub rate: Rate,
    /// One-way propagation delay. The round-trip time of a connection (`rtt`) includes this delay.
    #[param(default, check = limits::time)]
    pub delay: Time,
    /// Bytes that each packet occupies on the wire in addition to its IP length.
    #[param(default)]
    pub framing: Framing,
    /// Size of the transmit ring of the network card, between the queue and the wire.
    #[param(default)]
    pub device_ring: Packets,
    /// Number of ring entries that must be free before the driver moves packets from the queue into
    /// the ring. The value must be at most `device_ring`.
    #[param(default = "1 packets", unwritten)]
    pub device_ring_batch: Packets,
    /// If true, the discipline counts the packets in the ring as part of its queue. Only for an AQM
    /// that marks or drops packets on arrival, such as `red` or `pi`.
    #[param(default, unwritten)]
    pub device_ring_counted: bool,
    /// Packet processor of the router, before the queue.
    #[param(table, unwritten)]
    pub input: Option<Input>,
    /// Policer between the packet processor and the queue. Its keys are the keys of the discipline
    /// `policer`. Results list this policer as the link `LINK-policer`.
    #[cfg(feature = "shapers")]
    #[param(table, unwritten)]
    pub policer: Option<policer::Params>,
    /// Time that every packet occupies the link, whatever its size. Such a link is a processor.
    #[serde(skip)]
    pub packet_time: Option<Time>,
    /// Probability that a packet is lost on the wire, independent of congestion.
    // A link that loses every packet is none.
    #[param(
        default,
        least = 0.0,
        below = 1.0,
        words = "a probability from 0 to below 1"
    )]
    pub loss: f64,
    /// Changes of `loss`, in order of time.
    #[param(default, table, unwritten)]
    pub loss_changes: Vec<LossChange>,
    /// Random extra delay of some packets on the wire. Later packets can overtake a delayed packet.
    #[param(table, unwritten)]
    pub reordering: Option<Reordering>,
    /// Changes of `rate`, in order of time.
    #[param(default, table, unwritten)]
    pub rate_changes: Vec<RateChange>,
    /// Changes of `delay`, in order of time. A change never reorders packets.
    #[param(default, table, unwritten)]
    pub delay_changes: Vec<DelayChange>,
    /// Interval of aggregation. After its transmission, each packet (not only ACKs) waits until the
    /// next multiple of this interval. Then the link delivers all waiting packets together.
    #[param(default, check = limits::time, unwritten)]
    pub ack_batch: Time,
    /// Outages, in order of time. Each outage has a start `at` and a `duration`. During an outage
    /// the link starts no transmission.
    #[param(default, table, unwritten)]
    pub outages: Vec<Outage>,
    /// Recorded times at which the link can send, for a link with a varying capacity. If the link
    /// also has a `rate`, this rate must be within 1 % of the mean rate of the trace.
    #[param(table, unwritten)]
    pub trace: Option<Trace>,
    /// Queue discipline: the name of a preset, or a table. The table contains a `kind` and its
    /// parameters, or a `preset` and the keys that replace values of the preset.
    #[serde(deserialize_with = "crate::discipline::read")]
    #[schemars(with = "crate::discipline::Readable")]
    pub discipline: Discipline,
}

/// What a router does with a packet before it reaches the queue. A processor takes a fixed time for
/// each packet, one after another, and few packets can wait for it. In results it is a link of its
/// own, `LINK-input`, with separate drops.
#[parameters]
#[derive(Copy, Eq)]
pub struct Input {
    /// Processing time of each packet. The packet size has no effect.
    #[param(above = Time::ZERO, most = "1 s", words = "expected above 0 and at most 1 s")]
    pub packet_time: Time,
    /// Maximum number of packets that wait for the processor. FreeBSD uses 50
    /// (`net.inet.ip.intr_queue_maxlen`).
    #[param(default = "50 packets", least = Packets(1), words = "at least 1")]
    pub limit: Packets,
}

/// A change of the rate of a link.
#[parameters]
#[derive(Eq)]
pub struct RateChange {
    /// Time of the change, counted from the start of the run. A transmission in progress ends at
    /// the old rate.
    #[param(unwritten)]
    pub at: Option<Time>,
    /// Replaces `at`: the rate changes when a congestion control enters a phase.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// New rate.
    #[param(check = limits::rate)]
    pub rate: Rate,
}

/// Reordering: some packets are delayed and overtaken.
#[parameters]
#[derive(Copy)]
pub struct Reordering {
    /// Probability that a packet gets the extra delay.
    #[param(least = 0.0, most = 1.0, words = "a probability from 0 to 1")]
    pub share: f64,
    /// Extra delay.
    #[param(check = limits::time)]
    pub delay: Time,
}

impl Link {
    /// The processor in front of this link, as a link of its own.
    pub(crate) fn input(&self) -> Option<Self> {
        let Input { packet_time, limit } = self.input?;
        let limit = QueueSize::Packets(f64::from(limit.0));
        let discipline = Discipline::Droptail(droptail::Params { limit, ecn: false });
        Some(self.stage(packet_time, Framing::NONE, discipline))
    }

    /// The policer in front of this link, as a link of its own that takes no time.
    #[cfg(feature = "shapers")]
    pub(crate) fn policed(&self) -> Option<Self> {
        let discipline = Discipline::Policer(self.policer.clone()?);
        Some(self.stage(Time::ZERO, self.framing, discipline))
    }

    /// What packets pass before the queue.
    fn stage(&self, packet_time: Time, framing: Framing, discipline: Discipline) -> Self {
        Self {
            rate: self.rate,
            delay: Time::ZERO,
            framing,
            device_ring: Packets(0),
            device_ring_batch: Packets(1),
            device_ring_counted: false,
            input: None,
            #[cfg(feature = "shapers")]
            policer: None,
            packet_time: Some(packet_time),
            loss: 0.0,
            loss_changes: Vec::new(),
            reordering: None,
            rate_changes: Vec::new(),
            delay_changes: Vec::new(),
            ack_batch: Time::ZERO,
            outages: Vec::new(),
            trace: None,
            discipline,
        }
    }

    /// Places in the device ring that the discipline does not see, and how many of them must be free
    /// before it is filled again.
    ///
    /// A ring whose packets are counted changes nothing that an AQM sees or does: packets leave in
    /// their order whatever holds them, and count until their transmission begins.
    pub fn hidden_ring(&self) -> [usize; 2] {
        match self.device_ring_counted {
            true => [0, 1],
            false => [self.device_ring, self.device_ring_batch].map(|it| it.0 as usize),
        }
    }

    /// Whether it cannot always send.
    pub const fn is_gated(&self) -> bool {
        self.trace.is_some() || !self.outages.is_empty()
    }

    /// Refuses values that mean nothing; the error knows its key.
    pub(crate) fn check(&self) -> Result<(), Located> {
        let checked = self.check_each().and_then(|()| self.check_together());
        let discipline = || within("discipline", self.discipline.check());
        let checked = checked.and_then(|()| discipline());
        #[cfg(feature = "shapers")]
        let checked = checked.and_then(|()| match self.policed() {
            Some(policed) => within("policer", policed.discipline.check()),
            None => Ok(()),
        });
        checked.map_err(Located::from)
    }

    fn check_together(&self) -> Result<(), Problem> {
        let Packets(batch) = self.device_ring_batch;
        let most = self.device_ring.0.max(1);
        if batch == 0 || batch > most {
            let message =
                format!("found {batch} packets; expected 1 to {most}, what device_ring has");
            return problem("device_ring_batch", message);
        }
        if self.device_ring_counted && !self.discipline.is_aqm() {
            let message = "found true; only an AQM that decides on arrival, such as \"red\" or \"pi\", \
                           counts what is in the ring";
            return problem("device_ring_counted", message);
        }
        let rates = self.rate_changes.iter();
        limits::changes("rate_changes", rates.map(|it| (it.at, it.when.as_ref())))?;
        variable::check(self)
    }
}
