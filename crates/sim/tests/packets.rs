//! Every packet as a row: rows balance with what the run counts by itself, and nothing else changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aqmlab_parquet::recorder;
use aqmlab_record::{
    ClassMetrics, Discard, Exchange, Flow, LinkDirection, LinkStats, PacketKind, PacketOutcome,
    PacketRecords, PacketRow, QueueSamples, Records, RunError, Summary, TraceRow,
};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::common::parse;

/// Bins of the sojourn times at a port: how many lie below each end.
type Bins = Vec<(f64, u64)>;

/// What a run hands out.
#[derive(Default)]
struct Seen {
    ports: Vec<LinkDirection>,
    rows: Vec<PacketRow>,
    bins: Vec<Bins>,
}

/// Keeps packets, and the sojourn times of ports.
struct Keep(Arc<Mutex<Seen>>);

impl Records for Keep {
    fn begin(&mut self, _classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }

    fn packets(
        &mut self,
        ports: &[LinkDirection],
    ) -> Result<Option<Box<dyn PacketRecords>>, RunError> {
        self.0.lock().unwrap().ports = ports.to_vec();
        Ok(Some(Box::new(Self(Arc::clone(&self.0)))))
    }

    fn response(&mut self, _row: &Exchange) {}

    fn flow(&mut self, _row: &Flow) {}

    fn trace(&mut self, _row: &TraceRow) {}

    fn queue(&mut self, _samples: &QueueSamples) {}

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        _classes: &[ClassMetrics],
        links: &[&LinkStats],
    ) -> Result<(), RunError> {
        let bins = links.iter().map(|link| link.sojourn().bins().collect());
        self.0.lock().unwrap().bins = bins.collect();
        Ok(())
    }
}

impl PacketRecords for Keep {
    fn packet(&mut self, row: &PacketRow) {
        self.0.lock().unwrap().rows.push(*row);
    }

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

const USERS: &str = r#"
    [[traffic]]
    name = "transfers"
    kind = "bulk"
    flows = 4
    rtt = { kind = "constant", rtt = "40 ms" }
    [[traffic]]
    name = "pages"
    kind = "poisson"
    rate = "30 /s"
    request = { kind = "constant", size = "300 bytes" }
    response = { kind = "constant", size = "20000 bytes" }
    rtt = { kind = "uniform", min = "10 ms", max = "60 ms" }
    [[traffic]]
    name = "calls"
    kind = "cbr"
    flows = 3
    rate = "100 kbit/s"
    rtt = { kind = "constant", rtt = "20 ms" }
"#;

/// A dumbbell whose link has these settings.
fn dumbbell(warm_up: &str, forward: &str, both: &str, users: &str) -> String {
    format!(
        r#"
        [measure]
        warm_up = "{warm_up}"
        duration = "6 s"
        record = ["packets"]
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "10 Mbit/s"
        delay = "1 ms"
        {forward}
        {both}
        {users}
        "#
    )
}

fn kept(text: &str) -> (Seen, Summary) {
    let scenario = parse(text);
    let seen = Arc::default();
    let records = Box::new(Keep(Arc::clone(&seen)));
    let summary = aqmlab_sim::run(&scenario, records, &mut |_| true).expect("the run succeeds");
    let mut plain = scenario;
    plain.measure.record.clear();
    let without = aqmlab_sim::run(&plain, Box::new(Discard), &mut |_| true).unwrap();
    let json = |summary: &Summary| serde_json::to_value(summary).unwrap();
    assert_eq!(json(&summary), json(&without), "recording changes the run");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, summary)
}

fn count(rows: &[&PacketRow], is: impl Fn(&PacketRow) -> bool) -> u64 {
    rows.iter().filter(|row| is(row)).count() as u64
}

/// Rows balance with the summary: exactly where nothing waited when the measured span began.
fn balances(text: &str, is_from_start: bool) -> (Seen, Summary) {
    let (seen, summary) = kept(text);
    assert!(seen.rows.is_sorted_by_key(|row| row.arrived));
    for (number, port) in seen.ports.iter().enumerate() {
        let link = &summary.links[&port.link][port.direction];
        let rows = seen
            .rows
            .iter()
            .filter(|row| usize::from(row.port) == number);
        let rows: Vec<&PacketRow> = rows.collect();
        let name = format!("{} {}", port.link, port.direction);
        assert_eq!(rows.len() as u64, link.arrived_packets, "{name}: arrived");
        for row in &rows {
            let left = matches!(
                row.outcome,
                PacketOutcome::Left | PacketOutcome::Marked | PacketOutcome::Lost
            );
            assert_eq!(row.waited.is_some(), left, "{name}: {row:?}");
        }
        if !is_from_start {
            continue;
        }
        let mut drops: BTreeMap<String, u64> =
            link.drops.keys().map(|it| (it.clone(), 0)).collect();
        for row in &rows {
            if let PacketOutcome::Dropped(reason) = row.outcome {
                *drops
                    .get_mut(reason)
                    .expect("the reason is the discipline's") += 1;
            }
        }
        assert_eq!(drops, link.drops, "{name}: drops");
        let marked = count(&rows, |row| row.outcome == PacketOutcome::Marked);
        assert_eq!(marked, link.marked_packets, "{name}: marked");
        let lost = count(&rows, |row| row.outcome == PacketOutcome::Lost);
        // A loss counts when its transmission ends.
        assert!(lost - link.wire_lost_packets <= 1, "{name}: lost");
        let mut waits: Vec<u64> = rows
            .iter()
            .filter_map(|row| row.waited)
            .map(|it| it.as_nanos())
            .collect();
        waits.sort_unstable();
        let mut below = 0;
        for (end, count) in &seen.bins[number] {
            below += count;
            let end = (end * 1e9).round() as u64;
            let found = waits.partition_point(|wait| *wait < end) as u64;
            assert_eq!(found, below, "{name}: waits below {end} ns");
        }
        assert_eq!(waits.len() as u64, below, "{name}: left");
        for (class, transit) in scenario_classes(text).iter().zip(0_u16..) {
            let of_class = count(&rows, |row| row.class == transit && row.waited.is_some());
            let counted = link.classes.get(class).map_or(0, |it| it.left_packets);
            assert_eq!(of_class, counted, "{name}: {class}");
        }
    }
    (seen, summary)
}

fn scenario_classes(text: &str) -> Vec<String> {
    let classes = parse(text).traffic;
    classes.iter().map(|class| class.name.clone()).collect()
}

/// Each way in which a port serves: departures computed, bypassed and stored, with rings and shapers.
const SERVICES: [(&str, &str, &str); 11] = [
    (
        "lazy",
        r#"discipline = { kind = "droptail", limit = "40 packets" }"#,
        "",
    ),
    (
        "computed",
        r#"discipline = { kind = "red", min_th = "5 packets", max_th = "15 packets", w_q = 0.02, limit = "60 packets", ecn = true }"#,
        "",
    ),
    (
        "bypass",
        r#"discipline = { kind = "codel", ecn = true }"#,
        "",
    ),
    ("stored", r#"discipline = { kind = "fq-codel" }"#, ""),
    (
        "shaped",
        r#"discipline = { kind = "cake", bandwidth = "8 Mbit/s" }"#,
        "",
    ),
    (
        "ring",
        r#"discipline = { kind = "droptail", limit = "40 packets" }"#,
        r#"device_ring = "16 packets""#,
    ),
    (
        "stored ring",
        r#"discipline = { kind = "fq-codel" }"#,
        r#"device_ring = "16 packets""#,
    ),
    (
        "changes",
        r#"
        discipline = { kind = "droptail", limit = "40 packets" }
        rate_changes = [{ at = "3 s", rate = "5 Mbit/s" }]"#,
        "",
    ),
    ("loss", r#"discipline = { kind = "pie" }"#, "loss = 0.01"),
    ("dualpi2", r#"discipline = { kind = "dualpi2" }"#, ""),
    ("delay law", r#"discipline = { kind = "sfq" }"#, ""),
];

#[test]
fn rows_balance_with_what_is_counted() {
    for (name, forward, both) in SERVICES {
        println!("{name}");
        let (seen, summary) = balances(&dumbbell("0 s", forward, both, USERS), true);
        let dropped = |row: &PacketRow| matches!(row.outcome, PacketOutcome::Dropped(_));
        let link = &summary.links["bottleneck"]["forward"];
        assert!(link.arrived_packets > 3_000, "{name}");
        assert!(
            link.marked_packets > 0 || seen.rows.iter().any(dropped),
            "{name}"
        );
        balances(&dumbbell("2 s", forward, both, USERS), false);
    }
}

#[test]
fn rows_of_quic_and_of_several_links_balance() {
    let quic = USERS.replace("name = \"pages\"", "name = \"pages\"\ntransport = \"quic\"");
    let discipline = r#"discipline = { kind = "droptail", limit = "40 packets" }"#;
    let (seen, _) = balances(&dumbbell("0 s", discipline, "", &quic), true);
    let of_pages = |row: &&PacketRow| row.class == 1;
    assert!(
        seen.rows
            .iter()
            .filter(of_pages)
            .all(|row| row.kind == PacketKind::Datagram)
    );
    let lot = format!(
        r#"
        [measure]
        warm_up = "0 s"
        duration = "6 s"
        record = ["packets"]
        [topology]
        kind = "network"
        hosts = {{ clients = 5, servers = 5 }}
        [topology.links.first]
        rate = "12 Mbit/s"
        delay = "1 ms"
        {discipline}
        [topology.links.second]
        rate = "10 Mbit/s"
        delay = "1 ms"
        {discipline}
        [topology.paths.down]
        links = ["first", "second"]
        {USERS}
        "#
    );
    let (seen, _) = balances(&lot, true);
    assert_eq!(seen.ports.len(), 4);
    for port in [0, 2] {
        assert!(seen.rows.iter().any(|row| row.port == port), "port {port}");
    }
}

/// The backlog on arrival is what the rows themselves say.
#[test]
fn the_backlog_is_what_waits() {
    for (forward, both) in [
        (
            r#"discipline = { kind = "droptail", limit = "40 packets" }"#,
            "",
        ),
        (
            r#"discipline = { kind = "droptail", limit = "40 packets" }"#,
            r#"device_ring = "16 packets""#,
        ),
        (
            r#"discipline = { kind = "red", min_th = "5 packets", max_th = "30 packets", w_q = 0.02, limit = "60 packets" }"#,
            "",
        ),
    ] {
        let (seen, _) = balances(&dumbbell("0 s", forward, both, USERS), true);
        let mut longest = 0;
        let mut waiting: Vec<(u64, u32)> = Vec::new();
        for row in seen.rows.iter().filter(|row| row.port == 0) {
            let now = row.arrived.as_nanos();
            waiting.retain(|(left, _)| *left > now);
            let bytes: u32 = waiting.iter().map(|(_, size)| size).sum();
            assert_eq!(row.backlog_packets as usize, waiting.len(), "{row:?}");
            assert_eq!(row.backlog_bytes, u64::from(bytes), "{row:?}");
            longest = longest.max(waiting.len());
            match row.outcome {
                PacketOutcome::Dropped(_) => {}
                PacketOutcome::Waiting => waiting.push((u64::MAX, row.size)),
                _ => waiting.push((now + row.waited.unwrap().as_nanos(), row.size)),
            }
        }
        assert!(longest > 20, "{longest}");
    }
}

/// Numbers count what each end sends; what is sent again is what the end points count.
#[test]
fn numbers_and_copies_are_those_of_the_sender() {
    let discipline = r#"discipline = { kind = "droptail", limit = "20 packets" }"#;
    let (seen, summary) = balances(&dumbbell("0 s", discipline, "", USERS), true);
    let mut next: BTreeMap<(u64, bool), u32> = BTreeMap::new();
    for row in &seen.rows {
        let expected = next.entry((row.flow, row.is_from_client)).or_default();
        assert_eq!(row.number, *expected, "{row:?}");
        *expected += 1;
    }
    let again = |row: &&PacketRow| row.is_again && row.kind == PacketKind::Data;
    let again = seen.rows.iter().filter(again).count() as u64;
    let counted = summary.flows["all"].span_retransmitted_data.unwrap();
    // Some are on their way to the queue when the run ends.
    assert!(
        again > 20 && again <= counted && counted - again <= 5,
        "{again} copies, {counted} sent again"
    );
    for kind in [
        PacketKind::Syn,
        PacketKind::Fin,
        PacketKind::Ack,
        PacketKind::Datagram,
    ] {
        assert!(seen.rows.iter().any(|row| row.kind == kind), "{kind:?}");
    }
}

/// The file has a row for each packet, and its columns are small.
#[test]
fn the_table_has_every_row() {
    let text = dumbbell("0 s", r#"discipline = { kind = "codel" }"#, "", USERS);
    let (seen, _) = kept(&text);
    let folder = std::env::temp_dir().join(format!("aqmlab-packets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = parse(&text);
    let records = recorder(Some(&folder), &scenario.measure);
    aqmlab_sim::run(&scenario, records, &mut |_| true).unwrap();
    let path = folder.join("packets.parquet");
    let size = std::fs::metadata(&path).unwrap().len();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let rows = reader.metadata().file_metadata().num_rows();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(rows as usize, seen.rows.len());
    let each = size as f64 / rows as f64;
    println!("{each:.1} bytes a row of {rows}");
    assert!(each < 16.0, "{each} bytes a row");
}

#[test]
fn packets_and_breakdown_exclude_each_other() {
    let codel = r#"discipline = { kind = "codel" }"#;
    let text =
        dumbbell("0 s", codel, "", USERS).replace("[measure]", "[measure]\nbreakdown = true");
    let read = &mut |_: &str| unreachable!("it reads no file");
    let error = aqmlab_scenario::Scenario::parse(&text, &[], read)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("measure.record: found \"packets\""),
        "{error}"
    );
}
