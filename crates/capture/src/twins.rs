//! Second sights: the same packet at another place of its path, or mirrored from two ports.
//!
//! Of sights at several places each place sees a packet once, so that the n-th sight at one place
//! is a second one if another place had n before. Sights at one place come within microseconds.
//! Without an identification, which a retransmission does not share, they are dropped only of
//! streams of which a good part comes twice so.

use std::collections::VecDeque;

use crate::decode::{ACK, Endpoint, SYN};
use crate::hash::Map;
use crate::packet::{Packet, mixed};
use crate::sides::is_private;

/// Another place on the path is passed within two seconds, its queue included.
const ON_THE_WAY: u64 = 2_000_000_000;
/// A mirror sends the copy at once.
const AT_ONCE: u64 = 500_000;
/// A packet with its own identification is a copy for longer.
const NUMBERED: u64 = 2_000_000;
/// Packets of a connection whose numbers are compared for other names of its client.
const COMPARED: u32 = 64;
/// Marks that are kept at once.
const MOST: usize = 1 << 20;

/// What is known of recent packets.
#[derive(Debug, Default)]
pub(crate) struct Twins {
    sights: Map<u64, Sights>,
    queue: VecDeque<(u64, u64)>,
    /// By a packet's numbers and one of its ends: when it was seen, where, and the other end.
    numbers: Map<([u32; 3], Endpoint), (u64, u64, Endpoint)>,
    /// Packets of each connection that were compared so.
    compared: Map<[Endpoint; 2], u32>,
    /// Clients that a translator of addresses renamed.
    pub(crate) aliases: Map<[Endpoint; 2], Endpoint>,
}

#[derive(Debug, Default)]
struct Sights {
    last: u64,
    places: Vec<(u64, u32, u64)>,
}

/// How a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    First,
    /// Before, at another place.
    Elsewhere,
    /// Before, at this place, just now.
    Here,
}

impl Twins {
    /// Whether a packet was seen before. A client that a translator renamed gets its first name.
    pub(crate) fn see(&mut self, packet: &mut Packet, now: u64) -> Sight {
        self.note_names(packet, now);
        packet.rename(&self.aliases);
        let Some(ends) = packet.ends else {
            return Sight::First;
        };
        let numbers = packet.header.map_or(0, |header| {
            u64::from(header.seq) << 32 | u64::from(header.ack)
        });
        let rest = packet.header.map_or(0, |header| {
            u64::from(header.flags) << 16 | u64::from(header.window)
        });
        let word = |end: Endpoint| {
            mixed(
                end.address[0] ^ u64::from(end.port),
                &end.address[1].to_le_bytes(),
            )
        };
        let key = mixed(
            packet.content ^ word(ends[0]).rotate_left(17) ^ word(ends[1]),
            &[numbers.to_le_bytes(), rest.to_le_bytes()].concat(),
        );
        self.forget(now);
        let is_new = !self.sights.contains_key(&key);
        if is_new {
            if self.sights.len() >= MOST {
                return Sight::First;
            }
            self.queue.push_back((now, key));
        }
        let sights = self.sights.entry(key).or_default();
        if sights.last.abs_diff(now) > ON_THE_WAY {
            sights.places.clear();
        }
        sights.last = now;
        let others = sights.places.iter().filter(|one| one.0 != packet.place);
        let most = others.map(|one| one.1).max().unwrap_or_default();
        let window = if packet.is_numbered {
            NUMBERED
        } else {
            AT_ONCE
        };
        let here = sights.places.iter_mut().find(|one| one.0 == packet.place);
        let count = match here {
            Some(place) if place.2.abs_diff(now) <= window && most == 0 => return Sight::Here,
            Some(place) => {
                (place.1, place.2) = (place.1 + 1, now);
                place.1
            }
            None => {
                sights.places.push((packet.place, 1, now));
                1
            }
        };
        if count <= most {
            Sight::Elsewhere
        } else {
            Sight::First
        }
    }

    /// The same numbers to or from the same server, but with another client, seen elsewhere: a
    /// translator gave the client another address. A SYN says it at once; of connections that
    /// began before the capture the first packets do.
    fn note_names(&mut self, packet: &Packet, now: u64) {
        let (Ok(header), Some([source, destination])) = (packet.header, packet.ends) else {
            return;
        };
        if header.flags & (SYN | ACK) == SYN {
            let numbers = [header.seq, 0, 0];
            self.note_name(numbers, destination, source, packet.place, now);
            self.compared.insert([source, destination], COMPARED);
            return;
        }
        if self.compared.len() >= MOST {
            self.compared.clear();
        }
        let mut both = [source, destination];
        both.sort_unstable();
        let opened = [[source, destination], [destination, source]];
        if opened
            .iter()
            .any(|ends| self.compared.get(ends) == Some(&COMPARED))
        {
            return;
        }
        let compared = self.compared.entry(both).or_default();
        *compared = (*compared + 1).min(COMPARED);
        let numbers = [header.seq, header.ack, header.payload];
        self.note_name(numbers, destination, source, packet.place, now);
        self.note_name(numbers, source, destination, packet.place, now);
    }

    fn note_name(
        &mut self,
        numbers: [u32; 3],
        server: Endpoint,
        client: Endpoint,
        place: u64,
        now: u64,
    ) {
        match self.numbers.get(&(numbers, server)) {
            Some(&(time, there, first))
                if time.abs_diff(now) <= ON_THE_WAY
                    && there != place
                    && first.address != client.address =>
            {
                // Made-up numbers collide: then the port says which it is.
                if first.port != client.port && numbers[0] <= 1 << 16 {
                    return;
                }
                // What passes home has the public address first.
                let (public, private) = match is_private(client.address) {
                    true if !is_private(first.address) => (first, client),
                    _ => (client, first),
                };
                let known = self.aliases.get(&[private, server]).copied();
                self.aliases
                    .insert([public, server], known.unwrap_or(private));
            }
            _ => {
                if self.numbers.len() >= MOST {
                    self.numbers.clear();
                }
                self.numbers.insert((numbers, server), (now, place, client));
            }
        }
    }

    fn forget(&mut self, now: u64) {
        while let Some(&(time, key)) = self.queue.front() {
            if time.abs_diff(now) <= ON_THE_WAY {
                break;
            }
            self.queue.pop_front();
            match self.sights.get(&key) {
                Some(sights) if sights.last.abs_diff(now) <= ON_THE_WAY => {
                    let last = sights.last;
                    self.queue.push_back((last, key));
                }
                _ => {
                    self.sights.remove(&key);
                }
            }
        }
    }
}
