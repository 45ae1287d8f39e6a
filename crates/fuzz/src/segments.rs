//! Any segments at any times, to an end point with any of the stacks: it never panics, never counts
//! as acknowledged or in flight what was not written, and delivers only bytes that came.

use aqmlab_net::{Ecn, Time};
use aqmlab_tcp::{
    CongestionControlKind, Context, Endpoint, Flags, HostClock, Options, Profile, Segment,
};

/// What the application writes once the handshake is done.
const WRITTEN: u64 = 100_000;

/// Bytes of the input that make a segment.
const CHUNK: usize = 16;

/// Segments to an end point.
pub fn check(input: &[u8]) {
    let Some((&[stack, role], chunks)) = input.split_first_chunk::<2>() else {
        return;
    };
    let name = Profile::NAMES[usize::from(stack) % Profile::NAMES.len()];
    let mut profile = Profile::named(name).expect("a name from the list");
    // The bit says the role, the others a congestion control; 0 is the profile's own.
    if let Some(control) = CongestionControlKind::all().get(usize::from(role >> 1).wrapping_sub(1))
    {
        let other = Profile {
            congestion_control: *control,
            ..profile.clone()
        };
        profile = if other.check().is_ok() {
            other
        } else {
            profile
        };
    }
    let host = HostClock::default();
    let at = |now| Context {
        now,
        profile: &profile,
        host: &host,
    };
    let mut out = Vec::new();
    let mut end = if role & 1 == 0 {
        Endpoint::connect(at(Time::ZERO), &mut out)
    } else {
        Endpoint::listen(&profile)
    };
    let (mut now, mut offered, mut received) = (Time::ZERO, 0, 0);
    for chunk in chunks.chunks_exact(CHUNK) {
        let word = |at: usize| u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], 0]);
        now += Time::from_millis(u64::from(chunk[0]) << (chunk[1] & 7));
        if end.wake_at() <= now {
            received += end.on_timer(at(now), &mut out).received;
        }
        let mut options = Options::NONE;
        if chunk[2] & 1 == 1 {
            options.permit_sack();
        }
        if chunk[2] & 2 == 2 {
            options.push_sack_block(u64::from(word(11)), u64::from(word(13)));
        }
        // Numbers near the edges of what was received and sent: data and FINs below the window, too.
        let near = |at: usize, edge: u64| edge.saturating_add_signed(i64::from(word(at) as i16));
        let segment = Segment {
            seq: match chunk[1] & 16 {
                0 => u64::from(word(3)),
                _ => near(3, end.next_expected()),
            },
            ack: match chunk[1] & 32 {
                0 => u64::from(word(6)),
                _ => near(6, end.oldest_unacknowledged()),
            },
            len: word(9) & 0x7ff,
            flags: Flags(chunk[2] >> 2),
            ecn: if chunk[1] & 8 == 8 {
                Ecn::Ce
            } else {
                Ecn::Ect0
            },
            options,
        };
        offered += u64::from(segment.len) + 1;
        let events = end.on_segment(&segment, at(now), &mut out);
        received += events.received;
        if events.established {
            end.write(WRITTEN, at(now), &mut out);
            end.close(at(now), &mut out);
        }
        assert!(
            received <= offered,
            "{received} bytes delivered of {offered}"
        );
        // SYN and FIN count as one each.
        let sent = end.oldest_unacknowledged() + end.in_flight();
        assert!(sent <= WRITTEN + 2, "{sent}");
        out.clear();
    }
}
