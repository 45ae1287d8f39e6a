//! What an end point waits for: which timers run, and what keeps its sender from sending more.

use aqmlab_net::Time;

use super::{Endpoint, Phase};
use crate::context::Context;
use crate::profile::Profile;
use crate::recovery::RecoveryState;

/// When each timer of an end point expires; [`Time::NEVER`]: it does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Retransmission, of a SYN or of data.
    pub retransmission: Time,
    /// The tail loss probe (RFC 8985, section 7).
    pub probe: Time,
    /// RACK's reordering timer (RFC 8985, section 6.3).
    pub reordering: Time,
    /// The next segment may leave: pacing, or a random delay before segments.
    pub hold: Time,
    /// The delayed ACK.
    pub delayed_ack: Time,
    /// The oldest sequence number not acknowledged.
    pub una: u64,
    /// Whether something is out.
    pub outstanding: bool,
}

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// It repairs losses.
    Recovery,
    /// The peer's receive buffer, or its own send buffer.
    Buffer,
    /// Its congestion window, in slow start.
    SlowStart,
    /// Its congestion window, in congestion avoidance.
    CongestionAvoidance,
}

impl Endpoint {
    /// Its timers.
    pub fn timers(&self) -> Timers {
        let space = self.sender.space();
        let [retransmission, reordering, probe] = self.sender.timers();
        let hold = match self.phase {
            // Else it is the patience of the handshake.
            Phase::Established => space.hold_until(),
            _ => Time::NEVER,
        };
        Timers {
            retransmission,
            probe,
            reordering,
            hold,
            delayed_ack: self.receiver.wake_at(),
            una: space.una(),
            outstanding: space.una() < space.max(),
        }
    }

    /// Whether the retransmission timer runs as if it had been set now: clocks with ticks often give the
    /// deadline that it had.
    pub fn is_armed_as_now(&self, cx: &Context<'_>) -> bool {
        self.timers().retransmission == self.sender.space().deadline(cx)
    }

    /// What keeps the sender of an established connection from sending more; nothing before.
    pub fn limit(&self, profile: &Profile) -> Option<SendLimit> {
        if !self.is_established() {
            return None;
        }
        let space = self.sender.space();
        let cwnd = self.sender.cwnd();
        let buffer = profile.peer_window().min(profile.send_buffer.0);
        Some(if space.recovery_state() != RecoveryState::Open {
            SendLimit::Recovery
        } else if buffer <= cwnd {
            SendLimit::Buffer
        } else if cwnd < space.control().ssthresh() {
            SendLimit::SlowStart
        } else {
            SendLimit::CongestionAvoidance
        })
    }
}
