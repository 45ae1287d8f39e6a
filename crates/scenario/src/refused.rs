//! Every bound of every parameter of a scenario's own tables refuses what lies outside, at its
//! place and in one sentence; the sentences are listed in
//! `snapshots/aqmlab_scenario__refused__messages.snap`. What relates two parameters is tested in
//! `tests/broken.rs`.

use std::fmt::Write;
use std::io;

use aqmlab_declare::{Declared, Refused};

use crate::link::{Input, RateChange, Reordering};
use crate::traffic::Common;
use crate::variable::{DelayChange, LossChange, Outage, Trace};
use crate::{
    Ampdu, Capture, FlowTrace, Hosts, Link, Measure, ParkingLot, Scenario, ScenarioError, Stations,
    Wifi,
};

/// A scenario that has every table at least once.
const RIGHT: &str = r#"
load = 0.9
[measure]
flow_trace = {}
capture = {}
[topology]
kind = "dumbbell"
hosts = { sockets = 1 }
[topology.bottleneck]
rate = "12 Mbit/s"
input = { packet_time = "1 us" }
policer = { rate = "1 Mbit/s", burst = "10 kB" }
loss_changes = [{ at = "1 s", loss = 0.1 }]
reordering = { share = 0.1, delay = "1 ms" }
discipline = "droptail-240"
trace = { opportunities = [1] }
delay_changes = [{ at = "1 s", delay = "1 ms" }]
outages = [{ at = "1 s", duration = "1 ms" }]
[topology.bottleneck.reverse]
rate = "10 Mbit/s"
trace = { opportunities = [6, 6, 6, 6, 6] }
[[traffic]]
kind = "mah-web"
rtt = { kind = "constant", rtt = "10 ms" }
"#;

/// A scenario of several links with a change of rate, which a trace excludes.
const ROW: &str = r#"
[topology]
kind = "parking-lot"
[topology.bottleneck]
rate = "10 Mbit/s"
discipline = "droptail-240"
rate_changes = [{ at = "1 s", rate = "1 Mbit/s" }]
[topology.aggregation]
rate = "10 Mbit/s"
discipline = "droptail-240"
[[traffic]]
kind = "bulk"
flows = 1
path = "through"
rtt = { kind = "constant", rtt = "10 ms" }
"#;

/// A scenario with Wi-Fi.
const AIR: &str = r#"
[topology]
kind = "dumbbell"
hosts = { clients = 2007 }
bottleneck = { rate = "100 Mbit/s", discipline = "droptail-240" }
[topology.wifi]
ampdu = { subframes = 32, bytes = "65535 bytes" }
stations = [{ count = 1, mcs = 15 }]
[[traffic]]
kind = "bulk"
flows = 1
rtt = { kind = "constant", rtt = "10 ms" }
"#;

fn read(text: &str, overrides: &[(String, String)]) -> Result<(), ScenarioError> {
    let mut files = |_: &str| Err(io::ErrorKind::NotFound.into());
    Scenario::parse(text, overrides, &mut files).map(|_| ())
}

#[test]
fn what_lies_outside_of_a_bound_is_refused_at_its_place() {
    let tables = [
        (RIGHT, "", Scenario::refused()),
        (RIGHT, "measure", Measure::refused()),
        (RIGHT, "measure.flow_trace", FlowTrace::refused()),
        (RIGHT, "measure.capture", Capture::refused()),
        (RIGHT, "topology.hosts", Hosts::refused()),
        (RIGHT, "topology.bottleneck", Link::refused()),
        (RIGHT, "topology.bottleneck.input", Input::refused()),
        (
            RIGHT,
            "topology.bottleneck.reordering",
            Reordering::refused(),
        ),
        (
            RIGHT,
            "topology.bottleneck.delay_changes.0",
            DelayChange::refused(),
        ),
        (
            RIGHT,
            "topology.bottleneck.loss_changes.0",
            LossChange::refused(),
        ),
        (RIGHT, "topology.bottleneck.outages.0", Outage::refused()),
        (RIGHT, "topology.bottleneck.trace", Trace::refused()),
        (AIR, "topology.wifi", Wifi::refused()),
        (AIR, "topology.wifi.stations.0", Stations::refused()),
        (AIR, "topology.wifi.ampdu", Ampdu::refused()),
        (ROW, "topology", ParkingLot::refused()),
        (
            ROW,
            "topology.bottleneck.rate_changes.0",
            RateChange::refused(),
        ),
        (RIGHT, "traffic.mah-web", Common::refused()),
    ];
    let mut messages = String::new();
    for (text, table, refused) in tables {
        assert_eq!(read(text, &[]), Ok(()));
        for Refused {
            key,
            outside,
            inside,
            message,
        } in refused
        {
            let path = format!("{table}.{key}");
            let path = path.trim_start_matches('.');
            let with = |value: &toml::Value| read(text, &[(path.to_owned(), value.to_string())]);
            let expected = ScenarioError::new(path, message);
            assert_eq!(
                with(&outside).as_ref(),
                Err(&expected),
                "{path} = {outside}"
            );
            if let Some(Err(error)) = inside.as_ref().map(with) {
                assert_ne!(error.path, expected.path, "{error}");
            }
            writeln!(messages, "{expected}").expect("text takes text");
        }
    }
    insta::assert_snapshot!("messages", messages);
}
