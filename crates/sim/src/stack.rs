//! The stacks of a class: what its end points take their constants from.
//!
//! A connection with a window or a segment size of its own gets a variant of a profile: what a
//! receive window lets the other end have in flight is that end's send buffer. Variants differ in
//! whole segments, so there are few.

use std::collections::HashMap;
use std::sync::Arc;

use aqmlab_net::{Bytes, RandomStream, Role};
use aqmlab_scenario::Stacks;
use aqmlab_tcp::{CongestionControlKind, PeerCache, Profile};
use aqmlab_traffic::Limits;

/// Segment sizes outside this are taken for its ends.
const SEGMENTS: (u64, u64) = (64, 9000);

/// What a connection has instead of what its class has: profiles of its own, and losses on its way.
#[derive(Debug)]
pub(crate) struct Overrides {
    profiles: [Arc<Profile>; 2],
    /// Probability that a packet of client or server is lost, and the draws that decide.
    losses: [(f64, RandomStream); 2],
}

impl Overrides {
    /// Whether a packet of `sender` is lost on its way.
    pub(crate) fn loses(&mut self, sender: Role) -> bool {
        let (probability, draws) = &mut self.losses[sender as usize];
        *probability > 0.0 && draws.uniform() < *probability
    }
}

/// The profiles of a class, and the variants of them that its connections have needed.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Of clients and servers, which share one where they are the same.
    profiles: [Arc<Profile>; 2],
    /// By role, segment size and send buffer.
    variants: HashMap<(Role, u64, u64), Arc<Profile>>,
    /// Most bytes that an application writes at a time.
    write_size: u64,
}

impl Stack {
    pub(crate) fn new(stacks: &Stacks, write_size: Option<Bytes>) -> Self {
        let profiles = match stacks.same() {
            Some(stack) => {
                let stack = Arc::new(stack.clone());
                [Arc::clone(&stack), stack]
            }
            None => stacks.connected().map(Arc::new),
        };
        Self {
            profiles,
            variants: HashMap::new(),
            write_size: write_size.map_or(u64::MAX, |size| size.0),
        }
    }

    /// Most bytes that an application writes at a time.
    pub(crate) const fn write_size(&self) -> u64 {
        self.write_size
    }

    /// The profiles of clients and servers.
    pub(crate) const fn profiles(&self) -> &[Arc<Profile>; 2] {
        &self.profiles
    }

    /// The congestion controls have other parameters; connections with overrides still have the old
    /// ones, until they are [renewed](Self::renew).
    pub(crate) fn set_controls(&mut self, controls: [CongestionControlKind; 2]) {
        let [client, server] = &mut self.profiles;
        let is_one = Arc::ptr_eq(client, server);
        for (profile, control) in [&mut *client, &mut *server].into_iter().zip(controls) {
            Arc::make_mut(profile).congestion_control = control;
        }
        if is_one {
            *server = Arc::clone(client);
        }
        for ((role, ..), variant) in &mut self.variants {
            Arc::make_mut(variant).congestion_control = controls[*role as usize];
        }
    }

    /// A connection with overrides gets the variants that are in force.
    pub(crate) fn renew(&self, overrides: &mut Overrides) {
        for role in Role::BOTH {
            let profile = &mut overrides.profiles[role as usize];
            let key = (role, profile.mss.0, profile.send_buffer.0);
            if let Some(variant) = self.variants.get(&key) {
                *profile = Arc::clone(variant);
            }
        }
    }

    /// Whether a connection learns from those before it.
    pub(crate) fn remembers_peers(&self) -> bool {
        let caches = |profile: &Arc<Profile>| profile.peer_cache != PeerCache::Off;
        self.profiles.iter().any(caches)
    }

    /// The profile of an end of a connection.
    #[inline(always)]
    pub(crate) fn profile<'a>(
        &'a self,
        overrides: Option<&'a Overrides>,
        role: Role,
    ) -> &'a Profile {
        match overrides {
            None => &self.profiles[role as usize],
            Some(overrides) => &overrides.profiles[role as usize],
        }
    }

    /// What connection number `flow` has of its own.
    pub(crate) fn overrides(&mut self, limits: &Limits, seed: u64, flow: u64) -> Overrides {
        Overrides {
            profiles: Role::BOTH.map(|role| {
                // What one end receives limits what the other sends.
                let window = limits.windows[role.other() as usize];
                self.variant(role, limits.segment, window)
            }),
            losses: Role::BOTH.map(|role| {
                let draws = RandomStream::new(seed, "vector-loss", flow << 1 | role as u64);
                (limits.loss[role as usize], draws)
            }),
        }
    }

    fn variant(&mut self, role: Role, segment: Option<u32>, window: Option<u32>) -> Arc<Profile> {
        let base = &self.profiles[role as usize];
        let mss = segment.map_or(base.mss.0, |segment| {
            u64::from(segment).clamp(SEGMENTS.0, SEGMENTS.1)
        });
        let window = window.map_or(base.send_buffer.0, u64::from);
        let segments = (window.min(base.send_buffer.0) / mss).max(1);
        let send_buffer = segments * mss;
        let variant = self.variants.entry((role, mss, send_buffer));
        let profile = variant.or_insert_with(|| {
            Arc::new(Profile {
                mss: Bytes(mss),
                send_buffer: Bytes(send_buffer),
                ..Profile::clone(base)
            })
        });
        Arc::clone(profile)
    }
}
