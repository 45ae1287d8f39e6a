//! The link that tests begin with.

use aqmlab_aqm::Discipline;
use aqmlab_declare::tagged;
use aqmlab_net::{Rate, Time};
use aqmlab_scenario::{Framing, Link, Packets};
use toml::{Table, Value};

/// A link of so many Mbit/s without delay, behind a drop-tail queue of so many packets.
pub(crate) fn link(mbps: u64, limit: u32) -> Link {
    let table = format!("kind = \"droptail\"\nlimit = \"{limit} packets\"");
    let table: Table = table.parse().expect("TOML");
    let discipline: Discipline = tagged::from_value(Value::Table(table)).expect("valid");
    Link {
        rate: Rate::from_mbps(mbps),
        delay: Time::ZERO,
        framing: Framing::NONE,
        device_ring: Packets(0),
        device_ring_batch: Packets(1),
        device_ring_counted: false,
        input: None,
        policer: None,
        packet_time: None,
        loss: 0.0,
        loss_changes: Vec::new(),
        ack_batch: Time::ZERO,
        reordering: None,
        rate_changes: Vec::new(),
        delay_changes: Vec::new(),
        outages: Vec::new(),
        trace: None,
        discipline,
    }
}
