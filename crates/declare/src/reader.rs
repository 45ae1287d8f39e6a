//! The deserializer that keeps the path.

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use toml::{Table, Value};

use crate::located::{Located, shown, unexpected};

/// Reads a value into a type.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Located> {
    T::deserialize(Reader(value))
}

/// Reads a table from any deserializer: the first step of a type that arranges a table before it
/// reads it with [`from_value`].
pub fn table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Table(table) => Ok(table),
        other => Err(Located::invalid_type(unexpected(&other), &"a table").pass()),
    }
}

/// A deserializer over a value that adds each key to the errors from below it.
#[derive(Debug)]
pub struct Reader(pub Value);

impl<'de> Deserializer<'de> for Reader {
    type Error = Located;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(value) => visitor.visit_i64(value),
            Value::Float(value) if value.is_finite() => visitor.visit_f64(value),
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::Array(items) => read_list(items, visitor),
            Value::Table(table) => visitor.visit_map(Entries::new(table)),
            other => Err(refused(&other, &visitor)),
        }
    }

    // What follows would also be right if it were forwarded to `deserialize_any`. But then every
    // type could be read from every form of value: much code, for errors only.

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Located> {
        match self.0 {
            Value::Table(table) => read_fields(table, fields, visitor),
            other => Err(refused(&other, &visitor)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        match self.0 {
            Value::Table(table) => visitor.visit_map(Entries::new(table)),
            other => Err(refused(&other, &visitor)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        match self.0 {
            Value::Array(items) => read_list(items, visitor),
            other => Err(refused(&other, &visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        match self.0 {
            Value::Boolean(value) => visitor.visit_bool(value),
            other => Err(refused(&other, &visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            other => Err(refused(&other, &visitor)),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        read_number(&self.0, visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        read_number(&self.0, visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        read_number(&self.0, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Located> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Located> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(word.into_deserializer()),
            other => {
                let found = shown(&other);
                Err(Located::new(format!(
                    "found {found}; expected one of the words {}",
                    variants.join(", ")
                )))
            }
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char str bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

/// What is wrong with a value that a type cannot be read from.
#[cold]
fn refused(found: &Value, expected: &dyn Expected) -> Located {
    match found {
        Value::Float(value) if !value.is_finite() => {
            Located::new(format!("found {value}; expected a finite number"))
        }
        Value::Datetime(date) => Located::new(format!(
            "found the date {date}; a scenario holds no dates (text needs quotation marks)"
        )),
        other => Located::invalid_type(unexpected(other), expected),
    }
}

fn read_number<'de, V: Visitor<'de>>(value: &Value, visitor: V) -> Result<V::Value, Located> {
    match value {
        Value::Integer(value) => visitor.visit_i64(*value),
        Value::Float(value) if value.is_finite() => visitor.visit_f64(*value),
        other => Err(refused(other, &visitor)),
    }
}

fn read_list<'de, V: Visitor<'de>>(items: Vec<Value>, visitor: V) -> Result<V::Value, Located> {
    let length = items.len();
    let mut items = Items(items.into_iter().enumerate());
    let list = visitor.visit_seq(&mut items)?;
    match items.0.len() {
        0 => Ok(list),
        left => Err(Located::new(format!(
            "found {length} values; expected {}",
            length - left
        ))),
    }
}

struct Items(std::iter::Enumerate<std::vec::IntoIter<Value>>);

impl<'de> SeqAccess<'de> for &mut Items {
    type Error = Located;

    #[inline(never)]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Located> {
        let Some((index, value)) = self.0.next() else {
            return Ok(None);
        };
        let key = element_key(index, &value);
        seed.deserialize(Reader(value))
            .map(Some)
            .map_err(|error| error.under(&key))
    }
}

/// How a path calls an element of a list: by its `name`, else by its `kind`, else by its number.
pub fn element_key(index: usize, element: &Value) -> String {
    let word = element
        .get("name")
        .or_else(|| element.get("kind"))
        .and_then(Value::as_str);
    match word {
        Some(word) if !word.is_empty() && !word.contains('.') => word.to_owned(),
        _ => index.to_string(),
    }
}

/// Reads a struct that denies unknown fields. It is handed its fields in its own order, as if the
/// table were a list: that is half the code of one that is asked which key is which field.
pub(crate) fn read_fields<'de, V: Visitor<'de>>(
    table: Table,
    names: &'static [&'static str],
    visitor: V,
) -> Result<V::Value, Located> {
    let mut fields = Fields::new(table, names)?;
    let read = visitor.visit_seq(&mut fields);
    read.map_err(|error| fields.error(error))
}

/// The values of a table in the order of a struct's fields. One that is missing is none: its field
/// has a default, or the struct gives up.
struct Fields {
    table: Table,
    names: std::slice::Iter<'static, &'static str>,
    /// The last field, if it was missing.
    missing: Option<&'static str>,
}

impl Fields {
    fn new(table: Table, names: &'static [&'static str]) -> Result<Self, Located> {
        if let Some(key) = table.keys().find(|key| !names.contains(&key.as_str())) {
            return Err(Located::unknown_key(key, names));
        }
        Ok(Self {
            table,
            names: names.iter(),
            missing: None,
        })
    }

    #[inline(never)]
    fn taken(&mut self) -> Option<(&'static str, Value)> {
        let name = self.names.next()?;
        let value = self.table.remove(*name);
        self.missing = value.is_none().then_some(name);
        Some((name, value?))
    }

    /// What is wrong if a struct gave up: the field that it could not do without, or the error of a
    /// field.
    #[cold]
    fn error(self, error: Located) -> Located {
        match self.missing {
            Some(name) => Located::missing_field(name),
            None => error,
        }
    }
}

impl<'de> SeqAccess<'de> for &mut Fields {
    type Error = Located;

    // Once for each type, not for each field of that type: most of a reader is that.
    #[inline(never)]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Located> {
        let Some((name, value)) = self.taken() else {
            return Ok(None);
        };
        let read = seed.deserialize(Reader(value)).map(Some);
        read.map_err(|error| error.under(name))
    }
}

pub(crate) struct Entries {
    entries: toml::map::IntoIter<String, Value>,
    value: Option<(String, Value)>,
}

impl Entries {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            entries: table.into_iter(),
            value: None,
        }
    }

    #[inline(never)]
    fn taken(&mut self) -> (String, Value) {
        let value = self.value.take();
        value.expect("serde asks for a value after its key")
    }
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Located;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Located> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some((key.clone(), value));
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    #[inline(never)]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Located> {
        let (key, value) = self.taken();
        seed.deserialize(Reader(value))
            .map_err(|error| error.under(&key))
    }
}
