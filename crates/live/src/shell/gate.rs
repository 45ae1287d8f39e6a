//! The gate: where packets of the program leave the link. Those of a new flow to the outside wait
//! here until the place outside has answered; all others go to the kernel of the far end.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Mutex;

use tokio::sync::mpsc::Sender;

use super::addresses::{FAR, TEST};
use super::reach::Reach;
use super::replies::{Replies, Unreachable};
use crate::ip::{self, Opening};
use crate::router::Output;
use crate::routes::Side;

/// Bytes of a flow that wait for it to open: more datagrams are lost.
const MOST_WAITING: usize = 1 << 16;

/// A flow: its protocol, its end inside, the place that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    pub(super) is_tcp: bool,
    pub(super) client: SocketAddrV4,
    pub(super) server: SocketAddrV4,
}

/// What has become of a flow.
#[derive(Debug)]
enum State {
    /// Packets that wait for the place outside.
    Waits(Vec<Box<[u8]>>),
    Open,
}

/// What the gateway is asked for.
#[derive(Debug)]
pub(super) enum Errand {
    /// To open a flow.
    Open(Flow),
    /// To pass on an echo request.
    Echo(Box<[u8]>),
}

/// The end of the link, with a way out.
#[derive(Debug)]
pub(super) struct Gate {
    reach: Reach,
    /// Whether users of a scenario are beside the program: their servers are here.
    has_users: bool,
    device: File,
    flows: Mutex<HashMap<Flow, State>>,
    errands: Sender<Errand>,
    pub(super) replies: Replies,
}

impl Gate {
    pub(super) fn new(
        reach: Reach,
        has_users: bool,
        device: File,
        errands: Sender<Errand>,
        replies: Replies,
    ) -> Self {
        Self {
            reach,
            has_users,
            device,
            flows: Mutex::default(),
            errands,
            replies,
        }
    }

    pub(super) const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The place outside has answered: what waits goes on, and all that follows.
    pub(super) fn open(&self, flow: &Flow) {
        // Nothing of the flow overtakes what waits.
        let mut flows = self.flows.lock().expect(UNPOISONED);
        if let Some(State::Waits(packets)) = flows.insert(*flow, State::Open) {
            for packet in packets {
                // A device that is full loses packets.
                let _ = (&self.device).write(&packet);
            }
        }
    }

    /// The flow is over, or never began: the first packet that waited for it.
    pub(super) fn forget(&self, flow: &Flow) -> Option<Box<[u8]>> {
        match self.flows.lock().expect(UNPOISONED).remove(flow) {
            Some(State::Waits(packets)) => packets.into_iter().next(),
            _ => None,
        }
    }

    /// A packet of a flow that the kernel of the far end does not know yet, or an error.
    fn hold(&self, flow: Flow, packet: &[u8]) -> io::Result<()> {
        let mut flows = self.flows.lock().expect(UNPOISONED);
        match flows.get_mut(&flow) {
            Some(State::Open) => {
                drop(flows);
                self.pass(packet)
            }
            Some(State::Waits(packets)) => {
                let bytes: usize = packets.iter().map(|packet| packet.len()).sum();
                // A SYN that comes again says nothing new.
                if !flow.is_tcp && bytes + packet.len() <= MOST_WAITING {
                    packets.push(packet.into());
                }
                Ok(())
            }
            None => {
                // Who asks for more than the gateway can do in time waits for another try.
                if self.errands.try_send(Errand::Open(flow)).is_ok() {
                    flows.insert(flow, State::Waits(vec![packet.into()]));
                }
                Ok(())
            }
        }
    }

    fn pass(&self, packet: &[u8]) -> io::Result<()> {
        (&self.device).write(packet).map(drop)
    }

    /// The rules do not allow it.
    fn deny(&self, packet: &[u8]) -> io::Result<()> {
        self.replies.unreachable(packet, Unreachable::Prohibited);
        Ok(())
    }
}

impl Output for Gate {
    fn put(&self, packet: &[u8]) -> io::Result<()> {
        if self.has_users && ip::source(packet).is_some_and(|from| Side::Clients.has(from)) {
            return self.pass(packet);
        }
        let (is_tcp, client, server) = match Opening::read(packet) {
            Some(Opening::Tcp(client, server)) => (true, client, server),
            Some(Opening::Udp(client, server)) => (false, client, server),
            Some(Opening::Echo(_, to)) if !is_own(to) => {
                let to = SocketAddrV4::new(to, 0);
                if self.reach.target(to).is_none() {
                    return self.deny(packet);
                }
                // Echo requests are lost where there are too many.
                let _ = self.errands.try_send(Errand::Echo(packet.into()));
                return Ok(());
            }
            _ => return self.pass(packet),
        };
        if self.reach.target(server).is_some() {
            let flow = Flow {
                is_tcp,
                client,
                server,
            };
            self.hold(flow, packet)
        } else if is_own(*server.ip()) {
            self.pass(packet)
        } else {
            self.deny(packet)
        }
    }
}

/// Whether the far end itself has an address.
fn is_own(ip: Ipv4Addr) -> bool {
    ip == FAR || ip == TEST
}

const UNPOISONED: &str = "nothing panics while it holds the lock";
