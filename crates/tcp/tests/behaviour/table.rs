//! What every stack and every congestion control does on eight paths, one row each: a change of behaviour
//! shows as a difference of table.txt. `AQMLAB_RENEW=1` writes it anew.
//!
//! The paths have 10 Mbit/s, 20 ms each way and a queue without end. What is lost or marked does
//! not depend on the stack as long as it sends the same segments.

use std::fmt::Write;
use std::path::Path;

use aqmlab_net::{Ecn, FNV_BASIS, RandomStream, Rate, Time, fnv1a};
use aqmlab_tcp::{CongestionControlKind, EcnEcho, Flags, Profile, Recovery, Segment};

use crate::behaviour::pair::{Fate, Pair, Way};

const LINK: [(Option<Rate>, Time); 1] = [(Some(Rate::from_mbps(10)), Time::from_millis(20))];

const HEAD: &str = "\
# stack and congestion control | path | complete (ms) | segments to client, to server | sent again:
# SYN, FIN, data | time-outs | window, threshold at the end (bytes) | digest of all segments
";

/// Paths, and the bytes of the response on them.
const PATHS: [(&str, u64); 8] = [
    ("clear", 300_000),
    ("losses", 300_000),
    ("marks", 300_000),
    ("bursts", 400_000),
    ("acks", 300_000),
    ("syn", 20_000),
    ("tail", 60_000),
    ("long", u64::MAX / 4),
];

/// What a path does to its segments.
struct Harm {
    path: &'static str,
    draws: RandomStream,
    /// Segments with data so far, and the largest number behind one.
    data: u64,
    highest: u64,
    syns: [u32; 2],
    response: u64,
}

impl Harm {
    fn new((path, response): (&'static str, u64)) -> Self {
        Self {
            path,
            draws: RandomStream::new(1, "harm", 0),
            data: 0,
            highest: 0,
            syns: [0; 2],
            response,
        }
    }

    fn decide(&mut self, way: Way, segment: &Segment) -> Fate {
        let end = segment.seq + u64::from(segment.len);
        let is_data = way == Way::ToClient && segment.len > 0;
        let is_new = is_data && end > self.highest;
        self.data += u64::from(is_data);
        self.highest = self.highest.max(if is_data { end } else { 0 });
        let drawn = self.draws.uniform();
        let is_syn = segment.flags.has(Flags::SYN);
        self.syns[usize::from(way == Way::ToClient)] += u32::from(is_syn);
        let is_lost = match self.path {
            "losses" => drawn < 0.03,
            // Five in a row, and of these again one that is sent again.
            "bursts" => is_data && (self.data % 90 > 84 || self.data % 200 == 92),
            "acks" => way == Way::ToServer && segment.len == 0 && !is_syn && drawn < 0.4,
            "syn" => is_syn && self.syns[usize::from(way == Way::ToClient)] == 1,
            "tail" => is_new && end + 3000 > self.response,
            "long" => is_data && drawn < 0.001,
            _ => false,
        };
        let is_marked = match self.path {
            "marks" => is_data && drawn < 0.04,
            "long" => is_data && drawn > 0.998,
            _ => false,
        };
        match (is_lost, is_marked) {
            (true, _) => Fate::Drop,
            (_, true) => Fate::Mark,
            _ => Fate::Pass,
        }
    }
}

fn digest(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    fnv1a(FNV_BASIS, bytes)
}

fn row(profile: &Profile, path: (&'static str, u64)) -> String {
    let mut harm = Harm::new(path);
    let mut pair = Pair::new(profile, &LINK, |way, segment| harm.decide(way, segment));
    let until = Time::from_secs(if path.0 == "long" { 15 } else { 120 });
    pair.exchange(3000, path.1, until);
    let complete = pair.complete_at.map_or_else(
        || "-".to_owned(),
        |at| format!("{:.3}", at.as_secs_f64() * 1e3),
    );
    let count = |way| pair.log.iter().filter(|sent| sent.way == way).count();
    let (client, server) = (pair.client.retransmissions(), pair.server.retransmissions());
    let state = pair.server.probe(profile);
    let segments = pair.log.iter().flat_map(|sent| {
        let it = &sent.segment;
        let ecn = match it.ecn {
            Ecn::NotEct => 0,
            Ecn::Ect0 => 1,
            Ecn::Ect1 => 2,
            Ecn::Ce => 3,
        };
        let bits = u64::from(it.flags.0) << 32 | ecn << 40 | u64::from(it.len);
        [sent.time.as_nanos(), it.seq, it.ack, bits]
    });
    format!(
        "{} | {complete} | {}, {} | {}, {}, {} | {} | {}, {} | {:016x}",
        path.0,
        count(Way::ToClient),
        count(Way::ToServer),
        client.syn + server.syn,
        client.fin + server.fin,
        client.data + server.data,
        client.timeouts + server.timeouts,
        state.cwnd,
        state.ssthresh,
        digest(segments),
    )
}

/// The stacks that ship, then every congestion control with both senders.
fn stacks() -> Vec<(String, Profile)> {
    let shipped = Profile::NAMES.map(|name| {
        let profile = Profile::named(name).expect("a shipped profile");
        (name.to_owned(), profile)
    });
    let mut stacks = shipped.to_vec();
    for congestion_control in CongestionControlKind::all() {
        for (sender, recovery) in [("classic", Recovery::Sack), ("rack", Recovery::RackTlp)] {
            let base = if sender == "rack" { "linux" } else { "rfc" };
            let base = Profile::named(base).expect("a shipped profile");
            let found = [base.ecn_echo, EcnEcho::Accurate]
                .into_iter()
                .find_map(|ecn_echo| {
                    let profile = Profile {
                        congestion_control,
                        recovery,
                        ecn: true,
                        ecn_echo,
                        ..base.clone()
                    };
                    profile.check().is_ok().then_some(profile)
                });
            let debug = format!("{congestion_control:?}");
            let (name, _) = debug.split_once('(').expect("parameters");
            stacks.extend(found.map(|profile| (format!("{sender} {name}"), profile)));
        }
    }
    stacks
}

#[test]
fn every_stack_behaves_as_the_table_says() {
    let mut table = HEAD.to_owned();
    for (name, profile) in stacks() {
        for path in PATHS {
            writeln!(table, "{name} | {}", row(&profile, path)).expect("it is a string");
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour/table.txt");
    if std::env::var_os("AQMLAB_RENEW").is_some() {
        std::fs::write(&file, &table).expect("the table");
    }
    let expected = std::fs::read_to_string(&file).expect("the table");
    let changed: Vec<_> = table
        .lines()
        .zip(expected.lines())
        .filter(|(found, expected)| found != expected)
        .collect();
    assert!(
        changed.is_empty() && table.lines().count() == expected.lines().count(),
        "behaviour has changed: AQMLAB_RENEW=1 cargo test -p aqmlab-tcp --test it behaviour\n\
         {changed:#?}"
    );
}
