//! The test whether a filtered flow responds to what it loses: the rate of a TCP sender falls as
//! the square root of its drop rate rises.

use aqmlab_net::Time;

use super::Params;

/// Rise of the drop rate beyond which two periods are not compared (the authors' scripts): the
/// smaller rate is too near to nothing to be known.
pub(super) const MOST_RISE: f64 = 10.0;

/// The test.
#[derive(Clone, Debug)]
pub(super) struct Test {
    most_periods: usize,
    rise: f64,
    least_pairs: u32,
    majority: f64,
    /// By what the step of a flow that does not respond is multiplied.
    pub(super) step: f64,
}

/// What a flow sent, and what became of it, while its filter probability stood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// Its packets per second, dropped ones too.
    pub(super) rate: f64,
    /// The share of them that the filter or RED signalled to, or that found no room.
    pub(super) drop_rate: f64,
}

/// What is known of a flow's response.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    arrivals: u32,
    losses: u32,
    /// The last periods, the oldest first.
    periods: Vec<Period>,
    /// Whether it failed the test, and has not passed it since.
    pub(super) is_missing: bool,
}

impl Response {
    #[inline]
    pub(super) const fn arrival(&mut self) {
        self.arrivals = self.arrivals.saturating_add(1);
    }

    #[inline]
    pub(super) const fn loss(&mut self) {
        self.losses = self.losses.saturating_add(1);
    }

    #[cfg(test)]
    pub(super) const fn counts(&self) -> (u32, u32) {
        (self.arrivals, self.losses)
    }

    /// A period of this length ends; tests the flow.
    pub(super) fn end_period(&mut self, length: Time, test: &Test) {
        let arrivals = f64::from(self.arrivals);
        if self.periods.len() == test.most_periods {
            self.periods.remove(0);
        }
        let room = test.most_periods - self.periods.len();
        self.periods.reserve_exact(room);
        if self.arrivals > 0 && length > Time::ZERO {
            self.periods.push(Period {
                rate: arrivals / length.as_secs_f64(),
                drop_rate: f64::from(self.losses) / arrivals,
            });
        }
        (self.arrivals, self.losses) = (0, 0);
        if let Some(decision) = test.fails(&self.periods) {
            self.is_missing = decision;
        }
    }
}

impl Test {
    /// The test, if it is on.
    pub(super) fn new(params: &Params) -> Option<Self> {
        params.unresponsive_test.then_some(Self {
            most_periods: params.test_periods as usize,
            rise: params.test_rise,
            least_pairs: params.test_pairs,
            majority: params.test_majority,
            step: params.unresponsive_step,
        })
    }

    /// Whether a flow with these periods does not respond. It does not if, of the pairs in which
    /// its drop rate rose, enough show too small a fall of its rate and few a sufficient one; it
    /// does if most show that; else nothing new is known.
    pub(super) fn fails(&self, periods: &[Period]) -> Option<bool> {
        let (mut without, mut with) = (0, 0);
        for (place, later) in periods.iter().enumerate() {
            for earlier in &periods[..place] {
                match self.responds(earlier, later) {
                    Some(false) => without += 1,
                    Some(true) => with += 1,
                    None => {}
                }
            }
        }
        let enough = without >= self.least_pairs;
        if enough && f64::from(without) >= self.majority * f64::from(with) {
            Some(true)
        } else if with > without {
            Some(false)
        } else {
            None
        }
    }

    /// Whether the rate fell by the square root of the rise of the drop rate, or more; nothing is
    /// known if the drop rate did not rise enough, or too much.
    fn responds(&self, earlier: &Period, later: &Period) -> Option<bool> {
        let rise = later.drop_rate / earlier.drop_rate;
        // Not a number or infinite where nothing was lost.
        (rise >= self.rise && rise <= MOST_RISE)
            .then(|| later.rate * libm::sqrt(rise) <= earlier.rate)
    }
}
