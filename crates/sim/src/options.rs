//! TCP options of segments on their way, kept aside: most segments have none.

use aqmlab_tcp::Options;

/// Which options a segment has: 0 for none, so that an event says it in a word. Its highest bit is a
/// control bit that finds no room elsewhere ([`HAS_AE`]).
pub(crate) type Ticket = u32;

/// A segment with [`Flags::AE`](aqmlab_tcp::Flags::AE), whatever its options.
pub(crate) const HAS_AE: Ticket = 1 << 31;

/// The ticket of a segment without options.
pub(crate) const NO_OPTIONS: Ticket = 0;

/// The options of the segments on their way.
#[derive(Debug, Default)]
pub(crate) struct OptionsAside {
    kept: Vec<Options>,
    free: Vec<Ticket>,
}

impl OptionsAside {
    /// Keeps the options of a segment.
    #[inline(always)]
    pub(crate) fn put(&mut self, options: &Options) -> Ticket {
        if options.is_empty() {
            NO_OPTIONS
        } else {
            self.keep(options)
        }
    }

    /// Keeps them, even if there are none.
    #[inline]
    pub(crate) fn keep(&mut self, options: &Options) -> Ticket {
        if let Some(ticket) = self.free.pop() {
            self.kept[ticket as usize - 1] = *options;
            return ticket;
        }
        self.kept.push(*options);
        self.kept.len() as Ticket
    }

    /// Bytes that they add to the segment's header.
    #[inline(always)]
    pub(crate) fn len(&self, ticket: Ticket) -> u32 {
        match ticket {
            NO_OPTIONS => 0,
            ticket => self.peek(ticket).extra_len(),
        }
    }

    /// Whether there are any, also behind a ticket.
    #[inline(always)]
    pub(crate) fn has_any(&self, ticket: Ticket) -> bool {
        match ticket & !HAS_AE {
            NO_OPTIONS => false,
            ticket => !self.kept[ticket as usize - 1].is_empty(),
        }
    }

    /// Reads them, and keeps them.
    pub(crate) fn peek(&self, ticket: Ticket) -> Options {
        match ticket & !HAS_AE {
            NO_OPTIONS => Options::NONE,
            ticket => self.kept[ticket as usize - 1],
        }
    }

    /// Hands them back, or forgets them.
    #[inline(always)]
    pub(crate) fn take(&mut self, ticket: Ticket) -> Options {
        if ticket == NO_OPTIONS {
            return Options::NONE;
        }
        self.take_kept(ticket)
    }

    fn take_kept(&mut self, ticket: Ticket) -> Options {
        let ticket = ticket & !HAS_AE;
        if ticket == NO_OPTIONS {
            return Options::NONE;
        }
        self.free.push(ticket);
        self.kept[ticket as usize - 1]
    }
}
