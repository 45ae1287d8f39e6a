//! A shaper: one token bucket over one discipline, as Linux's `sch_tbf` keeps it. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, Rate, Time};

use crate::bucket::{Bucket, elapsed};
use crate::check::{self, Problem};
use crate::context::Context;
use crate::counters::Reason;
use crate::leaf::{self, Leaf, LeafQueue};
use crate::link::{Backlog, LinkFacts};
use crate::policer::burst_of_a_packet;
use crate::queue::{Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of a shaper.
#[parameters]
pub struct Params {
    /// Rate at which tokens fill the bucket.
    #[param(least = "8 kbit/s", changeable)]
    pub rate: Rate,
    /// Size of the bucket.
    #[param(default = "15000 bytes", changeable)]
    pub burst: Bytes,
    /// Maximum rate within a burst. A second bucket of `mtu` bytes limits it. Default: the link's
    /// rate.
    #[param(least = "8 kbit/s")]
    pub peak: Option<Rate>,
    /// Size of the bucket for the peak rate.
    #[param(default = "1600 bytes", check = check::packet_size)]
    pub mtu: Bytes,
    /// Bytes that the shaper adds to the IP size of each packet. Default: the bytes that the link's
    /// `framing` adds.
    #[param(most = 256, changeable)]
    pub overhead: Option<u32>,
    /// Discipline of the waiting packets: the name of a discipline or preset, or a table.
    pub leaf: Leaf,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "A shaper",
        paper: "the rule of Linux's sch_tbf",
        purpose: "Shapes the packets of any discipline to a rate: a packet leaves when the token \
                  bucket has enough for it.",
        departures: &[
            "Packets are never split.",
            "As in Linux, a leaf that is a scheduler hands over its next packet early. This packet \
             waits outside the leaf. A FIFO keeps its next packet until it can leave.",
        ],
        memory: "the state of the leaf and two token buckets",
    };

    fn check_together(&self) -> Result<(), Problem> {
        burst_of_a_packet(self.burst)?;
        if let Some(peak) = self.peak
            && peak < self.rate
        {
            let message = format!("found {peak}; it must be at least rate, {}", self.rate);
            return check::problem("peak", message);
        }
        self.leaf.check("leaf")
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Shaper<T>;

    const REASONS: &'static [Reason] = leaf::REASONS;

    fn scheduler<T>(&self, link: LinkFacts, seed: u64) -> Shaper<T> {
        let facts = self.facts(link);
        Shaper {
            bucket: Bucket::new(self.rate, self.burst, 1.0),
            peak: self.peak.map(|peak| Bucket::new(peak, self.mtu, 1.0)),
            stated: self.overhead,
            overhead: self.overhead.unwrap_or(link.framing.0 as u32),
            rate: self.rate,
            leaf: LeafQueue::new(&self.leaf, facts, seed),
            scratch: Stats::new(leaf::REASONS),
            first: None,
            sent: Time::ZERO,
            release: Time::NEVER,
        }
    }
}

impl Params {
    /// The link as the leaf sees it.
    fn facts(&self, link: LinkFacts) -> LinkFacts {
        LinkFacts {
            rate: self.rate.min(link.rate),
            ..link
        }
    }
}

/// A shaper over a leaf.
#[derive(Debug)]
pub struct Shaper<T> {
    bucket: Bucket,
    peak: Option<Bucket>,
    stated: Option<u32>,
    overhead: u32,
    rate: Rate,
    leaf: LeafQueue<T>,
    scratch: Stats<T>,
    /// The packet that a scheduler has given up and the bucket has too little for.
    first: Option<Queued<T>>,
    /// When the last packet left: one that is held changes nothing.
    sent: Time,
    release: Time,
}

impl<T> Shaper<T> {
    /// The size of the packet that is next, if there is one.
    fn next_size(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<u32> {
        if self.first.is_none() {
            if let Some(size) = self.leaf.as_ref().head_size() {
                return Some(size);
            }
            (self.first, _) = self.leaf.dequeue(now, &mut self.scratch, stats, draw);
        }
        self.first.as_ref().map(|queued| queued.packet.size)
    }
}

impl<T> Scheduler<T> for Shaper<T> {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let bytes = packet.size + self.overhead;
        let holds = |bucket: &Bucket| bucket.holds(bytes);
        if !holds(&self.bucket) || !self.peak.as_ref().is_none_or(holds) {
            stats.drop(Queued::new(now, packet, item), leaf::TOO_LARGE);
            return;
        }
        let arrival = (packet, item);
        self.leaf
            .enqueue(now, arrival, &mut self.scratch, stats, context);
    }

    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        let bytes = self.next_size(now, stats, draw)? + self.overhead;
        let since = elapsed(self.sent, now);
        let left = self.bucket.left(since, bytes);
        let peak_left = self.peak.as_ref().map_or(0, |peak| peak.left(since, bytes));
        if left < 0 || peak_left < 0 {
            let missing = (-left).max(-peak_left) as u64;
            self.release = now + Time::from_nanos(missing);
            return None;
        }
        self.bucket.set(left);
        if let Some(peak) = &mut self.peak {
            peak.set(peak_left);
        }
        (self.sent, self.release) = (now, Time::NEVER);
        match self.first.take() {
            Some(first) => Some(first),
            None => self.leaf.dequeue(now, &mut self.scratch, stats, draw).0,
        }
    }

    fn next_release(&self) -> Time {
        self.release
    }

    fn on_idle(&mut self, since: Time) {
        self.leaf.as_mut().on_idle(since);
    }

    fn next_tick(&self) -> Time {
        self.leaf.as_ref().next_tick()
    }

    fn on_tick(&mut self, now: Time) {
        self.leaf.as_mut().on_tick(now);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.overhead = self.stated.unwrap_or(link.framing.0 as u32);
        self.leaf.as_mut().set_link(LinkFacts {
            rate: self.rate.min(link.rate),
            ..link
        });
    }

    fn adopt(&mut self, fresh: Self) {
        self.bucket.adopt(fresh.bucket);
        (self.stated, self.overhead) = (fresh.stated, fresh.overhead);
        self.rate = fresh.rate;
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.leaf.as_ref().backlog();
        if let Some(first) = &self.first {
            backlog.add(first.packet.size);
        }
        backlog
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["credit_ms"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.push(self.bucket.credit() as f64 / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use aqmlab_net::{Ecn, FlowKey, RandomStream};

    use super::*;
    use crate::worked::rows;

    const LINK: LinkFacts = LinkFacts {
        rate: Rate::from_mbps(100),
        framing: Bytes(0),
    };

    fn packet(size: u32) -> Packet {
        Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        }
    }

    fn params(text: &str) -> Params {
        let text = format!("rate = '1 Mbit/s'\nburst = '10000 bytes'\n{text}");
        let table: toml::Table = text.parse().unwrap();
        let params: Params = aqmlab_declare::tagged::from_value(table.into()).unwrap();
        assert_eq!(params.check_together(), Ok(()));
        params
    }

    const FIFO: &str = "leaf = { kind = 'droptail', limit = '30000 bytes' }";

    /// Plays arrivals before a wire of so many ns a byte. Departures come first, then arrivals, each
    /// followed by a dequeue if the wire is free. What happens: time, packet and event.
    fn play(
        shaper: &mut Shaper<usize>,
        arrivals: &[(u64, u32)],
        ns_per_byte: u64,
    ) -> Vec<(u64, usize, &'static str)> {
        let mut stats = Stats::new(leaf::REASONS);
        let mut draw = || unreachable!("nothing is left to chance");
        let mut coming: VecDeque<_> = arrivals.iter().copied().enumerate().collect();
        let (mut log, mut wake, mut on_wire) = (Vec::new(), u64::MAX, false);
        loop {
            let arrival = coming.front().map_or(u64::MAX, |(_, (at, _))| *at);
            let at = wake.min(arrival);
            if at == u64::MAX {
                return log;
            }
            let now = Time::from_nanos(at);
            if wake <= arrival {
                on_wire = false;
            } else if let Some((number, (_, size))) = coming.pop_front() {
                shaper.enqueue(now, packet(size), number, &mut stats, &mut draw);
                stats.hand_back(|queued, _| log.push((at, queued.item, "drop")));
            }
            if on_wire {
                continue;
            }
            wake = u64::MAX;
            if let Some(queued) = shaper.dequeue(now, &mut stats, &mut draw) {
                log.push((at, queued.item, "depart"));
                (wake, on_wire) = (at + u64::from(queued.packet.size) * ns_per_byte, true);
            } else if shaper.backlog().packets > 0 {
                wake = shaper.next_release().as_nanos();
                assert!(wake > at, "it is released later");
            }
        }
    }

    #[test]
    fn sends_and_drops_when_the_kernel_does() {
        let cases = [
            ("rate 1 Mbit/s burst 10000 limit 30000", "", 0),
            (
                "same and peak 4 Mbit/s mtu 1600",
                "peak = '4 Mbit/s'\nmtu = '1600 bytes'\n",
                0,
            ),
            ("same without peak on a wire of 10 Mbit/s", "", 800),
        ];
        let all = rows(include_str!("../tests/data/tbf.csv"));
        for (case, more, ns_per_byte) in cases {
            let of = |row: &&crate::worked::Row| row.text("case") == case;
            let number = |text: &str| text.parse::<u64>().unwrap();
            let mut arrivals = Vec::new();
            let mut right = Vec::new();
            for row in all.iter().filter(of) {
                let at = number(row.text("time_ns"));
                let size = number(row.text("size_bytes")) as u32;
                match row.event() {
                    "arrive" => arrivals.push((at, size)),
                    event => {
                        let packet = number(row.text("packet")) as usize;
                        right.push((at, packet, event.to_owned()));
                    }
                }
            }
            let mut shaper = params(&format!("{more}{FIFO}")).scheduler(LINK, 1);
            let mut found: Vec<_> = play(&mut shaper, &arrivals, ns_per_byte)
                .into_iter()
                .map(|(at, packet, event)| (at, packet, event.to_owned()))
                .collect();
            found.sort_by_key(|(at, packet, event)| (*packet, *at, event.clone()));
            right.sort_by_key(|(at, packet, event)| (*packet, *at, event.clone()));
            assert_eq!(found, right, "{case}");
            assert_eq!(found.len(), 121, "{case}");
        }
    }

    #[test]
    fn no_interval_has_more_than_burst_and_rate() {
        let mut stream = RandomStream::new(1, "arrivals", 0);
        let mut at = 0;
        let arrivals: Vec<_> = (0..100_000)
            .map(|_| {
                at += stream.below(12_000_000) as u64;
                (at, [64, 576, 1500][stream.below(3)])
            })
            .collect();
        let mut shaper = params(FIFO).scheduler(LINK, 1);
        let (mut above, mut least, mut last) = (0_i128, 0_i128, 0_i128);
        for (at, packet, event) in play(&mut shaper, &arrivals, 0) {
            if event == "depart" {
                above -= i128::from(at) - last;
                last = i128::from(at);
                least = least.min(above);
                above += i128::from(arrivals[packet].1) * 8000;
                assert!(above - least <= 10_000 * 8000, "packet {packet}");
            }
        }
    }

    #[test]
    fn a_leaf_with_a_shaper_of_its_own_is_refused() {
        let refused = |leaf: &str| {
            let text = format!("rate = '1 Mbit/s'\nleaf = {leaf}");
            let table: toml::Table = text.parse().unwrap();
            let params: Params = aqmlab_declare::tagged::from_value(table.into()).unwrap();
            params.check_together().unwrap_err()
        };
        let (field, message) = refused("{ kind = 'cake', bandwidth = '1 Mbit/s' }");
        assert_eq!(field, "leaf");
        assert!(message.contains("cake with a bandwidth"), "{message}");
        let nested = "{ kind = 'shaper', rate = '1 Mbit/s', leaf = 'droptail-240' }";
        assert!(refused(nested).1.contains("a shaper"));
        let (field, _) = refused("{ kind = 'cake', target = '200 ms' }");
        assert_eq!(field, "leaf.target");
    }

    #[test]
    fn a_name_is_a_preset_or_a_kind() {
        for name in ["droptail-240", "droptail", "cake", "fq-codel", "pie"] {
            Leaf::named(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(Leaf::named("no-such").is_err());
    }

    /// What a scheduler has given up waits in front of it.
    #[test]
    fn a_scheduler_gives_its_packets_in_time() {
        let mut shaper = params("leaf = 'fq-codel'").scheduler(LINK, 1);
        let arrivals = [(0, 1500); 20];
        let log = play(&mut shaper, &arrivals, 0);
        let departures: Vec<_> = log.iter().map(|(at, ..)| *at).collect();
        assert_eq!(departures[..6], [0; 6]);
        // 9000 of 10000 bytes are gone; 500 are missing: 4 ms.
        assert_eq!(departures[6..9], [4_000_000, 16_000_000, 28_000_000]);
    }
}
