//! Every bound of every parameter refuses what lies outside, by its key and in one sentence; the
//! sentences are listed in `snapshots/refused__messages.snap`. What relates two parameters is
//! tested beside its discipline.

mod model;

use aqmlab_aqm::Discipline;
use aqmlab_declare::refusals;

#[test]
fn what_lies_outside_of_a_bound_is_refused() {
    let messages = refusals(model::CASES, Discipline::refused, Discipline::check);
    insta::assert_snapshot!("messages", messages);
}
