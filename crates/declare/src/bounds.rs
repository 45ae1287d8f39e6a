//! The bounds of a parameter, and the sentence that refuses what lies outside.

use std::fmt::Write;

use aqmlab_net::{Bytes, QueueSize, Rate, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::check::{Problem, problem};
use crate::tagged;

/// What a value must exceed, reach, stay below, or not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds<T> {
    /// It must be more.
    pub above: Option<T>,
    /// It must be as much.
    pub least: Option<T>,
    /// It must be less.
    pub below: Option<T>,
    /// It must not be more.
    pub most: Option<T>,
    /// What that asks for, where [`Measure::words`] do not fit.
    pub words: Option<&'static str>,
}

impl<T> Bounds<T> {
    /// Everything is right.
    pub const NONE: Self = Self {
        above: None,
        least: None,
        below: None,
        most: None,
        words: None,
    };
}

/// A value that bounds can hold.
pub trait Measure: Copy + PartialOrd + Serialize {
    /// The value in a message.
    fn shown(self) -> String;

    /// What lies within the bounds, in words that follow "it must be".
    fn words(bounds: &Bounds<Self>) -> String {
        bounds.in_words()
    }

    /// The neighbours of a value, below and above it.
    fn neighbours(self) -> [Option<Self>; 2];
}

impl<T: Measure> Bounds<T> {
    /// Refuses a value outside. One copy serves all parameters of a type, which are many.
    #[inline(never)]
    pub fn check(&self, key: &str, value: T) -> Result<(), Problem> {
        match self.holds(value) {
            true => Ok(()),
            false => problem(key, self.sentence(value)),
        }
    }

    /// No number that is none lies in any bounds.
    fn holds(&self, value: T) -> bool {
        self.above.is_none_or(|low| value > low)
            && self.least.is_none_or(|low| value >= low)
            && self.below.is_none_or(|high| value < high)
            && self.most.is_none_or(|high| value <= high)
    }

    fn sentence(&self, value: T) -> String {
        let found = value.shown();
        match self.words {
            Some(words) => format!("found {found}; {words}"),
            None => format!("found {found}; it must be {}", T::words(self)),
        }
    }

    fn in_words(&self) -> String {
        let bounds = [
            ("above", self.above),
            ("at least", self.least),
            ("below", self.below),
            ("at most", self.most),
        ];
        let stated = bounds.into_iter().filter_map(|(words, bound)| {
            let bound = bound?.shown();
            Some(format!("{words} {bound}"))
        });
        stated.collect::<Vec<_>>().join(" and ")
    }

    /// Appends the values just outside and just inside of each bound.
    pub fn outside(&self, key: &'static str, refused: &mut Vec<Refused>) {
        // Which neighbour lies outside, and whether the bound itself does.
        let edges = [
            (self.above, 0, true),
            (self.least, 0, false),
            (self.below, 1, true),
            (self.most, 1, false),
        ];
        for (bound, out, excludes) in edges {
            let Some(bound) = bound else { continue };
            let [outside, inside] = match excludes {
                true => [Some(bound), bound.neighbours()[1 - out]],
                false => [bound.neighbours()[out], Some(bound)],
            };
            refused.extend(outside.map(|outside| Refused {
                key,
                outside: as_toml(outside),
                inside: inside.map(as_toml),
                message: self.sentence(outside),
            }));
        }
    }
}

/// A value that must be refused, for tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The parameter.
    pub key: &'static str,
    /// A value that it must not have.
    pub outside: Value,
    /// The nearest value that it may have, if there is one.
    pub inside: Option<Value>,
    /// What is said of the value outside.
    pub message: String,
}

fn as_toml(value: impl Serialize) -> Value {
    Value::try_from(value).expect("a parameter can be written")
}

/// A type whose smallest and largest values a check of its own is likely to refuse.
pub trait Extremes: Copy + Serialize + 'static {
    /// These values.
    const EXTREMES: &'static [Self];
}

/// Appends the extremes that this check refuses.
pub fn extremes<T: Extremes>(
    key: &'static str,
    check: fn(&str, T) -> Result<(), Problem>,
    refused: &mut Vec<Refused>,
) {
    for &outside in T::EXTREMES {
        refused.extend(check(key, outside).err().map(|(_, message)| Refused {
            key,
            outside: as_toml(outside),
            inside: None,
            message,
        }));
    }
}

/// For tests: refuses every value outside of a bound, and lists it with its message, a line each.
/// `cases` are tables of parameters that are right; `refused` and `check` are those of the kinds.
///
/// # Panics
///
/// If a value outside is accepted, or refused for another reason, or one inside is refused for
/// being outside.
pub fn refusals<K: DeserializeOwned>(
    cases: &[&str],
    refused: impl Fn(&K) -> Vec<Refused>,
    check: impl Fn(&K) -> Result<(), Problem>,
) -> String {
    let read = |table: &Table| -> K {
        tagged::from_value(Value::Table(table.clone()))
            .unwrap_or_else(|error| panic!("{table}: {error}"))
    };
    let (mut lines, mut seen) = (String::new(), Vec::new());
    for case in cases {
        let table: Table = case.parse().expect("a case is TOML");
        let kind = table["kind"].to_string();
        if seen.contains(&kind) {
            continue;
        }
        let right = read(&table);
        check(&right).unwrap_or_else(|problem| panic!("{table}: {problem:?}"));
        for Refused {
            key,
            outside,
            inside,
            message,
        } in refused(&right)
        {
            let with = |value: &Value| {
                let mut table = table.clone();
                table.insert(key.to_owned(), value.clone());
                check(&read(&table))
            };
            let expected = (key.to_owned(), message);
            assert_eq!(
                with(&outside),
                Err(expected.clone()),
                "{kind} {key} = {outside}"
            );
            if let Some(Err(problem)) = inside.as_ref().map(with) {
                let right = |message: &str| message.split_once("; ").map(|it| it.1.to_owned());
                assert_ne!(right(&problem.1), right(&expected.1), "{kind}: {problem:?}");
            }
            let name = kind.trim_matches('"');
            writeln!(lines, "{name}.{key}: {}", expected.1).expect("text takes text");
        }
        seen.push(kind);
    }
    lines
}

impl Measure for f64 {
    fn shown(self) -> String {
        // A number without rows of zeros.
        match self == 0.0 || (1e-6..1e15).contains(&self.abs()) {
            true => self.to_string(),
            false => format!("{self:e}"),
        }
    }

    fn words(bounds: &Bounds<Self>) -> String {
        match (bounds.above, bounds.below, bounds.most) {
            (Some(low), None, None) => format!("a number above {}", low.shown()),
            _ => bounds.in_words(),
        }
    }

    fn neighbours(self) -> [Option<Self>; 2] {
        [Some(self.next_down()), Some(self.next_up())]
    }
}

/// Whole numbers with or without a unit.
macro_rules! whole {
    ($($name:ident)*) => {$(
        impl Measure for $name {
            fn shown(self) -> String {
                self.to_string()
            }

            fn words(bounds: &Bounds<Self>) -> String {
                match (bounds.least, bounds.most) {
                    (low, Some(high)) => format!("from {} to {high}", low.unwrap_or($name::MIN)),
                    _ => bounds.in_words(),
                }
            }

            fn neighbours(self) -> [Option<Self>; 2] {
                [self.checked_sub(1), self.checked_add(1)]
            }
        }
    )*};
}

whole!(u8 u16 u32 u64 i32);

impl Measure for Time {
    fn shown(self) -> String {
        self.to_string()
    }

    fn words(bounds: &Bounds<Self>) -> String {
        match bounds {
            Bounds {
                above: Some(Self::ZERO),
                below: None,
                most: None,
                ..
            } => "longer than 0 s".to_owned(),
            _ => bounds.in_words(),
        }
    }

    fn neighbours(self) -> [Option<Self>; 2] {
        self.as_nanos()
            .neighbours()
            .map(|ns| ns.map(Self::from_nanos))
    }
}

impl Extremes for Time {
    const EXTREMES: &'static [Self] = &[Self::ZERO, Self::from_secs(1_000_000_000)];
}

impl Measure for Rate {
    fn shown(self) -> String {
        self.to_string()
    }

    fn neighbours(self) -> [Option<Self>; 2] {
        self.bps().neighbours().map(|bps| bps.map(Self::from_bps))
    }
}

impl Measure for Bytes {
    fn shown(self) -> String {
        match self {
            Self(1) => "1 byte".to_owned(),
            bytes => bytes.to_string(),
        }
    }

    fn neighbours(self) -> [Option<Self>; 2] {
        self.0.neighbours().map(|bytes| bytes.map(Self))
    }
}

impl Extremes for Rate {
    const EXTREMES: &'static [Self] = &[Self::from_bps(0), Self::from_mbps(1_000_000_000)];
}

impl Extremes for f64 {
    const EXTREMES: &'static [Self] = &[-1.0, 0.0, 1.0, 1e9];
}

impl Extremes for u32 {
    const EXTREMES: &'static [Self] = &[0, Self::MAX];
}

impl Extremes for Bytes {
    const EXTREMES: &'static [Self] = &[Self(0), Self(1 << 40)];
}

impl Extremes for QueueSize {
    const EXTREMES: &'static [Self] = &[Self::Packets(0.0), Self::Bytes(0)];
}
