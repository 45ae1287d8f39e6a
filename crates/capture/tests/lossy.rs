//! Random conversations over random networks: sizes and order come out exactly.

use crate::common;

use std::collections::BTreeSet;

use aqmlab_capture::Options;
use aqmlab_net::RandomStream;
use common::{ACK, FIN, Pair, Tap, spoken, vectors};
use proptest::prelude::*;

/// A path with a tap on it: what may happen to a packet, and when it passes.
struct Path {
    random: RandomStream,
    loss: f64,
    /// What the tap saw: time, then what it was.
    seen: Vec<(f64, common::Seg)>,
    now: f64,
    /// What has been lost before the tap.
    lost: BTreeSet<(usize, u64)>,
}

const MSS: u64 = 1460;

/// One way from an end to the tap or from the tap to an end, in milliseconds.
const HALF_WAY: f64 = 5.0;

impl Path {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.uniform() < probability
    }

    /// Sends a segment; returns whether it arrives. It may be lost before the tap or behind it,
    /// and be held up, so that others overtake it.
    ///
    /// Lost before the tap it is once only: nobody can tell two time-outs that leave no trace at
    /// the tap, more than the idle time together, from an application that is silent.
    fn send(&mut self, at: f64, segment: common::Seg) -> bool {
        let (side, _, seq, ..) = segment;
        if self.chance(self.loss) && self.lost.insert((side, seq)) {
            return false;
        }
        let delay = if self.chance(self.loss) { 3.0 } else { 0.0 };
        self.seen.push((at + HALF_WAY + delay, segment));
        !self.chance(self.loss)
    }

    /// Transfers `len` bytes from `seq` on, until all have arrived and been acknowledged: whatever
    /// has not arrived is sent again after a time-out.
    fn transfer(&mut self, side: usize, seq: u64, len: u64, ack: u64) {
        let mut missing: Vec<(u64, u64)> = (0..len)
            .step_by(MSS as usize)
            .map(|at| (seq + at, MSS.min(len - at)))
            .collect();
        let end = seq + len;
        let mut acked = seq;
        while acked < end {
            let from = self.now;
            for (index, (at, size)) in missing.clone().into_iter().enumerate() {
                let sent = from + 0.01 * index as f64;
                let arrived = self.send(sent, (side, ACK, at, ack, size as u32));
                if arrived {
                    missing.retain(|&(other, _)| other != at);
                }
                // Every arrival is acknowledged, as far as there is no hole.
                let next = missing.first().map_or(end, |&(first, _)| first);
                let back = sent + 2.0 * HALF_WAY + 4.0;
                if arrived && self.send(back, (1 - side, ACK, ack, next, 0)) {
                    acked = acked.max(next);
                }
                self.now = sent;
            }
            if missing.is_empty() && acked < end {
                // The last acknowledgement was lost: the last segment is sent once more.
                let size = (len - 1) % MSS + 1;
                missing.push((end - size, size));
            }
            self.now += 300.0;
        }
    }
}

/// What is made of a conversation of (side, bytes).
fn through(conversation: &[(usize, u64)], loss: f64, seed: u64) -> Vec<(char, u64)> {
    let mut path = Path {
        random: RandomStream::new(seed, "path", 0),
        loss,
        seen: Vec::new(),
        now: 100.0,
        lost: BTreeSet::new(),
    };
    let mut sent = [0, 0];
    for (index, &(side, bytes)) in conversation.iter().enumerate() {
        let again = index > 0 && conversation[index - 1].0 == side;
        path.now += if again { 2000.0 } else { 50.0 };
        path.transfer(side, sent[side], bytes, sent[1 - side]);
        sent[side] += bytes;
    }
    let Path { mut seen, now, .. } = path;
    let pair = Pair {
        isn: [seed as u32, u32::MAX - 3000],
        ..Pair::new(4000)
    };
    let closing = now + 1000.0;
    seen.push((closing, (1, ACK | FIN, sent[1], sent[0], 0)));
    seen.push((closing + 10.0, (0, ACK | FIN, sent[0], sent[1] + 1, 0)));
    seen.push((closing + 20.0, (1, ACK, sent[1] + 1, sent[0] + 1, 0)));
    seen.sort_by(|one, two| one.0.total_cmp(&two.0));
    let mut tap = Tap::new();
    tap.handshake(0.0, &pair);
    for (at, segment) in seen {
        tap.at(at, &pair, segment);
    }
    let (found, _) = vectors(&tap.bytes(), Options::default());
    let [vector] = &found[..] else {
        panic!("{found:?}");
    };
    spoken(vector)
        .into_iter()
        .map(|(party, bytes, _)| (party, bytes))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sizes_and_order_survive_loss_and_reordering(
        conversation in proptest::collection::vec((0_usize..2, 1_u64..40_000), 1..8),
        loss in prop_oneof![Just(0.0), Just(0.03), Just(0.2)],
        seed: u32,
    ) {
        let expected: Vec<_> = conversation
            .iter()
            .map(|&(side, bytes)| (['I', 'A'][side], bytes))
            .collect();
        prop_assert_eq!(through(&conversation, loss, seed.into()), expected);
    }
}
