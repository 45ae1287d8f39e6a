//! Scenarios with one thing wrong, and the message that their author gets. What lies outside of the bounds of
//! one parameter is in `refused.rs`, here and in `src`.

use std::fmt::Write;
use std::io;
use std::path::Path;

use aqmlab_scenario::{MAX_SCENARIO_BYTES, Scenario};

/// A right scenario, from which each case departs in one place.
const RIGHT: &str = r#"
title = "right"
seed = 1
load = 0.98

[measure]
warm_up = "60 s"
duration = "240 s"
queue_sample = "100 ms"
record = ["flows"]

[topology]
kind = "dumbbell"

[topology.hosts]
clients = 2
servers = 2
rate = "10 Mbit/s"

[topology.bottleneck]
rate = "10 Mbit/s"
delay = "1 ms"
loss = 0.0
discipline = { kind = "red", min_th = "30 packets", max_th = "90 packets", limit = "480 packets" }

[topology.bottleneck.reverse]
discipline = { kind = "droptail", limit = "50 packets" }

[[traffic]]
name = "browsers"
kind = "mah-web"
parallel = 2
tcp = { profile = "freebsd-2.2.8", nagle = true }
rtt = { kind = "pairs", file = "pairs.csv" }

[[traffic]]
kind = "poisson"
rate = "5 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "bounded-pareto", shape = 1.2, minimum = "1 kB", maximum = "1 MB" }
rtt = { kind = "uniform", min = "10 ms", max = "150 ms" }
"#;

/// What is replaced, and by what.
const CASES: &[(&str, &str)] = &[
    // A link that varies, and what stands before it.
    (
        "loss = 0.0",
        "policer = { rate = \"1 Mbit/s\", burst = \"1000 bytes\" }",
    ),
    ("loss = 0.0", "policer = { rate = \"1 Mbit/s\" }"),
    (
        "loss = 0.0",
        "loss_changes = [{ at = \"9 s\", loss = 0.1 }, { at = \"8 s\", loss = 0.0 }]",
    ),
    (
        "loss = 0.0",
        "loss_changes = [{ at = \"9 s\", loss = 1.5 }]",
    ),
    (
        "loss = 0.0",
        "loss_changes = [{ when = { flow = 1, phase = \"drain\" }, loss = 0.1 }]",
    ),
    // Applications that pause.
    (
        "kind = \"poisson\"\nrate = \"5 /s\"\nrequest = { kind = \"constant\", size = \"400 bytes\" }\nresponse = { kind = \"bounded-pareto\", shape = 1.2, minimum = \"1 kB\", maximum = \"1 MB\" }",
        "kind = \"bulk\"\nflows = 1\npauses = [{ at = \"9 s\", for = \"2 s\" }, { at = \"10 s\", for = \"1 s\" }]",
    ),
    // Parts of a class.
    (
        "rate = \"5 /s\"",
        "rate = \"5 /s\"\nsubset = { of = \"web\", from = 0.5, to = 0.2 }",
    ),
    ("rate = \"5 /s\"", "subset = { of = \"web\", to = 0.2 }"),
    (
        "rate = \"5 /s\"",
        "rate = \"5 /s\"\npart = { of = \"web\", to = 0.2 }",
    ),
    (
        "parallel = 2",
        "parallel = 2\nusers = 10\nsubset = { of = \"web\", to = 0.2 }",
    ),
    // Grammar.
    ("seed = 1", "seed = "),
    ("seed = 1", "seed = 1 2"),
    ("[measure]", "[measure"),
    ("title = \"right\"", "title = \"right"),
    ("seed = 1", "seed = 1\nseed = 2"),
    // Keys.
    ("seed", "sed"),
    ("[measure]", "[mesure]"),
    ("warm_up", "warmup"),
    ("min_th", "min_threshold"),
    ("reverse", "revers"),
    ("parallel", "paralel"),
    (
        "rtt = { kind = \"pairs\", file = \"pairs.csv\" }",
        "rrt = { kind = \"pairs\", file = \"pairs.csv\" }",
    ),
    ("nagle", "nagel"),
    ("shape", "shap"),
    (", file", ", fil"),
    ("rtt = { kind = \"pairs\", file = \"pairs.csv\" }", ""),
    ("kind = \"dumbbell\"", ""),
    // Presets.
    (
        "discipline = { kind = \"droptail\", limit = \"50 packets\" }",
        "discipline = \"dcn-25\"",
    ),
    (
        "discipline = { kind = \"droptail\", limit = \"50 packets\" }",
        "discipline = 50",
    ),
    (
        "kind = \"droptail\", limit = \"50 packets\"",
        "preset = \"pi-42\"",
    ),
    ("kind = \"droptail\", limit = \"50 packets\"", "preset = 24"),
    (
        "kind = \"droptail\"",
        "kind = \"red\", preset = \"droptail-240\"",
    ),
    (
        "kind = \"droptail\"",
        "preset = \"dcn-24\", q_rev = \"1 packets\"",
    ),
    ("kind = \"droptail\"", "preset = \"red-12-36\", max_p = 2.0"),
    ("kind = \"red\", ", ""),
    ("kind = \"mah-web\"", ""),
    ("limit = \"50 packets\"", ""),
    ("rate = \"10 Mbit/s\"\ndelay", "delay"),
    ("size = \"400 bytes\"", ""),
    // Words.
    ("\"red\"", "\"redd\""),
    ("\"droptail\"", "\"fifo\""),
    ("\"dumbbell\"", "\"dumbell\""),
    ("\"mah-web\"", "\"mah\""),
    ("\"bounded-pareto\"", "\"pareto-bounded\""),
    ("\"freebsd-2.2.8\"", "\"freebsd-2.2\""),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "{ client = \"linux\" }",
    ),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "{ client = \"linux\", server = \"ns-one-way\" }",
    ),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "{ client = \"linux\", server = { ecn = 1 } }",
    ),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "{ cubic = { beta = 0.5 } }",
    ),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "{ congestion_control = { kind = \"cubic\", beta = 2 } }",
    ),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "{ congestion_control = \"cubik\" }",
    ),
    (
        "{ profile = \"freebsd-2.2.8\", nagle = true }",
        "\"freebsd\"",
    ),
    (
        "limit = \"480 packets\"",
        "limit = \"480 packets\", gap = \"alt\"",
    ),
    ("[\"flows\"]", "[\"flow\"]"),
    ("nagle = true", "recovery = \"newreno\""),
    // Forms.
    ("seed = 1", "seed = -1"),
    ("seed = 1", "seed = \"1\""),
    ("seed = 1", "seed = 99999999999999999999"),
    ("load = 0.98", "load = \"98 %\""),
    ("load = 0.98", "load = nan"),
    ("load = 0.98", "load = inf"),
    ("\"60 s\"", "60"),
    ("\"60 s\"", "\"60\""),
    ("\"60 s\"", "\"60 sec\""),
    ("\"60 s\"", "\"soon\""),
    ("\"60 s\"", "2026-01-01"),
    (
        "rate = \"10 Mbit/s\"\ndelay",
        "rate = \"-10 Mbit/s\"\ndelay",
    ),
    ("rate = \"10 Mbit/s\"\ndelay", "rate = \"10 Mbps\"\ndelay"),
    ("delay = \"1 ms\"", "device_ring = \"1.5 packets\""),
    ("delay = \"1 ms\"", "device_ring_batch = \"2 packets\""),
    (
        "loss = 0.0\ndiscipline = { kind = \"red\", min_th = \"30 packets\", max_th = \"90 packets\", limit = \"480 packets\" }",
        "device_ring_counted = true\ndiscipline = { kind = \"sfq\" }",
    ),
    ("delay = \"1 ms\"", "framing = \"etherne\""),
    ("clients = 2", "clients = 2.5"),
    ("nagle = true", "nagle = \"yes\""),
    ("[\"flows\"]", "\"flows\""),
    (
        "{ kind = \"constant\", size = \"400 bytes\" }",
        "\"400 bytes\"",
    ),
    (
        "{ kind = \"constant\", size = \"400 bytes\" }",
        "{ kind = 3 }",
    ),
    (
        "{ kind = \"uniform\", min = \"10 ms\", max = \"150 ms\" }",
        "\"80 ms\"",
    ),
    ("delay = \"1 ms\"", "forward = 3"),
    ("delay = \"1 ms\"", "forward = { rate = \"0 bit/s\" }"),
    // Values.
    ("load = 0.98", ""),
    ("parallel = 2", "users = 100"),
    ("parallel = 2", "share = nan"),
    ("parallel = 2", "start = \"5 min\""),
    ("parallel = 2", "start = \"20 s\"\nstop = \"20 s\""),
    ("parallel = 2", "start = 20"),
    (
        "parallel = 2",
        "start = { every = \"20 s\", last = \"1 s\" }",
    ),
    ("parallel = 2", "start = [\"20 s\", \"30 s\"]"),
    (
        "rate = \"5 /s\"",
        "rate = \"5 /s\"\nstart = { every = \"20 s\" }",
    ),
    ("\"100 ms\"", "\"1 ns\""),
    ("[\"flows\"]", "[\"flows\", \"queue\", \"flows\"]"),
    ("rate = \"10 Mbit/s\"\ndelay", "rate = \"0.1 bit/s\"\ndelay"),
    ("max_th = \"90 packets\"", "max_th = \"20 packets\""),
    (
        "limit = \"480 packets\"",
        "limit = \"100 packets\", gentle = true",
    ),
    ("limit = \"50 packets\"", "limit = \"0 packets\""),
    ("\"browsers\"", "\"poisson\""),
    ("\"browsers\"", "\"all\""),
    ("\"browsers\"", "\"web.users\""),
    ("\"browsers\"", "\"\""),
    ("rate = \"5 /s\"", "rate = \"0 /s\""),
    ("minimum = \"1 kB\"", "minimum = \"2 MB\""),
    ("shape = 1.2", "shape = -1.2"),
    ("min = \"10 ms\"", "min = \"200 ms\""),
    ("min = \"10 ms\"", "min = \"1 ms\""),
    (
        "{ kind = \"uniform\", min = \"10 ms\", max = \"150 ms\" }",
        "{ kind = \"even\", min = \"200 ms\", max = \"150 ms\" }",
    ),
    ("nagle = true", "mss = \"0 bytes\""),
    ("nagle = true", "mss = \"64 KiB\""),
    ("nagle = true", "send_buffer = \"100 bytes\""),
    ("nagle = true", "rto_max = \"2 s\""),
    (
        "nagle = true",
        "clock = { kind = \"ticks\", period = \"0 ms\" }",
    ),
    ("nagle = true", "delayed_ack = { kind = \"grid\" }"),
    ("nagle = true", "initial_window = 0"),
    (
        "nagle = true",
        "clock = { kind = \"ticks\", period = \"5 s\" }",
    ),
    ("nagle = true", "rto_initial = \"1 ns\""),
    // Beyond what it means.
    (
        "kind = \"droptail\"",
        "kind = \"codel\", mtu = \"3000000000 bytes\"",
    ),
    (
        "kind = \"droptail\"",
        "kind = \"fq-codel\", quantum = \"3000000000 bytes\"",
    ),
    (
        "kind = \"droptail\"",
        "kind = \"pie\", mean_packet = \"70 kB\"",
    ),
    (
        "kind = \"poisson\"\nrate = \"5 /s\"\nrequest = { kind = \"constant\", size = \"400 bytes\" }\nresponse = { kind = \"bounded-pareto\", shape = 1.2, minimum = \"1 kB\", maximum = \"1 MB\" }",
        "kind = \"vectors\"\nfile = \"a.cvec\"\ncopies = 1\nstretch = 1e-300",
    ),
    (
        "kind = \"poisson\"\nrate = \"5 /s\"\nrequest = { kind = \"constant\", size = \"400 bytes\" }\nresponse = { kind = \"bounded-pareto\", shape = 1.2, minimum = \"1 kB\", maximum = \"1 MB\" }",
        "kind = \"cbr\"\nflows = 1\nrate = \"1e9 Mbit/s\"",
    ),
    // Tables.
    ("pairs.csv", "missing.csv"),
    ("pairs.csv", "letters.csv"),
    ("pairs.csv", "ragged.csv"),
    ("pairs.csv", "empty.csv"),
    ("pairs.csv", "one-column.csv"),
    ("clients = 2", "clients = 3"),
    ("file = \"pairs.csv\"", ""),
    (
        "file = \"pairs.csv\"",
        "file = \"pairs.csv\", matrix = [[\"1 ms\"]]",
    ),
    ("file = \"pairs.csv\"", "matrix = [[\"50 ms\", \"60\"]]"),
    (
        "{ kind = \"uniform\", min = \"10 ms\", max = \"150 ms\" }",
        "{ kind = \"empirical\", file = \"falling.csv\" }",
    ),
    (
        "{ kind = \"uniform\", min = \"10 ms\", max = \"150 ms\" }",
        "{ kind = \"empirical\", cdf = [[\"0 ms\", 0.5], [\"5 ms\", 1.0]] }",
    ),
    (
        "{ kind = \"uniform\", min = \"10 ms\", max = \"150 ms\" }",
        "{ kind = \"general\", fit = \"tail\" }",
    ),
    (
        "{ kind = \"constant\", size = \"400 bytes\" }",
        "{ kind = \"empirical\", file = \"falling.csv\" }",
    ),
    (
        "{ kind = \"constant\", size = \"400 bytes\" }",
        "{ kind = \"empirical\", cdf = [[100, 0.5]] }",
    ),
    (
        "{ kind = \"constant\", size = \"400 bytes\" }",
        "{ kind = \"empirical\", cdf = [[100, nan]] }",
    ),
    (
        "{ kind = \"constant\", size = \"400 bytes\" }",
        "{ kind = \"empirical\", cdf = [[100, 0.5, 1]] }",
    ),
];

/// Overrides of the right scenario that are wrong.
const OVERRIDES: &[(&str, &str)] = &[
    ("traffic.browser.users", "3"),
    ("traffic.7.users", "3"),
    ("traffic", "3"),
    ("traffic.users", "3"),
    ("seed.of", "3"),
    ("topology..rate", "1"),
    ("", "1"),
    ("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", "1"),
    ("topolgy.bottleneck.rate", "10 Mbit/s"),
    ("topology.bottleneck.rate", "10"),
    ("traffic.browsers.users", "1.5"),
    ("traffic.browsers.users", "many"),
    ("measure.duration", "0 s"),
];

fn files(name: &str) -> io::Result<String> {
    let text = match name {
        "pairs.csv" => "server,a,b\nx,10,20\ny,30,40.5\n",
        "letters.csv" => "server,a,b\nx,10,20\ny,thirty,40\n",
        "ragged.csv" => "server,a,b\nx,10,20\ny,30\n",
        "empty.csv" => "server,a,b\n",
        "one-column.csv" => "server\nx\n",
        "falling.csv" => "bytes,cdf\n100,0.7\n200,0.4\n300,1\n",
        // The operating system's own words for what is not there.
        _ => return std::fs::read_to_string(name),
    };
    Ok(text.to_owned())
}

fn message(text: &str, overrides: &[(String, String)]) -> String {
    let error = Scenario::parse(text, overrides, &mut files).err();
    let message = error.map_or_else(
        || panic!("accepted:\n{text}\n{overrides:?}"),
        |e| e.to_string(),
    );
    assert!(!message.contains('\n'), "more than one line: {message}");
    assert!(message.len() < 1_000, "too long: {message}");
    assert!(!message.contains(char::is_control), "{message:?}");
    brief(&message)
}

/// The message with a long list of words cut: a new discipline or profile is no new message.
fn brief(message: &str) -> String {
    const LONG: usize = 5;
    match message.rsplit_once(" (allowed: ") {
        Some((reported, words)) if words.split(", ").count() > LONG => {
            let few: Vec<_> = words.split(", ").take(2).collect();
            format!("{reported} (allowed: {}, ...)", few.join(", "))
        }
        _ => message.to_owned(),
    }
}

#[test]
fn the_scenario_that_cases_depart_from_is_right() {
    Scenario::parse(RIGHT, &[], &mut files).unwrap();
}

#[test]
fn each_mistake_has_its_message() {
    let mut table = String::new();
    for (right, wrong) in CASES {
        assert!(RIGHT.contains(right), "not in the scenario: {right}");
        let text = RIGHT.replacen(right, wrong, 1);
        let shown = |text: &str| text.replace('\n', "\\n");
        let reported = message(&text, &[]);
        writeln!(
            table,
            "{}  ->  {}\n    {reported}\n",
            shown(right),
            shown(wrong)
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn each_wrong_override_has_its_message() {
    let mut table = String::new();
    for (path, value) in OVERRIDES {
        let reported = message(RIGHT, &[((*path).to_owned(), (*value).to_owned())]);
        writeln!(table, "--set {path}={value}\n    {reported}\n").unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn huge_input_is_refused_in_a_short_message() {
    let huge = "x".repeat(MAX_SCENARIO_BYTES + 1);
    assert!(message(&huge, &[]).contains("at most 16777216 (16 MiB)"));
    let line = format!("title = {}", "x".repeat(1 << 20));
    assert!(message(&line, &[]).contains("line 1"));
    let value = format!("seed = \"{}\"", "x".repeat(1 << 20));
    assert!(message(&value, &[]).starts_with("seed: found \"xxx"));
    let key = format!("{} = 1", "x".repeat(1 << 20));
    assert!(message(&key, &[]).contains("unknown key"));
    let nested = format!("title = {}", "[".repeat(100_000));
    assert!(message(&nested, &[]).contains("not TOML"));
    let deep = format!("{}b = 1", "a.".repeat(100_000));
    message(&deep, &[]);
}

/// The files that tests of the command line use; each begins with the message that it earns.
#[test]
fn broken_files_say_what_they_earn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/broken");
    let mut count = 0;
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# error: "));
        let reported = message(&text, &[]);
        if expected != Some(reported.as_str()) {
            writeln!(wrong, "{}\t# error: {reported}", path.display()).unwrap();
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "their first lines should be:\n{wrong}");
    assert!(count >= 10, "{count} broken scenarios");
}

/// A network of links, and one mistake each.
const NETWORK: &str = r#"
[topology]
kind = "network"
[topology.links.core]
rate = "10 Mbit/s"
delay = "5 ms"
discipline = "droptail-240"
rate_changes = [{ at = "5 s", rate = "5 Mbit/s" }, { at = "9 s", rate = "10 Mbit/s" }]
[topology.links.side]
rate = "20 Mbit/s"
discipline = "droptail-240"
reordering = { share = 0.1, delay = "1 ms" }
[topology.paths.down]
links = ["core"]
back = ["-core", "side"]
[topology.paths.up]
links = ["-core"]
[[traffic]]
kind = "bulk"
flows = 2
path = "down"
rtt = { kind = "constant", rtt = "10 ms" }
"#;

const NETWORK_CASES: &[(&str, &str)] = &[
    ("links = [\"core\"]", "links = [\"cord\"]"),
    (
        "back = [\"-core\", \"side\"]",
        "back = [\"-core\", \"-sid\"]",
    ),
    ("links = [\"core\"]", "links = []"),
    ("links = [\"core\"]", "link = [\"core\"]"),
    ("links = [\"core\"]", "links = \"core\""),
    ("[topology.links.core]", "[topology.links.\"-core\"]"),
    ("path = \"down\"", "path = \"dwn\""),
    ("path = \"down\"\n", ""),
    (
        "[topology.paths.down]\nlinks = [\"core\"]\nback = [\"-core\", \"side\"]\n[topology.paths.up]\nlinks = [\"-core\"]\n",
        "",
    ),
    ("rtt = \"10 ms\"", "rtt = \"9 ms\""),
    ("delay = \"1 ms\"", "delay = \"100 days\""),
    ("at = \"9 s\"", "at = \"4 s\""),
    // Changes that come with a phase.
    ("at = \"9 s\", ", ""),
    (
        "at = \"9 s\"",
        "at = \"9 s\", when = { flow = 1, phase = \"avoidance\" }",
    ),
    ("at = \"9 s\"", "when = \"avoidance\""),
    ("at = \"9 s\"", "when = { flow = 1 }"),
    ("at = \"9 s\"", "when = { phase = \"avoidance\" }"),
    ("at = \"9 s\"", "when = { flow = 0, phase = \"avoidance\" }"),
    ("at = \"9 s\"", "when = { flow = 3, phase = \"avoidance\" }"),
    ("at = \"9 s\"", "when = { flow = 2, phase = \"avoidence\" }"),
    (
        "at = \"9 s\"",
        "when = { flow = 2, phase = \"avoidance\", untl = \"1 s\" }",
    ),
    (
        "at = \"9 s\"",
        "when = { flow = 2, phase = \"avoidance\", wait = \"31 days\" }",
    ),
    (
        "at = \"9 s\"",
        "when = { flow = 2, phase = \"avoidance\", after = \"800 h\" }",
    ),
    (
        "[topology]",
        "[[changes]]\nwhen = { flow = 2, phase = \"avoidance\" }\nkey = \"core.forward.rate\"\nvalue = \"5 Mbit/s\"\n[topology]",
    ),
    (
        "[topology]",
        "[[changes]]\nwhen = { flow = 2, phase = \"drain\" }\nkey = \"side.forward.rate\"\nvalue = \"5 Mbit/s\"\n[topology]",
    ),
    (
        "[topology]",
        "[[changes]]\nkey = \"side.forward.rate\"\nvalue = \"5 Mbit/s\"\n[topology]",
    ),
    (
        "path = \"down\"",
        "path = \"down\"\nlimit = \"1 Mbit/s\"\ntransport = \"quinn\"\npauses = [{ when = { flow = 1, phase = \"avoidance\" }, for = \"1 s\" }]",
    ),
    (
        "path = \"down\"",
        "path = \"down\"\ntransport = \"quic\"\nquic = { congestion_control = \"bbr3\" }\nlimit = \"1 Mbit/s\"\npauses = [{ when = { flow = 1, phase = \"avoidance\" }, for = \"1 s\" }]",
    ),
    (
        "kind = \"network\"",
        "kind = \"network\"\nhosts = { rate = \"1 Gbit/s\" }",
    ),
    ("kind = \"network\"", "kind = \"dumbbell\""),
    ("kind = \"network\"", "kind = \"parking-lot\""),
];

const PARKING_LOT: &str = r#"
[topology]
kind = "parking-lot"
routers = 6
bottlenecks = 2
[topology.bottleneck]
rate = "10 Mbit/s"
discipline = "droptail-240"
[topology.aggregation]
rate = "100 Mbit/s"
discipline = "droptail-240"
[[traffic]]
kind = "bulk"
flows = 2
path = "through"
rtt = { kind = "constant", rtt = "10 ms" }
"#;

const PARKING_LOT_CASES: &[(&str, &str)] = &[
    ("bottlenecks = 2", "bottlenecks = 4"),
    ("bottlenecks = 2", "bottlenecks = 0"),
    ("path = \"through\"", "path = \"cross-3\""),
    ("[topology.aggregation]", "[topology.agregation]"),
];

#[test]
fn each_mistake_in_a_network_has_its_message() {
    let mut table = String::new();
    for (base, cases) in [(NETWORK, NETWORK_CASES), (PARKING_LOT, PARKING_LOT_CASES)] {
        Scenario::parse(base, &[], &mut files).unwrap();
        for (right, wrong) in cases {
            assert!(base.contains(right), "not in the scenario: {right}");
            let reported = message(&base.replacen(right, wrong, 1), &[]);
            let [right, wrong] = [right, wrong].map(|text| text.replace('\n', "\\n"));
            writeln!(table, "{right}  ->  {wrong}\n    {reported}\n").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
