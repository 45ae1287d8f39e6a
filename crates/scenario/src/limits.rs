//! How far values of a scenario go, and the sentences that refuse what lies beyond.

use std::fmt::Display;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_net::{Rate, Time};
use aqmlab_traffic::{When, time_of};

/// The highest rate of a link: a full packet takes more than a nanosecond.
const FASTEST: Rate = Rate::from_mbps(10_000_000);

/// Longest time that a scenario may state: no experiment needs more, and sums stay far from the
/// end of the clock.
pub(crate) const LONGEST: Time = Time::from_secs(30 * 86_400);

/// Refuses a value that is not right.
pub(crate) fn require<T: Display>(
    key: &str,
    found: T,
    is_right: impl FnOnce(&T) -> bool,
    right: impl Display,
) -> Result<(), Problem> {
    match is_right(&found) {
        true => Ok(()),
        false => problem(key, format!("found {found}; {right}")),
    }
}

/// A link has a rate, and not one at which packets take no time.
pub(crate) fn rate(key: &str, rate: Rate) -> Result<(), Problem> {
    require(key, rate, |it| it.bps() > 0, "a rate must be above 0")?;
    require(key, rate, |it| *it <= FASTEST, format!("at most {FASTEST}"))
}

/// A time lies within what a scenario can last.
pub(crate) fn time(key: &str, time: Time) -> Result<(), Problem> {
    require(key, time, |it| *it <= LONGEST, format!("at most {LONGEST}"))
}

/// A time is not zero.
pub(crate) fn positive(key: &str, time: Time) -> Result<(), Problem> {
    require(key, time, |it| *it > Time::ZERO, "it must be above 0")
}

/// Changes happen at a time or at a phase, and the times ascend.
pub(crate) fn changes<'a>(
    list: &str,
    changes: impl IntoIterator<Item = (Option<Time>, Option<&'a When>)>,
) -> Result<(), Problem> {
    let mut before = Time::ZERO;
    for (index, (at, when)) in changes.into_iter().enumerate() {
        let place = format!("{list}.{index}");
        if let Some(at) = time_of(&place, at, when)? {
            in_order(&format!("{place}.at"), at, before, "the last change")?;
            before = at;
        }
    }
    Ok(())
}

/// A time in a list is not before what is over then.
fn in_order(key: &str, at: Time, before: Time, last: &str) -> Result<(), Problem> {
    let is_right = |at: &Time| (before..=LONGEST).contains(at);
    let right = format!("at most {LONGEST}, and not before {last}");
    require(key, at, is_right, right)
}

/// Times in a list ascend: each with its end, from which on the next one may be. `last` is what
/// that end is called.
pub(crate) fn ascending(
    list: &str,
    times: impl IntoIterator<Item = (Time, Time)>,
    last: &str,
) -> Result<(), Problem> {
    let mut before = Time::ZERO;
    for (index, (at, end)) in times.into_iter().enumerate() {
        in_order(&format!("{list}.{index}.at"), at, before, last)?;
        before = end;
    }
    Ok(())
}
