//! Worked examples played on a bare scheduler.

use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, Rate, Time};

use crate::choke::MATCH;
use crate::counters::Reason;
use crate::flow_queues::queue_of;
use crate::link::LinkFacts;
use crate::queue::{Queued, Scheduler, Stats};
use crate::worked::Row;

/// A link whose rate does not matter.
pub(crate) const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};

/// A flow that the hash sends to this line.
pub(crate) fn flow_in_line(line: u32, seed: u64, lines: u32) -> FlowKey {
    let mut flows = (0..).map(FlowKey);
    let found = flows.find(|flow| queue_of(*flow, seed, lines) == line);
    found.expect("every line has a flow")
}

/// What a packet of an example carries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tag {
    pub(crate) flow: String,
    /// The number of its arrival, from 1.
    pub(crate) id: u32,
}

/// What an event did.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) sent: Option<Queued<Tag>>,
    pub(crate) dropped: Vec<(Tag, Reason)>,
}

/// A scheduler on its way through an example.
pub(crate) struct Played<S> {
    pub(crate) scheduler: S,
    pub(crate) stats: Stats<Tag>,
    key: fn(&str) -> FlowKey,
    arrivals: u32,
}

impl<S: Scheduler<Tag>> Played<S> {
    /// `key` turns the name of a flow into its key.
    pub(crate) fn new(scheduler: S, key: fn(&str) -> FlowKey) -> Self {
        Self {
            scheduler,
            stats: Stats::new(&[]),
            key,
            arrivals: 0,
        }
    }

    /// Plays a row and compares the backlog before it, the flow that is sent and the decision.
    pub(crate) fn step(&mut self, row: &Row) {
        let (step, now) = (row.step(), row.time());
        assert_eq!(self.scheduler.backlog(), row.queue(), "row {step}");
        let marked = self.marked();
        let mut outcome = Observed::default();
        match row.event() {
            "arrive" => {
                let mut draws = row.draws();
                let mut draw = || draws.pop_front().expect("a draw that the example lacks");
                outcome = self.arrive(now, row.text("flow"), row.packet(), &mut draw);
                assert!(draws.is_empty(), "row {step}: a draw was not made");
            }
            "depart" => outcome = self.depart(now),
            "idle" => self.scheduler.on_idle(now),
            _ => {
                assert_eq!(self.scheduler.next_tick(), now, "row {step}");
                self.scheduler.on_tick(now);
            }
        }
        let marked = self.marked() > marked;
        let decision = self.decision(row.event(), &outcome, marked);
        assert_eq!(decision, row.text("decision"), "row {step}");
        if let Some(queued) = outcome.sent {
            assert_eq!(queued.item.flow, row.text("flow"), "row {step}");
        }
    }

    fn marked(&self) -> u64 {
        self.stats.counters().marked_packets()
    }

    /// The examples' words: what the arrival met, and how many packets were taken of whom.
    fn decision(&self, event: &str, outcome: &Observed, marked: bool) -> String {
        let arrival = |tag: &Tag| event == "arrive" && tag.id == self.arrivals;
        match (event, outcome.dropped.as_slice()) {
            ("arrive", []) if marked => "mark".to_owned(),
            ("arrive", []) => "enqueue".to_owned(),
            ("depart", _) if marked => "sent_marked".to_owned(),
            ("depart", _) if outcome.sent.is_some() => "sent".to_owned(),
            ("arrive", [(tag, reason)]) if arrival(tag) => format!("drop_{}", reason.name()),
            ("arrive", [_, (tag, reason)]) if arrival(tag) && *reason == MATCH => {
                "drop_both".to_owned()
            }
            ("arrive", [(victim, reason), ..]) => {
                let count = outcome.dropped.len();
                format!("enqueue;drop_{}:{}:{count}", reason.name(), victim.flow)
            }
            _ => String::new(),
        }
    }

    /// A packet of a flow arrives.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        flow: &str,
        packet: Packet,
        draw: &mut impl FnMut() -> f64,
    ) -> Observed {
        self.arrivals += 1;
        let tag = Tag {
            flow: flow.to_owned(),
            id: self.arrivals,
        };
        let key = (self.key)(flow);
        let packet = Packet {
            flow: key,
            ..packet
        };
        self.scheduler
            .enqueue(now, packet, tag, &mut self.stats, draw);
        self.outcome(None)
    }

    /// A packet of a flow that is not ECN-capable arrives where nothing is left to chance.
    pub(crate) fn push(&mut self, ms: u64, flow: &str, size: u32) -> Observed {
        let packet = Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(0),
        };
        let mut draw = || unreachable!("nothing is left to chance");
        self.arrive(Time::from_millis(ms), flow, packet, &mut draw)
    }

    /// A packet may leave.
    pub(crate) fn depart(&mut self, now: Time) -> Observed {
        self.depart_drawing(now, &mut || unreachable!("nothing is left to chance"))
    }

    /// A packet may leave, where chance decides.
    pub(crate) fn depart_drawing(&mut self, now: Time, draw: &mut impl FnMut() -> f64) -> Observed {
        let sent = self.scheduler.dequeue(now, &mut self.stats, draw);
        self.outcome(sent)
    }

    fn outcome(&mut self, sent: Option<Queued<Tag>>) -> Observed {
        let mut dropped = Vec::new();
        self.stats
            .hand_back(|queued, reason| dropped.push((queued.item, reason)));
        Observed { sent, dropped }
    }
}
