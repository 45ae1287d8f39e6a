//! Plays one end of a connection over a socket.

use std::cell::RefCell;
use std::io;

use aqmlab_net::{Role, Time};
use aqmlab_traffic::{Answered, AppAction, Delivery, Player, Script};
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

/// What becomes of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeEvent {
    /// It begins. The first one may have begun with the connect.
    Asked,
    /// It is over.
    Answered(Answered),
}

/// One end of a connection at work.
#[derive(Debug)]
pub(crate) struct SocketPlayer<'a> {
    pub(crate) stream: TcpStream,
    pub(crate) role: Role,
    pub(crate) route: &'a Route,
    player: Player<Script>,
    clock: Clock,
    /// The measured span.
    measured: (Time, Time),
    /// It waits for nothing that has not come.
    is_ready: bool,
    peer_closed: bool,
}

impl<'a> SocketPlayer<'a> {
    /// `player` has been made when the client asked for the connection, which `stream` is.
    pub(crate) fn new(
        stream: TcpStream,
        role: Role,
        route: &'a Route,
        player: Player<Script>,
        clock: Clock,
        measured: (Time, Time),
    ) -> Self {
        Self {
            stream,
            role,
            route,
            player,
            clock,
            measured,
            is_ready: false,
            peer_closed: false,
        }
    }

    /// Plays its part of the script, and waits until the peer has closed too. It reports
    /// exchanges to `on_exchange`.
    pub(crate) async fn play(
        &mut self,
        mut on_exchange: impl FnMut(ExchangeEvent, Time),
    ) -> io::Result<()> {
        self.deliver(Delivery {
            established: true,
            ..Delivery::default()
        });
        loop {
            let now = self.clock.now();
            match self.player.next(self.role, now) {
                AppAction::Wait => self.wait().await?,
                AppAction::Pause(span) => {
                    let until = self.clock.instant(now + span);
                    sleep_until(until.into()).await;
                }
                AppAction::Write { bytes, close } => {
                    self.send(bytes).await?;
                    if close {
                        self.stream.shutdown().await?;
                    }
                }
                // A live run refuses scenarios in which an application takes something back.
                AppAction::Withdraw => {}
                // TCP has no streams.
                AppAction::Fetch { .. } | AppAction::Answer { .. } | AppAction::Loaded => {}
                AppAction::Asked => on_exchange(ExchangeEvent::Asked, now),
                AppAction::Answered(exchange) => {
                    on_exchange(ExchangeEvent::Answered(exchange), now);
                }
                AppAction::End => return self.receive_close().await,
            }
        }
    }

    /// The application hears of something.
    fn deliver(&mut self, delivery: Delivery) {
        self.is_ready = self.player.on_delivery(self.role, delivery);
    }

    /// Takes what comes until it is what the application waits for.
    async fn wait(&mut self) -> io::Result<()> {
        self.is_ready = false;
        while !self.is_ready {
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
            Ok(0) => {
                self.peer_closed = true;
                self.deliver(Delivery {
                    closed: true,
                    ..Delivery::default()
                });
            }
            Ok(bytes) => {
                let (start, end) = self.measured;
                let now = self.clock.now();
                let bytes = bytes as u64;
                self.route
                    .note_received(self.role, bytes, start <= now && now < end);
                self.deliver(Delivery {
                    bytes,
                    ..Delivery::default()
                });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
