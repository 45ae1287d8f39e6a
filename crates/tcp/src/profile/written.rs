//! A profile as a scenario writes it: keys that have their default are left out.

use serde::{Serialize, Serializer};
use toml::{Table, Value};

use super::{
    EcnEcho, Ect, Frto, Pacing, PacingBurst, Profile, RackRules, SlowStartExit, TailLossProbe,
    WindowCounts,
};

/// As it is written.
fn value(value: impl Serialize) -> Value {
    Value::try_from(value).expect("a word, a flag or a table")
}

impl Profile {
    /// Keys that are not written where they have their default, but must be, because the profile that
    /// is named, or the congestion control, gives another value.
    fn defaults_to_write(&self) -> Table {
        let mut defaults = Table::new();
        let Some(named) = Self::shipped(&self.profile) else {
            return defaults;
        };
        let mut compare = |key: &str, own: Value, given: Value, default: Value| {
            if own != given && own == default {
                defaults.insert(key.to_owned(), own);
            }
        };
        macro_rules! compare {
            ($($key:ident: $default:expr),+) => {
                $(compare(
                    stringify!($key),
                    value(self.$key),
                    value(named.$key),
                    value($default),
                );)+
            };
        }
        compare!(
            delayed_send_fills_window: false,
            idle_since_ack: false,
            minshall: false,
            strict_nagle: false,
            lone_fast_retransmit: false,
            sack_in_recovery_only: false,
            closes_with_write: false,
            tail_loss_probe: TailLossProbe::default(),
            frto: Frto::default(),
            undo: false,
            dsack: false,
            pacing: Pacing::default(),
            pacing_burst: PacingBurst::default(),
            slow_start_exit: SlowStartExit::default(),
            accecn_option: true,
            rack_rules: RackRules::default(),
            window_counts: WindowCounts::default()
        );
        let control = &self.congestion_control;
        let (echo, ect) = (value(self.ecn_echo), value(self.ect));
        compare(
            "ecn_echo",
            echo,
            value(control.echo()),
            value(EcnEcho::default()),
        );
        compare("ect", ect, value(control.ect()), value(Ect::default()));
        defaults
    }
}

/// What the derive writes of a profile: without the keys that have their default.
struct Derived<'a>(&'a Profile);

impl Serialize for Derived<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Profile::serialize(self.0, serializer)
    }
}

/// The same, and keys with their default where reading would take another value.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    derived: Derived<'a>,
    #[serde(flatten)]
    defaults: Table,
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let defaults = self.defaults_to_write();
        if defaults.is_empty() {
            return Self::serialize(self, serializer);
        }
        let derived = Derived(self);
        Serialize::serialize(&Written { derived, defaults }, serializer)
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_declare::tagged;

    use super::*;

    #[test]
    fn a_default_survives_writing_where_the_named_profile_has_another_value() {
        for name in Profile::NAMES {
            let profile = Profile {
                delayed_send_fills_window: false,
                idle_since_ack: false,
                minshall: false,
                strict_nagle: false,
                lone_fast_retransmit: false,
                sack_in_recovery_only: false,
                closes_with_write: false,
                tail_loss_probe: TailLossProbe::Off,
                frto: Frto::Off,
                undo: false,
                dsack: false,
                pacing: Pacing::default(),
                pacing_burst: PacingBurst::default(),
                slow_start_exit: SlowStartExit::default(),
                ecn_echo: EcnEcho::default(),
                accecn_option: true,
                rack_rules: RackRules::default(),
                window_counts: WindowCounts::default(),
                ect: Ect::default(),
                ..Profile::named(name).unwrap()
            };
            let written = toml::to_string(&profile).unwrap();
            let table: Value = Value::Table(written.parse().unwrap());
            assert_eq!(tagged::from_value(table), Ok(profile), "{name}");
        }
        let linux = Profile {
            tail_loss_probe: TailLossProbe::Off,
            ..Profile::named("linux").unwrap()
        };
        assert_eq!(linux.defaults_to_write().len(), 1);
    }

    /// A stack of that control, with these keys beside it.
    fn with_control(control: &str, keys: &str) -> Profile {
        let text =
            format!("profile = \"linux\"\ncongestion_control = \"{control}\"\necn = true\n{keys}");
        let table: Value = Value::Table(text.parse().unwrap());
        tagged::from_value(table).unwrap()
    }

    #[test]
    fn what_is_not_stated_of_marks_is_what_the_congestion_control_needs() {
        for (control, echo, ect) in [
            ("cubic", EcnEcho::UntilCwr, Ect::Ect0),
            ("dctcp", EcnEcho::EachChange, Ect::Ect0),
            ("prague", EcnEcho::Accurate, Ect::Ect1),
        ] {
            let stack = with_control(control, "");
            assert_eq!((stack.ecn_echo, stack.ect), (echo, ect), "{control}");
            for keys in ["", "ecn_echo = \"until-cwr\"\nect = \"ect0\""] {
                let stack = with_control(control, keys);
                let written = toml::to_string(&stack).unwrap();
                let table: Value = Value::Table(written.parse().unwrap());
                assert_eq!(tagged::from_value(table), Ok(stack), "{control} {keys}");
            }
            let stated = with_control(control, "ecn_echo = \"until-cwr\"\nect = \"ect0\"");
            assert_eq!(stated.ecn_echo, EcnEcho::UntilCwr, "{control}");
            assert_eq!(stated.ect, Ect::Ect0, "{control}");
        }
    }
}
