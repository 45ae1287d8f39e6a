//! Changes that come when a congestion control enters a phase.

use std::sync::{Arc, Mutex};

use aqmlab_net::Time;
use aqmlab_record::{
    ClassMetrics, Discard, Exchange, Flow, LinkStats, QueueSamples, Records, RunError, Summary,
    TraceRow,
};
use aqmlab_sim::{Memory, Simulation};

use crate::common::{parse, run};

/// One transfer, with what a test adds to the link and to the class. Something always waits for a
/// phase, so that no run has shifted clocks: these change the order at equal times.
fn transfer(top: &str, link: &str, class: &str) -> String {
    let phase = match class.contains("'first'") {
        true => "avoidance",
        false => "probe-rtt",
    };
    format!(
        r#"
        {top}
        [measure]
        warm_up = "1 s"
        duration = "14 s"
        flow_trace = {{ flows = 2, period = "0 s" }}
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "20 Mbit/s"
        discipline = {{ kind = "droptail", limit = "500 packets" }}
        [topology.bottleneck.forward]
        rate = "20 Mbit/s"
        {link}
        [topology.bottleneck.reverse]
        loss_changes = [{{ when = {{ flow = 1, phase = '{phase}', after = '700 h' }}, loss = 0.5 }}]
        [[traffic]]
        kind = "bulk"
        flows = 1
        start_within = "0 s"
        {class}
        rtt = {{ kind = "constant", rtt = "40 ms" }}
        "#
    )
}

/// The default control of the tests.
const BBR3: &str = "tcp = { profile = 'linux', congestion_control = 'bbr3' }";
const QUIC_BBR3: &str = "transport = 'quic'\nquic = { congestion_control = 'bbr3' }";

/// Keeps the rows of traces.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<Vec<TraceRow>>>);

impl Records for Traces {
    fn begin(&mut self, _: &[String], _: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }
    fn response(&mut self, _: &Exchange) {}
    fn flow(&mut self, _: &Flow) {}
    fn trace(&mut self, row: &TraceRow) {
        self.0.lock().unwrap().push(*row);
    }
    fn queue(&mut self, _: &QueueSamples) {}
    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }
    fn finish(self: Box<Self>, _: &[ClassMetrics], _: &[&LinkStats]) -> Result<(), RunError> {
        Ok(())
    }
}

fn json(summary: &Summary) -> String {
    serde_json::to_string(summary).unwrap()
}

fn traced(text: &str) -> (Summary, Vec<TraceRow>) {
    let traces = Traces::default();
    let summary = aqmlab_sim::run(&parse(text), Box::new(traces.clone()), &mut |_| true);
    let rows = std::mem::take(&mut *traces.0.lock().unwrap());
    (summary.unwrap(), rows)
}

/// When the control of the transfer of a class enters a phase.
fn entries(rows: &[TraceRow], class: usize, phase: &str) -> Vec<Time> {
    let mut before = "";
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row.class == class) {
        let now = row.probe.control_state.map_or("", |state| state.phase);
        if now == phase && before != phase {
            found.push(row.time);
        }
        before = now;
    }
    found
}

/// The same changes at the times at which the phases came give the same trace.
#[test]
fn a_rate_that_waits_for_a_phase_changes_at_its_entry() {
    for class in [BBR3, QUIC_BBR3] {
        let rate = |when: &str| {
            let keys = format!("when = {{ flow = 1, phase = 'probe-up'{when} }}");
            let link = format!("rate_changes = [{{ {keys}, rate = '5 Mbit/s' }}]");
            traced(&transfer("", &link, class)).1
        };
        let (_, plain) = traced(&transfer("", "", class));
        let all = entries(&plain, 0, "probe-up");
        assert!(all.len() > 2, "{all:?}");
        let wait = Time::from_millis(300);
        let after = all[0] + Time::from_nanos(1);
        for (when, at) in [
            (String::new(), all[0]),
            (", wait = '300 ms'".to_owned(), all[0] + wait),
            (format!(", after = '{} ns'", after.as_nanos()), all[1]),
            (format!(", after = '{} ns'", all[1].as_nanos()), all[1]),
        ] {
            let found = rate(&when);
            let link = format!(
                "rate_changes = [{{ at = '{} ns', rate = '5 Mbit/s' }}]",
                at.as_nanos()
            );
            let (_, expected) = traced(&transfer("", &link, class));
            assert!(found == expected, "{class} {when}");
            assert!(found != plain, "{class} {when}");
        }
    }
}

#[test]
fn every_entry_counts_if_it_is_asked_for() {
    let link = "rate_changes = [
        { when = { flow = 1, phase = 'probe-up', every = true }, rate = '18 Mbit/s' },
        { when = { flow = 1, phase = 'probe-down', every = true }, rate = '20 Mbit/s' },
    ]";
    let (_, rows) = traced(&transfer("", link, BBR3));
    let mut changes: Vec<(Time, u32)> = Vec::new();
    for (phase, rate) in [("probe-up", 18), ("probe-down", 20)] {
        let times = entries(&rows, 0, phase);
        assert!(times.len() > 2, "{phase} {times:?}");
        changes.extend(times.iter().map(|at| (*at, rate)));
    }
    changes.sort();
    let changes: Vec<String> = changes
        .iter()
        .map(|(at, rate)| format!("{{ at = '{} ns', rate = '{rate} Mbit/s' }}", at.as_nanos()))
        .collect();
    let link = format!("rate_changes = [{}]", changes.join(", "));
    assert!(rows == traced(&transfer("", &link, BBR3)).1);
}

/// A value of `changes`, and a list of the link: the same.
#[test]
fn values_change_at_phases_too() {
    let when = "when = { flow = 1, phase = 'cruise' }";
    let top = format!("changes = [{{ {when}, key = 'forward.rate', value = '5 Mbit/s' }}]");
    let (_, rows) = traced(&transfer(&top, "", BBR3));
    let link = format!("rate_changes = [{{ {when}, rate = '5 Mbit/s' }}]");
    assert!(rows == traced(&transfer("", &link, BBR3)).1);
    let top =
        format!("changes = [{{ {when}, key = 'forward.discipline.limit', value = '2 packets' }}]");
    let [few, many] = [&*top, ""].map(|top| run(&transfer(top, "", BBR3)));
    let dropped = |it: &Summary| it.links["bottleneck"]["forward"].dropped_packets;
    assert!(dropped(&few) > dropped(&many) + 10, "{}", dropped(&few));
}

#[test]
fn delay_and_loss_change_at_phases() {
    let when = "when = { flow = 1, phase = 'probe-up' }";
    let link = format!("delay_changes = [{{ {when}, delay = '30 ms' }}]");
    let (_, rows) = traced(&transfer("", &link, BBR3));
    let begins = entries(&rows, 0, "probe-up")[0];
    let longest = |later: bool| {
        let rows = rows.iter().filter(|row| (row.time > begins) == later);
        rows.filter_map(|row| row.probe.control_state?.min_rtt)
            .max()
            .unwrap()
    };
    assert!(longest(false) < Time::from_millis(45), "{}", longest(false));
    assert!(longest(true) > Time::from_millis(65), "{}", longest(true));
    let link = format!(
        "loss_changes = [{{ {when}, loss = 0.2 }}, {{ when = {{ flow = 1, phase = 'probe-up', wait = '200 ms' }}, \
         loss = 0.0 }}]"
    );
    let [lossy, plain] = [&*link, ""].map(|link| run(&transfer("", link, BBR3)));
    let lost = |it: &Summary| it.links["bottleneck"]["forward"].wire_lost_packets;
    assert_eq!(lost(&plain), 0);
    assert!((20..200).contains(&lost(&lossy)), "{}", lost(&lossy));
}

/// From then on nothing is in flight, until the pause is over.
#[test]
fn applications_pause_at_phases() {
    let limited = format!("{QUIC_BBR3}\nlimit = '10 Mbit/s'");
    for (phase, class) in [("cruise", BBR3), ("startup", &limited)] {
        let when = format!("when = {{ flow = 1, phase = '{phase}', wait = '1 s' }}");
        let class = format!("{class}\npauses = [{{ {when}, for = '3 s' }}]");
        let (_, rows) = traced(&transfer("", "", &class));
        let begins = entries(&rows, 0, phase)[0] + Time::from_secs(1);
        let within = |from: u64, to: u64| {
            let [from, to] = [from, to].map(|ms| begins + Time::from_millis(ms));
            rows.iter()
                .filter(move |row| row.time > from && row.time < to)
        };
        assert_eq!(
            within(600, 3_000)
                .map(|it| it.probe.in_flight)
                .max()
                .unwrap_or(0),
            0
        );
        assert!(
            within(3_000, 3_600).any(|it| it.probe.in_flight > 0),
            "{class}"
        );
    }
}

/// Transfers are counted in the order in which they start, whatever class they are of.
#[test]
fn transfers_are_counted_as_they_start() {
    let second = "tcp = { profile = 'linux', congestion_control = 'bbr3' }\nstart = '500 ms'
        rtt = { kind = 'constant', rtt = '40 ms' }
        [[traffic]]\nname = 'first'\nkind = 'bulk'\nflows = 1\nstart_within = '0 s'
        tcp = { profile = 'linux' }";
    let link = |flow: u32, phase: &str| {
        let when = format!("when = {{ flow = {flow}, phase = '{phase}' }}");
        format!("rate_changes = [{{ {when}, rate = '5 Mbit/s' }}]")
    };
    let (_, plain) = traced(&transfer("", "", second));
    for (flow, class, phase) in [(1, 1, "avoidance"), (2, 0, "drain")] {
        let at = entries(&plain, class, phase)[0].as_nanos();
        let timed = format!("rate_changes = [{{ at = '{at} ns', rate = '5 Mbit/s' }}]");
        let found = traced(&transfer("", &link(flow, phase), second)).1;
        assert!(
            found == traced(&transfer("", &timed, second)).1,
            "{flow} {phase}"
        );
    }
}

/// A run that is looked at is the same run, and its scenario still waits for the phase.
#[test]
fn a_run_in_steps_sees_the_same_phases() {
    let when = "when = { flow = 1, phase = 'probe-up', every = true }";
    let top = format!("changes = [{{ {when}, key = 'forward.rate', value = '12 Mbit/s' }}]");
    let text = transfer(
        &top,
        "loss_changes = [{ when = { flow = 1, phase = 'cruise' }, loss = 0.01 }]",
        BBR3,
    );
    let scenario = parse(&text);
    let whole = run(&text);
    for changeable in [false, true] {
        let start = match changeable {
            true => Simulation::start_changeable,
            false => Simulation::start,
        };
        let mut stepped = start(&scenario, Box::new(Discard), Memory::UNLIMITED).unwrap();
        while stepped.now() < stepped.end_time() {
            let next = stepped.now() + Time::from_millis(70);
            stepped.run_until(next).unwrap();
            stepped.observe();
        }
        assert!(stepped.scenario() == scenario);
        assert_eq!(json(&stepped.end().unwrap()), json(&whole));
    }
}
