//! RED and adaptive RED: the rules in which ns-2 and ns-3 part from ours, side by side.

use std::collections::VecDeque;

use aqmlab_net::{Ecn, Packet, Time};

use crate::peers::random::{Outcome, RUNS};
use crate::peers::{Buffer, Case, Port, Run};

/// Mean packet size, bytes.
const MEAN: f64 = 1000.0;
/// C, of such packets.
const PACKETS_PER_SECOND: f64 = 1250.0;
const W_Q: f64 = 0.002;

/// Whose rules.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rules {
    /// `red`, `ared` and `ared-feng`.
    Ours,
    /// - Idle time ages the average by one packet more than C times it, rounded down.
    /// - The first packet beyond `min_th` is let in untested, and counts.
    /// - Byte mode: `count` is bytes over the mean, rounded down, the size factor comes after the
    ///   spacing rule, and limit and guard ("more than one waiting") are asked of bytes.
    /// - ARED: the gentle slope is that of the first max_p, and after an interval without a change
    ///   of max_p each arrival may change it.
    Ns2,
    /// As ns-2, from which it was ported; but a forced drop or an overflow does not change `count`.
    Ns3,
}

/// How max_p moves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Adapt {
    No,
    Floyd,
    Feng,
}

#[derive(Clone, Copy)]
struct Settings {
    min_th: f64,
    max_th: f64,
    max_p: f64,
    limit: usize,
    gentle: bool,
    /// Spacing as ns-2 has it by default (`wait`), not that of 1993.
    wait: bool,
    bytes: bool,
    adapt: Adapt,
}

const RED: Settings = Settings {
    min_th: 5.0,
    max_th: 15.0,
    max_p: 0.1,
    limit: 60,
    gentle: false,
    wait: true,
    bytes: false,
    adapt: Adapt::No,
};
const ADAPTIVE: Settings = Settings {
    min_th: 12.0,
    max_th: 36.0,
    max_p: 0.25,
    limit: 120,
    ..RED
};

impl Settings {
    /// The table of our discipline.
    fn table(&self, ecn: bool) -> String {
        let kind = match self.adapt {
            Adapt::No => "red",
            Adapt::Floyd => "ared",
            Adapt::Feng => "ared-feng",
        };
        let gap = if self.wait { "wait" } else { "uniform" };
        let mut table = format!(
            "kind = '{kind}'\nmin_th = '{} packets'\nmax_th = '{} packets'\nmax_p = {}\n\
             limit = '{} packets'\nw_q = {W_Q}\nmean_packet = '{MEAN} bytes'\ngap = '{gap}'\n\
             ecn = {ecn}\n",
            self.min_th, self.max_th, self.max_p, self.limit
        );
        if self.adapt == Adapt::No {
            table += &format!("gentle = {}\n", self.gentle);
        }
        if self.bytes {
            table += "unit = 'bytes'\nscale_by_size = true\n";
        }
        table
    }
}

/// RED over a FIFO by either rules.
struct Red {
    settings: Settings,
    rules: Rules,
    ecn: bool,
    waiting: VecDeque<(Packet, usize)>,
    avg: f64,
    idle_since: Option<Time>,
    max_p: f64,
    /// When max_p was changed last, or may be next (ours).
    adapted: Time,
    /// Feng: on which side of the band the average was; -1 below, 1 above.
    side: i8,
    /// Packets and bytes since the last signal.
    count: f64,
    bytes: f64,
    /// The last arrival found the average above `min_th`.
    above: bool,
}

impl Red {
    fn new(settings: Settings, rules: Rules, ecn: bool) -> Self {
        Self {
            settings,
            rules,
            ecn,
            waiting: VecDeque::new(),
            avg: 0.0,
            idle_since: Some(Time::ZERO),
            max_p: settings.max_p,
            adapted: match rules {
                Rules::Ours => Time::from_millis(500),
                Rules::Ns2 | Rules::Ns3 => Time::ZERO,
            },
            side: 0,
            count: 0.0,
            bytes: 0.0,
            above: false,
        }
    }

    fn is_ours(&self) -> bool {
        self.rules == Rules::Ours
    }

    /// What is averaged: in byte mode bytes over the mean, as thresholds are in packets.
    fn length(&self) -> f64 {
        if self.settings.bytes {
            let bytes: u32 = self.waiting.iter().map(|(packet, _)| packet.size).sum();
            f64::from(bytes) / MEAN
        } else {
            self.waiting.len() as f64
        }
    }

    /// Whether there is no room, and whether too little waits for a signal.
    fn full_or_short(&self) -> (bool, bool) {
        if self.is_ours() || !self.settings.bytes {
            let packets = self.waiting.len();
            (packets >= self.settings.limit, packets < 2)
        } else {
            let full = self.length() >= self.settings.limit as f64;
            (full, self.waiting.is_empty())
        }
    }

    fn average(&mut self, now: Time) {
        let sample = self.length();
        match self.idle_since.take() {
            None => self.avg = (1.0 - W_Q) * self.avg + W_Q * sample,
            Some(since) => {
                let packets = (now - since).as_secs_f64() * PACKETS_PER_SECOND;
                let packets = if self.is_ours() {
                    packets
                } else {
                    packets.floor() + 1.0
                };
                self.avg *= (1.0 - W_Q).powf(packets);
            }
        }
    }

    fn adapt(&mut self, now: Time) {
        let Settings { min_th, max_th, .. } = self.settings;
        let (band, interval) = (0.4 * (max_th - min_th), Time::from_millis(500));
        match self.settings.adapt {
            Adapt::No => {}
            Adapt::Feng => {
                let side = i8::from(self.avg > max_th) - i8::from(self.avg < min_th);
                if side != self.side {
                    self.max_p *= [1.0 / 3.0, 1.0, 2.0][(side + 1) as usize];
                }
                self.max_p = self.max_p.min(if self.is_ours() { 1.0 } else { f64::MAX });
                self.side = side;
            }
            Adapt::Floyd => {
                let due = if self.is_ours() {
                    now >= self.adapted
                } else {
                    now > self.adapted + interval
                };
                if !due {
                    return;
                }
                let before = self.max_p;
                if self.avg < min_th + band && self.max_p > 0.01 {
                    self.max_p *= 0.9;
                } else if self.avg > max_th - band && self.max_p < 0.5 {
                    self.max_p += (self.max_p / 4.0).min(0.01);
                }
                if self.is_ours() {
                    self.max_p = self.max_p.clamp(0.01, 0.5);
                    self.adapted = now + interval;
                } else if self.max_p != before {
                    self.adapted = now;
                }
            }
        }
    }

    /// Probability of a packet by the average alone.
    fn basic(&self) -> f64 {
        let Settings { min_th, max_th, .. } = self.settings;
        if self.avg < max_th {
            return self.max_p * (self.avg - min_th) / (max_th - min_th);
        }
        let corner = if self.is_ours() {
            self.max_p
        } else {
            self.settings.max_p
        };
        (corner + (1.0 - corner) * (self.avg - max_th) / max_th).min(1.0)
    }

    /// Probability of this packet.
    fn spaced(&self, size: f64) -> f64 {
        let scale = if self.settings.bytes {
            size / MEAN
        } else {
            1.0
        };
        let (basic, count, after) = if self.is_ours() {
            ((self.basic() * scale).min(1.0), self.count, 1.0)
        } else if self.settings.bytes {
            (self.basic(), (self.bytes / MEAN).floor(), scale)
        } else {
            (self.basic(), self.count, 1.0)
        };
        let most = if self.settings.wait { 2.0 } else { 1.0 };
        let expected = count * basic;
        let spaced = if expected >= most {
            1.0
        } else if self.settings.wait && expected < 1.0 {
            0.0
        } else {
            basic / (most - expected)
        };
        if spaced < 1.0 {
            (spaced * after).min(1.0)
        } else {
            1.0
        }
    }

    fn restart_count(&mut self) {
        (self.count, self.bytes) = (0.0, 0.0);
    }

    /// Whether a packet is signalled, and whether it is dropped whatever its ECN field.
    fn judge(&mut self, size: f64, draw: &mut dyn FnMut() -> f64) -> (bool, bool) {
        let Settings {
            min_th,
            max_th,
            gentle,
            ..
        } = self.settings;
        let (_, short) = self.full_or_short();
        let gentle = gentle || self.settings.adapt == Adapt::Floyd;
        if self.avg < min_th || short {
            self.above = false;
            if self.is_ours() {
                self.count = -1.0;
            }
            return (false, false);
        }
        if self.avg >= if gentle { 2.0 * max_th } else { max_th } {
            if self.rules != Rules::Ns3 {
                self.restart_count();
            }
            return (true, true);
        }
        if !self.is_ours() && !self.above {
            (self.above, self.count, self.bytes) = (true, 1.0, size);
            return (false, false);
        }
        let p = self.spaced(size);
        let signal = p >= 1.0 || p > 0.0 && draw() < p;
        if signal {
            self.restart_count();
        }
        (signal, signal && self.avg >= max_th)
    }
}

impl Buffer for Red {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: Packet,
        number: usize,
        draw: &mut dyn FnMut() -> f64,
        dropped: &mut Vec<usize>,
    ) {
        let size = f64::from(packet.size);
        self.average(now);
        self.adapt(now);
        self.count += 1.0;
        self.bytes += size;
        let (signal, forced) = self.judge(size, draw);
        let (full, _) = self.full_or_short();
        if full && self.rules != Rules::Ns3 && !(signal && self.is_ours()) {
            self.restart_count();
        }
        if full || signal && (forced || !self.ecn) {
            dropped.push(number);
            return;
        }
        if signal {
            packet.ecn = Ecn::Ce;
        }
        self.waiting.push_back((packet, number));
    }

    fn dequeue(&mut self, _now: Time, _dropped: &mut Vec<usize>) -> Option<(Packet, usize)> {
        self.waiting.pop_front()
    }

    fn idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    fn next_tick(&self) -> Time {
        Time::NEVER
    }

    fn tick(&mut self) {}

    fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn variable(&self) -> f64 {
        match (self.settings.adapt, self.settings.bytes) {
            (Adapt::No, true) => self.avg * MEAN,
            (Adapt::No, false) => self.avg,
            _ => self.max_p,
        }
    }
}

fn runs(settings: Settings, rules: Rules, ecn: bool, seeds: u64) -> Vec<Run> {
    let play = |seed| Port::play(Red::new(settings, rules, ecn), ecn, seed);
    (1..=seeds).map(play).collect()
}

/// The lines above with our rules are our discipline, packet by packet; with the peer's they are
/// the peer's queue, with other random numbers.
fn compare(name: &'static str, settings: Settings, rules: Rules, ecn: bool) {
    let variable = if settings.adapt == Adapt::No {
        "avg"
    } else {
        "max_p"
    };
    let case = Case::new(name, settings.table(ecn), variable).with_ecn(ecn);
    for (seed, lines) in (1..).zip(runs(settings, Rules::Ours, ecn, 2)) {
        let ours = case.play(seed);
        assert!(ours.dropped.len() > 1000, "{name}");
        assert_eq!(lines.dropped, ours.dropped, "{name}");
        assert_eq!(lines.marked, ours.marked, "{name}");
    }
    Outcome::new(name, &runs(settings, rules, ecn, RUNS)).agrees();
}

#[test]
fn red_parts_from_ns2_by_its_rules_alone() {
    compare("ns2-red", RED, Rules::Ns2, false);
    compare(
        "ns2-red-uniform",
        Settings { wait: false, ..RED },
        Rules::Ns2,
        false,
    );
    compare(
        "ns2-red-gentle",
        Settings {
            gentle: true,
            ..RED
        },
        Rules::Ns2,
        false,
    );
    compare(
        "ns2-red-bytes",
        Settings { bytes: true, ..RED },
        Rules::Ns2,
        false,
    );
}

#[test]
fn adaptive_red_parts_from_ns2_by_its_rules_alone() {
    for (name, adapt) in [("ns2-ared", Adapt::Floyd), ("ns2-ared-feng", Adapt::Feng)] {
        compare(name, Settings { adapt, ..ADAPTIVE }, Rules::Ns2, false);
    }
}

#[test]
fn red_parts_from_ns3_by_its_rules_alone() {
    compare("ns3-red", RED, Rules::Ns3, false);
    compare("ns3-red-ecn", RED, Rules::Ns3, true);
}
