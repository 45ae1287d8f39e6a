//! The sender that counts duplicate ACKs or keeps a scoreboard: Tahoe, Reno, NewReno, SACK (RFC 5681, RFC
//! 6582, RFC 6675).

mod ack;
mod fast_path;
mod output;
mod recovery;
mod reduction;

use aqmlab_net::{RandomStream, Time};

use super::prr::Prr;
use super::scoreboard::Scoreboard;
use super::space::{Counts, Space};
use crate::context::Context;
use crate::profile::EcnReaction;

/// What such a sender has beside its [`Space`], which every step gets as well.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassicSender {
    /// Bytes by which fast recovery has inflated the window; partial ACKs deflate it again.
    inflation: i64,
    repairs: Option<Box<Repairs>>,
    dup_acks: u32,
    /// Limited transmit has sent something since the first duplicate ACK.
    limited: bool,
    /// The last loss was found by the timer.
    timed_out: bool,
    /// A partial ACK has arrived in this recovery.
    partial: bool,
}

/// What connections without losses and random delays never need.
#[derive(Clone, Debug, Default)]
struct Repairs {
    counts: Counts,
    board: Scoreboard,
    prr: Prr,
    /// `una` at the last time-out: a further one with the same value repeats it.
    timed_out_at: u64,
    /// Draws of the random delay before a segment.
    draws: Option<RandomStream>,
}

impl ClassicSender {
    fn repairs_mut(&mut self) -> &mut Repairs {
        self.repairs.get_or_insert_default()
    }

    pub(super) fn counts(&self) -> Counts {
        let repairs = self.repairs.as_ref();
        repairs.map_or_else(Counts::default, |repairs| repairs.counts)
    }

    /// The congestion window in bytes, with what fast recovery has added.
    pub(super) fn cwnd(&self, space: &Space) -> u64 {
        (space.control.window() as i64 + self.inflation).max(0) as u64
    }

    /// Seeds the draws of the random delay before segments.
    pub(super) fn seed(&mut self, seed: u64) {
        self.repairs_mut().draws = Some(RandomStream::new(seed, "send-overhead", 0));
    }

    /// The timer has expired; false: once too often for the same data.
    pub(super) fn on_timer(&mut self, space: &mut Space, cx: &Context<'_>) -> bool {
        space.ecn.release();
        if space.una < space.max {
            if !space.on_expiry(cx) {
                return false;
            }
            self.repairs_mut().counts.retransmissions.timeouts += 1;
            space.arm(cx);
            self.go_back(space, cx);
            return true;
        }
        space.retransmit_at = Time::NEVER; // It ran for an echo at a window of one segment.
        if cx.profile.ecn_reaction == EcnReaction::Fractional {
            let initial = u64::from(cx.profile.initial_window) * cx.profile.mss.0;
            space.control.set_window(initial);
        }
        true
    }
}
