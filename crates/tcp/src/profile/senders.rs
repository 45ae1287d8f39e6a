//! Which sender has which rule: a stack is refused a rule that its sender lacks.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::is_default;
use aqmlab_declare::tagged::shown;
use serde::Serialize;
use toml::Value;

use super::Profile;

/// Refuses the first of some rules that is not the one of the named profile. A rule behind the
/// semicolon can be turned off.
macro_rules! refuse {
    ($own:ident, $named:ident, $wrong:expr, $($key:ident)*; $($switch:ident)*) => {
        $(if $own.$key != $named.$key {
            return refused(stringify!($key), &$own.$key, $wrong);
        })*
        $(if $own.$switch != $named.$switch && !is_default(&$own.$switch) {
            return refused(stringify!($switch), &$own.$switch, $wrong);
        })*
    };
}

impl Profile {
    /// Refuses a rule of the other sender. What the named profile has is left alone, since another
    /// `recovery` turns it off.
    pub(super) fn check_sender(&self) -> Result<(), Problem> {
        let Some(named) = Self::shipped(&self.profile) else {
            return Ok(());
        };
        if self.keeps_log() {
            let wrong = "the sender of recovery = \"rack-tlp\" does not have; expected another \
                         recovery with it";
            refuse!(self, named, wrong,
                limited_transmit fast_retransmit_guard sack_at_timeout newreno_variant newreno_exit
                ssthresh_at_repeated_timeout random_send_delay;
                delayed_send_fills_window lone_fast_retransmit sack_in_recovery_only);
        } else {
            let wrong = "needs a record of each segment; expected recovery = \"rack-tlp\" with it";
            refuse!(self, named, wrong, ;
                minshall tail_loss_probe frto undo pacing pacing_burst slow_start_exit window_counts
                rack_rules);
        }
        Ok(())
    }
}

#[cold]
fn refused(key: &str, found: impl Serialize, wrong: &str) -> Result<(), Problem> {
    let found = Value::try_from(found).expect("a word, a flag, a time or a table");
    problem(key, format!("found {}, which {wrong}", shown(&found)))
}
