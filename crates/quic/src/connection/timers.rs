//! Timers: loss, probes, acknowledgements, the pacer, idle time (RFC 9002, section 6.2 and appendix
//! A.8; RFC 9000, section 10).

use aqmlab_net::{Role, Time};

use super::{Connection, DATA, HANDSHAKE, INITIAL, Life};
use crate::streams::Event;

/// Packets that an expiry sends.
const PROBES: u32 = 2;

/// Bytes that a packet takes at least: with less left a server is blocked.
const LEAST_PACKET: u64 = 64;

/// Most doublings of the probe time-out: a day at 100 ms.
const MOST_DOUBLINGS: u32 = 20;

impl Connection {
    /// The probe time-out without its back-off.
    pub(super) fn probe_timeout(&self, of_data: bool) -> Time {
        let delay = match of_data {
            true => self.config.max_ack_delay,
            false => Time::ZERO,
        };
        self.rtt.timeout() + delay
    }

    /// Whether a server may not send another byte.
    pub(crate) fn is_amplifying(&self) -> bool {
        self.role == Role::Server
            && !self.is_validated
            && self.volume[1] + LEAST_PACKET > 3 * self.volume[0]
    }

    /// When the loss timer is due, and the space that it is of.
    pub(crate) fn loss_timer(&self) -> Option<(Time, usize)> {
        let spaces = self.open_spaces().map(|index| (index, &self.spaces[index]));
        let (index, space) = spaces.min_by_key(|(_, space)| space.loss_at)?;
        (space.loss_at < Time::NEVER).then_some((space.loss_at, index))
    }

    /// When the probe timer is due, and the space that it is of.
    pub(crate) fn probe_timer(&self) -> Option<(Time, usize)> {
        if self.is_amplifying() {
            return None;
        }
        let doubled = 1 << self.expiries.min(MOST_DOUBLINGS);
        if !self.has_eliciting_out() {
            // A client that does not know that the server may send keeps asking.
            let asks = self.role == Role::Client && !self.is_validated;
            let index = match self.spaces[HANDSHAKE].has_keys {
                true => HANDSHAKE,
                false => INITIAL,
            };
            return asks.then(|| (self.asked_at() + self.probe_timeout(false) * doubled, index));
        }
        let mut first: Option<(Time, usize)> = None;
        for index in self.open_spaces() {
            let space = &self.spaces[index];
            let is_off = index == DATA && !self.is_confirmed;
            if space.eliciting_out == 0 || is_off {
                continue;
            }
            let due = space.last_eliciting_at + self.probe_timeout(index == DATA) * doubled;
            if first.is_none_or(|(other, _)| due < other) {
                first = Some((due, index));
            }
        }
        first
    }

    /// Since when a client waits that has nothing in flight.
    pub(crate) fn asked_at(&self) -> Time {
        let sent = self
            .spaces
            .iter()
            .map(|space| space.last_eliciting_at)
            .max();
        sent.unwrap_or(Time::ZERO).max(self.active_at)
    }

    fn idle_deadline(&self) -> Time {
        self.active_at + self.config.idle_timeout.max(self.probe_timeout(true) * 3)
    }

    /// When [`expire`](Self::expire) is to be called; [`Time::NEVER`]: not at all.
    pub fn deadline(&self) -> Time {
        match self.life {
            Life::Open => {}
            Life::Closing { until, .. } | Life::Draining { until } => return until,
            Life::Over => return Time::NEVER,
        }
        if self.is_confirmed {
            return self.deadline_of_data();
        }
        let recovery = self.loss_timer().or_else(|| self.probe_timer());
        let mut due = recovery.map_or(Time::NEVER, |(due, _)| due);
        if !self.is_amplifying() {
            for space in &self.spaces[self.open_spaces()] {
                due = due.min(space.ack_at);
            }
        }
        let idle = match self.role {
            // Nobody has come so far.
            Role::Server if self.volume[0] == 0 => Time::NEVER,
            _ => self.idle_deadline(),
        };
        due.min(self.paced_until).min(idle)
    }

    /// The deadline after the handshake: there is one space, and no limit of amplification.
    fn deadline_of_data(&self) -> Time {
        let space = &self.spaces[DATA];
        let probe = self.probe_timeout(true);
        let recovery = if space.loss_at < Time::NEVER {
            space.loss_at
        } else if space.eliciting_out > 0 {
            let doubled = 1 << self.expiries.min(MOST_DOUBLINGS);
            space.last_eliciting_at + probe * doubled
        } else {
            Time::NEVER
        };
        let idle = self.active_at + self.config.idle_timeout.max(probe * 3);
        recovery.min(space.ack_at).min(self.paced_until).min(idle)
    }

    /// The loss timer or the probe timer: when it is due.
    #[cfg(test)]
    pub(crate) fn recovery_deadline(&self) -> Time {
        let recovery = self.loss_timer().or_else(|| self.probe_timer());
        recovery.map_or(Time::NEVER, |(due, _)| due)
    }

    /// The time has come that was asked for.
    pub fn expire(&mut self, now: Time) {
        self.quiet_at = Time::NEVER;
        match self.life {
            Life::Open => {}
            Life::Closing { until, .. } | Life::Draining { until } => {
                if until <= now {
                    self.life = Life::Over;
                }
                return;
            }
            Life::Over => return,
        }
        if self.volume != [0; 2] && self.idle_deadline() <= now {
            self.life = Life::Over;
            self.streams.events.push_back(Event::TimedOut);
            return;
        }
        if let Some((due, index)) = self.loss_timer() {
            if due <= now {
                self.congestion.begin();
                self.find_losses(index, now);
                self.congestion.finish(0, None, &self.rtt, now);
            }
            return;
        }
        if let Some((due, index)) = self.probe_timer()
            && due <= now
        {
            self.expiries += 1;
            let probes = match self.has_frames(index) {
                true => PROBES,
                false => self.repeat_oldest(index, PROBES as usize),
            };
            // One packet asks as well as two.
            self.spaces[index].probes = probes.max(1);
        }
    }
}
