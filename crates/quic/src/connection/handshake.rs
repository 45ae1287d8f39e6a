//! The handshake by the lengths of its messages (RFC 9001, section 4), and which keys there are.

use std::ops::Range;

use aqmlab_net::{Role, Time};

use super::{Connection, DATA, HANDSHAKE, INITIAL};
use crate::config::{CLIENT_HELLO, FINISHED, SERVER_HELLO, TICKETS};
use crate::space::Fate;
use crate::streams::{Contents, Event};
use crate::wire::Kind;

impl Connection {
    /// Whether packets of this kind can be read.
    pub(super) fn can_read(&self, kind: Kind) -> bool {
        match (kind, self.role) {
            (Kind::Initial, _) => self.spaces[INITIAL].has_keys,
            (Kind::Handshake, _) => self.spaces[HANDSHAKE].has_keys,
            // A server reads 1-RTT packets once the client has answered.
            (Kind::OneRtt, _) => self.is_complete,
            (Kind::ZeroRtt, Role::Server) => {
                self.has_one_rtt && self.config.early.is_some_and(|early| early.accepted)
            }
            (Kind::ZeroRtt, Role::Client) => false,
        }
    }

    /// Whether it never will be able to.
    pub(super) fn never_reads(&self, kind: Kind) -> bool {
        match kind {
            Kind::Initial => self.spaces[INITIAL].is_discarded,
            Kind::Handshake => self.spaces[HANDSHAKE].is_discarded,
            Kind::ZeroRtt => {
                let rejects = !self.config.early.is_some_and(|early| early.accepted);
                self.role == Role::Client || self.is_complete || (self.has_one_rtt && rejects)
            }
            Kind::OneRtt => false,
        }
    }

    /// Bytes of the handshake have arrived: keys and answers follow.
    pub(super) fn on_handshake_bytes(&mut self, now: Time) {
        let initial = self.spaces[INITIAL].crypto_in_order();
        let handshake = self.spaces[HANDSHAKE].crypto_in_order();
        match self.role {
            Role::Client => {
                if initial >= SERVER_HELLO && !self.spaces[HANDSHAKE].is_discarded {
                    self.spaces[HANDSHAKE].has_keys = true;
                }
                if handshake >= self.config.flight() && !self.is_complete {
                    self.spaces[HANDSHAKE].say(FINISHED);
                    self.become_complete(now);
                    self.streams.issue_ids(self.config.connection_ids);
                }
            }
            Role::Server => {
                if initial >= CLIENT_HELLO && !self.has_one_rtt {
                    self.spaces[INITIAL].say(SERVER_HELLO);
                    self.spaces[HANDSHAKE].has_keys = true;
                    self.spaces[HANDSHAKE].say(self.config.flight());
                    self.has_one_rtt = true;
                    self.streams.set_peer(&self.config.limits);
                    self.streams.issue_ids(self.config.connection_ids);
                }
                if handshake >= FINISHED && !self.is_complete {
                    self.become_complete(now);
                    self.confirm();
                    self.done_is_due = true;
                    self.spaces[DATA].say(TICKETS);
                }
            }
        }
    }

    fn become_complete(&mut self, now: Time) {
        self.is_complete = true;
        if self.is_early && self.config.early.is_some_and(|early| !early.accepted) {
            self.forget_early(now);
        }
        self.is_early = false;
        self.has_one_rtt = true;
        self.streams.set_peer(&self.config.limits);
        self.streams.events.push_back(Event::Established);
    }

    /// 0-RTT was rejected: its packets never arrive, and the streams begin anew.
    fn forget_early(&mut self, _now: Time) {
        let space = &mut self.spaces[DATA];
        for sent in &mut space.sent {
            if sent.fate == Fate::Out {
                self.congestion.in_flight -= u64::from(sent.bytes);
                sent.fate = Fate::Arrived;
            }
            sent.contents = Contents::default();
        }
        space.eliciting_out = 0;
        self.streams.start_over();
    }

    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    pub(super) fn confirm(&mut self) {
        if !self.is_confirmed {
            self.is_confirmed = true;
            self.is_validated = true;
            self.discard(HANDSHAKE);
        }
    }

    /// The packet number spaces that may still have anything to do: of a confirmed handshake there are no
    /// keys left.
    #[inline]
    pub(crate) const fn open_spaces(&self) -> Range<usize> {
        match self.is_confirmed {
            true => DATA..DATA + 1,
            false => INITIAL..DATA + 1,
        }
    }

    /// Keys are discarded: what was sent with them is nobody's concern any more (RFC 9002, section 6.4).
    pub(super) fn discard(&mut self, space: usize) {
        if self.spaces[space].is_discarded {
            return;
        }
        let out = self.spaces[space]
            .sent
            .iter()
            .filter(|sent| sent.fate == Fate::Out);
        let bytes: u64 = out.map(|sent| u64::from(sent.bytes)).sum();
        self.congestion.in_flight -= bytes;
        self.spaces[space].discard();
        self.expiries = 0;
    }
}
