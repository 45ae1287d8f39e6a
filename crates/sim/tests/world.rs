//! Whole runs: the books balance, theory holds, the same seed gives the same bytes.

use crate::common;

use std::path::Path;

use aqmlab_net::{FNV_BASIS, fnv1a};
use aqmlab_parquet::recorder;
use aqmlab_record::{Discard, RunError};
use common::{parse, run};

/// Web users over a 2 Mbit/s link, so that a short run sees losses.
fn web(discipline: &str, tcp: &str) -> String {
    format!(
        r#"
        [measure]
        warm_up = "20 s"
        duration = "120 s"
        [topology]
        kind = "dumbbell"
        hosts = {{ clients = 3, servers = 2, rate = "10 Mbit/s" }}
        [topology.bottleneck]
        rate = "2 Mbit/s"
        delay = "2 ms"
        discipline = {discipline}
        [[traffic]]
        kind = "mah-web"
        name = "users"
        users = 900
        direction = "both"
        tcp = {tcp}
        rtt = {{ kind = "uniform", min = "10 ms", max = "150 ms" }}
        "#
    )
}

const DROPTAIL: &str = r#"{ kind = "droptail", limit = "20 packets" }"#;
const RED: &str = r#"{ kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets", gentle = true, ecn = true }"#;

#[test]
fn books_balance_under_loss_marks_and_random_loss() {
    // `run` fails when they do not; here it is made hard: losses of every kind, both directions.
    for discipline in [DROPTAIL, RED] {
        for tcp in [r#""freebsd-2.2.8""#, r#"{ profile = "rfc", ecn = true }"#] {
            let text =
                web(discipline, tcp).replace(r#"delay = "2 ms""#, "delay = \"2 ms\"\nloss = 0.01");
            let summary = run(&text);
            let forward = &summary.links["bottleneck"]["forward"];
            assert!(
                forward.loss_rate > 0.005,
                "{discipline} {tcp}: {}",
                forward.loss_rate
            );
            assert!(forward.wire_lost_packets > 0);
            assert!(summary.responses["users"].count > 500);
            let flows = &summary.flows["users"];
            let repaired = 1.0 - flows.retransmission_shares.as_ref().unwrap().none;
            let fast = flows.fast_retransmit_share.unwrap();
            assert!(0.0 < fast && fast < repaired, "{fast} of {repaired}");
            let marks_expected = discipline == RED && tcp.contains("ecn");
            assert_eq!(
                forward.marked_packets > 0,
                marks_expected,
                "{discipline} {tcp}"
            );
        }
    }
}

/// Bulk downloads of six users through RED that marks: throughput in bit/s, and marks.
fn download(tcp: &str) -> (f64, u64) {
    let text = format!(
        r#"
        [measure]
        warm_up = "5 s"
        duration = "60 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "10 Mbit/s"
        delay = "2 ms"
        discipline = {RED}
        [[traffic]]
        kind = "bulk"
        flows = 6
        tcp = {tcp}
        rtt = {{ kind = "constant", rtt = "100 ms" }}
        "#
    );
    let summary = run(&text);
    let forward = &summary.links["bottleneck"]["forward"];
    (forward.throughput_bps, forward.marked_packets)
}

#[test]
fn a_download_grows_as_the_servers_stack_does() {
    let stack = |control: &str| {
        format!("{{ profile = \"rfc\", congestion_control = \"{control}\", ecn = true }}")
    };
    let (reno, cubic) = (stack("reno"), stack("cubic"));
    let each = |client: &str, server: &str| {
        download(&format!("{{ client = {client}, server = {server} }}"))
    };
    assert_eq!(each(&reno, &cubic), download(&cubic));
    assert_eq!(each(&cubic, &reno), download(&reno));
    assert_ne!(download(&cubic), download(&reno));
}

#[test]
fn ecn_needs_both_ends() {
    for profile in ["rfc", "ns-one-way"] {
        let marks = |client: bool, server: bool| {
            let stack = |ecn| format!("{{ profile = \"{profile}\", ecn = {ecn} }}");
            let (client, server) = (stack(client), stack(server));
            download(&format!("{{ client = {client}, server = {server} }}")).1
        };
        assert!(marks(true, true) > 0, "{profile}");
        for (client, server) in [(true, false), (false, true), (false, false)] {
            assert_eq!(marks(client, server), 0, "{profile} {client} {server}");
        }
    }
}

#[test]
fn ends_that_differ_in_segments_windows_and_options_talk_to_each_other() {
    for (client, server) in [
        ("linux", "freebsd-2.2.8"),
        ("freebsd-2.2.8", "linux"),
        ("ns-full-tcp", "rfc"),
    ] {
        let tcp = format!("{{ client = \"{client}\", server = \"{server}\" }}");
        // 16 KiB in 100 ms are 1.3 Mbit/s for each of six.
        assert!(download(&tcp).0 > 4e6, "{tcp}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let folder = std::env::temp_dir().join(format!("aqmlab-sim-{}", std::process::id()));
    let record = |seed: u64, name: &str| {
        let directory = folder.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let scenario = parse(&format!("seed = {seed}\n{}", web(RED, "\"rfc\"")));
        let summary = aqmlab_sim::run(
            &scenario,
            recorder(Some(&directory), &scenario.measure),
            &mut |_| true,
        )
        .unwrap();
        (summary, contents(&directory))
    };
    let (first, second, other) = (record(1, "a"), record(1, "b"), record(2, "c"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        first == second,
        "two runs of the same scenario and seed differ"
    );
    assert_ne!(first.0, other.0);
    assert_eq!(
        first.1.len(),
        7,
        "distributions, responses, flows and queue are recorded"
    );
}

fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

const ONE_TRANSFER: &str = r#"
        [measure]
        warm_up = "0 s"
        duration = "20 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "10 Mbit/s"
        delay = "5 ms"
        framing = "ethernet"
        discipline = { kind = "droptail", limit = "1000 packets" }
        [[traffic]]
        kind = "bulk"
        flows = 1
        size = "14600 bytes"
        start_within = "0 s"
        tcp = { profile = "rfc", delayed_ack = { kind = "off" }, ack_every = 1 }
        rtt = { kind = "constant", rtt = "40 ms" }
        "#;

#[test]
fn an_uncontended_transfer_takes_the_hand_computed_time() {
    // One way: 15 ms to the bottleneck, its transmission, 5 ms. On the wire a SYN takes
    // (44 + 38) x 0.8 = 65.6 us, an ACK 62.4 us, the request of 1 byte 63.2 us, a full segment
    // (1500 + 38) x 0.8 = 1230.4 us. An ACK per segment and an initial window of 3.
    //   SYN             0      -> 20.0656
    //   SYN-ACK                -> 40.1312
    //   ACK, request           -> 60.1312 + 0.0624 + 0.0632 = 60.2568
    //   ACK of the request, then 3 segments: they leave the bottleneck from
    //   75.2568 + 0.0624 on, every 1.2304 ms; the first arrives at 81.5496.
    //   Its ACK                -> 101.6120 at the server. Each of 3 ACKs lets 2 segments go: 6 in
    //   a row from 116.6120 on at the bottleneck; the first of them arrives at 122.8424, its ACK
    //   at 142.9048. It lets the 10th go, which carries the FIN: 157.9048 + 1.2304 + 5 = 164.1352.
    let summary = run(ONE_TRANSFER);
    let response = &summary.responses["bulk"];
    assert_eq!(response.count, 1);
    assert_eq!(summary.flows["bulk"].fast_retransmit_share, Some(0.0));
    let found_us = response.max_s.expect("one response") * 1e6;
    assert!((found_us - 164_135.2).abs() < 0.5, "{found_us} us");
}

#[test]
fn a_message_in_several_writes_leaves_in_the_segments_of_each() {
    // 14,600 bytes in segments of 1,460 and an initial window of 4,380.
    let packets = |size: &str, nagle: bool| {
        let text = ONE_TRANSFER.replace("\"rfc\"", &format!("\"rfc\", nagle = {nagle}"));
        let text = format!("{text}\n{size}");
        run(&text).links["bottleneck"]["forward"].arrived_packets
    };
    let whole = packets("", true);
    assert_eq!(packets("write_size = \"14600 bytes\"", true), whole);
    // 1,460 + 588, 1,460; Nagle's rule holds the next 588. The rest are 11,092 bytes: 8 segments.
    assert_eq!(packets("write_size = \"2 KiB\"", true), whole + 1);
    // 1,460 + 588, 1,460 + 588. The rest are 10,504 bytes: 8 segments.
    assert_eq!(packets("write_size = \"2 KiB\"", false), whole + 2);
}

#[test]
fn bulk_transfers_fill_the_link_up_to_the_framing() {
    let summary = run(r#"
        [measure]
        warm_up = "20 s"
        duration = "60 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "10 Mbit/s"
        discipline = { kind = "droptail", limit = "100 packets" }
        [[traffic]]
        kind = "bulk"
        flows = 20
        tcp = "rfc"
        rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
        "#);
    let forward = &summary.links["bottleneck"]["forward"];
    assert!(forward.utilization > 0.999, "{}", forward.utilization);
    // 1500 of 1538 bytes on the wire are IP.
    let expected = forward.utilization * 10e6 * 1500.0 / 1538.0;
    assert!(
        (forward.throughput_bps / expected - 1.0).abs() < 1e-3,
        "{}",
        forward.throughput_bps
    );
    let flows = &summary.flows["bulk"];
    // Goodput: payload only, and nothing twice.
    assert!(flows.goodput_bps < forward.throughput_bps * 1460.0 / 1500.0);
    assert!(flows.goodput_bps > 0.97 * forward.throughput_bps * 1460.0 / 1500.0);
    assert!(flows.fairness_jain.unwrap() > 0.6);
}

/// Mean queue in packets, loss rate and departed packets of thirty transfers through a link with such
/// a device ring and discipline.
fn behind_ring(ring: &str, discipline: &str) -> (f64, f64, u64) {
    let text = format!(
        r#"
        [measure]
        warm_up = "20 s"
        duration = "60 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "10 Mbit/s"
        {ring}
        discipline = {discipline}
        [[traffic]]
        kind = "bulk"
        flows = 30
        tcp = "rfc"
        rtt = {{ kind = "constant", rtt = "40 ms" }}
        "#
    );
    let summary = run(&text);
    let forward = &summary.links["bottleneck"]["forward"];
    (
        forward.queue_mean_packets,
        forward.loss_rate,
        forward.departed_packets,
    )
}

#[test]
fn a_device_ring_hides_packets_from_the_discipline() {
    let droptail = "{ kind = \"droptail\", limit = \"100 packets\" }";
    let (without, loss_without, _) = behind_ring("", droptail);
    let (with, loss_with, _) = behind_ring("device_ring = \"100 packets\"", droptail);
    // The buffer is 100 packets larger than the discipline knows: fewer losses, and what waits
    // in the ring is not part of its queue.
    assert!(
        loss_with < 0.8 * loss_without,
        "{loss_with} against {loss_without}"
    );
    assert!(without > 60.0 && with > 30.0, "{without}, {with}");
}

#[test]
fn a_device_ring_whose_packets_are_counted_hides_nothing() {
    let red = "{ kind = \"red\", min_th = \"5 packets\", max_th = \"15 packets\", limit = \"60 packets\" }";
    let ring = "device_ring = \"10 packets\"";
    let counted = behind_ring(&format!("{ring}\ndevice_ring_counted = true"), red);
    // RED sees all that waits, as if the wire were next to it.
    assert_eq!(counted, behind_ring("", red));
    // Ten more that wait where it does not look make the round trip longer, so that fewer drops do.
    let hidden = behind_ring(ring, red);
    assert!(hidden.1 < counted.1, "{} against {}", hidden.1, counted.1);
}

#[test]
fn a_router_without_processing_power_drops_before_its_queue() {
    // 1,000 packets a second, each of which takes the processor 2 ms.
    let run_with = |input: &str| {
        run(&format!(
            r#"
            [measure]
            warm_up = "10 s"
            duration = "100 s"
            [topology]
            kind = "dumbbell"
            [topology.bottleneck]
            rate = "100 Mbit/s"
            discipline = {DROPTAIL}
            {input}
            [[traffic]]
            kind = "cbr"
            flows = 1
            rate = "4 Mbit/s"
            packet = "500 bytes"
            rtt = {{ kind = "constant", rtt = "40 ms" }}
            "#
        ))
    };
    let summary = run_with("forward = { input = { packet_time = \"2 ms\" } }");
    let link = |name: &str, direction: &str| summary.links[name][direction].clone();
    let (input, wire) = (
        link("bottleneck-input", "forward"),
        link("bottleneck", "forward"),
    );
    assert!((input.loss_rate - 0.5).abs() < 0.001, "{}", input.loss_rate);
    assert!((input.utilization - 1.0).abs() < 0.001);
    // Fifty wait for it.
    assert!((input.queue_mean_packets - 50.0).abs() < 1.0);
    assert_eq!(
        (
            wire.dropped_packets,
            link("bottleneck", "reverse").departed_packets
        ),
        (0, 0)
    );
    assert!((wire.departed_packets as i64 - 50_000).abs() < 10);
    // The other direction has none.
    assert_eq!(link("bottleneck-input", "reverse").departed_packets, 0);
    let fast = run_with("input = { packet_time = \"900 us\", limit = \"1 packets\" }");
    assert_eq!(fast.links["bottleneck-input"]["forward"].loss_rate, 0.0);
    assert!(!run_with("").links.contains_key("bottleneck-input"));
}

#[test]
fn a_policer_before_the_queue_is_a_link_of_its_own() {
    let run_with = |policer: &str| {
        run(&format!(
            r#"
            [measure]
            warm_up = "5 s"
            duration = "50 s"
            [topology]
            kind = "dumbbell"
            [topology.bottleneck]
            rate = "10 Mbit/s"
            framing = "none"
            discipline = {DROPTAIL}
            {policer}
            [[traffic]]
            kind = "cbr"
            flows = 1
            rate = "4 Mbit/s"
            packet = "500 bytes"
            rtt = {{ kind = "constant", rtt = "40 ms" }}
            "#
        ))
    };
    let policer = "forward = { policer = { rate = \"1 Mbit/s\", burst = \"3 kB\" } }";
    let summary = run_with(policer);
    let (policed, queue) = (
        &summary.links["bottleneck-policer"]["forward"],
        &summary.links["bottleneck"]["forward"],
    );
    // Of 4 Mbit/s 1 Mbit/s passes, and the queue drops nothing.
    assert!(
        (policed.loss_rate - 0.75).abs() < 0.001,
        "{}",
        policed.loss_rate
    );
    assert_eq!(policed.drops["policed"], policed.dropped_packets);
    assert_eq!((queue.dropped_packets, policed.queue_max_packets), (0, 0));
    assert!((queue.departed_packets as i64 - 12_500).abs() < 10);
    assert_eq!(
        summary.links["bottleneck-policer"]["reverse"].departed_packets,
        0
    );
    assert!(!run_with("").links.contains_key("bottleneck-policer"));
}

#[test]
fn datagrams_lose_what_the_link_cannot_carry() {
    // IP bytes take 500 of 538 on the wire: 1 Mbit/s carries 232.34 datagrams per second.
    let run_at = |rate: &str| {
        run(&format!(
            r#"
            [measure]
            warm_up = "10 s"
            duration = "100 s"
            [topology]
            kind = "dumbbell"
            [topology.bottleneck]
            rate = "1 Mbit/s"
            discipline = {{ kind = "droptail", limit = "10 packets" }}
            [[traffic]]
            kind = "cbr"
            flows = 2
            rate = "{rate}"
            rtt = {{ kind = "constant", rtt = "20 ms" }}
            "#
        ))
    };
    let light = &run_at("400 kbit/s").flows["cbr"];
    assert_eq!((light.count, light.datagrams_lost), (2, 0));
    assert_eq!(light.datagrams_sent, 20_000);
    assert!((light.goodput_bps / 200.0 / 472.0 / 8.0 - 1.0).abs() < 1e-3);
    let heavy = &run_at("600 kbit/s").flows["cbr"];
    let lost = heavy.datagrams_lost as f64 / heavy.datagrams_sent as f64;
    let expected = 1.0 - 232.34 / 300.0;
    assert!(
        (lost - expected).abs() < 1e-3,
        "{lost}, expected {expected}"
    );
    assert_eq!(light.lossy_datagram_flow_share, Some(0.0));
    assert_eq!(heavy.lossy_datagram_flow_share, Some(1.0));
}

#[test]
fn losses_of_a_class_are_counted_while_its_connections_go_on() {
    let summary = run(r#"
        [measure]
        warm_up = "20 s"
        duration = "100 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "2 Mbit/s"
        discipline = { kind = "droptail", limit = "6 packets" }
        [topology.bottleneck.reverse]
        rate = "100 Mbit/s"
        discipline = { kind = "droptail", limit = "1000 packets" }
        [[traffic]]
        kind = "bulk"
        name = "one"
        flows = 8
        tcp = "ns-one-way"
        rtt = { kind = "constant", rtt = "50 ms" }
        [[traffic]]
        kind = "bulk"
        name = "two"
        flows = 2
        tcp = "ns-one-way"
        rtt = { kind = "constant", rtt = "50 ms" }
        "#);
    let dropped = summary.links["bottleneck"]["forward"].dropped_packets;
    let [one, two] = ["one", "two"].map(|name| &summary.flows[name]);
    let lost = [one, two].map(|class| class.lost_segments.unwrap());
    // Only data goes that way, and no connection ends.
    assert_eq!(lost[0] + lost[1], dropped);
    assert_eq!(summary.flows["all"].lost_segments, Some(dropped));
    assert!(lost[0] > 2 * lost[1] && lost[1] > 10, "{lost:?}");
    assert_eq!((one.count, one.closed_timeouts), (0, 0));
    assert!(one.span_timeouts.unwrap() > 10);
    assert_eq!(one.lossy_datagram_flow_share, None);
}

#[test]
fn a_class_without_users_must_be_calibrated() {
    let text = web(DROPTAIL, "\"rfc\"")
        .replace("users = 900", "")
        .replace("[measure]", "load = 0.9\n[measure]");
    let error = aqmlab_sim::run(&parse(&text), Box::new(Discard), &mut |_| true).unwrap_err();
    assert!(
        matches!(&error, RunError::Population(message) if message.contains("traffic.users")),
        "{error}"
    );
}

#[test]
fn a_run_can_be_stopped() {
    let mut shares = Vec::new();
    let scenario = parse(&web(DROPTAIL, "\"rfc\""));
    let result = aqmlab_sim::run(&scenario, Box::new(Discard), &mut |share| {
        shares.push(share);
        share < 0.1
    });
    assert!(matches!(result, Err(RunError::Stopped)));
    assert!(shares.is_sorted() && shares.len() > 10, "{shares:?}");
}

fn hash(bytes: &[u8]) -> u64 {
    fnv1a(FNV_BASIS, bytes.iter().copied())
}

#[test]
fn a_pinned_run_gives_its_pinned_bytes() {
    // The Python tests run the same with the release build. A change of the hashes is a change of
    // results: say why in the change log.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pinned");
    let scenario = parse(&std::fs::read_to_string(root.join("scenario.toml")).unwrap());
    let directory = std::env::temp_dir().join(format!("aqmlab-pinned-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    aqmlab_sim::run(
        &scenario,
        recorder(Some(&directory), &scenario.measure),
        &mut |_| true,
    )
    .unwrap();
    let found: String = contents(&directory)
        .iter()
        .map(|(name, bytes)| format!("{:016x} {} {name}\n", hash(bytes), bytes.len()))
        .collect();
    std::fs::remove_dir_all(&directory).unwrap();
    let pinned = std::fs::read_to_string(root.join("hashes.txt")).unwrap();
    assert_eq!(found, pinned);
}
