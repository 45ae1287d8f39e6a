//! What a scenario can say, as data: for `aqmlab list` and `aqmlab explain`.

use aqmlab_aqm::Discipline;
use aqmlab_plugin::Role;
use aqmlab_tcp::{CongestionControlKind, Profile};
use aqmlab_traffic::{Model, Rtt, Sizes};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::traffic::Common;
use crate::transport::ABOUT;
use crate::{Quic, Quinn};
use aqmlab_declare::About;
use aqmlab_declare::schema::{Described, Kind, Parameter};

/// Makes the entries of a section.
type Entries = fn() -> Map<String, Value>;

/// Everything that a scenario can name, by section and name.
///
/// Each entry has a `summary`, and `parameters` with `name`, `description` and, of a kind of table,
/// `type`, `required`, `default` and `words`; of a profile, `value` and, where its file has a
/// comment, `note`; `live` says whether the live bed carries a key out. A transport is called by its
/// key and word, such as `recovery.reno`. Disciplines, congestion controls and traffic models also
/// say `about` themselves where they come from, and a traffic model has an `example`. All of it comes
/// from the schema and from the profiles' own files.
pub fn catalog() -> Value {
    catalog_of(None)
}

/// The catalogue, or one section of it alone: a schema takes a millisecond.
pub fn catalog_of(only: Option<&str>) -> Value {
    let sections: [(&str, Entries); 8] = [
        ("disciplines", || {
            registered::<Discipline>(Discipline::ABOUT)
        }),
        ("presets", presets),
        ("transports", transports),
        ("profiles", profiles),
        ("traffic", traffic),
        ("rtt", kinds::<Rtt>),
        ("sizes", kinds::<Sizes>),
        ("plugins", || by_name(plugins())),
    ];
    sections
        .into_iter()
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
        .map(|(name, entries)| (name.to_owned(), Value::Object(entries())))
        .collect()
}

/// Entries by their names.
fn by_name(entries: Vec<Value>) -> Map<String, Value> {
    let name = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
    entries
        .into_iter()
        .map(|entry| (name(&entry), entry))
        .collect()
}

fn kinds<T: JsonSchema>() -> Map<String, Value> {
    let kinds = Described::of::<T>().kinds().into_iter();
    kinds.map(|kind| (kind.name.clone(), json!(kind))).collect()
}

/// What a name stands for already, if it is that of an algorithm or a preset of this program.
pub fn built_in(name: &str) -> Option<&'static str> {
    let is_it = |other: &str| other.eq_ignore_ascii_case(name);
    let has = |kinds: Vec<Kind>| kinds.iter().any(|kind| is_it(&kind.name));
    if has(Described::of::<Discipline>().kinds()) {
        Some("a built-in queue discipline")
    } else if has(Described::of::<CongestionControlKind>().kinds()) {
        Some("a built-in congestion control")
    } else if Discipline::presets()
        .iter()
        .any(|preset| is_it(&preset.name))
    {
        Some("a preset of a built-in queue discipline")
    } else {
        None
    }
}

/// What the plug-ins that are loaded declare.
///
/// Each has its `kind` (`discipline` or `control`), `name` and `sha256`, and what an entry of
/// [`catalog`] has.
pub fn plugins() -> Vec<Value> {
    let entries = aqmlab_plugin::registered().into_iter().map(|plugin| {
        let parameters = plugin.parameters().map(|field| Parameter {
            name: field.name.to_owned(),
            description: field.meaning.to_owned(),
            form: field.form.words().to_owned(),
            required: field.role == Role::Required,
            default: match field.role {
                Role::Optional(value) => serde_json::to_value(field.form.toml(value)).ok(),
                _ => None,
            },
            words: Vec::new(),
        });
        json!({
            "kind": plugin.kind().word(),
            "name": plugin.name,
            "summary": plugin.purpose,
            "parameters": parameters.collect::<Vec<_>>(),
            "sha256": plugin.sha256,
        })
    });
    entries.collect()
}

/// The kinds of a registry, with what each says of itself.
fn registered<T: JsonSchema>(about: &[&About]) -> Map<String, Value> {
    let kinds = Described::of::<T>().kinds();
    let described = kinds.into_iter().zip(about);
    let entries = described.map(|(kind, about)| {
        let mut entry = json!(kind);
        entry["about"] = json!(about);
        (kind.name, entry)
    });
    entries.collect()
}

/// The traffic models, with what each says of itself and a small class of each.
fn traffic() -> Map<String, Value> {
    let kinds = Described::of::<Model>().kinds();
    let described = kinds.into_iter().zip(Model::ABOUT).zip(Model::examples());
    let entries = described.map(|((kind, about), example)| {
        let mut entry = json!(kind);
        entry["about"] = json!(about);
        entry["example"] = json!(example);
        (kind.name, entry)
    });
    entries.collect()
}

/// Disciplines with the parameters of a paper.
fn presets() -> Map<String, Value> {
    let kinds = Described::of::<Discipline>().kinds();
    let entries = Discipline::presets().into_iter().map(|preset| {
        let kind = preset.discipline["kind"].as_str().unwrap_or_default();
        let keys = kinds.iter().find(|described| described.name == kind);
        let described = keys.map_or(&[][..], |kind| &kind.parameters);
        let values = preset.discipline.iter().map(|(name, value)| {
            let key = described.iter().find(|key| key.name == *name);
            let description = match name.as_str() {
                "kind" => "The discipline.",
                _ => key.map_or("", |key| key.description.as_str()),
            };
            json!({ "name": name, "value": value, "description": description })
        });
        let parameters: Vec<_> = values.collect();
        let entry = json!({ "summary": preset.about, "parameters": parameters });
        (preset.name, entry)
    });
    entries.collect()
}

/// The keys of a profile that the live bed carries out: what a kernel can be set to. In all others a
/// profile must agree with the kernel's own.
pub const LIVE_KEYS: [&str; 13] = [
    "congestion_control",
    "recovery",
    "ecn",
    "mss",
    "header",
    "syn_header",
    "send_buffer",
    "receive_buffer",
    "initial_window",
    "restart_after_idle",
    "syn_backoff",
    "timestamps",
    "sack_compression",
];

/// The transports, and of TCP the choices of loss recovery and of congestion control.
fn transports() -> Map<String, Value> {
    let keys = profile_keys();
    let recovery = keys.into_iter().find(|key| key.name == "recovery");
    let recovery = recovery.map_or_else(Vec::new, |key| key.words);
    let recovery = recovery.into_iter().map(|word| {
        let entry = json!({ "summary": word.summary, "parameters": [] });
        (format!("recovery.{}", word.name), entry)
    });
    let controls = registered::<CongestionControlKind>(CongestionControlKind::ABOUT);
    let controls = controls
        .into_iter()
        .map(|(kind, entry)| (format!("congestion_control.{kind}"), entry));
    let kinds = ABOUT.into_iter().map(|(word, summary)| {
        let parameters = match word {
            "quic" => Described::of::<Quic>().parameters(),
            "quinn" => Described::of::<Quinn>().parameters(),
            _ => Vec::new(),
        };
        let entry = json!({ "summary": summary, "parameters": parameters });
        (format!("transport.{word}"), entry)
    });
    kinds.chain(recovery).chain(controls).collect()
}

/// The keys of a class of traffic, whatever its model.
pub fn class_keys() -> Vec<Parameter> {
    Described::of::<Common>().parameters()
}

/// The keys of a stack profile.
pub fn profile_keys() -> Vec<Parameter> {
    Described::of::<Profile>().parameters()
}

fn profiles() -> Map<String, Value> {
    let keys = profile_keys();
    let profiles = Profile::NAMES.iter();
    profiles
        .map(|&name| {
            let sheet = ProfileSheet::with_keys(name, keys.clone());
            (name.to_owned(), json!(sheet))
        })
        .collect()
}

/// A profile's file, as data.
#[derive(Debug, Serialize)]
pub struct ProfileSheet {
    /// The comment at its head.
    pub summary: String,
    /// Its keys.
    pub parameters: Vec<ProfileValue>,
}

/// A key of a profile.
#[derive(Debug, Serialize)]
pub struct ProfileValue {
    /// The key.
    pub name: String,
    /// What the profile has there.
    pub value: Value,
    description: String,
    /// The comment behind the value.
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    /// Whether the live bed carries it out.
    live: bool,
}

impl ProfileSheet {
    /// That of a shipped profile.
    ///
    /// # Panics
    ///
    /// If there is no such profile.
    pub fn of(name: &str) -> Self {
        Self::with_keys(name, profile_keys())
    }

    /// A shipped profile, with the keys of all profiles.
    fn with_keys(name: &str, keys: Vec<Parameter>) -> Self {
        let text = Profile::text(name).expect("only shipped profiles have a sheet");
        let head = text
            .lines()
            .map_while(|line| line.strip_prefix('#'))
            .map(str::trim);
        let values = json!(Profile::named(name));
        let keys = keys.into_iter().filter(|key| key.name != "profile");
        let parameter = |key: Parameter| ProfileValue {
            value: values[&key.name].clone(),
            note: note(text, &key.name),
            live: LIVE_KEYS.contains(&key.name.as_str()),
            name: key.name,
            description: key.description,
        };
        Self {
            summary: head.collect::<Vec<_>>().join(" "),
            parameters: keys.map(parameter).collect(),
        }
    }
}

/// The comment behind a key's value. No value of a profile contains the sign of a comment.
fn note(text: &str, key: &str) -> String {
    let is_key = |line: &&str| {
        line.split('=')
            .next()
            .is_some_and(|name| name.trim() == key)
    };
    let comment = text
        .lines()
        .find(is_key)
        .and_then(|line| line.split_once('#'));
    comment.map_or_else(String::new, |(_, note)| note.trim().to_owned())
}
