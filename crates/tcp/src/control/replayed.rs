//! The ACKs of tests/data/controls, each with what Linux's own code does at it: its BBR in a closed loop
//! of its own, its CUBIC with ACKs of ours. The head of each file says what it shows, and how far apart
//! the two may be.

use std::collections::VecDeque;

use aqmlab_net::{Bytes, Time};

use super::bbr1::{self, Bbr1};
use super::bbr3::{self, Bbr3};
use super::congestion_control::{Ack, Congestion, CongestionControl, Decrease, Restart, Sample};
use super::cubic::{self, Cubic};
use super::window::Window;
use super::{Cause, Marks};
use crate::profile::Profile;
use crate::rate::{Loss, Rate};
use crate::recovery::RecoveryState;

const MSS: u64 = 1448;
const INITIAL_SEGMENTS: u64 = 10;
/// Rows by which a phase may begin sooner or later.
const ROWS: usize = 2;

/// The rows of a file: each cell by the name of its column.
struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<&'static str>>,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let cells = |line: &'static str| line.split(',').collect::<Vec<_>>();
        let head = cells(lines.next().unwrap());
        let rows = lines.map(cells).collect();
        Self { head, rows }
    }

    fn cell(&self, row: usize, name: &str) -> &'static str {
        let place = self.head.iter().position(|head| *head == name).unwrap();
        self.rows[row][place]
    }

    fn number(&self, row: usize, name: &str) -> Option<i64> {
        let cell = self.cell(row, name);
        (!cell.is_empty()).then(|| cell.parse().unwrap())
    }

    fn time(&self, row: usize, name: &str) -> Time {
        Time::from_micros(self.number(row, name).unwrap() as u64)
    }

    fn bytes(&self, row: usize, name: &str) -> u64 {
        self.number(row, name).unwrap() as u64 * MSS
    }
}

fn profile() -> Profile {
    Profile {
        mss: Bytes(MSS),
        ..Profile::named("linux").unwrap()
    }
}

/// What a control of the BBR family shows, and what the kernel drew for it.
trait Shown: CongestionControl {
    fn phase(&self) -> String;
    /// Bandwidth and pacing rate in bytes per second, and the smallest round trip.
    fn model(&self) -> (f64, f64, Time);
    fn draws(&mut self) -> &mut VecDeque<(u32, Time)>;
}

impl Shown for Bbr1 {
    fn phase(&self) -> String {
        self.phase_shown()
    }

    fn model(&self) -> (f64, f64, Time) {
        self.model_shown()
    }

    fn draws(&mut self) -> &mut VecDeque<(u32, Time)> {
        &mut self.draws
    }
}

impl Shown for Bbr3 {
    fn phase(&self) -> String {
        self.phase_shown()
    }

    fn model(&self) -> (f64, f64, Time) {
        self.model_shown()
    }

    fn draws(&mut self) -> &mut VecDeque<(u32, Time)> {
        &mut self.draws
    }
}

/// The kernel's numbers, in the order of its draws. A loss that ends a probe draws outside of a row, so that
/// no row has the number: `unseen` rounds stand for it.
fn drawn(table: &Table, unseen: u32) -> VecDeque<(u32, Time)> {
    let mut draws = VecDeque::new();
    for row in 0..table.rows.len() {
        let begins = |phase| table.cell(row, "phase") == phase;
        if let Some(rounds) = table.number(row, "drawn_rounds") {
            draws.push_back((rounds as u32, table.time(row, "drawn_wait_us")));
        } else if row > 0 && begins("down") && table.cell(row - 1, "phase") == "up" {
            draws.push_back((unseen, Time::from_millis(2500)));
        }
    }
    draws
}

/// Feeds a file's ACKs; what differs from the kernel, a line each.
fn replay<C: Shown>(text: &'static str, params: &C::Params, unseen: u32) -> Vec<String> {
    let table = Table::read(text);
    let profile = profile();
    let mut control = C::default();
    let mut window = Window {
        cwnd: (INITIAL_SEGMENTS * MSS) as f64,
        ssthresh: f64::MAX,
    };
    // The first row shows what the first sample makes of the handshake's round trip.
    let first = 8 * table.number(0, "srtt_us").unwrap() - table.number(0, "rtt_us").unwrap();
    let handshake = Time::from_micros(first as u64 / 7);
    let restart = |now, delivered, srtt| Restart {
        now,
        profile: &profile,
        srtt: Some(srtt),
        delivered,
    };
    control.on_restart(params, &mut window, &restart(Time::ZERO, 0, handshake));
    *control.draws() = drawn(&table, unseen);
    let (mut delivered, mut state) = (0, RecoveryState::Open);
    let mut found = Vec::new();
    for row in 0..table.rows.len() {
        let (now, rtt) = (table.time(row, "t_us"), table.time(row, "rtt_us"));
        let srtt = table.time(row, "srtt_us");
        if table.number(row, "restart") == Some(1) {
            let at = now.saturating_sub(rtt);
            control.on_restart(params, &mut window, &restart(at, delivered, srtt));
        }
        let now_delivered = table.bytes(row, "delivered_total");
        let in_flight = table.bytes(row, "tx_in_flight");
        let losses: Vec<Loss> = (0..table.number(row, "losses").unwrap())
            .map(|_| Loss {
                len: MSS,
                in_flight,
                lost: table.bytes(row, "lost_since_sent"),
                app_limited: table.number(row, "app_limited") == Some(1),
            })
            .collect();
        let rate = (table.number(row, "has_rate") == Some(1)).then(|| Rate {
            delivered: table.bytes(row, "rate_delivered"),
            interval: table.time(row, "interval_us"),
            prior_delivered: table.bytes(row, "prior_delivered"),
            in_flight,
            lost: table.bytes(row, "lost_since_sent"),
            app_limited: table.number(row, "app_limited") == Some(1),
        });
        let before = state;
        state = match table.cell(row, "state") {
            "open" => RecoveryState::Open,
            "recovery" => RecoveryState::Recovery,
            _ => RecoveryState::Loss,
        };
        if state != before && state != RecoveryState::Open {
            let cause = if state == RecoveryState::Loss {
                Cause::Timeout
            } else {
                Cause::Loss
            };
            let congestion = Congestion {
                now,
                profile: &profile,
                flight: table.bytes(row, "in_flight_before"),
                window: window.cwnd as u64,
                cause,
                whole: false,
            };
            control.on_congestion(params, &window, &congestion);
        }
        control.on_sample(
            params,
            &mut window,
            &Sample {
                now,
                profile: &profile,
                state,
                una: 1 + now_delivered,
                max: 1 + now_delivered + table.bytes(row, "in_flight"),
                acked: now_delivered - delivered,
                advances: now_delivered > delivered,
                marks: Marks::default(),
                losses: &losses,
                rtt: Some(rtt),
                srtt: Some(srtt),
                rate,
                delivered: now_delivered,
                lost: table.bytes(row, "lost_total"),
                in_flight_before: table.bytes(row, "in_flight_before"),
                in_flight: table.bytes(row, "in_flight"),
                window_limited: table.number(row, "cwnd_limited") == Some(1),
            },
        );
        delivered = now_delivered;
        let (bw, pacing, min_rtt) = control.model();
        found.push(Found {
            phase: control.phase(),
            cwnd: window.cwnd / MSS as f64,
            pacing,
            bw,
            min_rtt,
        });
    }
    compare(&table, &found)
}

/// What a control has at a row.
#[derive(Debug)]
struct Found {
    phase: String,
    /// Segments.
    cwnd: f64,
    /// Bytes per second.
    pacing: f64,
    bw: f64,
    min_rtt: Time,
}

impl Found {
    /// The names of what differs from a row.
    fn wrong(&self, table: &Table, row: usize) -> Vec<&'static str> {
        let expected = |name| table.number(row, name).unwrap() as f64;
        let far = |found: f64, name| (found - expected(name)).abs() > 0.01 * expected(name);
        [
            ("phase", table.cell(row, "phase") != self.phase),
            ("cwnd", (self.cwnd - expected("cwnd")).abs() > 2.0),
            ("pacing", far(self.pacing, "pacing_Bps")),
            ("bw", far(self.bw, "max_bw_Bps")),
            ("min_rtt", self.min_rtt != table.time(row, "min_rtt_us")),
        ]
        .iter()
        .filter_map(|&(name, is_wrong)| is_wrong.then_some(name))
        .collect()
    }
}

/// What differs, a line a row. A phase may begin some rows sooner or later, with all that goes with it.
fn compare(table: &Table, found: &[Found]) -> Vec<String> {
    let columns = ["phase", "cwnd", "pacing_Bps", "max_bw_Bps", "min_rtt_us"];
    let mut lines = Vec::new();
    for (row, here) in found.iter().enumerate() {
        let wrong = here.wrong(table, row);
        let mut near = row.saturating_sub(ROWS)..(row + ROWS + 1).min(found.len());
        let is_shifted = wrong.contains(&"phase")
            && near.any(|other| {
                here.wrong(table, other).is_empty() || found[other].wrong(table, row).is_empty()
            });
        if !wrong.is_empty() && !is_shifted {
            let expected = columns.map(|name| table.cell(row, name));
            lines.push(format!("row {row}: {wrong:?}: {here:?}, not {expected:?}"));
        }
    }
    lines
}

fn bbr3(text: &'static str) -> Vec<String> {
    let params = bbr3::Params {
        constants: bbr3::Constants::Google,
    };
    replay::<Bbr3>(text, &params, 0)
}

/// The first samples do not lower the first pacing rate. The phase of 5/4 counts the burst that leaves next.
#[test]
fn bbr1_starts_and_follows_the_rate_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr1-startup-and-rate-falls.csv");
    let wrong = replay::<Bbr1>(text, &bbr1::Params::default(), 0);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Where the rate falls to a tenth behind a deep buffer, the bandwidth stays at the old rate for good:
/// every cycle is cut by a probe of the round trip before its round of Down ends. The draft and the
/// kernel agree.
#[test]
fn bbr3_keeps_the_old_rate_behind_a_deep_buffer_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr3-rate-falls-deep-buffer.csv");
    let wrong = bbr3(text);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// No probe of the round trip begins behind an idle time.
#[test]
fn bbr3_restarts_from_idle_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr3-idle-restart.csv");
    let wrong = bbr3(text);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A probe ends by losses; the next one ends at the bound, and after a round without losses another begins.
#[test]
fn bbr3_probes_with_caution_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr3-precautionary-probe.csv");
    let wrong = bbr3(text);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn cubic_grows_after_hystart_as_in_linux() {
    let table = Table::read(include_str!(
        "../../tests/data/controls/cubic-after-hystart.csv"
    ));
    let profile = profile();
    let params = cubic::Params::default();
    let mut cubic = Cubic::default();
    let mut window = Window {
        cwnd: (INITIAL_SEGMENTS * MSS) as f64,
        ssthresh: f64::MAX,
    };
    let mut sent = 0;
    for row in 0..table.rows.len() {
        // A row's segment is out before the ACK of the row above it comes.
        while sent < table.rows.len().min(row + 2) {
            let rtt = table.number(sent, "rtt_us").unwrap();
            let at = table
                .time(sent, "t_us")
                .saturating_sub(Time::from_micros(rtt.max(0) as u64));
            let end = 1 + table.bytes(sent, "una");
            let acked = table.bytes(sent, "acked");
            cubic.on_send(end - acked, end, rtt < 0, at);
            sent += 1;
        }
        cubic.on_ack(
            &params,
            &mut window,
            &Ack {
                now: table.time(row, "t_us"),
                profile: &profile,
                acked: table.bytes(row, "acked"),
                una: 1 + table.bytes(row, "una"),
                max: 1 + table.bytes(row, "max"),
                counted: None,
            },
        );
        let cwnd = window.cwnd / MSS as f64;
        let expected = table.number(row, "cwnd").unwrap() as f64;
        assert!(
            (cwnd - expected).abs() <= 2.0,
            "row {row}: {cwnd}, {expected} expected"
        );
        let ssthresh = window.ssthresh / MSS as f64;
        if let Some(expected) = table.number(row, "ssthresh") {
            let near = (ssthresh - expected as f64).abs() <= 2.0;
            assert!(near, "row {row}: ssthresh {ssthresh}, {expected} expected");
        } else {
            assert!(ssthresh > 1e6, "row {row}: ssthresh {ssthresh}");
        }
    }
}

#[test]
fn a_share_of_whole_segments_is_whole() {
    let table = Table::read(include_str!(
        "../../tests/data/controls/cubic-ssthresh-of-whole-windows.csv"
    ));
    let profile = profile();
    for row in 0..table.rows.len() {
        let bytes = table.bytes(row, "cwnd");
        let window = Window {
            cwnd: bytes as f64,
            ssthresh: f64::MAX,
        };
        let congestion = Congestion {
            now: Time::ZERO,
            profile: &profile,
            flight: bytes,
            window: bytes,
            cause: Cause::Loss,
            whole: false,
        };
        let found = Cubic::default().on_congestion(&cubic::Params::default(), &window, &congestion);
        assert_eq!(found, Decrease::Bytes(table.bytes(row, "right") as f64));
    }
}
