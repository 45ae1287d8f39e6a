//! Accepting connections for as long as a run lasts, whatever the machine lacks for a time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::outside::Outside;

/// How long after a failure the next attempt comes.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// The next connection of a listener. It waits in the kernel while this machine has no file or
/// memory for it; that it had to wait is counted once.
pub(super) async fn accept(listener: &TcpListener, outside: &Outside) -> (TcpStream, SocketAddr) {
    let mut has_failed = false;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                if !has_failed {
                    outside.failed(&error);
                    has_failed = true;
                }
                sleep(PAUSE).await;
            }
        }
    }
}
