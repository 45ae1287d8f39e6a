//! CoDel.

use aqmlab_aqm::codel::{Params, Root};
use aqmlab_aqm::{Discipline, Queue};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, Time};

use crate::model::once::Numbered;
use crate::worked::trace::{assert_close, link, rows};

/// When packet `id` of the example arrives: one per millisecond, 40 from 1 ms and 20 from 500 ms.
fn arrival(id: usize) -> Time {
    let after = if id <= 40 { id } else { 500 + id - 41 };
    Time::from_millis(after as u64)
}

#[test]
fn codel() {
    let params = Params {
        target: Some(Time::from_millis(5)),
        interval: Time::from_millis(100),
        limit: QueueSize::Packets(1000.0),
        mtu: Bytes(1500),
        ecn: true,
        ce_threshold: None,
        ce_threshold_selector: 0,
        ce_threshold_mask: 0,
        root: Root::Exact,
    };
    let mut queue = Queue::new(&Discipline::Codel(params), link(1000, 1500), 1);
    let mut ids = 1..=60;
    let mut next = ids.next();
    for row in rows(include_str!("../data/codel.csv")) {
        let (step, now) = (row.step(), row.time());
        while let Some(id) = next.filter(|&id| arrival(id) <= now) {
            let packet = Packet {
                size: 1500,
                ecn: if id == 15 { Ecn::Ect0 } else { Ecn::NotEct },
                dscp: 0,
                flow: FlowKey(1),
            };
            let mut draw = || unreachable!("CoDel leaves nothing to chance");
            queue.put(arrival(id), packet, id, &mut draw, &mut |_, _| {
                unreachable!("nothing is dropped on arrival")
            });
            next = ids.next();
        }
        assert_eq!(queue.backlog(), row.queue(), "row {step}");
        let mut dropped = Vec::new();
        let mut draw = || unreachable!("CoDel leaves nothing to chance");
        let on_drop = &mut |id: usize, _| dropped.push(id.to_string());
        let sent = queue.take(now, &mut draw, on_drop);
        assert_eq!(dropped.join(";"), row.text("dropped_ids"), "row {step}");
        let sent_id = sent.map_or_else(String::new, |queued| queued.item.to_string());
        assert_eq!(sent_id, row.text("sent_id"), "row {step}");
        let marked = sent.is_some_and(|queued| queued.packet.ecn == Ecn::Ce);
        assert_eq!(marked, row.text("decision") == "sent_marked", "row {step}");
        let mut probed = Vec::new();
        queue.probe(&mut probed);
        let dropping = f64::from(u8::from(row.text("dropping") == "true"));
        assert_eq!(probed[0], dropping, "row {step}");
        for (found, column) in probed[1..4]
            .iter()
            .zip(["count", "lastcount", "first_above_s"])
        {
            assert_close(*found, row.number(column), &format!("row {step}, {column}"));
        }
        // Each of a few steps is rounded down to a nanosecond.
        let late = row.number("drop_next_s") - probed[4];
        assert!((-1e-9..5e-9).contains(&late), "row {step}: {late}");
    }
}
