//! Which sender has which rule: a stack is refused a rule that its sender lacks.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::tagged::shown;

use super::Profile;
use super::written::value;

/// The name, whether another profile has another value, and the value, of some rules.
macro_rules! rules {
    ($own:ident, $named:ident: $($key:ident)+) => {
        [$((stringify!($key), $own.$key != $named.$key, value(&$own.$key))),+]
    };
}

impl Profile {
    /// Refuses a rule of the other sender. What the named profile has is left alone, since another
    /// `recovery` turns it off, and so is what is turned off.
    pub(super) fn check_sender(&self) -> Result<(), Problem> {
        let Some(named) = Self::shipped(&self.profile) else {
            return Ok(());
        };
        if named == self {
            return Ok(());
        }
        if self.keeps_log() {
            let wrong = "the sender of recovery = \"rack-tlp\" does not have; expected another \
                         recovery with it";
            let classic = rules!(self, named: limited_transmit fast_retransmit_guard sack_at_timeout
                newreno_variant newreno_exit ssthresh_at_repeated_timeout random_send_delay
                delayed_send_fills_window lone_fast_retransmit sack_in_recovery_only);
            self.refuse_stated(classic, wrong)
        } else {
            let wrong = "needs a record of each segment; expected recovery = \"rack-tlp\" with it";
            let rack = rules!(self, named: minshall tail_loss_probe frto undo pacing pacing_burst
                slow_start_exit window_counts);
            self.refuse_stated(rack, wrong)
        }
    }

    fn refuse_stated<const N: usize>(
        &self,
        rules: [(&str, bool, toml::Value); N],
        wrong: &str,
    ) -> Result<(), Problem> {
        let off = self.defaults_to_write();
        for (key, differs, value) in rules {
            if differs && !off.contains_key(key) {
                return problem(key, format!("found {}, which {wrong}", shown(&value)));
            }
        }
        Ok(())
    }
}
