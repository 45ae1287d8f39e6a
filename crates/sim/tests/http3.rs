//! Pages over HTTP/3, against sums by hand and against the same pages over HTTP/2.
#![cfg(feature = "quic")]

use crate::common;

use std::sync::{Arc, Mutex};

use aqmlab_record::{
    Breakdown, ClassMetrics, Exchange, Flow, LinkStats, QualitySummary, QueueSamples, Records,
    RunError, Summary, TraceRow,
};
use aqmlab_scenario::Scenario;
use common::{parse, run};

/// Keeps the flows that are over, and counts the responses whose parts add up to them.
#[derive(Clone, Default)]
struct Flows(Arc<Mutex<Vec<Flow>>>, Arc<Mutex<usize>>);

impl Records for Flows {
    fn begin(&mut self, _classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }

    fn response(&mut self, _row: &Exchange) {}

    fn breakdown(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        let parts: u64 = breakdown.parts.iter().sum();
        assert_eq!(parts, row.response_time().as_nanos(), "{row:?}");
        *self.1.lock().unwrap() += 1;
    }

    fn flow(&mut self, row: &Flow) {
        self.0.lock().unwrap().push(*row);
    }

    fn trace(&mut self, _row: &TraceRow) {}

    fn queue(&mut self, _samples: &QueueSamples) {}

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        _classes: &[ClassMetrics],
        _links: &[&LinkStats],
    ) -> Result<(), RunError> {
        Ok(())
    }
}

/// The flows of a run that are over, and how many responses have been broken down.
fn flows(text: &str) -> (Vec<Flow>, usize) {
    let flows = Flows::default();
    let records = Box::new(flows.clone());
    aqmlab_sim::run(&parse(text), records, &mut |_| true).expect("the run succeeds");
    let explained = *flows.1.lock().unwrap();
    (flows.0.lock().unwrap().clone(), explained)
}

/// Pages of 11 objects over a link with this rate each way and a round trip of 40 ms, parsed in 20 ms.
fn pages(rate: &str, more: &str) -> Summary {
    run(&format!(
        "[measure]\nwarm_up = '10 s'\nduration = '60 s'\nrecord = []\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '{rate}'\nframing = 'none'\n\
         discipline = {{ kind = 'droptail', limit = '1000 packets' }}\n\
         [[traffic]]\nname = 'one'\nusers = 3\nobjects = 11\nobjects_sigma = 0\n\
         object = '200 bytes'\nobject_sigma = 0\nhtml = '2000 bytes'\n\
         parse_min = '20 ms'\nparse_max = '20 ms'\nthink = '2 s'\n\
         rtt = {{ kind = 'constant', rtt = '40 ms' }}\n{more}"
    ))
}

fn quality(summary: &Summary) -> &QualitySummary {
    &summary.quality["one"]
}

fn near(found: Option<f64>, expected: f64, tolerance: f64) {
    let found = found.expect("a number");
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected}"
    );
}

#[test]
fn a_page_takes_a_round_trip_less_than_over_tcp_and_with_early_data_two() {
    // Handshake, HTML, two waves, and 20 ms to parse twice.
    for (more, expected) in [
        ("kind = 'http3-web'", 0.200),
        // A session that goes on needs no certificate. With one, the server may not send the HTML, too.
        (
            "kind = 'http3-web'\nquic = { early_data = 'accepted', server_flight = '300 bytes' }",
            0.160,
        ),
        (
            "kind = 'http3-web'\nquic = { early_data = 'accepted' }",
            0.200,
        ),
        ("kind = 'http3-web'\ntransport = 'tcp'", 0.240),
        ("kind = 'http2-web'", 0.240),
    ] {
        let summary = pages("1 Gbit/s", more);
        near(quality(&summary).page_load_p50_s, expected, 0.001);
        near(quality(&summary).page_load_p95_s, expected, 0.001);
        let flows = &summary.flows["one"];
        assert!(flows.count > 20 && flows.failed == 0, "{more}: {flows:?}");
    }
}

/// What the forward direction of the link has carried, and what flows have.
fn carried(summary: &Summary) -> String {
    let links = &summary.links["bottleneck"];
    let flows = &summary.flows["one"];
    format!("{links:?} {flows:?} {:?}", summary.responses["one"])
}

#[test]
fn over_tcp_it_is_http2_to_the_byte() {
    for tcp in ["rfc", "linux"] {
        let [http2, http3] = [
            "kind = 'http2-web'",
            "kind = 'http3-web'\ntransport = 'tcp'",
        ]
        .map(|kind| pages("3 Mbit/s", &format!("{kind}\ntcp = '{tcp}'")));
        assert_eq!(carried(&http2), carried(&http3));
        assert_eq!(
            quality(&http2).page_load_p50_s,
            quality(&http3).page_load_p50_s
        );
        // Only the newer one has a time for each object.
        assert_eq!(quality(&http2).object_index_mean_s, None);
    }
}

#[test]
fn the_mean_object_arrives_when_arithmetic_says() {
    // The HTML after two round trips (TCP: three), three objects after one more and a parse, seven after
    // another of both.
    for (more, first) in [
        ("kind = 'http3-web'", 80.0),
        ("kind = 'http3-web'\ntransport = 'tcp'", 120.0),
    ] {
        let summary = pages("1 Gbit/s", more);
        let expected = (first + 3.0 * (first + 60.0) + 7.0 * (first + 120.0)) / 11.0;
        near(quality(&summary).object_index_mean_s, expected / 1e3, 0.001);
    }
}

#[test]
fn every_byte_counts_once_and_parts_add_up_although_packets_are_lost() {
    // HTML and ten objects with their headers; requests of 450 and ten of 60 bytes.
    let (page, asked) = (2_200 + 10 * 400, 450 + 10 * 60);
    for more in [
        "",
        "\nquic.receive_window = '3000 bytes'",
        "\ntransport = { quic = 0.35, tcp = 0.65 }\ntls = false",
    ] {
        let lossy = "[topology.bottleneck]\nrate = '3 Mbit/s'\nloss = 0.03\n";
        let text = format!(
            "[measure]\nwarm_up = '0 s'\nduration = '60 s'\nrecord = []\nbreakdown = true\n\
             [topology]\nkind = 'dumbbell'\n{lossy}framing = 'none'\n\
             discipline = {{ kind = 'droptail', limit = '1000 packets' }}\n\
             [[traffic]]\nname = 'one'\nkind = 'http3-web'\nusers = 3\nobjects = 11\nobjects_sigma = 0\n\
             object = '200 bytes'\nobject_sigma = 0\nhtml = '2000 bytes'\nthink = '1 s'\n\
             rtt = {{ kind = 'constant', rtt = '40 ms' }}{more}"
        );
        let (found, explained) = flows(&text);
        // The same seed, the same connections.
        assert_eq!(format!("{found:?}"), format!("{:?}", flows(&text).0));
        assert!(found.len() > 60, "{more}: {}", found.len());
        // The last pages may be complete while their connections are not over.
        assert!((found.len()..=found.len() + 3).contains(&explained));
        for flow in found {
            assert_eq!(
                (flow.request_bytes, flow.response_bytes),
                (asked, page),
                "{more}"
            );
            assert!(!flow.failed);
        }
    }
}

#[test]
fn quic_is_what_a_class_has_that_names_no_transport() {
    let class = "[measure]\nduration = '1 s'\n[topology]\nkind = 'dumbbell'\n[topology.bottleneck]\n\
                 rate = '1 Mbit/s'\ndiscipline = 'codel'\n[[traffic]]\nkind = 'http3-web'\nusers = 1\n\
                 rtt = { kind = 'constant', rtt = '40 ms' }\n";
    // What is written is read again: TCP is not what is left out.
    for (line, written) in [("", "quic"), ("transport = 'tcp'", "tcp")] {
        let scenario = parse(&format!("{class}{line}"));
        let text = toml::to_string(&scenario.traffic[0]).unwrap();
        assert!(
            text.contains(&format!("transport = \"{written}\"")),
            "{text}"
        );
    }
    let quinn = format!("{class}transport = 'quinn'");
    let refused = Scenario::parse(&quinn, &[], &mut |_| unreachable!());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("found quinn"), "{message}");
}
