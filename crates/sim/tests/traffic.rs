//! Models of traffic at work in the simulated world: when classes act, what they are refused, and
//! whether the UNC users cause the load that they were published with.

use std::path::Path;

use aqmlab_record::{Discard, Summary};
use aqmlab_scenario::Scenario;
use aqmlab_traffic::Model;

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, &[], &mut |name| panic!("it asks for {name}"))
        .unwrap_or_else(|error| panic!("{error}"));
    aqmlab_sim::run(&scenario, Box::new(Discard), &mut |_| true).expect("the run succeeds")
}

/// A network, measured from `warm_up_s` for `duration_s`, with these classes.
fn network(warm_up_s: u32, duration_s: u32, rate: &str, classes: &str) -> String {
    format!(
        r#"
        [measure]
        warm_up = "{warm_up_s} s"
        duration = "{duration_s} s"
        record = []
        [topology]
        kind = "dumbbell"
        hosts = {{ clients = 14, servers = 8 }}
        [topology.bottleneck]
        rate = "{rate}"
        delay = "1 ms"
        discipline = {{ kind = "droptail", limit = "1000000 packets" }}
        {classes}
        "#
    )
}

const RTT: &str = r#"rtt = { kind = "uniform", min = "10 ms", max = "150 ms" }"#;

/// Endless transfers and datagrams from 20 s to 40 s.
fn stepped() -> String {
    format!(
        r#"
        [[traffic]]
        name = "transfers"
        kind = "bulk"
        flows = 2
        start = "20 s"
        stop = "40 s"
        {RTT}
        [[traffic]]
        name = "datagrams"
        kind = "cbr"
        flows = 3
        rate = "100 kbit/s"
        start = "20 s"
        stop = "40 s"
        {RTT}
        "#
    )
}

#[test]
fn a_class_is_silent_before_its_start_and_after_its_stop() {
    // Where it is measured; the throughput that is expected; datagrams: 25 per second of each of
    // the three flows.
    for (warm_up, duration, expected, sent) in [
        // A second, of 21, of which the classes use a part.
        (0, 21, 1e3..=4.9e5, 1..=78),
        (25, 14, 7e6..=1e7, 1040..=1060),
        // What is still in the queue when they stop leaves within a second or so.
        (60, 20, 0.0..=0.0, 0..=0),
    ] {
        let text = network(warm_up, duration, "10 Mbit/s", &stepped())
            .replace("1000000 packets", "50 packets");
        let summary = run(&text);
        let link = &summary.links["bottleneck"]["forward"];
        assert!(
            expected.contains(&link.throughput_bps),
            "from {warm_up} s: {} bit/s",
            link.throughput_bps
        );
        let datagrams = summary.flows["datagrams"].datagrams_sent;
        assert!(sent.contains(&datagrams), "from {warm_up} s: {datagrams}");
        assert_eq!(summary.flows["transfers"].failed, 0);
    }
    // The transfers end when their class does, and have not failed.
    let summary = run(&network(30, 15, "10 Mbit/s", &stepped()));
    assert_eq!(summary.flows["transfers"].count, 2);
    assert_eq!(summary.flows["transfers"].failed, 0);
}

#[test]
fn refused_connections_are_counted_in_the_measured_span() {
    let class = |limit: &str| {
        format!(
            r#"
            [[traffic]]
            name = "fetches"
            kind = "poisson"
            rate = "50 /s"
            request = {{ kind = "constant", size = "400 bytes" }}
            response = {{ kind = "constant", size = "20 kB" }}
            {limit}
            {RTT}
            "#
        )
    };
    let free = run(&network(10, 50, "100 Mbit/s", &class("")));
    let tight = run(&network(
        10,
        50,
        "100 Mbit/s",
        &class("max_connections = 5"),
    ));
    assert_eq!(free.flows["fetches"].refused, 0);
    let (refused, started) = (
        tight.flows["fetches"].refused,
        tight.responses["fetches"].started,
    );
    assert!(refused > 1000, "{refused}");
    assert_eq!(refused + started, free.responses["fetches"].started);
    assert_eq!(tight.flows["all"].refused, refused);
}

#[test]
fn sessions_terminals_and_bursts_run_together() {
    let classes = format!(
        r#"
        [[traffic]]
        kind = "web-sessions"
        sessions = 10
        {RTT}
        [[traffic]]
        kind = "telnet"
        sessions = 6
        keystrokes = 20
        {RTT}
        [[traffic]]
        kind = "on-off"
        flows = 20
        rate = "24 kbit/s"
        {RTT}
        [[traffic]]
        kind = "packmime"
        rate = "20 /s"
        http = "1.1"
        rtt = {{ kind = "packmime", extra = "2 ms" }}
        "#
    );
    let summary = run(&network(10, 300, "10 Mbit/s", &classes));
    // A session's round: 2 s of thought and less than a second of transfer.
    let fetched = summary.responses["web-sessions"].count as f64;
    assert!(
        (fetched / (10.0 * 300.0 / 2.6) - 1.0).abs() < 0.12,
        "{fetched}"
    );
    // An echo takes a round trip of 10 to 150 ms, the first of a connection two.
    let telnet = &summary.responses["telnet"];
    assert!(telnet.count > 1000);
    assert!((0.05..0.13).contains(&telnet.p50_s.unwrap()), "{telnet:?}");
    let bursts = &summary.flows["on-off"];
    assert!((1.0..2.5).contains(&(bursts.datagrams_sent as f64 / 300.0 / 20.0 / 4.76 * 1.5)));
    assert_eq!(bursts.datagrams_lost, 0);
    // 20 connections/s, 9 % of them with 3.2 requests.
    let responses = summary.responses["packmime"].count as f64 / 300.0;
    assert!(
        (responses / (20.0 * 1.198) - 1.0).abs() < 0.15,
        "{responses}"
    );
}

#[test]
fn unc_users_cause_their_published_load() {
    // Le 2005, section 3.3.1 and tables 4.1 and 4.2, uncongested: 9,520 users on each side, uniform
    // round-trip times: 98.2 Mbit/s each way; 16.2 million requests in 90 minutes; response times of
    // 0.137, 0.237 and 0.312 s at the median, the 75th and the 90th percentile (bins of 25 ms).
    // Here a tenth of the users for 15 minutes.
    let classes = format!(
        r#"
        [[traffic]]
        name = "browsers"
        kind = "unc-web"
        users = 1904
        direction = "both"
        tcp = "freebsd-4.5"
        {RTT}
        "#
    );
    let summary = run(&network(120, 900, "1 Gbit/s", &classes));
    let links = &summary.links["bottleneck"];
    let throughput = (links["forward"].throughput_bps + links["reverse"].throughput_bps) / 2.0;
    let responses = &summary.responses["browsers"];
    let counts = responses.count as f64 * 10.0 * 6.0;
    let percentiles = [responses.p50_s, responses.p75_s, responses.p90_s].map(Option::unwrap);
    println!("{throughput} bit/s, {counts} requests, {percentiles:?} s");
    assert!((throughput / 9.82e6 - 1.0).abs() < 0.05, "{throughput}");
    assert!((counts / 16.2e6 - 1.0).abs() < 0.05, "{counts}");
    for (found, published) in percentiles.into_iter().zip([0.137, 0.237, 0.312]) {
        // Two printed bins.
        assert!(
            (found - published).abs() < 0.05,
            "{found}, published {published}"
        );
    }
}

#[test]
fn the_example_of_every_model_runs() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let examples = Model::examples();
    assert_eq!(examples.len(), Model::ABOUT.len());
    for example in examples {
        let text = network(0, 5, "100 Mbit/s", example);
        let scenario = Scenario::load_text(&text, &scenarios, &[])
            .unwrap_or_else(|error| panic!("{error} in\n{example}"));
        assert!(scenario.population(0).is_some(), "{example}");
        let summary = aqmlab_sim::run(&scenario, Box::new(Discard), &mut |_| true)
            .unwrap_or_else(|error| panic!("{error} in\n{example}"));
        let link = &summary.links["bottleneck"]["forward"];
        assert!(link.throughput_bps > 0.0, "nothing is sent by\n{example}");
    }
}
