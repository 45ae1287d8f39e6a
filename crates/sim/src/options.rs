//! TCP options of segments on their way, kept aside: most segments have none.

use aqmlab_tcp::Options;

/// Which options a segment has: 0 for none, so that an event says it in a word. Its highest bit is a
/// control bit that finds no room elsewhere ([`HAS_AE`]).
pub(crate) type Ticket = u32;

/// A segment with [`Flags::AE`](aqmlab_tcp::Flags::AE), whatever its options.
pub(crate) const HAS_AE: Ticket = 1 << 31;

/// A ticket behind which there are no options: it is wanted for another reason.
pub(crate) const BARE: Ticket = 1 << 30;

/// The bits that are no part of a place.
pub(crate) const MARKS: Ticket = HAS_AE | BARE;

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

    /// Gives a ticket even if there are none.
    #[inline(always)]
    pub(crate) fn put_always(&mut self, options: &Options) -> Ticket {
        if !options.is_empty() {
            return self.keep(options);
        }
        let ticket = self.free.pop();
        BARE | ticket.unwrap_or_else(|| self.add(options))
    }

    fn keep(&mut self, options: &Options) -> Ticket {
        if let Some(ticket) = self.free.pop() {
            self.kept[ticket as usize - 1] = *options;
            return ticket;
        }
        self.add(options)
    }

    #[cold]
    fn add(&mut self, options: &Options) -> Ticket {
        self.kept.push(*options);
        self.kept.len() as Ticket
    }

    /// Bytes that they add to the segment's header.
    #[inline(always)]
    pub(crate) fn len(&self, ticket: Ticket) -> u32 {
        match ticket {
            NO_OPTIONS => 0,
            ticket if ticket & BARE != 0 => 0,
            ticket => self.peek(ticket).extra_len(),
        }
    }

    /// Gives a ticket back behind which there are none.
    #[inline(always)]
    pub(crate) fn take_bare(&mut self, ticket: Ticket) {
        self.free.push(ticket & !MARKS);
    }

    /// Reads them, and keeps them.
    pub(crate) fn peek(&self, ticket: Ticket) -> Options {
        match ticket & !HAS_AE {
            NO_OPTIONS => Options::NONE,
            ticket if ticket & BARE != 0 => Options::NONE,
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
        let place = ticket & !MARKS;
        if place == NO_OPTIONS {
            return Options::NONE;
        }
        self.free.push(place);
        match ticket & BARE {
            0 => self.kept[place as usize - 1],
            _ => Options::NONE,
        }
    }
}
