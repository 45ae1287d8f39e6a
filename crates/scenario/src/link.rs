//! One direction of a link, as a scenario states it.

use aqmlab_aqm::Discipline;
use aqmlab_declare::tagged::Located;
use aqmlab_net::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Probability that a packet is lost at random on the wire.
    #[serde(default)]
    pub loss: f64,
    /// Packets that are overtaken on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// Changes of the rate, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_changes: Vec<RateChange>,
    /// The queue discipline: a table with its `kind` and parameters, the name of a preset, or a
    /// table whose `preset` names one and whose other keys replace its values.
    #[serde(deserialize_with = "crate::discipline::read")]
    #[schemars(with = "crate::discipline::Readable")]
    pub discipline: Discipline,
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
        rate_changes(&self.rate_changes).map_err(|error| error.under("rate_changes"))?;
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
