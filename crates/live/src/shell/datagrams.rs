//! A flow of datagrams through the gateway: a socket on each side, and what comes from one goes on
//! from the other, with its ECN field and code point.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket as StdSocket};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{set_ip_recvtos, set_ip_tos, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::broker::{Broker, Kind};
use super::either::{Either, either};
use super::gate::{Flow, Gate};
use super::replies::Unreachable;
use crate::kernel::receive_with_tos;
use crate::outside::Outside;

/// A flow ends when nothing has come for so long.
const IDLE: Duration = Duration::from_secs(60);

/// The largest datagram.
const LARGEST: usize = 1 << 16;

/// One side of a flow.
struct Side {
    socket: UdpSocket,
    /// The type of service of what was sent last.
    tos: u8,
}

impl Side {
    fn new(socket: StdSocket) -> io::Result<Self> {
        // Over IPv6 there is no such byte.
        let _ = set_ip_recvtos(&socket, true);
        Ok(Self {
            socket: UdpSocket::from_std(socket)?,
            tos: 0,
        })
    }

    async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, u8)> {
        let socket = &self.socket;
        let read = || receive_with_tos(socket, buffer);
        // An error of what was sent before wakes nobody who waits for datagrams alone.
        let interest = Interest::READABLE | Interest::ERROR;
        socket.async_io(interest, read).await
    }

    async fn send(&mut self, datagram: &[u8], tos: u8) -> io::Result<()> {
        if tos != self.tos {
            let _ = set_ip_tos(&self.socket, tos);
            self.tos = tos;
        }
        self.socket.send(datagram).await.map(drop)
    }
}

/// Carries the datagrams of a flow, both ways, until it is idle. If the place outside refuses them,
/// a `spare` place inside gets them.
pub(super) async fn carry(
    flow: Flow,
    gate: Arc<Gate>,
    broker: Broker,
    outside: Arc<Outside>,
    spare: Option<SocketAddrV4>,
) {
    let sides = async {
        let outer = broker.open(Kind::Udp, flow.server).await?;
        let inner = inner_socket(flow.server, flow.client)?;
        Ok::<_, io::Error>((Side::new(inner)?, Side::new(outer.into())?))
    };
    match sides.await {
        Ok((inner, outer)) => {
            outside.flowed();
            gate.open(&flow);
            copy(&flow, &gate, inner, outer, spare).await;
            gate.forget(&flow);
        }
        Err(error) => {
            outside.not_reached(&error);
            if let (Some(datagram), Some(why)) = (gate.forget(&flow), learned(&error)) {
                gate.replies.unreachable(&datagram, why);
            }
        }
    }
}

/// A socket that stands for the place outside, in the far end's network.
fn inner_socket(server: SocketAddrV4, client: SocketAddrV4) -> io::Result<StdSocket> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // A place has one socket for each of its clients.
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &server)?;
    connect(&socket, &client)?;
    Ok(socket.into())
}

/// A socket in the far end's network that sends to a place inside.
fn spare_socket(place: SocketAddrV4) -> io::Result<Side> {
    let socket = StdSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(place)?;
    Side::new(socket)
}

async fn copy(
    flow: &Flow,
    gate: &Gate,
    mut inner: Side,
    mut outer: Side,
    mut spare: Option<SocketAddrV4>,
) {
    let (mut going, mut coming) = (vec![0; LARGEST], vec![0; LARGEST]);
    let mut sent = (0, 0);
    let mut outer_has_turn = false;
    loop {
        outer_has_turn = !outer_has_turn;
        let next = either(
            inner.receive(&mut going),
            outer.receive(&mut coming),
            outer_has_turn,
        );
        let outcome = match timeout(IDLE, next).await {
            Ok(Either::First(Ok((size, tos)))) => {
                sent = (size, tos);
                outer.send(&going[..size], tos).await
            }
            Ok(Either::Second(Ok((size, tos)))) => {
                // A datagram that does not get through is lost, as on any network.
                let _ = inner.send(&coming[..size], tos).await;
                Ok(())
            }
            Ok(Either::Second(Err(error))) => Err(error),
            // The program has closed its socket: the place outside hears the same. Or it is idle.
            Ok(Either::First(Err(_))) | Err(_) => return,
        };
        if let Err(error) = &outcome
            && error.kind() == io::ErrorKind::ConnectionRefused
            && let Some(Ok(other)) = spare.take().map(spare_socket)
        {
            outer = other;
            let (size, tos) = sent;
            let _ = outer.send(&going[..size], tos).await;
            continue;
        }
        if let Err(error) = outcome
            && let Some(why) = learned(&error)
        {
            let Flow { client, server, .. } = *flow;
            gate.replies.flow_unreachable(client, server, why);
        }
    }
}

/// What a program learns of an error outside.
fn learned(error: &io::Error) -> Option<Unreachable> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some(Unreachable::Port),
        io::ErrorKind::NetworkUnreachable => Some(Unreachable::Network),
        io::ErrorKind::HostUnreachable => Some(Unreachable::Host),
        io::ErrorKind::PermissionDenied => Some(Unreachable::Prohibited),
        _ => None,
    }
}
