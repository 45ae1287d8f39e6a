//! Connection vectors over the simulated TCP: every byte arrives, pauses are kept, windows and
//! losses are those of the vector; files that are missing, broken or changed are refused.

use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_parquet::recorder;
use aqmlab_record::{Discard, Summary};
use aqmlab_scenario::Scenario;
use aqmlab_traffic::vector::{ConnectionVector, VectorReader};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

/// A folder that goes when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("aqmlab-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SYNTHETIC: &str = include_str!("../../traffic/data/tmix/synthetic-orig.cvec");

fn scenario(keys: &str, bottleneck: &str) -> String {
    format!(
        r#"
        [measure]
        warm_up = "0 s"
        duration = "2000 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "1 Gbit/s"
        discipline = {{ kind = "droptail", limit = "100000 packets" }}
        {bottleneck}
        [[traffic]]
        name = "recorded"
        kind = "vectors"
        file = "connections.cvec"
        {keys}
        tcp = "linux-classic"
        rtt = {{ kind = "vector" }}
        "#
    )
}

fn load(text: &str, folder: &Path) -> Scenario {
    Scenario::load_text(text, folder, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn run(folder: &Folder, file: &str, keys: &str, bottleneck: &str) -> (Summary, Vec<Flow>) {
    folder.write("connections.cvec", file);
    let scenario = load(&scenario(keys, bottleneck), &folder.0);
    let records = recorder(Some(&folder.0), &scenario.measure);
    let summary = aqmlab_sim::run(&scenario, records, &mut |_| true).unwrap();
    (summary, flows(&folder.0.join("flows.parquet")))
}

/// A row of `flows.parquet`.
#[derive(Clone, Debug, PartialEq)]
struct Flow {
    start_s: f64,
    duration_s: f64,
    bytes: [u64; 2],
}

fn flows(path: &Path) -> Vec<Flow> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let place = |name: &str| fields.iter().position(|field| field.name() == name);
    let [start, duration, request, response] =
        ["start_s", "duration_s", "request_bytes", "response_bytes"]
            .map(|name| place(name).unwrap());
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let mut flows: Vec<Flow> = rows
        .map(|row| Flow {
            start_s: row.get_double(start).unwrap(),
            duration_s: row.get_double(duration).unwrap(),
            bytes: [request, response].map(|column| row.get_ulong(column).unwrap()),
        })
        .collect();
    flows.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    flows
}

fn read(text: &str) -> Vec<ConnectionVector> {
    let vectors: Result<_, _> = VectorReader::new(text.as_bytes()).collect();
    vectors.unwrap()
}

#[test]
fn every_byte_of_every_vector_arrives_with_and_without_losses() {
    let folder = Folder::new("bytes");
    let vectors = read(SYNTHETIC);
    let expected: Vec<_> = vectors.iter().map(ConnectionVector::bytes).collect();
    for (keys, bottleneck) in [
        ("copies = 1", ""),
        ("copies = 1\nlosses = true", ""),
        ("copies = 1\nwindows = false\nlosses = true", "loss = 0.03"),
    ] {
        let (summary, flows) = run(&folder, SYNTHETIC, keys, bottleneck);
        let found: Vec<_> = flows.iter().map(|flow| flow.bytes).collect();
        assert_eq!(found, expected, "{keys}");
        for (flow, vector) in flows.iter().zip(&vectors) {
            assert!((flow.start_s - vector.start.as_secs_f64()).abs() < 1e-6);
        }
        let again = summary.flows["recorded"].retransmitted_data;
        assert_eq!(again > 0, keys.contains("losses"), "{keys}: {again}");
    }
}

/// What happens on one connection with a round trip of 100 ms.
fn one(folder: &Folder, lines: &str) -> (Summary, Flow) {
    let file = format!("SEQ 0 1 1 1\nr 100000\n{lines}");
    let (summary, flows) = run(folder, &file, "copies = 1", "");
    (summary, flows[0].clone())
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-3,
        "found {found}, expected {expected}"
    );
}

#[test]
fn pauses_are_kept_and_exchanges_timed() {
    let folder = Folder::new("pauses");
    // Connect, request, 0.3 s of thought, response in two pieces 0.2 s apart.
    let (summary, flow) = one(&folder, "> 100\nt 300000\n< 200\nt 200000\n< 300\nt 1\n");
    let responses = &summary.responses["recorded"];
    assert_eq!((responses.started, responses.count), (1, 1));
    assert_near(responses.mean_s.unwrap(), 0.1 + 0.1 + 0.3 + 0.2);
    // The close: the acceptor's FIN has arrived with the response; the other FIN and its ACK.
    assert_near(flow.duration_s, 0.7 + 0.1);
    assert_eq!(flow.bytes, [100, 500]);

    // The acceptor speaks first; the second exchange begins after a pause of 0.5 s.
    let (summary, flow) = one(&folder, "< 80\nt 500000\n> 100\nt 1\n< 60\nt 250000\n");
    let responses = &summary.responses["recorded"];
    assert_eq!((responses.started, responses.count), (2, 2));
    // One way for the SYN, one for its answer, one for the ACK, one for the greeting.
    assert_near(responses.max_s.unwrap(), 0.2);
    assert_near(responses.mean_s.unwrap(), (0.2 + 0.1) / 2.0);
    assert_near(flow.duration_s, 0.2 + 0.5 + 0.1 + 0.25 + 0.1);

    // What nobody answers is no exchange, but a flow.
    let (summary, flow) = one(&folder, "> 1000\nt 700000\n");
    let responses = &summary.responses["recorded"];
    assert_eq!((responses.started, responses.count), (0, 0));
    assert_eq!(flow.bytes, [1000, 0]);
    assert_near(flow.duration_s, 0.1 + 0.7 + 0.1 + 0.05);
}

#[test]
fn two_sides_speak_at_once() {
    let folder = Folder::new("concurrent");
    let file = "CONC 0 2 2 1 1\nr 100000\n\
                c> 5000\nt> 400000\nc> 7\nt> 100000\n\
                c< 900\nt< 50000\nc< 800\nt< 1\n";
    let (summary, flows) = run(&folder, file, "copies = 1", "");
    assert_eq!(flows[0].bytes, [5007, 1700]);
    // Neither waits: the initiator's program ends 0.6 s after the connect, its FIN takes 50 ms.
    assert_near(flows[0].duration_s, 0.1 + 0.5 + 0.1);
    assert_eq!(summary.responses["recorded"].started, 0);
}

#[test]
fn windows_limit_the_other_side_and_segments_both() {
    let folder = Folder::new("windows");
    let transfer = |lines: &str| one(&folder, &format!("{lines}> 10\nt 1\n< 100000\nt 1\n"));
    let (free, _) = transfer("");
    let (narrow, _) = transfer("w 2920 65535\n");
    let (small, _) = transfer("w 65535 65535\nm 500 500\n");
    let time = |summary: &Summary| summary.responses["recorded"].mean_s.unwrap();
    // Two segments of 1460 bytes in each round trip: 35 of them.
    let trips = 100_000_f64 / 2920.0;
    assert!(time(&narrow) > 0.1 * trips && time(&narrow) < 0.1 * (trips + 4.0));
    assert!(time(&free) < 1.0);
    let packets = |summary: &Summary| summary.links["bottleneck"]["forward"].arrived_packets;
    assert!(packets(&small) >= 200, "{}", packets(&small));
    assert!(packets(&free) < 80, "{}", packets(&free));
}

#[test]
fn copies_thin_and_superimpose_and_stretch_moves_the_starts() {
    let folder = Folder::new("copies");
    let count = |keys: &str| run(&folder, SYNTHETIC, keys, "").1.len();
    let (half, more) = (count("copies = 0.5"), count("copies = 2.5"));
    // Binomial: four standard deviations are 25.
    assert!((55..=105).contains(&half), "{half}");
    assert!((375..=425).contains(&more), "{more}");
    let (_, flows) = run(&folder, SYNTHETIC, "copies = 1\nstretch = 3.0", "");
    for (flow, vector) in flows.iter().zip(read(SYNTHETIC)) {
        assert!((flow.start_s - 3.0 * vector.start.as_secs_f64()).abs() < 1e-6);
    }
    // The file is 3.8 s long.
    let keys = "copies = 0.05\nrepeat = true\nstop = \"380 s\"";
    let repeated = count(keys);
    assert!((700..=900).contains(&repeated), "{repeated}");
}

#[test]
fn the_effective_scenario_names_the_file_and_what_it_holds() {
    let folder = Folder::new("effective");
    let path = folder.write("connections.cvec", SYNTHETIC);
    let found = load(&scenario("copies = 1", ""), &folder.0);
    let effective = found.to_toml();
    assert!(
        effective.contains(&format!("file_bytes = {}", SYNTHETIC.len())),
        "{effective}"
    );
    let again = Scenario::parse(&effective, &[], &mut |name| panic!("asks for {name}")).unwrap();
    assert_eq!(again, found);
    assert_eq!(load(&effective, Path::new("/")), found);

    let changed = SYNTHETIC.replacen("> 1342", "> 1343", 1);
    folder.write("connections.cvec", &changed);
    let error = Scenario::load_text(&effective, Path::new("/"), &[])
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("traffic.recorded.file: found"), "{error}");
    assert!(error.ends_with("it has changed"), "{error}");
    let error = aqmlab_sim::run(&again, Box::new(Discard), &mut |_| true)
        .unwrap_err()
        .to_string();
    assert!(error.contains("which has the hash"), "{error}");
    fs::remove_file(path).unwrap();
    let error = aqmlab_sim::run(&again, Box::new(Discard), &mut |_| true)
        .unwrap_err()
        .to_string();
    assert!(error.contains("which cannot be read"), "{error}");
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let folder = Folder::new("broken");
    let refused = |text: &str| {
        folder.write("connections.cvec", text);
        let scenario = scenario("copies = 1", "");
        let error = Scenario::load_text(&scenario, &folder.0, &[]).unwrap_err();
        assert_eq!(error.path, "traffic.recorded.file");
        error.message
    };
    let cut = &SYNTHETIC[..SYNTHETIC.len() - 3];
    let last = cut.lines().count();
    assert!(refused(cut).contains(&format!("whose line {last}: the file ends in the middle")));
    assert!(refused("").contains("whose line 1: the file ends without a connection vector"));
    let order = "SEQ 5 1 1 1\n> 1\nSEQ 4 1 1 2\n> 1\n";
    assert!(refused(order).contains("whose line 3: found a start time of 4 after one of 5"));
}

#[test]
fn the_general_mix_resembles_the_published_connections() {
    let text = r#"
        [measure]
        warm_up = "120 s"
        duration = "300 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "1 Gbit/s"
        discipline = { kind = "droptail", limit = "100000 packets" }
        [[traffic]]
        kind = "general-tcp"
        rate = "60 /s"
        direction = "both"
        tcp = "freebsd-4.5"
        rtt = { kind = "vector" }
        "#;
    let folder = Folder::new("general");
    let scenario = load(text, &folder.0);
    let records = recorder(Some(&folder.0), &scenario.measure);
    let summary = aqmlab_sim::run(&scenario, records, &mut |_| true).unwrap();
    let flows = flows(&folder.0.join("flows.parquet"));
    let mut durations: Vec<_> = flows.iter().map(|flow| flow.duration_s).collect();
    durations.sort_by(f64::total_cmp);
    let quantile = |p: f64| durations[(p * durations.len() as f64) as usize];
    // Le 2005, Table 6.2, uncongested: 0.73, 5.9 to 6.2 and 19.4 to 19.5 s.
    for (p, published) in [(0.5, 0.73), (0.75, 6.0), (0.9, 19.4)] {
        let ratio = quantile(p) / published;
        assert!((0.7..=1.4).contains(&ratio), "{p}: {} s", quantile(p));
    }
    // Table 6.1: 99 Mbit/s and 91 Mbit/s for 0.83 million connections in 90 minutes.
    let links = &summary.links["bottleneck"];
    let bits = links["forward"].throughput_bps + links["reverse"].throughput_bps;
    let bytes = bits / 8.0 / 60.0;
    assert!(
        (90e3..=230e3).contains(&bytes),
        "{bytes} bytes per connection"
    );
    assert_eq!(summary.flows["general-tcp"].failed, 0);
}

#[test]
fn a_file_without_round_trip_times_uses_the_fallback() {
    let folder = Folder::new("fallback");
    let (summary, _) = run(
        &folder,
        "SEQ 0 1 1 1\n> 1\nt 1\n< 1\nt 1\n",
        "copies = 1",
        "",
    );
    assert_near(summary.responses["recorded"].mean_s.unwrap(), 0.2);
}
