//! Reading tables into types, with errors that know where they are.
//!
//! A scenario is full of tables whose `kind` decides what else they may hold. serde can read such
//! enums, but it forgets on the way which key of which table was wrong. [`tagged!`](crate::tagged!)
//! defines them so that the path survives.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess,
    Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::json;
use toml::{Table, Value};

pub use crate::located::{Located, nearest, quoted, shown};
use crate::reader::{Entries, read_fields};
pub use crate::reader::{Reader, element_key, from_value, table};

/// The key that names the variant of a [`tagged!`](crate::tagged!) enum.
const KIND: &str = "kind";

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
    read.map_err(|error: Located| error.without(KIND).pass())
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
        #[derive(::serde::Serialize, $crate::JsonSchema)]
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
