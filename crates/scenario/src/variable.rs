//! What varies on a link: its delay, outages, and when it can send.

use aqmlab_declare::tagged::Located;
use aqmlab_net::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::{LONGEST, Link};

/// The propagation delay of a link becomes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayChange {
    /// When, from the beginning of the run: for packets whose last bit leaves from then on.
    pub at: Time,
    /// The delay from then on. Packets keep their order: none arrives before one that left earlier.
    pub delay: Time,
}

/// A time in which a link begins to send nothing. A transmission under way ends as it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins, from the beginning of the run.
    pub at: Time,
    /// How long it lasts.
    pub duration: Time,
}

impl Outage {
    /// The first moment behind it.
    pub fn end(&self) -> Time {
        self.at.saturating_add(self.duration)
    }
}

/// When a link can send: opportunities, each for 1500 bytes, as recorded of cellular and Wi-Fi links.
/// Packets share an opportunity, and a packet takes several where one does not hold it. What nobody
/// uses is lost. At its end the trace begins again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// A file with the milliseconds of one opportunity in each line, as link emulators read it. It is
    /// read when the scenario is, and replaced by `opportunities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Milliseconds from the beginning of the trace at which there is an opportunity, ascending; several
    /// can be the same. The last one is the length of the trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opportunities: Vec<u32>,
    /// Opportunities that are granted together, when the last of them comes: links that aggregate
    /// send bursts, and wait in between.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub aggregate: u32,
}

/// Bytes of an opportunity.
pub const OPPORTUNITY_BYTES: u64 = 1500;

const fn one() -> u32 {
    1
}

const fn is_one(number: &u32) -> bool {
    *number == one()
}

impl Trace {
    /// The milliseconds at which opportunities are granted, which aggregation makes later.
    pub fn granted(&self) -> Vec<u32> {
        let groups = self.opportunities.chunks(self.aggregate.max(1) as usize);
        let granted = groups.flat_map(|group| {
            let last = group.last().copied().unwrap_or_default();
            group.iter().map(move |_| last)
        });
        granted.collect()
    }

    /// Its mean rate.
    pub fn mean_rate(&self) -> Rate {
        let length = u128::from(self.opportunities.last().copied().unwrap_or(1).max(1));
        let bits = 8 * u128::from(OPPORTUNITY_BYTES) * self.opportunities.len() as u128;
        Rate::from_bps((1000 * bits / length) as u64)
    }
}

/// Refuses what means nothing; the error knows its key.
pub(crate) fn check(link: &Link) -> Result<(), Located> {
    let mut before = Time::ZERO;
    for (index, DelayChange { at, delay }) in link.delay_changes.iter().enumerate() {
        let wrong = |key: &str, message: String| {
            let error = Located::new(message).under(key);
            Err(error.under(&index.to_string()).under("delay_changes"))
        };
        if *at < before || *at > LONGEST {
            let right = "and not before the last change";
            return wrong("at", format!("found {at}; at most {LONGEST}, {right}"));
        }
        if *delay > LONGEST {
            return wrong("delay", format!("found {delay}; at most {LONGEST}"));
        }
        before = *at;
    }
    let mut before = Time::ZERO;
    for (index, outage) in link.outages.iter().enumerate() {
        let wrong = |key: &str, message: String| {
            let error = Located::new(message).under(key);
            Err(error.under(&index.to_string()).under("outages"))
        };
        if outage.at < before || outage.at > LONGEST {
            let right = "and not before the end of the last outage";
            return wrong(
                "at",
                format!("found {}; at most {LONGEST}, {right}", outage.at),
            );
        }
        if outage.duration == Time::ZERO || outage.duration > LONGEST {
            let message = format!("found {}; above 0 and at most {LONGEST}", outage.duration);
            return wrong("duration", message);
        }
        before = outage.end();
    }
    match &link.trace {
        Some(trace) => trace_of(link, trace).map_err(|error| error.under("trace")),
        None => Ok(()),
    }
}

fn trace_of(link: &Link, trace: &Trace) -> Result<(), Located> {
    let wrong = |key: &str, message: String| Err(Located::new(message).under(key));
    if trace.aggregate == 0 {
        return wrong("aggregate", "found 0; it must be at least 1".to_owned());
    }
    if !link.rate_changes.is_empty() {
        let message = "found one beside rate_changes; give either";
        return Err(Located::new(message));
    }
    // A file is read later, and checked then.
    if trace.file.is_some() && trace.opportunities.is_empty() {
        return Ok(());
    }
    check_opportunities(&trace.opportunities)
        .map_err(|message| Located::new(message).under("opportunities"))
}

/// Opportunities ascend, and the trace has a length.
pub(crate) fn check_opportunities(opportunities: &[u32]) -> Result<(), String> {
    let unordered = opportunities.windows(2).position(|two| two[1] < two[0]);
    if let Some(index) = unordered {
        let [before, found] = [opportunities[index], opportunities[index + 1]];
        return Err(format!(
            "found {found} ms as number {} after {before} ms; opportunities must ascend",
            index + 2
        ));
    }
    match opportunities.last() {
        None => Err("found none; a trace has at least one opportunity".to_owned()),
        Some(0) => Err("found only 0 ms; the last one is the length of the trace".to_owned()),
        Some(_) => Ok(()),
    }
}

/// The mean rate of a trace is what disciplines, `load` and the utilization go by.
pub(crate) fn check_rate(link: &Link) -> Result<(), Located> {
    let Some(trace) = &link.trace else {
        return Ok(());
    };
    let (found, mean) = (link.rate.bps() as f64, trace.mean_rate().bps() as f64);
    if (found - mean).abs() > 0.01 * mean {
        let message = format!(
            "found {}; the mean rate of the trace is {}, from which it may differ by 1 %",
            link.rate,
            trace.mean_rate()
        );
        return Err(Located::new(message).under("rate"));
    }
    Ok(())
}
