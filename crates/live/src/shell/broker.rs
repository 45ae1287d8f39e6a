//! The broker: a thread that stays in the machine's own network and opens sockets there on request.
//! A socket belongs to the network in which it was made. Any thread may use it.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};
use tokio::sync::oneshot;

use super::reach::Reach;

/// What kind of a socket is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tcp,
    Udp,
    /// Echo requests of ICMP.
    Ping,
}

#[derive(Debug)]
struct Request {
    kind: Kind,
    to: SocketAddrV4,
    answer: oneshot::Sender<io::Result<OwnedFd>>,
}

/// Asks for sockets.
#[derive(Clone, Debug)]
pub(super) struct Broker(Sender<Request>);

impl Broker {
    /// Starts the thread, in the network of the caller. It ends when nobody can ask any more.
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>, reach: Reach) -> Self {
        let (asking, asked) = channel::<Request>();
        scope.spawn(move || {
            while let Ok(Request { kind, to, answer }) = asked.recv() {
                let _ = answer.send(open(&reach, kind, to));
            }
        });
        Self(asking)
    }

    /// A socket that does not block and is connected, or about to be, with the place outside for
    /// which an address inside stands.
    pub(super) async fn open(&self, kind: Kind, to: SocketAddrV4) -> io::Result<OwnedFd> {
        let (answer, answered) = oneshot::channel();
        let lost = || io::Error::other("the broker ended");
        let request = Request { kind, to, answer };
        self.0.send(request).map_err(|_| lost())?;
        answered.await.map_err(|_| lost())?
    }
}

fn open(reach: &Reach, kind: Kind, to: SocketAddrV4) -> io::Result<OwnedFd> {
    let target = reach.target(to).ok_or(io::ErrorKind::PermissionDenied)?;
    let family = match target.is_ipv4() {
        true => AddressFamily::INET,
        false => AddressFamily::INET6,
    };
    let (style, protocol) = match kind {
        Kind::Tcp => (SocketType::STREAM, None),
        Kind::Udp => (SocketType::DGRAM, None),
        Kind::Ping => (SocketType::DGRAM, Some(ipproto::ICMP)),
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, style, flags, protocol)?;
    match connect(&socket, &target) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}
