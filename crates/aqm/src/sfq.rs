//! Stochastic fairness queueing: P. McKenney, "Stochastic Fairness Queueing", IEEE INFOCOM, 1990.
//! Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Time};

use crate::check;
use crate::context::Context;
use crate::counters::Reason;
use crate::flow_queues::{Chain, FlowQueues, Links, Sizes, queue_of};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of SFQ.
#[parameters]
pub struct Params {
    /// Number of buckets. Each flow is hashed to one of them.
    #[param(default = 1024, least = 1, most = 65536)]
    pub buckets: u32,
    /// Buffer size for all buckets together. When it is full, the longest bucket loses packets.
    #[param(default = "127 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Maximum number of packets in one bucket.
    #[param(default = 127, least = 1)]
    pub depth: u32,
    /// IP bytes that a bucket sends in one turn. If the last packet exceeds them, the bucket's next
    /// turn is shorter. Default: one packet.
    #[param(least = Bytes(1), most = check::LARGEST_QUANTUM)]
    pub quantum: Option<Bytes>,
    /// How often the hash changes. Default: never.
    #[param(least = check::SHORTEST_TICK)]
    pub perturb: Option<Time>,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Stochastic Fairness Queueing",
        paper: "P. McKenney, Stochastic Fairness Queueing, IEEE INFOCOM, 1990",
        purpose: "Shares the link among flows. Each flow is hashed to a bucket, and the buckets \
                  take turns.",
        departures: &[
            "Waiting packets keep their bucket when the hash changes, so packets of a flow can be \
             reordered then.",
            "`quantum`, `depth` and defaults follow Linux.",
        ],
        memory: "about 50 bytes for each bucket",
    };
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Sfq<T>;

    const REASONS: &'static [Reason] = &[Reason::OVERFLOW];

    fn scheduler<T>(&self, _link: LinkFacts, seed: u64) -> Sfq<T> {
        Sfq {
            params: self.clone(),
            limit: Limit::new(self.limit),
            hash_seed: seed,
            next_perturbation: self.perturb.unwrap_or(Time::NEVER),
            lines: FlowQueues::new(self.buckets),
            sizes: Sizes::new(self.buckets),
            links: Links::new(self.buckets),
            turns: Chain::default(),
            credits: vec![0; self.buckets as usize],
        }
    }
}

/// SFQ: buckets that take turns.
#[derive(Debug)]
pub struct Sfq<T> {
    params: Params,
    limit: Limit,
    hash_seed: u64,
    next_perturbation: Time,
    /// A line per bucket.
    lines: FlowQueues<T>,
    /// Packets that wait in each bucket.
    sizes: Sizes,
    /// Buckets with packets, in the order of their turns.
    turns: Chain,
    links: Links,
    /// What each of them may still send in its turn, in bytes or packets.
    credits: Vec<i64>,
}

impl<T> Sfq<T> {
    /// What a packet takes of its bucket's credit.
    #[inline]
    fn cost(&self, size: u32) -> i64 {
        self.params.quantum.map_or(1, |_| i64::from(size))
    }

    /// What a turn adds to a bucket's credit.
    #[inline]
    fn turn(&self) -> i64 {
        self.params.quantum.map_or(1, |quantum| quantum.0 as i64)
    }

    /// The bucket's turn is over.
    #[inline]
    fn end_turn(&mut self, bucket: u32) {
        self.credits[bucket as usize] += self.turn();
        self.links.move_to_end(&mut self.turns, bucket);
    }

    /// The bucket has lost a packet; whether it still has one.
    #[inline]
    fn shrunk(&mut self, bucket: u32) -> bool {
        let left = self.lines.backlog(bucket).packets;
        self.sizes.set(bucket, u64::from(left));
        if left == 0 {
            self.links.remove(&mut self.turns, bucket);
        }
        left > 0
    }
}

impl<T> Scheduler<T> for Sfq<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        _context: &mut impl Context,
    ) {
        let queued = Queued::new(now, packet, item);
        let bucket = queue_of(packet.flow, self.hash_seed, self.params.buckets);
        let length = self.lines.backlog(bucket).packets;
        if length >= self.params.depth {
            stats.drop(queued, Reason::OVERFLOW);
            return;
        }
        if length == 0 {
            self.links.push_back(&mut self.turns, bucket);
            self.credits[bucket as usize] = self.turn();
        }
        self.lines.push(bucket, queued);
        self.sizes.set(bucket, u64::from(length + 1));
        while self.limit.is_exceeded(self.lines.total()) {
            let longest = self.sizes.largest();
            if let Some(queued) = self.lines.pop_tail(longest) {
                stats.drop(queued, Reason::OVERFLOW);
            }
            self.shrunk(longest);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Time,
        _ledger: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        let bucket = loop {
            let first = self.turns.first()?;
            if self.credits[first as usize] > 0 {
                break first;
            }
            self.end_turn(first);
        };
        let queued = self.lines.pop(bucket)?;
        self.credits[bucket as usize] -= self.cost(queued.packet.size);
        if self.shrunk(bucket) && self.credits[bucket as usize] <= 0 {
            self.end_turn(bucket);
        }
        Some(queued)
    }

    fn next_tick(&self) -> Time {
        self.next_perturbation
    }

    fn on_tick(&mut self, now: Time) {
        let span = self.params.perturb.unwrap_or(Time::NEVER);
        self.next_perturbation = now.saturating_add(span);
        self.hash_seed = FlowKey(now.as_nanos()).hash(self.hash_seed);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.lines.total()
    }

    fn adopt(&mut self, fresh: Self) {
        (self.params, self.limit) = (fresh.params, fresh.limit);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["active_buckets", "longest_packets"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let active = self.links.places(self.turns).count();
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
            buckets: 3,
            limit: QueueSize::Packets(6.0),
            depth: 127,
            quantum: None,
            perturb: None,
        }
    }

    /// Flows a, b, c have the buckets 0, 1, 2.
    fn played(params: &Params) -> Played<Sfq<Tag>> {
        Played::new(params.scheduler(LINK, SEED), |name| {
            flow_in_line(u32::from(name.as_bytes()[0] - b'a'), SEED, 3)
        })
    }

    /// The flows that are sent until the queue is empty.
    fn drain(played: &mut Played<Sfq<Tag>>) -> String {
        let mut sent = String::new();
        while let Some(queued) = played.depart(Time::ZERO).sent {
            sent += &queued.item.flow;
        }
        sent
    }

    #[test]
    fn follows_the_worked_example() {
        let mut played = played(&params());
        // In this example's words a packet that makes room was queued.
        let csv = include_str!("../tests/data/sfq.csv")
            .replace("drop_overflow:a:queued", "enqueue;drop_overflow:a:1");
        for row in rows(&csv) {
            played.step(&row);
            let sfq = &played.scheduler;
            let bucket = |index| format!("{index}:{}", sfq.lines.backlog(index).packets);
            let buckets: Vec<_> = (0..3).map(bucket).collect();
            assert_eq!(
                buckets.join("|"),
                row.text("buckets_state"),
                "{}",
                row.step()
            );
            let turns = sfq.links.places(sfq.turns).map(|bucket| bucket.to_string());
            assert_eq!(
                turns.collect::<String>(),
                row.text("turn_list"),
                "{}",
                row.step()
            );
        }
    }

    #[test]
    fn of_equally_long_buckets_the_first_makes_room_even_with_its_only_packet() {
        let limit = QueueSize::Packets(1.0);
        let mut played = played(&Params { limit, ..params() });
        assert_eq!(played.push(0, "b", 500).dropped, []);
        // One packet each: b has the lower number.
        assert_eq!(played.push(0, "c", 500).dropped[0].0.flow, "b");
        assert_eq!(played.push(0, "a", 500).dropped[0].0.flow, "a");
        assert_eq!(drain(&mut played), "c");
    }

    #[test]
    fn a_full_bucket_refuses_the_arrival() {
        let mut played = played(&Params {
            depth: 2,
            ..params()
        });
        let dropped = ["a", "a", "a", "b"].map(|flow| played.push(0, flow, 500).dropped.len());
        assert_eq!(dropped, [0, 0, 1, 0]);
    }

    #[test]
    fn with_a_quantum_turns_are_equal_in_bytes() {
        let quantum = Some(Bytes(1000));
        let limit = QueueSize::Bytes(1 << 20);
        let mut played = played(&Params {
            quantum,
            limit,
            ..params()
        });
        for _ in 0..4 {
            played.push(0, "a", 1500);
            (0..3).for_each(|_| drop(played.push(0, "b", 500)));
        }
        // a sends 1500 of 1000 and owes 500; b sends two of 500. Then a has 500 left, sends 1500,
        // owes 1000 and misses the turn after b's: twice as much for b in that round.
        assert_eq!(drain(&mut played), "abbabbbbabbabbbb");
    }

    #[test]
    fn a_perturbation_spreads_new_packets_anew_and_leaves_waiting_ones() {
        let params = Params {
            buckets: 65536,
            perturb: Some(Time::from_secs(10)),
            ..params()
        };
        let mut played = Played::new(params.scheduler::<Tag>(LINK, SEED), |_| FlowKey(1));
        for round in 1..=3 {
            played.push(0, "a", 500);
            assert_eq!(played.scheduler.next_tick(), Time::from_secs(10 * round));
            played.scheduler.on_tick(Time::from_secs(10 * round));
        }
        // One flow, three seeds, three buckets.
        let sfq = &played.scheduler;
        let lengths = sfq.links.places(sfq.turns);
        let lengths: Vec<_> = lengths
            .map(|bucket| sfq.lines.backlog(bucket).packets)
            .collect();
        assert_eq!(lengths, [1, 1, 1]);
    }
}
