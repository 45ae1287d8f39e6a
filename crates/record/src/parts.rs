//! What nodes and plans of a tree of rates did, from what was counted of its subscribers.

use aqmlab_aqm::{Held, Parts, SubscriberPart, Tally};

use crate::delays::{DelayHistogram, Transit};

/// A subscriber with its names.
#[derive(Clone, Copy, Debug)]
pub struct SubscriberRow<'a> {
    /// Its number, in the order of the plans.
    pub number: u32,
    /// Its plan.
    pub plan: &'a str,
    /// The node above it; empty: the link.
    pub node: &'a str,
    /// What was counted of it.
    pub part: &'a SubscriberPart,
}

impl<'a> SubscriberRow<'a> {
    pub(crate) fn all(parts: &'a Parts) -> impl Iterator<Item = Self> {
        parts.subscribers.iter().zip(0..).map(|(part, number)| {
            let (plan, node) = parts.cells[usize::from(part.cell)];
            Self {
                number,
                plan: &parts.plans[plan as usize],
                node: node.map_or("", |node| &parts.nodes[node as usize].name),
                part,
            }
        })
    }
}

/// What the subscribers of a part did together.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartSum {
    pub(crate) subscribers: u64,
    /// Subscribers of which a packet left.
    pub(crate) active: u64,
    pub(crate) tally: Tally,
    /// Squares of bytes.
    squares: f64,
    pub(crate) delays: DelayHistogram,
    /// How long its subscribers were held, all together.
    pub(crate) held: Held,
}

impl PartSum {
    fn add(&mut self, tally: Tally, held: Held) {
        self.subscribers += 1;
        self.active += u64::from(tally.packets > 0);
        self.tally.add(tally);
        self.squares += (tally.bytes as f64).powi(2);
        self.held.at_ceiling += held.at_ceiling;
        self.held.borrowing += held.borrowing;
    }

    /// Jain's index of those that got something.
    pub(crate) fn jain(&self) -> Option<f64> {
        let sum = self.tally.bytes as f64;
        (self.active > 0).then(|| sum * sum / (self.active as f64 * self.squares))
    }
}

/// The sums of parts, of which `of` names those of a cell; `transits` are what passed, by cell.
fn sums<'a, I: IntoIterator<Item = u32>>(
    parts: &Parts,
    transits: impl Iterator<Item = (usize, &'a Transit)>,
    count: usize,
    of: impl Fn(usize) -> I,
) -> Vec<PartSum> {
    let mut sums = vec![PartSum::default(); count];
    for subscriber in &parts.subscribers {
        for part in of(subscriber.cell.into()) {
            sums[part as usize].add(subscriber.tally, subscriber.held);
        }
    }
    for (cell, transit) in transits {
        for part in of(cell) {
            sums[part as usize].delays.merge(&transit.delays);
        }
    }
    sums
}

/// The nodes: each is held itself.
pub(crate) fn by_node<'a>(
    parts: &Parts,
    transits: impl Iterator<Item = (usize, &'a Transit)>,
) -> Vec<PartSum> {
    let above = |node: &u32| parts.nodes[*node as usize].parent;
    let of = |cell: usize| std::iter::successors(parts.cells[cell].1, above);
    let mut sums = sums(parts, transits, parts.nodes.len(), of);
    for (sum, node) in sums.iter_mut().zip(&parts.nodes) {
        sum.held = node.held;
    }
    sums
}

/// The plans.
pub(crate) fn by_plan<'a>(
    parts: &Parts,
    transits: impl Iterator<Item = (usize, &'a Transit)>,
) -> Vec<PartSum> {
    let of = |cell: usize| Some(parts.cells[cell].0);
    sums(parts, transits, parts.plans.len(), of)
}
