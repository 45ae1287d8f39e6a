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
use crate::recovery::RecoveryState;
use crate::sender::rack::segment_log::{Loss, Rate};

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

/// Feeds a file's ACKs; what differs from the kernel, a line each.
fn replay<C: Shown>(text: &'static str, params: &C::Params) -> Vec<String> {
    let table = Table::read(text);
    let profile = profile();
    let mut control = C::default();
    let mut window = Window {
        cwnd: (INITIAL_SEGMENTS * MSS) as f64,
        ssthresh: f64::MAX,
    };
    // The handshake: what the first sample makes of its round trip is told.
    let first = 8 * table.number(0, "srtt_us").unwrap() - table.number(0, "rtt_us").unwrap();
    let handshake = Time::from_micros(first as u64 / 7);
    let restart = |now, delivered, srtt| Restart {
        now,
        profile: &profile,
        srtt: Some(srtt),
        delivered,
    };
    control.on_restart(params, &mut window, &restart(Time::ZERO, 0, handshake));
    for row in 0..table.rows.len() {
        if let Some(rounds) = table.number(row, "drawn_rounds") {
            let draw = (rounds as u32, table.time(row, "drawn_wait_us"));
            control.draws().push_back(draw);
        }
    }
    let (mut delivered, mut state) = (0, RecoveryState::Open);
    let mut phases = Vec::new();
    let mut wrong = Vec::new();
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
        phases.push(control.phase());
        let (bw, pacing, min_rtt) = control.model();
        let segments = window.cwnd / MSS as f64;
        let expected = |name| table.number(row, name).unwrap() as f64;
        let near = |found: f64, name| (found - expected(name)).abs() <= 0.01 * expected(name);
        if (segments - expected("cwnd")).abs() > 2.0 {
            wrong.push(format!(
                "row {row}: cwnd {segments}, {} expected",
                expected("cwnd")
            ));
        }
        if !near(pacing, "pacing_Bps") {
            wrong.push(format!(
                "row {row}: pacing {pacing:.0}, {} expected",
                expected("pacing_Bps")
            ));
        }
        if !near(bw, "max_bw_Bps") {
            wrong.push(format!(
                "row {row}: bw {bw:.0}, {} expected",
                expected("max_bw_Bps")
            ));
        }
        if min_rtt != table.time(row, "min_rtt_us") {
            wrong.push(format!("row {row}: round trip {min_rtt}"));
        }
    }
    for (row, phase) in phases.iter().enumerate() {
        let near = row.saturating_sub(ROWS)..(row + ROWS + 1).min(phases.len());
        if !near
            .clone()
            .any(|other| table.cell(other, "phase") == phase)
        {
            wrong.push(format!(
                "row {row}: {phase}, {} expected",
                table.cell(row, "phase")
            ));
        }
    }
    wrong
}

fn bbr3(text: &'static str) -> Vec<String> {
    let params = bbr3::Params {
        constants: bbr3::Constants::Google,
    };
    replay::<Bbr3>(text, &params)
}

/// What a line is about.
fn of<'a>(wrong: &'a [String], what: &str) -> Vec<&'a String> {
    let marked = format!(": {what} ");
    wrong.iter().filter(|line| line.contains(&marked)).collect()
}

/// Rows behind the first one that differs.
fn first_row(wrong: &[String]) -> usize {
    let row = |line: &String| line["row ".len()..].split(':').next()?.parse().ok();
    wrong.iter().filter_map(row).min().unwrap_or(usize::MAX)
}

/// The first samples do not lower the first pacing rate: Startup, to the last of its 190 rows, and Drain
/// are the kernel's. From there on phases of 3/4 end sooner here by up to six ACKs, and the bandwidth
/// lasts for exactly ten rounds where Linux keeps three samples.
#[test]
fn bbr1_starts_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr1-startup-and-rate-falls.csv");
    let wrong = replay::<Bbr1>(text, &bbr1::Params::default());
    assert_eq!(first_row(&wrong), 245, "{wrong:#?}");
    assert!(of(&wrong, "round trip").is_empty());
    // The end of the phase of 5/4 counts the burst that leaves next (row 353).
    let at_first_end = wrong.iter().any(|line| line.starts_with("row 353:"));
    assert!(!at_first_end, "{wrong:#?}");
}

/// Where the rate falls to a tenth behind a deep buffer, the bandwidth stays at the old rate for good:
/// every cycle is cut by a probe of the round trip before its round of Down ends. The draft and the
/// kernel agree.
#[test]
fn bbr3_keeps_the_old_rate_behind_a_deep_buffer_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr3-rate-falls-deep-buffer.csv");
    assert_eq!(of(&bbr3(text), "bw"), Vec::<&String>::new());
}

/// No probe of the round trip begins behind an idle time.
#[test]
fn bbr3_restarts_from_idle_as_in_linux() {
    let text = include_str!("../../tests/data/controls/bbr3-idle-restart.csv");
    let wrong = bbr3(text);
    assert_eq!(of(&wrong, "probe-rtt,"), Vec::<&String>::new());
    assert_eq!(of(&wrong, "bw"), Vec::<&String>::new());
    assert_eq!(of(&wrong, "round trip"), Vec::<&String>::new());
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
        };
        let found = Cubic::default().on_congestion(&cubic::Params::default(), &window, &congestion);
        assert_eq!(found, Decrease::Bytes(table.bytes(row, "right") as f64));
    }
}

#[test]
fn probe_all() {
    for (name, wrong) in [
        ("bbr1", replay::<Bbr1>(include_str!("../../tests/data/controls/bbr1-startup-and-rate-falls.csv"), &bbr1::Params::default())),
        ("deep", bbr3(include_str!("../../tests/data/controls/bbr3-rate-falls-deep-buffer.csv"))),
        ("idle", bbr3(include_str!("../../tests/data/controls/bbr3-idle-restart.csv"))),
        ("prec", bbr3(include_str!("../../tests/data/controls/bbr3-precautionary-probe.csv"))),
    ] {
        println!("== {name} {}", wrong.len());
        for line in &wrong { println!("{name} {line}"); }
    }
}
