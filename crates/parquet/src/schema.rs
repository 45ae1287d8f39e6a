//! The schema of a file: Parquet's types, and the types of Arrow that our columns stand for.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, TableFinishedWIPOffset, Vector, WIPOffset};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::schema::types::{Type, TypePtr};
use serde::Serialize;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Whole numbers of 32 bits without a sign.
    UInt32,
    /// Whole numbers of 64 bits without a sign.
    UInt64,
    /// Numbers with a fraction.
    Float64,
    /// True or false.
    Bool,
    /// Words from a set of at most 256.
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A column's name and type.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) is_nullable: bool,
}

impl Field {
    pub(crate) fn new(name: impl Into<String>, kind: Kind, is_nullable: bool) -> Self {
        Self {
            name: name.into(),
            kind,
            is_nullable,
        }
    }

    fn parquet(&self) -> Result<TypePtr> {
        let whole = |bit_width| LogicalType::integer(bit_width, false);
        let (physical, logical) = match self.kind {
            Kind::UInt32 => (Physical::INT32, Some(whole(32))),
            Kind::UInt64 => (Physical::INT64, Some(whole(64))),
            Kind::Float64 => (Physical::DOUBLE, None),
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.is_nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let column = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical);
        Ok(column.build()?.into())
    }
}

/// The columns in Parquet's own types.
pub(crate) fn parquet_types(fields: &[Field]) -> Result<TypePtr> {
    let columns = fields.iter().map(Field::parquet).collect::<Result<_>>()?;
    let root = Type::group_type_builder("arrow_schema").with_fields(columns);
    Ok(root.build()?.into())
}

/// The columns in the types of Arrow, as readers look for them in a file's metadata: a schema message
/// of Arrow's format for exchange between processes, behind its length, in base64.
pub(crate) fn arrow_types(fields: &[Field]) -> KeyValue {
    let message = message(fields);
    let mut bytes = u32::MAX.to_le_bytes().to_vec();
    bytes.extend((message.len() as u32).to_le_bytes());
    bytes.extend(message);
    KeyValue::new("ARROW:schema".to_owned(), STANDARD.encode(bytes))
}

type Builder = FlatBufferBuilder<'static>;
type Table = WIPOffset<TableFinishedWIPOffset>;
type Tables = WIPOffset<Vector<'static, ForwardsUOffset<TableFinishedWIPOffset>>>;

/// Where a table keeps its field of a number.
const fn slot(number: u16) -> u16 {
    4 + 2 * number
}

/// The message, with the numbers of Arrow's `Message.fbs` and `Schema.fbs`. Its parts come in the order
/// in which Arrow's own writer adds them: readers need no order, but files keep their bytes.
fn message(fields: &[Field]) -> Vec<u8> {
    const VERSION_5: i16 = 4;
    const SCHEMA: u8 = 1;
    let mut builder = Builder::new();
    let mut dictionaries = 0;
    let fields: Vec<Table> = fields
        .iter()
        .map(|field| arrow_field(&mut builder, field, &mut dictionaries))
        .collect();
    let fields = builder.create_vector(&fields);
    let schema = table(&mut builder, |it| it.push_slot_always(slot(1), fields));
    let message = table(&mut builder, |it| {
        it.push_slot(slot(0), VERSION_5, 0);
        it.push_slot(slot(1), SCHEMA, 0);
        it.push_slot_always(slot(2), schema);
    });
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

/// A column. `dictionaries` counts those before it that have one.
fn arrow_field(builder: &mut Builder, field: &Field, dictionaries: &mut i64) -> Table {
    const INT: u8 = 2;
    const FLOATING_POINT: u8 = 3;
    const UTF8: u8 = 5;
    const BOOL: u8 = 6;
    const DOUBLE: i16 = 2;
    let name = builder.create_string(&field.name);
    let (number, kind, children) = match field.kind {
        Kind::UInt32 | Kind::UInt64 => {
            let children = no_children(builder);
            let bits = if field.kind == Kind::UInt32 { 32 } else { 64 };
            (INT, unsigned(builder, bits), children)
        }
        Kind::Float64 => {
            let children = no_children(builder);
            let kind = table(builder, |it| it.push_slot(slot(0), DOUBLE, 0));
            (FLOATING_POINT, kind, children)
        }
        Kind::Bool => (BOOL, table(builder, |_| ()), no_children(builder)),
        Kind::Text => (UTF8, table(builder, |_| ()), no_children(builder)),
    };
    let dictionary = (field.kind == Kind::Text).then(|| {
        let index = unsigned(builder, 8);
        let id = *dictionaries;
        *dictionaries += 1;
        table(builder, |it| {
            it.push_slot(slot(0), id, 0);
            it.push_slot_always(slot(1), index);
        })
    });
    table(builder, |it| {
        it.push_slot_always(slot(0), name);
        if let Some(dictionary) = dictionary {
            it.push_slot_always(slot(4), dictionary);
        }
        it.push_slot(slot(2), number, 0);
        it.push_slot(slot(1), field.is_nullable, false);
        it.push_slot_always(slot(5), children);
        it.push_slot_always(slot(3), kind);
    })
}

/// The type of whole numbers without a sign.
fn unsigned(builder: &mut Builder, bits: i32) -> Table {
    table(builder, |it| it.push_slot(slot(0), bits, 0))
}

fn no_children(builder: &mut Builder) -> Tables {
    builder.create_vector::<Table>(&[])
}

fn table(builder: &mut Builder, fill: impl FnOnce(&mut Builder)) -> Table {
    let begun = builder.start_table();
    fill(builder);
    builder.end_table(begun)
}

#[cfg(all(test, feature = "arrow"))]
mod tests {
    use arrow::datatypes::{DataType, Schema};
    use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
    use parquet::file::properties::WriterProperties;
    use proptest::prelude::*;

    use super::*;

    fn of_arrow(field: &Field) -> arrow::datatypes::Field {
        let kind = match field.kind {
            Kind::UInt32 => DataType::UInt32,
            Kind::UInt64 => DataType::UInt64,
            Kind::Float64 => DataType::Float64,
            Kind::Bool => DataType::Boolean,
            Kind::Text => DataType::Dictionary(DataType::UInt8.into(), DataType::Utf8.into()),
        };
        arrow::datatypes::Field::new(&field.name, kind, field.is_nullable)
    }

    fn field() -> impl Strategy<Value = Field> {
        let kinds = [
            Kind::UInt32,
            Kind::UInt64,
            Kind::Float64,
            Kind::Bool,
            Kind::Text,
        ];
        let kind = prop::sample::select(kinds.to_vec());
        (any::<String>(), kind, any::<bool>())
            .prop_map(|(name, kind, is_nullable)| Field::new(name, kind, is_nullable))
    }

    proptest! {
        /// The witness is Arrow's own writer.
        #[test]
        fn schemas_are_those_that_arrow_writes(fields in prop::collection::vec(field(), 0..40)) {
            let schema = Schema::new(fields.iter().map(of_arrow).collect::<Vec<_>>());
            let types = ArrowSchemaConverter::new().convert(&schema).unwrap();
            prop_assert_eq!(parquet_types(&fields).unwrap(), types.root_schema_ptr());
            let mut properties = WriterProperties::builder().build();
            add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
            let metadata = properties.key_value_metadata().unwrap();
            prop_assert_eq!(&vec![arrow_types(&fields)], metadata);
        }
    }
}
