//! What single parts of the engine cost, each by itself: `make bench-micro`. `make bench` measures
//! whole runs. A crate of their own, so that tests do not build what only benchmarks need.

use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};

/// Bytes of each packet.
pub const SIZE: u32 = 1500;
/// Offered load, as a fraction of the rate of the link.
const LOAD: f64 = 1.05;

/// Packets of `flows` flows, each with the time since the one before it. The times between them are
/// exponential; `transmission`: how long the link sends a packet.
pub fn arrivals(transmission: Time, flows: usize, ecn: Ecn) -> Vec<(Time, Packet)> {
    let mean_gap = transmission.as_secs_f64() / LOAD;
    let mut draws = RandomStream::new(1, "arrivals", 0);
    let mut arrival = || {
        let gap = Time::from_secs_f64(draws.exponential(mean_gap));
        let packet = Packet {
            size: SIZE,
            ecn,
            dscp: 0,
            flow: FlowKey(draws.below(flows) as u64),
        };
        (gap, packet)
    };
    (0..1 << 16).map(|_| arrival()).collect()
}
