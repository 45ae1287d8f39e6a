//! The summary and the records of a run against plain sums over everything that was said of it.
//!
//! [`run`] makes up a run: what it says to [`Metrics`] and to the statistics of two links is kept.
//! [`plain`] computes each field of the summary from that by its definition, with sorted lists
//! instead of histograms. Many times are the first and the last nanosecond of the measured span, and
//! the one behind it.

mod plain;
mod run;

use aqmlab_net::Time;
use aqmlab_record::{Discard, LinkStats, Metrics, QueueSamples, View};
use serde_json::Value;

use run::{Kept, Run};

/// Where the two differ: numbers by more than rounding.
fn differences(path: &str, found: &Value, expected: &Value, into: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().filter(|key| !other.contains_key(*key)) {
                into.push(format!("{path}.{key} was not expected"));
            }
            for (key, expected) in other {
                let found = one.get(key).unwrap_or(&Value::Null);
                differences(&format!("{path}.{key}"), found, expected, into);
                if !one.contains_key(key) {
                    into.push(format!("{path}.{key} is missing"));
                }
            }
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            let allowed = match path {
                // Goodput is counted in whole bytes per second, jitter in sixteenths of a nanosecond.
                _ if path.contains("fairness") => 1e-4,
                _ if path.contains("jitter") => 1e-6,
                _ => 1e-12,
            };
            if (one - other).abs() > allowed * other.abs() {
                into.push(format!("{path}: {one}, expected {other}"));
            }
        }
        _ if found == expected => {}
        _ => into.push(format!("{path}: {found}, expected {expected}")),
    }
}

#[test]
fn every_field_of_the_summary_is_what_it_says() {
    for (seed, view) in (1..).zip([View::Everything, View::Sockets, View::Everything]) {
        let run = Run::new(seed);
        let (summary, kept) = run.tell(view);
        // JSON has no such number and would show nothing.
        assert!(!format!("{summary:?}").contains("NaN"));
        let found = serde_json::to_value(&summary).unwrap();
        let mut into = Vec::new();
        differences("", &found, &plain::summary(&run, view), &mut into);
        assert!(into.is_empty(), "run {seed}: {into:#?}");
        rows_are_those_of_the_span(&run, &kept);
        distributions_hold_everything(&run, &kept);
    }
}

/// What ended in the span is recorded, once, and flows of datagrams whenever they ended.
fn rows_are_those_of_the_span(run: &Run, kept: &Kept) {
    let ended: Vec<_> = run
        .exchanges
        .iter()
        .map(|(exchange, _)| exchange)
        .filter(|exchange| run::is_measured(exchange.end))
        .map(|exchange| exchange.flow)
        .collect();
    assert_eq!(kept.responses, ended);
    let with_parts: Vec<_> = run
        .exchanges
        .iter()
        .filter(|(exchange, _)| run::is_measured(exchange.end))
        .map(|(exchange, parts)| (exchange.flow, parts.parts.clone()))
        .collect();
    assert_eq!(kept.breakdowns, with_parts);
    let closed = run.closed.iter().map(|flow| (flow.flow, flow.end));
    let closed = closed.filter(|(_, end)| run::is_measured(*end));
    let calls = run.calls.iter().map(|call| call.flow.flow);
    let flows: Vec<_> = closed.map(|(flow, _)| flow).chain(calls).collect();
    assert_eq!(kept.flows, flows);
    assert_eq!((kept.traces, kept.stories), (2, 3));
    assert_eq!(kept.classes, run::CLASSES);
    // Each inner variable once, in the order of the links.
    assert_eq!(kept.probes, ["avg", "p", "credit"]);
    assert_eq!(kept.ports, run::LINKS);
    for (link, crossings) in run.links.iter().enumerate() {
        let samples: Vec<_> = run::sample_times()
            .map(|at| {
                let backlog = run::backlog(crossings, at);
                (at, backlog.packets, run::probe_values(link, at))
            })
            .collect();
        assert_eq!(kept.samples[link], samples);
    }
}

/// The distributions that are written beside the summary: as many as there were, and the times
/// below which they stay.
fn distributions_hold_everything(run: &Run, kept: &Kept) {
    for (class, found) in kept.distributions.iter().enumerate() {
        let nanos = plain::response_nanos(run, &|it| it == class);
        assert_eq!(found.responses, plain::microsecond_bins(&nanos));
        let nanos = plain::duration_nanos(run, &|it| it == class);
        assert_eq!(found.durations, plain::microsecond_bins(&nanos));
        let (samples, increases) = plain::round_trip_nanos(run, &|it| it == class);
        assert_eq!(found.round_trips[0], plain::nanosecond_bins(&samples));
        assert_eq!(found.round_trips[1], plain::nanosecond_bins(&increases));
        let datagrams = plain::datagrams(run, &|it| it == class);
        let [delays, variations] = &found.datagrams;
        assert_eq!(delays, &plain::nanosecond_bins(&datagrams.delays));
        assert_eq!(variations, &plain::nanosecond_bins(&datagrams.variations));
        assert_eq!(found.bytes, plain::response_bytes(run, &|it| it == class));
    }
}

/// A user who stops a run ends the measured span.
#[test]
fn nothing_is_measured_behind_an_end_that_is_brought_forward() {
    let scenario = run::scenario();
    let links: [&LinkStats; 0] = [];
    let mut metrics = Metrics::new(&scenario, View::Everything, links, Box::new(Discard)).unwrap();
    let s = Time::from_secs;
    assert_eq!(metrics.span().duration(), run::END - run::START);
    metrics.bring_end_forward(s(20));
    for at in [19, 20, 21] {
        metrics.on_exchange_start(0, s(at));
    }
    // It is not put off.
    metrics.bring_end_forward(s(25));
    metrics.on_exchange_start(0, s(22));
    assert_eq!(metrics.span().duration(), s(10));
    assert!(metrics.check().is_ok() && metrics.capture().unwrap().is_none());
    let links: [&mut LinkStats; 0] = [];
    let summary = metrics.finish(&scenario, links, 0).unwrap();
    let counts = ["web", "calls", "all"].map(|class| summary.responses[class].started);
    assert_eq!(counts, [1, 0, 1]);
    assert!(summary.breakdown.is_empty());
}

/// Samples are recorded once, however often they are asked for.
#[test]
fn what_is_recorded_is_forgotten() {
    let mut stats = LinkStats::new(run::LINKS[0].direction(), &["p"], run::SPAN, run::SAMPLE);
    let count = |stats: &LinkStats| QueueSamples::rows(stats.samples()).len();
    stats.on_sample(run::backlog(&[], run::START), Default::default, |out| {
        out.push(0.5);
    });
    assert_eq!(count(&stats), 1);
    assert_eq!(stats.next_sample(), run::START + run::SAMPLE);
    let scenario = run::scenario();
    let (records, kept) = Kept::new();
    let mut metrics = Metrics::new(&scenario, View::Everything, [&stats], records).unwrap();
    metrics.record_samples(&mut stats);
    metrics.record_samples(&mut stats);
    assert_eq!(count(&stats), 0);
    assert_eq!(kept.lock().unwrap().samples[0].len(), 1);
}
