//! One direction of the router: reads packets from one device, writes them to the other when their
//! time has come. Each direction has a thread of its own.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use aqmlab_net::Time;
use aqmlab_record::{LinkStats, StationsOnAir};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_current_timer_slack;

use crate::clock::Clock;
use crate::gauge::Gauge;
use crate::lane::{Lane, Left};
use crate::ledger::Ledger;
use crate::measure::{Pacing, PacingReport};

/// Packets that are read before those that are due get their turn.
const BATCH: usize = 64;

/// The largest IP packet.
const LARGEST: usize = 1 << 16;

/// The thread looks up this often, to see whether the run was stopped.
const LOOK_UP: Time = Time::from_millis(100);

/// Where a direction ends.
pub(crate) trait Output: Sync {
    /// Takes a packet whose time has come.
    fn put(&self, packet: &[u8]) -> io::Result<()>;
}

impl Output for File {
    fn put(&self, packet: &[u8]) -> io::Result<()> {
        let mut device = self;
        device.write(packet).map(drop)
    }
}

/// What a direction saw.
pub(crate) struct Routed {
    pub(crate) links: Vec<LinkStats>,
    /// Of stations on the air.
    pub(crate) stations: Vec<StationsOnAir>,
    pub(crate) pacing: PacingReport,
    /// Of a program's connections.
    pub(crate) ledger: Option<Ledger>,
}

/// One direction at work.
pub(crate) struct Direction<'a> {
    pub(crate) lane: Lane,
    pub(crate) input: &'a File,
    pub(crate) output: &'a dyn Output,
    pub(crate) clock: Clock,
    /// When the measured span begins.
    pub(crate) start: Time,
    /// When it ends, and the run with it, in nanoseconds: it may be brought forward.
    pub(crate) end: &'a AtomicU64,
    pub(crate) stop: &'a AtomicBool,
    /// Where it shows what it is doing, if somebody watches.
    pub(crate) gauge: Option<&'a Gauge>,
}

impl Direction<'_> {
    /// Works until the run ends.
    pub(crate) fn run(mut self) -> Routed {
        // Without it the kernel may wake the thread 50 us late to save power.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let start = self.start;
        let mut pacing = Pacing::new();
        let mut buffer = vec![0; LARGEST];
        let end = loop {
            self.read(&mut buffer);
            let end = Time::from_nanos(self.end.load(Relaxed));
            let now = self.clock.now();
            if now >= end || self.stop.load(Relaxed) {
                break end;
            }
            self.lane.advance(now);
            if let Some(gauge) = self.gauge
                && gauge.is_due(now)
            {
                gauge.show(now, &self.lane.observe(now));
            }
            while let Some((due, packet)) = self.lane.pop(self.clock.now()) {
                let out = self.clock.now();
                let written = self.output.put(&packet);
                if due >= start {
                    pacing.departure(due, out);
                    pacing.written(written.is_ok());
                }
            }
            self.wait(self.lane.next().min(end));
        };
        let Left {
            links,
            stations,
            ledger,
            strays,
        } = self.lane.close(end);
        Routed {
            links,
            stations,
            pacing: pacing.report(strays),
            ledger,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            match self.input.read(buffer) {
                Ok(size) => self.lane.enter(self.clock, &buffer[..size]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Sleeps until a packet comes or something is due.
    fn wait(&self, due: Time) {
        let now = self.clock.now();
        let span = due.min(now + LOOK_UP).saturating_sub(now).as_nanos();
        if span == 0 {
            return;
        }
        let timeout = Timespec {
            tv_sec: (span / 1_000_000_000) as i64,
            tv_nsec: (span % 1_000_000_000) as i64,
        };
        let mut devices = [PollFd::from_borrowed_fd(self.input.as_fd(), PollFlags::IN)];
        // Interrupted or not: the caller looks at the clock.
        let _ = poll(&mut devices, Some(&timeout));
        if devices[0].revents().contains(PollFlags::ERR) {
            // The device is gone, and there is nothing to wait for.
            thread::sleep(Duration::from_nanos(span));
        }
    }
}
