//! Echo requests of ICMP through the gateway, where the machine lets its users ping
//! (`net.ipv4.ping_group_range`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket as StdSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::broker::{Broker, Kind};
use super::either::{Either, either};
use super::gate::Gate;
use super::replies::Unreachable;
use crate::ip::{double_word, payload};

/// Somebody who has not pinged for so long has stopped.
const IDLE: Duration = Duration::from_secs(60);

/// Requests of one program that wait.
const MOST_WAITING: usize = 64;

/// The largest message.
const LARGEST: usize = 1 << 16;

/// Who pings whom: the identifier of the requests, and their destination.
type Pinger = ([u8; 2], Ipv4Addr);

/// Where their requests go.
type Requests = Sender<Box<[u8]>>;

/// The echo requests that are under way.
#[derive(Debug, Default)]
pub(super) struct Echoes(Rc<RefCell<HashMap<Pinger, Requests>>>);

impl Echoes {
    /// Passes a request on.
    pub(super) fn pass(&self, packet: &[u8], gate: &Arc<Gate>, broker: &Broker) {
        let Some(message) = payload(packet) else {
            return;
        };
        let to = Ipv4Addr::from(double_word(packet, 16));
        let pinger = ([message[4], message[5]], to);
        let mut running = self.0.borrow_mut();
        let sender = running.entry(pinger).or_insert_with(|| {
            let (sender, receiver) = channel(MOST_WAITING);
            let (gate, broker, all) = (gate.clone(), broker.clone(), self.0.clone());
            spawn_local(async move {
                // Where nobody may ping, each request gets an error.
                let _ = answer(pinger, receiver, &gate, &broker).await;
                all.borrow_mut().remove(&pinger);
            });
            sender
        });
        // Requests that come too fast are lost.
        let _ = sender.try_send(packet.into());
    }
}

async fn answer(
    (identifier, to): Pinger,
    mut requests: Receiver<Box<[u8]>>,
    gate: &Gate,
    broker: &Broker,
) -> io::Result<()> {
    let socket = match broker.open(Kind::Ping, SocketAddrV4::new(to, 0)).await {
        Ok(socket) => UdpSocket::from_std(StdSocket::from(socket))?,
        Err(error) => {
            while let Ok(packet) = requests.try_recv() {
                let why = match error.kind() {
                    io::ErrorKind::NetworkUnreachable => Unreachable::Network,
                    io::ErrorKind::HostUnreachable => Unreachable::Host,
                    _ => Unreachable::Prohibited,
                };
                gate.replies.unreachable(&packet, why);
            }
            return Err(error);
        }
    };
    let mut client = None;
    let mut buffer = vec![0; LARGEST];
    let mut has_turn = false;
    loop {
        has_turn = !has_turn;
        let next = either(requests.recv(), socket.recv(&mut buffer), has_turn);
        match timeout(IDLE, next).await {
            Ok(Either::First(Some(packet))) => {
                client = Some(Ipv4Addr::from(double_word(&packet, 12)));
                if let Some(message) = payload(&packet) {
                    // The kernel puts an identifier of its own into it.
                    let _ = socket.send(message).await;
                }
            }
            Ok(Either::Second(Ok(size))) if size >= 8 => {
                buffer[4..6].copy_from_slice(&identifier);
                if let Some(client) = client {
                    gate.replies.icmp(to, client, &buffer[..size]);
                }
            }
            // An error outside: the request goes without an answer.
            Ok(Either::Second(_)) => {}
            Ok(Either::First(None)) | Err(_) => return Ok(()),
        }
    }
}
