//! What disciplines may ask of a packet.

use aqmlab_aqm::{Ack, Details, Known};
use aqmlab_tcp::Flags;

use crate::event::Event;
use crate::options::OptionsAside;
use crate::route::Routes;

/// What a discipline may ask of a packet beside what it sees of every one.
pub(crate) struct Asked<'a> {
    pub(crate) routes: &'a Routes,
    pub(crate) event: &'a Event,
    pub(crate) options: &'a OptionsAside,
    /// Hosts of the servers' side, and of both.
    pub(crate) hosts: [u32; 2],
}

impl Asked<'_> {
    /// The client host of a node.
    fn client_of(&self, node: u32) -> Option<u32> {
        let [servers, hosts] = self.hosts;
        (node % hosts).checked_sub(servers)
    }
}

impl Known for Asked<'_> {
    fn details(&self) -> Details {
        let sender = self.event.sender();
        let nodes = [sender, sender.other()].map(|end| self.routes.of(end).node);
        let flags = self.event.flags();
        let ecn = Flags::ACE;
        let acknowledges = flags.has(Flags::ACK) && !flags.has(Flags::SYN);
        Details {
            hosts: nodes.map(u64::from),
            client: self.client(),
            ack: acknowledges.then(|| Ack {
                number: self.event.ack,
                is_pure: self.event.len == 0 && flags.0 & !ecn.0 == Flags::ACK.0,
                ecn: flags.0 & ecn.0,
                sack: self
                    .options
                    .peek(self.event.options)
                    .sack_blocks()
                    .collect(),
            }),
        }
    }

    #[inline]
    fn client(&self) -> Option<u32> {
        let sender = self.event.sender();
        let client = |end| self.client_of(self.routes.of(end).node);
        client(sender).or_else(|| client(sender.other()))
    }
}
