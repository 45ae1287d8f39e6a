//! The records that cross the border to code in other languages. `aqmlab.h` is generated from this
//! file; see there for the rules.
#![expect(
    unsafe_code,
    reason = "calls of the function pointers of random draws: the pointer beside them is set for \
              the length of a closure, and calls outside of one meet a function that ignores it"
)]

use std::ffi::{c_char, c_void};
use std::ptr;

/// The version of everything in this header.
pub const AQMLAB_ABI: u32 = 2;

/// The packet is let in, or sent.
pub const AQMLAB_ADMIT: i64 = 0;
/// Congestion is signalled: a mark where ECN is on and the packet capable, else a drop.
pub const AQMLAB_SIGNAL: i64 = 1;
/// The packet is dropped, whatever ECN allows; counted as `early`.
pub const AQMLAB_DROP: i64 = 2;
/// The same, counted as `forced`: the algorithm is past the point where it only drops.
pub const AQMLAB_FORCE: i64 = 3;

/// Duplicate ACKs, or SACK.
pub const AQMLAB_LOSS: i64 = 0;
/// The receiver has echoed a mark.
pub const AQMLAB_ECHO: i64 = 1;
/// The retransmission timer has expired.
pub const AQMLAB_TIMEOUT: i64 = 2;

/// A double.
pub const AQMLAB_NUMBER: u32 = 0;
/// An int64_t.
pub const AQMLAB_INTEGER: u32 = 1;
/// An int64_t, 0 or 1.
pub const AQMLAB_BOOLEAN: u32 = 2;
/// An int64_t of nanoseconds; in scenarios "5 ms".
pub const AQMLAB_TIME: u32 = 3;
/// An int64_t; in scenarios "1500 bytes".
pub const AQMLAB_BYTES: u32 = 4;
/// An int64_t of bits per second; in scenarios "10 Mbit/s".
pub const AQMLAB_RATE: u32 = 5;
/// A double; in scenarios "5 packets".
pub const AQMLAB_PACKETS: u32 = 6;

/// A parameter that every scenario must give.
pub const AQMLAB_REQUIRED: u32 = 0;
/// A parameter with a default.
pub const AQMLAB_OPTIONAL: u32 = 1;
/// A variable: records show it, and it is no parameter.
pub const AQMLAB_VARIABLE: u32 = 2;

/// Functions of mathematics that give the same bytes on every machine.
#[repr(C)]
#[derive(Debug)]
pub struct AqmlabMath {
    /// x to the power of y.
    pub pow: extern "C" fn(f64, f64) -> f64,
    /// The cube root of x.
    pub cbrt: extern "C" fn(f64) -> f64,
    /// e to the power of x.
    pub exp: extern "C" fn(f64) -> f64,
    /// The natural logarithm of x.
    pub log: extern "C" fn(f64) -> f64,
}

static MATH: AqmlabMath = AqmlabMath {
    pow: aqmlab_pow,
    cbrt: aqmlab_cbrt,
    exp: aqmlab_exp,
    log: aqmlab_log,
};

impl Default for &'static AqmlabMath {
    fn default() -> Self {
        &MATH
    }
}

/// What happens at a queue. Times are nanoseconds since the start of the run.
#[repr(C)]
#[derive(Debug)]
pub struct AqmlabEvent {
    /// When it happens; for on_idle, since when nothing is sent.
    pub now: i64,
    /// When the packet came (on_departure, on_head).
    pub arrived: i64,
    /// The flow of the packet; hash it.
    pub flow: u64,
    /// IP bytes of the packet.
    pub size: i64,
    /// Its ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    pub ecn: i64,
    /// Its differentiated services code point.
    pub dscp: i64,
    /// Whether a signal to it would be a mark.
    pub marks: i64,
    /// Packets that wait, without this one.
    pub packets: i64,
    /// Their IP bytes.
    pub bytes: i64,
    /// The number of the packet's queue (on_head).
    pub queue: i64,
    /// Packets that wait in that queue, without this one.
    pub queue_packets: i64,
    /// Their IP bytes.
    pub queue_bytes: i64,
    /// Bits per second of the link.
    pub rate: i64,
    /// Bytes on the wire beside the IP bytes of each packet.
    pub framing: i64,
    /// For hash functions: another number in every run and at every queue.
    pub seed: u64,
    /// Functions of mathematics.
    pub math: &'static AqmlabMath,
    draw: extern "C" fn(*mut c_void) -> f64,
    stream: *mut c_void,
    nan: i64,
}

// SAFETY: the pointer is null except during a call of `with_draws`, which borrows the event
// exclusively and hands it on by reference.
unsafe impl Send for AqmlabEvent {}
// SAFETY: as above; a shared event outside of a call has no stream to draw from.
unsafe impl Sync for AqmlabEvent {}

extern "C" fn no_draw(_: *mut c_void) -> f64 {
    0.0
}

extern "C" fn draw_from<D: FnMut() -> f64>(stream: *mut c_void) -> f64 {
    // SAFETY: `with_draws` sets this function together with a pointer to a `D` that it borrows
    // exclusively and that outlives the call.
    unsafe { (*stream.cast::<D>())() }
}

impl Default for AqmlabEvent {
    fn default() -> Self {
        Self {
            now: 0,
            arrived: 0,
            flow: 0,
            size: 0,
            ecn: 0,
            dscp: 0,
            marks: 0,
            packets: 0,
            bytes: 0,
            queue: 0,
            queue_packets: 0,
            queue_bytes: 0,
            rate: 0,
            framing: 0,
            seed: 0,
            math: &MATH,
            draw: no_draw,
            stream: ptr::null_mut(),
            nan: 0,
        }
    }
}

impl Clone for AqmlabEvent {
    /// Without its stream of random numbers.
    fn clone(&self) -> Self {
        Self {
            draw: no_draw,
            stream: ptr::null_mut(),
            ..*self
        }
    }
}

impl AqmlabEvent {
    /// Lends the event a stream of random numbers while `work` is done.
    #[inline]
    pub fn with_draws<D: FnMut() -> f64, R>(
        &mut self,
        draws: &mut D,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        (self.draw, self.stream) = (draw_from::<D>, ptr::from_mut(draws).cast());
        let result = work(self);
        (self.draw, self.stream) = (no_draw, ptr::null_mut());
        result
    }

    /// Where in the record compiled callbacks note that a probability was not a number.
    pub const NAN: usize = std::mem::offset_of!(Self, nan);

    /// Whether a probability was not a number, which is forgotten.
    #[inline]
    pub fn take_nan(&mut self) -> bool {
        std::mem::take(&mut self.nan) != 0
    }

    /// Whether there are random numbers to draw.
    pub fn has_draws(&self) -> bool {
        !self.stream.is_null()
    }

    /// The next random number, uniform on [0, 1); 0 where there is none to draw.
    pub fn draw(&mut self) -> f64 {
        (self.draw)(self.stream)
    }
}

/// What happens to a sender. Times are nanoseconds since the start of the run.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct AqmlabAck {
    /// When it happens.
    pub now: i64,
    /// Bytes that the ACK acknowledges.
    pub acked: i64,
    /// The oldest byte not acknowledged, from now on (on_send: the first byte sent).
    pub una: i64,
    /// Behind the highest byte sent (on_send: behind the last byte sent now).
    pub max: i64,
    /// The round trip that this ACK measures; -1: none.
    pub rtt: i64,
    /// Segments in flight, as far as they are known to be (before what is sent now).
    pub segments: i64,
    /// Bytes in flight (on_loss, on_timeout).
    pub flight: i64,
    /// Bytes of a full segment.
    pub mss: i64,
    /// AQMLAB_LOSS, AQMLAB_ECHO or AQMLAB_TIMEOUT.
    pub cause: i64,
    /// Whether the segment was sent before (on_send).
    pub resent: i64,
    /// Whether the window is below the slow-start threshold (on_ack).
    pub slow_start: i64,
    /// The window in bytes to which Reno would open it now (on_ack).
    pub reno: f64,
    /// Bytes that the stack takes a decrease of: those in flight, or the window (on_loss).
    pub base: f64,
    /// The congestion window in bytes; on_ack sets it.
    pub cwnd: f64,
    /// The slow-start threshold in bytes; on_ack, on_loss and on_timeout set it. After a loss the
    /// window is this.
    pub ssthresh: f64,
    /// Bytes per second at which segments leave; 0: as the window allows.
    pub pacing: f64,
    /// Functions of mathematics.
    pub math: &'static AqmlabMath,
}

/// A parameter or a variable: a value of eight bytes in the record of an instance.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabField {
    /// Its name in scenarios and records.
    pub name: *const c_char,
    /// What it means, in a sentence.
    pub meaning: *const c_char,
    /// AQMLAB_NUMBER and so on.
    pub form: u32,
    /// AQMLAB_REQUIRED, AQMLAB_OPTIONAL or AQMLAB_VARIABLE.
    pub role: u32,
    /// Where it is in the record, in bytes: a multiple of 8.
    pub offset: u64,
    /// The default of an optional parameter, or what a variable begins with.
    pub preset: f64,
}

/// A callback about a queue. What it returns depends on the callback.
pub type AqmlabOnEvent = Option<extern "C" fn(*mut c_void, *mut AqmlabEvent) -> i64>;

/// A callback about a sender. What it returns does not matter.
pub type AqmlabOnAck = Option<extern "C" fn(*mut c_void, *mut AqmlabAck) -> i64>;

/// What every plug-in says of itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabHead {
    /// AQMLAB_ABI.
    pub abi: u32,
    /// sizeof(AqmlabDiscipline) or sizeof(AqmlabControl).
    pub size: u32,
    /// sizeof(AqmlabEvent) or sizeof(AqmlabAck).
    pub event_size: u32,
    /// sizeof(AqmlabField).
    pub field_size: u32,
    /// Its name in scenarios.
    pub name: *const c_char,
    /// What it is for, in a sentence.
    pub purpose: *const c_char,
    /// Bytes of the record of an instance. It is zeroed, then the fields are set, then `start` is
    /// called. It is moved and copied as bytes: it must not point to itself or own anything.
    pub record_size: u64,
    /// Its parameters and variables.
    pub fields: *const AqmlabField,
    /// How many.
    pub field_count: u64,
}

/// A queue discipline. Callbacks that are not needed are null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabDiscipline {
    /// Name, parameters, variables.
    pub head: AqmlabHead,
    /// The queue is empty and the wire quiet. Returns when `tick` is due, a time after now, or a
    /// negative number for never; anything without `tick`.
    pub start: AqmlabOnEvent,
    /// A packet arrives. Returns AQMLAB_ADMIT and so on. The limit is seen to afterwards.
    pub on_arrival: AqmlabOnEvent,
    /// A packet that was let in did not fit and is dropped.
    pub on_overflow: AqmlabOnEvent,
    /// A packet leaves for the wire.
    pub on_departure: AqmlabOnEvent,
    /// Nothing waits and the wire is quiet.
    pub on_idle: AqmlabOnEvent,
    /// It is the time that `start` or `tick` returned last. Returns the next, a time after now, or a
    /// negative number for never.
    pub tick: AqmlabOnEvent,
    /// The rate of the link has changed.
    pub on_link: AqmlabOnEvent,
    /// Parameters have changed.
    pub on_change: AqmlabOnEvent,
    /// The number of the queue that a packet joins, from 0 to 65535.
    pub enqueue: AqmlabOnEvent,
    /// Something waits: the number of the queue to serve, which must not be empty.
    pub dequeue: AqmlabOnEvent,
    /// A packet has come to the head of its queue and would be sent. Returns AQMLAB_ADMIT and so
    /// on; what is dropped gives way to the next.
    pub on_head: AqmlabOnEvent,
}

/// A congestion control. Callbacks that are not needed are null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AqmlabControl {
    /// Name, parameters, variables.
    pub head: AqmlabHead,
    /// A connection begins.
    pub start: AqmlabOnAck,
    /// New data is acknowledged and no loss is being repaired. Null: Reno's growth.
    pub on_ack: AqmlabOnAck,
    /// New data is acknowledged while a loss is repaired.
    pub on_recovery_ack: AqmlabOnAck,
    /// A segment leaves.
    pub on_send: AqmlabOnAck,
    /// Congestion, except time-outs. Null: half.
    pub on_loss: AqmlabOnAck,
    /// The retransmission timer has expired. Null: as on_loss.
    pub on_timeout: AqmlabOnAck,
    /// The last congestion was none.
    pub on_undo: AqmlabOnAck,
}

/// x to the power of y, the same on every machine.
pub extern "C" fn aqmlab_pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The cube root of x, the same on every machine.
pub extern "C" fn aqmlab_cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// e to the power of x, the same on every machine.
pub extern "C" fn aqmlab_exp(x: f64) -> f64 {
    libm::exp(x)
}

/// The natural logarithm of x, the same on every machine.
pub extern "C" fn aqmlab_log(x: f64) -> f64 {
    libm::log(x)
}
