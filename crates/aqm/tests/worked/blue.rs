//! BLUE.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::blue::{OnIdle, Params};
use aqmlab_net::{QueueSize, Time};

use crate::worked::trace::{Played, assert_close, link, rows};

#[test]
fn blue() {
    let params = Params {
        limit: QueueSize::Packets(3.0),
        d1: 0.02,
        d2: 0.002,
        freeze_time: Time::from_millis(100),
        threshold: None,
        on_idle: OnIdle::Once,
        min_queue: 0,
        ecn: true,
    };
    let mut played = Played::new(&Discipline::Blue(params), link(1000, 500));
    for row in rows(include_str!("../data/blue.csv")) {
        played.step(&row);
        let step = row.step();
        assert_close(played.probe("p_m"), row.number("p_m"), step);
        // Blank before the first change.
        let last_update = row.text("last_update_s").parse().unwrap_or(0.0);
        assert_close(played.probe("last_update_s"), last_update, step);
    }
}
