//! Second sights: the same packet at another place of its path, or mirrored from two ports.
//!
//! Of sights at several places each place sees a packet once, so that the n-th sight at one place
//! is a second one if another place had n before. Sights at one place come within microseconds;
//! they are dropped only in a capture where a good part of all data comes twice so.

use std::collections::VecDeque;

use crate::decode::{ACK, Endpoint, SYN};
use crate::hash::Map;
use crate::packet::{Packet, mixed};

/// Another place on the path is passed within two seconds, its queue included.
const ON_THE_WAY: u64 = 2_000_000_000;
/// A mirror sends the copy at once.
const AT_ONCE: u64 = 500_000;
/// A packet with its own identification is a copy for longer.
const NUMBERED: u64 = 2_000_000;
/// Marks that are kept at once.
const MOST: usize = 1 << 20;

/// What is known of recent packets.
#[derive(Debug, Default)]
pub(crate) struct Twins {
    sights: Map<u64, Sights>,
    queue: VecDeque<(u64, u64)>,
    /// By a SYN's number and server: when it was seen, where, and from whom.
    syns: Map<(u32, Endpoint), (u64, u64, Endpoint)>,
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
    /// Whether a packet was seen before.
    pub(crate) fn see(&mut self, packet: &Packet, now: u64) -> Sight {
        let Some(ends) = packet.ends else {
            return Sight::First;
        };
        self.note_syn(packet, now);
        let ends = renamed(&self.aliases, ends);
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

    /// A SYN to the same server with the same number from another client, seen elsewhere: a
    /// translator gave the client another address.
    fn note_syn(&mut self, packet: &Packet, now: u64) {
        let Ok(header) = packet.header else {
            return;
        };
        if header.flags & (SYN | ACK) != SYN {
            return;
        }
        let key = (header.seq, header.destination);
        match self.syns.get(&key) {
            Some(&(time, place, client))
                if time.abs_diff(now) <= ON_THE_WAY
                    && place != packet.place
                    && client != header.source
                    && client.address != header.source.address =>
            {
                // Made-up numbers collide: then the port says which it is.
                let port = client.port == header.source.port || header.seq > 1 << 16;
                if port {
                    self.aliases
                        .insert([header.source, header.destination], client);
                }
            }
            _ => {
                if self.syns.len() >= MOST {
                    self.syns.clear();
                }
                self.syns.insert(key, (now, packet.place, header.source));
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

/// The ends of a packet, with the names that clients had first.
#[inline]
pub(crate) fn renamed(
    aliases: &Map<[Endpoint; 2], Endpoint>,
    ends: [Endpoint; 2],
) -> [Endpoint; 2] {
    if aliases.is_empty() {
        return ends;
    }
    let [source, destination] = ends;
    if let Some(first) = aliases.get(&[source, destination]) {
        return [*first, destination];
    }
    match aliases.get(&[destination, source]) {
        Some(first) => [source, *first],
        None => ends,
    }
}
