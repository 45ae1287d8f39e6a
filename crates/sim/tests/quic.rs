//! QUIC of our own over our queues.
#![cfg(feature = "quic")]

use crate::common;

use aqmlab_record::Summary;
use common::run;

/// Transfers over 10 Mbit/s with a round trip of 40 ms, behind a queue, as `quic` says.
fn transfers(flows: u32, size: &str, discipline: &str, quic: &str) -> String {
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
        transport = "quic"
        quic = {{ server_flight = "560 bytes", {quic} }}
        rtt = {{ kind = "constant", rtt = "40 ms" }}
        "#
    )
}

/// Drop-tail with one bandwidth-delay product.
const BDP: &str = r#"{ kind = "droptail", limit = "50000 bytes" }"#;
const SIZE: &str = "5000000 bytes";

/// Goodput of the transfers in Mbit/s, packets dropped and marked by the queue, mean wait in ms.
fn measured(summary: &Summary) -> [f64; 4] {
    let forward = &summary.links["bottleneck"]["forward"];
    let responses = &summary.responses["transfers"];
    let end = responses.max_s.expect("every transfer ends");
    [
        responses.count as f64 * 5e6 * 8.0 / end / 1e6,
        forward.dropped_packets as f64,
        forward.marked_packets as f64,
        1e3 * forward.sojourn_mean_s.expect("packets have waited"),
    ]
}

#[test]
fn every_control_but_vegas_fills_the_link() {
    for control in [
        "reno",
        "fast",
        "cubic",
        "dctcp",
        "bbr1",
        "bbr3",
        "prague",
        "scalable",
        "ledbat-plus-plus",
    ] {
        let quic = format!("congestion_control = \"{control}\"");
        let summary = run(&transfers(1, SIZE, BDP, &quic));
        let found = measured(&summary);
        assert!(found[0] > 8.0, "{control}: {found:?}");
        assert_eq!(summary.flows["transfers"].failed, 0);
    }
}

/// Vegas takes the wait for a second packet at the end of a round for a queue: `docs/transports.md`.
#[test]
fn vegas_is_faster_where_acks_do_not_wait() {
    let [waits, at_once] = ["25 ms", "1 ms"].map(|delay| {
        let quic = format!("congestion_control = \"vegas\", max_ack_delay = \"{delay}\"");
        let summary = run(&transfers(1, SIZE, BDP, &quic));
        assert_eq!(summary.flows["transfers"].failed, 0);
        measured(&summary)[0]
    });
    assert!(at_once > 1.2 * waits, "{waits} and {at_once} Mbit/s");
}

#[test]
fn marks_are_answered_like_losses() {
    let fq_codel = r#"{ kind = "fq-codel", ecn = true }"#;
    let marking = measured(&run(&transfers(4, SIZE, fq_codel, "ecn = true")));
    let dropping = measured(&run(&transfers(4, SIZE, fq_codel, "ecn = false")));
    assert_eq!((marking[1], dropping[2]), (0.0, 0.0));
    assert!((marking[0] / dropping[0] - 1.0).abs() < 0.02);
}

#[test]
fn losses_are_counted_by_the_sender_and_by_the_network() {
    let summary = run(&transfers(4, SIZE, BDP, "congestion_control = \"cubic\""));
    let flows = &summary.flows["transfers"];
    let dropped = summary.links["bottleneck"]["forward"].dropped_packets;
    assert_eq!(flows.lost_segments, Some(dropped));
    assert!(flows.retransmitted_data <= dropped && flows.retransmitted_data + 12 > dropped);
    assert_eq!((flows.count, flows.failed), (4, 0));
}

/// A link without a queue: slow start goes on although the pace spreads each window over most of a round trip.
/// Windows of 12, 24, 48, 96, 192 and 384 kB hold 700 kB and what datagrams add. The first leaves after 60 ms, each
/// later one 40 ms behind, and the last arrives within a round trip of 40 ms.
#[test]
fn a_pace_does_not_end_slow_start() {
    let fast = transfers(1, "700000 bytes", BDP, "").replace("10 Mbit/s", "1 Gbit/s");
    let end = run(&fast).responses["transfers"].max_s;
    let [least, most] = [60.0 + 5.0 * 40.0 + 20.0, 60.0 + 5.0 * 40.0 + 20.0 + 40.0];
    let end = 1e3 * end.expect("the transfer ends");
    assert!((least..=most).contains(&end), "{end} ms");
}
