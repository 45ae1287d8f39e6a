//! A moment that a phase of a congestion control decides.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::parameters;
use aqmlab_net::Time;

/// A moment of a run that the congestion control of a bulk transfer decides: it enters a phase.
#[parameters]
#[derive(Eq)]
pub struct When {
    /// Number of a bulk transfer. The transfer that starts first has the number 1.
    #[param(least = 1)]
    pub flow: u32,
    /// Phase of the transfer's congestion control that causes the change.
    pub phase: String,
    /// Earliest time of the entry into the phase, counted from the start of the run.
    #[param(default, most = "720 h", unwritten)]
    pub after: Time,
    /// Time between the entry into the phase and the change.
    #[param(default, most = "720 h", unwritten)]
    pub wait: Time,
    /// If true, every entry into the phase at or after the time `after` causes the change. If
    /// false, only the first of these entries causes the change.
    #[param(default, unwritten)]
    pub every: bool,
}

/// An item of the list `list` happens at a time or at a phase: either is given. The time, if it is that.
pub fn time_of(list: &str, at: Option<Time>, when: Option<&When>) -> Result<Option<Time>, Problem> {
    let wrong = |key: &str, message: &str| {
        let refused = problem(&format!("{list}.{key}"), message);
        refused.map(|()| None)
    };
    match (at, when) {
        (None, None) => wrong(
            "at",
            "missing; expected a time like \"50 ms\", or a phase with when = { flow = 1, phase = \"...\" }",
        ),
        (Some(_), Some(_)) => wrong("when", "found one beside at; give either"),
        (at, _) => Ok(at),
    }
}
