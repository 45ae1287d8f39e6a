//! The tree of rates: credit of nodes, their colours, whose turn it is, what falls due. The order and the
//! times are those of Linux's `sch_htb`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Bytes, Time};

use super::ring::Ring;
use crate::bucket::{Price, credit, elapsed};
use crate::parts::{Held, Holder};

/// Levels: leaves have 0, a top node with children the highest.
pub(super) const LEVELS: usize = 8;
/// Priorities of leaves.
pub(super) const PRIORITIES: usize = 8;
/// Elapsed time and debt are cut at this many ns.
const LONGEST: i64 = 60_000_000_000;

/// What a node may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    /// It has credit of its own.
    Green,
    /// It may borrow.
    Yellow,
    /// It is at its ceiling.
    Red,
}

/// A rate and what it allows at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) bytes_per_second: u64,
    pub(super) burst: Bytes,
}

/// What a node is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The number of its parent, which is lower than its own.
    pub(super) parent: Option<u32>,
    pub(super) rate: Allowance,
    pub(super) ceil: Allowance,
    /// Of a leaf: what a turn adds, its priority. None: it has children.
    pub(super) leaf: Option<(u32, u8)>,
}

/// A price and the most credit.
#[derive(Clone, Copy, Debug)]
struct Terms {
    price: Price,
    most: i64,
}

impl Terms {
    fn new(allowance: Allowance) -> Self {
        let rate = allowance.bytes_per_second.max(1);
        Self {
            price: Price::new(rate),
            most: credit(allowance.burst, rate),
        }
    }

    /// The credit after a packet and some time.
    #[inline]
    fn charged(&self, credit: i64, passed: i64, bytes: u32) -> i64 {
        let left = (credit + passed).min(self.most) - self.price.cost(bytes);
        match left <= -LONGEST {
            true => 1 - LONGEST,
            false => left,
        }
    }
}

#[derive(Debug)]
struct Node {
    parent: Option<u32>,
    /// Its place among its siblings.
    rank: u32,
    level: u8,
    colour: Colour,
    /// Priorities in which something below it, or it itself, has packets.
    active: u8,
    rate: Terms,
    ceil: Terms,
    tokens: i64,
    ctokens: i64,
    charged: Time,
    /// Up to when `held` counts.
    seen: Time,
    /// How long packets waited for it while it was at its ceiling, and while it borrowed.
    held: [u64; 2],
    /// Of its event; those with another are stale.
    serial: u32,
    waits: bool,
    kind: Kind,
}

impl Node {
    /// Counts how long it was held since the last look: its credit grew since it was charged.
    #[inline]
    fn account(&mut self, now: Time) {
        // With credit nothing was held.
        if self.tokens.min(self.ctokens) < 0 && self.active != 0 && self.seen < now {
            let (from, to) = (elapsed(self.charged, self.seen), elapsed(self.charged, now));
            let red_until = (-self.ctokens).clamp(from, to);
            let yellow_until = (-self.tokens).clamp(red_until, to);
            self.held[0] += (red_until - from) as u64;
            self.held[1] += (yellow_until - red_until) as u64;
        }
        self.seen = now;
    }

    /// The colour after so much more time, and what is missing until the next, in ns.
    #[inline]
    fn colour_after(&self, passed: i64) -> (Colour, i64) {
        let (ctokens, tokens) = (self.ctokens + passed, self.tokens + passed);
        if ctokens < 0 {
            (Colour::Red, -ctokens)
        } else if tokens >= 0 {
            (Colour::Green, 0)
        } else {
            (Colour::Yellow, -tokens)
        }
    }
}

#[derive(Debug)]
enum Kind {
    Leaf {
        quantum: i64,
        priority: u8,
        deficits: Box<[i64; LEVELS]>,
    },
    Inner {
        children: Vec<u32>,
        /// Yellow children with packets, by priority.
        feeds: [Option<Box<Ring>>; PRIORITIES],
    },
}

/// What a leaf gave.
pub(super) enum Pulled<Q> {
    /// It had no packet.
    Empty,
    /// It had packets and gave none.
    Nothing,
    /// A packet of so many bytes, and whether it was the last.
    Packet(Q, u32, bool),
}

type Event = Reverse<(Time, u64, u32, u32)>;

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Green nodes with packets, by level and priority.
    rows: [[Option<Box<Ring>>; PRIORITIES]; LEVELS],
    /// Which of them are not empty.
    masks: [u8; LEVELS],
    /// Levels that have nodes.
    levels: u8,
    events: [BinaryHeap<Event>; LEVELS],
    /// All events of a level are at this time or later.
    due: [Time; LEVELS],
    /// Events so far: of equal times the first comes first.
    made: u64,
    release: Time,
    now: Time,
    /// Whether somebody asks who held packets.
    pub(super) watches: bool,
    /// Who held the packet that was sent last, and until when.
    last_holder: Option<(Holder, Time)>,
    /// Nothing waits for its time: all nodes of a level are looked at whenever it is reached.
    #[cfg(test)]
    pub(super) is_plain: bool,
}

impl Tree {
    /// A tree with full buckets. A parent stands before its children.
    pub(super) fn new(shapes: &[Shape]) -> Self {
        let mut nodes: Vec<Node> = Vec::with_capacity(shapes.len());
        let mut levels = 0;
        for (number, shape) in shapes.iter().enumerate() {
            let mut rank = 0;
            let mut level = LEVELS - 1;
            if let Some(parent) = shape.parent {
                let parent = &mut nodes[parent as usize];
                level = parent.level as usize - 1;
                let Kind::Inner { children, .. } = &mut parent.kind else {
                    unreachable!("a parent is no leaf");
                };
                rank = children.len() as u32;
                children.push(number as u32);
            }
            let (level, kind) = match shape.leaf {
                Some((quantum, priority)) => (
                    0,
                    Kind::Leaf {
                        quantum: i64::from(quantum),
                        priority,
                        deficits: Box::default(),
                    },
                ),
                None => (
                    level,
                    Kind::Inner {
                        children: Vec::new(),
                        feeds: Default::default(),
                    },
                ),
            };
            levels |= 1 << level;
            let (rate, ceil) = (Terms::new(shape.rate), Terms::new(shape.ceil));
            nodes.push(Node {
                parent: shape.parent,
                rank,
                level: level as u8,
                colour: Colour::Green,
                active: 0,
                tokens: rate.most,
                ctokens: ceil.most,
                rate,
                ceil,
                charged: Time::ZERO,
                seen: Time::ZERO,
                held: [0; 2],
                serial: 0,
                waits: false,
                kind,
            });
        }
        Self {
            nodes,
            rows: Default::default(),
            masks: [0; LEVELS],
            levels,
            events: Default::default(),
            due: [Time::NEVER; LEVELS],
            made: 0,
            release: Time::NEVER,
            now: Time::ZERO,
            watches: false,
            last_holder: None,
            #[cfg(test)]
            is_plain: false,
        }
    }

    /// Another rate, ceiling and quantum of a node. A full bucket stays full; else its credit stays.
    pub(super) fn set(&mut self, number: u32, shape: &Shape) {
        let node = &mut self.nodes[number as usize];
        let (rate, ceil) = (Terms::new(shape.rate), Terms::new(shape.ceil));
        if node.tokens == node.rate.most {
            node.tokens = rate.most;
        }
        if node.ctokens == node.ceil.most {
            node.ctokens = ceil.most;
        }
        (node.rate, node.ceil) = (rate, ceil);
        if let (Kind::Leaf { quantum, .. }, Some((fresh, _))) = (&mut node.kind, shape.leaf) {
            *quantum = i64::from(fresh);
        }
    }

    /// The leaf has a packet.
    #[inline]
    pub(super) fn activate(&mut self, now: Time, leaf: u32) {
        self.now = now;
        let node = &mut self.nodes[leaf as usize];
        let Kind::Leaf { priority, .. } = node.kind else {
            unreachable!("packets are in leaves");
        };
        if node.active == 0 {
            self.set_active(leaf, 1 << priority);
            self.enter(leaf);
        }
    }

    fn deactivate(&mut self, leaf: u32) {
        self.leave(leaf);
        self.set_active(leaf, 0);
    }

    /// In these priorities packets wait for a node.
    #[inline]
    fn set_active(&mut self, number: u32, active: u8) {
        let now = self.now;
        let node = &mut self.nodes[number as usize];
        node.account(now);
        node.active = active;
    }

    /// Nodes are accounted for from now on.
    pub(super) fn begin(&mut self, now: Time) {
        for node in &mut self.nodes {
            (node.seen, node.held) = (now, [0; 2]);
        }
    }

    /// How long a node has been held since then.
    pub(super) fn held(&mut self, number: u32, now: Time) -> Held {
        let node = &mut self.nodes[number as usize];
        node.account(now);
        let [at_ceiling, borrowing] = node.held.map(Time::from_nanos);
        Held {
            at_ceiling,
            borrowing,
        }
    }

    /// Who held the packet that was sent last, and until when.
    pub(super) const fn last_holder(&self) -> Option<(Holder, Time)> {
        self.last_holder
    }

    /// Who kept a leaf from sending at this level: the node on its way to the level whose
    /// credit came last. A leaf that waited for its assured rate could not borrow: then it is the next
    /// node above it that is at its ceiling.
    fn holder(&self, leaf: u32, level: usize, now: Time) -> Option<(Holder, Time)> {
        let mut last: Option<(Holder, Time)> = None;
        let (mut next, mut is_above) = (Some(leaf), false);
        while let Some(number) = next {
            let node = &self.nodes[number as usize];
            next = node.parent;
            let by_rate = node.tokens < node.ctokens;
            if is_above {
                // The last one was too slow by itself: who would have lent to it?
                let missing = -(node.ctokens + elapsed(node.charged, now).min(LONGEST));
                if missing > 0 {
                    return last.map(|(_, until)| (Holder::ceiling(number), until));
                }
                continue;
            }
            is_above = node.level as usize >= level;
            let credit = match is_above && by_rate {
                true => node.tokens,
                false => node.ctokens,
            };
            if credit < 0 {
                let until = node.charged + Time::from_nanos(credit.unsigned_abs());
                if last.is_none_or(|(_, before)| until >= before) {
                    let holder = match is_above && by_rate {
                        true => Holder::rate(number),
                        false => Holder::ceiling(number),
                    };
                    last = Some((holder, until));
                }
            }
            if is_above && !last.is_some_and(|(holder, _)| holder == Holder::rate(number)) {
                break;
            }
        }
        last
    }

    fn feed(&mut self, parent: u32, priority: usize) -> &mut Ring {
        match &mut self.nodes[parent as usize].kind {
            Kind::Inner { feeds, .. } => feeds[priority].get_or_insert_default(),
            Kind::Leaf { .. } => unreachable!("a parent is no leaf"),
        }
    }

    fn row(&mut self, level: usize, priority: usize) -> &mut Ring {
        self.rows[level][priority].get_or_insert_default()
    }

    /// A node with packets enters the rings of its colour.
    fn enter(&mut self, start: u32) {
        let mut number = start;
        let mut mask = self.nodes[start as usize].active;
        loop {
            let Node {
                parent,
                rank,
                colour,
                level,
                ..
            } = self.nodes[number as usize];
            match (colour, parent) {
                (Colour::Yellow, Some(parent)) if mask != 0 => {
                    for priority in bits(mask) {
                        let feed = self.feed(parent, priority);
                        if !feed.is_empty() {
                            // The parent is where it is to be already.
                            mask &= !(1 << priority);
                        }
                        feed.insert(rank);
                    }
                    let active = self.nodes[parent as usize].active | mask;
                    self.set_active(parent, active);
                    number = parent;
                }
                (Colour::Green, _) if mask != 0 => {
                    for priority in bits(mask) {
                        self.row(level as usize, priority).insert(number);
                    }
                    self.masks[level as usize] |= mask;
                    return;
                }
                _ => return,
            }
        }
    }

    /// A node with packets leaves the rings of its colour.
    fn leave(&mut self, start: u32) {
        let mut number = start;
        let mut mask = self.nodes[start as usize].active;
        loop {
            let Node {
                parent,
                rank,
                colour,
                level,
                ..
            } = self.nodes[number as usize];
            match (colour, parent) {
                (Colour::Yellow, Some(parent)) if mask != 0 => {
                    for priority in bits(std::mem::take(&mut mask)) {
                        let feed = self.feed(parent, priority);
                        feed.remove_keeping_turn(rank);
                        if feed.is_empty() {
                            mask |= 1 << priority;
                        }
                    }
                    let active = self.nodes[parent as usize].active & !mask;
                    self.set_active(parent, active);
                    number = parent;
                }
                (Colour::Green, _) if mask != 0 => {
                    for priority in bits(mask) {
                        let row = self.row(level as usize, priority);
                        row.remove(number);
                        if row.is_empty() {
                            self.masks[level as usize] &= !(1 << priority);
                        }
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    /// The node has this colour from now on.
    fn recolour(&mut self, number: u32, fresh: Colour) {
        let node = &self.nodes[number as usize];
        let (old, is_active) = (node.colour, node.active != 0);
        if fresh == old {
            return;
        }
        if is_active && old != Colour::Red {
            self.leave(number);
        }
        self.nodes[number as usize].colour = fresh;
        if is_active && fresh != Colour::Red {
            self.enter(number);
        }
    }

    /// The node waits for what it misses, at least 1 ns.
    fn wait(&mut self, number: u32, now: Time, missing: i64) {
        let at = now + Time::from_nanos(missing.max(1) as u64);
        let node = &mut self.nodes[number as usize];
        node.serial = node.serial.wrapping_add(1);
        node.waits = true;
        self.made += 1;
        let level = node.level as usize;
        let event = Reverse((at, self.made, number, node.serial));
        self.events[level].push(event);
        self.due[level] = self.due[level].min(at);
    }

    /// The first event of a level that is not stale.
    fn first_event(&mut self, level: usize) -> Option<(Time, u32)> {
        loop {
            let Reverse((at, _, number, serial)) = *self.events[level].peek()?;
            let node = &self.nodes[number as usize];
            if node.waits && node.serial == serial {
                return Some((at, number));
            }
            self.events[level].pop();
        }
    }

    /// The colours of a level's nodes are those of now.
    #[inline]
    fn catch_up(&mut self, level: usize, now: Time) {
        #[cfg(test)]
        if self.is_plain {
            return self.look_at_all(level, now);
        }
        if self.due[level] <= now {
            self.handle_events(level, now);
        }
    }

    /// Nodes of a level whose time has come have another look at their credit.
    fn handle_events(&mut self, level: usize, now: Time) {
        while let Some((at, number)) = self.first_event(level) {
            if at > now {
                self.due[level] = at;
                return;
            }
            self.events[level].pop();
            let node = &mut self.nodes[number as usize];
            node.waits = false;
            let (fresh, missing) = node.colour_after(elapsed(node.charged, now).min(LONGEST));
            self.recolour(number, fresh);
            if fresh != Colour::Green {
                self.wait(number, now, missing);
            }
        }
        self.due[level] = Time::NEVER;
    }

    /// The leaf whose turn it is at a level.
    fn leaf_at(&mut self, level: usize, priority: usize) -> Option<u32> {
        let mut path = [0_u32; LEVELS];
        let mut depth = 0_usize;
        loop {
            let parent = depth.checked_sub(1).map(|above| path[above]);
            let ring = match parent {
                Some(parent) => self.feed(parent, priority),
                None => self.row(level, priority),
            };
            let Some(turn) = ring.turn() else {
                if !ring.has_turn() {
                    return None; // Nobody is there.
                }
                if depth > 0 {
                    // The feed has run to its end: the ring above it goes on.
                    depth -= 1;
                    let above = depth.checked_sub(1).map(|above| path[above]);
                    let ring = match above {
                        Some(above) => self.feed(above, priority),
                        None => self.row(level, priority),
                    };
                    ring.advance();
                }
                continue;
            };
            let number = match parent {
                None => turn,
                Some(parent) => match &self.nodes[parent as usize].kind {
                    Kind::Inner { children, .. } => children[turn as usize],
                    Kind::Leaf { .. } => unreachable!("a parent is no leaf"),
                },
            };
            if self.nodes[number as usize].level == 0 {
                return Some(number);
            }
            path[depth] = number;
            depth += 1;
        }
    }

    /// The turn goes on in the ring in which the leaf stands.
    fn advance(&mut self, leaf: u32, level: usize, priority: usize) {
        match self.nodes[leaf as usize].parent {
            Some(parent) if level > 0 => self.feed(parent, priority).advance(),
            _ => self.row(0, priority).advance(),
        }
    }

    /// Hands out a packet, and the level at which it was sent; `pull` asks a leaf for one.
    pub(super) fn dequeue<Q>(
        &mut self,
        now: Time,
        mut pull: impl FnMut(u32) -> Pulled<Q>,
    ) -> Option<(Q, usize)> {
        self.now = now;
        for level in bits(self.levels) {
            self.catch_up(level, now);
            for priority in bits(self.masks[level]) {
                if let Some(sent) = self.serve(now, level, priority, &mut pull) {
                    self.release = Time::NEVER;
                    return Some((sent, level));
                }
            }
        }
        let levels = bits(self.levels);
        let first = levels
            .filter_map(|level| Some(self.first_event(level)?.0))
            .min();
        self.release = first.unwrap_or(Time::NEVER);
        None
    }

    /// When a dequeue that handed out nothing is to be tried again.
    pub(super) const fn next_release(&self) -> Time {
        self.release
    }

    fn serve<Q>(
        &mut self,
        now: Time,
        level: usize,
        priority: usize,
        pull: &mut impl FnMut(u32) -> Pulled<Q>,
    ) -> Option<Q> {
        let mut start = self.leaf_at(level, priority)?;
        let mut leaf = start;
        loop {
            match pull(leaf) {
                Pulled::Empty => {
                    self.deactivate(leaf);
                    if self.masks[level] & 1 << priority == 0 {
                        return None;
                    }
                    let next = self.leaf_at(level, priority)?;
                    if leaf == start {
                        start = next;
                    }
                    leaf = next;
                }
                Pulled::Nothing => {
                    self.advance(leaf, level, priority);
                    leaf = self.leaf_at(level, priority)?;
                    if leaf == start {
                        return None;
                    }
                }
                Pulled::Packet(packet, bytes, is_last) => {
                    let node = &mut self.nodes[leaf as usize];
                    let Kind::Leaf {
                        deficits, quantum, ..
                    } = &mut node.kind
                    else {
                        unreachable!("packets are in leaves");
                    };
                    deficits[level] -= i64::from(bytes);
                    if deficits[level] < 0 {
                        deficits[level] += *quantum;
                        self.advance(leaf, level, priority);
                    }
                    if is_last {
                        self.deactivate(leaf);
                    }
                    self.charge(leaf, level, bytes, now);
                    return Some(packet);
                }
            }
        }
    }

    /// Charges a packet that was sent at a level to the leaf and all above it.
    fn charge(&mut self, leaf: u32, level: usize, bytes: u32, now: Time) {
        if self.watches {
            self.last_holder = self.holder(leaf, level, now);
        }
        let mut next = Some(leaf);
        while let Some(number) = next {
            let node = &mut self.nodes[number as usize];
            next = node.parent;
            node.account(now);
            let passed = elapsed(node.charged, now).min(LONGEST);
            node.tokens = match node.level as usize >= level {
                true => node.rate.charged(node.tokens, passed, bytes),
                false => node.tokens + passed,
            };
            node.ctokens = node.ceil.charged(node.ctokens, passed, bytes);
            node.charged = now;
            let (fresh, missing) = node.colour_after(0);
            if fresh != node.colour {
                node.waits = false;
                self.recolour(number, fresh);
                if fresh != Colour::Green {
                    self.wait(number, now, missing);
                }
            }
        }
    }
}

/// The oracle: colours follow from credit alone, whenever somebody asks.
#[cfg(test)]
impl Tree {
    /// The colours of all nodes of a level, in the order of their numbers.
    fn look_at_all(&mut self, level: usize, now: Time) {
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            if usize::from(node.level) == level {
                let passed = elapsed(node.charged, now).min(LONGEST);
                self.recolour(number as u32, node.colour_after(passed).0);
            }
        }
    }

    /// When the first node that is not green has what it misses.
    pub(super) fn first_change(&self, now: Time) -> Time {
        let nodes = self.nodes.iter().filter_map(|node| {
            let missing = match node.colour {
                Colour::Green => return None,
                Colour::Yellow => -node.tokens,
                Colour::Red => -node.ctokens,
            };
            let at = node.charged + Time::from_nanos(missing.max(1) as u64);
            Some(at.max(now + Time::from_nanos(1)))
        });
        nodes.min().unwrap_or(Time::NEVER)
    }
}

/// The numbers of the bits that are set, lowest first.
#[inline]
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = mask.trailing_zeros() as usize;
        mask &= mask.checked_sub(1)?;
        Some(first)
    })
}
