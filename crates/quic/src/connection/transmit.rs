//! Datagrams that leave.

use aqmlab_net::{Ecn, Role, Time};
use aqmlab_tcp::Stamp;

use super::{Connection, DATA, Datagram, HANDSHAKE, INITIAL, Life};
use crate::config::{ACK_DELAY_EXPONENT, LEAST_INITIAL};
use crate::space::{Fate, Sent, Space};
use crate::streams::{Content, Contents};
use crate::wire::{Frame, Kind, PREFIX, TAG, Writer, length, number_length};

/// Room without which no packet is begun.
const LEAST_ROOM: usize = 16;

/// A packet that was written and is not counted yet.
#[derive(Debug)]
struct Written {
    index: usize,
    start: usize,
    elicits: bool,
    contents: Contents,
}

impl Connection {
    /// Puts the next datagram to send now behind what `out` has, in its carried form; nothing where there
    /// is none.
    #[inline]
    pub fn transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        // Nothing has happened since there was nothing to send.
        if self.quiet_at == now {
            return None;
        }
        let sent = self.transmit_next(now, out);
        if sent.is_none() {
            self.quiet_at = now;
        }
        sent
    }

    #[inline(never)]
    fn transmit_next(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        match self.life {
            Life::Open => {}
            Life::Closing { until, error, says } => {
                self.life = Life::Closing {
                    until,
                    error,
                    says: false,
                };
                return says.then(|| self.say_closed(error, out));
            }
            Life::Draining { .. } | Life::Over => return None,
        }
        let has_window = self.congestion.has_room();
        self.paced_until = Time::NEVER;
        let mut may = has_window && self.has_any_frames();
        if may {
            let ready = self.congestion.ready_at(now);
            if ready > now {
                (may, self.paced_until) = (false, ready);
            }
            self.congestion.app_limited = false;
        } else {
            self.congestion.app_limited = has_window;
            if has_window {
                self.congestion
                    .law
                    .limit_by_application(self.congestion.in_flight);
            }
        }
        let is_due = |space: &Space| space.probes > 0 || space.ack_at <= now;
        if self.is_confirmed {
            return match may || is_due(&self.spaces[DATA]) {
                true => self.transmit_data(may, now, out),
                false => None,
            };
        }
        match may || self.spaces.iter().any(is_due) {
            true => self.transmit_handshake(may, now, out),
            false => None,
        }
    }

    /// A datagram with a packet of data: behind the handshake there are no others.
    #[inline(never)]
    fn transmit_data(&mut self, may: bool, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        let room = self.config.datagram as usize;
        let begin = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        let mut writer = Writer { out, wire: 0 };
        let written = self.write_packet((DATA, may), &mut writer, room, now);
        let size = writer.wire;
        let Some(written) = written else {
            out.truncate(begin);
            return None;
        };
        let ecn = self.code_point();
        self.remember(written, size, false, ecn, now);
        self.volume[1] += size as u64;
        let prefix = (size as u16).to_be_bytes();
        out[begin..begin + PREFIX].copy_from_slice(&prefix);
        Some(Datagram { size, ecn })
    }

    /// A datagram with what there is of all kinds of packets.
    #[inline(never)]
    fn transmit_handshake(&mut self, may: bool, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        let mut room = self.config.datagram as usize;
        if self.role == Role::Server && !self.is_validated {
            let left = (3 * self.volume[0]).saturating_sub(self.volume[1]);
            room = room.min(left as usize);
        }
        let begin = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        let mut writer = Writer { out, wire: 0 };
        let mut packets = [None, None, None];
        for index in self.open_spaces() {
            let may = may && self.has_frames(index);
            packets[index] = self.write_packet((index, may), &mut writer, room, now);
        }
        let size = writer.wire;
        let Some(last) = packets.iter().rposition(Option::is_some) else {
            out.truncate(begin);
            return None;
        };
        let pads = packets[INITIAL]
            .as_ref()
            .is_some_and(|it: &Written| self.role == Role::Client || it.elicits);
        let shakes_hands = packets[HANDSHAKE].is_some();
        let padded = if pads { size.max(LEAST_INITIAL) } else { size };
        let ecn = self.code_point();
        let mut end = padded;
        for index in [DATA, HANDSHAKE, INITIAL] {
            if let Some(written) = packets[index].take() {
                let start = written.start;
                let is_padded = index == last && padded > size;
                self.remember(written, end - start, is_padded, ecn, now);
                end = start;
            }
        }
        self.volume[1] += padded as u64;
        if shakes_hands && self.role == Role::Client {
            self.discard(INITIAL);
        }
        let prefix = (padded as u16).to_be_bytes();
        out[begin..begin + PREFIX].copy_from_slice(&prefix);
        Some(Datagram { size: padded, ecn })
    }

    /// The ECN field of what leaves.
    fn code_point(&self) -> Ecn {
        match self.is_capable {
            true => self.congestion.law.code_point(),
            false => Ecn::NotEct,
        }
    }

    /// Whether there is anything ack-eliciting to send in a space.
    pub(super) fn has_frames(&self, index: usize) -> bool {
        let space = &self.spaces[index];
        match index {
            DATA => {
                let may = self.has_one_rtt || self.is_early;
                may && (self.streams.has_work()
                    || (self.has_one_rtt
                        && (self.done_is_due || space.crypto.has_handshake_work())))
            }
            _ => space.has_keys && space.crypto.has_handshake_work(),
        }
    }

    fn has_any_frames(&self) -> bool {
        self.has_frames(DATA)
            || (!self.is_confirmed && [HANDSHAKE, INITIAL].iter().any(|it| self.has_frames(*it)))
    }

    /// Writes a packet of a space, if it has an acknowledgement that is due, frames that `may` go, or a
    /// probe.
    #[inline(always)]
    fn write_packet(
        &mut self,
        (index, may): (usize, bool),
        writer: &mut Writer<'_>,
        room: usize,
        now: Time,
    ) -> Option<Written> {
        let has_keys = match index {
            DATA => self.has_one_rtt || self.is_early,
            _ => self.spaces[index].has_keys,
        };
        if !has_keys {
            return None;
        }
        let kind = match index {
            INITIAL => Kind::Initial,
            HANDSHAKE => Kind::Handshake,
            _ if self.has_one_rtt => Kind::OneRtt,
            _ => Kind::ZeroRtt,
        };
        let space = &mut self.spaces[index];
        let probes = space.probes > 0;
        let says = may || probes;
        let acks = space.owes_ack() && kind != Kind::ZeroRtt && (says || space.ack_at <= now);
        // A server reads no 1-RTT packets before it is complete, and has none to acknowledge.
        let number = space.next_number();
        let bytes = number_length(number, space.largest_acked);
        let start = writer.wire;
        let head = kind.header() + bytes + TAG;
        if !(says || acks) || room < start + head + LEAST_ROOM {
            return None;
        }
        let begin = writer.out.len();
        writer.header(kind, number, bytes);
        let mut contents = Contents::default();
        if acks {
            let left = room - writer.wire;
            if let Some(ack) = space.write_ack(writer, ACK_DELAY_EXPONENT, left, now) {
                contents.push(ack);
            }
        }
        let only_acks = contents.len();
        let mut pings = false;
        if says {
            self.write_frames(index, kind, writer, room, &mut contents);
            if contents.len() == only_acks && probes {
                writer.frame(&Frame::Ping);
                pings = true;
            }
        }
        let elicits = contents.len() > only_acks || pings;
        let space = &mut self.spaces[index];
        if elicits {
            space.probes = space.probes.saturating_sub(1);
        }
        if contents.is_empty() && !pings {
            // What there was did not fit.
            writer.wire = start;
            writer.out.truncate(begin);
            return None;
        }
        Some(Written {
            index,
            start,
            elicits,
            contents,
        })
    }

    fn write_frames(
        &mut self,
        index: usize,
        kind: Kind,
        writer: &mut Writer<'_>,
        room: usize,
        contents: &mut Contents,
    ) {
        if kind == Kind::OneRtt && self.done_is_due && writer.wire < room {
            self.done_is_due = false;
            writer.frame(&Frame::HandshakeDone);
            contents.push(Content::HandshakeDone);
        }
        if kind != Kind::ZeroRtt {
            let crypto = &mut self.spaces[index].crypto;
            while crypto.has_handshake_work() {
                let head = 1 + length(crypto.sent) + 2;
                let Some(most) = room.checked_sub(writer.wire + head).filter(|it| *it > 0) else {
                    break;
                };
                let Some(piece) = crypto.next(most as u64, u64::MAX / 2) else {
                    break;
                };
                let (offset, len) = (piece.offset, piece.len);
                writer.frame(&Frame::Crypto { offset, len });
                contents.push(Content::Crypto { offset, len });
            }
        }
        if index == DATA {
            self.streams.fill(writer, room, contents);
        }
    }

    /// A packet leaves with so many bytes. Padding counts as in flight.
    #[inline(always)]
    fn remember(&mut self, written: Written, bytes: usize, is_padded: bool, ecn: Ecn, now: Time) {
        let elicits = written.elicits;
        let is_capable = ecn != Ecn::NotEct;
        let (bytes, stamp) = match elicits || is_padded {
            true => (bytes as u16, self.congestion.on_send(bytes as u64, now)),
            false => (0, Stamp::default()),
        };
        let space = &mut self.spaces[written.index];
        space.sent_capable += u64::from(is_capable);
        space.push(Sent {
            at: now,
            bytes,
            fate: Fate::Out,
            elicits,
            is_capable,
            stamp,
            contents: written.contents,
        });
        if elicits && !self.has_sent_since {
            (self.active_at, self.has_sent_since) = (now, true);
        }
    }

    /// Says that the connection is closed, in the packets that the peer can read.
    fn say_closed(&mut self, error: u64, out: &mut Vec<u8>) -> Datagram {
        let begin = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        let mut writer = Writer { out, wire: 0 };
        let (index, kind) = if self.is_complete {
            (DATA, Kind::OneRtt)
        } else if self.spaces[HANDSHAKE].has_keys {
            (HANDSHAKE, Kind::Handshake)
        } else {
            (INITIAL, Kind::Initial)
        };
        let space = &mut self.spaces[index];
        let number = space.next_number();
        let bytes = number_length(number, space.largest_acked);
        writer.header(kind, number, bytes);
        writer.frame(&Frame::Close { error });
        let mut size = writer.wire;
        if index == INITIAL {
            size = size.max(LEAST_INITIAL);
        }
        space.push(Sent {
            at: self.active_at,
            bytes: 0,
            fate: Fate::Out,
            elicits: false,
            is_capable: false,
            stamp: Stamp::default(),
            contents: Contents::default(),
        });
        self.volume[1] += size as u64;
        let prefix = (size as u16).to_be_bytes();
        out[begin..begin + PREFIX].copy_from_slice(&prefix);
        Datagram {
            size,
            ecn: Ecn::NotEct,
        }
    }
}
