//! The pass in front of everything: packets in order of time, each once, with the link's two sides.
//!
//! A capture is read twice. The first reading makes a [`Plan`]: how far packets are out of order,
//! where the clock was set, whether packets are seen twice, and who is at home. The second one
//! hands them out as the plan says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use aqmlab_net::Time;
use serde::Serialize;

use crate::decode::Endpoint;
use crate::error::CaptureError;
use crate::hash::Map;
use crate::order::Order;
use crate::packet::Packet;
use crate::reader::{CaptureReader, PROGRESS};
use crate::sides::{Evidence, Shown, Sides};
use crate::streams::{Choices, Role, Streams};
use crate::twins::{Sight, Twins};

/// How a capture is to be read. The default hands packets out as they stand in the file.
#[derive(Debug, Default)]
pub struct Plan {
    /// Packets that are held to put them in order.
    hold: usize,
    /// From which packet on, and by how much more, times are moved: nanoseconds.
    shifts: Vec<(u64, i64)>,
    /// Whether no packet can be a second sight.
    is_clean: bool,
    /// Which place is read of streams that several saw.
    choices: Choices,
    aliases: Map<[Endpoint; 2], Endpoint>,
    /// Who is at home.
    pub sides: Sides,
    /// What was found.
    pub notes: Notes,
}

/// What the first reading found. Its JSON form is part of what `--json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notes {
    /// Packets that stand behind a later one in the file.
    pub out_of_order: u64,
    /// By how much the clock was set back, each time.
    pub set_back_s: Vec<f64>,
    /// By how much it was set forward, each time.
    pub set_forward_s: Vec<f64>,
    /// Silences that may be a clock that was set forward: seconds since the first packet, and how
    /// long.
    pub unclear_silences_s: Vec<[f64; 2]>,
    /// Packets seen before: they are dropped.
    pub second_sights: u64,
    /// Connections of which a second sight has other addresses.
    pub translated: u64,
    /// How the file ends, if it ends inside a packet.
    pub cut: Option<String>,
    /// What shows the sides: `file`, `private addresses`, `groups of addresses`, or nothing.
    pub sides_by: Option<&'static str>,
    /// Addresses at home, and beyond the link.
    pub home_addresses: usize,
    /// See there.
    pub far_addresses: usize,
}

impl Plan {
    /// Reads a capture to see how it is to be read. `progress` gets the number of bytes read and
    /// returns whether to go on.
    pub fn read(
        input: impl Read,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, CaptureError> {
        let mut reader = CaptureReader::new(input)?;
        let (mut order, mut twins) = (Order::default(), Twins::default());
        let (mut streams, mut evidence) = (Streams::default(), Evidence::default());
        let (mut packets, mut here, mut elsewhere, mut others) = (0_u64, 0_u64, 0_u64, [0_u64; 2]);
        while let Some(record) = reader.next_packet()? {
            let mut packet = Packet::read(&record);
            if let Some(time) = packet.time {
                order.add(packets, time.as_nanos(), &packet);
                let sight = twins.see(&mut packet, time.as_nanos());
                here += u64::from(sight == Sight::Here);
                elsewhere += u64::from(sight == Sight::Elsewhere);
                let is_copy = sight == Sight::Here;
                if let Ok(header) = &packet.header {
                    streams.add(header, packet.place, is_copy);
                } else if packet.ends.is_some() {
                    others[0] += 1;
                    others[1] += u64::from(is_copy);
                }
                evidence.add(&packet);
            }
            packets += 1;
            if packets.is_multiple_of(PROGRESS) && !progress(reader.consumed()) {
                break;
            }
        }
        order.finish();
        let choices = streams.choices(others);
        // A router sees each packet come and go: then its directions say nothing of sides.
        if elsewhere * 4 > packets || choices.doubled > 0.5 {
            evidence.forget_hints();
        }
        evidence.forget_names(&twins.aliases);
        let sides = evidence.sides();
        let [home_addresses, far_addresses] = sides.count();
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let set = |sign: i64| {
            let mine = order.shifts.iter().filter(|shift| shift.1.signum() == sign);
            mine.map(|shift| seconds(shift.1.unsigned_abs())).collect()
        };
        let notes = Notes {
            out_of_order: order.moved,
            set_back_s: set(1),
            set_forward_s: set(-1),
            unclear_silences_s: order
                .unclear()
                .map(|(at, long)| [at, long].map(seconds))
                .collect(),
            second_sights: 0,
            translated: twins.aliases.len() as u64,
            cut: reader.cut().map(str::to_owned),
            sides_by: match sides.shown {
                Shown::Nothing => None,
                Shown::File => Some("file"),
                Shown::Private => Some("private addresses"),
                Shown::Groups => Some("groups of addresses"),
            },
            home_addresses,
            far_addresses,
        };
        Ok(Self {
            hold: order.hold,
            shifts: order.shifts,
            is_clean: elsewhere == 0 && here == 0 && choices.is_empty(),
            choices,
            aliases: twins.aliases,
            sides,
            notes,
        })
    }
}

/// Hands out the packets of a capture as its plan says.
pub struct Tidy<'a, R> {
    reader: CaptureReader<R>,
    plan: &'a Plan,
    twins: Option<Twins>,
    held: BinaryHeap<Reverse<(u64, u64, Held)>>,
    /// Packets read.
    read: u64,
    shift: i64,
    next_shift: usize,
    at_end: bool,
    /// Second sights that were dropped.
    pub second_sights: u64,
}

/// A packet in the heap, whose order is that of the numbers in front of it.
#[derive(Debug)]
struct Held(Packet);

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<'a, R: Read> Tidy<'a, R> {
    /// Reads the file's header.
    pub fn new(input: R, plan: &'a Plan) -> Result<Self, CaptureError> {
        Ok(Self {
            reader: CaptureReader::new(input)?,
            plan,
            twins: (!plan.is_clean).then(Twins::default),
            held: BinaryHeap::new(),
            read: 0,
            shift: 0,
            next_shift: 0,
            at_end: false,
            second_sights: 0,
        })
    }

    /// Bytes of the file that have been used.
    pub const fn consumed(&self) -> u64 {
        self.reader.consumed()
    }

    /// How the file ends, if it ends inside a packet.
    pub fn cut(&self) -> Option<&str> {
        self.reader.cut()
    }

    /// The next packet, `None` at the end.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet>, CaptureError> {
        loop {
            let Some(mut packet) = self.in_order()? else {
                return Ok(None);
            };
            packet.rename(&self.plan.aliases);
            if !self.is_second(&mut packet) {
                return Ok(Some(packet));
            }
            self.second_sights += 1;
        }
    }

    #[inline]
    fn in_order(&mut self) -> Result<Option<Packet>, CaptureError> {
        while !self.at_end && self.held.len() <= self.plan.hold {
            let Some(record) = self.reader.next_packet()? else {
                self.at_end = true;
                break;
            };
            let mut packet = Packet::read(&record);
            let number = self.read;
            self.read += 1;
            while let Some(&(at, by)) = self.plan.shifts.get(self.next_shift) {
                if at > number {
                    break;
                }
                self.shift = self.shift.saturating_add(by);
                self.next_shift += 1;
            }
            let Some(time) = packet.time else {
                return Ok(Some(packet));
            };
            let time = time.as_nanos().saturating_add_signed(self.shift);
            packet.time = Some(Time::from_nanos(time));
            if self.plan.hold == 0 {
                return Ok(Some(packet));
            }
            self.held.push(Reverse((time, number, Held(packet))));
        }
        Ok(self.held.pop().map(|Reverse((_, _, held))| held.0))
    }

    #[inline]
    fn is_second(&mut self, packet: &mut Packet) -> bool {
        let (Some(twins), Some(time)) = (&mut self.twins, packet.time) else {
            return false;
        };
        let sight = twins.see(packet, time.as_nanos());
        let Some(ends) = packet.ends else {
            return false;
        };
        let choices = &self.plan.choices;
        match (choices.role(ends, packet.place), sight) {
            (Role::Left, _) => true,
            (_, Sight::Here) => packet.is_numbered || choices.drops_copies(ends),
            (Role::Open, Sight::Elsewhere) => true,
            _ => false,
        }
    }
}

impl Plan {
    /// Whether a packet leaves home; `None` if the sides do not say.
    #[inline]
    pub fn leaves(&self, packet: &Packet) -> Option<bool> {
        let [source, destination] = packet.ends?;
        self.sides.leaves(source.address, destination.address)
    }
}
