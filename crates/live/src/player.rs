//! Plays one end of a connection over a socket. A script becomes a program of steps for each end,
//! and one interpreter runs the steps.

use std::cell::RefCell;
use std::io;

use aqmlab_net::Time;
use aqmlab_traffic::Script;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::sleep_until;

use crate::clock::Clock;
use crate::routes::{End, Route};

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this many bytes.
    Send(u64),
    /// Wait until this many bytes have been received in all.
    Await(u64),
    /// Wait until the peer has closed.
    AwaitEnd,
    /// Do nothing for a while.
    Pause(Time),
    /// Send nothing more.
    Close,
    /// An exchange begins, by its number; the first one begins with the connect.
    Ask(usize),
    /// An exchange is complete.
    Answered(usize),
}

/// What one end of a connection does to play its part of a script.
pub(crate) fn program(script: &Script, end: End) -> Vec<Step> {
    let mut steps = Vec::with_capacity(4 + 5 * script.rest.len());
    let (mut requested, mut promised) = (0, 0);
    let exchanges = std::iter::once(&script.first).chain(&script.rest);
    for (number, exchange) in exchanges.enumerate() {
        let is_last = number == script.rest.len();
        requested += exchange.request;
        promised += exchange.response;
        match end {
            End::Client => {
                if number > 0 {
                    steps.push(Step::Ask(number));
                }
                steps.push(Step::Send(exchange.request));
                // The last response is complete when the server's FIN has come.
                steps.push(if is_last {
                    Step::AwaitEnd
                } else {
                    Step::Await(promised)
                });
                steps.push(Step::Answered(number));
                if !is_last {
                    steps.push(Step::Pause(exchange.pause));
                }
            }
            End::Server => {
                steps.extend([Step::Await(requested), Step::Send(exchange.response)]);
                if is_last {
                    steps.extend([Step::Close, Step::AwaitEnd]);
                }
            }
        }
    }
    steps
}

/// What is sent: nobody looks at it.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

thread_local! {
    /// What is received: nobody looks at it, so one place is enough for all connections.
    static SINK: RefCell<Vec<u8>> = RefCell::new(vec![0; 1 << 16]);
}

/// One end of a connection at work.
#[derive(Debug)]
pub(crate) struct Player<'a> {
    pub(crate) stream: TcpStream,
    pub(crate) end: End,
    pub(crate) route: &'a Route,
    pub(crate) clock: Clock,
    /// The measured span.
    pub(crate) measured: (Time, Time),
    received: u64,
    peer_closed: bool,
}

impl<'a> Player<'a> {
    pub(crate) const fn new(
        stream: TcpStream,
        end: End,
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
            peer_closed: false,
        }
    }

    /// Runs the steps. `tell` hears of exchanges that begin or are complete.
    pub(crate) async fn play(
        &mut self,
        steps: &[Step],
        mut tell: impl FnMut(Step, Time),
    ) -> io::Result<()> {
        for &step in steps {
            match step {
                Step::Send(bytes) => self.send(bytes).await?,
                Step::Await(total) => {
                    while self.received < total {
                        self.stream.readable().await?;
                        self.read()?;
                        if self.peer_closed {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                }
                Step::AwaitEnd => {
                    while !self.peer_closed {
                        self.stream.readable().await?;
                        self.read()?;
                    }
                }
                Step::Pause(span) => {
                    let until = self.clock.instant(self.clock.now() + span);
                    sleep_until(until.into()).await;
                }
                Step::Close => self.stream.shutdown().await?,
                Step::Ask(_) | Step::Answered(_) => tell(step, self.clock.now()),
            }
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

#[cfg(test)]
mod tests {
    use aqmlab_traffic::Exchange;

    use super::*;

    #[test]
    fn one_exchange() {
        let script = Script::single(300, 5000);
        let client = [Step::Send(300), Step::AwaitEnd, Step::Answered(0)];
        assert_eq!(program(&script, End::Client), client);
        let server = [
            Step::Await(300),
            Step::Send(5000),
            Step::Close,
            Step::AwaitEnd,
        ];
        assert_eq!(program(&script, End::Server), server);
    }

    #[test]
    fn a_persistent_connection() {
        let mut script = Script::single(1, 20);
        script.first.pause = Time::from_secs(3);
        script.rest.push(Exchange {
            request: 4,
            response: 50,
            pause: Time::from_secs(9),
        });
        let client = [
            Step::Send(1),
            Step::Await(20),
            Step::Answered(0),
            Step::Pause(Time::from_secs(3)),
            Step::Ask(1),
            Step::Send(4),
            Step::AwaitEnd,
            Step::Answered(1),
        ];
        assert_eq!(program(&script, End::Client), client);
        let server = [
            Step::Await(1),
            Step::Send(20),
            Step::Await(5),
            Step::Send(50),
            Step::Close,
            Step::AwaitEnd,
        ];
        assert_eq!(program(&script, End::Server), server);
    }
}
