//! What is on its way between stacks over datagrams.

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
