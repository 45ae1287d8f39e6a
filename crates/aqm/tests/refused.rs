//! Every bound of every parameter refuses what lies outside, by its key and in one sentence; the
//! sentences are listed in `snapshots/refused__messages.snap`. What relates two parameters is
//! tested beside its discipline. Reasons, changeable parameters and inner variables are listed, too.

use crate::model;

use std::collections::BTreeSet;

use aqmlab_aqm::{Discipline, Queue};
use aqmlab_declare::refusals;

#[test]
fn what_lies_outside_of_a_bound_is_refused() {
    let messages = refusals(model::CASES, Discipline::refused, Discipline::check);
    insta::assert_snapshot!("messages", messages);
}

/// What a user reads of each discipline, may change while it runs, and sees in its records.
#[test]
fn reasons_changeable_parameters_and_variables_are_listed() {
    let mut lines = BTreeSet::new();
    for case in model::cases() {
        let kind = case.name.split('"').nth(1).unwrap();
        for reason in case.discipline.reasons() {
            let what = if reason.marks() { "marks" } else { "drops" };
            lines.insert(format!(
                "{kind} {what}, {}: {}",
                reason.name(),
                reason.meaning()
            ));
        }
        let changeable = case.discipline.changeable().join(", ");
        lines.insert(format!("{kind} changes {changeable}"));
        let queue: Queue<usize> = Queue::new(&case.discipline, model::LINK, 1);
        let variables = queue.probe_names().join(", ");
        lines.insert(format!("{kind} shows {variables}"));
    }
    insta::assert_snapshot!("declared", Vec::from_iter(lines).join("\n"));
}
