//! The heads of the pages about disciplines, congestion controls and traffic models, made from what
//! each says of itself.

use aqmlab_aqm::{Discipline, Preset};
use aqmlab_declare::About;
use aqmlab_tcp::CongestionControlKind;
use aqmlab_traffic::Model;
use schemars::JsonSchema;

use crate::scenario::parameters;
use aqmlab_declare::schema::{Described, Kind};

/// What stands between the head of a page, which is generated, and the rest, which is not.
pub(crate) const BY_HAND: &str =
    "<!-- Above: generated from the code. Below: written by hand. -->\n";

/// A folder below docs, and the generated head of each page in it by the page's name.
pub(crate) type Folder = (&'static str, Vec<(String, String)>);

/// The generated heads of the pages about kinds of things.
pub(crate) fn all() -> [Folder; 3] {
    let presets = Discipline::presets();
    [
        (
            "disciplines",
            heads::<Discipline>(Discipline::ABOUT, &presets),
        ),
        (
            "congestion-controls",
            heads::<CongestionControlKind>(CongestionControlKind::ABOUT, &[]),
        ),
        ("traffic", traffic_heads()),
    ]
}

/// The kinds of a registry and the heads of their pages.
fn heads<T: JsonSchema>(about: &[&About], presets: &[Preset]) -> Vec<(String, String)> {
    let kinds = Described::of::<T>().kinds();
    let described = kinds.into_iter().zip(about);
    let heads = described.map(|(kind, about)| {
        let text = head(&kind, about, presets);
        (kind.name, text)
    });
    heads.collect()
}

/// The traffic models and the heads of their pages, which have an example.
fn traffic_heads() -> Vec<(String, String)> {
    let kinds = Described::of::<Model>().kinds();
    let described = kinds.into_iter().zip(Model::ABOUT).zip(Model::examples());
    let heads = described.map(|((kind, about), example)| {
        let example = format!("\n## Example\n\n```toml\n{example}```\n\n{BY_HAND}");
        let text = head(&kind, about, &[]).replace(&format!("\n{BY_HAND}"), &example);
        (kind.name, text)
    });
    heads.collect()
}

fn head(kind: &Kind, about: &About, presets: &[Preset]) -> String {
    let About {
        title,
        paper,
        purpose,
        departures,
        memory,
    } = about;
    let name = &kind.name;
    let mut page =
        format!("# {title} (`{name}`)\n\n{purpose}\n\nSource: {paper}.\n\nMemory: {memory}.\n");
    if !kind.parameters.is_empty() {
        page += "\n## Parameters\n\n";
        parameters(&mut page, &kind.parameters);
    }
    let mut own = presets
        .iter()
        .filter(|preset| preset.discipline["kind"].as_str() == Some(name))
        .peekable();
    if own.peek().is_some() {
        page +=
            "\n## Presets\n\n| name | what it is | beside the defaults |\n| --- | --- | --- |\n";
    }
    for preset in own {
        let values = preset.discipline.iter().filter(|(key, _)| *key != "kind");
        let values: Vec<_> = values
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        page += &format!(
            "| `{}` | {} | `{}` |\n",
            preset.name,
            preset.about,
            values.join(", ")
        );
    }
    if !departures.is_empty() {
        page += "\n## Departures from the source\n\n";
    }
    for departure in *departures {
        page += &format!("- {departure}\n");
    }
    page + "\n" + BY_HAND
}
