//! The story of a connection: what happened on it, and what each event was caused by.

use aqmlab_aqm::Holder;
use aqmlab_net::{Role, Time};
use aqmlab_tcp::Flags;

/// What an event of a story is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryEvent {
    /// An exchange begins.
    Asked,
    /// A segment leaves its end.
    Sent,
    /// It reaches the port of a link.
    AtPort,
    /// It is dropped at a port, or lost.
    Dropped,
    /// It has arrived at the other end, and is the cause of what happens there.
    Arrived,
    /// A part of the response time has passed on the path.
    Part,
    /// The response is complete.
    Answered,
}

impl StoryEvent {
    /// What it is called in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Sent => "sent",
            Self::AtPort => "at-port",
            Self::Dropped => "dropped",
            Self::Arrived => "arrived",
            Self::Part => "part",
            Self::Answered => "answered",
        }
    }
}

/// What a datagram of QUIC has: a bit for each of [`Frames::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames(pub u16);

impl Frames {
    /// Its packets and frames in words, in the order of their bits.
    pub const NAMES: [&str; 13] = [
        "Initial",
        "0-RTT",
        "Handshake",
        "1-RTT",
        "CRYPTO",
        "STREAM",
        "FIN",
        "ACK",
        "PING",
        "MAX_DATA",
        "MAX_STREAMS",
        "HANDSHAKE_DONE",
        "CLOSE",
    ];

    /// The same with what has this name.
    #[must_use]
    pub fn with(self, name: &str) -> Self {
        let bit = Self::NAMES.iter().position(|it| *it == name);
        Self(self.0 | bit.map_or(0, |bit| 1 << bit))
    }
}

/// An event of a story.
#[derive(Clone, Copy, Debug)]
pub struct StoryRow {
    /// Its number, from 1.
    pub number: u64,
    /// The number of the event that caused it; 0: nothing in this story did.
    pub cause: u64,
    /// When.
    pub time: Time,
    /// What.
    pub event: StoryEvent,
    /// The end that sent the segment.
    pub sender: Option<Role>,
    /// The segment: numbers, payload bytes, control bits.
    pub segment: [u64; 3],
    /// Its control bits.
    pub flags: Flags,
    /// What it has instead if it is a datagram of QUIC.
    pub frames: Frames,
    /// Whether its bytes have been sent before.
    pub is_again: bool,
    /// The port where it was dropped.
    pub port: Option<u16>,
    /// Why it was dropped.
    pub reason: &'static str,
    /// The part: its place among those of a [`Breakdown`](crate::Breakdown).
    pub part: Option<u16>,
    /// How long the part took.
    pub duration: Time,
    /// Which part of the port's discipline held the packet longest.
    pub holder: Option<Holder>,
}

impl StoryRow {
    /// An event without a segment.
    pub const fn new(event: StoryEvent, time: Time) -> Self {
        Self {
            number: 0,
            cause: 0,
            time,
            event,
            sender: None,
            segment: [0; 3],
            flags: Flags(0),
            frames: Frames(0),
            is_again: false,
            port: None,
            reason: "",
            part: None,
            duration: Time::ZERO,
            holder: None,
        }
    }

    /// Its control bits in words; of QUIC, its packets and frames.
    pub fn flag_words(&self) -> String {
        const NAMES: [(Flags, &str); 7] = [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::ACK, "ACK"),
            (Flags::ECE, "ECE"),
            (Flags::CWR, "CWR"),
            (Flags::AE, "AE"),
        ];
        let set = NAMES.iter().filter(|(flag, _)| self.flags.has(*flag));
        let frames = (0..).zip(Frames::NAMES);
        let frames = frames.filter(|(bit, _)| self.frames.0 & 1 << bit > 0);
        let words = set
            .map(|(_, name)| *name)
            .chain(frames.map(|(_, name)| name));
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_called_apart() {
        use StoryEvent::{Answered, Arrived, Asked, AtPort, Dropped, Part, Sent};
        let names = [Asked, Sent, AtPort, Dropped, Arrived, Part, Answered].map(StoryEvent::name);
        let words = "asked sent at-port dropped arrived part answered";
        assert_eq!(names.join(" "), words);
    }

    #[test]
    fn control_bits_and_frames_are_said_in_their_order() {
        let mut row = StoryRow::new(StoryEvent::Sent, Time::ZERO);
        assert_eq!(row.flag_words(), "");
        row.flags = Flags(Flags::ACK.0 | Flags::SYN.0 | Flags::ECE.0);
        assert_eq!(row.flag_words(), "SYN ACK ECE");
        row.flags = Flags(0);
        for name in [
            "FIN", "1-RTT", "STREAM", "CLOSE", "Initial", "FIN", "no frame",
        ] {
            row.frames = row.frames.with(name);
        }
        assert_eq!(row.flag_words(), "Initial 1-RTT STREAM FIN CLOSE");
        for name in Frames::NAMES {
            row.frames = Frames::default().with(name);
            assert_eq!(row.flag_words(), name);
        }
    }
}
