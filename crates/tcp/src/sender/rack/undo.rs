//! What proved wrong is taken back: time-outs that only a delay caused (F-RTO, RFC 5682), and
//! reductions for segments that had not been lost (D-SACK, RFC 3708; Eifel, RFC 3522 and RFC 4015).

use aqmlab_net::Time;

/// The window of before a reduction, and what would show that it was not called for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The oldest byte that was out at the reduction; none: there is nothing to take back.
    pub(super) marker: Option<u64>,
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    /// Segments sent again since, and how many of them the peer had already.
    resent: u32,
    duplicates: u32,
    /// When the first of them was sent again.
    first_resent: Option<Time>,
    /// A mark has come: the window does not come back (Linux).
    pub(super) is_forbidden: bool,
}

impl Undo {
    /// A reduction begins with `una` the oldest byte that is out.
    pub(super) fn new(una: u64, cwnd: u64, ssthresh: u64) -> Self {
        Self {
            marker: Some(una),
            cwnd,
            ssthresh,
            ..Self::default()
        }
    }

    /// So many segments have been sent again before, and are out.
    pub(super) fn with_resent(mut self, resent: u32) -> Self {
        self.resent = resent;
        self
    }

    /// When the first segment was sent again.
    pub(super) fn first_resent(&self) -> Option<Time> {
        self.first_resent
    }

    /// Something has been sent again since `first` already.
    pub(super) fn since(mut self, first: Option<Time>) -> Self {
        self.first_resent = first;
        self
    }

    /// The window of before does not come back.
    pub(super) fn forbid(&mut self) {
        self.is_forbidden = true;
    }

    /// A segment is sent again.
    pub(super) fn on_resend(&mut self, now: Time) {
        self.resent += 1;
        self.first_resent.get_or_insert(now);
    }

    /// The peer had got the segment at `seq` before.
    pub(super) fn on_duplicate(&mut self, seq: u64) {
        if self.marker.is_some_and(|marker| seq >= marker) {
            self.duplicates += 1;
        }
    }

    /// Everything that was sent again had arrived.
    pub(super) fn is_shown_by_duplicates(&self) -> bool {
        self.resent > 0 && self.duplicates >= self.resent
    }

    /// Nothing has been sent again since.
    pub(super) fn has_resent_nothing(&self) -> bool {
        self.first_resent.is_none()
    }

    /// What the peer has acknowledged was sent before anything was sent again.
    pub(super) fn is_shown_by_stamp(&self, echoed: Option<Time>) -> bool {
        let millis = |time: Time| time.as_nanos() / 1_000_000;
        match (echoed, self.first_resent) {
            (Some(echoed), Some(first)) => millis(echoed) < millis(first),
            _ => false,
        }
    }
}

/// Where F-RTO stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Spurious {
    /// It is not in use, or has decided.
    #[default]
    Settled,
    /// The first ACK after the time-out is awaited.
    First,
    /// New segments are to be sent, so many still.
    Probing(u8),
    /// The second ACK is awaited.
    Second,
    /// It is awaited, and what is lost goes again all the same: pacing has put it off (Linux).
    Paced,
}
