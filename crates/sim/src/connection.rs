//! A connection of the simulated world: two end points and the application that uses them.

use aqmlab_net::{Role, Time};
use aqmlab_record::RetransmittedKinds;
use aqmlab_tcp::{Endpoint, Events, Retransmissions};
use aqmlab_traffic::{Connect, Delivery, Player, Script};

use crate::sockets::Held;
use crate::stack::{Overrides, Stack};

/// Two end points and the application between them.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) ends: [Endpoint; 2],
    /// Time of the one timer event that counts, per end. A deadline that moves later leaves the
    /// event where it is; it is pushed again when it fires too early (lazy timers).
    pub(crate) timer_at: [Time; 2],
    /// Segments on their way.
    pub(crate) in_network: u32,
    pub(crate) class: u16,
    /// What still arrives is ignored.
    pub(crate) aborted: bool,
    /// It has overrides, or is traced: nothing is taken for granted.
    pub(crate) is_special: bool,
    /// Aborted because its class stopped, not because the network failed it.
    pub(crate) stopped: bool,
    /// Its state is recorded over time.
    pub(crate) is_traced: bool,
    /// When one of the ends was given something last.
    pub(crate) last_event: Time,
    /// Which sockets it has, where hosts may have only so many.
    pub(crate) sockets: Held,
    /// What it has of its own, if anything.
    pub(crate) overrides: Option<Box<Overrides>>,
    pub(crate) app: Application,
}

/// What a connection begins with.
pub(crate) struct Opening {
    pub(crate) class: u16,
    pub(crate) is_traced: bool,
    pub(crate) overrides: Option<Box<Overrides>>,
    pub(crate) connect: Connect,
}

impl Connection {
    /// Its ends wait for a SYN.
    #[inline(always)]
    pub(crate) fn new(opening: Opening, stack: &Stack, now: Time) -> Self {
        let overrides = opening.overrides;
        let listen = |role| Endpoint::listen(stack.profile(overrides.as_deref(), role));
        Self {
            ends: [listen(Role::Client), listen(Role::Server)],
            timer_at: [Time::NEVER; 2],
            in_network: 0,
            class: opening.class,
            aborted: false,
            is_special: opening.is_traced || overrides.is_some(),
            stopped: false,
            is_traced: opening.is_traced,
            last_event: now,
            sockets: Held::default(),
            overrides,
            app: Application::new(opening.connect, now),
        }
    }

    /// Nothing can happen on it any more.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.in_network == 0 && (self.aborted || self.ends.iter().all(Endpoint::is_finished))
    }

    /// When an event is to wake this end, if none that is pending does so in time. The caller
    /// pushes it.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, role: Role) -> Option<Time> {
        let wake = self.ends[role as usize].wake_at();
        let pending = &mut self.timer_at[role as usize];
        let is_sooner = wake < *pending;
        is_sooner.then(|| {
            *pending = wake;
            wake
        })
    }

    /// What both ends sent again.
    pub(crate) fn retransmissions(&self) -> Retransmissions {
        let [client, server] = [
            self.ends[0].retransmissions(),
            self.ends[1].retransmissions(),
        ];
        Retransmissions {
            syn: client.syn + server.syn,
            fin: client.fin + server.fin,
            data: client.data + server.data,
            timeouts: client.timeouts + server.timeouts,
        }
    }

    /// Whether one of the ends has repaired a loss without waiting for its timer.
    pub(crate) fn has_fast_retransmit(&self) -> bool {
        self.ends.iter().any(|end| end.fast_retransmits() > 0)
    }
}

/// The applications at both ends, and what is known of them.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) player: Player<Script>,
    pub(crate) token: u32,
    pub(crate) connected_at: Time,
    pub(crate) client: u32,
    pub(crate) server: u32,
    /// Bytes that the client received in the measured span.
    pub(crate) measured_bytes: u64,
    /// What was sent again until the client had everything or the connection was aborted.
    pub(crate) delayed_by: RetransmittedKinds,
    /// The source knows that it is over.
    pub(crate) reported: bool,
}

impl Application {
    #[inline(always)]
    pub(crate) fn new(connect: Connect, now: Time) -> Self {
        Self {
            player: Player::new(connect.script, now),
            token: connect.token,
            connected_at: now,
            client: connect.client,
            server: connect.server,
            measured_bytes: 0,
            delayed_by: RetransmittedKinds::default(),
            reported: false,
        }
    }

    /// One of the ends hears of something, in the measured span or not. True if that is what it
    /// has waited for.
    pub(crate) fn on_events(&mut self, role: Role, events: Events, measured: bool) -> bool {
        if role == Role::Client && measured {
            self.measured_bytes += events.received;
        }
        let delivery = Delivery {
            established: events.established,
            bytes: events.received,
            closed: events.eof,
        };
        self.player.on_delivery(role, delivery)
    }

    /// One of the ends hears of bytes alone.
    #[inline(always)]
    pub(crate) fn on_bytes(&mut self, role: Role, bytes: u64, measured: bool) -> bool {
        if role == Role::Client && measured {
            self.measured_bytes += bytes;
        }
        self.player.on_bytes(role, bytes)
    }

    /// Bytes that the client and the server have received: responses, requests.
    pub(crate) const fn received(&self) -> (u64, u64) {
        let player = &self.player;
        (player.received(Role::Client), player.received(Role::Server))
    }
}
