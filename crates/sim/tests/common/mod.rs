//! Runs of scenarios that stand in a test.

use aqmlab_record::{Discard, Summary};
use aqmlab_scenario::Scenario;

pub(crate) fn parse(text: &str) -> Scenario {
    Scenario::parse(text, &[], &mut |name| {
        panic!("the scenario reads no file, but asks for {name}")
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn run(text: &str) -> Summary {
    aqmlab_sim::run(&parse(text), Box::new(Discard), &mut |_| true).expect("the run succeeds")
}
