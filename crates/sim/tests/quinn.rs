//! QUIC by quinn-proto over our queues, beside what a prototype of its own measured.
#![cfg(feature = "quinn")]

use crate::common;

use aqmlab_record::{Discard, RunError, Summary};
use aqmlab_sim::Memory;
use common::{parse, run};

/// Transfers over 10 Mbit/s with a round trip of 40 ms, behind a queue, as `quinn` says.
fn transfers(flows: u32, size: &str, discipline: &str, quinn: &str) -> String {
    format!(
        r#"
        [measure]
        warm_up = "0 s"
        duration = "25 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        delay = "0 ms"
        framing = "none"
        discipline = {discipline}
        [topology.bottleneck.forward]
        rate = "10 Mbit/s"
        [topology.bottleneck.reverse]
        rate = "10 Gbit/s"
        [[traffic]]
        kind = "bulk"
        name = "transfers"
        flows = {flows}
        size = "{size}"
        start_within = "0 s"
        transport = "quinn"
        quinn = {{ server_flight = "560 bytes", {quinn} }}
        rtt = {{ kind = "constant", rtt = "40 ms" }}
        "#
    )
}

/// Drop-tail with one bandwidth-delay product.
const BDP: &str = r#"{ kind = "droptail", limit = "50000 bytes" }"#;
const SIZE: &str = "5000000 bytes";

/// Goodput of one transfer after the other's time, packets dropped by the queue, mean wait in ms.
fn measured(summary: &Summary) -> [f64; 3] {
    let forward = &summary.links["bottleneck"]["forward"];
    let responses = &summary.responses["transfers"];
    let end = responses.max_s.expect("every transfer ends");
    [
        responses.count as f64 * 5e6 * 8.0 / end / 1e6,
        forward.dropped_packets as f64,
        1e3 * forward.sojourn_mean_s.expect("packets have waited"),
    ]
}

#[test]
fn transfers_are_those_of_the_prototype() {
    // Goodput in Mbit/s, drops and mean wait in ms; how far each may be off. The prototype drew
    // other connection ids, so four flows share the link a little differently.
    for (control, flows, expected, bounds) in [
        ("new-reno", 1, [9.23, 77.0, 19.1], [0.01, 0.0, 0.1]),
        ("cubic", 1, [9.27, 106.0, 25.4], [0.01, 0.0, 0.1]),
        ("new-reno", 4, [9.43, 208.0, 24.6], [0.25, 5.0, 1.5]),
        ("cubic", 4, [9.32, 211.0, 30.1], [0.25, 5.0, 1.5]),
    ] {
        let quinn = format!("congestion_control = \"{control}\"");
        let found = measured(&run(&transfers(flows, SIZE, BDP, &quinn)));
        for ((found, expected), bound) in found.iter().zip(expected).zip(bounds) {
            let off = (found - expected).abs();
            assert!(off <= bound, "{control} {flows}: {found}, not {expected}");
        }
    }
}

#[test]
fn marks_are_answered_like_losses() {
    let fq_codel = r#"{ kind = "fq-codel", ecn = true }"#;
    let marking = run(&transfers(4, SIZE, fq_codel, "ecn = true"));
    let dropping = run(&transfers(4, SIZE, fq_codel, "ecn = false"));
    let [with, without] =
        [&marking, &dropping].map(|summary| &summary.links["bottleneck"]["forward"]);
    // The prototype: 183 marks and no drop, and without ECN 182 drops.
    assert_eq!((with.dropped_packets, without.marked_packets), (0, 0));
    for signals in [with.marked_packets, without.dropped_packets] {
        assert!((150..250).contains(&signals), "{signals}");
    }
    let [with, without] = [&marking, &dropping].map(|summary| measured(summary)[0]);
    assert!((with / without - 1.0).abs() < 0.02, "{with} {without}");
}

#[test]
fn losses_are_counted_by_the_sender_and_by_the_network() {
    let summary = run(&transfers(4, SIZE, BDP, "congestion_control = \"cubic\""));
    let flows = &summary.flows["transfers"];
    let dropped = summary.links["bottleneck"]["forward"].dropped_packets;
    assert_eq!(flows.lost_segments, Some(dropped));
    // A search for larger datagrams whose probe is lost is no loss of data.
    let again = flows.retransmitted_data;
    assert!(
        again <= dropped && again + 12 > dropped,
        "{again} {dropped}"
    );
    assert_eq!((flows.count, flows.failed), (4, 0));
    // Samples are those of a path of 40 ms with a queue of at most 40 ms, and an ACK's delay.
    let least = flows.rtt_min_s.expect("round trips were measured");
    assert!((0.0400..0.0425).contains(&least), "{least}");
}

/// Small pages over HTTP/2 at light load: their mean load time with these transports.
fn page(transport: &str) -> f64 {
    let summary = run(&format!(
        r#"
        [measure]
        warm_up = "5 s"
        duration = "60 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "1 Gbit/s"
        delay = "0 ms"
        discipline = {{ kind = "droptail", limit = "1000 packets" }}
        [[traffic]]
        kind = "http2-web"
        name = "pages"
        users = 10
        objects = 5
        objects_sigma = 0
        html = "5000 bytes"
        object = "1000 bytes"
        object_sigma = 0
        think = "1 s"
        transport = {transport}
        tcp = "linux"
        rtt = {{ kind = "constant", rtt = "100 ms" }}
        "#
    ));
    assert_eq!(summary.flows["pages"].failed, 0);
    assert!(summary.responses["pages"].count > 200);
    summary.responses["pages"]
        .mean_s
        .expect("pages were loaded")
}

#[test]
fn a_page_over_quic_saves_the_round_trip_of_tls() {
    let [tcp, quinn] = ["\"tcp\"", "\"quinn\""].map(page);
    // TCP and TLS, or QUIC: two round trips, or one, before pages that fit into a first window.
    assert!((0.095..0.105).contains(&(tcp - quinn)), "{tcp} {quinn}");
    let mixed = page("{ quinn = 0.5 }");
    assert!(quinn < mixed && mixed < tcp, "{mixed}");
}

#[test]
fn more_connections_than_memory_holds_are_refused() {
    // 60 kB each, where a connection of TCP takes less than one.
    let text = transfers(50_000, SIZE, BDP, "burst = 10");
    let within = |text: &str| {
        let memory = Memory::bytes(1 << 30);
        aqmlab_sim::run_within(memory, &parse(text), Box::new(Discard), &mut |_| false)
    };
    let refused = within(&text).unwrap_err();
    assert!(matches!(&refused, RunError::TooLarge(why) if why.contains("transfers.flows")));
    let tcp = text.replace("transport = \"quinn\"", "transport = \"tcp\"");
    assert!(matches!(within(&tcp), Err(RunError::Stopped)));
}
