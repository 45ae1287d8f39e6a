//! A discipline under a shaper: how it is written, and how what it drops and marks is counted.

use std::borrow::Cow;

use aqmlab_net::{Packet, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::check::{self, Problem};
use crate::context::Context;
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, LinkFacts};
use crate::queue::{Queued, Scheduler, Stats};
use crate::{AnyScheduler, Discipline};
use aqmlab_declare::tagged::{self, Located};

/// The discipline of a leaf: a preset, a kind with its defaults, or a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf(pub Box<Discipline>);

/// Where a name stands for a kind, what its required parameters are.
const LIMIT: &str = "1000 packets";

/// Why some disciplines are no leaves.
const NO_SHAPER: &str = "a leaf has no shaper of its own: the rate of its node holds it";

impl Leaf {
    /// A preset, or a kind with its defaults.
    pub(crate) fn named(name: &str) -> Result<Self, Located> {
        if ["htb", "shaper"].contains(&name) {
            return Err(Located::new(format!("found {name}; {NO_SHAPER}")));
        }
        let table = Discipline::preset(name).unwrap_or_else(|| {
            let kind = Value::from(name);
            let limit = (name == "droptail").then(|| ("limit".to_owned(), Value::from(LIMIT)));
            [("kind".to_owned(), kind)]
                .into_iter()
                .chain(limit)
                .collect()
        });
        Self::of(table)
    }

    fn of(table: Table) -> Result<Self, Located> {
        let discipline = tagged::from_value(Value::Table(table))?;
        Ok(Self(Box::new(discipline)))
    }

    fn read(value: Value) -> Result<Self, Located> {
        const PRESET: &str = "preset";
        match value {
            Value::String(name) => Self::named(&name),
            Value::Table(mut own) => match own.remove(PRESET) {
                Some(Value::String(name)) => {
                    let named = Self::named(&name).map_err(|error| error.under(PRESET))?;
                    let Ok(Value::Table(mut table)) = Value::try_from(&*named.0) else {
                        unreachable!("a discipline is a table");
                    };
                    table.extend(own);
                    Self::of(table)
                }
                Some(_) => Err(Located::new("expected the name of a preset").under(PRESET)),
                None => Self::of(own),
            },
            other => {
                let found = tagged::shown(&other);
                let right = "expected a table with a kind, or the name of a preset or kind";
                Err(Located::new(format!("found {found}; {right}")))
            }
        }
    }

    /// Refuses what holds packets back itself, and parameters that contradict each other.
    pub(crate) fn check(&self, key: &str) -> Result<(), Problem> {
        let holds = match &*self.0 {
            Discipline::Cake(cake) if cake.bandwidth.is_some() => Some("cake with a bandwidth"),
            Discipline::CakeMq(queues) if queues.cake.bandwidth.is_some() => {
                Some("cake-mq with a bandwidth")
            }
            Discipline::Shaper(_) => Some("a shaper"),
            Discipline::Htb(_) => Some("a tree"),
            _ => None,
        };
        if let Some(holds) = holds {
            return check::problem(key, format!("found {holds}; {NO_SHAPER}"));
        }
        aqmlab_declare::check::within(key, self.0.check())
    }
}

impl<'de> Deserialize<'de> for Leaf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(Located::pass)
    }
}

impl Serialize for Leaf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Not the schema of a discipline: it would contain itself.
impl JsonSchema for Leaf {
    fn schema_name() -> Cow<'static, str> {
        "Leaf".into()
    }

    fn inline_schema() -> bool {
        true
    }

    #[inline]
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A discipline: the name of a preset or of a kind, or a table.",
            "type": ["string", "object"],
        })
    }
}

/// The packet is larger than all that the shaper ever lets through at once.
pub(crate) const TOO_LARGE: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "too_large",
    meaning: "the packet was larger than the burst of the shaper",
    marks: false,
});

/// Why what has leaves can drop or mark. The places of a leaf's own reasons are taken by those of
/// others, so that they count as early or forced.
pub(crate) const REASONS: &[Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW, TOO_LARGE];

/// The reason under which a leaf's counts.
fn folded(reason: Reason) -> Reason {
    match reason.index() {
        place if place < Reason::FIRST_OWN => reason,
        _ if reason.marks() => Reason::EARLY,
        _ => Reason::FORCED,
    }
}

/// The queue of a leaf.
pub(crate) struct LeafQueue<T> {
    scheduler: Box<AnyScheduler<T>>,
}

impl<T> std::fmt::Debug for LeafQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeafQueue").finish_non_exhaustive()
    }
}

impl<T> LeafQueue<T> {
    pub(crate) fn new(leaf: &Leaf, link: LinkFacts, seed: u64) -> Self {
        Self {
            scheduler: Box::new(AnyScheduler::new(&leaf.0, link, seed)),
        }
    }

    /// A packet arrives. `scratch` is what the leaf counts in, empty before and after. Gives the
    /// packets that were dropped and marked.
    #[inline(never)]
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        (packet, item): (Packet, T),
        scratch: &mut Stats<T>,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) -> (u64, u64) {
        self.scheduler.enqueue(now, packet, item, scratch, context);
        scratch.fold_into(stats, folded)
    }

    /// The next packet, and the numbers of those that were dropped and marked.
    #[inline(never)]
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        scratch: &mut Stats<T>,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> (Option<Queued<T>>, (u64, u64)) {
        let queued = self.scheduler.dequeue(now, scratch, draw);
        (queued, scratch.fold_into(stats, folded))
    }

    pub(crate) fn as_ref(&self) -> &AnyScheduler<T> {
        &self.scheduler
    }

    pub(crate) fn as_mut(&mut self) -> &mut AnyScheduler<T> {
        &mut self.scheduler
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.scheduler.backlog()
    }
}
