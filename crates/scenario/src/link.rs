//! One direction of a link, as a scenario states it.

use aqmlab_aqm::{Discipline, droptail};
use aqmlab_declare::tagged::Located;
use aqmlab_net::{QueueSize, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::variable::{self, DelayChange, Outage, Trace};
use crate::{Framing, Packets};

/// One direction of a link and the queue in front of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bits per second on the wire, framing included.
    pub rate: Rate,
    /// One-way propagation delay; part of every connection's round-trip time.
    #[serde(default)]
    pub delay: Time,
    /// Bytes that each packet costs on the wire beyond its IP length.
    #[serde(default)]
    pub framing: Framing,
    /// Packets in the network card's ring, which the discipline cannot see.
    #[serde(default)]
    pub device_ring: Packets,
    /// How many places of the ring must be free before the driver fills it again while packets wait;
    /// left out: one. Cards that interrupt once for a chain of packets refill in chains.
    #[serde(default = "one_packet", skip_serializing_if = "is_one_packet")]
    pub device_ring_batch: Packets,
    /// Whether the discipline counts the packets in the ring as its own, as some drivers let it: its
    /// queue then ends where the wire begins. Only with an AQM that decides on arrival.
    #[serde(default, skip_serializing_if = "is_false")]
    pub device_ring_counted: bool,
    /// The router's processor, which every packet passes before the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// How long every packet occupies the link, whatever its size: such a link is a processor.
    #[serde(skip)]
    pub packet_time: Option<Time>,
    /// Probability that a packet is lost at random on the wire.
    #[serde(default)]
    pub loss: f64,
    /// Packets that are overtaken on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// Changes of the rate, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_changes: Vec<RateChange>,
    /// Changes of the propagation delay, in order of time. Packets keep their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_changes: Vec<DelayChange>,
    /// Times in which the link begins to send nothing, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// When the link can send, where that is not always: a trace of opportunities. `rate` is its mean
    /// rate then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The queue discipline: a table with its `kind` and parameters, the name of a preset, or a
    /// table whose `preset` names one and whose other keys replace its values.
    #[serde(deserialize_with = "crate::discipline::read")]
    #[schemars(with = "crate::discipline::Readable")]
    pub discipline: Discipline,
}

/// What a router does with a packet before it reaches the queue: a processor takes a fixed time for
/// each, one after another, and few can wait for it. In results it is a link of its own, called
/// `LINK-input`: what it drops is not counted with the queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// How long the processor takes for a packet of any size.
    pub packet_time: Time,
    /// Packets that can wait for it, beside the one that it works on (FreeBSD: 50,
    /// `net.inet.ip.intr_queue_maxlen`).
    #[serde(default = "input_limit")]
    pub limit: Packets,
}

const fn input_limit() -> Packets {
    Packets(50)
}

const fn one_packet() -> Packets {
    Packets(1)
}

fn is_one_packet(batch: &Packets) -> bool {
    *batch == one_packet()
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The rate of a link becomes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateChange {
    /// When, from the beginning of the run. A transmission under way ends as it began.
    pub at: Time,
    /// The rate from then on.
    pub rate: Rate,
}

/// Packets that are overtaken: a share of them travels longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Probability that a packet is held up.
    pub share: f64,
    /// For how long, beyond the link's delay.
    pub delay: Time,
}

impl Link {
    /// The processor before this link, as a link of its own.
    pub(crate) fn input(&self) -> Option<Self> {
        let Input { packet_time, limit } = self.input?;
        let limit = QueueSize::Packets(f64::from(limit.0));
        Some(Self {
            rate: self.rate,
            delay: Time::ZERO,
            framing: Framing::NONE,
            device_ring: Packets(0),
            device_ring_batch: one_packet(),
            device_ring_counted: false,
            input: None,
            packet_time: Some(packet_time),
            loss: 0.0,
            reordering: None,
            rate_changes: Vec::new(),
            delay_changes: Vec::new(),
            outages: Vec::new(),
            trace: None,
            discipline: Discipline::Droptail(droptail::Params { limit, ecn: false }),
        })
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
        let wrong = |key: &str, message: String| Err(Located::new(message).under(key));
        rate(self.rate).map_err(|error| error.under("rate"))?;
        if self.delay > LONGEST {
            return wrong("delay", format!("found {}; at most {LONGEST}", self.delay));
        }
        if !(0.0..1.0).contains(&self.loss) {
            return wrong(
                "loss",
                format!("found {}; a probability from 0 to below 1", self.loss),
            );
        }
        if let Some(Reordering { share, delay }) = self.reordering {
            let under = |key: &str, message: String| {
                wrong(key, message).map_err(|error| error.under("reordering"))
            };
            if !(0.0..=1.0).contains(&share) {
                return under("share", format!("found {share}; a probability from 0 to 1"));
            }
            if delay > LONGEST {
                return under("delay", format!("found {delay}; at most {LONGEST}"));
            }
        }
        let Packets(batch) = self.device_ring_batch;
        if batch == 0 || batch > self.device_ring.0.max(1) {
            let most = self.device_ring.0.max(1);
            let message =
                format!("found {batch} packets; expected 1 to {most}, what device_ring has");
            return wrong("device_ring_batch", message);
        }
        if self.device_ring_counted && !self.discipline.is_aqm() {
            let message = "found true; only an AQM that decides on arrival, such as \"red\" or \"pi\", \
                           counts what is in the ring";
            return wrong("device_ring_counted", message.to_owned());
        }
        if let Some(Input { packet_time, limit }) = self.input {
            let under = |key: &str, message: String| {
                wrong(key, message).map_err(|error| error.under("input"))
            };
            if packet_time == Time::ZERO || packet_time > Time::from_secs(1) {
                let message = format!("found {packet_time}; expected above 0 and at most 1 s");
                return under("packet_time", message);
            }
            if limit.0 == 0 {
                return under("limit", "found 0 packets; at least 1".to_owned());
            }
        }
        rate_changes(&self.rate_changes).map_err(|error| error.under("rate_changes"))?;
        variable::check(self)?;
        let checked = self.discipline.check();
        checked.map_err(|(key, message)| Located::new(message).under(&key).under("discipline"))
    }
}

/// A link has a rate, and not one at which packets take no time.
fn rate(rate: Rate) -> Result<(), Located> {
    if rate.bps() == 0 {
        return Err(Located::new("found 0 bit/s; a rate must be above 0"));
    }
    if rate > FASTEST {
        return Err(Located::new(format!("found {rate}; at most {FASTEST}")));
    }
    Ok(())
}

fn rate_changes(changes: &[RateChange]) -> Result<(), Located> {
    let mut before = Time::ZERO;
    for (index, RateChange { at, rate }) in changes.iter().enumerate() {
        let wrong = |key: &str, message: String| {
            Err(Located::new(message).under(key).under(&index.to_string()))
        };
        if *at < before || *at > LONGEST {
            let message = format!("found {at}; at most {LONGEST}, and not before the last change");
            return wrong("at", message);
        }
        crate::link::rate(*rate).map_err(|error| error.under("rate").under(&index.to_string()))?;
        before = *at;
    }
    Ok(())
}

/// The highest rate of a link: a full packet takes more than a nanosecond.
pub(crate) const FASTEST: Rate = Rate::from_mbps(10_000_000);

/// Longest time that a scenario may state: no experiment needs more, and sums stay far from the
/// end of the clock.
pub(crate) const LONGEST: Time = Time::from_secs(30 * 86_400);
