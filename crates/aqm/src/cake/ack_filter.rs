//! Which of a flow's waiting ACKs a new one makes superfluous.

use aqmlab_declare::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Ack;

/// Whether CAKE drops waiting ACKs that a later packet of the same flow makes redundant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckFilter {
    /// CAKE keeps every ACK.
    #[default]
    Off,
    /// If two redundant ACKs of a flow wait, CAKE drops the older one.
    On,
    /// CAKE also drops a single redundant ACK if it waits directly before the packet that makes it
    /// redundant.
    Aggressive,
}

/// The place of an ACK that may go, in front of a segment that has just joined the queue. `waiting`
/// are the packets of its flow, or of others that share the queue, from the head on, without the
/// newcomer: whether each is of its flow, and what it acknowledges.
pub(super) fn superfluous<'a, P: Copy>(
    filter: AckFilter,
    newcomer: &Ack,
    waiting: impl Iterator<Item = (P, bool, Option<&'a Ack>)>,
) -> Option<P> {
    let mut candidate: Option<(P, u8)> = None;
    let mut is_last = false;
    for (place, same_flow, ack) in waiting {
        is_last = false;
        let Some(ack) = ack.filter(|ack| same_flow && is_covered(ack, newcomer)) else {
            continue;
        };
        match candidate {
            // The second with the same feedback: the first may go.
            Some((first, ecn)) if ecn == ack.ecn => return Some(first),
            // What ECN says has changed: the earlier one is news.
            _ => candidate = Some((place, ack.ecn)),
        }
        is_last = true;
    }
    let aggressive = filter == AckFilter::Aggressive && is_last;
    candidate
        .filter(|(_, ecn)| aggressive && *ecn == newcomer.ecn)
        .map(|(place, _)| place)
}

/// Whether a pure ACK says nothing that a later one does not. One that says the same is a duplicate
/// ACK, which counts. One with a D-SACK block is the only one that reports the duplicate (RFC 2883,
/// section 4).
fn is_covered(ack: &Ack, newcomer: &Ack) -> bool {
    let ahead = newcomer.number.wrapping_sub(ack.number) as i32;
    let covers = |&(from, to): &(u32, u32)| {
        let inside = |&(left, right): &(u32, u32)| {
            from.wrapping_sub(left) as i32 >= 0 && right.wrapping_sub(to) as i32 >= 0
        };
        // What the cumulative number covers need not be reported again.
        newcomer.number.wrapping_sub(to) as i32 >= 0 || newcomer.sack.iter().any(inside)
    };
    let is_duplicate = ahead == 0 && ack.sack == newcomer.sack;
    ack.is_pure && ahead >= 0 && !is_duplicate && !has_dsack(ack) && ack.sack.iter().all(covers)
}

/// Whether a block reports a duplicate: it begins below the ACK's own number (RFC 2883, section 4).
fn has_dsack(ack: &Ack) -> bool {
    let mut starts = ack.sack.iter().map(|(from, _)| from);
    starts.any(|from| (from.wrapping_sub(ack.number) as i32) < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32, ecn: u8, sack: &[(u32, u32)]) -> Ack {
        Ack {
            number,
            is_pure: true,
            ecn,
            sack: sack.to_vec(),
        }
    }

    /// What remains of segments that come one after another.
    fn remain(filter: AckFilter, segments: &[Ack]) -> Vec<usize> {
        let mut queue: Vec<usize> = Vec::new();
        for (number, newcomer) in segments.iter().enumerate() {
            let waiting = queue
                .iter()
                .map(|&place| (place, true, Some(&segments[place])));
            let gone = superfluous(filter, newcomer, waiting);
            queue.retain(|place| Some(*place) != gone);
            queue.push(number);
        }
        queue
    }

    #[test]
    fn ck11_of_cumulative_acks_one_or_two_remain() {
        let acks: Vec<_> = (1..=6).map(|number| ack(1000 * number, 0, &[])).collect();
        assert_eq!(remain(AckFilter::On, &acks), [4, 5]);
        assert_eq!(remain(AckFilter::Aggressive, &acks), [5]);
    }

    #[test]
    fn ck11_duplicates_data_and_news_stay() {
        let same = [ack(1000, 0, &[]), ack(1000, 0, &[]), ack(1000, 0, &[])];
        assert_eq!(remain(AckFilter::Aggressive, &same).len(), 3);
        // Each reports more than the one before: those with less may go.
        let growing = [
            ack(1000, 0, &[(2000, 3000)]),
            ack(1000, 0, &[(2000, 4000)]),
            ack(1000, 0, &[(2000, 5000)]),
        ];
        assert_eq!(remain(AckFilter::On, &growing), [1, 2]);
        // The second does not report what the first does.
        let apart = [ack(1000, 0, &[(2000, 3000)]), ack(1000, 0, &[(5000, 6000)])];
        assert_eq!(remain(AckFilter::Aggressive, &apart), [0, 1]);
        let mut data = [ack(1000, 0, &[]), ack(2000, 0, &[]), ack(3000, 0, &[])];
        data[0].is_pure = false;
        data[1].is_pure = false;
        assert_eq!(remain(AckFilter::Aggressive, &data), [0, 1, 2]);
        // Data may make ACKs superfluous.
        let mut trigger = [ack(1000, 0, &[]), ack(2000, 0, &[])];
        trigger[1].is_pure = false;
        assert_eq!(remain(AckFilter::Aggressive, &trigger), [1]);
        // Numbers wrap.
        let wrap = [ack(u32::MAX - 10, 0, &[]), ack(20, 0, &[])];
        assert_eq!(remain(AckFilter::Aggressive, &wrap), [1]);
        let back = [ack(20, 0, &[]), ack(u32::MAX - 10, 0, &[])];
        assert_eq!(remain(AckFilter::Aggressive, &back), [0, 1]);
    }

    #[test]
    fn an_ack_that_reports_a_duplicate_stays() {
        for filter in [AckFilter::On, AckFilter::Aggressive] {
            let left = |block| {
                let acks = [1, 2, 3, 4].map(|n| ack(10_000 * n, 0, &[]));
                let mut acks = acks.to_vec();
                acks[1].sack = vec![block];
                remain(filter, &acks).contains(&1)
            };
            assert!(left((15_000, 16_448)), "below its own number");
            assert!(left((19_999, 20_100)), "it begins below");
            assert!(!left((20_000, 21_448)), "news that the next covers");
        }
        // Numbers wrap.
        let wrap = [
            ack(20, 0, &[(u32::MAX - 90, u32::MAX - 50)]),
            ack(40, 0, &[]),
        ];
        assert_eq!(remain(AckFilter::Aggressive, &wrap), [0, 1]);
    }

    /// ACE steps from 5 to 6 to 7: the last ACK with each value of the counter comes through.
    #[test]
    fn ck12_every_value_of_an_accurate_ecn_counter_comes_through() {
        for filter in [AckFilter::On, AckFilter::Aggressive] {
            let ace = [5, 5, 5, 6, 6, 6, 7, 7, 7, 7];
            let numbered = ace.iter().zip(1..);
            let acks: Vec<_> = numbered.map(|(&ecn, n)| ack(1000 * n, ecn, &[])).collect();
            let left = remain(filter, &acks);
            let mut seen: Vec<_> = left.iter().map(|&place| ace[place]).collect();
            seen.dedup();
            assert_eq!(seen, [5, 6, 7], "{left:?}");
            assert!(left.len() < ace.len());
        }
    }

    #[test]
    fn other_flows_in_the_queue_are_left_alone() {
        let [one, other, newcomer] = [ack(10, 0, &[]), ack(20, 0, &[]), ack(30, 0, &[])];
        let waiting = [
            (0, false, Some(&one)),
            (1, true, Some(&other)),
            (2, false, None),
        ];
        let found = |filter| superfluous(filter, &newcomer, waiting.into_iter());
        assert_eq!(found(AckFilter::On), None);
        // Not at once in front of the newcomer.
        assert_eq!(found(AckFilter::Aggressive), None);
    }
}
