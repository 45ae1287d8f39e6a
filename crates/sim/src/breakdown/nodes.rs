//! Vectors of parts, as chains: a node has what one step of a path took, and refers to the node of the
//! step before.
//!
//! A vector is the sum over its chain; nobody needs it before its response is complete. A node costs
//! some twenty instructions, a vector of its own costs a copy of all parts. Nodes are counted: those
//! that nobody refers to are used again. A chain that becomes long is summed up, so that a connection
//! under way refers to a bounded number of nodes, however long its exchange lasts.

use aqmlab_link::Served;
use aqmlab_net::{Role, Time};
use aqmlab_record::{LostSegment, PARTS_OF_PORT, Part, PathCount, StoryEvent, StoryRow};
use aqmlab_tcp::Segment;

use super::label::Label;
use super::loss::Place;
use super::story::Story;

/// A vector: the last node of its chain, by its place.
pub(super) type Vector = u32;

/// No node.
pub(super) const NONE: Vector = Vector::MAX;

/// After so many steps a chain is summed up, which costs about as much as ten of them.
const DEEP: u16 = 32;

/// Words behind parts and counts: the loss that cost most, and what it cost.
const TAIL: usize = 2;

/// What a node adds to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Nothing,
    /// A segment's way, whose propagation is `time`.
    Trip,
    /// A port on the way of a segment, before the last port that it has passed.
    Port,
    /// A part takes `time`.
    Part,
    /// A loss has cost `time`; what was lost is the first word of `at_port`.
    Loss,
    /// It stands for a chain, whose sums are the words `more`.
    Sums,
}

/// A step of a path: two lines of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    /// The step before; of a free place, the next one.
    parent: Vector,
    /// How many refer to it.
    holders: u32,
    /// The ports that a trip has passed before the last one; the place of sums.
    more: u32,
    /// The last event of its path where the connection is followed, else 0.
    last: u32,
    /// The event that its segment left.
    departure: u32,
    depth: u16,
    /// The port that it has passed last.
    port: Option<u16>,
    step: Step,
    label: Label,
    part: u8,
    count: Option<PathCount>,
    /// A first transmission that is not acknowledged refers to it.
    is_first: bool,
    is_under_way: bool,
    segment: LostSegment,
    /// Where its segment was dropped, and why.
    lost: Option<Place>,
    /// When its exchange began.
    origin: Time,
    /// Up to when it accounts; of a trip, up to when the way is known.
    until: Time,
    /// When its segment left.
    sent: Time,
    time: Time,
    at_port: [Time; PARTS_OF_PORT],
    /// Wait at the hosts' links, transmission there, and hold-up on the wire.
    aside: [Time; 3],
}

/// The node of an exchange that begins, which has one holder.
const ROOT: Node = Node {
    parent: NONE,
    holders: 1,
    more: NONE,
    last: 0,
    departure: 0,
    depth: 0,
    port: None,
    step: Step::Nothing,
    label: Label::Exchange,
    part: 0,
    count: None,
    is_first: false,
    is_under_way: false,
    segment: LostSegment::Data,
    lost: None,
    origin: Time::ZERO,
    until: Time::ZERO,
    sent: Time::ZERO,
    time: Time::ZERO,
    at_port: [Time::ZERO; PARTS_OF_PORT],
    aside: [Time::ZERO; 3],
};

/// The parts of what `aside` has.
const ASIDE: [Part; 3] = [Part::WaitHosts, Part::TransmissionHosts, Part::HoldUp];

/// What is known of the first transmission of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// The vector with which it left.
    cause: Vector,
    pub(super) sent: Time,
    pub(super) label: Label,
    pub(super) segment: LostSegment,
    pub(super) lost: Option<Place>,
    pub(super) is_under_way: bool,
    event: u32,
}

/// All vectors of a world. Free places are used again in the order last in, first out.
#[derive(Debug)]
pub(super) struct Nodes {
    /// Parts of a vector.
    parts: usize,
    nodes: Vec<Node>,
    /// The first free place.
    free: Vector,
    /// Sums of long chains: parts, counts, loss.
    words: Vec<u64>,
    free_words: Vec<u32>,
    /// Reused.
    sums: Vec<u64>,
    pub(super) story: Story,
}

impl Nodes {
    pub(super) fn new(ports: usize) -> Self {
        Self {
            parts: Part::ALL.len() + PARTS_OF_PORT * ports,
            nodes: Vec::new(),
            free: NONE,
            words: Vec::new(),
            free_words: Vec::new(),
            sums: Vec::new(),
            story: Story::default(),
        }
    }

    const fn stride(&self) -> usize {
        self.parts + PathCount::ALL.len() + TAIL
    }

    #[inline(always)]
    fn node(&self, vector: Vector) -> &Node {
        &self.nodes[vector as usize]
    }

    #[inline(always)]
    fn node_mut(&mut self, vector: Vector) -> &mut Node {
        &mut self.nodes[vector as usize]
    }

    // ---- nodes ----

    /// A place for a node, with whatever was there.
    #[inline(always)]
    fn place(&mut self) -> Vector {
        let vector = self.free;
        if vector == NONE {
            return self.add_place();
        }
        self.free = self.node(vector).parent;
        vector
    }

    #[cold]
    fn add_place(&mut self) -> Vector {
        self.nodes.push(ROOT);
        (self.nodes.len() - 1) as Vector
    }

    /// The vector of an exchange that begins now, on a connection that is followed or not.
    pub(super) fn begin(&mut self, origin: Time, is_followed: bool) -> Vector {
        let root = match is_followed {
            true => self.story.begin(origin),
            false => 0,
        };
        self.root(origin, root)
    }

    /// The vector at the beginning of an exchange, whose event is `last`.
    fn root(&mut self, origin: Time, last: u32) -> Vector {
        let vector = self.place();
        *self.node_mut(vector) = Node {
            last,
            origin,
            until: origin,
            sent: origin,
            ..ROOT
        };
        vector
    }

    /// The same vector by a node of its own; the caller gives up its share.
    fn child(&mut self, parent: Vector) -> Vector {
        self.child_with(parent, ROOT)
    }

    /// The same, with what `step` says of it.
    #[inline(always)]
    fn child_with(&mut self, parent: Vector, step: Node) -> Vector {
        let &Node {
            last,
            depth,
            origin,
            until,
            ..
        } = self.node(parent);
        let vector = self.place();
        *self.node_mut(vector) = Node {
            parent,
            last,
            depth: depth + 1,
            origin,
            until,
            sent: until,
            ..step
        };
        vector
    }

    /// One more holds it.
    #[inline(always)]
    pub(super) fn share(&mut self, vector: Vector) -> Vector {
        self.node_mut(vector).holders += 1;
        vector
    }

    /// One less holds it, if there is one.
    #[inline(always)]
    pub(super) fn release(&mut self, mut vector: Vector) {
        while vector != NONE {
            let node = &mut self.nodes[vector as usize];
            node.holders -= 1;
            if node.holders > 0 {
                return;
            }
            let (parent, more) = (node.parent, node.more);
            node.parent = std::mem::replace(&mut self.free, vector);
            if more != NONE {
                self.release_more(vector);
            }
            vector = parent;
        }
    }

    #[cold]
    fn release_more(&mut self, vector: Vector) {
        let &Node { step, mut more, .. } = self.node(vector);
        if step == Step::Sums {
            return self.free_words.push(more);
        }
        while more != NONE {
            let port = &mut self.nodes[more as usize];
            let before = std::mem::replace(&mut port.parent, self.free);
            self.free = std::mem::replace(&mut more, before);
        }
    }

    // ---- what vectors are ----

    #[inline(always)]
    pub(super) fn origin(&self, vector: Vector) -> Time {
        self.node(vector).origin
    }

    /// Up to when it accounts.
    #[inline(always)]
    pub(super) fn until(&self, vector: Vector) -> Time {
        self.node(vector).until
    }

    /// Whether its connection is followed.
    pub(super) fn is_followed(&self, vector: Vector) -> bool {
        self.node(vector).last > 0
    }

    /// Its parts, its counts, and what the loss that cost most has cost, with a word that its holder
    /// understands; no time: there is none.
    pub(super) fn sums(&mut self, vector: Vector) -> (&[u64], &[u64], (Time, u64)) {
        self.sum_up(vector);
        let (parts, others) = self.sums.split_at(self.parts);
        let (counts, loss) = others.split_at(PathCount::ALL.len());
        (parts, counts, (Time::from_nanos(loss[0]), loss[1]))
    }

    /// Walks its chain back, and adds up.
    fn sum_up(&mut self, mut vector: Vector) {
        let (parts, stride) = (self.parts, self.stride());
        self.sums.clear();
        self.sums.resize(stride, 0);
        let (sums, nodes) = (&mut self.sums[..stride], &self.nodes);
        while vector != NONE {
            let node = &nodes[vector as usize];
            let time = node.time.as_nanos();
            match node.step {
                Step::Nothing | Step::Port => {}
                Step::Trip => {
                    sums[node.label.part() as usize] += time;
                    sums[parts + node.label.count() as usize] += 1;
                    for (part, time) in ASIDE.iter().zip(&node.aside) {
                        sums[*part as usize] += time.as_nanos();
                    }
                    node.add_port_to(sums);
                    let mut port = node.more;
                    while port != NONE {
                        let passed = &nodes[port as usize];
                        passed.add_port_to(sums);
                        port = passed.parent;
                    }
                }
                Step::Part => {
                    sums[usize::from(node.part)] += time;
                    if let Some(count) = node.count {
                        sums[parts + count as usize] += 1;
                    }
                }
                Step::Loss => {
                    sums[parts + PathCount::Losses as usize] += 1;
                    note_loss(sums, time, node.at_port[0].as_nanos());
                }
                Step::Sums => {
                    let first = node.more as usize * stride;
                    let words = &self.words[first..first + stride];
                    for (sum, word) in sums[..stride - TAIL].iter_mut().zip(words) {
                        *sum += word;
                    }
                    note_loss(sums, words[stride - TAIL], words[stride - 1]);
                }
            }
            vector = node.parent;
        }
    }

    /// The same vector, and a bounded chain behind it. The caller gives up its share.
    #[inline(always)]
    fn shortened(&mut self, vector: Vector) -> Vector {
        match self.node(vector).depth < DEEP {
            true => vector,
            false => self.shorten(vector),
        }
    }

    #[inline(never)]
    fn shorten(&mut self, vector: Vector) -> Vector {
        let Node {
            is_first, depth, ..
        } = *self.node(vector);
        let vector = match is_first {
            false => vector,
            // Its segment may have to know what was before it. The next one mostly is none of those.
            true if depth < 2 * DEEP => return vector,
            true => self.child(vector),
        };
        self.sum_up(vector);
        let place = self.free_words.pop().unwrap_or_else(|| {
            let place = self.words.len() / self.stride();
            self.words.resize(self.words.len() + self.stride(), 0);
            place as u32
        });
        let first = place as usize * self.stride();
        self.words[first..first + self.sums.len()].copy_from_slice(&self.sums);
        if self.node(vector).more != NONE {
            self.release_more(vector);
        }
        let node = self.node_mut(vector);
        (node.step, node.more, node.depth) = (Step::Sums, place, 0);
        let parent = std::mem::replace(&mut node.parent, NONE);
        self.release(parent);
        vector
    }

    // ---- steps ----

    /// A part takes the time up to `until`, which is counted. The caller gives up its share of what was
    /// before.
    pub(super) fn charge(
        &mut self,
        vector: Vector,
        part: Part,
        until: Time,
        count: Option<PathCount>,
    ) -> Vector {
        let time = until - self.until(vector);
        let child = self.child(vector);
        let node = self.node_mut(child);
        (node.step, node.part, node.count) = (Step::Part, part as u8, count);
        (node.time, node.until) = (time, until);
        if node.last > 0 {
            let mut end = until - time;
            self.write_part(child, part as usize, time, &mut end);
        }
        child
    }

    /// A loss has cost so much.
    pub(super) fn note_loss(&mut self, vector: Vector, time: Time, word: u64) -> Vector {
        let child = self.child(vector);
        let node = self.node_mut(child);
        (node.step, node.time) = (Step::Loss, time);
        node.at_port[0] = Time::from_nanos(word);
        child
    }

    /// The vector as one of the exchange that began at `origin`: nothing remains of another
    /// exchange. The caller gives up its share.
    #[inline(always)]
    pub(super) fn rebased(&mut self, vector: Vector, origin: Time) -> Vector {
        if self.origin(vector) == origin {
            return vector;
        }
        let last = self.root_of(self.node(vector).last);
        self.release(vector);
        self.root(origin, last)
    }

    /// The event with which the exchange began, where the path of such an event is followed.
    fn root_of(&self, last: u32) -> u32 {
        match last {
            0 => 0,
            _ => self.story.root(),
        }
    }

    // ---- trips ----

    /// A segment leaves with a vector, of which the caller gives up its share.
    #[inline(always)]
    pub(super) fn depart(&mut self, cause: Vector, label: Label) -> Vector {
        let trip = Node {
            step: Step::Trip,
            label,
            is_under_way: true,
            ..ROOT
        };
        self.child_with(cause, trip)
    }

    /// It is a first transmission, which may be lost.
    #[inline(always)]
    pub(super) fn keep_first(&mut self, trip: Vector, segment: LostSegment) -> Vector {
        let node = self.node_mut(trip);
        node.holders += 1;
        (node.is_first, node.segment) = (true, segment);
        trip
    }

    /// What such a segment left with.
    pub(super) fn departure(&self, trip: Vector) -> Departure {
        let node = self.node(trip);
        Departure {
            cause: node.parent,
            sent: node.sent,
            label: node.label,
            segment: node.segment,
            lost: node.lost,
            is_under_way: node.is_under_way,
            event: node.departure,
        }
    }

    /// The vector with which a segment left, as one of the exchange that began at `origin`.
    pub(super) fn again(&mut self, first: &Departure, origin: Time) -> Vector {
        if self.origin(first.cause) != origin {
            return self.root(origin, self.root_of(first.event));
        }
        self.share(first.cause);
        let vector = self.child(first.cause);
        self.node_mut(vector).last = first.event;
        vector
    }

    #[inline(always)]
    pub(super) fn passes_host_link(&mut self, trip: Vector, done: Time, transmission: Time) {
        let node = self.node_mut(trip);
        node.aside[0] += done - transmission - node.until;
        node.aside[1] += transmission;
        node.until = done;
    }

    #[inline(always)]
    pub(super) fn reaches_port(&mut self, trip: Vector, now: Time) {
        let node = self.node_mut(trip);
        node.time += now - node.until;
        node.until = now;
        if node.last > 0 {
            let last = node.last;
            self.story.say(last, StoryRow::new(StoryEvent::AtPort, now));
        }
    }

    #[inline(always)]
    pub(super) fn passes_port(
        &mut self,
        trip: Vector,
        port: usize,
        served: &Served,
        arrives: Time,
    ) {
        if self.node(trip).port.is_some() {
            self.put_port_aside(trip);
        }
        let begin = served.end - served.transmission;
        let node = self.node_mut(trip);
        node.port = Some(port as u16);
        node.at_port = [
            served.left - node.until,
            begin - served.left,
            served.transmission,
        ];
        let propagation = served.delay.min(arrives - served.end);
        node.time += propagation;
        node.aside[2] += arrives - served.end - propagation;
        node.until = arrives;
    }

    /// It has passed one more port.
    #[cold]
    fn put_port_aside(&mut self, trip: Vector) {
        if self.is_followed(trip) {
            let mut end = self.story_until(trip);
            self.write_port(trip, &mut end);
        }
        let node = *self.node(trip);
        let passed = self.place();
        *self.node_mut(passed) = Node {
            step: Step::Port,
            parent: node.more,
            ..node
        };
        self.node_mut(trip).more = passed;
    }

    /// Its segment was dropped, there and for that reason.
    pub(super) fn lose(&mut self, trip: Vector, place: Place) {
        self.node_mut(trip).lost = Some(place);
    }

    /// Nothing more comes of it.
    #[inline(always)]
    pub(super) fn is_over(&mut self, trip: Vector) {
        self.node_mut(trip).is_under_way = false;
        self.release(trip);
    }

    /// The segment arrives at an end where the exchange began at `origin`: the vector that it brings.
    #[inline(always)]
    pub(super) fn arrives(
        &mut self,
        trip: Vector,
        label: Option<Label>,
        origin: Time,
        now: Time,
    ) -> Vector {
        let node = self.node_mut(trip);
        node.is_under_way = false;
        if node.origin != origin {
            return self.arrives_late(trip, origin, now);
        }
        node.time += now - node.until;
        node.until = now;
        if let Some(label) = label {
            node.label = label;
        }
        if node.last > 0 {
            self.write_trip(trip, now);
        }
        self.shortened(trip)
    }

    /// What it left for is over.
    #[cold]
    fn arrives_late(&mut self, trip: Vector, origin: Time, now: Time) -> Vector {
        let vector = self.rebased(trip, origin);
        let vector = self.charge(vector, Part::CarriedOver, now, None);
        if self.is_followed(vector) {
            self.write(vector, StoryRow::new(StoryEvent::Arrived, now));
        }
        vector
    }

    // ---- the story ----

    /// The next event of its path.
    fn write(&mut self, vector: Vector, row: StoryRow) {
        let last = self.story.say(self.node(vector).last, row);
        self.node_mut(vector).last = last;
    }

    /// A part has taken so much more behind `end`, which moves on.
    fn write_part(&mut self, vector: Vector, part: usize, time: Time, end: &mut Time) {
        *end += time;
        if time > Time::ZERO {
            let row = StoryRow {
                part: Some(part as u16),
                duration: time,
                ..StoryRow::new(StoryEvent::Part, *end)
            };
            self.write(vector, row);
        }
    }

    fn write_port(&mut self, trip: Vector, end: &mut Time) {
        let node = *self.node(trip);
        if let Some(port) = node.port {
            let first = Part::ALL.len() + PARTS_OF_PORT * usize::from(port);
            for (part, time) in (first..).zip(node.at_port) {
                self.write_part(trip, part, time, end);
            }
        }
    }

    /// Up to when the story has the parts of a trip.
    fn story_until(&self, trip: Vector) -> Time {
        let node = self.node(trip);
        let (mut until, mut port) = (self.until(node.parent), node.more);
        while port != NONE {
            let passed = self.node(port);
            for time in passed.at_port {
                until += time;
            }
            port = passed.parent;
        }
        until
    }

    #[cold]
    fn write_trip(&mut self, trip: Vector, now: Time) {
        let mut end = self.story_until(trip);
        let node = *self.node(trip);
        for (part, time) in ASIDE.iter().zip(node.aside) {
            self.write_part(trip, *part as usize, time, &mut end);
        }
        self.write_port(trip, &mut end);
        self.write_part(trip, node.label.part() as usize, node.time, &mut end);
        self.write(trip, StoryRow::new(StoryEvent::Arrived, now));
    }

    /// The segment of a trip leaves `sender`.
    #[cold]
    pub(super) fn write_departure(
        &mut self,
        trip: Vector,
        sender: Role,
        segment: &Segment,
        is_again: bool,
    ) {
        let row = StoryRow {
            sender: Some(sender),
            segment: [segment.seq, segment.ack, segment.len.into()],
            flags: segment.flags,
            is_again,
            ..StoryRow::new(StoryEvent::Sent, self.until(trip))
        };
        self.write(trip, row);
        let node = self.node_mut(trip);
        node.departure = node.last;
    }

    /// The segment of a trip was dropped.
    pub(super) fn tell_drop(&mut self, trip: Vector, row: StoryRow) {
        let last = self.node(trip).last;
        if last > 0 {
            self.story.say(last, row);
        }
    }

    /// The exchange is over. The caller gives up its share of what was before.
    pub(super) fn tell_end(&mut self, vector: Vector, now: Time) -> Vector {
        let child = self.child(vector);
        self.write(child, StoryRow::new(StoryEvent::Answered, now));
        child
    }

    /// Nodes that somebody refers to.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let (mut free, mut place) = (0, self.free);
        while place != NONE {
            (free, place) = (free + 1, self.node(place).parent);
        }
        self.nodes.len() - free
    }
}

impl Node {
    /// What it spent at the last port.
    #[inline(always)]
    fn add_port_to(&self, sums: &mut [u64]) {
        if let Some(port) = self.port {
            let first = Part::ALL.len() + PARTS_OF_PORT * usize::from(port);
            let at_port = &mut sums[first..first + PARTS_OF_PORT];
            for (sum, time) in at_port.iter_mut().zip(&self.at_port) {
                *sum += time.as_nanos();
            }
        }
    }
}

/// A loss that is earlier on the path than those so far: the first of those that cost most remains.
fn note_loss(sums: &mut [u64], time: u64, word: u64) {
    let [.., most, what] = sums else {
        return;
    };
    if time > 0 && time >= *most {
        (*most, *what) = (time, word);
    }
}
