//! The schema of a type, for editors, and a view of it from which lists and pages are made.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

/// JSON Schema (2020-12) of a type, as a person who writes TOML wants to see it.
pub fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// Takes out what Rust has and TOML has not: line breaks in comments, null, sizes of integers.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(Value::String(_)) = object.get("format") {
                object.remove("format");
            }
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                let only = types.first().cloned();
                object.extend(only.map(|only| ("type".to_owned(), only)));
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({ "type": "null" }));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    object.extend(only);
                }
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A schema in which references can be followed.
#[derive(Debug)]
pub struct Described {
    root: Value,
}

/// A word that a key can hold, or a kind of table, and what it means.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Word {
    /// The word.
    pub name: String,
    /// What it means.
    #[serde(rename = "description")]
    pub summary: String,
}

/// A kind of table.
#[derive(Clone, Debug, Serialize)]
pub struct Kind {
    /// What `kind` holds.
    #[serde(skip)]
    pub name: String,
    /// What it is.
    pub summary: String,
    /// Its other keys.
    pub parameters: Vec<Parameter>,
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// The key.
    pub name: String,
    /// What it means.
    pub description: String,
    /// What may stand there, in words.
    #[serde(rename = "type")]
    pub form: String,
    /// Whether it has no default.
    pub required: bool,
    /// What it is where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The words that may stand there, if it takes words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
}

impl Described {
    /// The schema of this type.
    pub fn of<T: JsonSchema>() -> Self {
        Self {
            root: schema_of::<T>(),
        }
    }

    /// The keys of the described type, a plain table.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.parameters_of(&self.root)
    }

    /// The kinds of the described type, a table with `kind`.
    pub fn kinds(&self) -> Vec<Kind> {
        let kind = |schema: &Value| Kind {
            name: text(&schema["properties"]["kind"]["const"]),
            summary: text(&schema["description"]),
            parameters: self.parameters_of(schema),
        };
        list(&self.root["oneOf"]).iter().map(kind).collect()
    }

    /// The quantities that the type uses: types that are text with a form of its own.
    pub fn quantities(&self) -> Vec<Word> {
        let definitions = self.root["$defs"].as_object().into_iter().flatten();
        let quantities = definitions.filter(|(_, schema)| schema.get("examples").is_some());
        let word = |(name, schema): (&String, &Value)| Word {
            name: name.clone(),
            summary: text(&schema["description"]),
        };
        quantities.map(word).collect()
    }

    fn parameters_of(&self, table: &Value) -> Vec<Parameter> {
        let required = list(&table["required"]);
        let Some(properties) = table["properties"].as_object() else {
            return Vec::new();
        };
        let properties = properties.iter().filter(|(name, _)| *name != "kind");
        let parameter = |(name, schema): (&String, &Value)| Parameter {
            name: name.clone(),
            description: text(&schema["description"]),
            form: self.form(schema),
            required: required.iter().any(|key| key == name),
            default: schema.get("default").cloned(),
            words: self.words(schema),
        };
        properties.map(parameter).collect()
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let pointer = reference.trim_start_matches('#');
                self.root
                    .pointer(pointer)
                    .expect("a schema refers to what it defines")
            }
            None => schema,
        }
    }

    /// The words that may stand in a key, or in the list that it holds.
    fn words(&self, schema: &Value) -> Vec<Word> {
        let schema = self.resolve(schema);
        // A list of words takes the words of its elements.
        let schema = schema
            .get("items")
            .map_or(schema, |items| self.resolve(items));
        // A word that stands for a kind means what the kind means.
        let kinds = list(&schema["anyOf"])
            .iter()
            .find(|it| it["oneOf"].is_array());
        let word = |choice: &Value| match kinds {
            Some(_) => choice["properties"]["kind"]["const"]
                .as_str()
                .map(str::to_owned),
            None => choice["const"].as_str().map(str::to_owned),
        };
        let choices = list(&kinds.unwrap_or(schema)["oneOf"]).iter();
        let words = choices.filter_map(|choice| {
            let name = word(choice)?;
            Some(Word {
                name,
                summary: text(&choice["description"]),
            })
        });
        words.collect()
    }

    /// What may stand in a key.
    fn form(&self, schema: &Value) -> String {
        let schema = self.resolve(schema);
        if let Some(example) = list(&schema["examples"]).first() {
            return format!("text such as {example}");
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            // What has an example is a quantity, which is no name.
            let has_quantity = choices
                .iter()
                .any(|choice| self.resolve(choice)["examples"].is_array());
            let forms: Vec<_> = choices.iter().map(|choice| self.form(choice)).collect();
            let has_table = forms.iter().any(|form| form == "table");
            return match has_table && !has_quantity {
                true => "name or table".to_owned(),
                false => forms.join(" or "),
            };
        }
        if let Some(first) = list(&schema["oneOf"]).first() {
            return if first["const"].is_string() {
                "word"
            } else {
                "table"
            }
            .to_owned();
        }
        match schema["type"].as_str() {
            Some("integer") => return "whole number".to_owned() + &range(schema),
            Some("number") => return "number".to_owned() + &range(schema),
            Some("boolean") => "true or false",
            Some("string") => "text",
            Some("array") => "list",
            Some("object") => "table",
            Some(other) => other,
            None => "anything",
        }
        .to_owned()
    }
}

/// The bounds of a number, in words.
fn range(schema: &Value) -> String {
    let bound = |key: &str| schema[key].as_f64();
    let low = bound("minimum").map(|low| format!("from {low}"));
    let low = low.or_else(|| bound("exclusiveMinimum").map(|low| format!("above {low}")));
    let high = bound("maximum").map(|high| format!("up to {high}"));
    let high = high.or_else(|| bound("exclusiveMaximum").map(|high| format!("below {high}")));
    let bounds: Vec<_> = [low, high].into_iter().flatten().collect();
    match bounds.as_slice() {
        [] => String::new(),
        bounds => format!(" {}", bounds.join(" ")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
