//! Reading tables into types, with errors that know where they are.
//!
//! A scenario is full of tables whose `kind` decides what else they may hold. serde can read such
//! enums, but it forgets on the way which key of which table was wrong. [`tagged!`](crate::tagged!)
//! defines them so that the path survives: every error is a [`Located`], and one that must cross a
//! foreign deserializer travels as text ([`Located::pass`]) and is unpacked on the other side.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::json;
use toml::{Table, Value};

use crate::check;

/// The longest piece of a user's text that a message repeats, in characters.
const SHOWN: usize = 60;

/// The longest list of allowed words that a message has, in bytes.
const LONGEST_LIST: usize = 240;

/// Separates the parts of a [`Located`] that travels as text, and the items of a part.
const PART: char = '\u{1e}';
const ITEM: char = '\u{1f}';

/// What is wrong, and where: a path of keys (of list elements: their `name`, or their number).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located(Box<Problem>);

/// What a [`Located`] says. It is boxed: errors are rare, and every reader of every type hands
/// results up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    path: Vec<String>,
    message: String,
    /// The word that is not one of `allowed`; empty if there is none.
    word: String,
    allowed: Vec<String>,
}

/// The words, as far as a message of one sentence bears them.
fn listed(words: &[String]) -> String {
    let joined = words.join(", ");
    if joined.len() <= LONGEST_LIST {
        return joined;
    }
    let cut = joined[..LONGEST_LIST].rfind(", ").unwrap_or(0);
    format!("{}, ...; {} in all", &joined[..cut], words.len())
}

/// The key that names the variant of a [`tagged!`](crate::tagged!) enum.
const KIND: &str = "kind";

const UNKNOWN_KEY: &str = "unknown key";

impl Located {
    /// A problem with the value at hand. The message says what was found and what would be right.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_word(message.into(), String::new())
    }

    #[cold]
    fn with_word(message: String, word: String) -> Self {
        Self(Box::new(Problem {
            path: Vec::new(),
            message,
            word,
            allowed: Vec::new(),
        }))
    }

    /// A problem with a key that this table must not hold.
    pub fn unknown_key(key: &str, allowed: &[&str]) -> Self {
        let error = Self::with_word(UNKNOWN_KEY.to_owned(), segment(key));
        error.allow(allowed).under(key)
    }

    /// A problem with a value that is not one of the `allowed` words.
    pub fn unknown_word(word: &str, allowed: &[&str]) -> Self {
        let message = format!("found {}", quoted(word));
        Self::with_word(message, segment(word)).allow(allowed)
    }

    /// The same problem seen from the table (or list) that holds the value under `key`.
    #[cold]
    #[must_use]
    pub fn under(mut self, key: &str) -> Self {
        self.0.path.insert(0, segment(key));
        self
    }

    /// The same problem, with more words that would have been right.
    #[must_use]
    pub fn allow(mut self, words: &[&str]) -> Self {
        self.0
            .allowed
            .extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// The keys that lead to the value.
    pub fn path(&self) -> &[String] {
        &self.0.path
    }

    /// Whether the table at hand holds a key that it must not.
    pub fn is_unknown_key_here(&self) -> bool {
        self.0.path.len() == 1 && self.0.message == UNKNOWN_KEY
    }

    /// What is wrong, in one sentence without the path.
    pub fn message(&self) -> String {
        let mut message = self.0.message.clone();
        if let Some(word) = nearest(&self.0.word, &self.0.allowed) {
            message += &format!("; did you mean \"{word}\"?");
        }
        if !self.0.allowed.is_empty() {
            message += &format!(" (allowed: {})", listed(&self.0.allowed));
        }
        message
    }

    /// Hands the error to a deserializer whose errors are only text; a [`Located`] made from that
    /// text is this one again.
    pub fn pass<E: Error>(self) -> E {
        let item = ITEM.to_string();
        let Problem {
            path,
            message,
            word,
            allowed,
        } = *self.0;
        let parts = [path.join(&item), message, word, allowed.join(&item)];
        E::custom(format!("{PART}{}", parts.join(&PART.to_string())))
    }

    fn unpack(text: &str) -> Option<Self> {
        fn items(text: &str) -> Vec<String> {
            text.split(ITEM)
                .filter(|item| !item.is_empty())
                .map(str::to_owned)
                .collect()
        }
        let parts: Vec<_> = text.strip_prefix(PART)?.split(PART).collect();
        let &[path, message, word, allowed] = parts.as_slice() else {
            return None;
        };
        Some(Self(Box::new(Problem {
            path: items(path),
            message: message.to_owned(),
            word: word.to_owned(),
            allowed: items(allowed),
        })))
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.is_empty() {
            write!(f, "{}: ", self.0.path.join("."))?;
        }
        f.write_str(&self.message())
    }
}

impl std::error::Error for Located {}

/// What a check says, whose keys are joined by dots.
impl From<check::Problem> for Located {
    fn from((key, message): check::Problem) -> Self {
        let keys = key.split('.').rev();
        keys.fold(Self::new(message), |error, key| error.under(key))
    }
}

impl Error for Located {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        Self::unpack(&text).unwrap_or_else(|| Self::new(text))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "found {}; expected {}",
            describe(found),
            plain(expected)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(found: usize, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "found {found} values; expected {}",
            plain(expected)
        ))
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_word(found, expected)
    }

    fn unknown_field(found: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_key(found, expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("missing, and it has no default").under(field)
    }
}

/// A user's text as a message repeats it: quoted, cut if it is long.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", segment(text))
}

fn segment(text: &str) -> String {
    let shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    let more = if text.chars().nth(SHOWN).is_some() {
        "..."
    } else {
        ""
    };
    shown + more
}

/// The one of `words` that `found` was probably meant to be, if any resembles it: it begins alike
/// (Jaro and Winkler), or few letters are wrong, missing or swapped (Damerau and Levenshtein).
pub fn nearest<'a>(found: &str, words: &'a [String]) -> Option<&'a str> {
    let found = found.to_lowercase();
    let likeness = |word: &String| {
        let word = word.to_lowercase();
        let beginning = strsim::jaro_winkler(&found, &word);
        let letters = strsim::normalized_damerau_levenshtein(&found, &word);
        (beginning >= 0.75 || letters >= 0.6).then_some(beginning.max(letters))
    };
    words
        .iter()
        .filter_map(|word| likeness(word).map(|likeness| (likeness, word.as_str())))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => quoted(text),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Map => "a table".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        other => other.to_string(),
    }
}

/// serde's words for what it expects, in the words of a scenario's author.
fn plain(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "u32" => "a whole number from 0 to 4294967295".to_owned(),
        "u64" => "a whole number of at least 0".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        _ if text.starts_with("struct ") => "a table".to_owned(),
        _ if text.starts_with("a tuple of size ") => text.replace("a tuple of size", "a list of"),
        _ => text,
    }
}

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

/// Reads a table with a `kind`, or a word: the kind, with the defaults of its other keys. For
/// fields whose type is an enum of [`tagged!`](crate::tagged!); [`WordOrTable`] is their schema.
pub fn word_or_table<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let Value::String(word) = value else {
        return from_value(value).map_err(Located::pass);
    };
    let table = Table::from_iter([(KIND.to_owned(), Value::String(word))]);
    let read = from_value(Value::Table(table));
    read.map_err(|mut error: Located| {
        // The author has written no `kind`.
        error.0.path.retain(|key| key != KIND);
        error.pass()
    })
}

/// The schema of what [`word_or_table`] reads.
#[derive(Debug)]
pub struct WordOrTable<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for WordOrTable<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrWord", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = T::json_schema(generator).to_value();
        let kinds = table["oneOf"].as_array().into_iter().flatten();
        // A kind with a key that has no default needs the table.
        let words: Vec<_> = kinds
            .filter(|kind| {
                kind["required"]
                    .as_array()
                    .is_none_or(|keys| keys.len() == 1)
            })
            .map(|kind| kind["properties"][KIND]["const"].clone())
            .collect();
        let mut schema = Schema::default();
        let word = json!({ "type": "string", "enum": words });
        schema.insert("anyOf".to_owned(), json!([word, table]));
        schema
    }
}

/// A value as a message repeats it.
pub fn shown(value: &Value) -> String {
    describe(unexpected(value))
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::String(text) => Unexpected::Str(text),
        Value::Integer(value) => Unexpected::Signed(*value),
        Value::Float(value) => Unexpected::Float(*value),
        Value::Boolean(value) => Unexpected::Bool(*value),
        Value::Datetime(_) => Unexpected::Other("a date"),
        Value::Array(_) => Unexpected::Seq,
        Value::Table(_) => Unexpected::Map,
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
fn read_fields<'de, V: Visitor<'de>>(
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

struct Entries {
    entries: toml::map::IntoIter<String, Value>,
    value: Option<(String, Value)>,
}

impl Entries {
    fn new(table: Table) -> Self {
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

/// A deserializer over a table whose `kind` names a variant and whose other keys are its fields.
/// Made for the enums of [`tagged!`](crate::tagged!); it reads nothing else.
#[derive(Debug)]
pub struct KindReader(pub Table);

impl<'de> Deserializer<'de> for KindReader {
    type Error = Located;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Located> {
        visitor.visit_map(Entries::new(self.0))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Located> {
        match self.0.remove(KIND) {
            Some(Value::String(kind)) => visitor.visit_enum(Kind {
                kind,
                fields: self.0,
            }),
            Some(other) => {
                let found = shown(&other);
                Err(Located::new(format!("found {found}"))
                    .allow(variants)
                    .under(KIND))
            }
            None => Err(Located::new("missing").allow(variants).under(KIND)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any option newtype_struct
    }
}

struct Kind {
    kind: String,
    fields: Table,
}

impl<'de> EnumAccess<'de> for Kind {
    type Error = Located;
    type Variant = VariantFields;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, VariantFields), Located> {
        let kind = seed.deserialize(self.kind.into_deserializer());
        Ok((
            kind.map_err(|error: Located| error.under(KIND))?,
            VariantFields(self.fields),
        ))
    }
}

struct VariantFields(Table);

impl<'de> VariantAccess<'de> for VariantFields {
    type Error = Located;

    fn unit_variant(self) -> Result<(), Located> {
        match self.0.keys().next() {
            Some(key) => Err(Located::unknown_key(key, &[KIND])),
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Located> {
        seed.deserialize(Reader(Value::Table(self.0)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Located> {
        visitor.visit_map(Entries::new(self.0))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Located> {
        read_fields(self.0, fields, visitor)
    }
}

/// Defines an enum that is written as a table with a `kind`: the variant's name in kebab case.
///
/// The enum gets serde's `Serialize` and `Deserialize` and schemars' `JsonSchema`; unknown keys are
/// errors, and all errors keep their path. The crate that uses it needs `serde` and `schemars`.
#[macro_export]
macro_rules! tagged {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variants:tt)* }) => {
        $(#[$meta])*
        #[derive(::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        $vis enum $name { $($variants)* }

        const _: () = {
            type Real = $name;

            // serde's plain reading of the same variants; `KindReader` supplies their names.
            #[derive(::serde::Deserialize)]
            #[serde(remote = "Real", rename_all = "kebab-case", deny_unknown_fields)]
            enum Untagged { $($variants)* }

            impl<'de> ::serde::Deserialize<'de> for $name {
                fn deserialize<D: ::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    let table = $crate::tagged::table(deserializer)?;
                    Untagged::deserialize($crate::tagged::KindReader(table))
                        .map_err($crate::tagged::Located::pass)
                }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::tagged! {
        /// A shape.
        #[derive(Clone, Debug, PartialEq)]
        enum Shape {
            /// No extent.
            Point,
            /// All around.
            Circle {
                /// From the middle.
                radius: f64,
            },
            /// One inside another.
            Nested(Nested),
        }
    }

    /// A shape in a list of shapes.
    #[derive(Clone, Debug, PartialEq, serde::Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nested {
        inner: Vec<Shape>,
        #[serde(default)]
        count: u32,
    }

    fn read(text: &str) -> Result<Shape, Located> {
        from_value(Value::Table(text.parse().unwrap()))
    }

    fn told(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_long_list_of_words_is_cut() {
        let words: Vec<_> = (100..200).map(|n| format!("word-{n}")).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let told = Located::unknown_word("x", &words).message();
        assert!(told.ends_with("word-123, ...; 100 in all)"), "{told}");
        assert!(told.len() < 300);
    }

    #[test]
    fn kinds_are_read_and_written() {
        for (text, shape) in [
            ("kind = \"point\"\n", Shape::Point),
            (
                "kind = \"circle\"\nradius = 2.0\n",
                Shape::Circle { radius: 2.0 },
            ),
        ] {
            assert_eq!(read(text), Ok(shape.clone()));
            assert_eq!(toml::to_string(&shape).unwrap(), text);
        }
        let nested =
            read("kind = \"nested\"\ninner = [{ kind = \"circle\", radius = 1 }]").unwrap();
        let inner = vec![Shape::Circle { radius: 1.0 }];
        assert_eq!(nested, Shape::Nested(Nested { inner, count: 0 }));
    }

    /// A table that holds a shape.
    #[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Holder {
        #[serde(deserialize_with = "word_or_table")]
        #[schemars(with = "WordOrTable<Shape>")]
        shape: Shape,
    }

    #[test]
    fn a_word_stands_for_a_kind_with_its_defaults() {
        let hold = |text: &str| -> Result<Holder, String> {
            from_value(Value::Table(text.parse().unwrap())).map_err(|e: Located| e.to_string())
        };
        for text in ["shape = \"point\"", "shape = { kind = \"point\" }"] {
            assert_eq!(
                hold(text),
                Ok(Holder {
                    shape: Shape::Point
                })
            );
        }
        assert_eq!(
            hold("shape = \"pont\""),
            Err(
                "shape: found \"pont\"; did you mean \"point\"? (allowed: point, circle, nested)"
                    .to_owned()
            )
        );
        let error = hold("shape = { kind = \"pont\" }").unwrap_err();
        assert!(error.starts_with("shape.kind: found \"pont\""), "{error}");
        assert_eq!(
            hold("shape = \"circle\""),
            Err("shape.radius: missing, and it has no default".to_owned())
        );
        assert_eq!(
            hold("shape = 3"),
            Err("shape: found 3; expected a table".to_owned())
        );
        let schema = crate::schema::schema_of::<Holder>();
        let shape = &schema["$defs"]["ShapeOrWord"]["anyOf"][0];
        assert_eq!(shape["enum"], json!(["point"]));
    }

    #[test]
    fn errors_know_their_path_through_nested_kinds() {
        let nested = |inner: &str| told(&format!("kind = \"nested\"\ninner = [{inner}]"));
        assert_eq!(
            nested("{ kind = \"point\" }, { kind = \"circle\", radius = \"2\" }"),
            "inner.circle.radius: found \"2\"; expected a number"
        );
        assert_eq!(
            nested("{ kind = \"nested\", inner = [{ kind = \"circel\" }] }"),
            "inner.nested.inner.circel.kind: found \"circel\"; did you mean \"circle\"? \
             (allowed: point, circle, nested)"
        );
        assert_eq!(nested("3"), "inner.0: found 3; expected a table");
        assert_eq!(
            told("kind = \"circle\""),
            "radius: missing, and it has no default"
        );
        assert_eq!(
            told("kind = 1"),
            "kind: found 1 (allowed: point, circle, nested)"
        );
        assert_eq!(
            told("radius = 1"),
            "kind: missing (allowed: point, circle, nested)"
        );
        assert_eq!(
            told("kind = \"point\"\nradius = 1"),
            "radius: unknown key (allowed: kind)"
        );
        assert_eq!(
            told("kind = \"nested\"\ninner = []\ncout = 1"),
            "cout: unknown key; did you mean \"count\"? (allowed: inner, count)"
        );
    }

    /// Fields that may be missing, before and behind one that may not.
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Gaps {
        #[serde(default)]
        first: Option<u32>,
        #[serde(default = "seven")]
        second: u32,
        third: u32,
        #[serde(skip)]
        own: u32,
        #[serde(default)]
        fourth: Vec<u32>,
    }

    const fn seven() -> u32 {
        7
    }

    #[test]
    fn a_missing_field_has_its_default_or_is_named() {
        let gaps = |text: &str| -> Result<Gaps, String> {
            from_value(Value::Table(text.parse().unwrap())).map_err(|e: Located| e.to_string())
        };
        let read = |first, second, fourth| Gaps {
            first,
            second,
            third: 3,
            own: 0,
            fourth,
        };
        assert_eq!(gaps("third = 3"), Ok(read(None, 7, Vec::new())));
        let all = "fourth = [4]\nthird = 3\nsecond = 2\nfirst = 1";
        assert_eq!(gaps(all), Ok(read(Some(1), 2, vec![4])));
        for (text, message) in [
            ("first = 1", "third: missing, and it has no default"),
            ("third = 3\nown = 1", "own: unknown key"),
            ("third = 3\nfourth = [\"x\"]", "fourth.0: found \"x\""),
            ("second = true", "second: found true"),
        ] {
            let told = gaps(text).unwrap_err();
            assert!(told.starts_with(message), "{told}");
        }
    }

    #[test]
    fn numbers_are_finite_and_in_range() {
        let circle = |radius: &str| told(&format!("kind = \"circle\"\nradius = {radius}"));
        assert_eq!(circle("nan"), "radius: found NaN; expected a finite number");
        assert_eq!(
            circle("-inf"),
            "radius: found -inf; expected a finite number"
        );
        let count = |count: &str| told(&format!("kind = \"nested\"\ninner = []\ncount = {count}"));
        let expected = "expected a whole number from 0 to 4294967295";
        assert_eq!(count("-1"), format!("count: found -1; {expected}"));
        assert_eq!(count("1.5"), format!("count: found 1.5; {expected}"));
    }

    #[test]
    fn the_nearest_word_resembles_what_was_found() {
        let words = ["droptail", "red", "min_th", "max_th", "rfc"].map(str::to_owned);
        for (found, word) in [
            ("drop-tail", Some("droptail")),
            ("RED", Some("red")),
            ("min_threshold", Some("min_th")),
            ("maxth", Some("max_th")),
            ("rcf", Some("rfc")),
            ("fifo", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, &words), word, "{found}");
        }
    }

    #[test]
    fn what_a_user_wrote_is_repeated_in_part() {
        let long = told(&format!("kind = \"{}\"", "x".repeat(10_000)));
        assert!(long.len() < 200, "{long}");
        // The separators of an error that travels as text mean nothing in a user's text.
        let odd = told("kind = \"nested\"\ninner = [{ kind = \"a\\u001eb\" }]");
        assert!(odd.contains("\"a\\u{1e}b\""), "{odd}");
    }
}
