//! What hosts remember of the peers of their connections.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use aqmlab_net::Role;
use aqmlab_tcp::{self as tcp, Endpoint, PeerMetrics, Profile};

/// Entries by host, peer and role: a machine that browses on one side of a dumbbell has the number of one
/// that serves there.
#[derive(Debug, Default)]
pub(crate) struct PeerCache(HashMap<u64, PeerMetrics, BuildHasherDefault<Mixed>>);

/// A hash of one number. It is for the run's own numbers, which nobody chooses so that they collide, and
/// takes a few instructions where the standard library's takes a hundred.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    /// Multiplicative: D. Knuth, The Art of Computer Programming, volume 3, 6.4. Its high bits are the good
    /// ones; tables take low ones, too.
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

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

/// Hosts are numbered from 0 on, and fit into half of it each.
fn key(hosts: [usize; 2], role: Role) -> u64 {
    let [own, peer] = [role, role.other()].map(|role| hosts[role as usize] as u64);
    own << 32 | peer << 1 | role as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn hosts_and_roles_have_keys_of_their_own_and_hashes_that_differ() {
        let pairs = (0..200).flat_map(|client| (0..200).map(move |server| [client, server]));
        let keys: HashSet<u64> = pairs
            .flat_map(|hosts| Role::BOTH.map(|role| key(hosts, role)))
            .collect();
        assert_eq!(keys.len(), 200 * 200 * 2);
        let hash = |key: &u64| {
            let mut hasher = Mixed::default();
            hasher.write_u64(*key);
            hasher.finish()
        };
        let low: HashSet<u64> = keys.iter().map(|key| hash(key) & 0xf_ffff).collect();
        // As many of a million places as 80,000 balls reach by chance, about 77,000.
        assert!(low.len() > 75_000, "{}", low.len());
    }
}
