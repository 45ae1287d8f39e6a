//! A whole short run of anything: it ends, no packet is lost or made up, and in many steps it comes
//! to what it comes to in one.

use std::fmt::Write;

use aqmlab_net::Time;
use aqmlab_record::{Discard, RunError, Summary};
use aqmlab_scenario::Scenario;
use aqmlab_sim::{Memory, Simulation};
use aqmlab_traffic::Model;
use arbitrary::{Result, Unstructured};

use crate::discipline::CASES;
use crate::stack;

/// More users or connections per second than this would only take time.
const MOST: u32 = 60;

/// A short run.
pub fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let Ok((scenario, step)) = scenario(&mut input) else {
        return;
    };
    let Some(summary) = run(&scenario, None) else {
        return;
    };
    let stepped = run(&scenario, Some(step)).expect("it ran in one go");
    assert_eq!(text(&stepped), text(&summary), "{}", scenario.to_toml());
}

/// The summary; nothing where memory is short. What a run counts is checked at its end.
fn run(scenario: &Scenario, step: Option<Time>) -> Option<Summary> {
    let work = || {
        let memory = Memory::bytes(500 << 20);
        let mut simulation = Simulation::start(scenario, Box::new(Discard), memory)?;
        let mut time = Time::ZERO;
        while let Some(step) = step.filter(|_| time < Time::from_secs(2)) {
            time += step;
            simulation.run_until(time)?;
        }
        simulation.end()
    };
    match work() {
        Ok(summary) => Some(summary),
        Err(RunError::TooLarge(_) | RunError::Memory(_)) => None,
        Err(error) => panic!("{error}\n{}", scenario.to_toml()),
    }
}

fn text(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("a summary is JSON")
}

/// A scenario of a second or two, and the step of a run by steps.
fn scenario(input: &mut Unstructured<'_>) -> Result<(Scenario, Time)> {
    let mut text = String::new();
    let mut line = |content: std::fmt::Arguments<'_>| {
        writeln!(text, "{content}").expect("memory takes everything");
    };
    line(format_args!("seed = {}", input.arbitrary::<u16>()?));
    line(format_args!("[measure]"));
    line(format_args!(
        "warm_up = \"{} ms\"",
        input.int_in_range(0..=900)?
    ));
    line(format_args!(
        "duration = \"{} ms\"",
        input.int_in_range(1..=900)?
    ));
    let kind = *input.choose(&["dumbbell", "parking-lot"])?;
    line(format_args!("[topology]\nkind = \"{kind}\""));
    if input.arbitrary()? {
        let rate: u32 = input.int_in_range(1..=10)?;
        line(format_args!(
            "hosts = {{ clients = 3, servers = 2, rate = \"{rate} Mbit/s\" }}"
        ));
    }
    line(format_args!("[topology.bottleneck]\n{}", link(input)?));
    if kind == "parking-lot" {
        line(format_args!("[topology.aggregation]\n{}", link(input)?));
    }
    let examples = Model::examples();
    for class in 0..input.int_in_range(1..=3)? {
        // Nobody replays files here.
        let alone = |example: &&&str| !example.contains("\"vectors\"");
        let able: Vec<&&str> = examples.iter().filter(alone).collect();
        let example = input.choose(&able)?;
        let named: Vec<&str> = example
            .lines()
            .filter(|line| !line.starts_with("name = "))
            .collect();
        let (head, rest) = named.split_first().expect("an example has a head");
        line(format_args!(
            "{head}\nname = \"class-{class}\"\n{}",
            rest.join("\n")
        ));
    }
    let mut scenario = Scenario::parse(&text, &[], &mut |_| unreachable!("nothing names a file"))
        .map_err(|_| arbitrary::Error::IncorrectFormat)?;
    for class in 0..scenario.traffic.len() {
        scenario.set_population(class, f64::from(input.int_in_range(1..=MOST)?));
        let stacks = &mut scenario.traffic[class].tcp;
        if let Some(stack) = stack::any(input)? {
            (stacks.client, stacks.server) = (stack.clone(), stack);
        }
    }
    // What was changed is checked as a file would be.
    let scenario = Scenario::parse(&scenario.to_toml(), &[], &mut |_| {
        unreachable!("nothing names a file")
    })
    .map_err(|_| arbitrary::Error::IncorrectFormat)?;
    let step = Time::from_micros(input.int_in_range(500..=1_500_000)?);
    Ok((scenario, step))
}

/// A link's settings, as lines.
fn link(input: &mut Unstructured<'_>) -> Result<String> {
    let rate: u32 = input.int_in_range(1..=8_000)?;
    let delay: u32 = input.int_in_range(0..=40)?;
    let mut text = format!("rate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\n");
    let extra: u8 = input.arbitrary()?;
    if extra & 1 == 1 {
        text += "loss = 0.03\n";
    }
    if extra & 2 == 2 {
        text += "device_ring = \"2 packets\"\n";
    }
    if extra & 4 == 4 {
        text += "reordering = { share = 0.1, delay = \"5 ms\" }\n";
    }
    if extra & 8 == 8 {
        let rate: u32 = input.int_in_range(1..=8_000)?;
        text += &format!("rate_changes = [{{ at = \"300 ms\", rate = \"{rate} kbit/s\" }}]\n");
    }
    let case = input.choose(CASES)?;
    let discipline: Vec<&str> = case.lines().map(str::trim).collect();
    text += &format!("discipline = {{ {} }}", discipline.join(", "));
    Ok(text)
}
