//! What can happen, in 20 bytes: with its time and its link an event of the wheel fills half a
//! cache line.

use aqmlab_net::{Ecn, Role};
use aqmlab_tcp::{Flags, Segment};

use crate::options::{BARE, HAS_AE, MARKS, NO_OPTIONS, Ticket};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A segment sent by this side reaches a port.
    AtPort(Role),
    /// A segment sent by this side reaches the other end.
    AtHost(Role),
    /// A timer of this side of a connection may be due.
    Timer(Role),
    /// The application of this side of a connection ends its pause.
    Resume(Role),
    /// A traffic source asked to be woken.
    Source,
    /// A connection ends.
    Stop,
    /// Something changes because a congestion control has entered a phase.
    Change,
}

impl Kind {
    /// Two bytes of an enum in an enum become one.
    const fn pack(self) -> u8 {
        match self {
            Self::AtPort(side) => side as u8,
            Self::AtHost(side) => 2 | side as u8,
            Self::Timer(side) => 4 | side as u8,
            Self::Resume(side) => 6 | side as u8,
            Self::Source => 8,
            Self::Stop => 9,
            Self::Change => 10,
        }
    }

    const fn unpack(code: u8) -> Self {
        let side = Role::from_bit(code);
        match code {
            0 | 1 => Self::AtPort(side),
            2 | 3 => Self::AtHost(side),
            4 | 5 => Self::Timer(side),
            6 | 7 => Self::Resume(side),
            8 => Self::Source,
            9 => Self::Stop,
            _ => Self::Change,
        }
    }
}

/// An event without its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// The connection; of a source's event, the class; of a change, its number.
    pub(crate) conn: u32,
    /// Sequence number of a segment, cut to 32 bits; of a source's event, its token; of a
    /// datagram, its flow.
    pub(crate) seq: u32,
    /// Acknowledgement number of a segment, cut to 32 bits; of a datagram, its number in its flow; of a connection's event, which of
    /// the connections that used the slot is meant (timers outlive connections).
    pub(crate) ack: u32,
    /// The segment's options, which are kept aside.
    pub(crate) options: Ticket,
    pub(crate) len: u16,
    /// Control bits of a segment and, above them, its ECN field.
    bits: u8,
    kind: u8,
}

/// Where the ECN field begins in `bits`: behind the six control bits.
const ECN_SHIFT: u8 = 6;
const CONTROL_BITS: u8 = (1 << ECN_SHIFT) - 1;
/// The seventh control bit is that of `options`: [`HAS_AE`].
const AE_SHIFT: u32 = HAS_AE.trailing_zeros() - Flags::AE.0.trailing_zeros();

/// Where the number of the hop begins in `kind`.
const HOP_SHIFT: u8 = 4;

impl Event {
    #[inline]
    pub(crate) const fn segment(kind: Kind, conn: u32, segment: &Segment, options: Ticket) -> Self {
        Self {
            conn,
            seq: segment.seq as u32,
            ack: segment.ack as u32,
            options: options | (((segment.flags.0 & Flags::AE.0) as u32) << AE_SHIFT),
            len: segment.len as u16,
            bits: (segment.flags.0 & CONTROL_BITS) | (segment.ecn as u8) << ECN_SHIFT,
            kind: kind.pack(),
        }
    }

    /// A datagram with `len` bytes of payload on its way to the bottleneck: of which flow, and its
    /// number there.
    pub(crate) const fn datagram(
        sender: Role,
        conn: u32,
        (flow, number): (u32, u32),
        (len, ecn): (u16, Ecn),
    ) -> Self {
        Self {
            conn,
            seq: flow,
            ack: number,
            options: 0,
            len,
            bits: (ecn as u8) << ECN_SHIFT,
            kind: Kind::AtPort(sender).pack(),
        }
    }

    pub(crate) const fn connection(kind: Kind, conn: u32, generation: u32) -> Self {
        Self {
            conn,
            seq: 0,
            ack: generation,
            options: 0,
            len: 0,
            bits: 0,
            kind: kind.pack(),
        }
    }

    pub(crate) const fn source(class: u32, token: u32) -> Self {
        Self {
            conn: class,
            seq: token,
            ack: 0,
            options: 0,
            len: 0,
            bits: 0,
            kind: Kind::Source.pack(),
        }
    }

    pub(crate) const fn change(number: u32) -> Self {
        Self::connection(Kind::Change, number, 0)
    }

    /// The segment goes on: it is now to reach this hop of its path, with this ECN field.
    pub(crate) const fn hopped_on(self, sender: Role, ecn: Ecn, hop: u8) -> Self {
        Self {
            bits: (self.bits & CONTROL_BITS) | (ecn as u8) << ECN_SHIFT,
            kind: Kind::AtPort(sender).pack() | hop << HOP_SHIFT,
            ..self
        }
    }

    /// The segment goes on: it is now to reach the other end, with this ECN field.
    pub(crate) const fn passed_on(self, sender: Role, ecn: Ecn) -> Self {
        Self {
            bits: (self.bits & CONTROL_BITS) | (ecn as u8) << ECN_SHIFT,
            kind: Kind::AtHost(sender).pack(),
            ..self
        }
    }

    pub(crate) const fn kind(&self) -> Kind {
        Kind::unpack(self.kind & ((1 << HOP_SHIFT) - 1))
    }

    /// Who sent the packet, if this is one that reaches the other end.
    #[inline(always)]
    pub(crate) const fn arrives_from(&self) -> Option<Role> {
        if self.kind >> 1 == Kind::AtHost(Role::Client).pack() >> 1 {
            Some(Role::from_bit(self.kind))
        } else {
            None
        }
    }

    /// Which port of its path a packet is to reach.
    pub(crate) const fn hop(&self) -> u8 {
        self.kind >> HOP_SHIFT
    }

    /// Who sent the packet.
    pub(crate) const fn sender(&self) -> Role {
        Role::from_bit(self.kind)
    }

    /// Whether a segment has any options.
    #[inline]
    pub(crate) const fn has_options(&self) -> bool {
        self.options & !HAS_AE != NO_OPTIONS
    }

    /// Where its options are kept.
    pub(crate) const fn ticket(&self) -> Ticket {
        self.options & !MARKS
    }

    /// Whether a segment with a ticket has none.
    #[inline]
    pub(crate) const fn is_bare(&self) -> bool {
        self.options & BARE != 0
    }

    pub(crate) const fn flags(&self) -> Flags {
        Flags((self.bits & CONTROL_BITS) | ((self.options >> AE_SHIFT) as u8 & Flags::AE.0))
    }

    pub(crate) const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bits >> ECN_SHIFT)
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.ack
    }

    /// Whether this is a packet on its way.
    pub(crate) const fn is_packet(&self) -> bool {
        matches!(self.kind(), Kind::AtPort(_) | Kind::AtHost(_))
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_scenario::MOST_HOPS;
    use aqmlab_tcp::Options;

    use super::*;

    #[test]
    fn an_event_is_small_and_keeps_what_it_is_given() {
        assert_eq!(size_of::<Event>(), 20);
        let flags = Flags::SYN
            .with(Flags::ACK)
            .with(Flags::ECE)
            .with(Flags::CWR)
            .with(Flags::AE)
            .with(Flags::RST)
            .with(Flags::FIN);
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            let segment = Segment {
                seq: 7,
                ack: 8,
                len: 1460,
                flags,
                ecn,
                options: Options::NONE,
            };
            let event = Event::segment(Kind::AtPort(Role::Server), 3, &segment, 9);
            assert_eq!(event.options, 9 | HAS_AE);
            assert_eq!((event.flags(), event.ecn(), event.len), (flags, ecn, 1460));
            let on = event.passed_on(Role::Server, Ecn::Ce);
            let hop = MOST_HOPS as u8 - 1;
            let hopped = event.hopped_on(Role::Server, Ecn::Ce, hop);
            assert_eq!((hopped.flags(), hopped.ecn()), (flags, Ecn::Ce));
            assert_eq!(
                (hopped.kind(), hopped.hop()),
                (Kind::AtPort(Role::Server), hop)
            );
            assert_eq!(
                (hopped.arrives_from(), on.arrives_from()),
                (None, Some(Role::Server))
            );
            assert_eq!((event.hop(), on.hop()), (0, 0));
            assert_eq!(
                (on.flags(), on.ecn(), on.kind()),
                (flags, Ecn::Ce, Kind::AtHost(Role::Server))
            );
        }
        for side in [Role::Client, Role::Server] {
            for kind in [
                Kind::AtPort(side),
                Kind::AtHost(side),
                Kind::Timer(side),
                Kind::Resume(side),
                Kind::Source,
                Kind::Stop,
                Kind::Change,
            ] {
                assert_eq!(Kind::unpack(kind.pack()), kind);
            }
        }
    }
}
