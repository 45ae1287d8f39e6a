//! Columns that wait to be written, and what a table says of its own.

use parquet::basic::Encoding;
use serde::Serialize;

use crate::chunk::Encoded;
use crate::encode::{deltas, hybrid, plain, plain_bits, plain_texts};
use crate::schema::{Field, Kind};

/// What a table says of itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TableAbout {
    /// The name of its file in the run directory.
    pub file: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns, in their order.
    pub columns: &'static [Column],
    /// How it is written.
    pub layout: Layout,
}

/// What a file is to cost little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Space: numbers with fractions are compressed.
    Small,
    /// Time per row: there is one for each exchange or connection. The nanoseconds of times look
    /// random: zstd would save a tenth.
    Large,
}

impl Layout {
    /// Rows that are collected before they are encoded. The caches hold few of them.
    pub(crate) const fn page(self) -> usize {
        match self {
            Self::Large => 1 << 12,
            Self::Small => 1 << 16,
        }
    }

    /// Whether the pages of a column with this type are compressed: differences of whole numbers
    /// are shorter than what zstd makes of the numbers, and runs of a word are short already.
    pub(crate) fn compresses(self, kind: Kind) -> bool {
        self == Self::Small && kind == Kind::Float64
    }
}

/// What a column says of itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Column {
    /// Its name; ends in its unit.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its unit, if it has one.
    pub unit: Option<&'static str>,
    /// What its values mean.
    pub meaning: &'static str,
    /// Whether a row may have no value.
    pub is_nullable: bool,
}

/// The columns of a table, with the values that wait to be written.
pub(crate) trait Columns {
    /// What a row is made of.
    type Row<'a>;

    /// What the table says of itself.
    const ABOUT: TableAbout;

    /// Adds a row.
    fn push(&mut self, row: Self::Row<'_>);

    /// Takes the values that wait: a page of each column.
    fn pages(&mut self) -> Vec<Encoded>;

    /// The words that each column's pages refer to, if they do.
    fn dictionaries(&self) -> Vec<Option<Encoded>>;
}

/// Columns that are the same in every run.
pub(crate) trait FixedColumns: Columns {
    /// No rows yet. `classes` are the names of the classes of traffic.
    fn new(classes: &[String]) -> Self;

    /// The columns' fields in the file's schema.
    fn fields() -> Vec<Field>;
}

/// The values of a column that wait to be written.
pub(crate) trait Buffer {
    /// What its values are.
    const KIND: Kind;

    /// Whether a row may have no value.
    const IS_NULLABLE: bool = false;

    fn new(classes: &[String]) -> Self;

    /// Takes the values.
    fn page(&mut self) -> Encoded;

    /// The words that pages refer to, if they do.
    fn dictionary(&self) -> Option<Encoded> {
        None
    }
}

/// Values of a plain type.
#[derive(Default)]
pub(crate) struct Values<T>(Vec<T>);

impl<T> Values<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// Takes them, as `encode` writes them.
    fn page(&mut self, encoding: Encoding, encode: impl FnOnce(&[T], &mut Vec<u8>)) -> Encoded {
        let mut bytes = Vec::new();
        encode(&self.0, &mut bytes);
        let count = self.0.len();
        self.0.clear();
        Encoded {
            count,
            encoding,
            bytes,
        }
    }
}

macro_rules! plain_values {
    ($($value:ty, $kind:ident, $encoding:ident, $encode:ident;)+) => {$(
        impl Buffer for Values<$value> {
            const KIND: Kind = Kind::$kind;

            fn new(_classes: &[String]) -> Self {
                Self::default()
            }

            fn page(&mut self) -> Encoded {
                self.page(Encoding::$encoding, $encode)
            }
        }
    )+};
}

plain_values! {
    u32, UInt32, DELTA_BINARY_PACKED, deltas;
    u64, UInt64, DELTA_BINARY_PACKED, deltas;
    f64, Float64, PLAIN, plain;
    bool, Bool, PLAIN, plain_bits;
}

/// Values that a row may lack.
#[derive(Default)]
pub(crate) struct OptionalValues {
    values: Values<f64>,
    /// 1 for each row that has a value, 0 for the others.
    levels: Vec<u8>,
}

impl OptionalValues {
    pub(crate) fn push(&mut self, value: Option<f64>) {
        self.levels.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.values.push(value);
        }
    }
}

impl Buffer for OptionalValues {
    const KIND: Kind = Kind::Float64;
    const IS_NULLABLE: bool = true;

    fn new(_classes: &[String]) -> Self {
        Self::default()
    }

    fn page(&mut self) -> Encoded {
        let mut levels = Vec::new();
        hybrid(&self.levels, 1, &mut levels);
        let mut page = self.values.page(Encoding::PLAIN, |values, bytes| {
            bytes.extend((levels.len() as u32).to_le_bytes());
            bytes.extend(&levels);
            plain(values, bytes);
        });
        page.count = self.levels.len();
        self.levels.clear();
        page
    }
}

/// Whole numbers that a row may lack.
#[derive(Default)]
pub(crate) struct OptionalTimes {
    values: Values<u64>,
    /// 1 for each row that has a value, 0 for the others.
    levels: Vec<u8>,
}

impl OptionalTimes {
    #[inline]
    pub(crate) fn push(&mut self, value: Option<u64>) {
        self.levels.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.values.push(value);
        }
    }
}

impl Buffer for OptionalTimes {
    const KIND: Kind = Kind::UInt64;
    const IS_NULLABLE: bool = true;

    fn new(_classes: &[String]) -> Self {
        Self::default()
    }

    fn page(&mut self) -> Encoded {
        let mut levels = Vec::new();
        hybrid(&self.levels, 1, &mut levels);
        let encoding = Encoding::DELTA_BINARY_PACKED;
        let mut page = self.values.page(encoding, |values, bytes| {
            bytes.extend((levels.len() as u32).to_le_bytes());
            bytes.extend(&levels);
            deltas(values, bytes);
        });
        page.count = self.levels.len();
        self.levels.clear();
        page
    }
}

/// Words from a set that is small, by their places in it.
struct Dictionary {
    words: Vec<String>,
    /// Which of them, per row.
    keys: Values<u8>,
}

impl Dictionary {
    fn of(words: &[String]) -> Self {
        Self {
            words: words.to_vec(),
            keys: Values::default(),
        }
    }

    fn page(&mut self) -> Encoded {
        let last = self.words.len().saturating_sub(1);
        let width = (usize::BITS - last.leading_zeros()).max(1);
        self.keys.page(Encoding::RLE_DICTIONARY, |keys, bytes| {
            bytes.push(width as u8);
            hybrid(keys, width, bytes);
        })
    }

    fn encoded(&self) -> Encoded {
        let mut bytes = Vec::new();
        plain_texts(&self.words, &mut bytes);
        Encoded {
            count: self.words.len(),
            encoding: Encoding::PLAIN,
            bytes,
        }
    }
}

/// Names of classes, by their numbers: no word is hashed for a row.
pub(crate) struct ClassNames(Dictionary);

impl ClassNames {
    #[inline]
    pub(crate) fn push(&mut self, class: usize) {
        self.0.keys.push(class as u8);
    }
}

impl Buffer for ClassNames {
    const KIND: Kind = Kind::Text;

    fn new(classes: &[String]) -> Self {
        Self(Dictionary::of(classes))
    }

    fn page(&mut self) -> Encoded {
        self.0.page()
    }

    fn dictionary(&self) -> Option<Encoded> {
        Some(self.0.encoded())
    }
}

/// Words as they come. Most rows repeat the word of the row before them, so a look at it is cheaper
/// than a hash.
pub(crate) struct Words {
    dictionary: Dictionary,
    last: usize,
}

impl Words {
    #[inline]
    pub(crate) fn push(&mut self, word: &str) {
        let words = &self.dictionary.words;
        if words.get(self.last).is_none_or(|last| last != word) {
            self.last = self.place(word);
        }
        self.dictionary.keys.push(self.last as u8);
    }

    fn place(&mut self, word: &str) -> usize {
        let words = &mut self.dictionary.words;
        let known = words.iter().position(|known| known == word);
        known.unwrap_or_else(|| {
            words.push(word.to_owned());
            words.len() - 1
        })
    }
}

impl Buffer for Words {
    const KIND: Kind = Kind::Text;

    fn new(_classes: &[String]) -> Self {
        Self {
            dictionary: Dictionary::of(&[]),
            last: 0,
        }
    }

    fn page(&mut self) -> Encoded {
        self.dictionary.page()
    }

    fn dictionary(&self) -> Option<Encoded> {
        Some(self.dictionary.encoded())
    }
}

/// Declares a table: its file, what a row is and is made of, and its columns, each with its
/// meaning, name, unit, type and value.
macro_rules! columns {
    (
        $(#[doc = $row_meaning:literal])+
        $table:ident($file:literal, $layout:ident) of ($item:ty) |$row:pat_param| {
            $(
                $(#[doc = $meaning:literal])+
                $column:ident $([$unit:literal])?: $buffer:ty = $value:expr,
            )+
        }
    ) => {
        $(#[doc = $row_meaning])+
        pub(crate) struct $table {
            $($column: $buffer,)+
        }

        impl Columns for $table {
            type Row<'a> = $item;

            const ABOUT: TableAbout = TableAbout {
                file: $file,
                row: concat!($($row_meaning),+).trim_ascii(),
                columns: &[$(Column {
                    name: stringify!($column),
                    kind: <$buffer as Buffer>::KIND,
                    unit: [$(Some($unit),)? None][0],
                    meaning: concat!($($meaning),+).trim_ascii(),
                    is_nullable: <$buffer as Buffer>::IS_NULLABLE,
                },)+],
                layout: Layout::$layout,
            };

            #[inline]
            fn push(&mut self, $row: Self::Row<'_>) {
                $(self.$column.push($value);)+
            }

            fn pages(&mut self) -> Vec<Encoded> {
                vec![$(Buffer::page(&mut self.$column),)+]
            }

            fn dictionaries(&self) -> Vec<Option<Encoded>> {
                vec![$(self.$column.dictionary(),)+]
            }
        }

        impl FixedColumns for $table {
            fn new(classes: &[String]) -> Self {
                Self {
                    $($column: Buffer::new(classes),)+
                }
            }

            fn fields() -> Vec<Field> {
                vec![$(Field::new(
                    stringify!($column),
                    <$buffer as Buffer>::KIND,
                    <$buffer as Buffer>::IS_NULLABLE,
                ),)+]
            }
        }
    };
}

pub(crate) use columns;
