//! What a connection has of its own: windows and segments, and losses on its way.
//!
//! An end point takes its values from a stack profile, which its class shares. A connection with a
//! window or a segment size of its own gets a variant of the profile: what a receive window lets
//! the other end have in flight is that end's send buffer. Variants differ in whole segments, so
//! there are few.

use std::collections::HashMap;
use std::sync::Arc;

use aqmlab_net::{Bytes, RandomStream, Role};
use aqmlab_tcp::Profile;
use aqmlab_traffic::Limits;

use crate::world::Class;

/// Segment sizes outside this are taken for its ends.
const SEGMENTS: (u64, u64) = (64, 9000);

/// What a connection has of its own.
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

/// The profile of an end of a connection.
#[inline]
pub(crate) fn profile<'a>(
    classes: &'a [Class],
    class: u16,
    overrides: Option<&'a Overrides>,
    side: Role,
) -> &'a Profile {
    match overrides {
        None => &classes[usize::from(class)].profiles[side as usize],
        Some(overrides) => &overrides.profiles[side as usize],
    }
}

/// The variants of a class's profiles that its connections have needed, by end, segment size and
/// send buffer.
#[derive(Debug, Default)]
pub(crate) struct Variants(HashMap<(Role, u64, u64), Arc<Profile>>);

impl Variants {
    /// What connection number `flow` has of its own.
    pub(crate) fn overrides(
        &mut self,
        limits: &Limits,
        bases: &[Arc<Profile>; 2],
        seed: u64,
        flow: u64,
    ) -> Overrides {
        let profiles = [Role::Client, Role::Server].map(|side| {
            let base = &bases[side as usize];
            let mss = limits.segment.map_or(base.mss.0, |segment| {
                u64::from(segment).clamp(SEGMENTS.0, SEGMENTS.1)
            });
            // What one end receives limits what the other sends.
            let window = limits.windows[side.other() as usize];
            let window = window.map_or(base.send_buffer.0, u64::from);
            let segments = window.min(base.send_buffer.0) / mss;
            self.profile(side, mss, segments.max(1) * mss, base)
        });
        let losses = [Role::Client, Role::Server].map(|side| {
            let draws = RandomStream::new(seed, "vector-loss", flow << 1 | side as u64);
            (limits.loss[side as usize], draws)
        });
        Overrides { profiles, losses }
    }

    fn profile(&mut self, side: Role, mss: u64, send_buffer: u64, base: &Profile) -> Arc<Profile> {
        let variant = self.0.entry((side, mss, send_buffer));
        let profile = variant.or_insert_with(|| {
            Arc::new(Profile {
                mss: Bytes(mss),
                send_buffer: Bytes(send_buffer),
                ..base.clone()
            })
        });
        Arc::clone(profile)
    }
}
