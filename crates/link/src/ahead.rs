//! Packets that a discipline which decides on departure lets go whatever comes behind them: when
//! they leave is computed when they come, and they need not be stored.
//!
//! CoDel signals nobody and remembers nothing while packets wait for less than its target. How long
//! a packet waits behind such packets is known when it comes. So as long as the queue is short,
//! nothing needs to be decided on departure. The first packet that would wait for longer ends this:
//! it and those behind it are stored, until nothing is stored any more.
//!
//! DualPI2 without L4S traffic signals by chance, with a probability that stays until its next tick.
//! What the tick will see is known when the first packet comes that waits then. So its owner looks at the
//! random numbers that come next: if all that the packets before this one and itself may take are too
//! large for a signal, it goes as it is. Which of them take one is seen when they have left.

use aqmlab_aqm::{Backlog, Foreseen, Prospect, Queue, Room};
use aqmlab_net::{Packet, RandomStream, Time};
use aqmlab_record::LinkStats;

use crate::ring_buffer::RingBuffer;
use crate::wire::{Transmission, Wire};

/// A packet that waits: when it leaves, its size, and for how long it waits.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    at: Time,
    size: u32,
    nanos: u32,
}

/// The packets that wait, but whose departures are computed.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Who waits for less than this goes as it is, as far as the prospect has it.
    bound: Time,
    prospect: Prospect,
    /// What may wait.
    room: Room,
    /// Nothing is stored.
    is_alone: bool,
    /// The wire falls free of those whose departures are computed.
    free_at: Time,
    waiting: RingBuffer<Leaving>,
    /// What waits; some of them may have left.
    backlog: Backlog,
    /// Departures for which nobody is woken, up to now or later.
    computed: u64,
    /// Of a discipline that foresees more.
    outlook: Option<Box<Outlook>>,
}

/// What is known of the time to come.
#[derive(Debug)]
struct Outlook {
    tick: Time,
    /// When the first packet came that waits at the tick.
    head: Option<Time>,
    /// Random numbers that packets have taken and that are to be drawn.
    owed: u32,
    /// The stream behind those that have been looked at, of which so many exceed `chance`: the next
    /// one does not if it `is_low`.
    stream: Option<RandomStream>,
    clear: u32,
    is_low: bool,
    chance: f64,
}

impl Outlook {
    const NEW: Self = Self {
        tick: Time::ZERO,
        head: None,
        owed: 0,
        stream: None,
        clear: 0,
        is_low: false,
        chance: 0.0,
    };

    /// Another probability may be in force, or numbers have been drawn.
    fn look_anew(&mut self, chance: f64) {
        (self.stream, self.clear, self.is_low) = (None, 0, false);
        self.chance = chance;
    }

    /// Whether so many numbers exceed a probability. `draws` will give them.
    fn exceed(&mut self, count: u32, chance: f64, draws: &mut RandomStream) -> bool {
        if chance > self.chance {
            self.look_anew(chance);
        }
        while self.clear < count && !self.is_low {
            let owed = &mut self.owed;
            let stream = self.stream.get_or_insert_with(|| {
                draws.skip(std::mem::take(owed));
                draws.clone()
            });
            self.is_low = stream.uniform() <= self.chance;
            self.clear += u32::from(!self.is_low);
        }
        self.clear >= count
    }
}

impl Ahead {
    /// `bound` as [`Queue::passes_below`] has it, `room` as [`Queue::room`] has it.
    pub(crate) fn new(bound: Time, room: Room) -> Self {
        Self {
            bound,
            prospect: Prospect::SURE,
            room,
            is_alone: bound > Time::ZERO,
            free_at: Time::ZERO,
            waiting: RingBuffer::new(),
            backlog: Backlog::default(),
            computed: 0,
            outlook: None,
        }
    }

    /// The same in front of a queue that foresees more.
    pub(crate) fn foreseeing<T>(queue: &Queue<T>) -> Self {
        let mut ahead = Self::new(queue.passes_below(), queue.room());
        ahead.outlook = Some(Box::new(Outlook::NEW));
        ahead.look_anew(queue);
        ahead
    }

    /// Whether the queue is to be told of what waits at its ticks.
    pub(crate) const fn foresees(&self) -> bool {
        self.outlook.is_some()
    }

    /// The queue has ticked, or nothing is stored any more.
    pub(crate) fn look_anew<T>(&mut self, queue: &Queue<T>) {
        if let Some(outlook) = &mut self.outlook {
            self.prospect = queue.prospect();
            outlook.tick = queue.next_tick();
            outlook.head = None;
            outlook.look_anew(0.0);
        }
    }

    /// Random numbers that are to be drawn, once.
    pub(crate) fn take_owed(&mut self) -> u32 {
        let owed = self.outlook.as_mut().map(|outlook| &mut outlook.owed);
        owed.map_or(0, std::mem::take)
    }

    /// Departures for which nobody is woken: of all that were let go.
    pub(crate) const fn computed(&self) -> u64 {
        self.computed
    }

    /// One more: of a packet that was stored.
    pub(crate) const fn count_departure(&mut self) {
        self.computed += 1;
    }

    /// Somebody is woken when the last of them departs: when that is.
    pub(crate) const fn wake_last(&mut self) -> Time {
        self.computed -= 1;
        self.free_at
    }

    /// Whether no packets are stored, and the next may be let go.
    #[inline(always)]
    pub(crate) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// When the wire falls free of its packets.
    pub(crate) const fn free_at(&self) -> Time {
        self.free_at
    }

    /// What has not left by `now`; so many bytes are stored behind it.
    #[inline]
    pub(crate) fn leave(&mut self, now: Time, stored: u64) -> Backlog {
        while let Some(first) = self.waiting.front() {
            if first.at > now {
                break;
            }
            self.waiting.pop();
            self.backlog.remove(first.size);
            if self.backlog.bytes + stored >= self.prospect.draws_from {
                self.take_number();
            }
        }
        self.backlog
    }

    /// A packet has left that takes a random number.
    #[inline]
    fn take_number(&mut self) {
        if let Some(outlook) = &mut self.outlook {
            outlook.owed += 1;
            outlook.clear = outlook.clear.saturating_sub(1);
        }
    }

    /// What has not left by the time at which somebody asked last.
    pub(crate) const fn last_backlog(&self) -> Backlog {
        self.backlog
    }

    /// When the first of that came.
    pub(crate) fn head(&mut self) -> Option<Time> {
        let first = self.waiting.front()?;
        Some(first.at - Time::from_nanos(u64::from(first.nanos)))
    }

    /// A packet comes: what becomes of it, if it can be let go. Else all that come are stored from
    /// now on.
    #[inline(always)]
    pub(crate) fn pass<T>(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        (queue, draws): (&mut Queue<T>, &mut RandomStream),
        wire: &mut Wire,
        stats: &mut LinkStats,
    ) -> Option<Transmission> {
        let begin = self.free_at.max(now);
        let is_short = begin - now < self.bound;
        let goes = is_short
            && (begin <= self.prospect.until || self.is_foreseen(now, begin, queue, draws));
        if !(goes && self.has_room(now, packet.size, stats)) {
            self.is_alone = false;
            return None;
        }
        queue.pass(now, packet.size);
        self.computed += 1;
        let end = begin + wire.transmission_time(packet.size);
        self.free_at = end;
        if begin > now {
            self.backlog.add(packet.size);
            self.waiting.push(Leaving {
                at: begin,
                size: packet.size,
                nanos: (begin - now).as_nanos() as u32,
            });
            stats.on_length(now, self.backlog.packets);
        }
        stats.on_transit(now, begin, (begin, end), (class, packet.size));
        Some(wire.carry(end, packet.ecn, stats))
    }

    /// Whether a packet goes as it is that leaves later than all do.
    #[inline(never)]
    fn is_foreseen<T>(
        &mut self,
        now: Time,
        begin: Time,
        queue: &Queue<T>,
        draws: &mut RandomStream,
    ) -> bool {
        let waiting = match begin > now {
            true => self.leave(now, 0).packets,
            false => 0,
        };
        let Some(outlook) = &mut self.outlook else {
            return false;
        };
        if begin <= outlook.tick && self.prospect.chance < f64::INFINITY {
            // Who leaves nothing behind takes no number.
            return begin == now || outlook.exceed(waiting + 1, self.prospect.chance, draws);
        }
        let head = outlook.head.unwrap_or(now);
        let goes = match queue.foresee(now, begin, head) {
            Foreseen::Goes => true,
            Foreseen::GoesAbove(chance) => outlook.exceed(waiting + 1, chance, draws),
            Foreseen::Open => false,
        };
        if begin > outlook.tick {
            outlook.head = Some(head);
        }
        goes
    }

    /// Whether a packet fits. Those that have left are forgotten when it matters.
    #[inline(always)]
    fn has_room(&mut self, now: Time, size: u32, stats: &LinkStats) -> bool {
        if self.free_at <= now && self.prospect.draws_from == u64::MAX {
            self.waiting.clear();
            self.backlog = Backlog::default();
            return self.room.admits(self.backlog, size);
        }
        let fits = self.room.admits(self.backlog, size);
        if fits & !stats.is_longest(self.backlog.packets + 1) {
            return true;
        }
        self.leave(now, 0);
        self.room.admits(self.backlog, size)
    }

    /// Nothing is stored any more, and the wire falls free then.
    #[inline(always)]
    pub(crate) fn resume<T>(&mut self, free_at: Time, queue: &Queue<T>) {
        self.is_alone = true;
        self.free_at = free_at;
        if self.outlook.is_some() {
            self.look_anew(queue);
        }
    }
}
