//! What crosses the border to C. `aqmlab-link.h` is generated from this file.
#![expect(
    unsafe_code,
    reason = "the callers of the functions are C: what their pointers point to is theirs to vouch for"
)]

use std::ffi::{CStr, c_char};

use aqmlab_aqm::Reason;
use aqmlab_net::{Ecn, FlowKey, Packet, Time};

use crate::direction::{Direction, Fate};

/// The version of everything in this header.
pub const AQMLAB_LINK_ABI: u32 = 1;

/// The packet is at the far end at `at`.
pub const AQMLAB_LINK_ARRIVES: u32 = 0;
/// The queue has dropped it: its law wanted it to, before the buffer was full.
pub const AQMLAB_LINK_DROPPED_EARLY: u32 = 1;
/// The queue has dropped it: the buffer was full.
pub const AQMLAB_LINK_DROPPED_FULL: u32 = 2;
/// The queue has dropped it for another reason.
pub const AQMLAB_LINK_DROPPED: u32 = 3;
/// The wire has lost it at random.
pub const AQMLAB_LINK_LOST: u32 = 4;

/// When nothing is to come.
pub const AQMLAB_LINK_NEVER: u64 = u64::MAX;

/// One direction of a link with its queue.
#[derive(Debug)]
pub struct AqmlabLink(Direction);

/// A packet that arrives at a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabLinkPacket {
    /// What the caller calls it; it gets it back.
    pub id: u64,
    /// What its flow has in common and other flows have not: a hash of its addresses and ports.
    pub flow: u64,
    /// IP bytes.
    pub size: u32,
    /// The ECN field of the IP header: 0 none, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// The code point of the IP header, 0 to 63.
    pub dscp: u8,
    /// Nothing; 0.
    pub reserved: u16,
}

/// What has become of a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabLinkFate {
    /// What the caller called it.
    pub id: u64,
    /// When, in nanoseconds.
    pub at: u64,
    /// AQMLAB_LINK_ARRIVES and so on.
    pub kind: u32,
    /// The ECN field with which it arrives.
    pub ecn: u8,
    /// Nothing; 0.
    pub reserved: [u8; 3],
}

/// What waits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabLinkState {
    /// Packets in the queue.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Nanoseconds that it takes to send all that waits, the packet on the wire included.
    pub drain: u64,
}

/// The version of the library: AQMLAB_LINK_ABI of the header that fits.
#[unsafe(no_mangle)]
pub const extern "C" fn aqmlab_link_abi() -> u32 {
    AQMLAB_LINK_ABI
}

/// Makes one direction of a link; NULL if its description is wrong.
///
/// `link` is TOML, the fields of `topology.bottleneck` of a scenario, such as
/// "rate = '10 Mbit/s'\ndelay = '10 ms'\ndiscipline = { kind = 'fq-codel' }".
/// `is_reverse` takes the fields of its `reverse`. `seed` is that of all random numbers.
/// Why it is wrong is written into `error`, with a NUL, if that is not NULL: at most
/// `error_size` bytes.
///
/// # Safety
///
/// `link` is a string; `error` is NULL or has `error_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_open(
    link: *const c_char,
    is_reverse: i32,
    seed: u64,
    error: *mut c_char,
    error_size: usize,
) -> *mut AqmlabLink {
    // SAFETY: the caller vouches for the string.
    let text = unsafe { CStr::from_ptr(link) }.to_string_lossy();
    match Direction::open(&text, is_reverse != 0, seed) {
        Ok(direction) => Box::into_raw(Box::new(AqmlabLink(direction))),
        Err(why) => {
            if !error.is_null() && error_size > 0 {
                let shown = &why.as_bytes()[..why.len().min(error_size - 1)];
                // SAFETY: the caller vouches for so many bytes; nothing overlaps what is ours.
                unsafe {
                    error.copy_from_nonoverlapping(shown.as_ptr().cast(), shown.len());
                    *error.add(shown.len()) = 0;
                }
            }
            std::ptr::null_mut()
        }
    }
}

/// The link is of no more use. NULL is left alone.
///
/// # Safety
///
/// `link` is NULL or was made by `aqmlab_link_open`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_close(link: *mut AqmlabLink) {
    if !link.is_null() {
        // SAFETY: it is a box of `aqmlab_link_open`, which the caller gives back.
        drop(unsafe { Box::from_raw(link) });
    }
}

/// A packet arrives at `now`, in nanoseconds since the start. Times never go back: an earlier one counts
/// as the latest that was said.
///
/// # Safety
///
/// `link` is one of `aqmlab_link_open`, `packet` a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_arrive(
    link: *mut AqmlabLink,
    now: u64,
    packet: *const AqmlabLinkPacket,
) {
    // SAFETY: the caller vouches for both.
    let (link, packet) = unsafe { (&mut (*link).0, &*packet) };
    link.advance(Time::from_nanos(now));
    let taken = Packet {
        size: packet.size,
        ecn: Ecn::from_bits(packet.ecn),
        dscp: packet.dscp,
        flow: FlowKey(packet.flow),
    };
    link.arrive(taken, packet.id);
}

/// Goes to `now`: packets leave the queue that are due by then.
///
/// # Safety
///
/// `link` is one of `aqmlab_link_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_advance(link: *mut AqmlabLink, now: u64) {
    // SAFETY: the caller vouches for it.
    unsafe { &mut (*link).0 }.advance(Time::from_nanos(now));
}

/// When a packet leaves the queue next, in nanoseconds: the caller goes there at the latest.
/// AQMLAB_LINK_NEVER if nothing waits.
///
/// # Safety
///
/// `link` is one of `aqmlab_link_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_next(link: *const AqmlabLink) -> u64 {
    // SAFETY: the caller vouches for it.
    match unsafe { &(*link).0 }.next_departure() {
        Time::NEVER => AQMLAB_LINK_NEVER,
        at => at.as_nanos(),
    }
}

/// Takes the next packet of which it is known what has become of it: 1, or 0 if there is none. A
/// packet that arrives may be known before its time `at`.
///
/// # Safety
///
/// `link` is one of `aqmlab_link_open`, `fate` a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_fate(link: *mut AqmlabLink, fate: *mut AqmlabLinkFate) -> i32 {
    // SAFETY: the caller vouches for it.
    let Some((id, found)) = unsafe { &mut (*link).0 }.next_fate() else {
        return 0;
    };
    let (kind, at, ecn) = match found {
        Fate::Arrives(at, ecn) => (AQMLAB_LINK_ARRIVES, at, ecn),
        Fate::Dropped(at, reason) => {
            let kind = match reason {
                it if it == Reason::EARLY => AQMLAB_LINK_DROPPED_EARLY,
                it if it == Reason::OVERFLOW => AQMLAB_LINK_DROPPED_FULL,
                _ => AQMLAB_LINK_DROPPED,
            };
            (kind, at, 0)
        }
        Fate::Lost(at) => (AQMLAB_LINK_LOST, at, 0),
    };
    let answer = AqmlabLinkFate {
        id,
        at: at.as_nanos(),
        kind,
        ecn,
        reserved: [0; 3],
    };
    // SAFETY: the caller vouches for it.
    unsafe { fate.write(answer) };
    1
}

/// What waits at the latest time that was said.
///
/// # Safety
///
/// `link` is one of `aqmlab_link_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqmlab_link_state(link: *mut AqmlabLink) -> AqmlabLinkState {
    // SAFETY: the caller vouches for it.
    let (packets, bytes, drain) = unsafe { &mut (*link).0 }.waiting();
    AqmlabLinkState {
        packets,
        bytes,
        drain: drain.as_nanos(),
    }
}
