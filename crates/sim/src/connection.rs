//! A connection of the simulated world: two ends and the application that uses them.

use aqmlab_net::{Role, Time};
use aqmlab_record::RetransmittedKinds;
use aqmlab_stacks::{End, HAS_STACKS};
use aqmlab_tcp::{ControlMetrics, Endpoint, Events, Probe, RecoveryState, Retransmissions};
use aqmlab_traffic::{Connect, Delivery, Player, Script};

use crate::sockets::Held;
use crate::stack::{Overrides, Stack};

/// Two ends and the application between them.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) ends: Ends,
    /// Time of the one timer event that counts, per end. A deadline that moves later leaves the
    /// event where it is; it is pushed again when it fires too early (lazy timers).
    pub(crate) timer_at: [Time; 2],
    /// Packets on their way.
    pub(crate) in_network: u32,
    pub(crate) class: u16,
    /// What still arrives is ignored.
    pub(crate) aborted: bool,
    /// It has overrides, is traced, or is over datagrams: nothing is taken for granted.
    pub(crate) is_special: bool,
    /// Aborted because its class stopped, not because the network failed it.
    pub(crate) stopped: bool,
    /// Its state is recorded over time.
    pub(crate) is_traced: bool,
    /// When one of the ends was given something last. Timers of a stack that has everything do not
    /// count.
    pub(crate) last_event: Time,
    /// Which sockets it has, where hosts may have only so many.
    pub(crate) sockets: Held,
    pub(crate) app: Application,
}

/// What a connection begins with.
pub(crate) struct Opening {
    pub(crate) class: u16,
    pub(crate) is_traced: bool,
    pub(crate) own: Own,
    pub(crate) connect: Connect,
}

impl Connection {
    /// Ends of TCP wait for a SYN.
    #[inline(always)]
    pub(crate) fn new(opening: Opening, stack: &Stack, now: Time) -> Self {
        let own = opening.own;
        let listen = |role| Endpoint::listen(stack.profile(own.overrides(), role));
        Self {
            is_special: opening.is_traced || own.0.is_some(),
            ends: Ends {
                tcp: [listen(Role::Client), listen(Role::Server)],
                own,
            },
            timer_at: [Time::NEVER; 2],
            in_network: 0,
            class: opening.class,
            aborted: false,
            stopped: false,
            is_traced: opening.is_traced,
            last_event: now,
            sockets: Held::default(),
            app: Application::new(opening.connect, now),
        }
    }

    /// Nothing can happen on it any more.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.in_network == 0 && (self.aborted || self.ends.are_done())
    }

    /// Its hosts forget it: nothing more is sent, what is on its way is ignored where it arrives.
    pub(crate) fn stop(&mut self, now: Time) {
        (self.aborted, self.stopped) = (true, true);
        self.last_event = now;
    }

    /// When an event is to wake this end by `wake`, if none that is pending does so in time. The
    /// caller pushes it.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, role: Role, wake: Time) -> Option<Time> {
        let pending = &mut self.timer_at[role as usize];
        let is_sooner = wake < *pending;
        is_sooner.then(|| {
            *pending = wake;
            wake
        })
    }

    /// When an end of TCP is to be woken.
    #[inline(always)]
    pub(crate) fn schedule_tcp(&mut self, role: Role) -> Option<Time> {
        self.schedule(role, self.ends.tcp[role as usize].wake_at())
    }
}

/// What few connections have, in the room of one pointer.
#[derive(Debug, Default)]
pub(crate) struct Own(Option<Box<Special>>);

/// What makes a connection special.
#[derive(Debug)]
enum Special {
    /// Profiles and losses of its own.
    Overrides(Overrides),
    /// Ends over datagrams.
    Stacks(Stacks),
}

/// Ends over datagrams, such as QUIC.
#[derive(Debug)]
struct Stacks {
    ends: [End; 2],
    /// Packets that both declared lost.
    lost: u32,
}

impl From<Overrides> for Own {
    fn from(overrides: Overrides) -> Self {
        Self(Some(Box::new(Special::Overrides(overrides))))
    }
}

impl From<[End; 2]> for Own {
    fn from(ends: [End; 2]) -> Self {
        Self(Some(Box::new(Special::Stacks(Stacks { ends, lost: 0 }))))
    }
}

impl Own {
    /// What it has instead of what its class has.
    #[inline(always)]
    pub(crate) fn overrides(&self) -> Option<&Overrides> {
        match self.0.as_deref()? {
            Special::Overrides(overrides) => Some(overrides),
            Special::Stacks(_) => None,
        }
    }

    #[inline(always)]
    pub(crate) fn overrides_mut(&mut self) -> Option<&mut Overrides> {
        match self.0.as_deref_mut()? {
            Special::Overrides(overrides) => Some(overrides),
            Special::Stacks(_) => None,
        }
    }

    // A build without stacks knows that there are none, and has no code for them.

    #[inline]
    fn stacks(&self) -> Option<&Stacks> {
        match self.0.as_deref()? {
            Special::Stacks(stacks) if HAS_STACKS => Some(stacks),
            _ => None,
        }
    }

    #[inline]
    fn stacks_mut(&mut self) -> Option<&mut Stacks> {
        match self.0.as_deref_mut()? {
            Special::Stacks(stacks) if HAS_STACKS => Some(stacks),
            _ => None,
        }
    }
}

/// The ends of a connection, client first.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Those of TCP. Nearly all connections have them, and a connection over datagrams leaves them
    /// idle: no packet has to ask what its connection is.
    pub(crate) tcp: [Endpoint; 2],
    pub(crate) own: Own,
}

impl Ends {
    /// Whether they are stacks over datagrams.
    #[inline]
    pub(crate) fn are_stacks(&self) -> bool {
        self.own.stacks().is_some()
    }

    /// An end over datagrams.
    #[inline]
    pub(crate) fn stack_mut(&mut self, role: Role) -> Option<&mut End> {
        Some(&mut self.own.stacks_mut()?.ends[role as usize])
    }

    /// Whether neither end has anything left to do. A stack's client has closed then, and its server
    /// either knows or has nothing left.
    #[inline]
    fn are_done(&self) -> bool {
        match self.own.stacks() {
            None => self.tcp.iter().all(Endpoint::is_finished),
            Some(Stacks { ends, .. }) => {
                let [client, server] = ends;
                client.is_silent() && (server.is_silent() || server.is_complete())
            }
        }
    }

    /// When an end wants to be woken. A stack's time that is over is now: once the handshake is
    /// confirmed, the probe time-out of what left before may be.
    pub(crate) fn wake_at(&mut self, role: Role, now: Time) -> Time {
        match self.stack_mut(role) {
            None => self.tcp[role as usize].wake_at(),
            Some(end) => end.deadline().max(now),
        }
    }

    /// The congestion window of an end.
    pub(crate) fn cwnd(&self, role: Role) -> u64 {
        match self.own.stacks() {
            None => self.tcp[role as usize].cwnd(),
            Some(stacks) => stacks.ends[role as usize].state().cwnd,
        }
    }

    /// What both ends sent again. A stack counts packets that were lost: what they carried went again
    /// in others.
    pub(crate) fn retransmissions(&self) -> Retransmissions {
        if let Some(stacks) = self.own.stacks() {
            return Retransmissions {
                data: stacks.lost,
                ..Retransmissions::default()
            };
        }
        let [client, server] = [self.tcp[0].retransmissions(), self.tcp[1].retransmissions()];
        Retransmissions {
            syn: client.syn + server.syn,
            fin: client.fin + server.fin,
            data: client.data + server.data,
            timeouts: client.timeouts + server.timeouts,
        }
    }

    /// Whether one of the ends has repaired a loss without waiting for its timer.
    pub(crate) fn has_fast_retransmit(&self) -> bool {
        match self.own.stacks() {
            None => self.tcp.iter().any(|end| end.fast_retransmits() > 0),
            Some(stacks) => stacks.lost > 0,
        }
    }

    /// How many packets a stack has declared lost since the last call.
    pub(crate) fn losses(&mut self, role: Role) -> u32 {
        let Some(stacks) = self.own.stacks_mut() else {
            return 0;
        };
        let new = stacks.ends[role as usize].losses();
        stacks.lost += new;
        new
    }

    /// The state of an end's sender at `now`. A stack's is what can be seen of it: its time-out is how
    /// long its next timer is off, whatever that is for.
    pub(crate) fn probe(&mut self, role: Role, stack: &Stack, now: Time) -> Probe {
        let Some(end) = self.stack_mut(role) else {
            let profile = stack.profile(self.own.overrides(), role);
            return self.tcp[role as usize].probe(profile);
        };
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
    #[inline(always)]
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
