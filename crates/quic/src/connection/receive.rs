//! Datagrams that arrive.

use aqmlab_net::{Ecn, Role, Time};

use super::{Connection, DATA, HANDSHAKE, INITIAL, Life};
use crate::config::LEAST_INITIAL;
use crate::error::Error;
use crate::streams::Event;
use crate::wire::{Frame, Kind, Next, PREFIX, Reader, full_number};

/// Most packets that are held until their keys are there.
const MOST_HELD: usize = 16;

impl Connection {
    /// A datagram arrives, with the ECN field that it has now.
    pub fn receive(&mut self, now: Time, ecn: Ecn, carried: &[u8]) {
        let Some((size, packets)) = carried.split_first_chunk::<PREFIX>() else {
            return;
        };
        let size = usize::from(u16::from_be_bytes(*size));
        let was_blocked = self.is_amplifying();
        self.volume[0] += size as u64;
        self.quiet_at = Time::NEVER;
        match &mut self.life {
            Life::Over | Life::Draining { .. } => return,
            Life::Closing { says, .. } => *says = true,
            Life::Open => {}
        }
        let mut reader = Reader(packets);
        while !reader.0.is_empty() {
            let start = reader.0;
            if self.on_packet(&mut reader, ecn, size, now).is_none() {
                self.skip(start, &mut reader, ecn);
            }
        }
        if !self.held.is_empty() {
            self.take_held(now);
        }
        // A server may send again: a probe that was due meanwhile goes first (RFC 9002, section 6.2.2.1).
        if was_blocked
            && self.loss_timer().is_none()
            && self.probe_timer().is_some_and(|(due, _)| due <= now)
        {
            self.expire(now);
        }
    }

    /// A packet cannot be read: it is held if its keys are still to come.
    fn skip<'a>(&mut self, start: &'a [u8], reader: &mut Reader<'a>, ecn: Ecn) {
        *reader = Reader(start);
        let Some((kind, ..)) = reader.packet() else {
            *reader = Reader(&[]);
            return;
        };
        while reader.frame(&mut self.ack).is_some() {}
        let packet = &start[..start.len() - reader.0.len()];
        if !self.never_reads(kind) && !self.can_read(kind) && self.held.len() < MOST_HELD {
            self.held.push((packet.to_vec(), ecn));
        }
    }

    /// Keys may have come for packets that are held.
    fn take_held(&mut self, now: Time) {
        let mut index = 0;
        while let Some((packet, _)) = self.held.get(index) {
            let kind = Reader(packet).packet().map(|(kind, ..)| kind);
            if !kind.is_some_and(|kind| self.can_read(kind) || self.never_reads(kind)) {
                index += 1;
                continue;
            }
            let (packet, ecn) = self.held.remove(index);
            self.on_packet(&mut Reader(&packet), ecn, LEAST_INITIAL, now);
            index = 0;
        }
    }

    /// Takes the next packet of a datagram of `size` bytes; none: it cannot be read.
    fn on_packet(
        &mut self,
        reader: &mut Reader<'_>,
        ecn: Ecn,
        size: usize,
        now: Time,
    ) -> Option<()> {
        let (kind, truncated, bytes) = reader.packet()?;
        let is_short = kind == Kind::Initial && self.role == Role::Server && size < LEAST_INITIAL;
        if !self.can_read(kind) || is_short {
            return None;
        }
        let index = match kind {
            Kind::Initial => INITIAL,
            Kind::Handshake => HANDSHAKE,
            Kind::ZeroRtt | Kind::OneRtt => DATA,
        };
        let number = full_number(self.spaces[index].expected(), truncated, bytes);
        if self.spaces[index].is_duplicate(number) {
            self.duplicates += 1;
            return None;
        }
        let mut elicits = false;
        let mut error = None;
        let mut talks = false;
        while let Some(next) = reader.frame(&mut self.ack) {
            let taken = match next {
                Next::Ack => self.on_ack(index, now),
                Next::Malformed => Err(Error::FrameEncoding),
                Next::Frame(Frame::Stream {
                    stream,
                    offset,
                    len,
                    fin,
                }) => {
                    elicits = true;
                    self.streams.on_data(stream, (offset, len), fin)
                }
                Next::Frame(Frame::Close { error }) => {
                    self.on_close(error, now);
                    Ok(())
                }
                Next::Frame(frame) => {
                    elicits = true;
                    talks |= matches!(frame, Frame::Crypto { .. });
                    self.on_frame(index, &frame)
                }
            };
            error = error.or(taken.err());
        }
        if kind == Kind::Handshake && self.role == Role::Server {
            self.is_validated = true;
            self.discard(INITIAL);
        }
        let patience = match index {
            DATA => self.config.max_ack_delay,
            _ => Time::ZERO,
        };
        self.spaces[index].on_arrival(number, elicits, ecn, patience, now);
        (self.active_at, self.has_sent_since) = (now, false);
        if let Some(error) = error {
            self.close_with(error, now);
        } else if talks {
            self.on_handshake_bytes(now);
        }
        Some(())
    }

    #[inline]
    fn on_frame(&mut self, index: usize, frame: &Frame) -> Result<(), Error> {
        match *frame {
            Frame::Ping => Ok(()),
            Frame::Crypto { offset, len } => {
                self.spaces[index]
                    .crypto_received
                    .insert(offset, offset + len);
                Ok(())
            }
            Frame::HandshakeDone => {
                if self.role == Role::Server {
                    return Err(Error::ProtocolViolation);
                }
                self.confirm();
                Ok(())
            }
            _ => self.streams.on_frame(frame),
        }
    }

    /// The other end has closed (RFC 9000, section 10.2.2).
    fn on_close(&mut self, error: u64, now: Time) {
        let until = now + self.probe_timeout(true) * 3;
        if self.life == Life::Open {
            self.streams.events.push_back(Event::Closed { error });
        }
        self.life = Life::Draining { until };
    }
}
