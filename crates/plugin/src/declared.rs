//! What a plug-in declares of itself.

use aqmlab_declare::tagged::{Located, shown};
use aqmlab_net::{Bytes, QueueSize, Rate, Time};

use crate::abi::{AqmlabAck, AqmlabEvent};
use crate::instance::{Callbacks, Maker};

/// A parameter or a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name in scenarios and records.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What may stand there.
    pub form: Form,
    /// What it is for.
    pub role: Role,
}

/// What a field is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// A parameter without a default.
    Required,
    /// A parameter with one.
    Optional(Value),
    /// Something that records show.
    Variable,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// 0 or 1.
    Boolean,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bits per second.
    Rate,
    /// Packets, maybe not whole ones.
    Packets,
}

/// A value of a field, eight bytes in every language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of numbers and packets.
    Number(f64),
    /// Of all others.
    Whole(i64),
}

impl Value {
    /// As a number, for records.
    pub const fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Whole(whole) => whole as f64,
        }
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; 8] {
        match self {
            Self::Number(number) => number.to_ne_bytes(),
            Self::Whole(whole) => whole.to_ne_bytes(),
        }
    }
}

impl Form {
    /// All of them, in the order of the ABI's constants.
    pub const ALL: [Self; 7] = [
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Time,
        Self::Bytes,
        Self::Rate,
        Self::Packets,
    ];

    /// Whether values are doubles.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Packets)
    }

    /// The value of a number that a plug-in declares.
    pub fn value(self, number: f64) -> Value {
        match self.is_number() {
            true => Value::Number(number),
            false => Value::Whole(number as i64),
        }
    }

    /// The value of these bytes.
    pub const fn from_bytes(self, bytes: [u8; 8]) -> Value {
        match self.is_number() {
            true => Value::Number(f64::from_ne_bytes(bytes)),
            false => Value::Whole(i64::from_ne_bytes(bytes)),
        }
    }

    /// In words, as `explain` has it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Integer => "whole number",
            Self::Boolean => "true or false",
            Self::Time => "text such as \"50 ms\"",
            Self::Bytes => "text such as \"1500 bytes\"",
            Self::Rate => "text such as \"10 Mbit/s\"",
            Self::Packets => "text such as \"5 packets\"",
        }
    }

    /// Reads a text, such as the default of a parameter.
    ///
    /// # Errors
    ///
    /// What was found, and what would be right.
    pub fn read_text(self, text: &str) -> Result<Value, String> {
        let read = self.read(&toml::Value::from(text));
        read.map_err(|error| error.message())
    }

    /// Reads what a scenario has.
    pub(crate) fn read(self, value: &toml::Value) -> Result<Value, Located> {
        use toml::Value as Toml;
        let wrong = || Located::new(format!("found {}; expected {}", shown(value), self.words()));
        let read = match (self, value) {
            (Self::Number | Self::Packets, Toml::Float(number)) if number.is_finite() => {
                Value::Number(*number)
            }
            (Self::Number | Self::Packets, Toml::Integer(whole)) => Value::Number(*whole as f64),
            (Self::Integer | Self::Bytes, Toml::Integer(whole)) => Value::Whole(*whole),
            (Self::Boolean, Toml::Boolean(is_true)) => Value::Whole(i64::from(*is_true)),
            (_, Toml::String(text)) => {
                let whole = |number: Option<u64>| {
                    number
                        .and_then(|number| i64::try_from(number).ok())
                        .map(Value::Whole)
                };
                let parsed = match self {
                    Self::Time => whole(text.parse().ok().map(Time::as_nanos)),
                    Self::Bytes => whole(text.parse().ok().map(|bytes: Bytes| bytes.0)),
                    Self::Rate => whole(text.parse().ok().map(|rate: Rate| rate.bps())),
                    Self::Packets => match text.parse() {
                        Ok(QueueSize::Packets(packets)) => Some(Value::Number(packets)),
                        _ => None,
                    },
                    Self::Number | Self::Integer | Self::Boolean => None,
                };
                parsed.ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        };
        match (self, read) {
            (Self::Bytes, Value::Whole(whole)) if whole < 0 => Err(wrong()),
            (_, read) => Ok(read),
        }
    }

    /// As a scenario has it.
    pub fn toml(self, value: Value) -> toml::Value {
        use toml::Value as Toml;
        match (self, value) {
            (Self::Packets, Value::Number(number)) => {
                Toml::String(QueueSize::Packets(number).to_string())
            }
            (_, Value::Number(number)) => Toml::Float(number),
            (Self::Boolean, Value::Whole(whole)) => Toml::Boolean(whole != 0),
            (Self::Time, Value::Whole(whole)) => text(&Time::from_nanos(whole as u64)),
            (Self::Bytes, Value::Whole(whole)) => text(&Bytes(whole as u64)),
            (Self::Rate, Value::Whole(whole)) => text(&Rate::from_bps(whole as u64)),
            (_, Value::Whole(whole)) => Toml::Integer(whole),
        }
    }
}

/// A quantity as it writes itself into a file: exactly.
fn text<T: serde::Serialize>(quantity: &T) -> toml::Value {
    toml::Value::try_from(quantity).expect("a quantity is a text")
}

/// How instances are made, by kind.
#[derive(Debug)]
pub enum Makers {
    /// Of a queue discipline.
    Discipline(Box<dyn Maker<AqmlabEvent>>),
    /// Of a congestion control.
    Control(Box<dyn Maker<AqmlabAck>>),
}

/// An algorithm from outside. Plug-ins live as long as the process.
#[derive(Debug)]
pub struct Plugin {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// SHA-256 of its source, in hexadecimal.
    pub sha256: String,
    /// Whether its callbacks are run by an interpreter.
    pub is_interpreted: bool,
    /// Its parameters and variables.
    pub fields: Vec<Field>,
    /// The callbacks that it has.
    pub callbacks: Callbacks,
    /// How its instances are made.
    pub makers: Makers,
    pub(crate) parameter_names: Vec<&'static str>,
    pub(crate) variable_names: Vec<&'static str>,
}

impl Plugin {
    /// A plug-in, from all that it declares.
    pub fn new(
        (name, purpose): (&'static str, &'static str),
        sha256: String,
        fields: Vec<Field>,
        callbacks: Callbacks,
        makers: Makers,
    ) -> Self {
        let names = |is_parameter| {
            let fields = fields
                .iter()
                .filter(move |field| field.is_parameter() == is_parameter);
            fields.map(|field| field.name).collect()
        };
        Self {
            parameter_names: names(true),
            variable_names: names(false),
            name,
            purpose,
            sha256,
            is_interpreted: false,
            fields,
            callbacks,
            makers,
        }
    }

    /// Its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.is_parameter())
    }

    /// The names of its parameters.
    pub fn parameter_names(&self) -> &[&'static str] {
        &self.parameter_names
    }

    /// The names of its variables.
    pub fn variable_names(&self) -> &[&'static str] {
        &self.variable_names
    }
}

impl Field {
    /// Whether scenarios set it.
    pub const fn is_parameter(&self) -> bool {
        !matches!(self.role, Role::Variable)
    }
}
