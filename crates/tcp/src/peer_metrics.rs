//! What a host remembers of a peer from one connection to the next: BSD keeps smoothed round trip,
//! deviation and ssthresh with the route to the peer.
//!
//! FreeBSD 2.2 to 4.5: `tcp_close` writes them, `tcp_mss` reads them, `in_rmx.c` makes a route for every
//! peer. Routes expire only after an hour without use, or when there are very many: not modelled.

use aqmlab_net::Time;

use crate::endpoint::{Endpoint, Phase};
use crate::profile::{PeerCache, Profile};
use crate::segment::{Flags, Segment};

/// A connection with fewer round-trip samples leaves nothing: a filter of gain 1/8 is within a few per
/// cent of a constant after so many.
const LEAST_SAMPLES: u8 = 16;

/// `sizeof(struct tcpiphdr)`: ssthresh is remembered in bytes of packets, and read as bytes of data.
const HEADERS: u64 = 40;

/// What is known of a peer; zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerMetrics {
    /// Smoothed round trip, and its deviation.
    estimates: [Time; 2],
    /// Slow-start threshold in bytes.
    ssthresh: u64,
}

impl PeerMetrics {
    /// A connection to the peer is over: what it has learnt counts half, what was known the other.
    pub fn learn_from(&mut self, closed: &Endpoint, profile: &Profile) {
        let rto = closed.sender().space().rto();
        if rto.samples() < LEAST_SAMPLES {
            return;
        }
        let learnt = rto.estimates(profile);
        for (known, learnt) in self.estimates.iter_mut().zip(learnt) {
            *known = match learnt {
                Time::ZERO => learnt,
                _ => Time::from_nanos(averaged(known.as_nanos(), learnt.as_nanos())),
            };
        }
        let ssthresh = closed.ssthresh();
        // Bad news comes first; then good ones count too.
        if self.ssthresh > 0 || ssthresh < profile.send_buffer.0 / 2 {
            let mss = profile.mss.0;
            let segments = ((ssthresh + mss / 2) / mss).max(2);
            self.ssthresh = averaged(self.ssthresh, segments * (mss + HEADERS));
        }
    }
}

/// The mean of what is known and what is new; the latter where nothing is known.
const fn averaged(known: u64, new: u64) -> u64 {
    match known {
        0 => new,
        _ => (known + new) / 2,
    }
}

impl Endpoint {
    /// Whether a stack with a peer cache looks the peer up when this segment arrives: then
    /// [`start_from`](Self::start_from) comes before [`on_segment`](Self::on_segment).
    pub fn looks_up_peer(&self, segment: &Segment, profile: &Profile) -> bool {
        let is_syn = segment.flags.has(Flags::SYN);
        match (profile.peer_cache, self.phase()) {
            (PeerCache::Off, _) => false,
            (_, Phase::SynSent) | (PeerCache::AtSyn, Phase::Listen) => is_syn,
            (PeerCache::WhenComplete, Phase::SynReceived) => !is_syn,
            _ => false,
        }
    }

    /// Starts from what is known of the peer. The window does not change.
    pub fn start_from(&mut self, known: &PeerMetrics, profile: &Profile) {
        let space = self.sender_mut().space_mut();
        space.rto_mut().recall(profile, known.estimates);
        if known.ssthresh > 0 {
            space
                .control_mut()
                .set_ssthresh(known.ssthresh.max(2 * profile.mss.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::rto::HostClock;

    const MS: fn(u64) -> Time = Time::from_millis;

    /// FreeBSD 2.2.8 with its cache: ticks of 500 ms, segments of 1,440 bytes, a buffer of 17,280.
    fn freebsd(peer_cache: PeerCache) -> Profile {
        let named = Profile::named("freebsd-2.2.8").expect("a shipped profile");
        Profile {
            peer_cache,
            ..named
        }
    }

    /// An end that has seen so many round trips of two ticks, with this ssthresh.
    fn closed(profile: &Profile, samples: u64, ssthresh: u64) -> Endpoint {
        let mut end = Endpoint::listen(profile);
        for sent in 0..samples {
            let (sent, host) = (MS(1000 * sent), HostClock::default());
            end.sender_mut()
                .space_mut()
                .rto_mut()
                .sample(profile, &host, sent, sent + MS(1000));
        }
        end.sender_mut()
            .space_mut()
            .control_mut()
            .set_ssthresh(ssthresh);
        end
    }

    #[test]
    fn sixteen_round_trips_are_worth_remembering() {
        let profile = freebsd(PeerCache::AtSyn);
        let mut known = PeerMetrics::default();
        known.learn_from(&closed(&profile, 15, 4000), &profile);
        assert_eq!(known, PeerMetrics::default());
        // Three ticks each, one too many: srtt goes from 96 by 4, 3, 3, 2, ... to 71 of 1/32 tick,
        // the deviation from 24 to 6 of 1/16 tick.
        known.learn_from(&closed(&profile, 16, 1 << 20), &profile);
        let estimates = [
            Time::from_nanos(1_109_375_000),
            Time::from_nanos(187_500_000),
        ];
        assert_eq!(
            known,
            PeerMetrics {
                estimates,
                ssthresh: 0
            }
        );
    }

    #[test]
    fn what_is_known_and_what_is_new_count_half_each() {
        let profile = freebsd(PeerCache::AtSyn);
        let mut known = PeerMetrics {
            estimates: [MS(500); 2],
            ssthresh: 0,
        };
        // 5,000 bytes are three and a half segments, and less than half of the buffer.
        known.learn_from(&closed(&profile, 16, 5000), &profile);
        let estimates = [Time::from_nanos(804_687_500), Time::from_nanos(343_750_000)];
        let ssthresh = 3 * (1440 + 40);
        assert_eq!(
            known,
            PeerMetrics {
                estimates,
                ssthresh
            }
        );
        // From then on every ssthresh counts: 1 MiB are 728 segments.
        known.learn_from(&closed(&profile, 16, 1 << 20), &profile);
        assert_eq!(known.ssthresh, (4440 + 728 * 1480) / 2);
        let mut known = PeerMetrics::default();
        known.learn_from(&closed(&profile, 16, 8640), &profile);
        assert_eq!(known.ssthresh, 0);
        known.learn_from(&closed(&profile, 16, 1000), &profile);
        assert_eq!(known.ssthresh, 2 * 1480);
    }

    #[test]
    fn a_connection_starts_with_four_round_trips_and_eight_deviations() {
        let profile = freebsd(PeerCache::AtSyn);
        let known = PeerMetrics {
            estimates: [MS(1000), MS(500)],
            ssthresh: 4440,
        };
        let mut end = Endpoint::listen(&profile);
        end.start_from(&known, &profile);
        assert_eq!(end.sender().space().rto().timeout(&profile), MS(8000));
        assert_eq!((end.ssthresh(), end.cwnd()), (4440, 1440));
        // Own samples join what is known, and are not replaced by it: srtt 64 - 4, deviation
        // 16 + 4 - 4, (60 / 8 + 16) / 4 = 5 ticks.
        let host = HostClock::default();
        end.sender_mut()
            .space_mut()
            .rto_mut()
            .sample(&profile, &host, MS(0), MS(500));
        assert_eq!(end.sender().space().rto().timeout(&profile), MS(2500));
        end.start_from(&known, &profile);
        assert_eq!(end.sender().space().rto().timeout(&profile), MS(2500));
        // Short round trips leave the least time-out, a small threshold two segments.
        let known = PeerMetrics {
            estimates: [MS(100), MS(50)],
            ssthresh: 2000,
        };
        let mut end = Endpoint::listen(&profile);
        end.start_from(&known, &profile);
        assert_eq!(end.sender().space().rto().timeout(&profile), MS(1000));
        assert_eq!(end.ssthresh(), 2880);
    }

    #[test]
    fn stacks_look_their_peers_up_at_their_time() {
        for (peer_cache, expected) in [
            (PeerCache::Off, [false, false, false, false]),
            (PeerCache::AtSyn, [true, true, false, false]),
            (PeerCache::WhenComplete, [false, true, true, false]),
        ] {
            let profile = freebsd(peer_cache);
            let (host, mut out) = (HostClock::default(), Vec::new());
            let cx = Context {
                now: Time::ZERO,
                profile: &profile,
                host: &host,
            };
            let mut client = Endpoint::connect(cx, &mut out);
            let mut server = Endpoint::listen(&profile);
            let mut seen = Vec::new();
            // SYN, SYN-ACK, ACK, data.
            for step in 0..4 {
                if step == 3 {
                    client.write(100, cx, &mut out);
                }
                let segment = out.pop().expect("a segment at every step");
                let end = if step == 1 { &mut client } else { &mut server };
                seen.push(end.looks_up_peer(&segment, &profile));
                end.on_segment(&segment, cx, &mut out);
            }
            assert_eq!(seen, expected, "{peer_cache:?}");
        }
    }
}
