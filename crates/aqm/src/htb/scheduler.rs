//! The scheduler: queues of subscribers under the tree.

use std::collections::{HashMap, VecDeque};

use aqmlab_net::{Packet, Time};

use super::Params;
use super::plans::{self, Subscriber};
use super::tree::{Pulled, Shape, Tree};
use crate::context::Context;
use crate::counters::Reason;
use crate::leaf::{self, Leaf, LeafQueue};
use crate::link::{Backlog, LinkFacts};
use crate::parts::{Holder, NodePart, Parts, SubscriberPart, Tally};
use crate::queue::{PacketQueue, Queued, Scheduler, Stats};

/// Packets of hosts that no plan has that wait at most.
const MOST_UNKNOWN: u32 = 1000;
/// Queues of subscribers are dropped when they were empty for this long.
const KEPT: Time = Time::from_secs(10);

/// A leaf: its queue, if it has had a packet lately.
#[derive(Debug)]
struct Place<T> {
    subscriber: Subscriber,
    queue: Option<LeafQueue<T>>,
    /// What waits in it.
    backlog: Backlog,
    /// Since when it is empty.
    empty: Time,
    /// When a packet of it was sent last.
    sent: Time,
    cell: u16,
    tally: Tally,
}

/// Who has packets of hosts that no plan has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    Pass,
    Drop,
    Leaf(u32),
}

/// A tree of rates with its queues.
#[derive(Debug)]
pub struct Htb<T> {
    tree: Tree,
    shapes: Vec<Shape>,
    places: Vec<Place<T>>,
    /// The place of each node that is a leaf, by the node.
    by_node: Vec<u32>,
    /// The place of each client host.
    by_client: Vec<u32>,
    /// Disciplines of leaves: the tree's and those of plans.
    leaves: Vec<Leaf>,
    /// Which of them each plan has.
    leaf_of_plan: Vec<u32>,
    unknown: Unknown,
    direct: PacketQueue<T>,
    /// Plans and nodes that have subscribers in common.
    cells: Vec<(u32, Option<u32>)>,
    plan_names: Vec<String>,
    names: Vec<String>,
    /// The cell of the packet that was sent last; who held it.
    last: Option<(u16, Option<Holder>)>,
    /// Places that ran empty, and when.
    emptied: VecDeque<(Time, u32)>,
    scratch: Stats<T>,
    backlog: Backlog,
    overhead: u32,
    link: LinkFacts,
    seed: u64,
}

impl<T> Htb<T> {
    pub(super) fn new(params: &Params, link: LinkFacts, seed: u64) -> Self {
        let built = plans::build(&params.network(), link.rate).expect("parameters were checked");
        let mut leaves = vec![params.leaf.clone()];
        let mut leaf_of_plan = Vec::new();
        for (_, plan) in &params.plans.0 {
            leaf_of_plan.push(match &plan.leaf {
                Some(leaf) => {
                    leaves.push(leaf.clone());
                    leaves.len() as u32 - 1
                }
                None => 0,
            });
        }
        let mut by_node = vec![u32::MAX; built.shapes.len()];
        let mut by_client = Vec::new();
        for (place, subscriber) in built.subscribers.iter().enumerate() {
            by_node[subscriber.node as usize] = place as u32;
            if built.unknown != Some(place as u32) {
                by_client.extend((0..subscriber.hosts).map(|_| place as u32));
            }
        }
        let unknown = match (built.unknown, params.unknown.as_str()) {
            (Some(place), _) => Unknown::Leaf(place),
            (None, "drop") => Unknown::Drop,
            (None, _) => Unknown::Pass,
        };
        let (mut cells, mut known) = (Vec::new(), HashMap::new());
        let shapes = &built.shapes;
        let place = |subscriber: Subscriber| {
            let of = (subscriber.plan, shapes[subscriber.node as usize].parent);
            let cell = *known.entry(of).or_insert_with(|| {
                cells.push(of);
                cells.len() as u16 - 1
            });
            Place {
                subscriber,
                queue: None,
                backlog: Backlog::default(),
                empty: Time::ZERO,
                sent: Time::ZERO,
                cell,
                tally: Tally::default(),
            }
        };
        let places = built.subscribers.into_iter().map(place).collect();
        Self {
            tree: Tree::new(&built.shapes),
            shapes: built.shapes,
            places,
            cells,
            plan_names: params
                .plans
                .0
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            names: built.names,
            last: None,
            by_node,
            by_client,
            leaves,
            leaf_of_plan,
            unknown,
            direct: PacketQueue::default(),
            emptied: VecDeque::new(),
            scratch: Stats::new(leaf::REASONS),
            backlog: Backlog::default(),
            overhead: params.overhead,
            link,
            seed,
        }
    }

    /// The place of a packet's client.
    fn place(&self, context: &impl Context) -> Unknown {
        let client = context.client();
        let place = client.and_then(|client| self.by_client.get(client as usize));
        place.map_or(self.unknown, |place| Unknown::Leaf(*place))
    }

    /// Queues that were empty for long are dropped.
    fn tidy(&mut self, now: Time) {
        while let Some(&(since, place)) = self.emptied.front()
            && since + KEPT <= now
        {
            self.emptied.pop_front();
            let place = &mut self.places[place as usize];
            if place.backlog.packets == 0 && place.empty == since {
                place.queue = None;
            }
        }
    }
}

/// Ticks of a queue up to this time: each one comes, if late, before anything that depends on it.
fn catch_up<T>(queue: &mut LeafQueue<T>, now: Time) {
    loop {
        let tick = queue.as_ref().next_tick();
        if tick > now {
            return;
        }
        queue.as_mut().on_tick(tick);
    }
}

impl<T> Scheduler<T> for Htb<T> {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        self.tidy(now);
        let number = match self.place(context) {
            Unknown::Leaf(number) => number,
            Unknown::Pass if self.direct.backlog().packets < MOST_UNKNOWN => {
                self.direct.push(Queued::new(now, packet, item));
                self.backlog.add(packet.size);
                return;
            }
            _ => return stats.drop(Queued::new(now, packet, item), Reason::OVERFLOW),
        };
        let place = &mut self.places[number as usize];
        let queue = place.queue.get_or_insert_with(|| {
            let plan = place.subscriber.plan as usize;
            let leaf = &self.leaves[self.leaf_of_plan[plan] as usize];
            let facts = LinkFacts {
                rate: place.subscriber.ceil,
                ..self.link
            };
            LeafQueue::new(leaf, facts, self.seed ^ u64::from(number) << 32)
        });
        catch_up(queue, now);
        let before = place.backlog;
        if before.packets == 0 {
            queue.as_mut().on_idle(place.empty);
        }
        let lost = queue.enqueue(now, (packet, item), &mut self.scratch, stats, context);
        place.tally.dropped += lost.0;
        place.tally.marked += lost.1;
        let after = queue.backlog();
        place.backlog = after;
        self.backlog.replace(before, after);
        if after.packets > 0 {
            self.tree.activate(now, place.subscriber.node);
        } else {
            place.empty = now;
            self.emptied.push_back((now, number));
        }
    }

    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        if let Some(queued) = self.direct.pop() {
            self.backlog.remove(queued.packet.size);
            self.last = None;
            return Some(queued);
        }
        if self.backlog.packets == 0 {
            return None;
        }
        let (places, by_node) = (&mut self.places, &self.by_node);
        let (scratch, backlog, emptied) = (&mut self.scratch, &mut self.backlog, &mut self.emptied);
        let overhead = self.overhead;
        let mut last = (0, now);
        let sent = self.tree.dequeue(now, |node| {
            let number = by_node[node as usize];
            let place = &mut places[number as usize];
            let before = place.backlog;
            let Some(queue) = &mut place.queue else {
                return Pulled::Empty;
            };
            if before.packets == 0 {
                return Pulled::Empty;
            }
            catch_up(queue, now);
            let (queued, lost) = queue.dequeue(now, scratch, stats, draw);
            place.tally.dropped += lost.0;
            place.tally.marked += lost.1;
            let after = queue.backlog();
            place.backlog = after;
            backlog.replace(before, after);
            if after.packets == 0 {
                place.empty = now;
                emptied.push_back((now, number));
            }
            match queued {
                Some(queued) => {
                    place.tally.packets += 1;
                    place.tally.bytes += u64::from(queued.packet.size);
                    let since = queued.arrived.max(place.sent);
                    place.sent = now;
                    last = (place.cell, since);
                    let bytes = queued.packet.size + overhead;
                    Pulled::Packet(queued, bytes, after.packets == 0)
                }
                None => Pulled::Nothing,
            }
        });
        let (queued, _) = sent?;
        let (cell, since) = last;
        let holder = self.tree.last_holder().and_then(|(holder, until)| {
            // For more than half of the time.
            let held = until.min(now).saturating_sub(since);
            (held > now.saturating_sub(until)).then_some(holder)
        });
        self.last = Some((cell, holder));
        Some(queued)
    }

    fn next_release(&self) -> Time {
        self.tree.next_release()
    }

    fn arrivals_release(&self) -> bool {
        true
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.link = link;
        for place in &mut self.places {
            if let Some(queue) = &mut place.queue {
                let rate = place.subscriber.ceil;
                queue.as_mut().set_link(LinkFacts { rate, ..link });
            }
        }
    }

    /// Rates, ceilings, bursts and quanta. A tree of another form stays as it was.
    fn adopt(&mut self, fresh: Self) {
        let form = |shape: &Shape| (shape.parent, shape.leaf.map(|(_, priority)| priority));
        if !self
            .shapes
            .iter()
            .map(form)
            .eq(fresh.shapes.iter().map(form))
        {
            return;
        }
        for (number, (old, new)) in self.shapes.iter().zip(&fresh.shapes).enumerate() {
            if old != new {
                self.tree.set(number as u32, new);
            }
        }
        for (place, fresh) in self.places.iter_mut().zip(fresh.places) {
            place.subscriber = fresh.subscriber;
            if let Some(queue) = &mut place.queue {
                let rate = place.subscriber.ceil;
                queue.as_mut().set_link(LinkFacts { rate, ..self.link });
            }
        }
        (self.shapes, self.overhead) = (fresh.shapes, fresh.overhead);
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn begin_parts(&mut self, now: Time) {
        self.tree.begin(now);
        for place in &mut self.places {
            place.tally = Tally::default();
        }
    }

    fn parts(&mut self, now: Time) -> Option<Parts> {
        // Nodes come in the order of the file, among them no leaf.
        let inner = (0..self.shapes.len()).filter(|node| self.shapes[*node].leaf.is_none());
        let inner: Vec<_> = inner.map(|node| node as u32).collect();
        let number = |node: u32| inner.binary_search(&node).ok().map(|at| at as u32);
        let nodes = inner.iter().map(|node| NodePart {
            name: self.names[*node as usize].clone(),
            parent: self.shapes[*node as usize].parent.and_then(number),
            held: self.tree.held(*node, now),
        });
        let nodes = nodes.collect();
        let cells = self.cells.iter();
        let cells = cells.map(|(plan, node)| (*plan, node.and_then(number)));
        let mut client = 0;
        let mut subscribers = Vec::with_capacity(self.places.len());
        for (place, hosts) in self
            .places
            .iter()
            .map(|place| (place, place.subscriber.hosts))
        {
            let is_known = Unknown::Leaf(subscribers.len() as u32) != self.unknown;
            subscribers.push(SubscriberPart {
                client: is_known.then_some(client),
                cell: place.cell,
                tally: place.tally,
                held: self.tree.held(place.subscriber.node, now),
            });
            client += hosts;
        }
        Some(Parts {
            nodes,
            plans: self.plan_names.clone(),
            cells: cells.collect(),
            subscribers,
        })
    }

    #[inline]
    fn last_cell(&self) -> Option<u16> {
        self.last.map(|(cell, _)| cell)
    }

    fn last_holder(&self) -> Option<Holder> {
        self.last.and_then(|(_, holder)| holder)
    }

    fn watch_holders(&mut self) -> Vec<String> {
        self.tree.watches = true;
        self.names.clone()
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["queues"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let queues = self.places.iter().filter(|place| place.queue.is_some());
        out.push(queues.count() as f64);
    }
}
