//! One end of a connection.

use aqmlab_net::{Ecn, Time};

use crate::control::Reno;
use crate::profile::{Profile, Recovery};
use crate::receive::Receiver;
use crate::rto::{HostClock, Rto};
use crate::segment::{Flags, Segment};

/// Duplicate ACKs that mean a loss (RFC 5681, section 3.2).
const DUP_THRESH: u32 = 3;

/// What an end point needs to know besides its own state.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The current time.
    pub now: Time,
    /// The stack.
    pub profile: &'a Profile,
    /// The timers of the host that it runs on.
    pub host: &'a HostClock,
}

/// What an input told the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The handshake is complete.
    pub established: bool,
    /// Bytes that became readable.
    pub received: u64,
    /// The peer has closed and everything before that has been received.
    pub eof: bool,
    /// The connection was given up: no answer to the SYN, or to a segment sent too often.
    pub failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Listen,
    SynSent,
    SynReceived,
    Established,
    Failed,
}

/// Segments sent more than once, and the time-outs behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmissions {
    /// SYN and SYN-ACK segments.
    pub syn: u32,
    /// FIN segments without data.
    pub fin: u32,
    /// Segments with data.
    pub data: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
}

/// One end of a connection: handshake, data both ways, close.
///
/// Sans-IO: segments come in through [`on_segment`](Self::on_segment), go out into a vector, and
/// [`wake_at`](Self::wake_at) tells when [`on_timer`](Self::on_timer) wants to be called.
#[derive(Clone, Debug)]
pub struct Endpoint {
    phase: Phase,
    /// The oldest byte not acknowledged.
    una: u64,
    /// The next byte to send; falls back to `una` when losses are repaired by going back.
    nxt: u64,
    /// The highest byte ever sent.
    max: u64,
    /// Behind the last byte that the application has written.
    end: u64,
    closed: bool,
    control: Reno,
    dup_acks: u32,
    receiver: Receiver,
    rto: Rto,
    /// The segment whose round trip is being timed: (sequence number, time sent).
    timed: Option<(u64, Time)>,
    /// `una` at the last time-out: a further one with the same value repeats it.
    timed_out_at: u64,
    retransmit_at: Time,
    give_up_at: Time,
    last_received: Time,
    ecn: EcnSender,
    retransmissions: Retransmissions,
}

/// The sender's side of RFC 3168, section 6.1.2.
#[derive(Clone, Copy, Debug, Default)]
struct EcnSender {
    /// Both ends agreed on ECN.
    agreed: bool,
    /// Echoes are ignored until the peer acknowledges more than this: one cut per window.
    cut_until: u64,
    /// The next new data segment says that the window has been reduced.
    cwr_pending: bool,
    /// An echo found a window of one segment: nothing new is sent until the timer fires.
    hold: bool,
}

impl Endpoint {
    /// An end point that waits for a SYN.
    pub fn listen(profile: &Profile) -> Self {
        Self {
            phase: Phase::Listen,
            una: 0,
            nxt: 1,
            max: 1,
            end: 1,
            closed: false,
            control: Reno::new(profile),
            dup_acks: 0,
            receiver: Receiver::new(),
            rto: Rto::new(profile),
            timed: None,
            timed_out_at: u64::MAX,
            retransmit_at: Time::NEVER,
            give_up_at: Time::NEVER,
            last_received: Time::ZERO,
            ecn: EcnSender::default(),
            retransmissions: Retransmissions::default(),
        }
    }

    /// An end point that opens a connection now.
    pub fn connect(cx: Context<'_>, out: &mut Vec<Segment>) -> Self {
        let mut client = Self {
            phase: Phase::SynSent,
            ..Self::listen(cx.profile)
        };
        client.begin_handshake(cx, out);
        client
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, bytes: u64, cx: Context<'_>, out: &mut Vec<Segment>) {
        self.end += bytes;
        self.output(cx, out);
    }

    /// The application has nothing more to write.
    pub fn close(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        self.closed = true;
        self.output(cx, out);
    }

    /// The earliest time at which [`on_timer`](Self::on_timer) has something to do.
    pub fn wake_at(&self) -> Time {
        self.retransmit_at
            .min(self.receiver.delayed_until)
            .min(self.give_up_at)
    }

    /// Everything sent is acknowledged, the FIN included, and the peer has closed. Such an end
    /// point (TIME-WAIT, or closed) still answers what the peer repeats.
    pub fn is_finished(&self) -> bool {
        self.closed && self.una == self.end + 1 && self.receiver.eof
    }

    /// The congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.control.window()
    }

    /// The slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.control.ssthresh()
    }

    /// Bytes sent and not acknowledged, SYN and FIN counted as one each.
    pub fn in_flight(&self) -> u64 {
        self.max - self.una
    }

    /// The oldest sequence number not acknowledged: restores those that were cut to 32 bits.
    pub fn oldest_unacknowledged(&self) -> u64 {
        self.una
    }

    /// The next sequence number expected from the peer.
    pub fn next_expected(&self) -> u64 {
        self.receiver.next
    }

    /// What was sent more than once so far.
    pub fn retransmissions(&self) -> Retransmissions {
        self.retransmissions
    }

    /// A segment has arrived.
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        cx: Context<'_>,
        out: &mut Vec<Segment>,
    ) -> Events {
        self.last_received = cx.now;
        match self.phase {
            Phase::Listen => self.on_syn(segment, cx, out),
            Phase::SynSent => self.on_syn_ack(segment, cx, out),
            Phase::SynReceived => self.on_handshake_ack(segment, cx, out),
            Phase::Established => self.on_established_segment(segment, cx, out),
            Phase::Failed => Events::default(),
        }
    }

    /// The time of [`wake_at`](Self::wake_at) has come (or a later one).
    pub fn on_timer(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) -> Events {
        if self.give_up_at <= cx.now {
            return self.fail();
        }
        if self.receiver.delayed_until <= cx.now {
            self.receiver.ack_now = true;
            self.receiver.delayed_until = Time::NEVER;
        }
        if self.retransmit_at <= cx.now {
            if self.ecn.hold {
                self.ecn.hold = false;
                self.retransmit_at = Time::NEVER;
            } else {
                return self.on_timeout(cx, out);
            }
        }
        self.output(cx, out);
        Events::default()
    }

    // ---- handshake ----

    fn begin_handshake(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        self.timed = Some((0, cx.now));
        self.give_up_at = cx.now + cx.profile.connect_timeout;
        self.arm(cx);
        self.send_syn(cx, out);
    }

    fn send_syn(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        let flags = match self.phase {
            // RFC 3168, section 6.1.1: an ECN-setup SYN has both bits, its answer only ECE.
            Phase::SynSent if cx.profile.ecn => Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            Phase::SynSent => Flags::SYN,
            _ if self.ecn.agreed => Flags::SYN.with(Flags::ACK).with(Flags::ECE),
            _ => Flags::SYN.with(Flags::ACK),
        };
        out.push(Segment {
            seq: 0,
            ack: self.receiver.next,
            len: 0,
            flags,
            ecn: Ecn::NotEct,
        });
        if flags.has(Flags::ACK) {
            self.receiver.on_ack_sent();
        }
    }

    fn on_syn(&mut self, syn: &Segment, cx: Context<'_>, out: &mut Vec<Segment>) -> Events {
        if syn.flags.has(Flags::SYN) && !syn.flags.has(Flags::ACK) {
            self.phase = Phase::SynReceived;
            self.receiver.on_syn(syn.seq);
            self.ecn.agreed = cx.profile.ecn && syn.flags.has(Flags::ECE.with(Flags::CWR));
            self.begin_handshake(cx, out);
        }
        Events::default()
    }

    fn on_syn_ack(&mut self, segment: &Segment, cx: Context<'_>, out: &mut Vec<Segment>) -> Events {
        if !segment.flags.has(Flags::SYN.with(Flags::ACK)) || segment.ack != 1 {
            return Events::default();
        }
        self.receiver.on_syn(segment.seq);
        // A SYN-ACK with both bits reflects the SYN: no agreement.
        self.ecn.agreed =
            cx.profile.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR);
        self.establish(cx);
        self.receiver.ack_now = true;
        self.output(cx, out);
        Events {
            established: true,
            ..Events::default()
        }
    }

    fn on_handshake_ack(
        &mut self,
        segment: &Segment,
        cx: Context<'_>,
        out: &mut Vec<Segment>,
    ) -> Events {
        if segment.flags.has(Flags::SYN) {
            if cx.profile.answers_repeated_syn {
                self.timed = None;
                self.retransmissions.syn += 1;
                self.send_syn(cx, out);
            }
            return Events::default();
        }
        if !segment.flags.has(Flags::ACK) || segment.ack == 0 {
            return Events::default();
        }
        self.establish(cx);
        if cx.profile.handshake_opens_window {
            self.control.on_ack(1, cx.profile);
        }
        let events = self.on_established_segment(segment, cx, out);
        Events {
            established: true,
            ..events
        }
    }

    fn establish(&mut self, cx: Context<'_>) {
        self.phase = Phase::Established;
        self.una = 1;
        self.retransmit_at = Time::NEVER;
        self.give_up_at = Time::NEVER;
        self.sample_round_trip(1, cx);
        self.rto.on_established(cx.profile);
        // RFC 5681, section 3.1: one segment if a SYN was lost.
        let lost_syn = self.retransmissions.syn > 0;
        let segments = if lost_syn {
            1
        } else {
            cx.profile.initial_window
        };
        self.control.start(segments, cx.profile);
    }

    // ---- established ----

    fn on_established_segment(
        &mut self,
        segment: &Segment,
        cx: Context<'_>,
        out: &mut Vec<Segment>,
    ) -> Events {
        if segment.flags.has(Flags::SYN) {
            // A repeated SYN-ACK: our ACK of it was lost.
            self.receiver.ack_now = true;
            self.output(cx, out);
            return Events::default();
        }
        self.on_ack(segment, cx, out);
        let fin = segment.flags.has(Flags::FIN);
        let mut events = Events::default();
        if segment.len > 0 || fin {
            self.note_congestion_mark(segment);
            let delivered = self.receiver.on_data(
                segment.seq,
                u64::from(segment.len),
                fin,
                cx.now,
                cx.profile,
                cx.host,
            );
            events.received = delivered.bytes;
            events.eof = delivered.eof;
        }
        self.output(cx, out);
        events
    }

    /// RFC 3168, section 6.1.3: CWR is processed before the CE mark of the same segment.
    fn note_congestion_mark(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::CWR) {
            self.receiver.echo = false;
        }
        if segment.ecn == Ecn::Ce && self.ecn.agreed && segment.len > 0 {
            self.receiver.echo = true;
        }
    }

    fn on_ack(&mut self, segment: &Segment, cx: Context<'_>, out: &mut Vec<Segment>) {
        let ack = segment.ack;
        if ack > self.max || !segment.flags.has(Flags::ACK) {
            return;
        }
        let echo = self.ecn.agreed && segment.flags.has(Flags::ECE);
        // The reaction comes before the opening (and takes its place): the flight that is halved
        // still contains what this ACK covers.
        if echo {
            self.on_echo(ack, cx);
        }
        if ack > self.una {
            self.on_new_ack(ack, segment.len == 0, echo, cx);
        } else if ack == self.una && segment.len == 0 && !segment.flags.has(Flags::FIN) {
            self.on_dup_ack(cx, out);
        } else {
            self.dup_acks = 0;
        }
        if self.ecn.hold && self.retransmit_at == Time::NEVER {
            self.arm(cx);
        }
    }

    fn on_new_ack(&mut self, ack: u64, pure: bool, echo: bool, cx: Context<'_>) {
        let recovering = self.dup_acks >= DUP_THRESH && cx.profile.recovery == Recovery::Reno;
        if recovering && self.control.window() > self.control.ssthresh() {
            self.control.set_window(self.control.ssthresh());
        }
        self.dup_acks = 0;
        self.sample_round_trip(ack, cx);
        let opens = if recovering {
            cx.profile.recovery_exit_opens_window
        } else {
            true
        };
        // BSD's header prediction: an in-order pure ACK takes a path that never opens the window
        // once that exceeds the peer's.
        let predicted = cx.profile.window_growth_limited
            && pure
            && self.nxt == self.max
            && self.control.window() >= self.peer_window(cx)
            && !recovering;
        if opens && !predicted && !echo {
            self.control.on_ack(ack - self.una, cx.profile);
        }
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        if self.una == self.max {
            self.retransmit_at = Time::NEVER;
        } else {
            self.arm(cx);
        }
    }

    fn on_dup_ack(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        if self.una == self.max {
            self.dup_acks = 0; // Nothing is outstanding: no loss to tell of.
            return;
        }
        self.dup_acks += 1;
        match (self.dup_acks, cx.profile.recovery) {
            (DUP_THRESH, _) => self.fast_retransmit(cx, out),
            (n, Recovery::Reno) if n > DUP_THRESH => self.control.inflate(cx.profile),
            _ => {}
        }
    }

    /// RFC 5681, section 3.2, steps 2 and 3; Tahoe goes back to slow start instead.
    fn fast_retransmit(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        self.cut(cx);
        let mss = cx.profile.mss.0;
        let resume = self.nxt;
        self.timed = None;
        self.nxt = self.una;
        self.control.set_window(mss);
        self.send_next(cx, out);
        self.arm(cx);
        if cx.profile.recovery == Recovery::Reno {
            let inflated = self.control.ssthresh() + u64::from(DUP_THRESH) * mss;
            self.control.set_window(inflated);
            self.nxt = self.nxt.max(resume);
        }
    }

    /// A congestion event: ssthresh falls, and echoes of this window are ignored.
    fn cut(&mut self, cx: Context<'_>) {
        self.control
            .cut(self.in_flight(), self.peer_window(cx), cx.profile);
        self.ecn.cut_until = self.max;
        self.ecn.cwr_pending = self.ecn.agreed;
    }

    /// RFC 3168, section 6.1.2: an echo halves the window, at most once per window of data.
    fn on_echo(&mut self, ack: u64, cx: Context<'_>) {
        if ack <= self.ecn.cut_until {
            return;
        }
        let mss = cx.profile.mss.0;
        if self.control.window() <= mss {
            self.ecn.hold = true;
            self.ecn.cut_until = self.max;
            self.ecn.cwr_pending = true;
            return;
        }
        self.cut(cx);
        self.control.set_window(self.control.ssthresh());
    }

    fn sample_round_trip(&mut self, ack: u64, cx: Context<'_>) {
        if let Some((seq, sent)) = self.timed
            && ack > seq
        {
            self.rto.sample(cx.profile, cx.host, sent, cx.now);
            self.timed = None;
        }
    }

    // ---- timers ----

    fn arm(&mut self, cx: Context<'_>) {
        self.retransmit_at = self.rto.deadline(cx.profile, cx.host, cx.now);
    }

    fn on_timeout(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) -> Events {
        if u32::from(self.rto.expiries()) >= cx.profile.max_retransmissions {
            return self.fail();
        }
        let repeated = self.timed_out_at == self.una;
        self.timed_out_at = self.una;
        self.retransmissions.timeouts += 1;
        self.rto.back_off(cx.profile);
        self.timed = None; // Karn: what is sent again is not timed.
        self.arm(cx);
        if self.phase != Phase::Established {
            self.retransmissions.syn += 1;
            if let Some(bytes) = cx.profile.syn_timeout_ssthresh {
                let client = self.phase == Phase::SynSent;
                self.control.set_ssthresh(if client {
                    bytes.0
                } else {
                    2 * cx.profile.mss.0
                });
            }
            self.send_syn(cx, out);
            return Events::default();
        }
        if !repeated || cx.profile.repeated_timeout_cuts {
            self.cut(cx);
        }
        self.control.set_window(cx.profile.mss.0);
        self.dup_acks = 0;
        self.nxt = self.una;
        self.output(cx, out);
        Events::default()
    }

    fn fail(&mut self) -> Events {
        self.phase = Phase::Failed;
        self.retransmit_at = Time::NEVER;
        self.give_up_at = Time::NEVER;
        self.receiver.delayed_until = Time::NEVER;
        Events {
            failed: true,
            ..Events::default()
        }
    }

    // ---- output ----

    /// The peer offers its whole buffer, and both ends run the same stack.
    fn peer_window(&self, cx: Context<'_>) -> u64 {
        cx.profile.receive_buffer.0
    }

    /// Sends what window, Nagle's rule and the ACK policy allow.
    fn output(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        if self.phase != Phase::Established {
            return;
        }
        if self.una == self.max && self.end > self.nxt {
            self.restart_after_idle(cx);
        }
        let idle = self.una == self.max;
        while self.may_send(idle, cx) {
            self.send_next(cx, out);
        }
        if self.receiver.ack_now {
            self.send_pure_ack(out);
        }
    }

    /// RFC 5681, section 4.1; BSD counts from the last segment received, as here.
    fn restart_after_idle(&mut self, cx: Context<'_>) {
        let idle_for = cx.now.saturating_sub(self.last_received);
        if cx.profile.restart_after_idle && idle_for >= self.rto.timeout(cx.profile) {
            let restart = u64::from(cx.profile.initial_window) * cx.profile.mss.0;
            self.control.set_window(self.control.window().min(restart));
        }
    }

    /// Length of the payload that the next segment would have.
    fn next_len(&self, cx: Context<'_>) -> u64 {
        let window = self.control.window().min(self.peer_window(cx));
        let limit = self.una + window.min(cx.profile.send_buffer.0);
        self.end
            .min(limit)
            .saturating_sub(self.nxt)
            .min(cx.profile.mss.0)
    }

    /// Whether the next segment would carry the FIN.
    fn next_has_fin(&self, len: u64) -> bool {
        self.closed && self.nxt + len == self.end
    }

    /// RFC 1122, section 4.2.3.4 (Nagle and sender's silly window avoidance), as BSD words it.
    fn may_send(&self, idle: bool, cx: Context<'_>) -> bool {
        let len = self.next_len(cx);
        let resending = self.nxt < self.max;
        if self.ecn.hold && !resending {
            return false;
        }
        // The FIN goes once; again only when everything from `una` on is sent again.
        if self.next_has_fin(len) && (self.max <= self.end || self.nxt == self.una) {
            return true;
        }
        if len == 0 {
            return false;
        }
        let buffered = self.end.min(self.una + cx.profile.send_buffer.0);
        let last = self.nxt + len == buffered;
        len == cx.profile.mss.0
            || (last && (idle || !cx.profile.nagle))
            || 2 * len >= self.peer_window(cx)
            || resending
    }

    /// Sends the segment at `nxt`.
    fn send_next(&mut self, cx: Context<'_>, out: &mut Vec<Segment>) {
        let len = self.next_len(cx);
        let fin = self.next_has_fin(len);
        let (seq, end) = (self.nxt, self.nxt + len + u64::from(fin));
        let is_new = seq >= self.max;
        let mut flags = Flags::ACK;
        if fin {
            flags = flags.with(Flags::FIN);
        }
        if self.receiver.echo {
            flags = flags.with(Flags::ECE);
        }
        // ECT and CWR on new data only (RFC 3168, sections 6.1.2 and 6.1.5).
        let capable = is_new && len > 0 && self.ecn.agreed;
        if capable && self.ecn.cwr_pending {
            self.ecn.cwr_pending = false;
            flags = flags.with(Flags::CWR);
        }
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        out.push(Segment {
            seq,
            ack: self.receiver.next,
            len: len as u32,
            flags,
            ecn,
        });
        self.receiver.on_ack_sent();
        self.nxt = end;
        if is_new {
            if self.timed.is_none() {
                self.timed = Some((seq, cx.now));
            }
        } else if len > 0 {
            self.retransmissions.data += 1;
        } else {
            self.retransmissions.fin += 1;
        }
        self.max = self.max.max(end);
        if self.retransmit_at == Time::NEVER {
            self.arm(cx);
        }
    }

    fn send_pure_ack(&mut self, out: &mut Vec<Segment>) {
        let flags = if self.receiver.echo {
            Flags::ACK.with(Flags::ECE)
        } else {
            Flags::ACK
        };
        let (seq, ack) = (self.nxt, self.receiver.next);
        out.push(Segment {
            seq,
            ack,
            len: 0,
            flags,
            ecn: Ecn::NotEct,
        });
        self.receiver.on_ack_sent();
    }
}
