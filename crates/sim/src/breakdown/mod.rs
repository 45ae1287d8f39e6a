//! Why a response took so long: the critical path from its request to its last byte, and what each
//! step on it waited for.
//!
//! What a connection does now has one cause, the event that is being handled. The connection keeps
//! the *current vector*: the parts of the time since its exchange began, which add up to that time.
//!
//! - A segment that leaves takes the vector with it. On its way propagation, transmission and waits
//!   are added. Where it arrives, its vector becomes the current one.
//! - A timer or a pause keeps the vector of the moment in which it was set. When it ends, the time
//!   since then is added, and that becomes the current vector.
//! - A segment that is sent again takes the vector of its first transmission, and the time since
//!   then, divided among timers and recovery. Else the path would lead through the segments that
//!   overtook the lost one, and a loss would look like one more round trip.
//! - The vector that is current when the response is complete is its breakdown.
//!
//! Each step adds by how much the clock has advanced, so the sum is exact by construction.
//!
//! Times are those of the hosts. Where their clocks are shifted, the delay before the first port is
//! added, and the delay behind the last one is not: it only undoes the shift.

mod label;
mod loss;
mod node;
mod nodes;
pub(crate) mod paths;
mod story;
#[cfg(test)]
mod tests;
mod waiting;

use aqmlab_aqm::{Backlog, Reason};
use aqmlab_link::{Served, Transmission};
use aqmlab_net::{Packet, Role, Time};
use aqmlab_record::{Exchange, MeasuredSpan, Metrics};
use aqmlab_stacks::End;
use aqmlab_tcp::{Segment, SendLimit, Timers};

use crate::event::Event;
use crate::options::Ticket;
use crate::route::Route;

/// What a world remembers of the causes of events. It hears of each step of each segment, and of
/// each timer; connections are named by their slots.
///
/// A transport reports around each thing that an end does: first its cause ([`arrives`](Self::arrives),
/// [`expires`](Self::expires) or [`resumes`](Self::resumes); nothing for a write, which has the cause of
/// what happens anyway), then each segment as it [`leaves`](Self::leaves), then that the end has
/// [`acted`](Self::acted), with the timers that it has now.
pub(crate) trait Causes {
    /// Whether it remembers anything: else nobody need tell it.
    const ON: bool;

    /// Whether it logs the packets that reach ports.
    const LOGS: bool = false;

    /// Of a world with so many ports.
    fn new(ports: usize) -> Self;

    /// The connection with this serial number is followed, event by event.
    fn follow(&mut self, _flow: u64) {}

    // ---- connections ----

    /// A connection begins in a slot, and with it perhaps an exchange; its serial number. Nothing is
    /// remembered of a connection for which this is not called.
    fn opens(&mut self, _slot: u32, _now: Time, _flow: u64) {}

    /// An exchange begins on a connection that is there.
    fn asks(&mut self, _slot: u32, _now: Time) {}

    /// A connection is over, or no exchange of it will be: nothing more is remembered of it.
    fn closes(&mut self, _slot: u32) {}

    // ---- what happens at an end ----

    /// A segment arrives at an end; `limit` says what keeps its sender from sending more until then.
    /// Again for the same segment, nothing happens.
    #[inline(always)]
    fn arrives(&mut self, _event: &Event, _now: Time, _limit: impl FnOnce() -> Option<SendLimit>) {}

    /// A timer of an end expires; `paced`: segments leave at a rate.
    fn expires(&mut self, _slot: u32, _role: Role, _now: Time, _paced: bool) {}

    /// A datagram arrives at an end of a stack.
    fn datagram_arrives(&mut self, _event: &Event, _now: Time, _end: &End) {}

    /// A timer of an end of a stack expires.
    fn stack_expires(&mut self, _slot: u32, _role: Role, _now: Time) {}

    /// An end of a stack has done what the event made it do.
    fn stack_acted(&mut self, _slot: u32, _role: Role, _now: Time, _end: &End) {}

    /// The application of an end pauses.
    fn pauses(&mut self, _slot: u32, _role: Role, _now: Time) {}

    /// Its pause is over.
    fn resumes(&mut self, _slot: u32, _role: Role, _now: Time) {}

    /// An end has done what the event made it do; these are its timers now. `is_armed_as_now`: whether
    /// the retransmission timer runs as if it had been set now, which is asked where its time says
    /// nothing.
    #[inline(always)]
    fn acted(
        &mut self,
        _slot: u32,
        _role: Role,
        _now: Time,
        _timers: impl FnOnce() -> Timers,
        _is_armed_as_now: impl FnOnce() -> bool,
    ) {
    }

    /// An exchange is over: where its time went, if that is known.
    fn explain(&mut self, _slot: u32, _exchange: &Exchange, _metrics: &mut Metrics) {}

    // ---- segments ----

    /// A segment leaves its end point, with this ticket.
    fn leaves(
        &mut self,
        _ticket: Ticket,
        _slot: u32,
        _sender: Role,
        _segment: &Segment,
        _now: Time,
    ) {
    }

    /// A datagram leaves an end of a stack, with this ticket, from that slot: what kind of datagram it
    /// is, which its event keeps as its number.
    fn datagram_leaves(
        &mut self,
        _what: (Ticket, u32, Role),
        _now: Time,
        _end: &End,
        _datagram: &[u8],
    ) -> u32 {
        0
    }

    /// A host's own link has sent it by `done`, in the time of `transmission`.
    fn passes_host_link(&mut self, _ticket: Ticket, _done: Time, _transmission: Time) {}

    /// When it has reached the port at which it is.
    fn reached(&self, _ticket: Ticket) -> Time {
        Time::ZERO
    }

    /// It reaches a port.
    fn reaches_port(&mut self, _ticket: Ticket, _now: Time) {}

    /// A port has served it, and it arrives behind the link.
    fn passes_port(&mut self, _ticket: Ticket, _port: usize, _served: &Served, _arrives: Time) {}

    /// It reaches a port that knows at once how it will serve it.
    fn crosses_port(
        &mut self,
        _ticket: Ticket,
        _port: usize,
        _reached: Time,
        _served: &Served,
        _arrives: Time,
    ) {
    }

    /// It is dropped at a port for this reason; without a reason it is lost at random: on the wire, or
    /// without a port on the way of its connection.
    fn dropped(
        &mut self,
        _event: &Event,
        _now: Time,
        _port: Option<usize>,
        _reason: Option<Reason>,
    ) {
    }

    /// Nothing more comes of it.
    fn forgets(&mut self, _ticket: Ticket) {}

    // ---- packets at ports, where they are logged ----

    /// Those that reach a port in this span are.
    fn log(&mut self, _span: MeasuredSpan) {}

    /// A packet leaves its host.
    fn sends(&mut self, _event: &Event, _route: &Route) {}

    /// It reaches a port, where so much waits.
    fn enters_port(
        &mut self,
        _event: &Event,
        _route: &Route,
        _at: (usize, Time),
        _packet: &Packet,
        _backlog: Backlog,
    ) {
    }

    /// It leaves the discipline then, and is so long in the device ring, if there is one.
    fn leaves_port(
        &mut self,
        _event: &Event,
        _left: (Time, Option<Time>),
        _transmission: Transmission,
    ) {
    }

    /// Writes the packets of which all is known.
    fn write_packets(&mut self, _metrics: &mut Metrics) {}

    /// The run is over: writes all that are left.
    fn write_all_packets(&mut self, _metrics: &mut Metrics) {}
}

/// Remembers nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unobserved;

impl Causes for Unobserved {
    const ON: bool = false;

    fn new(_ports: usize) -> Self {
        Self
    }
}
