//! Arrivals that bring every discipline to its limits and leave the link idle in between.

use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};

/// A packet, and when it reaches the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) packet: Packet,
}

const FLOWS: usize = 12;

/// No arrival comes later.
const END: f64 = 1.6;

/// The transmission of 50 bytes at 10 Mbit/s. All sizes are multiples of them, so that many
/// arrivals, departures, ticks and samples fall on the same nanosecond.
const GRID: f64 = 40e-6;

/// Packets in order of time: half a second with more than a 10 Mbit/s link carries, then a lull,
/// over and over. Some come in bursts, in one moment. Every second flow understands marks.
pub(crate) fn arrivals() -> Vec<Arrival> {
    let mut draws = RandomStream::new(4, "arrivals", 0);
    let mut arrivals = Vec::new();
    let mut time = 0.0;
    while time < END {
        let load = if time % 0.8 < 0.5 { 1.7 } else { 0.25 };
        let at = match draws.below(2) {
            0 => (time / GRID).round() * GRID,
            _ => time,
        };
        let burst = if draws.below(10) == 0 {
            1 + draws.below(12)
        } else {
            1
        };
        let mut bytes = 0;
        for _ in 0..burst {
            let flow = match draws.below(3) {
                // One flow sends a third of all packets.
                0 => 0,
                _ => draws.below(FLOWS),
            };
            let size = [50, 550, 1000, 1500][draws.below(4)];
            bytes += size;
            arrivals.push(Arrival {
                at: Time::from_secs_f64(at),
                packet: Packet {
                    size,
                    ecn: if flow % 2 == 0 {
                        Ecn::Ect0
                    } else {
                        Ecn::NotEct
                    },
                    dscp: [0, 10, 12][flow % 3],
                    flow: FlowKey(flow as u64),
                },
            });
        }
        time += draws.exponential(f64::from(bytes) * 8.0 / 10e6 / load);
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}
