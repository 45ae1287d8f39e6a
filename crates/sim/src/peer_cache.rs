//! What hosts remember of the peers of their connections.

use std::collections::HashMap;

use aqmlab_net::Role;
use aqmlab_tcp::{self as tcp, Endpoint, PeerMetrics, Profile};

/// Entries by host, peer and role: a machine that browses on one side of a dumbbell has the number of one
/// that serves there.
#[derive(Debug, Default)]
pub(crate) struct PeerCache(HashMap<(usize, usize, Role), PeerMetrics>);

impl PeerCache {
    /// An end starts from what its host knows of the peer, if anything. `hosts` are those of client and
    /// server.
    #[cold]
    pub(crate) fn recall(
        &self,
        hosts: [usize; 2],
        role: Role,
        end: &mut Endpoint,
        profile: &Profile,
    ) {
        if let Some(known) = self.0.get(&key(hosts, role)) {
            end.start_from(known, profile);
        }
    }

    /// An end is closed: its host remembers what it has learnt.
    pub(crate) fn learn(
        &mut self,
        hosts: [usize; 2],
        role: Role,
        end: &Endpoint,
        profile: &Profile,
    ) {
        if profile.peer_cache != tcp::PeerCache::Off {
            let known = self.0.entry(key(hosts, role)).or_default();
            known.learn_from(end, profile);
        }
    }
}

fn key(hosts: [usize; 2], role: Role) -> (usize, usize, Role) {
    let [own, peer] = [role, role.other()].map(|role| hosts[role as usize]);
    (own, peer, role)
}
