//! Vectors of parts, as chains: a node has what one step of a path took, and refers to the node of the
//! step before.
//!
//! A vector is the sum over its chain; nobody needs it before its response is complete. Nodes are
//! counted: those that nobody refers to are used again. A chain that becomes long is summed up, so that
//! a connection under way refers to a bounded number of nodes, however long its exchange lasts.

use std::num::NonZeroU16;

use aqmlab_aqm::Holder;
use aqmlab_link::Served;
use aqmlab_net::Time;
use aqmlab_record::{LostSegment, PARTS_OF_PORT, Part, PathCount, StoryEvent, StoryRow};

use super::label::Label;
use super::loss::Place;
use super::node::{ASIDE, Node, ROOT, Step};
pub(super) use super::node::{NONE, Vector};
use super::story::Story;

/// After so many steps a chain is summed up.
const DEEP: u8 = 16;

/// Words behind parts and counts: the loss that cost most, and what it cost.
const TAIL: usize = 2;

/// What the story knows of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// The last event of its path where the connection is followed, else 0.
    last: u32,
    /// The event that its segment left.
    departure: u32,
    /// Who held its segment at the last port.
    holder: Option<Holder>,
}

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
    /// Of each node, where some connection is followed; else none.
    marks: Vec<Mark>,
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
            marks: Vec::new(),
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

    /// The connection with this serial number is followed.
    pub(super) fn follow(&mut self, flow: u64) {
        self.story.flow = Some(flow);
        self.marks.resize(self.nodes.len(), Mark::default());
    }

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
        if self.story.flow.is_some() {
            self.marks.push(Mark::default());
        }
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
            origin,
            until: origin,
            ..ROOT
        };
        self.mark(vector, last);
        vector
    }

    /// The vector at the end of its exchange: nobody needs its parts any more. The caller gives up its
    /// share of what was before.
    pub(super) fn finished(&mut self, vector: Vector) -> Vector {
        let &Node { origin, until, .. } = self.node(vector);
        let finished = self.root(origin, self.last(vector));
        self.node_mut(finished).until = until;
        self.release(vector);
        finished
    }

    /// The same vector by a node of its own, which adds a step; the caller gives up its share.
    #[inline(always)]
    fn child(&mut self, parent: Vector, step: Step) -> Vector {
        let &Node {
            origin,
            until,
            depth,
            ..
        } = self.node(parent);
        let vector = self.place();
        *self.node_mut(vector) = Node {
            origin,
            until,
            parent,
            step,
            depth: depth.saturating_add(1),
            ..ROOT
        };
        if !self.marks.is_empty() {
            self.mark(vector, self.last(parent));
        }
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
    pub(super) fn release(&mut self, vector: Vector) {
        if vector == NONE {
            return;
        }
        let node = self.node_mut(vector);
        node.holders -= 1;
        if node.holders == 0 {
            self.free(vector);
        }
    }

    /// Nobody holds it.
    #[inline(never)]
    fn free(&mut self, mut vector: Vector) {
        loop {
            let free = self.free;
            let node = self.node_mut(vector);
            let (parent, more) = (node.parent, node.more);
            node.parent = free;
            self.free = vector;
            if more != NONE {
                self.release_more(vector);
            }
            if parent == NONE {
                return;
            }
            let before = self.node_mut(parent);
            before.holders -= 1;
            if before.holders > 0 {
                return;
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
            let further = &mut self.nodes[more as usize];
            let before = std::mem::replace(&mut further.parent, self.free);
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
        self.last(vector) > 0
    }

    /// Its parts, its counts, and what the loss that cost most has cost, with a word that its holder
    /// understands; no time: there is none.
    pub(super) fn sums(&mut self, vector: Vector) -> (&[u64], &[u64], (Time, u64)) {
        let stride = self.stride();
        self.sums.clear();
        match self.end_of(vector) {
            Some(place) => {
                let first = place as usize * stride;
                self.sums.extend(&self.words[first..first + stride]);
            }
            None => self.sums.resize(stride, 0),
        }
        add_chain(&self.nodes, vector, self.parts, &mut self.sums);
        let (parts, others) = self.sums.split_at(self.parts);
        let (counts, loss) = others.split_at(PathCount::ALL.len());
        (parts, counts, (Time::from_nanos(loss[0]), loss[1]))
    }

    /// The sums at the end of its chain.
    fn end_of(&self, mut vector: Vector) -> Option<u32> {
        loop {
            let node = self.node(vector);
            match node.step {
                Step::Sums => return Some(node.more),
                _ if node.parent == NONE => return None,
                _ => vector = node.parent,
            }
        }
    }

    /// All but the last steps of a chain become sums. Who else holds one of them still finds what it
    /// held.
    fn shorten(&mut self, vector: Vector) {
        let (mut at, mut depth) = (vector, 0);
        // The last steps mostly have other holders, too. A segment that may be lost has to know what
        // was before it.
        while depth < 2 || self.node(at).is_first {
            at = self.node(at).parent;
            depth += 1;
            if at == NONE || self.node(at).parent == NONE {
                self.node_mut(vector).depth = depth;
                return;
            }
        }
        self.node_mut(vector).depth = depth;
        // Sums that nobody else needs go on.
        let (mut end, mut is_alone) = (self.node(at).parent, true);
        loop {
            let node = self.node(end);
            is_alone &= node.holders == 1;
            if node.parent == NONE {
                break;
            }
            end = node.parent;
        }
        let &Node { step, more, .. } = self.node(end);
        let place = match step {
            Step::Sums if is_alone => more,
            Step::Sums => self.add_words(Some(more)),
            _ => self.add_words(None),
        };
        let first = place as usize * self.stride();
        let sums = &mut self.words[first..first + self.parts + PathCount::ALL.len() + TAIL];
        add_chain(&self.nodes, at, self.parts, sums);
        if place == more {
            let end = self.node_mut(end);
            (end.step, end.more) = (Step::Nothing, NONE);
        }
        if self.node(at).more != NONE {
            self.release_more(at);
        }
        let node = self.node_mut(at);
        (node.step, node.more, node.depth) = (Step::Sums, place, 0);
        let parent = std::mem::replace(&mut node.parent, NONE);
        self.release(parent);
    }

    /// A place for sums, which begin as others do.
    fn add_words(&mut self, others: Option<u32>) -> u32 {
        let stride = self.stride();
        let place = self.free_words.pop().unwrap_or_else(|| {
            let place = self.words.len() / stride;
            self.words.resize(self.words.len() + stride, 0);
            place as u32
        });
        let first = place as usize * stride;
        match others {
            Some(others) => {
                let others = others as usize * stride;
                self.words.copy_within(others..others + stride, first);
            }
            None => self.words[first..first + stride].fill(0),
        }
        place
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
        let mut end = self.until(vector);
        let child = self.child(vector, Step::Part(part, count));
        self.node_mut(child).until = until;
        if self.is_followed(child) {
            self.write_part(child, part as usize, until - end, &mut end);
        }
        child
    }

    /// A loss has cost so much.
    pub(super) fn note_loss(&mut self, vector: Vector, time: Time, word: u64) -> Vector {
        let child = self.child(vector, Step::Loss);
        self.node_mut(child).set_loss(time, word);
        child
    }

    /// The vector as one of the exchange that began at `origin`: nothing remains of another
    /// exchange. The caller gives up its share.
    #[inline(always)]
    pub(super) fn rebased(&mut self, vector: Vector, origin: Time) -> Vector {
        if self.origin(vector) == origin {
            return vector;
        }
        let last = self.root_of(self.last(vector));
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

    /// A segment leaves with a vector, of which the caller gives up its share. `is_first`: a first
    /// transmission, which may be lost, with a second holder.
    #[inline(always)]
    pub(super) fn depart(
        &mut self,
        cause: Vector,
        (label, segment): (Label, LostSegment),
        is_first: bool,
    ) -> Vector {
        let &Node {
            origin,
            until,
            depth,
            ..
        } = self.node(cause);
        let trip = self.place();
        *self.node_mut(trip) = Node {
            origin,
            until,
            parent: cause,
            holders: 1 + u32::from(is_first),
            step: Step::Trip(label, segment),
            depth: depth.saturating_add(1),
            is_first,
            is_under_way: true,
            ..ROOT
        };
        if !self.marks.is_empty() {
            self.mark(trip, self.last(cause));
        }
        trip
    }

    /// A first transmission is acknowledged.
    #[inline(always)]
    pub(super) fn release_first(&mut self, trip: Vector) {
        let node = self.node_mut(trip);
        node.is_first = false;
        node.holders -= 1;
        if node.holders == 0 {
            self.free(trip);
        }
    }

    /// What such a segment left with.
    pub(super) fn departure(&self, trip: Vector) -> Departure {
        let node = self.node(trip);
        let (label, segment) = match node.step {
            Step::Trip(label, segment) => (label, segment),
            _ => (Label::Exchange, LostSegment::Data),
        };
        Departure {
            cause: node.parent,
            sent: self.until(node.parent),
            label,
            segment,
            lost: node.lost,
            is_under_way: node.is_under_way,
            event: self.mark_of(trip).departure,
        }
    }

    /// The vector with which a segment left, as one of the exchange that began at `origin`.
    pub(super) fn again(&mut self, first: &Departure, origin: Time) -> Vector {
        if self.origin(first.cause) != origin {
            return self.root(origin, self.root_of(first.event));
        }
        self.share(first.cause);
        let vector = self.child(first.cause, Step::Nothing);
        self.mark(vector, first.event);
        vector
    }

    #[inline(always)]
    pub(super) fn passes_host_link(&mut self, trip: Vector, done: Time, transmission: Time) {
        let wait = done - transmission - self.until(trip);
        self.add_wait(trip, PARTS_OF_PORT, wait);
        self.add_wait(trip, PARTS_OF_PORT + 1, transmission);
        self.node_mut(trip).until = done;
    }

    #[inline(always)]
    pub(super) fn reaches_port(&mut self, trip: Vector, now: Time) {
        self.node_mut(trip).until = now;
        if !self.marks.is_empty() {
            self.write_at_port(trip, now);
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
        let waits = [
            served.left - node.until,
            begin - served.left,
            served.transmission,
        ];
        node.port = NonZeroU16::new(port as u16 + 1);
        node.until = arrives;
        for (place, wait) in node.waits.iter_mut().zip(waits) {
            *place = wait.as_nanos() as u32;
        }
        let held_up = (arrives - served.end).saturating_sub(served.delay);
        let [wait, ring, transmission] = waits.map(Time::as_nanos);
        if wait | ring | transmission > u32::MAX.into() {
            self.lengthen_port(trip, waits);
        }
        if held_up > Time::ZERO {
            self.add_wait(trip, PARTS_OF_PORT + 2, held_up);
        }
        if let Some(mark) = self.marks.get_mut(trip as usize) {
            mark.holder = served.holder;
        }
    }

    /// It waits for so long, again.
    #[inline(always)]
    fn add_wait(&mut self, trip: Vector, wait: usize, time: Time) {
        let place = &mut self.node_mut(trip).waits[wait];
        let sum = u64::from(*place) + time.as_nanos();
        *place = sum as u32;
        self.lengthen(trip, wait, sum);
    }

    /// Of a wait, what 32 bits cannot say.
    #[inline(always)]
    fn lengthen(&mut self, trip: Vector, wait: usize, time: u64) {
        if time > u32::MAX.into() {
            self.add_long(trip, wait, time & !u64::from(u32::MAX));
        }
    }

    #[cold]
    fn lengthen_port(&mut self, trip: Vector, waits: [Time; PARTS_OF_PORT]) {
        for (wait, time) in waits.iter().enumerate() {
            self.lengthen(trip, wait, time.as_nanos());
        }
    }

    #[cold]
    fn add_long(&mut self, trip: Vector, wait: usize, time: u64) {
        let long = self.place();
        let &Node { port, more, .. } = self.node(trip);
        *self.node_mut(long) = Node {
            step: Step::Long(wait as u8),
            until: Time::from_nanos(time),
            parent: more,
            port,
            ..ROOT
        };
        self.node_mut(trip).more = long;
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
        node.until = now;
        if let (Some(label), Step::Trip(of_trip, _)) = (label, &mut node.step) {
            *of_trip = label;
        }
        if node.depth >= DEEP || !self.marks.is_empty() {
            self.has_arrived(trip, now);
        }
        trip
    }

    /// A trip is over of a long chain, or of a connection that may be followed.
    #[inline(never)]
    fn has_arrived(&mut self, trip: Vector, now: Time) {
        if self.is_followed(trip) {
            self.write_trip(trip, now);
        }
        if self.node(trip).depth >= DEEP {
            self.shorten(trip);
        }
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

    #[inline(always)]
    fn mark_of(&self, vector: Vector) -> Mark {
        let mark = self.marks.get(vector as usize);
        mark.copied().unwrap_or_default()
    }

    /// The last event of its path; 0: its connection is not followed.
    #[inline(always)]
    fn last(&self, vector: Vector) -> u32 {
        self.mark_of(vector).last
    }

    /// `last` is the last event of its path.
    #[inline(always)]
    fn mark(&mut self, vector: Vector, last: u32) {
        if let Some(mark) = self.marks.get_mut(vector as usize) {
            *mark = Mark {
                last,
                ..Mark::default()
            };
        }
    }

    /// The next event of its path.
    fn write(&mut self, vector: Vector, row: StoryRow) {
        let last = self.story.push(self.last(vector), row);
        self.marks[vector as usize].last = last;
    }

    /// A part has taken so much more behind `end`, which moves on.
    fn write_part(&mut self, vector: Vector, part: usize, time: Time, end: &mut Time) {
        *end += time;
        if time > Time::ZERO {
            let row = StoryRow {
                part: Some(part as u16),
                duration: time,
                holder: self.holder(vector, part),
                ..StoryRow::new(StoryEvent::Part, *end)
            };
            self.write(vector, row);
        }
    }

    #[cold]
    fn write_at_port(&mut self, trip: Vector, now: Time) {
        let last = self.last(trip);
        if last > 0 {
            self.story
                .push(last, StoryRow::new(StoryEvent::AtPort, now));
        }
    }

    /// What does not fit into the node of a trip, the last first.
    fn further(&self, trip: Vector) -> impl Iterator<Item = &Node> {
        let at = |place: u32| (place != NONE).then(|| self.node(place));
        std::iter::successors(at(self.node(trip).more), move |node| at(node.parent))
    }

    /// How long a trip waits, of a port the last one.
    fn wait(&self, trip: Vector, wait: usize) -> Time {
        let mut time = Time::from_nanos(self.node(trip).waits[wait].into());
        let of_port = wait < PARTS_OF_PORT;
        let is_it = |node: &&Node| !(of_port && node.step == Step::Port);
        for node in self.further(trip).take_while(is_it) {
            if node.step == Step::Long(wait as u8) {
                time += node.until;
            }
        }
        time
    }

    /// Who held a segment, if the part is its wait at the last port.
    fn holder(&self, trip: Vector, part: usize) -> Option<Holder> {
        let of_port = self.node(trip).parts_of_port() == Some(part);
        self.mark_of(trip).holder.filter(|_| of_port)
    }

    fn write_port(&mut self, trip: Vector, end: &mut Time) {
        if let Some(first) = self.node(trip).parts_of_port() {
            for wait in 0..PARTS_OF_PORT {
                self.write_part(trip, first + wait, self.wait(trip, wait), end);
            }
        }
    }

    /// Up to when the story has the parts of a trip.
    fn story_until(&self, trip: Vector) -> Time {
        let mut until = self.until(self.node(trip).parent);
        let is_later = |node: &&Node| node.step != Step::Port;
        for node in self.further(trip).skip_while(is_later) {
            match node.step {
                Step::Long(wait) if usize::from(wait) < PARTS_OF_PORT => until += node.until,
                Step::Port => {
                    let waits = &node.waits[..PARTS_OF_PORT];
                    let waits = waits.iter().map(|wait| u64::from(*wait));
                    until += Time::from_nanos(waits.sum());
                }
                _ => {}
            }
        }
        until
    }

    #[cold]
    fn write_trip(&mut self, trip: Vector, now: Time) {
        let mut end = self.story_until(trip);
        for (wait, part) in (PARTS_OF_PORT..).zip(ASIDE) {
            self.write_part(trip, part as usize, self.wait(trip, wait), &mut end);
        }
        self.write_port(trip, &mut end);
        if let Step::Trip(label, _) = self.node(trip).step {
            self.write_part(trip, label.part() as usize, now - end, &mut end);
        }
        self.write(trip, StoryRow::new(StoryEvent::Arrived, now));
    }

    /// The segment of a trip leaves.
    #[cold]
    pub(super) fn write_departure(&mut self, trip: Vector, row: StoryRow) {
        self.write(trip, row);
        let mark = &mut self.marks[trip as usize];
        mark.departure = mark.last;
    }

    /// The segment of a trip was dropped.
    pub(super) fn note_drop(&mut self, trip: Vector, row: StoryRow) {
        let last = self.last(trip);
        if last > 0 {
            self.story.push(last, row);
        }
    }

    /// The exchange is over. The caller gives up its share of what was before.
    pub(super) fn end(&mut self, vector: Vector, now: Time) -> Vector {
        let child = self.child(vector, Step::Nothing);
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

/// Adds to `sums` what a chain adds to the sums at its end, by walking it back.
fn add_chain(nodes: &[Node], vector: Vector, parts: usize, sums: &mut [u64]) {
    // The first of those that cost most.
    let mut loss = (0, 0);
    let mut node = &nodes[vector as usize];
    while node.parent != NONE {
        let before = &nodes[node.parent as usize];
        let time = (node.until - before.until).as_nanos();
        match node.step {
            Step::Trip(label, _) => {
                let mut waits = node.add_port_to(sums) + node.add_aside_to(sums);
                let mut more = node.more;
                while more != NONE {
                    let further = &nodes[more as usize];
                    waits += further.add_further_to(sums);
                    more = further.parent;
                }
                sums[label.part() as usize] += time - waits;
                sums[parts + label.count() as usize] += 1;
            }
            Step::Part(part, count) => {
                sums[part as usize] += time;
                if let Some(count) = count {
                    sums[parts + count as usize] += 1;
                }
            }
            Step::Loss => {
                sums[parts + PathCount::Losses as usize] += 1;
                let (cost, word) = node.loss();
                if cost > 0 && cost >= loss.0 {
                    loss = (cost, word);
                }
            }
            Step::Nothing | Step::Port | Step::Long(_) | Step::Sums => {}
        }
        node = before;
    }
    if let [.., most, what] = sums
        && loss.0 > *most
    {
        (*most, *what) = loss;
    }
}
