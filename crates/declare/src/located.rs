//! An error that knows its path.
//!
//! Every error of a table is a [`Located`]. One that must cross a foreign deserializer travels as text
//! ([`Located::pass`]) and is unpacked on the other side.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};
use toml::Value;

/// Which field is wrong, and why: what was found and what would be right.
pub type Problem = (String, String);

/// The longest piece of a user's text that a message repeats, in characters.
const SHOWN: usize = 60;

/// The longest list of allowed words that a message has, in bytes.
const LONGEST_LIST: usize = 240;

/// Separates the parts of a [`Located`] that travels as text, and the items of a part.
const PART: char = '\u{1e}';
const ITEM: char = '\u{1f}';

/// What is wrong, and where: a path of keys (of list elements: their `name`, or their number).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located(Box<Parts>);

/// What a [`Located`] says. It is boxed: errors are rare, and every reader of every type hands
/// results up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
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

const UNKNOWN_KEY: &str = "unknown key";

impl Located {
    /// A problem with the value at hand. The message says what was found and what would be right.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_word(message.into(), String::new())
    }

    #[cold]
    fn with_word(message: String, word: String) -> Self {
        Self(Box::new(Parts {
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

    /// This problem as seen from the table (or list) that holds the value under `key`.
    #[cold]
    #[must_use]
    pub fn under(mut self, key: &str) -> Self {
        self.0.path.insert(0, segment(key));
        self
    }

    /// This problem, with more words that would have been right.
    #[must_use]
    pub fn allow(mut self, words: &[&str]) -> Self {
        self.0
            .allowed
            .extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// This problem without a key that the author has not written.
    #[must_use]
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.0.path.retain(|other| other != key);
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
        let Parts {
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
        Some(Self(Box::new(Parts {
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
impl From<Problem> for Located {
    fn from((key, message): Problem) -> Self {
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

/// A value as a message repeats it.
pub fn shown(value: &Value) -> String {
    describe(unexpected(value))
}

pub(crate) fn unexpected(value: &Value) -> Unexpected<'_> {
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
