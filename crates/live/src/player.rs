//! Plays one end of a connection over a socket: the steps of its script, one after the other.

use std::cell::RefCell;
use std::io;

use aqmlab_net::{Role, Time};
use aqmlab_traffic::{Script, Step};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::sleep_until;

use crate::clock::Clock;
use crate::routes::Route;

/// What is sent: nobody looks at it.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

thread_local! {
    /// What is received: nobody looks at it, so one place is enough for all connections.
    static SINK: RefCell<Vec<u8>> = RefCell::new(vec![0; 1 << 16]);
}

/// What is heard of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It begins. The first one may have begun with the connect.
    Asked,
    /// It is over.
    Answered {
        /// Bytes that the client has sent since it began.
        request: u64,
        /// Bytes that it has received.
        response: u64,
    },
}

/// One end of a connection at work.
#[derive(Debug)]
pub(crate) struct Player<'a> {
    pub(crate) stream: TcpStream,
    pub(crate) end: Role,
    pub(crate) route: &'a Route,
    clock: Clock,
    /// The measured span.
    measured: (Time, Time),
    received: u64,
    /// Bytes that it waits for, or has waited for.
    expected: u64,
    /// Bytes sent, and received before, in the exchange under way.
    request: u64,
    received_before: u64,
    peer_closed: bool,
}

impl<'a> Player<'a> {
    pub(crate) const fn new(
        stream: TcpStream,
        end: Role,
        route: &'a Route,
        clock: Clock,
        measured: (Time, Time),
    ) -> Self {
        Self {
            stream,
            end,
            route,
            clock,
            measured,
            received: 0,
            expected: 0,
            request: 0,
            received_before: 0,
            peer_closed: false,
        }
    }

    /// Plays its part of the script, and waits until the peer has closed too. `tell` hears of
    /// exchanges.
    pub(crate) async fn play(
        &mut self,
        script: &Script,
        mut tell: impl FnMut(Heard, Time),
    ) -> io::Result<()> {
        for step in script.steps(self.end) {
            match step {
                Step::Send(bytes) => {
                    self.request += bytes;
                    self.send(bytes).await?;
                }
                Step::Receive(bytes) => {
                    self.expected += bytes;
                    self.receive().await?;
                }
                Step::ReceiveClose => self.receive_close().await?,
                Step::Pause(Time::ZERO) => {}
                Step::Pause(span) => {
                    let until = self.clock.instant(self.clock.now() + span);
                    sleep_until(until.into()).await;
                }
                Step::Close => self.stream.shutdown().await?,
                Step::Ask => {
                    (self.request, self.received_before) = (0, self.received);
                    tell(Heard::Asked, self.clock.now());
                }
                Step::Answered => {
                    let heard = Heard::Answered {
                        request: self.request,
                        response: self.received - self.received_before,
                    };
                    tell(heard, self.clock.now());
                }
            }
        }
        self.receive_close().await
    }

    async fn receive(&mut self) -> io::Result<()> {
        while self.received < self.expected {
            if self.peer_closed {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.stream.readable().await?;
            self.read()?;
        }
        Ok(())
    }

    async fn receive_close(&mut self) -> io::Result<()> {
        while !self.peer_closed {
            self.stream.readable().await?;
            self.read()?;
        }
        Ok(())
    }

    /// Sends, and takes what comes meanwhile: both ends may send at once.
    async fn send(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let interest = if self.peer_closed {
                Interest::WRITABLE
            } else {
                Interest::WRITABLE | Interest::READABLE
            };
            let ready = self.stream.ready(interest).await?;
            if ready.is_readable() && !self.peer_closed {
                self.read()?;
            }
            if ready.is_writable() {
                let chunk = bytes.min(ZEROS.len() as u64) as usize;
                match self.stream.try_write(&ZEROS[..chunk]) {
                    Ok(sent) => bytes -= sent as u64,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Takes what has come.
    fn read(&mut self) -> io::Result<()> {
        let read = SINK.with_borrow_mut(|sink| self.stream.try_read(sink));
        match read {
            Ok(0) => self.peer_closed = true,
            Ok(bytes) => {
                let (start, end) = self.measured;
                let now = self.clock.now();
                let bytes = bytes as u64;
                self.received += bytes;
                self.route
                    .note_received(self.end, bytes, start <= now && now < end);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
