//! Proportional rate reduction: RFC 9937 (M. Mathis, N. Cardwell, Y. Cheng, N. Dukkipati, 2025), which
//! took the place of RFC 6937.
//!
//! RFC 6675 sends nothing until as much has arrived as the window has lost. Here what is sent keeps
//! to a share of what arrives, so that the window is down to ssthresh when the round trip is over;
//! and where losses have taken more than that, what arrives is replaced, and a segment more for each
//! ACK that shows progress.
//!
//! Whole segments are sent, so that the RFC's bytes are rounded up to them. Only with SACK.

/// The state of a recovery, in bytes; the names are the RFC's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: in flight when the recovery began; 0: no ACK has been counted yet.
    pub(crate) recover_fs: u64,
    /// prr_delivered: delivered since then.
    pub(crate) delivered: u64,
    /// prr_out: sent since then.
    pub(crate) out: u64,
}

impl Prr {
    /// A recovery begins with `recover_fs` bytes in flight.
    pub(crate) fn begin(recover_fs: u64) -> Self {
        Self {
            recover_fs,
            ..Self::default()
        }
    }

    /// An ACK delivers `news` bytes and leaves `in_flight` on the way: what may be sent. The fast
    /// retransmit always may.
    pub(crate) fn on_delivered(
        &mut self,
        news: u64,
        in_flight: u64,
        ssthresh: u64,
        safe: bool,
        mss: u64,
    ) -> u64 {
        self.delivered += news;
        let allowed = self.allowance(news, in_flight, ssthresh, safe, mss);
        if self.out == 0 {
            allowed.max(mss)
        } else {
            allowed
        }
    }

    /// SndCnt: what an ACK that delivered `news` bytes allows to be sent, with `in_flight` on the way.
    pub(crate) fn allowance(
        &self,
        news: u64,
        in_flight: u64,
        ssthresh: u64,
        safe: bool,
        mss: u64,
    ) -> u64 {
        if in_flight > ssthresh {
            let target = (self.delivered * ssthresh).div_ceil(self.recover_fs * mss) * mss;
            return target.saturating_sub(self.out);
        }
        let most = self.delivered.saturating_sub(self.out).max(news) + if safe { mss } else { 0 };
        most.min(ssthresh - in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments that an ACK of one segment allows, with 20 in flight at the start of the recovery
    /// and an ssthresh of 10.
    fn allowed(delivered: u64, out: u64, in_flight: u64, safe: bool) -> u64 {
        let prr = Prr {
            recover_fs: 20,
            delivered,
            out,
        };
        prr.allowance(1, in_flight, 10, safe, 1)
    }

    #[test]
    fn above_the_threshold_one_goes_for_two_that_arrive() {
        let mut out = 0;
        let sent = (1..=10).map(|delivered| {
            let now = allowed(delivered, out, 19, false);
            out += now;
            now
        });
        assert_eq!(sent.collect::<Vec<_>>(), [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn below_it_what_arrives_is_replaced_and_progress_adds_a_segment() {
        assert_eq!(allowed(5, 5, 4, false), 1, "as much as has arrived");
        assert_eq!(allowed(5, 5, 4, true), 2, "slow start while all goes well");
        assert_eq!(allowed(5, 2, 4, false), 3, "what was not sent is not lost");
        assert_eq!(allowed(5, 2, 9, true), 1, "never beyond the threshold");
        assert_eq!(allowed(5, 2, 10, true), 0);
    }

    #[test]
    fn shares_are_rounded_up_to_whole_segments() {
        let prr = Prr {
            recover_fs: 20_000,
            delivered: 1,
            out: 0,
        };
        assert_eq!(prr.allowance(1, 19_000, 10_000, false, 1000), 1000);
    }
}
