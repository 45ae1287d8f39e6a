//! Connections whose end points are not ours: stacks of datagrams, and the datagrams on their way.

use aqmlab_net::{RandomStream, Role, Time};
use aqmlab_scenario::Traffic;
use aqmlab_stacks::{Class, End, HAS_QUIC, HAS_STACKS};
use aqmlab_tcp::{ControlMetrics, Probe, RecoveryState, Retransmissions};

use crate::connection::Application;

/// Bytes of memory of a connection by quinn, about: both ends, with what they keep of what is not
/// acknowledged.
pub(crate) const QUINN_BYTES: f64 = 60_000.0;

/// The same of a connection of our QUIC: measured with ten datagrams in flight, from 1,000 to 8,000
/// connections. With a few in flight it takes 7 kB.
pub(crate) const QUIC_BYTES: f64 = 19_000.0;

/// A connection between two such ends.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) ends: [End; 2],
    /// Time of the one timer event that counts, per end, as in a connection of ours.
    pub(crate) timer_at: [Time; 2],
    /// Datagrams on their way.
    pub(crate) in_network: u32,
    pub(crate) class: u16,
    /// What still arrives is ignored.
    pub(crate) aborted: bool,
    /// Aborted because its class stopped, not because the network failed it.
    pub(crate) stopped: bool,
    /// Its state is recorded over time.
    pub(crate) is_traced: bool,
    /// When one of the ends was given something last, until it had everything.
    pub(crate) last_event: Time,
    /// Packets that both ends declared lost.
    pub(crate) lost: u32,
    pub(crate) app: Application,
}

impl Guest {
    /// Nothing can happen on it any more: the client has closed, and the server either knows or has
    /// nothing left to do.
    pub(crate) fn is_over(&self) -> bool {
        let [client, server] = &self.ends;
        let are_done = || client.is_silent() && (server.is_silent() || server.is_complete());
        self.in_network == 0 && (self.aborted || are_done())
    }

    /// When an event is to wake this end, if none that is pending does so in time. The caller
    /// pushes it. A time that is over is now: once the handshake is confirmed, the probe time-out of
    /// what left before may be.
    pub(crate) fn schedule(&mut self, role: Role, now: Time) -> Option<Time> {
        let wake = self.ends[role as usize].deadline().max(now);
        let pending = &mut self.timer_at[role as usize];
        (wake < *pending).then(|| {
            *pending = wake;
            wake
        })
    }

    /// Packets that were lost: what they carried went again in others.
    pub(crate) fn retransmissions(&self) -> Retransmissions {
        Retransmissions {
            data: self.lost,
            ..Retransmissions::default()
        }
    }

    /// The state of an end's sender at `now`, as far as it can be seen: its time-out is how long its
    /// next timer is off, whatever that is for.
    pub(crate) fn probe(&mut self, role: Role, now: Time) -> Probe {
        let end = &mut self.ends[role as usize];
        let timeout = end.deadline().saturating_sub(now);
        let state = end.state();
        let (control_state, recovers) = end
            .inside()
            .map_or((None, false), |it| (Some(it.control()), it.is_recovering()));
        Probe {
            cwnd: state.cwnd,
            ssthresh: state.ssthresh.unwrap_or(u64::MAX),
            in_flight: state.in_flight,
            round_trip: Some(state.round_trip),
            timeout,
            recovery_state: match recovers {
                true => RecoveryState::Recovery,
                false => RecoveryState::Open,
            },
            control: ControlMetrics::default(),
            control_state,
        }
    }
}

/// What a class says of such connections.
#[derive(Debug)]
struct Wanted {
    draws: RandomStream,
    /// What some of its connections have, each with the share of it and of those before it.
    kinds: Vec<(f64, Class)>,
}

impl Wanted {
    fn new(seed: u64, class: &Traffic) -> Self {
        let shares = class.transport;
        let quinn = Class::quinn(&class.quinn).filter(|_| shares.quinn > 0.0);
        let quinn = quinn.map(|kind| (shares.quinn, kind)).into_iter();
        let has_quic = HAS_QUIC && shares.quic > 0.0;
        let quic = has_quic.then(|| (shares.quinn + shares.quic, Class::quic(&class.quic)));
        Self {
            draws: RandomStream::new(seed, &format!("transport {}", class.drawn_as()), 0),
            kinds: quinn.chain(quic).collect(),
        }
    }
}

/// The connections by slot, and what is on its way between their ends.
#[derive(Debug)]
pub(crate) struct Guests {
    /// By class.
    wanted: Vec<Wanted>,
    slots: Vec<Option<Box<Guest>>>,
    pub(crate) payloads: Payloads,
}

impl Guests {
    pub(crate) fn new(seed: u64, classes: &[Traffic]) -> Self {
        let wanted = classes.iter().filter(|_| HAS_STACKS);
        Self {
            wanted: wanted.map(|class| Wanted::new(seed, class)).collect(),
            slots: Vec::new(),
            payloads: Payloads::default(),
        }
    }

    /// What the next connection of a class has, if that is not TCP.
    pub(crate) fn next(&mut self, class: usize) -> Option<&Class> {
        if !HAS_STACKS {
            return None;
        }
        let Wanted { draws, kinds } = &mut self.wanted[class];
        let most = kinds.last()?.0;
        // One kind for all needs no draw.
        let draw = if kinds.len() == 1 && most >= 1.0 {
            0.0
        } else {
            draws.uniform()
        };
        let kind = kinds.iter().find(|(share, _)| draw < *share);
        kind.map(|(_, kind)| kind)
    }

    pub(crate) fn put(&mut self, index: u32, guest: Guest) {
        let slot = index as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(Box::new(guest));
    }

    // A build without stacks knows that there are none, and has no code for them.

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Guest> {
        match HAS_STACKS {
            true => self.slots.get(index as usize)?.as_deref(),
            false => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Guest> {
        match HAS_STACKS {
            true => self.slots.get_mut(index as usize)?.as_deref_mut(),
            false => None,
        }
    }

    /// A connection that is not TCP, and where the payloads of its datagrams are kept.
    #[inline]
    pub(crate) fn with_payloads(&mut self, index: u32) -> Option<(&mut Guest, &mut Payloads)> {
        if !HAS_STACKS {
            return None;
        }
        let slot = self.slots.get_mut(index as usize)?;
        Some((slot.as_deref_mut()?, &mut self.payloads))
    }

    pub(crate) fn remove(&mut self, index: u32) {
        self.slots[index as usize] = None;
    }

    /// The connections that go on, with their slots.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Guest)> {
        let slots = (0..).zip(&self.slots).filter(|_| HAS_STACKS);
        slots.filter_map(|(index, slot)| Some((index, slot.as_deref()?)))
    }

    /// The connections that go on, mutable, with their slots.
    #[inline]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Guest)> {
        let slots = (0..).zip(&mut self.slots).filter(|_| HAS_STACKS);
        slots.filter_map(|(index, slot)| Some((index, slot.as_deref_mut()?)))
    }

    /// The connection of a class with this token.
    pub(crate) fn find(&self, class: usize, token: u32) -> Option<u32> {
        let mut open = self.iter();
        let found = open.find(|(_, guest)| {
            usize::from(guest.class) == class && guest.app.token == token && !guest.aborted
        });
        found.map(|(index, _)| index)
    }
}

/// The payloads of datagrams on their way: an event has room for a number only.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    kept: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// What an end sends in one go, and how much of it has been taken.
    burst: Vec<u8>,
    taken: usize,
}

impl Payloads {
    /// Empty room for a burst, which [`take_in`](Self::take_in) takes from there.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.burst.clear();
        self.taken = 0;
        &mut self.burst
    }

    /// Keeps the next datagram of the burst, of at most `each` bytes: its ticket and its length.
    #[inline]
    pub(crate) fn take_in(&mut self, each: usize) -> Option<(u32, usize)> {
        let rest = self.burst.len() - self.taken;
        if rest == 0 {
            return None;
        }
        let len = rest.min(each);
        let ticket = self.free.pop().unwrap_or_else(|| {
            // The next burst gets its room, which is mostly like this one.
            self.kept.push(Vec::with_capacity(self.burst.len().max(64)));
            (self.kept.len() - 1) as u32
        });
        let kept = &mut self.kept[ticket as usize];
        if len == self.burst.len() {
            // Alone in its burst: it need not be copied.
            std::mem::swap(kept, &mut self.burst);
            self.burst.clear();
        } else {
            kept.clear();
            kept.extend_from_slice(&self.burst[self.taken..self.taken + len]);
            self.taken += len;
        }
        Some((ticket, len))
    }

    /// A payload that is kept.
    pub(crate) fn peek(&self, ticket: u32) -> &[u8] {
        &self.kept[ticket as usize]
    }

    /// Takes a payload out. Its ticket is free once it is [handed back](Self::give_back).
    pub(crate) fn take(&mut self, ticket: u32) -> Vec<u8> {
        std::mem::take(&mut self.kept[ticket as usize])
    }

    /// Keeps the room of a payload for the next one.
    pub(crate) fn give_back(&mut self, ticket: u32, payload: Vec<u8>) {
        self.kept[ticket as usize] = payload;
        self.forget(ticket);
    }

    /// Forgets a payload.
    pub(crate) fn forget(&mut self, ticket: u32) {
        self.free.push(ticket);
    }
}
