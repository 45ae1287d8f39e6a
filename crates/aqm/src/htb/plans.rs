//! How a tree is written: nodes and plans by name, and the nodes and leaves that they stand for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Rate};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

use super::notes;
use super::tree::{Allowance, LEVELS, Shape};
use crate::check::{Problem, problem};
use crate::leaf::Leaf;
use aqmlab_declare::tagged::{self, Located};

/// Tables by name, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<V>(pub Vec<(String, V)>);

impl<V> Default for Named<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: DeserializeOwned> Deserialize<'de> for Named<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = tagged::table(deserializer)?;
        let read = |(name, value): (String, Value)| {
            let value = tagged::from_value(value);
            let value = value.map_err(|error: Located| error.under(&name).pass())?;
            Ok((name, value))
        };
        table
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl<V: Serialize> Serialize for Named<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<V: schemars::JsonSchema> schemars::JsonSchema for Named<V> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}s", V::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    #[inline]
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<V>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// A node of the tree, or several nodes of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Parent node. Default: the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Number of nodes, named NAME-1, NAME-2 and so on. aqmlab assigns them to the parents in turn.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// Assured rate, or "fit": the rate of the parent, shared among its children in proportion to
    /// their ceilings.
    #[serde(default)]
    pub rate: Assured,
    /// Ceiling: maximum rate of the node.
    pub ceil: Rate,
    /// Burst of this node, instead of the burst of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
}

/// Subscribers with the same plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Parent node, or several nodes over which the subscribers are spread in turn. Default: the
    /// link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Number of subscribers.
    #[serde(default = "one")]
    pub count: u32,
    /// Number of client hosts of each subscriber.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub hosts: u32,
    /// Assured rate, or "fit": the rate of the parent, shared among its children in proportion to
    /// their ceilings.
    #[serde(default)]
    pub rate: Assured,
    /// Ceiling: maximum rate of a subscriber.
    pub ceil: Rate,
    /// Priority for borrowed capacity, 0 to 7. Lower numbers borrow first.
    #[serde(default = "usual_priority", skip_serializing_if = "is_usual_priority")]
    pub prio: u8,
    /// Quantum of this plan, instead of the quantum of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Quantum>,
    /// Burst of this plan, instead of the burst of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// Leaf of this plan, instead of the leaf of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<Leaf>,
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

const fn usual_priority() -> u8 {
    3
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_usual_priority(priority: &u8) -> bool {
    *priority == 3
}

/// Values that are a word or a quantity, written as strings.
macro_rules! word_or {
    ($name:ident, $schema:literal) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            #[inline]
            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $schema })
            }
        }
    };
}

/// An assured rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assured {
    /// The parent's in proportion to the ceilings of its children, at most the ceiling.
    #[default]
    Fit,
    /// A rate.
    Stated(Rate),
}

word_or!(Assured, "A rate, or \"fit\".");

impl FromStr for Assured {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fit" => Ok(Self::Fit),
            rate => match rate.parse() {
                Ok(rate) => Ok(Self::Stated(rate)),
                Err(error) => Err(format!("{error}, or \"fit\"")),
            },
        }
    }
}

impl fmt::Display for Assured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fit => f.write_str("fit"),
            Self::Stated(rate) => rate.fmt(f),
        }
    }
}

/// What a turn adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantum {
    /// So many bytes.
    Stated(Bytes),
    /// A tenth of the assured rate per second, 1000 to 200000 bytes: Linux's.
    Linux,
    /// By the ceiling, so that the link's is at most 60000 bytes; at least 1522.
    Plan,
}

word_or!(Quantum, "An amount of data, \"linux\" or \"plan\".");

impl Default for Quantum {
    fn default() -> Self {
        Self::Stated(Bytes(1514))
    }
}

impl FromStr for Quantum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "linux" => Ok(Self::Linux),
            "plan" => Ok(Self::Plan),
            bytes => match bytes.parse() {
                Ok(bytes) => Ok(Self::Stated(bytes)),
                Err(error) => Err(format!("{error}, or \"linux\" or \"plan\"")),
            },
        }
    }
}

impl fmt::Display for Quantum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stated(bytes) => bytes.fmt(f),
            Self::Linux => f.write_str("linux"),
            Self::Plan => f.write_str("plan"),
        }
    }
}

impl Quantum {
    fn check(self, field: &str) -> Result<(), Problem> {
        match self {
            Self::Stated(Bytes(0)) => problem(field, "found 0 bytes; it must be at least 1 byte"),
            _ => Ok(()),
        }
    }

    pub(super) fn bytes(self, rate: u64, ceil: u64, link: u64) -> u32 {
        const LARGEST: u64 = 60_000;
        match self {
            Self::Stated(bytes) => bytes.0.clamp(1, 1 << 30) as u32,
            Self::Linux => (rate / 10).clamp(1000, 200_000) as u32,
            Self::Plan => {
                let divisor = link.div_ceil(LARGEST).max(10);
                (ceil / divisor).max(1522) as u32
            }
        }
    }
}

/// What a tree is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    pub(super) nodes: &'a Named<Node>,
    pub(super) plans: &'a Named<Plan>,
    pub(super) burst: Bytes,
    pub(super) quantum: Quantum,
    pub(super) unknown: &'a str,
    pub(super) strict: bool,
}

/// A leaf: its node, the plan that it is of, and its hosts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Subscriber {
    pub(super) node: u32,
    pub(super) plan: u32,
    pub(super) hosts: u32,
    pub(super) ceil: Rate,
}

/// The nodes and leaves that nodes and plans stand for.
#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) shapes: Vec<Shape>,
    /// The names of nodes and leaves.
    pub(super) names: Vec<String>,
    pub(super) subscribers: Vec<Subscriber>,
    /// The leaf of hosts that no plan has.
    pub(super) unknown: Option<u32>,
}

/// A node or leaf before its assured rate is known.
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) rate: Assured,
    pub(super) ceil: Rate,
    burst: Bytes,
    /// Its place among the plans, if it is a leaf.
    pub(super) plan: Option<usize>,
}

const DEEPEST: usize = LEVELS - 1;

/// Draws the tree: a name may stand for several nodes.
pub(super) struct Drawing {
    pub(super) drawn: Vec<Drawn>,
    pub(super) names: HashMap<String, Vec<usize>>,
}

pub(super) fn drawing(params: &Network<'_>) -> Result<Drawing, Problem> {
    let mut drawing = Drawing {
        drawn: Vec::new(),
        names: HashMap::new(),
    };
    let nodes = &params.nodes.0;
    let mut left: Vec<&(String, Node)> = nodes.iter().collect();
    // Parents first, else in the order of the file.
    while !left.is_empty() {
        let mut later = Vec::new();
        let before = left.len();
        for entry in left {
            let (name, node) = entry;
            match &node.parent {
                Some(parent) if !drawing.names.contains_key(parent) => later.push(entry),
                _ => drawing.add_node(params, name, node)?,
            }
        }
        if later.len() == before {
            return Err(lost(nodes, later[0]));
        }
        left = later;
    }
    for (place, (name, plan)) in params.plans.0.iter().enumerate() {
        drawing.add_plan(params, name, (place, plan), plan.count)?;
    }
    Ok(drawing)
}

/// Why a node is never reached: its parent is unknown, or its own descendant.
fn lost(nodes: &[(String, Node)], (name, node): &(String, Node)) -> Problem {
    let field = format!("nodes.{name}.parent");
    let parent = node.parent.as_deref().unwrap_or_default();
    let known = |wanted: &str| {
        nodes.iter().any(|(name, node)| {
            let member = wanted
                .strip_prefix(name.as_str())
                .and_then(|rest| rest.strip_prefix('-'));
            let member = member.and_then(|number| number.parse::<u32>().ok());
            name == wanted || member.is_some_and(|number| (1..=node.count).contains(&number))
        })
    };
    if known(parent) {
        (
            field,
            format!("found {parent}; it is below {name} itself, or below such a circle"),
        )
    } else {
        (field, format!("found {parent}; no node has this name"))
    }
}

impl Drawing {
    fn add_node(&mut self, params: &Network<'_>, name: &str, node: &Node) -> Result<(), Problem> {
        let field = |key: &str| format!("nodes.{name}.{key}");
        if node.count == 0 {
            return Err((field("count"), "found 0; it must be at least 1".to_owned()));
        }
        let parents = self.parents(node.parent.as_deref());
        let burst = node.burst.unwrap_or(params.burst);
        let first = self.drawn.len();
        for number in 0..node.count as usize {
            let parent = parents
                .as_ref()
                .map(|parents| parents[number % parents.len()]);
            if parent.map_or(0, |parent| self.depth(parent)) >= DEEPEST {
                let message = format!(
                    "found a depth above {DEEPEST}; a tree has at most {DEEPEST} nodes above a leaf"
                );
                return Err((field("parent"), message));
            }
            self.drawn.push(Drawn {
                name: numbered(name, number, node.count),
                parent,
                rate: node.rate,
                ceil: node.ceil,
                burst,
                plan: None,
            });
        }
        let members = (first..self.drawn.len()).collect::<Vec<_>>();
        if node.count > 1 {
            for (number, member) in members.iter().enumerate() {
                self.name(name, &numbered(name, number, node.count), vec![*member])?;
            }
        }
        self.name(name, name, members)
    }

    fn name(&mut self, field: &str, name: &str, members: Vec<usize>) -> Result<(), Problem> {
        match self.names.insert(name.to_owned(), members) {
            None => Ok(()),
            Some(_) => problem(
                &format!("nodes.{field}"),
                format!("found two nodes of the name {name}"),
            ),
        }
    }

    fn parents(&self, parent: Option<&str>) -> Option<Vec<usize>> {
        parent.map(|parent| self.names[parent].clone())
    }

    /// Nodes from this one up to the link.
    fn depth(&self, node: usize) -> usize {
        1 + self.drawn[node]
            .parent
            .map_or(0, |parent| self.depth(parent))
    }

    fn add_plan(
        &mut self,
        params: &Network<'_>,
        name: &str,
        (place, plan): (usize, &Plan),
        count: u32,
    ) -> Result<(), Problem> {
        if let Some(parent) = &plan.parent
            && !self.names.contains_key(parent)
        {
            let field = format!("plans.{name}.parent");
            return problem(&field, format!("found {parent}; no node has this name"));
        }
        let parents = self.parents(plan.parent.as_deref());
        for number in 0..count as usize {
            self.drawn.push(Drawn {
                name: numbered(name, number, plan.count),
                parent: parents
                    .as_ref()
                    .map(|parents| parents[number % parents.len()]),
                rate: plan.rate,
                ceil: plan.ceil,
                burst: plan.burst.unwrap_or(params.burst),
                plan: Some(place),
            });
        }
        Ok(())
    }

    /// Assured rates in bytes per second, of a link.
    pub(super) fn rates(&self, link: u64) -> Vec<u64> {
        let mut sums = vec![0_u128; self.drawn.len() + 1];
        let above = |parent: Option<usize>| parent.map_or(0, |parent| parent + 1);
        for drawn in &self.drawn {
            sums[above(drawn.parent)] += u128::from(bytes(drawn.ceil));
        }
        let mut rates: Vec<u64> = Vec::with_capacity(self.drawn.len());
        for drawn in &self.drawn {
            rates.push(match drawn.rate {
                Assured::Stated(rate) => bytes(rate),
                Assured::Fit => {
                    let parent = drawn.parent.map_or(link, |parent| rates[parent]);
                    let ceil = u128::from(bytes(drawn.ceil));
                    let share = u128::from(parent) * ceil / sums[above(drawn.parent)].max(1);
                    share.min(ceil).max(1) as u64
                }
            });
        }
        rates
    }
}

/// The name of a node or subscriber of those of a name.
fn numbered(name: &str, number: usize, count: u32) -> String {
    match count {
        1 => name.to_owned(),
        _ => format!("{name}-{}", number + 1),
    }
}

pub(super) const fn bytes(rate: Rate) -> u64 {
    rate.bps() / 8
}

/// The tree before a link.
pub(super) fn build(params: &Network<'_>, link: Rate) -> Result<Built, Problem> {
    let mut drawing = drawing(params)?;
    let known = drawing.drawn.len();
    if let Some(place) = named(params, params.unknown) {
        let (name, plan) = &params.plans.0[place];
        drawing.add_plan(params, name, (place, plan), 1)?;
    }
    let rates = drawing.rates(bytes(link));
    let mut built = Built::default();
    for (number, (drawn, rate)) in drawing.drawn.iter().zip(&rates).enumerate() {
        let allowance = |bytes_per_second| Allowance {
            bytes_per_second,
            burst: drawn.burst,
        };
        let ceil = bytes(drawn.ceil);
        let leaf = drawn.plan.map(|place| {
            let (_, plan) = &params.plans.0[place];
            let quantum = plan.quantum.unwrap_or(params.quantum);
            built.subscribers.push(Subscriber {
                node: number as u32,
                plan: place as u32,
                hosts: plan.hosts,
                ceil: drawn.ceil,
            });
            (quantum.bytes(*rate, ceil, bytes(link)), plan.prio)
        });
        built.shapes.push(Shape {
            parent: drawn.parent.map(|parent| parent as u32),
            rate: allowance(*rate),
            ceil: allowance(ceil),
            leaf,
        });
    }
    built.names = drawing.drawn.into_iter().map(|drawn| drawn.name).collect();
    if built.names.len() > known {
        built.names[known] = "unknown".to_owned();
        built.unknown = Some(built.subscribers.len() as u32 - 1);
    }
    Ok(built)
}

fn named(params: &Network<'_>, name: &str) -> Option<usize> {
    params.plans.0.iter().position(|(plan, _)| plan == name)
}

/// Most nodes, subscribers and hosts of an entry: more would fill the memory.
const MOST: u64 = 1_000_000;

/// Refuses an entry that stands for too many.
fn few(field: &str, key: &str, count: u64) -> Result<(), Problem> {
    if count <= MOST {
        return Ok(());
    }
    let message = format!("found {count}; it must be at most {MOST}");
    problem(&format!("{field}.{key}"), message)
}

/// Refuses trees that cannot be.
pub(super) fn check(params: &Network<'_>) -> Result<(), Problem> {
    const LEAST: u64 = 8_000;
    let rates = |field: &str, rate: Assured, ceil: Rate| {
        if ceil.bps() < LEAST {
            return problem(
                &format!("{field}.ceil"),
                format!("found {ceil}; it must be at least 8 kbit/s"),
            );
        }
        match rate {
            Assured::Stated(rate) if rate.bps() < LEAST => problem(
                &format!("{field}.rate"),
                format!("found {rate}; it must be at least 8 kbit/s"),
            ),
            Assured::Stated(rate) if ceil < rate => problem(
                &format!("{field}.ceil"),
                format!("found {ceil}; it must be at least rate, {rate}"),
            ),
            _ => Ok(()),
        }
    };
    for (name, node) in &params.nodes.0 {
        let field = format!("nodes.{name}");
        rates(&field, node.rate, node.ceil)?;
        few(&field, "count", node.count.into())?;
    }
    if params.plans.0.is_empty() {
        return problem(
            "plans",
            "found none; a tree has at least one plan, with count and ceil",
        );
    }
    for (name, plan) in &params.plans.0 {
        let field = format!("plans.{name}");
        rates(&field, plan.rate, plan.ceil)?;
        for (key, count) in [("count", plan.count), ("hosts", plan.hosts)] {
            if count == 0 {
                return problem(&format!("{field}.{key}"), "found 0; it must be at least 1");
            }
            few(&field, key, count.into())?;
        }
        if let Some(quantum) = plan.quantum {
            quantum.check(&format!("{field}.quantum"))?;
        }
        if plan.prio > 7 {
            let message = format!("found {}; it must be 0 to 7", plan.prio);
            return problem(&format!("{field}.prio"), message);
        }
        if let Some(leaf) = &plan.leaf {
            leaf.check(&format!("{field}.leaf"))?;
        }
    }
    let hosts = |plan: &Plan| u64::from(plan.count) * u64::from(plan.hosts);
    let all: u64 = params.plans.0.iter().map(|(_, plan)| hosts(plan)).sum();
    if all > MOST {
        let message = format!("found {all} hosts; the plans have at most {MOST}");
        return problem("plans", message);
    }
    params.quantum.check("quantum")?;
    let unknown = params.unknown;
    if !["pass", "drop"].contains(&unknown) && named(params, unknown).is_none() {
        let message =
            format!("found {unknown}; it must be \"pass\", \"drop\" or the name of a plan");
        return problem("unknown", message);
    }
    let drawing = drawing(params)?;
    match params.strict {
        true => notes::refuse_over_subscribed(params, &drawing),
        false => Ok(()),
    }
}
