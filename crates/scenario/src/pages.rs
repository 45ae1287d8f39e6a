//! The heads of the pages of disciplines and traffic models, made from what each says of itself.

use aqmlab_aqm::{Discipline, Preset};
use aqmlab_declare::About;
use aqmlab_traffic::Model;

use crate::reference::parameters;
use aqmlab_declare::schema::{Described, Kind};

/// What stands between the head of a page, which is generated, and the rest, which is not.
pub const BY_HAND: &str = "<!-- Above: generated from the code. Below: written by hand. -->\n";

/// The kind of each discipline and the head of its page in docs/disciplines.
pub fn discipline_heads() -> Vec<(String, String)> {
    let kinds = Described::of::<Discipline>().kinds();
    let presets = Discipline::presets();
    let described = kinds.into_iter().zip(Discipline::ABOUT);
    let heads = described.map(|(kind, about)| {
        let text = head(&kind, about, &presets);
        (kind.name, text)
    });
    heads.collect()
}

/// The kind of each traffic model and the head of its page in docs/traffic.
pub fn traffic_heads() -> Vec<(String, String)> {
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
    let mut page = format!(
        "# {title} (`{name}`)\n\n{purpose}\n\nSource: {paper}.\n\nMemory: {memory}.\n\n## Parameters\n\n"
    );
    parameters(&mut page, &kind.parameters);
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
