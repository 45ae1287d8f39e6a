//! The AQMs that stabilize the queue: what they keep whatever happens, what their worked examples
//! leave out, and the parameters that they refuse.

mod ared;
mod avq;
mod blue;
mod crowd;
mod lqd;
mod pi;
mod refused;
mod rem;
mod sred;

use aqmlab_aqm::{Discipline, FifoQueue, LinkFacts, Outcome};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, RandomStream, Rate, Time};

use crate::model::once::Judged;

const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};

/// A discipline from the text of its table.
fn read(table: &str) -> Discipline {
    let table = toml::Value::Table(table.parse().unwrap());
    tagged::from_value(table).unwrap_or_else(|error| panic!("{error}"))
}

fn fifo(table: &str) -> FifoQueue {
    let discipline = read(table);
    assert_eq!(discipline.check(), Ok(()), "{table}");
    FifoQueue::new(&discipline, LINK, 1).expect("an AQM")
}

fn packet(size: u32, ecn: Ecn) -> Packet {
    Packet {
        size,
        ecn,
        dscp: 0,
        flow: FlowKey(7),
    }
}

/// The value of one of the AQM's inner variables.
fn probe(fifo: &FifoQueue, name: &str) -> f64 {
    let mut values = Vec::new();
    fifo.probe(&mut values);
    values[fifo.probe_names().iter().position(|n| *n == name).unwrap()]
}

/// Tells a fifo everything that is due before `now`.
fn catch_up(fifo: &mut FifoQueue, now: Time) {
    while fifo.next_tick() <= now {
        fifo.tick();
    }
}

/// Sends packets of 500 bytes at one instant; `u` is every random number.
fn send(fifo: &mut FifoQueue, now: Time, count: usize, u: f64) -> Vec<Outcome> {
    catch_up(fifo, now);
    let packet = packet(500, Ecn::NotEct);
    (0..count)
        .map(|_| fifo.come(now, &packet, &mut || u))
        .collect()
}

fn depart(fifo: &mut FifoQueue, now: Time, count: usize) {
    for _ in 0..count {
        fifo.depart(now, &packet(500, Ecn::NotEct), Time::ZERO);
    }
}

/// A queue behind a link of 10 Mbit/s that gets packets at random times for a while; `after` sees
/// the fifo after each arrival, with the longest queue so far.
fn play(table: &str, seed: u64, load: f64, mut after: impl FnMut(&FifoQueue, u32)) {
    let mut fifo = fifo(table);
    let mut random = RandomStream::new(seed, "stabilizing", 0);
    let mut draws = RandomStream::new(seed, "law", 0);
    let transmission = LINK.rate.transmission_time(500);
    let (mut now, mut wire_free, mut longest) = (Time::ZERO, Time::ZERO, 0);
    for _ in 0..3000 {
        now += Time::from_secs_f64(random.exponential(transmission.as_secs_f64() / load));
        if random.uniform() < 0.002 {
            now += Time::from_millis(700);
        }
        while fifo.backlog().packets > 0 && wire_free <= now {
            catch_up(&mut fifo, wire_free);
            depart(&mut fifo, wire_free, 1);
            wire_free += transmission;
        }
        catch_up(&mut fifo, now);
        if wire_free <= now {
            fifo.idle(wire_free);
            wire_free = now;
        }
        let ecn = if random.uniform() < 0.5 {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        fifo.come(now, &packet(500, ecn), &mut || draws.uniform());
        longest = longest.max(fifo.backlog().packets);
        after(&fifo, longest);
    }
}
