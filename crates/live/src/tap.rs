//! A capture of what crosses the link, as pcapng: every packet when it reaches the queue, with a
//! comment that says what became of it.
//!
//! A packet is written once that is known.

use std::io::{self, BufWriter, Write};

use aqmlab_aqm::{Counters, Reason};
use aqmlab_capture::{CaptureWriter, Checksums};
use aqmlab_link::{Dropped, Transmission};
use aqmlab_net::{Ecn, Time};

use crate::writing::{Feed, Sink, Writing};

/// The interfaces: the directions to the program and from it.
const INTERFACES: [&str; 2] = ["down", "up"];

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It left the queue, as it came or with a new mark.
    Sent { marked: bool },
    /// The discipline dropped it.
    Dropped,
    /// The wire lost it.
    Lost,
}

#[derive(Debug)]
pub(crate) struct Captured {
    interface: u32,
    /// As much of the packet as is written, and its size.
    bytes: Box<[u8]>,
    size: u32,
    comment: String,
}

/// One direction's way into the capture.
#[derive(Debug)]
pub(crate) struct Tap {
    feed: Feed<Captured>,
    interface: u32,
    snap: usize,
    /// What was counted when the discipline dropped or marked last.
    dropped: [u64; Reason::MOST],
    marked: [u64; Reason::MOST],
    /// Why it did.
    drop_reason: String,
    mark_reason: String,
}

impl Tap {
    /// Begins a capture of at most `snap` bytes of each packet; a tap for each direction, and the
    /// thread that writes.
    pub(crate) fn start(
        out: Box<dyn Write + Send>,
        snap: u32,
    ) -> io::Result<([Self; 2], Writing<io::Error>)> {
        let out = BufWriter::new(out);
        let writer = CaptureWriter::new(out, &INTERFACES, snap, Checksums::Valid)?;
        let (feeds, writing) = Writing::start(Capture(writer));
        let mut interfaces = 0..;
        let taps = feeds.map(|feed| Self {
            feed,
            interface: interfaces.next().unwrap_or_default(),
            snap: snap as usize,
            dropped: [0; Reason::MOST],
            marked: [0; Reason::MOST],
            drop_reason: String::new(),
            mark_reason: String::new(),
        });
        Ok((taps, writing))
    }

    /// Whether it matters why the discipline has decided as it has.
    pub(crate) fn wants_reasons<T>(sent: Option<&Transmission>, dropped: &[Dropped<T>]) -> bool {
        let is_signal = |sent: &Transmission| {
            matches!(
                sent,
                Transmission::Dropped(_) | Transmission::Arrives(_, Ecn::Ce)
            )
        };
        !dropped.is_empty() || sent.is_some_and(is_signal)
    }

    /// What the discipline has counted, just after it has dropped or marked.
    pub(crate) fn note(&mut self, counters: &Counters) {
        for (now, before, reason) in [
            (&counters.dropped, &mut self.dropped, &mut self.drop_reason),
            (&counters.marked, &mut self.marked, &mut self.mark_reason),
        ] {
            let grown = counters
                .reasons
                .iter()
                .filter(|reason| now[reason.index()] > before[reason.index()]);
            let names: Vec<_> = grown.map(|reason| reason.name()).collect();
            if !names.is_empty() {
                *reason = names.join(" or ");
            }
            *before = *now;
        }
    }

    /// It is known at `now` what became of a packet that reached the queue at `reached`.
    pub(crate) fn take(&self, (reached, now): (Time, Time), bytes: &[u8], fate: Fate) {
        let captured = Captured {
            interface: self.interface,
            bytes: bytes[..bytes.len().min(self.snap)].into(),
            size: bytes.len() as u32,
            comment: self.comment(now.saturating_sub(reached), fate),
        };
        self.feed.put(reached, captured);
    }

    fn comment(&self, waited: Time, fate: Fate) -> String {
        let wait = format!("{:.3} ms", 1e3 * waited.as_secs_f64());
        match fate {
            Fate::Sent { marked: false } => format!("waited {wait}"),
            Fate::Sent { marked: true } => format!("marked ({}), waited {wait}", self.mark_reason),
            Fate::Dropped => format!("dropped ({}) after {wait}", self.drop_reason),
            Fate::Lost => format!("lost on the wire, waited {wait}"),
        }
    }
}

/// The file.
struct Capture(CaptureWriter<BufWriter<Box<dyn Write + Send>>>);

impl Sink<Captured> for Capture {
    type Error = io::Error;

    fn put(&mut self, at: Time, packet: Captured) -> io::Result<()> {
        let Captured {
            interface,
            bytes,
            size,
            comment,
        } = packet;
        let place = (at, interface);
        self.0.write_bytes(place, &bytes, size, &comment)
    }

    fn end(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_say_what_became_of_a_packet() {
        let ([mut tap, _], writing) = Tap::start(Box::new(io::sink()), 64).unwrap();
        const REASONS: &[Reason] = &[Reason::EARLY, Reason::OVERFLOW];
        let mut counters = Counters::new(REASONS);
        let waited = Time::from_micros(12_345);
        assert_eq!(
            tap.comment(waited, Fate::Sent { marked: false }),
            "waited 12.345 ms"
        );
        counters.dropped[Reason::OVERFLOW.index()] = 2;
        tap.note(&counters);
        let comment = tap.comment(Time::ZERO, Fate::Dropped);
        assert_eq!(comment, "dropped (overflow) after 0.000 ms");
        counters.dropped[Reason::EARLY.index()] = 1;
        counters.marked[Reason::EARLY.index()] = 1;
        tap.note(&counters);
        assert_eq!(
            tap.comment(waited, Fate::Dropped),
            "dropped (early) after 12.345 ms"
        );
        let comment = tap.comment(waited, Fate::Sent { marked: true });
        assert_eq!(comment, "marked (early), waited 12.345 ms");
        drop(tap);
        drop(writing);
    }
}
