//! Deficit round robin: M. Shreedhar, G. Varghese, "Efficient Fair Queuing using Deficit Round
//! Robin", ACM SIGCOMM, 1995, figure 3. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::check;
use crate::context::Context;
use crate::counters::Reason;
use crate::flow_queues::{Chain, FlowQueues, Links, Sizes, queue_of};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of DRR.
#[parameters]
pub struct Params {
    /// Number of queues. Each flow is hashed to one of them.
    #[param(default = 1024, least = 1, most = 65536)]
    pub flows: u32,
    /// IP bytes that each turn adds to the credit of a flow. If `quantum` is at least the largest
    /// packet, every turn sends a packet.
    #[param(default = "500 bytes", least = Bytes(1), most = check::LARGEST_QUANTUM, changeable)]
    pub quantum: Bytes,
    /// Buffer size for all flows together. When it is full, the flow with the most bytes loses
    /// packets.
    #[param(default = "25000 bytes", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Which packet of the flow with the most bytes is dropped when the buffer is full.
    #[param(default)]
    pub overflow: Overflow,
}

/// Which packet a flow loses when the buffer is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// The newest packet, which can be the arrival.
    #[default]
    Tail,
    /// The oldest packet, so its sender notices the loss sooner.
    Head,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Deficit Round Robin",
        paper: "M. Shreedhar, G. Varghese, Efficient Fair Queuing using Deficit Round Robin, ACM \
                SIGCOMM, 1995, figure 3",
        purpose: "Shares the link among flows in bytes, whatever their packet sizes, at a constant \
                  cost per packet.",
        departures: &["A hash of the 5-tuple identifies a flow (ns-2: the source address)."],
        memory: "about 50 bytes for each queue",
    };
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Drr<T>;

    const REASONS: &'static [Reason] = &[Reason::OVERFLOW];

    fn scheduler<T>(&self, _link: LinkFacts, seed: u64) -> Drr<T> {
        Drr {
            params: self.clone(),
            hash_seed: seed,
            limit: Limit::new(self.limit),
            lines: FlowQueues::new(self.flows),
            sizes: Sizes::new(self.flows),
            links: Links::new(self.flows),
            active: Chain::default(),
            in_turn: false,
            deficits: vec![0; self.flows as usize],
        }
    }
}

/// DRR: flows that take turns and save up for their large packets.
#[derive(Debug)]
pub struct Drr<T> {
    params: Params,
    hash_seed: u64,
    limit: Limit,
    /// A line per flow.
    lines: FlowQueues<T>,
    /// Bytes that wait of each flow.
    sizes: Sizes,
    /// Flows with packets, in the order of their turns (the paper's ActiveList).
    active: Chain,
    links: Links,
    /// Whether the first of them has had its quantum in this turn.
    in_turn: bool,
    /// What each flow may still send, in bytes.
    deficits: Vec<u64>,
}

impl<T> Drr<T> {
    /// The flow has lost a packet. Without any left it loses its turn and its savings.
    #[inline]
    fn shrunk(&mut self, flow: u32) {
        let left = self.lines.backlog(flow);
        self.sizes.set(flow, left.bytes);
        if left.packets == 0 {
            if self.active.first() == Some(flow) {
                self.in_turn = false;
            }
            self.links.remove(&mut self.active, flow);
            self.deficits[flow as usize] = 0;
        }
    }

    /// A packet of the flow with most bytes.
    fn steal(&mut self) -> Option<Queued<T>> {
        let flow = self.sizes.largest();
        let queued = match self.params.overflow {
            Overflow::Tail => self.lines.pop_tail(flow),
            Overflow::Head => self.lines.pop(flow),
        };
        self.shrunk(flow);
        queued
    }
}

impl<T> Scheduler<T> for Drr<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        _context: &mut impl Context,
    ) {
        let flow = queue_of(packet.flow, self.hash_seed, self.params.flows);
        if self.lines.backlog(flow).packets == 0 {
            self.links.push_back(&mut self.active, flow);
        }
        self.lines.push(flow, Queued::new(now, packet, item));
        self.sizes.set(flow, self.lines.backlog(flow).bytes);
        while self.limit.is_exceeded(self.lines.total()) {
            if let Some(queued) = self.steal() {
                stats.drop(queued, Reason::OVERFLOW);
            }
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Time,
        _ledger: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        loop {
            let flow = self.active.first()?;
            let size = u64::from(self.lines.head(flow)?.packet.size);
            let deficit = &mut self.deficits[flow as usize];
            if !self.in_turn {
                self.in_turn = true;
                *deficit += self.params.quantum.0;
            }
            if size <= *deficit {
                *deficit -= size;
                let queued = self.lines.pop(flow);
                self.shrunk(flow);
                return queued;
            }
            self.in_turn = false;
            self.links.move_to_end(&mut self.active, flow);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.lines.total()
    }

    fn adopt(&mut self, fresh: Self) {
        (self.params, self.limit) = (fresh.params, fresh.limit);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["active_flows", "fattest_bytes"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let active = self.links.places(self.active).count();
        out.extend([active as f64, f64::from(self.sizes.largest_size())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worked::queues::{LINK, Played, Tag, flow_in_line};
    use crate::worked::rows;

    const SEED: u64 = 1;

    fn params() -> Params {
        Params {
            flows: 3,
            quantum: Bytes(500),
            limit: QueueSize::Bytes(4000),
            overflow: Overflow::Head,
        }
    }

    /// Flows a, b, c have the queues 0, 1, 2.
    fn played(params: &Params) -> Played<Drr<Tag>> {
        Played::new(params.scheduler(LINK, SEED), |name| {
            flow_in_line(u32::from(name.as_bytes()[0] - b'a'), SEED, 3)
        })
    }

    /// Follows the rows of an example, the active list and its deficits.
    fn follow(csv: &str, params: &Params) {
        let mut played = played(params);
        for row in rows(csv) {
            played.step(&row);
            let drr = &played.scheduler;
            let active: Vec<_> = drr.links.places(drr.active).collect();
            let name = |flow: &u32| char::from(b'a' + *flow as u8);
            let deficit = |flow: &u32| format!("{}:{}", name(flow), drr.deficits[*flow as usize]);
            let deficits: Vec<_> = active.iter().map(deficit).collect();
            let names: String = active.iter().map(name).collect();
            assert_eq!(names, row.text("active_list"), "row {}", row.step());
            assert_eq!(
                deficits.join("|"),
                row.text("deficits"),
                "row {}",
                row.step()
            );
        }
    }

    #[test]
    fn follows_the_worked_example() {
        follow(include_str!("../tests/data/drr.csv"), &params());
    }

    #[test]
    fn the_flow_with_most_bytes_makes_room_and_loses_its_turn_with_its_last_packet() {
        // Row 4: a has 500 for 1200 bytes and waits; b sends 100 of its 500, and its turn goes on.
        // Row 6: 4200 bytes are too many, and b has most of them in its only packet: it leaves with
        // its turn. Row 8: a has 1000, c 500, b 500, not enough; then a has 1500 and sends 1200.
        let csv = "\
step,time_s,event,flow,ect,size_bytes,queue_packets_before,queue_bytes_before,random_draw,active_list,deficits,decision
1,0.001,arrive,a,false,1200,0,0,,a,a:0,enqueue
2,0.002,arrive,b,false,100,1,1200,,ab,a:0|b:0,enqueue
3,0.003,arrive,b,false,1500,2,1300,,ab,a:0|b:0,enqueue
4,0.004,depart,b,false,100,3,2800,,ba,b:400|a:500,sent
5,0.005,arrive,c,false,1400,2,2700,,bac,b:400|a:500|c:0,enqueue
6,0.006,arrive,a,false,100,3,4100,,ac,a:500|c:0,enqueue;drop_overflow:b:1
7,0.007,arrive,b,false,600,3,2700,,acb,a:500|c:0|b:0,enqueue
8,0.008,depart,a,false,1200,4,3300,,acb,a:300|c:500|b:500,sent
";
        let limit = QueueSize::Bytes(4100);
        follow(csv, &Params { limit, ..params() });
    }

    #[test]
    fn the_tail_may_be_the_arrival() {
        let params = Params {
            overflow: Overflow::Tail,
            limit: QueueSize::Packets(2.0),
            ..params()
        };
        let mut played = played(&params);
        let mut dropped = Vec::new();
        for flow in ["a", "a", "a", "b"] {
            dropped.extend(played.push(0, flow, 500).dropped);
        }
        // The third of a was the arrival; b's, of the smaller flow, pushed the second of a out.
        let ids: Vec<_> = dropped.iter().map(|(tag, _)| tag.id).collect();
        assert_eq!(ids, [3, 2]);
    }

    #[test]
    fn two_flows_with_packets_of_different_sizes_send_equally_many_bytes() {
        let limit = QueueSize::Bytes(1 << 20);
        let mut played = played(&Params { limit, ..params() });
        for _ in 0..200 {
            played.push(0, "a", 1500);
            (0..15).for_each(|_| drop(played.push(0, "b", 100)));
        }
        let mut sent = [0_i64; 2];
        for _ in 0..1500 {
            let queued = played.depart(Time::ZERO).sent.unwrap();
            sent[usize::from(queued.item.flow == "b")] += i64::from(queued.packet.size);
            // A quantum and two of the largest packets.
            assert!((sent[0] - sent[1]).abs() <= 500 + 2 * 1500, "{sent:?}");
        }
    }
}
