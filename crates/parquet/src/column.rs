//! Columns that wait to be written, and what a table says of its own.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Float64Builder, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field};
use serde::Serialize;

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
    /// Space: all columns are compressed.
    Small,
    /// Time per row: there is one for each exchange or connection.
    Large,
    /// Of bins: some hundred rows in every run, which must cost next to nothing.
    Bins,
}

impl Layout {
    /// Rows that are collected before they are encoded. The caches hold few of them. Where a row
    /// may lack values, the encoder cuts its pages by how many it gets at a time.
    pub(crate) const fn group(self) -> usize {
        match self {
            Self::Large => 1 << 12,
            Self::Small | Self::Bins => 1 << 16,
        }
    }
}

/// What a column says of itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Column {
    /// Its name; ends in its unit.
    pub name: &'static str,
    /// Its type: `uint32`, `uint64`, `float64`, `bool` or `text`.
    pub kind: &'static str,
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

    /// Takes the values that wait.
    fn finish(&mut self) -> Vec<ArrayRef>;
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
    /// The name of its type in [`Column`].
    const KIND: &'static str;

    /// Whether a row may have no value.
    const IS_NULLABLE: bool = false;

    fn new(classes: &[String]) -> Self;

    fn data_type() -> DataType;

    fn finish(&mut self) -> ArrayRef;
}

/// Values of a plain type.
#[derive(Default)]
pub(crate) struct Values<T>(Vec<T>);

impl<T> Values<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// Takes them. There is room for as many again, so that nothing is copied when it fills.
    fn take(&mut self) -> Vec<T> {
        let room = Vec::with_capacity(self.0.len());
        std::mem::replace(&mut self.0, room)
    }
}

macro_rules! plain_values {
    ($($value:ty, $name:literal, $kind:ident, $array:ident;)+) => {$(
        impl Buffer for Values<$value> {
            const KIND: &'static str = $name;

            fn new(_classes: &[String]) -> Self {
                Self::default()
            }

            fn data_type() -> DataType {
                DataType::$kind
            }

            fn finish(&mut self) -> ArrayRef {
                Arc::new($array::from(self.take()))
            }
        }
    )+};
}

plain_values! {
    u32, "uint32", UInt32, UInt32Array;
    u64, "uint64", UInt64, UInt64Array;
    f64, "float64", Float64, Float64Array;
    bool, "bool", Boolean, BooleanArray;
}

/// Values that a row may lack.
#[derive(Default)]
pub(crate) struct OptionalValues(Float64Builder);

impl OptionalValues {
    pub(crate) fn push(&mut self, value: Option<f64>) {
        self.0.append_option(value);
    }
}

impl Buffer for OptionalValues {
    const KIND: &'static str = "float64";
    const IS_NULLABLE: bool = true;

    fn new(_classes: &[String]) -> Self {
        Self::default()
    }

    fn data_type() -> DataType {
        DataType::Float64
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8))
}

/// Names of classes, by their numbers: no word is hashed for a row.
pub(crate) struct ClassNames {
    names: ArrayRef,
    /// Which of them, per row.
    keys: Values<u8>,
}

impl ClassNames {
    #[inline]
    pub(crate) fn push(&mut self, class: usize) {
        self.keys.push(class as u8);
    }
}

impl Buffer for ClassNames {
    const KIND: &'static str = "text";

    fn new(classes: &[String]) -> Self {
        Self {
            names: Arc::new(StringArray::from_iter_values(classes)),
            keys: Values::default(),
        }
    }

    fn data_type() -> DataType {
        words()
    }

    fn finish(&mut self) -> ArrayRef {
        let keys = UInt8Array::from(self.keys.take());
        Arc::new(DictionaryArray::new(keys, self.names.clone()))
    }
}

/// Words from a set that is small. Most rows repeat the word of the row before them, so a look at
/// it is cheaper than a hash.
pub(crate) struct Words {
    words: Vec<String>,
    /// Which of them, per row.
    keys: Values<u8>,
    last: usize,
}

impl Words {
    #[inline]
    pub(crate) fn push(&mut self, word: &str) {
        if self.words.get(self.last).is_none_or(|last| last != word) {
            self.last = self.place(word);
        }
        self.keys.push(self.last as u8);
    }

    fn place(&mut self, word: &str) -> usize {
        let known = self.words.iter().position(|known| known == word);
        known.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        })
    }
}

impl Buffer for Words {
    const KIND: &'static str = "text";

    fn new(_classes: &[String]) -> Self {
        Self {
            words: Vec::new(),
            keys: Values::default(),
            last: 0,
        }
    }

    fn data_type() -> DataType {
        words()
    }

    fn finish(&mut self) -> ArrayRef {
        let words = Arc::new(StringArray::from_iter_values(&self.words));
        let keys = UInt8Array::from(self.keys.take());
        Arc::new(DictionaryArray::new(keys, words))
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

            fn finish(&mut self) -> Vec<ArrayRef> {
                vec![$(self.$column.finish(),)+]
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
                    <$buffer as Buffer>::data_type(),
                    <$buffer as Buffer>::IS_NULLABLE,
                ),)+]
            }
        }
    };
}

pub(crate) use columns;
