//! Writes packet scripts: what one end of a transfer is sent and sends, while the network does what a
//! plan says. `transfer PLAN.toml...` writes `PLAN.script` beside each plan.
//!
//! The client asks for the connection, the server writes. The whole round trip lies on the way to the
//! client, so what the client sends arrives at once.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use aqmlab_declare::tagged::{self, Located};
use aqmlab_net::{Ecn, Time};
use aqmlab_tcp::{Context, Endpoint, Events, HostClock, Profile, Segment, script};
use serde::Deserialize;
use toml::{Table, Value};

/// No plan of a short transfer needs as many events.
const STEPS: u32 = 20_000;

/// How much longer a segment with data is under way than the handshake. A round trip that is as long as
/// the least one, to the microsecond, would be decided by chance where it is played.
const LONGER: Time = Time::from_millis(2);

/// What arrives so shortly ahead of a timer of the server waits, once, until the second time after it:
/// what leaves would depend on which comes first, and that is decided by chance where it is played.
const AHEAD: Time = Time::from_millis(1);
const BEHIND: Time = Time::from_micros(300);

/// What the two ends and the network between them do. Segments with data count from 1, those that
/// are sent again too; so do the client's segments behind the handshake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    server: Table,
    client: Table,
    /// Seconds from one end to the other and back.
    round_trip: f64,
    /// Seconds between two segments of the server at least, where they arrive.
    spacing: f64,
    /// Seconds after the handshake, and bytes.
    writes: Vec<(f64, u64)>,
    /// Whether the server closes behind the last write.
    close: bool,
    lost: BTreeSet<u32>,
    /// Which segments arrive later, and by how many seconds.
    late: Vec<(u32, f64)>,
    marked: BTreeSet<u32>,
    lost_acks: BTreeSet<u32>,
    /// Seconds after which the script ends in any case.
    until: f64,
}

struct Run {
    plan: Plan,
    profiles: [Profile; 2],
    hosts: [HostClock; 2],
    ends: [Endpoint; 2],
    now: Time,
    free: Time,
    /// Until when nothing arrives.
    hold: Time,
    arrivals: BinaryHeap<Reverse<(Time, usize)>>,
    segments: Vec<Segment>,
    data: u32,
    acks: u32,
    text: String,
}

const SERVER: usize = 0;
const CLIENT: usize = 1;

fn profile(table: &Table) -> Result<Profile, String> {
    let read: Result<Profile, Located> = tagged::from_value(Value::Table(table.clone()));
    let profile = read.map_err(|error| error.to_string())?;
    profile.check().map_err(|error| format!("{error:?}"))?;
    Ok(profile)
}

impl Run {
    fn new(plan: Plan) -> Result<Self, String> {
        let profiles = [profile(&plan.server)?, profile(&plan.client)?];
        let mut text = String::new();
        for (key, value) in &plan.server {
            let _ = match (key.as_str(), value) {
                ("profile", Value::String(name)) => writeln!(text, "profile {name}"),
                _ => writeln!(text, "set {key} = {value}"),
            };
        }
        let ends = [
            Endpoint::listen(&profiles[SERVER]),
            Endpoint::listen(&profiles[CLIENT]),
        ];
        let _ = writeln!(text, "0 listen");
        Ok(Self {
            plan,
            profiles,
            hosts: [HostClock::default(); 2],
            ends,
            now: Time::ZERO,
            free: Time::ZERO,
            hold: Time::ZERO,
            arrivals: BinaryHeap::new(),
            segments: Vec::new(),
            data: 0,
            acks: 0,
            text,
        })
    }

    fn act(
        &mut self,
        side: usize,
        what: impl FnOnce(&mut Endpoint, Context<'_>, &mut Vec<Segment>) -> Events,
    ) -> Events {
        let cx = Context {
            now: self.now,
            profile: &self.profiles[side],
            host: &self.hosts[side],
        };
        let mut out = Vec::new();
        let events = what(&mut self.ends[side], cx, &mut out);
        for segment in out {
            match side {
                SERVER => self.server_sends(segment),
                _ => self.client_sends(segment),
            }
        }
        events
    }

    /// The server sends: a line of the script, and what the network does with it.
    fn server_sends(&mut self, mut segment: Segment) {
        self.line('>', &segment);
        let mut late = 0.0;
        if segment.len > 0 {
            self.data += 1;
            if self.plan.lost.contains(&self.data) {
                return;
            }
            if segment.ecn.is_capable() && self.plan.marked.contains(&self.data) {
                segment.ecn = Ecn::Ce;
            }
            let number = self.data;
            let extra = self.plan.late.iter().filter(|(which, _)| *which == number);
            late = extra.map(|(_, seconds)| seconds).sum();
        }
        let longer = if segment.len > 0 { LONGER } else { Time::ZERO };
        let arrival = self.now + Time::from_secs_f64(self.plan.round_trip) + longer;
        let arrival = arrival.max(self.free);
        self.free = arrival + Time::from_secs_f64(self.plan.spacing);
        let arrival = arrival + Time::from_secs_f64(late);
        self.segments.push(segment);
        self.arrivals
            .push(Reverse((arrival, self.segments.len() - 1)));
    }

    /// The client sends, and it arrives at once.
    fn client_sends(&mut self, segment: Segment) {
        if self.ends[SERVER].is_established() {
            self.acks += 1;
            if self.plan.lost_acks.contains(&self.acks) {
                return;
            }
        }
        self.line('<', &segment);
        self.act(SERVER, |end, cx, out| end.on_segment(&segment, cx, out));
    }

    fn line(&mut self, way: char, segment: &Segment) {
        let shown = script::show(segment);
        let _ = writeln!(self.text, "{} {way} {shown}", self.time());
    }

    fn time(&self) -> String {
        let seconds = format!("{:.9}", self.now.as_nanos() as f64 / 1e9);
        let short = seconds.trim_end_matches('0').trim_end_matches('.');
        short.to_owned()
    }

    fn is_over(&self, next_write: usize) -> bool {
        let server = &self.ends[SERVER];
        next_write == self.plan.writes.len() && server.in_flight() == 0 && server.unsent() == 0
    }

    fn run(mut self) -> Result<String, String> {
        self.act(CLIENT, |end, cx, out| {
            *end = Endpoint::connect(cx, out);
            Events::default()
        });
        let mut write = 0;
        for _ in 0..STEPS {
            if self.ends[SERVER].is_established() && self.is_over(write) {
                break;
            }
            let first = self.arrivals.peek();
            let mut arrival = first.map_or(Time::NEVER, |Reverse((time, _))| *time);
            let due = self
                .plan
                .writes
                .get(write)
                .map_or(Time::NEVER, |(after, _)| {
                    Time::from_secs_f64(self.plan.round_trip + after)
                });
            let wakes = self.ends.each_ref().map(Endpoint::wake_at);
            let wake = wakes[SERVER];
            if arrival < self.hold {
                arrival = self.hold;
            } else if arrival <= wake && wake.saturating_sub(arrival) < AHEAD {
                arrival = wake.saturating_add(BEHIND);
            }
            let next = arrival.min(due).min(wakes[0]).min(wakes[1]);
            if next >= Time::from_secs_f64(self.plan.until) {
                break;
            }
            self.now = next.max(self.now);
            if wake == next {
                self.hold = self.now + BEHIND;
                self.act(SERVER, |end, cx, out| end.on_timer(cx, out));
            } else if arrival == next {
                let Some(Reverse((_, place))) = self.arrivals.pop() else {
                    break;
                };
                let segment = self.segments[place];
                self.act(CLIENT, |end, cx, out| end.on_segment(&segment, cx, out));
            } else if wakes[CLIENT] == next {
                self.act(CLIENT, |end, cx, out| end.on_timer(cx, out));
            } else {
                let bytes = self.plan.writes[write].1;
                write += 1;
                let _ = writeln!(self.text, "{} write {bytes}", self.time());
                self.act(SERVER, |end, cx, out| {
                    end.write(bytes, cx, out);
                    Events::default()
                });
                if self.plan.close && write == self.plan.writes.len() {
                    let _ = writeln!(self.text, "{} close", self.time());
                    self.act(SERVER, |end, cx, out| {
                        end.close(cx, out);
                        Events::default()
                    });
                }
            }
        }
        script::play(&self.text).map_err(|error| format!("the script fails: {error}"))?;
        Ok(self.text)
    }
}

fn written(path: &Path) -> Result<PathBuf, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let plan: Plan = toml::from_str(&text).map_err(|error| error.to_string())?;
    let target = path.with_extension("script");
    let script = Run::new(plan)?.run()?;
    fs::write(&target, script).map_err(|error| error.to_string())?;
    Ok(target)
}

fn main() -> ExitCode {
    for path in env::args_os().skip(1).map(PathBuf::from) {
        if let Err(error) = written(&path) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
