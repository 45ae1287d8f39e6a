//! CAKE over the queues of a device: each is a whole CAKE, and those with packets share the rate. After
//! Linux 7.0's `cake_mq`. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Packet, Time};

use crate::cake::{self, Cake};
use crate::check::Problem;
use crate::context::Context;
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::queue::{Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// A queue looks so seldom who else sends.
const LOOK: Time = Time::from_micros(200);

/// Parameters of CAKE over several queues.
#[parameters]
pub struct Params {
    /// Number of queues of the device. Each flow is hashed to one of them.
    #[param(default = 4, least = 1, most = 64)]
    pub queues: u32,
    /// Keys of `cake`, for each queue. The queues that send share its `bandwidth`.
    #[param(default, table)]
    pub cake: cake::Params,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "CAKE over several queues",
        paper: "Linux 7.0, net/sched/sch_cake.c, cake_mq",
        purpose: "CAKE on several processors: each queue of the device has a CAKE of its own, and \
                  the queues that send share one rate.",
        departures: &[
            "Flows are hashed to queues here; in Linux the device or the processor chooses.",
            "The device takes packets from its queues in turns.",
        ],
        memory: "the state of one CAKE for each queue",
    };

    fn check_together(&self) -> Result<(), Problem> {
        aqmlab_declare::check::within("cake", Parameters::check(&self.cake))
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = CakeMq<T>;

    const REASONS: &'static [Reason] = <cake::Params as SchedulerParameters>::REASONS;

    fn scheduler<T>(&self, link: LinkFacts, seed: u64) -> CakeMq<T> {
        let queue = |number| Queue {
            cake: self.cake.scheduler(link, seed ^ u64::from(number) << 32),
            sharing: 1,
            looked: None,
            sent: Time::ZERO,
        };
        CakeMq {
            queues: (0..self.queues).map(queue).collect(),
            params: self.cake.clone(),
            turn: 0,
            backlog: Backlog::default(),
            seed,
        }
    }
}

impl Params {
    /// Parameters of its queues that can change during a run.
    pub(crate) fn within(&self) -> Vec<String> {
        let keys = self.cake.changeable().into_iter();
        keys.map(|key| format!("cake.{key}")).collect()
    }
}

/// A queue of the device.
#[derive(Debug)]
struct Queue<T> {
    cake: Cake<T>,
    /// Among how many it shares the rate.
    sharing: u32,
    /// When it looked last who else sends.
    looked: Option<Time>,
    /// When it sent last.
    sent: Time,
}

impl<T> Queue<T> {
    fn has_packets(&self) -> bool {
        self.cake.backlog().packets > 0
    }

    /// It has its part of the rate.
    fn share(&mut self, params: &cake::Params, sharing: u32) {
        self.sharing = sharing;
        self.cake
            .set_rate(params, params.rate() / u64::from(sharing));
    }
}

/// CAKE over several queues.
#[derive(Debug)]
pub struct CakeMq<T> {
    queues: Vec<Queue<T>>,
    params: cake::Params,
    /// The queue whose turn it is.
    turn: usize,
    backlog: Backlog,
    seed: u64,
}

impl<T> CakeMq<T> {
    /// A queue looks who else sends, if it is time.
    fn look(&mut self, now: Time, number: usize) {
        let queue = &self.queues[number];
        let since = match queue.looked {
            Some(looked) if now < looked + LOOK => return,
            Some(looked) => looked,
            None => Time::ZERO,
        };
        let others = self.queues.iter().enumerate().filter(|(other, queue)| {
            *other != number && (queue.has_packets() || queue.sent > since)
        });
        let sharing = 1 + others.count() as u32;
        let queue = &mut self.queues[number];
        queue.looked = Some(now);
        if queue.sharing != sharing {
            queue.share(&self.params, sharing);
        }
    }
}

impl<T> Scheduler<T> for CakeMq<T> {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let hash = packet.flow.hash(!self.seed) >> 32;
        let number = ((hash * self.queues.len() as u64) >> 32) as usize;
        let cake = &mut self.queues[number].cake;
        let before = cake.backlog();
        cake.enqueue(now, packet, item, stats, context);
        self.backlog.replace(before, cake.backlog());
    }

    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        for _ in 0..self.queues.len() {
            let number = self.turn;
            self.turn = (self.turn + 1) % self.queues.len();
            if !self.queues[number].has_packets() {
                continue;
            }
            if self.params.bandwidth.is_some() {
                self.look(now, number);
            }
            let queue = &mut self.queues[number];
            let before = queue.cake.backlog();
            let sent = queue.cake.dequeue(now, stats, draw);
            self.backlog.replace(before, queue.cake.backlog());
            if sent.is_some() {
                queue.sent = now;
                return sent;
            }
        }
        None
    }

    fn next_release(&self) -> Time {
        let waiting = self.queues.iter().filter(|queue| queue.has_packets());
        let first = waiting.map(|queue| queue.cake.next_release()).min();
        first.unwrap_or(Time::NEVER)
    }

    fn arrivals_release(&self) -> bool {
        true
    }

    fn adopt(&mut self, fresh: Self) {
        self.params = fresh.params;
        for (queue, fresh) in self.queues.iter_mut().zip(fresh.queues) {
            queue.cake.adopt(fresh.cake);
            if self.params.bandwidth.is_some() {
                queue.share(&self.params, queue.sharing);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["sharing_queues"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let sharing = self.queues.iter().map(|queue| queue.sharing).max();
        out.push(f64::from(sharing.unwrap_or(1)));
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{Bytes, Ecn, FlowKey, Rate};

    use super::*;
    use crate::Discipline;

    const SIZE: u32 = 1500;

    /// Plays flows that always have packets, from the time at which each begins, on a wire of 1 Gbit/s:
    /// when each packet left, and of which flow it was. CAKE shapes to 100 Mbit/s.
    fn play(begin: &[Time], end: Time) -> Vec<(Time, usize)> {
        let table =
            "kind = 'cake-mq'\nqueues = 4\ncake = { bandwidth = '100 Mbit/s', memory = '100 MB' }";
        let table: toml::Table = table.parse().unwrap();
        let read = aqmlab_declare::tagged::from_value(toml::Value::Table(table));
        let Discipline::CakeMq(params) = read.unwrap() else {
            unreachable!("it is cake-mq");
        };
        let link = LinkFacts {
            rate: Rate::from_mbps(1000),
            framing: Bytes(0),
        };
        let mut mq: CakeMq<usize> = params.scheduler(link, 7);
        let mut stats = Stats::new(Params::REASONS);
        let mut draw = || 0.5;
        // A flow in each queue.
        let queue = |key: u64| ((FlowKey(key).hash(!7) >> 32) * 4) >> 32;
        let flows: Vec<u64> = (0..4)
            .map(|number| (0..).find(|key| queue(*key) == number).unwrap())
            .collect();
        let (mut sent, mut now, mut waiting) = (Vec::new(), Time::ZERO, [0_u32; 4]);
        while now < end {
            for (flow, begin) in begin.iter().enumerate() {
                while *begin <= now && waiting[flow] < 20 {
                    let packet = Packet {
                        flow: FlowKey(flows[flow]),
                        size: SIZE,
                        ecn: Ecn::NotEct,
                        dscp: 0,
                    };
                    mq.enqueue(now, packet, flow, &mut stats, &mut draw);
                    waiting[flow] += 1;
                }
            }
            let dequeued = mq.dequeue(now, &mut stats, &mut draw);
            let mut next = match &dequeued {
                Some(_) => now + Time::from_micros(12),
                None => mq.next_release(),
            };
            if let Some(queued) = dequeued {
                sent.push((now, queued.item));
                waiting[queued.item] -= 1;
            }
            stats.hand_back(|queued, _| waiting[queued.item] -= 1);
            for begin in begin.iter().filter(|begin| **begin > now) {
                next = next.min(*begin);
            }
            assert!(next > now, "what is held back is released later");
            now = next;
        }
        sent
    }

    /// Mbit/s of a flow between two times.
    fn rate(sent: &[(Time, usize)], flow: usize, from: u64, to: u64) -> f64 {
        let span = Time::from_millis(from)..Time::from_millis(to);
        let of_flow = |(at, of): &&(Time, usize)| *of == flow && span.contains(at);
        let bytes = sent.iter().filter(of_flow).count() as f64 * f64::from(SIZE);
        bytes * 8e-3 / (to - from) as f64
    }

    fn is_near(found: f64, right: f64) {
        assert!(
            (found - right).abs() <= 0.01 * right,
            "{found}, expected {right} Mbit/s"
        );
    }

    #[test]
    fn the_queues_that_send_share_the_rate() {
        let ms = Time::from_millis;
        let one = play(&[Time::ZERO], ms(1100));
        is_near(rate(&one, 0, 100, 1100), 100.0);
        let two = play(&[Time::ZERO; 2], ms(1100));
        for flow in 0..2 {
            is_near(rate(&two, flow, 100, 1100), 50.0);
        }
        let three = play(&[Time::ZERO, Time::ZERO, ms(500)], ms(1500));
        for flow in 0..2 {
            is_near(rate(&three, flow, 100, 500), 50.0);
        }
        for flow in 0..3 {
            is_near(rate(&three, flow, 510, 1500), 100.0 / 3.0);
        }
    }

    #[test]
    fn all_together_exceed_the_rate_for_a_moment_when_one_more_begins() {
        let sent = play(
            &[Time::ZERO, Time::ZERO, Time::from_millis(500)],
            Time::from_millis(700),
        );
        let all = |from: u64| {
            let of_flows = (0..3).map(|flow| rate(&sent, flow, from, from + 10));
            of_flows.sum::<f64>()
        };
        let largest = (490..690).map(all).fold(0.0, f64::max);
        // 2.5 %, and a packet in 10 ms.
        assert!((100.0..=103.7).contains(&largest), "{largest} Mbit/s");
    }

    #[test]
    fn without_a_rate_the_queues_take_turns() {
        let table: toml::Table = "kind = 'cake-mq'".parse().unwrap();
        let read = aqmlab_declare::tagged::from_value(toml::Value::Table(table));
        let discipline: Discipline = read.unwrap();
        assert_eq!(discipline.check(), Ok(()));
        assert!(!discipline.changing().contains(&"cake.bandwidth".to_owned()));
        assert!(discipline.changing().contains(&"cake.rtt".to_owned()));
    }
}
