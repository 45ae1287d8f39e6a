//! The heads of the pages about disciplines, congestion controls and traffic models, made from what
//! each says of itself.

use aqmlab_aqm::{Discipline, Preset};
use aqmlab_declare::About;
use aqmlab_tcp::CongestionControlKind;
use aqmlab_traffic::Model;
use schemars::JsonSchema;

use crate::scenario::{default, keys, words};
use aqmlab_declare::schema::{Described, Kind, Parameter};

/// What stands between the head of a page, which is generated, and the rest, which is not.
pub(crate) const BY_HAND: &str = "<!-- generated until here -->\n";

/// The least number of shared parameters for which a page links to another page.
const ENOUGH_SHARED: usize = 3;

/// Memory that pages do not mention.
const LITTLE: [&str; 2] = ["nothing", "a few numbers"];

/// A folder below docs, and the generated head of each page in it by the page's name.
pub(crate) type Folder = (&'static str, Vec<(String, String)>);

/// The generated heads of the pages about kinds of things.
pub(crate) fn all() -> [Folder; 3] {
    let presets = Discipline::presets();
    [
        (
            "disciplines",
            heads::<Discipline>(Discipline::ABOUT, "Memory:", &presets),
        ),
        (
            "congestion-controls",
            heads::<CongestionControlKind>(CongestionControlKind::ABOUT, "", &[]),
        ),
        ("traffic", traffic_heads()),
    ]
}

/// The kinds of a registry and the heads of their pages.
fn heads<T: JsonSchema>(
    about: &[&About],
    stores: &str,
    presets: &[Preset],
) -> Vec<(String, String)> {
    let mut earlier = Vec::new();
    let kinds = Described::of::<T>().kinds();
    let heads = kinds.into_iter().zip(about).map(|(kind, about)| {
        let text = head(&kind, (about, stores), presets, &earlier);
        let name = kind.name.clone();
        let kind = with_rows(kind, &earlier);
        earlier.push(kind);
        (name, text)
    });
    heads.collect()
}

/// A kind with the parameters that have a row on its page.
fn with_rows(mut kind: Kind, earlier: &[Kind]) -> Kind {
    if let Some(home) = home_of_most(earlier, &kind.parameters) {
        kind.parameters.retain(|one| !home.parameters.contains(one));
    }
    kind
}

/// The traffic models and the heads of their pages, which have an example.
fn traffic_heads() -> Vec<(String, String)> {
    let kinds = Described::of::<Model>().kinds();
    let described = kinds.iter().enumerate().zip(Model::ABOUT);
    let heads = described.zip(Model::examples());
    let heads = heads.map(|(((place, kind), about), example)| {
        let example = format!("\n## Example\n\n```toml\n{example}```\n\n{BY_HAND}");
        let text = head(kind, (about, ""), &[], &kinds[..place]);
        let text = text.replace(&format!("\n{BY_HAND}"), &example);
        (kind.name.clone(), text)
    });
    heads.collect()
}

/// The head of a page. `stores` begins the sentence on memory; without it a page has none. Words
/// that a page of `earlier` explains have a link to it.
fn head(
    kind: &Kind,
    (about, stores): (&About, &str),
    presets: &[Preset],
    earlier: &[Kind],
) -> String {
    let About {
        title,
        paper,
        purpose,
        departures,
        memory,
    } = about;
    let name = &kind.name;
    let mut page = format!("# {title} (`{name}`)\n\n{purpose}\n\nSource: {paper}.\n");
    if !stores.is_empty() && !LITTLE.contains(memory) {
        page += &format!("\n{stores} {memory}.\n");
    }
    if !kind.parameters.is_empty() {
        page += "\n## Parameters\n\n";
        let home = home_of_most(earlier, &kind.parameters);
        let (shared, here): (Vec<_>, Vec<_>) = kind
            .parameters
            .iter()
            .cloned()
            .partition(|one| home.is_some_and(|home| home.parameters.contains(one)));
        if !here.is_empty() {
            keys(&mut page, &here);
        }
        if let Some(home) = home {
            if !here.is_empty() {
                page += "\n";
            }
            page += &the_same(home, &shared);
        }
        let (known, own): (Vec<_>, Vec<_>) = here
            .into_iter()
            .partition(|parameter| explained_by(earlier, parameter).is_some());
        words(&mut page, &own);
        for home in earlier {
            let here = |one: &&Parameter| explained_by(earlier, one) == Some(home.name.as_str());
            let names: Vec<_> = known
                .iter()
                .filter(here)
                .map(|one| format!("`{}`", one.name))
                .collect();
            if !names.is_empty() {
                let (home, names) = (&home.name, names.join(" and "));
                page += &format!(
                    "\n[`{home}`]({home}.md#parameters) explains the values of {names}.\n"
                );
            }
        }
    }
    let mut own = presets
        .iter()
        .filter(|preset| preset.discipline["kind"].as_str() == Some(name))
        .peekable();
    if own.peek().is_some() {
        page += "\n## Presets\n\n| name | what it is | values |\n| --- | --- | --- |\n";
    }
    for preset in own {
        let values = preset.discipline.iter().filter(|(key, _)| *key != "kind");
        let values: Vec<_> = values
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        let values = match values.as_slice() {
            [] => "the defaults".to_owned(),
            values => format!("`{}`", values.join(", ")),
        };
        page += &format!("| `{}` | {} | {values} |\n", preset.name, preset.about);
    }
    if !departures.is_empty() {
        page += "\n## Differences from the source\n\n";
    }
    for departure in *departures {
        page += &format!("- {departure}\n");
    }
    page + "\n" + BY_HAND
}

/// The first kind that shares the most parameters with these, defaults and meanings included, if it
/// shares enough for a link in place of their rows.
fn home_of_most<'a>(earlier: &'a [Kind], parameters: &[Parameter]) -> Option<&'a Kind> {
    let shared = |kind: &Kind| {
        let same = |one: &&Parameter| kind.parameters.contains(one);
        parameters.iter().filter(same).count()
    };
    let homes = earlier.iter().rev().max_by_key(|kind| shared(kind));
    homes.filter(|home| shared(home) >= ENOUGH_SHARED)
}

/// A sentence on parameters that the page of another kind explains.
fn the_same(home: &Kind, parameters: &[Parameter]) -> String {
    let list = parameters
        .iter()
        .map(|one| format!("`{}` ({})", one.name, default(one)));
    let (home, list) = (&home.name, list.collect::<Vec<_>>().join(", "));
    format!(
        "[`{home}`]({home}.md#parameters) explains these keys (defaults in parentheses): {list}.\n"
    )
}

/// The first kind that has the parameter with the same words.
fn explained_by<'a>(earlier: &'a [Kind], parameter: &Parameter) -> Option<&'a str> {
    let same = |one: &Parameter| one.name == parameter.name && one.words == parameter.words;
    let kinds = earlier.iter();
    let mut found = kinds.filter(|kind| kind.parameters.iter().any(same));
    (!parameter.words.is_empty())
        .then(|| found.next())?
        .map(|kind| kind.name.as_str())
}
