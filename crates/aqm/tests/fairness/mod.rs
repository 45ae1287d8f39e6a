//! The AQMs that know flows: what each is for, in a closed loop of senders, and the parameters
//! that they refuse.

mod crowd;
mod refused;

use aqmlab_aqm::{Discipline, LinkFacts};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Rate};

/// 2500 packets of 500 bytes a second.
const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};

/// A discipline from the text of its table.
fn read(table: &str) -> Discipline {
    let table = toml::Value::Table(table.parse().unwrap());
    tagged::from_value(table).unwrap_or_else(|error| panic!("{error}"))
}
