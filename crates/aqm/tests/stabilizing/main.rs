//! The laws that stabilize the queue: what they keep whatever happens, what their worked examples
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

use aqmlab_aqm::{Discipline, Fate, Gate, LinkFacts};
use aqmlab_net::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, RandomStream, Rate, Time};

const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};

/// A discipline from the text of its table.
fn read(table: &str) -> Discipline {
    let table = toml::Value::Table(table.parse().unwrap());
    tagged::from_value(table).unwrap_or_else(|error| panic!("{error}"))
}

fn gate(table: &str) -> Gate {
    let discipline = read(table);
    assert_eq!(discipline.check(), Ok(()), "{table}");
    Gate::new(&discipline, LINK, 1).expect("a law")
}

fn packet(size: u32, ecn: Ecn) -> Packet {
    Packet {
        size,
        ecn,
        dscp: 0,
        flow: FlowKey(7),
    }
}

/// The value of one of the law's inner variables.
fn probe(gate: &Gate, name: &str) -> f64 {
    let mut values = Vec::new();
    gate.probe(&mut values);
    values[gate.probe_names().iter().position(|n| *n == name).unwrap()]
}

/// Tells a gate everything that is due before `now`.
fn catch_up(gate: &mut Gate, now: Time) {
    while gate.next_tick() <= now {
        gate.tick();
    }
}

/// Sends packets of 500 bytes at one instant; `u` is every random number.
fn send(gate: &mut Gate, now: Time, count: usize, u: f64) -> Vec<Fate> {
    catch_up(gate, now);
    let packet = packet(500, Ecn::NotEct);
    (0..count)
        .map(|_| gate.arrive(now, &packet, &mut || u))
        .collect()
}

fn depart(gate: &mut Gate, now: Time, count: usize) {
    for _ in 0..count {
        gate.depart(now, &packet(500, Ecn::NotEct), Time::ZERO);
    }
}

/// A queue behind a link of 10 Mbit/s that gets packets at random times for a while; `after` sees
/// the gate after each arrival, with the longest queue so far.
fn play(table: &str, seed: u64, load: f64, mut after: impl FnMut(&Gate, u32)) {
    let mut gate = gate(table);
    let mut random = RandomStream::new(seed, "stabilizing", 0);
    let mut draws = RandomStream::new(seed, "law", 0);
    let transmission = LINK.rate.transmission_time(500);
    let (mut now, mut wire_free, mut longest) = (Time::ZERO, Time::ZERO, 0);
    for _ in 0..3000 {
        now += Time::from_secs_f64(random.exponential(transmission.as_secs_f64() / load));
        if random.uniform() < 0.002 {
            now += Time::from_millis(700);
        }
        while gate.backlog().packets > 0 && wire_free <= now {
            catch_up(&mut gate, wire_free);
            depart(&mut gate, wire_free, 1);
            wire_free += transmission;
        }
        catch_up(&mut gate, now);
        if wire_free <= now {
            gate.idle(wire_free);
            wire_free = now;
        }
        let ecn = if random.uniform() < 0.5 {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        gate.arrive(now, &packet(500, ecn), &mut || draws.uniform());
        longest = longest.max(gate.backlog().packets);
        after(&gate, longest);
    }
}
