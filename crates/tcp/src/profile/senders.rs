//! Which sender has which rule: a stack is refused a rule that its sender lacks.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::tagged::shown;
use toml::Table;

use super::Profile;

/// Rules of the sender that counts duplicate ACKs or keeps a scoreboard.
const CLASSIC: [&str; 10] = [
    "limited_transmit",
    "fast_retransmit_guard",
    "sack_at_timeout",
    "newreno_variant",
    "newreno_exit",
    "ssthresh_at_repeated_timeout",
    "random_send_delay",
    "delayed_send_fills_window",
    "lone_fast_retransmit",
    "sack_in_recovery_only",
];

/// Rules of the sender that keeps a log of each segment.
const RACK: [&str; 8] = [
    "minshall",
    "tail_loss_probe",
    "frto",
    "undo",
    "pacing",
    "pacing_burst",
    "slow_start_exit",
    "window_counts",
];

impl Profile {
    /// Refuses a rule of the other sender. What the named profile has is left alone, since another
    /// `recovery` turns it off, and so is what is turned off.
    pub(super) fn check_sender(&self) -> Result<(), Problem> {
        let (others, wrong) = if self.keeps_log() {
            let wrong = "the sender of recovery = \"rack-tlp\" does not have; expected another \
                         recovery with it";
            (&CLASSIC[..], wrong)
        } else {
            let wrong = "needs a record of each segment; expected recovery = \"rack-tlp\" with it";
            (&RACK[..], wrong)
        };
        let named = Self::shipped(&self.profile);
        if named == Some(self) {
            return Ok(());
        }
        let keys = |profile| Table::try_from(profile).expect("a profile is a table");
        let (own, named) = (keys(self), named.map(keys).unwrap_or_default());
        let off = self.defaults_to_write();
        let is_stated = |key: &&&str| {
            let value = own.get(**key);
            value.is_some() && value != named.get(**key) && !off.contains_key(**key)
        };
        others.iter().find(is_stated).map_or(Ok(()), |key| {
            problem(key, format!("found {}, which {wrong}", shown(&own[*key])))
        })
    }
}
