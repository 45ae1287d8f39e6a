//! The run watches itself: what a machine could not keep up with is no experiment.

use std::collections::BTreeMap;
use std::fs;

use crate::outside::OutsideReport;
use crate::program_report::ProgramReport;
use aqmlab_net::Time;
use aqmlab_record::Summary;
use hdrhistogram::Histogram;
use rustix::thread::Pid;
use serde::Serialize;

/// Packets must leave within this of their ideal time.
const LATEST: Time = Time::from_millis(1);
/// So large a share of them.
const ON_TIME_SHARE: f64 = 0.99;
/// Largest error of a direction's rate.
const RATE_ERROR: f64 = 0.005;
/// Users may act this much later than they wanted to, 99 of 100 times.
const LOAD_LATEST_S: f64 = 0.01;
/// A thread that works or waits for a processor for more than this share of the time is at its
/// end.
const BUSIEST: f64 = 0.9;

/// Later than a minute is counted as a minute.
const LONGEST_US: u64 = 60_000_000;

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_US, 3).expect("the bounds are constants that the crate accepts")
}

fn quantile_s(histogram: &Histogram<u64>, p: f64) -> f64 {
    histogram.value_at_quantile(p) as f64 / 1e6
}

/// How late things happen.
#[derive(Debug)]
pub(crate) struct Lateness(Histogram<u64>);

impl Lateness {
    pub(crate) fn new() -> Self {
        Self(histogram())
    }

    pub(crate) fn add(&mut self, due: Time, done: Time) {
        let late = done.saturating_sub(due);
        self.0.saturating_record(late.as_nanos() / 1_000);
    }
}

/// When packets leave, against when they should.
#[derive(Debug)]
pub(crate) struct Pacing {
    lateness: Lateness,
    departures: u64,
    on_time: u64,
    write_failures: u64,
    first: Option<(Time, Time)>,
    last: (Time, Time),
}

impl Pacing {
    pub(crate) fn new() -> Self {
        Self {
            lateness: Lateness::new(),
            departures: 0,
            on_time: 0,
            write_failures: 0,
            first: None,
            last: (Time::ZERO, Time::ZERO),
        }
    }

    /// A packet leaves that should have left at `due`.
    pub(crate) fn departure(&mut self, due: Time, done: Time) {
        self.lateness.add(due, done);
        self.departures += 1;
        self.on_time += u64::from(done.saturating_sub(due) <= LATEST);
        self.first.get_or_insert((due, done));
        self.last = (due, done);
    }

    pub(crate) fn written(&mut self, whole: bool) {
        self.write_failures += u64::from(!whole);
    }

    pub(crate) fn report(&self, strays: u64) -> PacingReport {
        let (first_due, first_done) = self.first.unwrap_or_default();
        let (due, done) = (self.last.0 - first_due, self.last.1 - first_done);
        let rate_error = if due > Time::ZERO {
            due.as_secs_f64() / done.as_secs_f64() - 1.0
        } else {
            0.0
        };
        let late = &self.lateness.0;
        PacingReport {
            departures: self.departures,
            on_time_share: if self.departures == 0 {
                1.0
            } else {
                self.on_time as f64 / self.departures as f64
            },
            late_p50_s: quantile_s(late, 0.5),
            late_p99_s: quantile_s(late, 0.99),
            late_max_s: late.max() as f64 / 1e6,
            rate_error,
            write_failures: self.write_failures,
            stray_packets: strays,
        }
    }
}

/// How well a direction of the router kept its times in the measured span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PacingReport {
    /// Packets that were written to the receivers' device.
    pub departures: u64,
    /// Share of them that left within 1 ms of their ideal time.
    pub on_time_share: f64,
    /// Median of how late they left.
    pub late_p50_s: f64,
    /// 99th percentile.
    pub late_p99_s: f64,
    /// The latest.
    pub late_max_s: f64,
    /// Relative error of the rate: the ideal time between first and last departure over the real
    /// one, less 1.
    pub rate_error: f64,
    /// Packets that the device would not take.
    pub write_failures: u64,
    /// Packets of no connection of the run, thrown away.
    pub stray_packets: u64,
}

/// How well the load generator kept its times, and what went wrong for want of resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadReport {
    /// Median of how late users and sources acted.
    pub late_p50_s: f64,
    /// 99th percentile.
    pub late_p99_s: f64,
    /// The latest.
    pub late_max_s: f64,
    /// Most connections at a time.
    pub most_open: u64,
    /// Connections that this machine could not make, or not at once: no port, no file, no memory.
    pub local_failures: u64,
    /// What the first of them said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    /// Connections whose own windows, segment sizes or losses (of a file of connection vectors)
    /// were not kept to.
    pub own_limits: u64,
    /// Whether the kernel counts expiries of retransmission timers (Linux 6.7 and later).
    pub counts_timeouts: bool,
}

impl LoadReport {
    pub(crate) fn set_lateness(&mut self, lateness: &Lateness) {
        self.late_p50_s = quantile_s(&lateness.0, 0.5);
        self.late_p99_s = quantile_s(&lateness.0, 0.99);
        self.late_max_s = lateness.0.max() as f64 / 1e6;
    }
}

/// What a thread of the run got of the processors in the measured span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadReport {
    /// Share of the time in which it ran.
    pub cpu_share: f64,
    /// Share of the time in which it could have run, but every processor was taken.
    pub wait_share: f64,
}

/// The run's own account of how well it went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// Whether every bound was kept.
    pub valid: bool,
    /// Which were not, a sentence each.
    pub reasons: Vec<String>,
    /// The router, by direction.
    pub router: BTreeMap<String, PacingReport>,
    /// The load generator.
    pub load: LoadReport,
    /// What a program's gateway met outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideReport>,
    /// The program, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramReport>,
    /// The threads of router and load generator.
    pub threads: BTreeMap<String, ThreadReport>,
    /// Share of the measured span in which the machine's processors were busy, with whatever.
    pub machine_busy_share: f64,
    /// Packets that the devices dropped because the router did not read them in time.
    pub device_drops: u64,
    /// What somebody did to the bed during the run, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub harm: Vec<String>,
    /// Release of the kernel whose stack it was.
    pub kernel: String,
}

/// What a live run showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveSummary {
    /// The summary, as of a simulated run.
    #[serde(flatten)]
    pub summary: Summary,
    /// How well the run went.
    pub live: Health,
}

impl Health {
    /// Holds what was measured against the bounds.
    pub(crate) fn judge(&mut self) {
        let mut reasons = self.harm.clone();
        for (name, pacing) in &self.router {
            if pacing.on_time_share < ON_TIME_SHARE {
                reasons.push(format!(
                    "router {name}: {:.2} % of the packets left within {LATEST} of their time, \
                     99 % must",
                    100.0 * pacing.on_time_share
                ));
            }
            if pacing.rate_error.abs() > RATE_ERROR {
                reasons.push(format!(
                    "router {name}: the rate was {:+.2} % off, 0.5 % is allowed",
                    100.0 * pacing.rate_error
                ));
            }
            if pacing.write_failures > 0 {
                let count = pacing.write_failures;
                reasons.push(format!(
                    "router {name}: {count} packets could not be written"
                ));
            }
        }
        if self.load.late_p99_s > LOAD_LATEST_S {
            reasons.push(format!(
                "load: 1 % of the users acted more than {:.0} ms late, {:.0} ms are allowed",
                1e3 * self.load.late_p99_s,
                1e3 * LOAD_LATEST_S
            ));
        }
        if self.load.local_failures > 0 {
            reasons.push(format!(
                "load: {} connections failed, or waited, on this machine, the first with: {}",
                self.load.local_failures,
                self.load.first_failure.as_deref().unwrap_or_default()
            ));
        }
        for (name, thread) in &self.threads {
            let busy = thread.cpu_share + thread.wait_share;
            if busy > BUSIEST {
                reasons.push(format!(
                    "{name}: worked {:.0} % and waited for a processor {:.0} % of the time, at \
                     most {:.0} % together are allowed",
                    100.0 * thread.cpu_share,
                    100.0 * thread.wait_share,
                    100.0 * BUSIEST
                ));
            }
        }
        if self.device_drops > 0 {
            let count = self.device_drops;
            reasons.push(format!(
                "devices: {count} packets dropped before the router"
            ));
        }
        self.valid = reasons.is_empty();
        self.reasons = reasons;
    }
}

/// Reads what threads and processors have done, once at the start and once at the end of a span.
#[derive(Debug)]
pub(crate) struct Meter {
    threads: Vec<(&'static str, Pid)>,
    began: Option<Reading>,
    ended: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    at: Time,
    /// By thread: nanoseconds that it ran, and that it waited for a processor.
    threads: Vec<(u64, u64)>,
    /// Ticks of all processors: busy, and all.
    machine: (u64, u64),
}

/// The end of a span is read so much before it, while all threads are still there.
const BEFORE_THE_END: Time = Time::from_millis(20);

impl Meter {
    pub(crate) const fn new(threads: Vec<(&'static str, Pid)>) -> Self {
        Self {
            threads,
            began: None,
            ended: None,
        }
    }

    /// When the meter wants to [`look`](Self::look) next at a span.
    pub(crate) fn next(&self, (start, end): (Time, Time)) -> Time {
        match (&self.began, &self.ended) {
            (None, _) => start,
            (Some(_), None) => end.saturating_sub(BEFORE_THE_END),
            _ => Time::NEVER,
        }
    }

    /// The span begins now.
    pub(crate) fn begin(&mut self, now: Time) {
        self.began = Some(self.read(now));
    }

    /// The span ends now, while all threads are still there.
    pub(crate) fn end(&mut self, now: Time) {
        self.ended = Some(self.read(now));
    }

    /// Reads, if it is time to.
    pub(crate) fn look(&mut self, now: Time, measured: (Time, Time)) {
        if now < self.next(measured) {
            return;
        }
        if self.began.is_none() {
            self.begin(now);
        } else {
            self.end(now);
        }
    }

    /// What happened in between: by thread, and the busy share of the machine.
    pub(crate) fn finish(&self) -> (BTreeMap<String, ThreadReport>, f64) {
        let (Some(began), Some(ended)) = (&self.began, &self.ended) else {
            return (BTreeMap::new(), 0.0);
        };
        let span = (ended.at.saturating_sub(began.at).as_nanos() as f64).max(1.0);
        let share = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / span;
        let spans = began.threads.iter().zip(&ended.threads);
        let threads = self.threads.iter().zip(spans).map(|((name, _), (a, b))| {
            let report = ThreadReport {
                cpu_share: share(b.0, a.0),
                wait_share: share(b.1, a.1),
            };
            ((*name).to_owned(), report)
        });
        let (busy, all) = (
            ended.machine.0 - began.machine.0,
            ended.machine.1 - began.machine.1,
        );
        (threads.collect(), busy as f64 / all.max(1) as f64)
    }

    fn read(&self, at: Time) -> Reading {
        let of_thread = |(_, thread): &(&str, Pid)| {
            let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_pid());
            schedstat(&fs::read_to_string(path).unwrap_or_default())
        };
        Reading {
            at,
            threads: self.threads.iter().map(of_thread).collect(),
            machine: processors(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }
}

/// Nanoseconds that a thread ran, and that it waited to run.
fn schedstat(text: &str) -> (u64, u64) {
    let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Ticks of all processors together: busy, and all.
fn processors(stat: &str) -> (u64, u64) {
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user and nice.
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .map(|n| n.parse().unwrap_or(0))
        .collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> Health {
        let mut pacing = Pacing::new();
        for ms in 0..1000 {
            let due = Time::from_millis(ms);
            pacing.departure(due, due + Time::from_micros(80));
            pacing.written(true);
        }
        let idle = ThreadReport {
            cpu_share: 0.2,
            wait_share: 0.01,
        };
        Health {
            valid: false,
            reasons: Vec::new(),
            router: BTreeMap::from([("forward".to_owned(), pacing.report(0))]),
            load: LoadReport::default(),
            outside: None,
            program: None,
            threads: BTreeMap::from([("router forward".to_owned(), idle)]),
            machine_busy_share: 0.5,
            device_drops: 0,
            harm: Vec::new(),
            kernel: String::new(),
        }
    }

    #[test]
    fn a_run_within_its_bounds_is_valid() {
        let mut health = well();
        health.judge();
        assert_eq!(health.reasons, [""; 0]);
        assert!(health.valid);
        let pacing = &health.router["forward"];
        assert_eq!((pacing.departures, pacing.on_time_share), (1000, 1.0));
        assert_eq!((pacing.late_p50_s, pacing.rate_error), (80e-6, 0.0));
    }

    #[test]
    fn every_bound_has_its_reason() {
        type Harm = fn(&mut Health);
        let harms: [(Harm, &str); 9] = [
            (
                |h| h.router.get_mut("forward").unwrap().on_time_share = 0.98,
                "98.00 %",
            ),
            (
                |h| h.router.get_mut("forward").unwrap().rate_error = -0.006,
                "-0.60 %",
            ),
            (
                |h| h.router.get_mut("forward").unwrap().write_failures = 2,
                "2 packets could not",
            ),
            (|h| h.load.late_p99_s = 0.02, "20 ms late"),
            (
                |h| h.load.local_failures = 3,
                "3 connections failed, or waited",
            ),
            (
                |h| h.threads.get_mut("router forward").unwrap().wait_share = 0.8,
                "router forward: worked 20 %",
            ),
            (|h| h.device_drops = 1, "1 packets dropped"),
            (|h| h.harm.push("it rained".to_owned()), "it rained"),
            (
                |h| h.threads.get_mut("router forward").unwrap().cpu_share = 0.95,
                "router forward: worked 95 %",
            ),
        ];
        for (harm, words) in harms {
            let mut health = well();
            harm(&mut health);
            health.judge();
            assert!(!health.valid);
            assert_eq!(health.reasons.len(), 1, "{:?}", health.reasons);
            assert!(health.reasons[0].contains(words), "{:?}", health.reasons);
        }
    }

    #[test]
    fn a_router_that_falls_behind_has_a_rate_error() {
        let mut pacing = Pacing::new();
        for ms in 0..1000 {
            // One percent slow.
            pacing.departure(Time::from_millis(ms), Time::from_micros(ms * 1010));
        }
        let report = pacing.report(0);
        assert!((report.rate_error + 0.0099).abs() < 1e-4);
        assert!((report.on_time_share - 0.101).abs() < 1e-9);
    }

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(schedstat("17 4 3\n"), (17, 4));
        assert_eq!(processors("cpu  1 2 3 40 5 6 7 8 0 0\ncpu0 1\n"), (27, 72));
    }
}
