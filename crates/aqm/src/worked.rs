//! Worked examples played on a bare AQM, for those that start from a preset state or list tables
//! that no inner variable shows.

#[path = "../tests/worked/trace.rs"]
#[allow(
    dead_code,
    reason = "the rest serves the examples played through a fifo"
)]
mod trace;

use aqmlab_net::{FlowKey, Packet};

use crate::aqm::Aqm;
pub(crate) use trace::{Row, assert_close, flow, link, rows};

pub(crate) mod queues;

/// Plays an arrival or a departure and compares the decision. Nothing overflows in these examples.
pub(crate) fn play(aqm: &mut impl Aqm, row: &Row, ecn: bool) {
    play_packet(aqm, row, &row.packet(), ecn);
}

/// Plays `packet`, which has more than the row says, and compares the decision.
pub(crate) fn play_packet(aqm: &mut impl Aqm, row: &Row, packet: &Packet, ecn: bool) {
    let (step, now) = (row.step(), row.time());
    if row.event() == "depart" {
        let mut left = row.queue();
        left.remove(packet.size);
        // When it came is nothing to these AQMs.
        aqm.on_departure(now, packet, now, left);
        return;
    }
    assert_eq!(row.event(), "arrive", "row {step}");
    let mut draws = row.draws();
    let mut draw = || draws.pop_front().expect("a draw that the example lacks");
    let decision = aqm.on_arrival(now, packet, row.queue(), &mut draw);
    let outcome = decision.outcome(packet, ecn, true);
    assert!(draws.is_empty(), "row {step}: a draw was not made");
    assert_eq!(trace::decision(outcome), row.text("decision"), "row {step}");
    aqm.on_outcome(now, packet, row.queue(), outcome);
}

/// Compares inner variables with the columns of the same names.
pub(crate) fn compare(aqm: &impl Aqm, row: &Row, columns: &[&str]) {
    for column in columns {
        compare_as(aqm, row, column, column);
    }
}

/// Compares an inner variable with a column of another name.
pub(crate) fn compare_as(aqm: &impl Aqm, row: &Row, name: &str, column: &str) {
    let mut values = Vec::new();
    aqm.probe(&mut values);
    let mut names = aqm.probe_names().iter();
    let index = names.position(|inner| *inner == name);
    let found = values[index.expect("an inner variable of this name")];
    let what = format!("row {}, {name}", row.step());
    assert_close(found, row.number(column), &what);
}

/// The word by which an example calls a flow.
pub(crate) fn name(flow: FlowKey) -> String {
    let letters = flow
        .0
        .to_be_bytes()
        .into_iter()
        .skip_while(|byte| *byte == 0);
    letters.map(char::from).collect()
}

/// Compares a list of flows and numbers with a column that holds it as `flow:number|...`.
pub(crate) fn compare_list(
    row: &Row,
    column: &str,
    found: impl IntoIterator<Item = (FlowKey, f64)>,
) {
    let expected = row.text(column).split('|').filter(|item| !item.is_empty());
    let mut found = found.into_iter();
    for item in expected {
        let what = format!("row {}, {column}, {item}", row.step());
        let (flow, number) = item.split_once(':').expect("flow:number");
        let (found_flow, found_number) = found.next().expect(&what);
        assert_eq!(name(found_flow), flow, "{what}");
        assert_close(found_number, number.parse().unwrap(), &what);
    }
    assert_eq!(found.next(), None, "row {}, {column}", row.step());
}
