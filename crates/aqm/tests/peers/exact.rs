//! Queues that leave nothing to chance: each packet's outcome is compared. Where ours and the peer's
//! part, a few lines that compute as the peer does follow it to the last packet, and the same
//! lines with the paper's arithmetic follow ours: nothing else differs.

use std::collections::VecDeque;

use crate::{ARRIVALS, Case, LINK, SIZES, table};

const TARGET: u64 = 5_000_000; // ns
const INTERVAL: u64 = 100_000_000; // ns

/// Numbers of the packets that a peer signalled.
fn signalled(name: &str) -> Vec<usize> {
    let (_, rows) = table(&format!("{name}.drops.csv"));
    rows.iter().map(|row| row[0].parse().unwrap()).collect()
}

/// Numbers of the packets that our discipline signalled.
fn ours(case: &Case) -> Vec<usize> {
    let run = case.play(1);
    let mut signalled = [run.dropped, run.marked].concat();
    signalled.sort_unstable();
    signalled
}

/// How many numbers two sorted lists share.
fn common(a: &[usize], b: &[usize]) -> usize {
    a.iter().filter(|n| b.binary_search(n).is_ok()).count()
}

/// Which arithmetic a CoDel has.
#[derive(Clone, Copy)]
enum Arithmetic {
    /// RFC 8289.
    Rfc,
    /// ns-3's: times in units of 1024 ns; 1/sqrt(count) in 16 bits, by one step of Newton's method
    /// from the last count's; below `mtu` bytes, not at them, a queue is left alone; an interval
    /// has passed a unit later; a dropping state that begins before the next signal of the last
    /// one was due starts from scratch; after a mark the next is scheduled from now.
    Ns3,
}

/// CoDel over a FIFO.
struct Reference {
    arithmetic: Arithmetic,
    ecn: bool,
    /// Number, time of arrival and bytes.
    waiting: VecDeque<(usize, u64, u64)>,
    bytes: u64,
    first_above: Option<u64>,
    drop_next: u64,
    count: u32,
    last_count: u32,
    /// 1/sqrt(count), as ns-3 has it.
    root: f64,
    dropping: bool,
    signalled: Vec<usize>,
}

impl Reference {
    /// Numbers of the packets that are signalled, of all arrivals.
    fn play(arithmetic: Arithmetic, ecn: bool) -> Vec<usize> {
        let mut codel = Self {
            arithmetic,
            ecn,
            waiting: VecDeque::new(),
            bytes: 0,
            first_above: None,
            drop_next: 0,
            count: 0,
            last_count: 0,
            root: 1.0,
            dropping: false,
            signalled: Vec::new(),
        };
        let mut wire_free = 0;
        for (number, &(now, flow)) in ARRIVALS.iter().enumerate() {
            while wire_free <= now.as_nanos() {
                match codel.dequeue(wire_free) {
                    Some(bytes) => wire_free += 800 * bytes,
                    None => break,
                }
            }
            let bytes = u64::from(SIZES[flow as usize]);
            codel.waiting.push_back((number, now.as_nanos(), bytes));
            codel.bytes += bytes;
            wire_free = wire_free.max(now.as_nanos());
            if wire_free == now.as_nanos() {
                wire_free += 800 * codel.dequeue(now.as_nanos()).unwrap();
            }
        }
        while let Some(bytes) = codel.dequeue(wire_free) {
            wire_free += 800 * bytes;
        }
        codel.signalled
    }

    const fn is_rfc(&self) -> bool {
        matches!(self.arithmetic, Arithmetic::Rfc)
    }

    /// A time or span in the unit of the arithmetic.
    const fn units(&self, ns: u64) -> u64 {
        if self.is_rfc() { ns } else { ns / 1024 }
    }

    /// The head, its bytes, and whether it may be signalled.
    fn pop(&mut self, now: u64) -> (Option<(usize, u64)>, bool) {
        let Some((number, arrived, bytes)) = self.waiting.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= bytes;
        let least = if self.is_rfc() { 1501 } else { 1500 };
        let short = self.units(now - arrived) < self.units(TARGET) || self.bytes < least;
        let time = self.units(now);
        let ok = match self.first_above {
            _ if short => false,
            None => false,
            Some(due) if self.is_rfc() => time >= due,
            Some(due) => time > due,
        };
        if short {
            self.first_above = None;
        } else if self.first_above.is_none() {
            self.first_above = Some(time + self.units(INTERVAL));
        }
        (Some((number, bytes)), ok)
    }

    /// The count has changed: the span up to the next signal.
    fn spacing(&mut self) -> u64 {
        let count = f64::from(self.count);
        let interval = self.units(INTERVAL) as f64;
        if self.is_rfc() {
            return (interval / count.sqrt()) as u64;
        }
        let next = self.root * (3.0 - count * self.root * self.root) / 2.0;
        self.root = if self.count == 1 {
            65535.0
        } else {
            (65536.0 * next).floor()
        } / 65536.0;
        (interval * self.root) as u64
    }

    /// Bytes of the packet that is sent.
    fn dequeue(&mut self, now: u64) -> Option<u64> {
        let time = self.units(now);
        let (mut head, mut ok) = self.pop(now);
        if self.dropping {
            self.dropping = ok;
            while self.dropping && time >= self.drop_next {
                self.signalled.push(head?.0);
                self.count += 1;
                let spacing = self.spacing();
                if self.ecn {
                    let from = if self.is_rfc() { self.drop_next } else { time };
                    self.drop_next = from + spacing;
                    break;
                }
                (head, ok) = self.pop(now);
                self.dropping = ok;
                self.drop_next += if ok { spacing } else { 0 };
            }
        } else if ok {
            self.signalled.push(head?.0);
            if !self.ecn {
                (head, _) = self.pop(now);
            }
            let recent = if self.is_rfc() || time >= self.drop_next {
                time.saturating_sub(self.drop_next) < 16 * self.units(INTERVAL)
            } else {
                false
            };
            let more = self.count - self.last_count;
            self.count = if more > 1 && recent { more } else { 1 };
            self.last_count = self.count;
            self.drop_next = time + self.spacing();
            self.dropping = true;
        }
        head.map(|(_, bytes)| bytes)
    }
}

fn codel(name: &'static str, ecn: bool) -> Case {
    Case::new(name, format!("kind = 'codel'\necn = {ecn}"), "count").with_ecn(ecn)
}

#[test]
fn codel_parts_from_ns3_by_its_arithmetic_alone() {
    for (name, ecn, ours_signal, shared) in [
        ("ns3-codel", false, 1250, 321),
        ("ns3-codel-ecn", true, 7097, 2439),
    ] {
        let (peer, ours) = (signalled(name), ours(&codel(name, ecn)));
        assert_eq!(Reference::play(Arithmetic::Rfc, ecn), ours, "{name}");
        assert_eq!(Reference::play(Arithmetic::Ns3, ecn), peer, "{name}");
        assert_eq!((ours.len(), common(&ours, &peer)), (ours_signal, shared));
    }
}

/// AVQ as ns-2 has it: the arrival is subtracted from the virtual capacity before that is clipped
/// to the link's.
fn avq_of_ns2() -> Vec<usize> {
    let capacity = LINK.rate.bps() as f64 / 8.0;
    let (mut virtual_capacity, mut virtual_queue) = (capacity, 0.0_f64);
    let (mut served, mut credited) = (ARRIVALS[0].0, ARRIVALS[0].0);
    let mut signalled = Vec::new();
    for (number, &(now, flow)) in ARRIVALS.iter().enumerate() {
        let bytes = f64::from(SIZES[flow as usize]);
        let drained = virtual_capacity * (now - served).as_secs_f64();
        served = now;
        virtual_queue = (virtual_queue - drained).max(0.0);
        if virtual_queue + bytes > 20_000.0 {
            signalled.push(number);
            continue;
        }
        virtual_queue += bytes;
        let credit = 0.15 * 0.98 * capacity * (now - credited).as_secs_f64();
        virtual_capacity = (virtual_capacity + credit - 0.15 * bytes).clamp(0.0, capacity);
        credited = now;
    }
    signalled
}

#[test]
fn avq_parts_from_ns2_by_the_order_of_clipping_alone() {
    let table = "kind = 'avq'\nvirtual_buffer = '20000 bytes'\nlimit = '1000 packets'\n\
                 count_signalled = false\nmean_packet = '1000 bytes'";
    let ours = ours(&Case::new("ns2-avq", table.to_owned(), "virtual_queue"));
    let peer = signalled("ns2-avq");
    assert_eq!(avq_of_ns2(), peer);
    // Ours keeps the virtual capacity 0.15 /s times a packet below the link's, at the most.
    assert_eq!(
        (ours.len(), peer.len(), common(&ours, &peer)),
        (1384, 1381, 1324)
    );
}

/// Drops of each flow.
fn by_flow(dropped: &[usize]) -> [usize; SIZES.len()] {
    let mut drops = [0; SIZES.len()];
    for &number in dropped {
        drops[ARRIVALS[number].1 as usize] += 1;
    }
    drops
}

/// Each flow has a CoDel with ns-3's arithmetic there, so that drops come at other times; but they
/// hit the flow that sends more than its share, as often, and hardly any other.
#[test]
fn fq_codel_drops_from_the_same_flow_as_ns3() {
    let table = "kind = 'fq-codel'\nquantum = '300 bytes'\necn = false\none_packet = 'flow'\n\
                 overflow_counts = false\n";
    // ns-3 has Linux's root, in microseconds.
    let rooted = format!("{table}root = 'linux'");
    let rooted = Case::new("ns3-fq-codel", rooted, "new_flows");
    let case = Case::new("ns3-fq-codel", table.to_owned(), "new_flows");
    let run = case.play(1);
    let peer = signalled(case.name);
    assert!(common(&peer, &ours(&case)) < 400, "other times");
    assert!(common(&peer, &ours(&rooted)) > 800, "most of 1162");
    let (ours, theirs) = (by_flow(&run.dropped), by_flow(&peer));
    assert!(
        ours[0] > 1000 && ours[0].abs_diff(theirs[0]) <= 10,
        "{ours:?} {theirs:?}"
    );
    for flow in 1..SIZES.len() {
        assert!(ours[flow].max(theirs[flow]) <= 1, "{ours:?} {theirs:?}");
    }
    let (_, rows) = crate::table("ns3-fq-codel.csv");
    let theirs = rows.iter().map(|row| row[0].parse::<f64>().unwrap());
    let sums: (f64, f64) = (theirs.sum(), run.queue[..rows.len()].iter().sum());
    assert!((sums.1 / sums.0 - 1.0).abs() < 0.03, "{sums:?}");
}
