//! The sender that keeps a log of each segment: what Linux has been since 2018.
//!
//! One mechanism serves all: the log ([`segment_log`]) gives round trips, delivery rates and the bytes in
//! flight; RACK ([`detection`]) finds losses by it, the tail loss probe ([`probe`]) those that no ACK
//! would show; F-RTO, D-SACK and Eifel take back what proved wrong ([`undo`]); pacing ([`pace`]) spreads
//! what is sent. Congestion controls see all of it in a [`Sample`](crate::control::Sample) per ACK.

mod accecn;
mod ack;
mod detection;
mod deviation;
mod fast_path;
pub(crate) mod hystart;
mod linux;
mod marks;
mod output;
pub(crate) mod pace;
mod pacing;
mod probe;
mod rules;
pub(crate) mod segment_log;
mod spurious;
mod tail_loss_probe;
mod timers;
mod undo;

use aqmlab_net::Time;

use super::prr::Prr;
use super::space::{Counts, Space};
use crate::agreed::Agreed;
use crate::context::Context;
use crate::profile::WindowCounts;
use accecn::MarkReader;
use detection::Rack;
use deviation::Deviation;
use hystart::HyStart;
use pace::Pace;
use probe::Probe;
use segment_log::SegmentLog;
use undo::{Spurious, Undo};

/// What such a sender has beside its [`Space`], which every step gets as well.
#[derive(Clone, Debug)]
pub(crate) struct RackSender {
    pub(super) counts: Counts,
    log: SegmentLog,
    rack: Rack,
    prr: Prr,
    /// A mark takes the window down, over a round trip.
    is_reducing: bool,
    undo: Undo,
    spurious: Spurious,
    probe: Probe,
    deviation: Deviation,
    pace: Pace,
    hystart: HyStart,
    marks: MarkReader,
    /// Duplicate ACKs, where the peer sends no SACK.
    dup_acks: u32,
    /// Segments that the ACK at hand delivers, as Linux counts them.
    arrived: u64,
    /// Segments acknowledged on the way to the next one that the window holds, as Linux counts them.
    counted: u32,
    /// Behind the segment that the ACK at hand reports as a duplicate (D-SACK).
    duplicate_end: Option<u64>,
    /// Behind the last segment sent that was not full.
    small_end: u64,
    /// `una` at the last time-out: a further one with the same value repeats it.
    timed_out_at: u64,
    /// When the retransmission timer expires, RACK's reordering timer, the probe's.
    rto_at: Time,
    reo_at: Time,
    pto_at: Time,
}

impl Default for RackSender {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            log: SegmentLog::default(),
            rack: Rack::default(),
            prr: Prr::default(),
            is_reducing: false,
            undo: Undo::default(),
            spurious: Spurious::default(),
            probe: Probe::default(),
            deviation: Deviation::default(),
            pace: Pace::default(),
            hystart: HyStart::default(),
            marks: MarkReader::default(),
            dup_acks: 0,
            arrived: 0,
            counted: 0,
            duplicate_end: None,
            small_end: 0,
            timed_out_at: 0,
            rto_at: Time::NEVER,
            reo_at: Time::NEVER,
            pto_at: Time::NEVER,
        }
    }
}

impl RackSender {
    /// The handshake is complete; the time that it took, if it was timed.
    pub(super) fn establish(&mut self, space: &mut Space, took: Option<Time>, cx: &Context<'_>) {
        if let Some(took) = took {
            self.rack.on_handshake(took, cx.now);
            self.keep_deviation(space, (took, None), 1, cx);
        }
        if rules::applies(cx) {
            self.pace.catch_up();
        }
        self.set_pace(space, cx);
    }

    /// What is out, as Linux counts it. Without SACK each duplicate ACK stands for a segment that has arrived.
    pub(super) fn counters(&self, space: &Space) -> crate::counters::Counters {
        let has = |which| space.agreed.has(which);
        crate::counters::Counters {
            unacked: self.log.segments() as u64,
            sacked: match has(Agreed::SACK) {
                true => self.log.sacked_segments,
                false => self.dup_acks.into(),
            },
            lost: self.log.lost_segments,
            retrans: self.log.under_way_again() as u64,
            reducing: self.is_reducing,
            duplicates: self.log.news.duplicates,
            marks: has(Agreed::ACCURATE).then(|| self.reported_marks()),
        }
    }

    /// What is on its way: bytes, or segments as if each were full, as the window counts. Without SACK each
    /// duplicate ACK stands for a segment that has arrived.
    fn pipe(&self, space: &Space, cx: &Context<'_>) -> u64 {
        let mss = cx.profile.mss.0;
        let pipe = match cx.profile.window_counts {
            WindowCounts::Bytes => self.log.pipe(space.una, space.max),
            WindowCounts::Packets => self.log.packets() * mss,
        };
        if space.agreed.has(Agreed::SACK) {
            return pipe;
        }
        pipe.saturating_sub(u64::from(self.dup_acks) * mss)
    }
}
