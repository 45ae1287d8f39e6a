//! When a class begins: at once, or its flows one after another.

use std::borrow::Cow;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, positive, problem};
use aqmlab_declare::tagged::{self, Located, shown};
use aqmlab_net::Time;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

/// When a class begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Starts {
    /// At one time of the run. From then on its model says when each of its flows begins.
    Together(Time),
    /// Each flow, session or user at a time of its own, in their order.
    Each(Vec<Time>),
    /// Each flow, session or user so much later than the one before it.
    Every {
        /// When the first one begins.
        first: Time,
        /// The time between two of them.
        every: Time,
    },
}

/// [`Starts::Every`] as a file has it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Every {
    /// When the first flow starts.
    #[serde(default)]
    first: Time,
    /// Time between the starts of two flows.
    every: Time,
}

impl Default for Starts {
    fn default() -> Self {
        Self::Together(Time::ZERO)
    }
}

impl Starts {
    /// The time of the run at which number `index` of the flows begins that its model has beginning
    /// at `time` of its own.
    pub(crate) fn of(&self, index: usize, time: Time) -> Time {
        match self {
            Self::Together(start) => time.saturating_add(*start),
            Self::Each(starts) => starts.get(index).copied().unwrap_or(Time::NEVER),
            Self::Every { first, every } => first.saturating_add(times(*every, index as u64)),
        }
    }

    /// When the class begins.
    pub fn first(&self) -> Time {
        match self {
            Self::Together(start) | Self::Every { first: start, .. } => *start,
            Self::Each(starts) => starts.iter().min().copied().unwrap_or_default(),
        }
    }

    /// When the last of `flows` begins; of a class that begins together, when it begins.
    fn last(&self, flows: u32) -> Time {
        match self {
            Self::Together(start) => *start,
            Self::Each(starts) => starts.iter().max().copied().unwrap_or_default(),
            Self::Every { .. } => self.of(flows.saturating_sub(1) as usize, Time::ZERO),
        }
    }

    /// Refuses what means nothing for a class with `flows` flows, sessions or users in a run that
    /// ends at `end`. `flows` is `None` where their number is not known, or connections arrive.
    pub fn check(&self, flows: Option<u32>, end: Time) -> Result<(), Problem> {
        if let Self::Every { every, .. } = self {
            positive("every", *every)?;
        }
        if let Self::Each(starts) = self
            && Some(starts.len()) != flows.map(|flows| flows as usize)
        {
            let found = format!("found a list of {}", counted(starts.len()));
            let right = match flows {
                Some(flows) => format!("there must be one for each of the {flows} of the class"),
                None => "the number of the class must be given, one time for each".to_owned(),
            };
            return problem("", format!("{found}; {right}"));
        }
        let last = self.last(flows.unwrap_or(1));
        if last < end {
            return Ok(());
        }
        match self {
            Self::Together(_) => problem("", format!("found {last}, but the run ends at {end}")),
            _ => {
                let found = format!("the last one would begin at {last}");
                problem("", format!("{found}, but the run ends at {end}"))
            }
        }
    }
}

fn counted(times: usize) -> String {
    match times {
        1 => "1 time".to_owned(),
        _ => format!("{times} times"),
    }
}

/// `span` so often, or [`Time::NEVER`].
fn times(span: Time, n: u64) -> Time {
    Time::from_nanos(span.as_nanos().saturating_mul(n))
}

impl Serialize for Starts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Together(start) => start.serialize(serializer),
            Self::Each(starts) => starts.serialize(serializer),
            Self::Every { first, every } => Every {
                first: *first,
                every: *every,
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Starts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match value {
            Value::String(_) => tagged::from_value(value).map(Self::Together),
            Value::Array(_) => tagged::from_value(value).map(Self::Each),
            Value::Table(table) => read_every(table),
            other => {
                let found = shown(&other);
                let right =
                    "expected a time such as \"5 s\", a list of times, or { every = \"5 s\" }";
                Err(Located::new(format!("found {found}; {right}")))
            }
        };
        read.map_err(Located::pass)
    }
}

fn read_every(table: Table) -> Result<Starts, Located> {
    let Every { first, every } = tagged::from_value(Value::Table(table))?;
    Ok(Starts::Every { first, every })
}

impl schemars::JsonSchema for Starts {
    fn schema_name() -> Cow<'static, str> {
        "Starts".into()
    }

    #[inline]
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Time>();
        let every = generator.subschema_for::<Every>();
        json_schema!({ "anyOf": [time, { "type": "array", "items": time }, every] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Time = Time::from_secs;

    fn read(text: &str) -> Result<Starts, String> {
        let table: Table = format!("start = {text}").parse().unwrap();
        tagged::from_value(table["start"].clone()).map_err(|error: Located| error.to_string())
    }

    #[test]
    fn each_form_is_read_and_written() {
        let staggered = Starts::Every {
            first: S(1),
            every: S(5),
        };
        for (text, starts) in [
            ("\"5 s\"", Starts::Together(S(5))),
            ("[\"0 s\", \"5 s\"]", Starts::Each(vec![S(0), S(5)])),
            ("{ first = \"1 s\", every = \"5 s\" }", staggered),
        ] {
            assert_eq!(read(text), Ok(starts.clone()), "{text}");
            let written = Value::try_from(&starts).unwrap();
            assert_eq!(tagged::from_value(written), Ok(starts), "{text}");
        }
    }

    #[test]
    fn flows_begin_in_their_order() {
        let own = Time::from_millis(300);
        assert_eq!(Starts::Together(S(2)).of(7, own), Time::from_millis(2300));
        let each = Starts::Each(vec![S(9), S(4)]);
        assert_eq!([0, 1].map(|k| each.of(k, own)), [S(9), S(4)]);
        let every = read("{ every = \"5 s\" }").unwrap();
        assert_eq!([0, 1, 3].map(|k| every.of(k, own)), [S(0), S(5), S(15)]);
        assert_eq!((each.first(), every.first()), (S(4), S(0)));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (text, flows, message) in [
            ("5", None, "found 5; expected a time such as"),
            ("{ after = \"1 s\" }", None, "after: unknown key"),
            ("[\"0 s\", 5]", None, "1: found 5"),
            (
                "[\"0 s\"]",
                Some(2),
                "found a list of 1 time; there must be one for each of the 2",
            ),
            (
                "[\"0 s\", \"1 s\"]",
                None,
                "found a list of 2 times; the number",
            ),
            ("{ every = \"0 s\" }", Some(2), "every: found 0 s"),
            (
                "{ every = \"10 s\" }",
                Some(11),
                "the last one would begin at 100 s, but",
            ),
            ("\"100 s\"", None, "found 100 s, but the run ends at 100 s"),
        ] {
            let checked = read(text).and_then(|starts| {
                let checked = starts.check(flows, S(100));
                checked.map_err(|(field, message)| match field.as_str() {
                    "" => message,
                    _ => format!("{field}: {message}"),
                })
            });
            let error = checked.unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
        let every = read("{ every = \"10 s\" }").unwrap();
        assert_eq!(every.check(Some(10), S(100)), Ok(()));
    }
}
