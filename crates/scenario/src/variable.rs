//! What varies on a link: its delay, outages, and when it can send.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::parameters;
use aqmlab_declare::tagged::Located;
use aqmlab_net::{Rate, Time};
use aqmlab_traffic::When;

use crate::limits::{self, LONGEST};
use crate::link::Link;

/// A change of the propagation delay of a link.
#[parameters]
#[derive(Eq)]
pub struct DelayChange {
    /// Time of the change, counted from the start of the run. The new delay applies to packets that
    /// leave the link later.
    #[param(unwritten)]
    pub at: Option<Time>,
    /// Replaces `at`: the delay changes when a congestion control enters a phase. The new delay
    /// applies to packets that begin their transmission later.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// New delay. Packets keep their order: none arrives before a packet that left earlier.
    #[param(check = limits::time)]
    pub delay: Time,
}

/// The probability of a loss on the wire changes.
#[parameters]
pub struct LossChange {
    /// Time of the change, counted from the start of the run. The new probability applies to
    /// packets that leave the link later.
    #[param(unwritten)]
    pub at: Option<Time>,
    /// Replaces `at`: the probability changes when a congestion control enters a phase. The new
    /// probability applies to packets that begin their transmission later.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// New probability of loss.
    #[param(least = 0.0, below = 1.0, words = "a probability from 0 to below 1")]
    pub loss: f64,
}

/// A time in which a link starts no transmission. A transmission in progress ends normally.
#[parameters]
#[derive(Copy, Eq)]
pub struct Outage {
    /// Start of the outage, from the start of the run.
    pub at: Time,
    /// Length of the outage.
    #[param(check = outage)]
    pub duration: Time,
}

fn outage(key: &str, found: Time) -> Result<(), Problem> {
    let is_right = |it: &Time| *it > Time::ZERO && *it <= LONGEST;
    limits::require(
        key,
        found,
        is_right,
        format!("above 0 and at most {LONGEST}"),
    )
}

impl Outage {
    /// The first moment behind it.
    pub fn end(&self) -> Time {
        self.at.saturating_add(self.duration)
    }
}

/// When a link can send: opportunities of 1500 bytes each, as recorded on cellular and Wi-Fi links.
/// Packets can share an opportunity, and a large packet takes several. Unused opportunities are
/// lost. The trace repeats at its end.
#[parameters]
#[derive(Eq)]
pub struct Trace {
    /// File with one opportunity in milliseconds per line, as link emulators read it. aqmlab reads
    /// it with the scenario and replaces it by `opportunities`.
    #[param(unwritten)]
    pub file: Option<String>,
    /// Opportunities in milliseconds from the start of the trace, in ascending order. Values can
    /// repeat. The last value is the length of the trace.
    #[param(default, unwritten)]
    pub opportunities: Vec<u32>,
    /// Number of opportunities that are granted together, at the time of the last of them. Links
    /// that aggregate frames send bursts and wait in between.
    #[param(default = 1, least = 1, unwritten)]
    pub aggregate: u32,
}

/// Bytes of an opportunity.
pub const OPPORTUNITY_BYTES: u64 = 1500;

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

/// Refuses changes and outages that are not in their order, and traces that mean nothing.
pub(crate) fn check(link: &Link) -> Result<(), Problem> {
    let delays = link.delay_changes.iter();
    limits::changes("delay_changes", delays.map(|it| (it.at, it.when.as_ref())))?;
    let losses = link.loss_changes.iter();
    limits::changes("loss_changes", losses.map(|it| (it.at, it.when.as_ref())))?;
    let outages = link.outages.iter().map(|outage| (outage.at, outage.end()));
    limits::ascending("outages", outages, "the end of the last outage")?;
    let Some(trace) = &link.trace else {
        return Ok(());
    };
    if !link.rate_changes.is_empty() {
        return problem("trace", "found one beside rate_changes; give either");
    }
    // A file is read later, and checked then.
    if trace.file.is_some() && trace.opportunities.is_empty() {
        return Ok(());
    }
    check_opportunities(&trace.opportunities)
        .or_else(|message| problem("trace.opportunities", message))
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
