//! The interface of stacks.

use std::fmt::Debug;

use aqmlab_net::{Ecn, Time};

/// What an application has to know, since it was asked for last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The handshake is complete.
    pub established: bool,
    /// Bytes that became readable, in order.
    pub received: u64,
    /// The other end has closed, and everything before that has been received.
    pub finished: bool,
    /// The connection was lost before both ends had closed.
    pub failed: bool,
    /// Messages that became complete on streams of their own: [`Stack::message`] has their numbers.
    pub messages: u32,
}

/// Datagrams that leave in one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Bytes of payload that are carried of each of them; the last may have less.
    pub datagram: usize,
    /// Bytes of UDP payload that each of them has beside those, since nobody would look at them.
    /// Below 0: what is carried takes more than on the wire.
    pub left_out: isize,
    /// The ECN field of all of them.
    pub ecn: Ecn,
}

/// What a sender is doing, for records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The slow-start threshold in bytes, if the congestion control has one.
    pub ssthresh: Option<u64>,
    /// Bytes in flight when the last acknowledgement came.
    pub in_flight: u64,
    /// The smoothed round trip.
    pub round_trip: Time,
}

/// A stack at one end of one connection: without sockets, clocks and randomness of its own.
///
/// After every call that gives it something ([`receive`](Self::receive), [`expire`](Self::expire),
/// [`write`](Self::write)), what it wants sent is taken by [`transmit`](Self::transmit) until nothing
/// comes, and its application gets [`progress`](Self::progress), to which it may answer with more
/// calls.
pub trait Stack: Debug {
    /// A datagram arrives, with the ECN field that it has now.
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]);

    /// The time that was asked for has come.
    fn expire(&mut self, now: Time);

    /// The application writes so many bytes, and says whether they are the last.
    fn write(&mut self, now: Time, bytes: u64, close: bool);

    /// From now on each message has a stream of its own, as in HTTP/3 (RFC 9114); before anything is written.
    /// The client closes when it wants to.
    fn split(&mut self, now: Time);

    /// A client asks on a stream of its own, which is the next one; numbers begin with 0.
    fn ask(&mut self, now: Time, bytes: u64);

    /// A server answers what was asked with this number. Urgency 0 goes first, 7 last.
    fn answer(&mut self, now: Time, number: u32, bytes: u64, urgency: u8);

    /// The number of the next request or answer that has arrived whole, if there is one.
    fn message(&mut self) -> Option<u32>;

    /// Puts the datagrams to send now behind one another into an empty `payload`; nothing where
    /// there are none.
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Burst>;

    /// Whether its application may have to know something after it was asked for datagrams, of which
    /// it knew nothing before.
    fn informs_by_sending(&self) -> bool;

    /// When [`expire`](Self::expire) is to be called; [`Time::NEVER`]: not at all.
    fn deadline(&mut self) -> Time;

    /// What has happened since the last call.
    fn progress(&mut self) -> Progress;

    /// A round trip that was measured since the last call: from sending to the acknowledgement.
    fn round_trip(&mut self) -> Option<Time>;

    /// How many packets were declared lost since the last call.
    fn losses(&mut self) -> u32;

    /// What its sender is doing.
    fn state(&self) -> State;

    /// What our QUIC does at this end, if it has that: into other stacks nobody sees.
    fn inside(&self) -> Option<&aqmlab_quic::Connection> {
        None
    }

    /// Both ends have closed, and this one knows that the other has everything.
    fn is_complete(&self) -> bool;

    /// It will never send anything again.
    fn is_silent(&self) -> bool;
}
