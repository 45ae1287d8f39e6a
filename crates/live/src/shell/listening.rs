//! Accepting connections for as long as a run lasts, whatever the machine lacks for a time.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::unconstrained;
use tokio::time::sleep;

use crate::outside::Outside;

/// How long after a failure the next attempt comes.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// Accepts connections. They wait in the kernel while this machine has no file or memory for them;
/// each that waited counts as a failure.
#[derive(Debug)]
pub(super) struct Door {
    listener: TcpListener,
    outside: Arc<Outside>,
    lacking: Option<Lacking>,
}

/// Connections wait for what this machine lacks.
#[derive(Debug)]
struct Lacking {
    error: io::Error,
    /// Whether the next of them has been counted.
    is_counted: bool,
}

impl Door {
    /// Listens at an address.
    pub(super) async fn open(
        address: impl ToSocketAddrs,
        outside: &Arc<Outside>,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address).await?,
            outside: outside.clone(),
            lacking: None,
        })
    }

    /// The next connection.
    pub(super) async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let accepted = match self.waiting().await {
                Some(accepted) => accepted,
                None => self.listener.accept().await,
            };
            match accepted {
                Ok(accepted) => {
                    if let Some(lacking) = &mut self.lacking
                        && !std::mem::take(&mut lacking.is_counted)
                    {
                        self.outside.failed(&lacking.error);
                    }
                    return accepted;
                }
                Err(error) => {
                    if !self.lacking.as_ref().is_some_and(|it| it.is_counted) {
                        self.outside.failed(&error);
                    }
                    let is_counted = true;
                    self.lacking = Some(Lacking { error, is_counted });
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// A connection that has waited since an attempt failed, or the next failure; nothing if none
    /// waits any longer.
    async fn waiting(&mut self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        self.lacking.as_ref()?;
        let tried = poll_fn(|context| Poll::Ready(self.listener.poll_accept(context)));
        // Otherwise the runtime might say that there is none, to let other tasks work.
        match unconstrained(tried).await {
            Poll::Ready(accepted) => Some(accepted),
            Poll::Pending => {
                self.lacking = None;
                None
            }
        }
    }
}
