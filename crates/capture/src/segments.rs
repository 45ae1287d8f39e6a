//! The TCP segments and UDP datagrams of a capture, one by one.

use std::collections::BTreeMap;
use std::io::Read;

use crate::decode::{ACK, Endpoint, SYN, Skip, Skipped, TcpHeader, UDP};
use crate::error::CaptureError;
use crate::packet::Packet;
use crate::reader::PROGRESS;
use crate::tidy::{Notes, Plan, Tidy};

/// Numbers of a segment, see [`SegmentList::words`].
pub const WORDS_OF_SEGMENT: usize = 7;
/// Numbers of a UDP datagram, see [`SegmentList::datagrams`].
pub const WORDS_OF_DATAGRAM: usize = 5;
/// Bytes of UDP's header.
const UDP_HEADER: u32 = 8;

/// The segments of a capture, in the order that the plan gives them.
#[derive(Clone, Debug, Default)]
pub struct SegmentList {
    /// [`WORDS_OF_SEGMENT`] of each: nanoseconds since 1970, the connection, the sender (0: who sent
    /// the first SYN, or else the first segment), sequence number, acknowledgement number, and in one
    /// word control bits below 256 and the payload above them; last, the way (0 unknown, 1 towards
    /// home, 2 away from it) and, times 4, the pair of addresses. A SYN on old addresses begins a new
    /// connection.
    pub words: Vec<u64>,
    /// [`WORDS_OF_DATAGRAM`] of each UDP datagram: nanoseconds since 1970, the flow, the sender (0:
    /// who sent the first), bytes of payload times 2 and 1 if it may begin a QUIC connection, and the
    /// way and the pair as for segments.
    pub datagrams: Vec<u64>,
    /// For each pair of addresses the number of the one at home; without sides of the one that sends
    /// first.
    pub homes: Vec<u64>,
    /// When the first packet of any kind passed: nanoseconds since 1970.
    pub first: Option<u64>,
    /// What was skipped.
    pub skipped: Skipped,
    /// What the pass in front of this has found.
    pub notes: Notes,
    known: BTreeMap<[Endpoint; 2], Connection>,
    connections: u64,
    /// By the ends in order: the number, and who sent first.
    flows: BTreeMap<[Endpoint; 2], (u64, Endpoint)>,
    pairs: BTreeMap<[[u64; 2]; 2], u64>,
    hosts: BTreeMap<[u64; 2], u64>,
}

/// Who opened a connection between two ends, and with which number.
#[derive(Clone, Copy, Debug)]
struct Connection {
    number: u64,
    opener: Endpoint,
    syn: Option<u32>,
}

impl SegmentList {
    fn add(&mut self, packet: &Packet, plan: &Plan) {
        let Some(time) = packet.time else {
            return self.skipped.add(Skip::NoTime);
        };
        self.first.get_or_insert(time.as_nanos());
        let way = || {
            let leaves = plan.leaves(packet);
            leaves.map_or(0, |leaves| 1 + u64::from(leaves))
        };
        match packet.header {
            Ok(header) => self.add_segment(time.as_nanos(), &header, way()),
            Err(reason) => {
                if let (Skip::NotTcp(UDP), Some(ends)) = (reason, packet.ends) {
                    let payload = u64::from(packet.carried.saturating_sub(UDP_HEADER));
                    let payload = payload << 1 | u64::from(packet.may_begin_quic);
                    self.add_datagram(time.as_nanos(), ends, payload, way());
                }
                self.skipped.add(reason);
            }
        }
    }

    fn add_datagram(
        &mut self,
        time: u64,
        [source, destination]: [Endpoint; 2],
        payload: u64,
        way: u64,
    ) {
        let mut ends = [source, destination];
        ends.sort();
        let next = self.flows.len() as u64;
        let (flow, first) = *self.flows.entry(ends).or_insert((next, source));
        let pair = self.pair(source, destination, way);
        let sender = u64::from(source != first);
        self.datagrams
            .extend([time, flow, sender, payload, pair << 2 | way]);
    }

    /// The number of the pair of addresses of a sender and a receiver.
    fn pair(&mut self, source: Endpoint, destination: Endpoint, way: u64) -> u64 {
        let mut addresses = [source.address, destination.address];
        addresses.sort_unstable();
        let next = self.pairs.len() as u64;
        let pair = *self.pairs.entry(addresses).or_insert(next);
        if pair == next {
            let home = if way == 1 { destination } else { source };
            let number = self.hosts.len() as u64;
            self.homes
                .push(*self.hosts.entry(home.address).or_insert(number));
        }
        pair
    }

    fn add_segment(&mut self, time: u64, header: &TcpHeader, way: u64) {
        let mut ends = [header.source, header.destination];
        ends.sort();
        let kind = header.flags & (SYN | ACK);
        let syn = (kind == SYN).then_some(header.seq);
        // The same SYN once more is a repetition; another number opens a new connection.
        let known = self.known.get(&ends).copied();
        let old = known.filter(|one| syn.is_none() || one.syn == syn);
        let connection = old.unwrap_or_else(|| {
            let opener = match kind == SYN | ACK {
                true => header.destination,
                false => header.source,
            };
            let number = self.connections;
            self.connections += 1;
            Connection {
                number,
                opener,
                syn,
            }
        });
        self.known.insert(ends, connection);
        let pair = self.pair(header.source, header.destination, way);
        self.words.extend([
            time,
            connection.number,
            u64::from(header.source != connection.opener),
            u64::from(header.seq),
            u64::from(header.ack),
            u64::from(header.payload) << 8 | u64::from(header.flags),
            pair << 2 | way,
        ]);
    }
}

/// Reads all segments as a plan says. `progress` gets the number of bytes read and returns whether to go on.
pub fn segments(
    input: impl Read,
    plan: &Plan,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<SegmentList, CaptureError> {
    let mut reader = Tidy::new(input, plan)?;
    let mut found = SegmentList::default();
    let mut packets = 0_u64;
    while let Some(packet) = reader.next_packet()? {
        found.add(&packet, plan);
        packets += 1;
        if packets.is_multiple_of(PROGRESS) && !progress(reader.consumed()) {
            break;
        }
    }
    found.notes = plan.notes.clone();
    found.notes.second_sights = reader.second_sights;
    found.notes.cut = reader.cut().map(str::to_owned);
    Ok(found)
}
