//! The TCP segments of a capture, one by one.

use std::collections::BTreeMap;
use std::io::Read;

use crate::decode::{ACK, Endpoint, SYN, Skip, Skipped, TcpHeader};
use crate::error::CaptureError;
use crate::packet::Packet;
use crate::reader::PROGRESS;
use crate::tidy::{Notes, Plan, Tidy};

/// Numbers of a segment, see [`SegmentList::words`].
pub const WORDS_OF_SEGMENT: usize = 7;

/// The segments of a capture, in the order that the plan gives them.
#[derive(Clone, Debug, Default)]
pub struct SegmentList {
    /// [`WORDS_OF_SEGMENT`] of each: nanoseconds since 1970, the connection, the sender (0: who sent
    /// the first SYN, or else the first segment), sequence number, acknowledgement number, and in one
    /// word control bits below 256 and the payload above them; last, the way (0 unknown, 1 towards
    /// home, 2 away from it) and, times 4, the pair of addresses. A SYN on old addresses begins a new
    /// connection.
    pub words: Vec<u64>,
    /// What was skipped.
    pub skipped: Skipped,
    /// What the pass in front of this has found.
    pub notes: Notes,
    known: BTreeMap<[Endpoint; 2], Connection>,
    connections: u64,
    pairs: BTreeMap<[[u64; 2]; 2], u64>,
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
        match packet.header {
            Ok(header) => {
                let way = plan
                    .leaves(packet)
                    .map_or(0, |leaves| 1 + u64::from(leaves));
                self.add_segment(time.as_nanos(), &header, way);
            }
            Err(reason) => self.skipped.add(reason),
        }
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
        let next = self.pairs.len() as u64;
        let pair = *self
            .pairs
            .entry(ends.map(|end| end.address))
            .or_insert(next);
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
