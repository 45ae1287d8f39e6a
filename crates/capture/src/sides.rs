//! The two sides of a link: which addresses are at home.
//!
//! What the file says comes first, then private addresses, then the groups that leave no
//! connection inside a side. Who opened a connection says little: servers stand at home, too.

use crate::decode::{ACK, Endpoint, SYN};
use crate::hash::{Map, Set};
use crate::packet::Packet;

type Address = [u64; 2];

/// Pairs of addresses that are remembered.
const MOST: usize = 1 << 20;

/// What shows the sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Nothing: connections count from who opened them.
    #[default]
    Nothing,
    /// The file: directions of packets, or names of interfaces.
    File,
    /// Private addresses stand on one side only.
    Private,
    /// Groups of addresses without a connection among themselves.
    Groups,
}

/// Which addresses are at home.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    home: Map<Address, bool>,
    /// Without sides, by pair, the smaller one first: whether that one opens connections.
    openers: Map<[Address; 2], bool>,
    /// How they were found.
    pub shown: Shown,
}

impl Sides {
    /// Whether a packet from the first address to the second leaves home; `None` if that is not
    /// known.
    #[inline]
    pub fn leaves(&self, from: Address, to: Address) -> Option<bool> {
        match (self.home.get(&from), self.home.get(&to)) {
            (Some(true), Some(false)) => Some(true),
            (Some(false), Some(true)) => Some(false),
            _ if from < to => self.openers.get(&[from, to]).copied(),
            _ => self.openers.get(&[to, from]).map(|opens| !opens),
        }
    }

    /// Addresses at home, and the others.
    pub fn count(&self) -> [usize; 2] {
        let home = self.home.values().filter(|is_home| **is_home).count();
        [home, self.home.len() - home]
    }
}

/// What passed between two addresses.
#[derive(Debug, Default)]
struct Pair {
    /// How often each opened a connection.
    openers: [u32; 2],
    packets: u64,
}

/// What packets say of sides.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// By pair, the smaller one first.
    pairs: Map<[Address; 2], Pair>,
    /// By sender: packets that came, and that went.
    hints: Map<Address, [u32; 2]>,
}

impl Evidence {
    pub(crate) fn add(&mut self, packet: &Packet) {
        let Some([source, destination]) = packet.ends else {
            return;
        };
        let (from, to) = (source.address, destination.address);
        let stays_here = [from, to].into_iter().any(is_local);
        if from == to || stays_here || self.pairs.len() >= MOST {
            return;
        }
        let (pair, at) = if from < to {
            ([from, to], 0)
        } else {
            ([to, from], 1)
        };
        let Pair { openers, packets } = self.pairs.entry(pair).or_default();
        *packets += 1;
        let flags = packet.header.map_or(0, |header| header.flags & (SYN | ACK));
        match flags {
            SYN => openers[at] += 1,
            both if both == SYN | ACK => openers[1 - at] += 1,
            _ => {}
        }
        if let Some(outward) = packet.outward {
            self.hints.entry(from).or_default()[usize::from(outward)] += 1;
        }
    }

    /// Leaves out what the file says of directions.
    pub(crate) fn forget_hints(&mut self) {
        self.hints.clear();
    }

    /// Leaves out what was seen of a client under another name.
    pub(crate) fn forget_names(&mut self, aliases: &Map<[Endpoint; 2], Endpoint>) {
        for [client, server] in aliases.keys() {
            let mut pair = [client.address, server.address];
            pair.sort_unstable();
            self.pairs.remove(&pair);
        }
    }

    pub(crate) fn sides(&self) -> Sides {
        let found = self.by_file().or_else(|| self.by_private());
        found
            .or_else(|| self.by_groups())
            .unwrap_or_else(|| self.by_openers())
    }

    /// Who opens connections, pair by pair: one address may stand on either side.
    fn by_openers(&self) -> Sides {
        let opens = |pair: &Pair| pair.openers[0] >= pair.openers[1];
        Sides {
            openers: self
                .pairs
                .iter()
                .map(|(ends, pair)| (*ends, opens(pair)))
                .collect(),
            ..Sides::default()
        }
    }

    /// The sides as a function of the address says them, if they part nearly all pairs.
    fn part(&self, shown: Shown, is_home: impl Fn(&Address) -> Option<bool>) -> Option<Sides> {
        let mut home = Map::default();
        let (mut parted, mut not) = ([0, 0], [0, 0]);
        for ([one, other], pair) in &self.pairs {
            let said = (is_home(one), is_home(other));
            let said = match said {
                (Some(one), None) => (one, !one),
                (None, Some(other)) => (!other, other),
                (Some(one), Some(other)) => (one, other),
                (None, None) => continue,
            };
            let counts = if said.0 == said.1 {
                &mut not
            } else {
                &mut parted
            };
            counts[0] += 1;
            counts[1] += pair.packets;
            home.insert(*one, said.0);
            home.insert(*other, said.1);
        }
        // Some talk among themselves, such as a printer and its users.
        let is_most = parted[0] >= 9 * not[0] || parted[1] >= 2 * not[1];
        (parted[0] > 0 && is_most).then_some(Sides {
            home,
            shown,
            ..Sides::default()
        })
    }

    fn by_file(&self) -> Option<Sides> {
        self.part(Shown::File, |address| {
            let [came, went] = *self.hints.get(address)?;
            match (came > 9 * went, went > 9 * came) {
                (true, _) => Some(false),
                (_, true) => Some(true),
                _ => None,
            }
        })
        .filter(|sides| {
            let [home, far] = sides.count();
            let unsure = self
                .hints
                .values()
                .filter(|[came, went]| came.min(went) * 9 > *came.max(went));
            home > 0 && far > 0 && unsure.count() * 10 <= self.hints.len()
        })
    }

    fn by_private(&self) -> Option<Sides> {
        self.part(Shown::Private, |address| Some(is_private(*address)))
    }

    /// Two colours, so that no pair has one: the smaller group of each part is at home, or of equal
    /// ones that which opens connections.
    fn by_groups(&self) -> Option<Sides> {
        let mut neighbours: Map<Address, Vec<Address>> = Map::default();
        for [one, other] in self.pairs.keys() {
            neighbours.entry(*one).or_default().push(*other);
            neighbours.entry(*other).or_default().push(*one);
        }
        let mut starts: Vec<Address> = neighbours.keys().copied().collect();
        starts.sort_unstable();
        let mut home = Map::default();
        let mut seen: Set<Address> = Set::default();
        for start in starts {
            if !seen.insert(start) {
                continue;
            }
            let mut colours = Map::from_iter([(start, false)]);
            let mut open = vec![start];
            while let Some(address) = open.pop() {
                let colour = colours[&address];
                for other in &neighbours[&address] {
                    match colours.get(other) {
                        Some(known) if *known == colour => return None,
                        Some(_) => {}
                        None => {
                            seen.insert(*other);
                            colours.insert(*other, !colour);
                            open.push(*other);
                        }
                    }
                }
            }
            let group = colours.values().filter(|colour| **colour).count();
            let rest = colours.len() - group;
            let home_colour = match group.cmp(&rest) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Greater => false,
                std::cmp::Ordering::Equal => self.opens_more(&colours),
            };
            home.extend(
                colours
                    .into_iter()
                    .map(|(address, colour)| (address, colour == home_colour)),
            );
        }
        (!home.is_empty()).then_some(Sides {
            home,
            shown: Shown::Groups,
            ..Sides::default()
        })
    }

    /// Whether the group of colour true opens more connections than the other.
    fn opens_more(&self, colours: &Map<Address, bool>) -> bool {
        let mut balance = 0_i64;
        for ([one, _], pair) in &self.pairs {
            if let Some(colour) = colours.get(one) {
                let [by_one, by_other] = pair.openers;
                let more = i64::from(by_one) - i64::from(by_other);
                balance += if *colour { more } else { -more };
            }
        }
        balance > 0
    }
}

/// Whether an address is for use behind a router only (RFC 1918, 6598, 4193).
pub(crate) fn is_private([high, low]: Address) -> bool {
    if high == 0 && low >> 32 == 0xffff {
        let address = low as u32;
        return address >> 24 == 10
            || address >> 20 == 0xac1
            || address >> 16 == 0xc0a8
            || address >> 22 == 0x0191;
    }
    high >> 57 == 0x7e
}

/// Whether an address never crosses a link: nobody's, everybody's, a group's, or a cable's own
/// (RFC 4291, 3927).
fn is_local([high, low]: Address) -> bool {
    if high == 0 && low >> 32 == 0xffff {
        let address = low as u32;
        return address == 0 || address >> 28 >= 0xe || address >> 16 == 0xa9fe;
    }
    (high, low) == (0, 0) || high >> 56 == 0xff || high >> 54 == 0x3fa
}
