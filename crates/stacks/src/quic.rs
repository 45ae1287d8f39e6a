//! QUIC of our own behind the interface of stacks: a stream in each direction, which its sender opens.

use std::sync::Arc;

use aqmlab_net::{Ecn, Role, Time};
use aqmlab_quic::{Config, Connection, Event};

use crate::http3::{CONTROL, Messages};
use crate::stack::{Burst, Progress, Stack, State};

/// An end of a connection. Closing is the end of the stream.
#[derive(Debug)]
pub(crate) struct QuicEnd {
    connection: Connection,
    role: Role,
    /// The stream that this end writes to.
    stream: Option<u64>,
    /// What the application has written before there was a stream.
    unwritten: u64,
    closes: bool,
    /// The other end has everything.
    is_delivered: bool,
    /// Everything that the other end sent has been received.
    has_everything: bool,
    /// Its application may write before the handshake is complete, and knows.
    is_early: bool,
    /// It is a server that takes 0-RTT, and has received nothing from the client.
    answers_early: bool,
    /// Each message has a stream of its own.
    messages: Option<Box<Messages>>,
    progress: Progress,
}

impl QuicEnd {
    pub(crate) fn new(config: &Arc<Config>, role: Role, now: Time) -> Self {
        // With 0-RTT a client may write at once.
        let is_early = role == Role::Client && config.early.is_some();
        Self {
            connection: Connection::new(Arc::clone(config), role, now),
            role,
            stream: None,
            unwritten: 0,
            closes: false,
            is_delivered: false,
            has_everything: false,
            is_early,
            answers_early: role == Role::Server && config.early.is_some_and(|it| it.accepted),
            messages: None,
            progress: Progress {
                established: is_early,
                ..Progress::default()
            },
        }
    }

    fn settle(&mut self, now: Time) {
        while let Some(event) = self.connection.next_event() {
            if self.messages.is_some() {
                self.on_message_event(event);
                continue;
            }
            match event {
                Event::Established => {
                    self.progress.established |= !self.is_early;
                    self.write_on();
                }
                Event::Readable(stream) => {
                    self.progress.received += self.connection.read(stream, u64::MAX);
                }
                Event::Finished(_) => {
                    self.progress.finished = true;
                    self.has_everything = true;
                }
                Event::Delivered(_) => self.is_delivered = true,
                // The client closes once both ends have everything: what the server does not know of
                // that, it learns from this.
                Event::Closed { error: 0 } if self.has_everything && self.closes => {
                    self.is_delivered = true;
                }
                Event::Closed { .. } | Event::TimedOut | Event::Reset(_) => {
                    self.progress.failed = true;
                }
            }
        }
        // With 0-RTT a server answers before the handshake is complete.
        if self.answers_early && self.connection.may_send() {
            self.answers_early = false;
            self.is_early = true;
            self.progress.established = true;
        }
        if self.messages.is_some() {
            self.write_messages();
        } else if self.role == Role::Client && self.is_complete() && !self.connection.is_closed() {
            self.connection.close(now);
        }
    }

    /// What happens where each message has a stream of its own.
    fn on_message_event(&mut self, event: Event) {
        let Some(messages) = &mut self.messages else {
            return;
        };
        match event {
            Event::Established => self.progress.established |= !self.is_early,
            Event::Readable(stream) => {
                let bytes = self.connection.read(stream, u64::MAX);
                // What HTTP/3 has for itself is no part of any message.
                if !is_uni(stream) {
                    self.progress.received += bytes;
                }
            }
            Event::Finished(stream) => {
                messages.arrived.push_back((stream >> 2) as u32);
                self.progress.messages += 1;
            }
            Event::Delivered(_) => {}
            // The client closes when it has all it wants. A server that hears nothing more takes that for a
            // close.
            Event::Closed { error: 0 } | Event::TimedOut if self.role == Role::Server => {
                messages.is_closed = true;
            }
            Event::Closed { .. } | Event::TimedOut | Event::Reset(_) => {
                self.progress.failed = true;
            }
        }
    }

    /// Opens the streams that HTTP/3 has for itself, and those of requests that wait, as far as the peer lets it.
    fn write_messages(&mut self) {
        let Some(messages) = &mut self.messages else {
            return;
        };
        while let Some(bytes) = CONTROL.get(messages.controls)
            && let Some(stream) = self.connection.open(true)
        {
            self.connection.write(stream, *bytes, false);
            messages.controls += 1;
        }
        while let Some(&bytes) = messages.waiting.front()
            && let Some(stream) = self.connection.open(false)
        {
            self.connection.write(stream, bytes, true);
            messages.waiting.pop_front();
        }
    }

    fn write_on(&mut self) {
        let has_something = self.unwritten > 0 || self.closes;
        if self.stream.is_none() && has_something {
            self.stream = self.connection.open(true);
        }
        if let Some(stream) = self.stream.filter(|_| has_something) {
            let bytes = std::mem::take(&mut self.unwritten);
            self.connection.write(stream, bytes, self.closes);
        }
    }
}

/// Whether a stream goes one way only.
const fn is_uni(stream: u64) -> bool {
    stream & 2 > 0
}

impl Stack for QuicEnd {
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]) {
        self.connection.receive(now, ecn, payload);
        self.settle(now);
    }

    fn expire(&mut self, now: Time) {
        self.connection.expire(now);
        self.settle(now);
    }

    fn write(&mut self, now: Time, bytes: u64, close: bool) {
        if let Some(messages) = &mut self.messages {
            // Its program ends with that, and no other closes.
            messages.is_closed |= close;
            self.progress.finished |= close;
            self.connection.close(now);
            return;
        }
        self.unwritten += bytes;
        self.closes |= close;
        self.write_on();
        self.settle(now);
    }

    fn split(&mut self, now: Time) {
        self.messages = Some(Box::default());
        self.settle(now);
    }

    fn ask(&mut self, now: Time, bytes: u64) {
        if let Some(messages) = &mut self.messages {
            messages.waiting.push_back(bytes);
        }
        self.settle(now);
    }

    fn answer(&mut self, now: Time, number: u32, bytes: u64, urgency: u8) {
        let stream = u64::from(number) << 2;
        self.connection.prioritise(stream, urgency);
        self.connection.write(stream, bytes, true);
        self.settle(now);
    }

    fn message(&mut self) -> Option<u32> {
        self.messages.as_mut()?.arrived.pop_front()
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Burst> {
        let sent = self.connection.transmit(now, payload)?;
        Some(Burst {
            datagram: payload.len(),
            left_out: sent.size as isize - payload.len() as isize,
            ecn: sent.ecn,
        })
    }

    fn informs_by_sending(&self) -> bool {
        false
    }

    fn deadline(&mut self) -> Time {
        self.connection.deadline()
    }

    fn progress(&mut self) -> Progress {
        std::mem::take(&mut self.progress)
    }

    fn round_trip(&mut self) -> Option<Time> {
        self.connection.take_sample()
    }

    fn losses(&mut self) -> u32 {
        self.connection.take_losses()
    }

    fn state(&self) -> State {
        let (cwnd, ssthresh) = self.connection.window();
        State {
            cwnd,
            ssthresh,
            in_flight: self.connection.in_flight(),
            round_trip: self.connection.round_trip(),
        }
    }

    fn inside(&self) -> Option<&Connection> {
        Some(&self.connection)
    }

    fn is_complete(&self) -> bool {
        match &self.messages {
            Some(messages) => messages.is_closed,
            None => self.is_delivered && self.has_everything,
        }
    }

    fn is_silent(&self) -> bool {
        self.connection.is_silent()
    }
}
