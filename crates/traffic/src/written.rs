//! An application that writes at a rate, or pauses: what a long transfer has to send and when.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::parameters;
use aqmlab_net::{Rate, Time};

use crate::sizes::ENDLESS;
use crate::when::{When, time_of};

/// A time in which the application writes nothing.
#[parameters]
#[derive(Eq)]
pub struct Pause {
    /// When it begins, from the beginning of the run.
    #[param(unwritten)]
    pub at: Option<Time>,
    /// Instead of `at`: the applications of the class pause when a congestion control enters a
    /// phase.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// How long it lasts.
    #[param(above = Time::ZERO, words = "expected above 0")]
    pub r#for: Time,
}

/// Pauses come in order and do not overlap.
pub(crate) fn ascending(pauses: &[Pause]) -> Result<(), Problem> {
    let mut before = Time::ZERO;
    for (index, pause) in pauses.iter().enumerate() {
        let place = format!("pauses.{index}");
        let Some(found) = time_of(&place, pause.at, pause.when.as_ref())? else {
            continue;
        };
        if found < before {
            let message = format!("found {found}; not before the end of the last pause, {before}");
            return problem(&format!("{place}.at"), message);
        }
        before = found.saturating_add(pause.r#for);
    }
    Ok(())
}

/// An application that writes at a rate writes so often.
const PERIOD: Time = Time::from_millis(10);

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It writes so many bytes; the last ones, if `last`.
    Write { bytes: u64, last: bool },
    /// It lets so much time pass.
    Pause(Time),
    /// It takes back what has not been sent.
    Withdraw,
    /// It has nothing more to do.
    Nothing,
}

/// A response that the application writes little by little.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the response; [`ENDLESS`] if it has no end.
    total: u64,
    /// The rate of the application; none: as fast as the network takes it.
    rate: Option<Rate>,
    /// Begin and end of the pauses that are known.
    pauses: Vec<(Time, Time)>,
    /// Pauses that are over.
    over: usize,
    /// Bytes that have been written so far.
    written: u64,
    /// When it has begun to write at its rate, and how often it has written since.
    began: Option<Time>,
    writes: u64,
    /// What has been written has no end.
    is_open: bool,
}

impl Written {
    /// A response of `total` bytes. One without a rate has no end.
    pub(crate) fn new(total: u64, rate: Option<Rate>, pauses: &[Pause]) -> Self {
        let known = pauses
            .iter()
            .filter_map(|it| Some((it.at?, it.at?.saturating_add(it.r#for))));
        Self {
            total,
            rate,
            pauses: known.collect(),
            over: 0,
            written: 0,
            began: None,
            writes: 0,
            is_open: false,
        }
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) const fn is_endless(&self) -> bool {
        self.total >= ENDLESS
    }

    /// It writes nothing from `now` on for so long. Whether it has to be asked what that means: one
    /// with a rate looks by itself.
    pub(crate) fn pause(&mut self, now: Time, length: Time) -> bool {
        self.pauses
            .insert(self.over, (now, now.saturating_add(length)));
        self.is_open
    }

    /// What the application does at `now`, the time of the run.
    pub(crate) fn next(&mut self, now: Time) -> Due {
        while self.pauses.get(self.over).is_some_and(|it| it.1 <= now) {
            self.over += 1;
        }
        let pause = self.pauses.get(self.over).copied();
        if let Some((_, end)) = pause.filter(|it| it.0 <= now) {
            self.began = None;
            if std::mem::take(&mut self.is_open) {
                return Due::Withdraw;
            }
            return Due::Pause(end - now);
        }
        let until = pause.map_or(Time::NEVER, |it| it.0);
        let Some(rate) = self.rate else {
            return match (self.is_open, pause) {
                (false, _) => {
                    self.is_open = true;
                    Due::Write {
                        bytes: self.total,
                        last: false,
                    }
                }
                (true, Some(_)) => Due::Pause(until - now),
                (true, None) => Due::Nothing,
            };
        };
        let began = *self.began.get_or_insert_with(|| {
            self.writes = 0;
            now
        });
        // At low rates some writes have no byte.
        loop {
            let next = began.saturating_add(PERIOD * self.writes);
            if now < next {
                return Due::Pause(next.min(until) - now);
            }
            let bytes = due(rate, self.writes + 1) - due(rate, self.writes);
            let bytes = bytes.min(self.total - self.written);
            self.writes += 1;
            self.written += bytes;
            if bytes > 0 {
                let last = self.written == self.total;
                return Due::Write { bytes, last };
            }
        }
    }
}

/// Bytes that are written by the end of so many periods.
const fn due(rate: Rate, periods: u64) -> u64 {
    (rate.bps() as u128 * PERIOD.as_nanos() as u128 * periods as u128 / 8_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    fn pause(at: u64, length: u64) -> Pause {
        Pause {
            when: None,
            at: Some(MS(at)),
            r#for: MS(length),
        }
    }

    /// What it writes, and when, in ms; until it has nothing to do or the time is up.
    fn written(mut it: Written, from: u64, until: u64) -> Vec<(u64, u64)> {
        let (mut now, mut found) = (MS(from), Vec::new());
        while now < MS(until) {
            match it.next(now) {
                Due::Write { bytes, last } => {
                    found.push((now.as_nanos() / 1_000_000, bytes));
                    if last {
                        break;
                    }
                }
                Due::Pause(time) => now += time,
                Due::Withdraw => found.push((now.as_nanos() / 1_000_000, 0)),
                Due::Nothing => break,
            }
        }
        found
    }

    #[test]
    fn a_rate_is_exact_over_any_time() {
        let rate = Some(Rate::from_bps(1_000_001));
        let all = written(Written::new(ENDLESS, rate, &[]), 5, 8_005);
        assert_eq!(all[..2], [(5, 1250), (15, 1250)]);
        assert_eq!(all.iter().map(|it| it.1).sum::<u64>(), 1_000_001);
        let slow = written(Written::new(3, Some(Rate::from_bps(8)), &[]), 0, 9_000);
        assert_eq!(slow, [(990, 1), (1_990, 1), (2_990, 1)]);
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let rate = Some(Rate::from_bps(800_000));
        let paused = Written::new(4_000, rate, &[pause(15, 30)]);
        let all = [(0, 1000), (10, 1000), (45, 1000), (55, 1000)];
        assert_eq!(written(paused, 0, 1_000), all);
    }

    #[test]
    fn without_a_rate_a_pause_takes_back_what_is_not_sent() {
        let paused = Written::new(ENDLESS, None, &[pause(20, 30), pause(70, 10)]);
        let all = [(4, ENDLESS), (20, 0), (50, ENDLESS), (70, 0), (80, ENDLESS)];
        assert_eq!(written(paused.clone(), 4, 1_000), all);
        // A transfer that opens in a pause waits for its end.
        assert_eq!(written(paused, 30, 60), [(50, ENDLESS)]);
    }

    #[test]
    fn a_pause_may_begin_at_any_moment() {
        let mut endless = Written::new(ENDLESS, None, &[pause(70, 10)]);
        assert!(matches!(endless.next(MS(4)), Due::Write { .. }));
        assert!(endless.pause(MS(20), MS(30)));
        let all = [(20, 0), (50, ENDLESS), (70, 0), (80, ENDLESS)];
        assert_eq!(written(endless, 20, 1_000), all);
        let mut limited = Written::new(4_000, Some(Rate::from_bps(800_000)), &[]);
        assert!(matches!(limited.next(MS(0)), Due::Write { .. }));
        assert!(!limited.pause(MS(5), MS(30)));
        assert_eq!(
            written(limited, 10, 1_000),
            [(35, 1000), (45, 1000), (55, 1000)]
        );
    }

    #[test]
    fn pauses_that_overlap_are_refused() {
        ascending(&[pause(10, 5), pause(15, 1)]).unwrap();
        let (field, message) = ascending(&[pause(10, 5), pause(14, 1)]).unwrap_err();
        assert_eq!(field, "pauses.1.at");
        assert!(message.contains("14 ms"), "{message}");
    }
}
