//! A fingerprint of what reaches the ports, for the tests that hold all machinery to the same.

use aqmlab_net::{Packet, Time};

/// Hash of everything that reached the bottleneck, whatever the order in which it was computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) count: u64,
    sum: u64,
}

impl Fingerprint {
    pub(crate) fn add(&mut self, time: Time, port: usize, packet: &Packet, seq: u32) {
        let words = [
            time.as_nanos(),
            port as u64,
            u64::from(packet.size),
            packet.ecn as u64,
            packet.flow.0,
            u64::from(seq),
        ];
        let hash = words.iter().fold(0, |hash: u64, word| {
            let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        });
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash);
    }
}
