//! Packets and bytes over time, as a capture shows them.

use std::io::Read;

use aqmlab_net::Time;

use crate::error::CaptureError;
use crate::reader::PROGRESS;
use crate::tidy::{Notes, Plan, Tidy};

/// More bins of an interface than this are put together two by two: a longer capture has wider ones.
const MOST_BINS: usize = 1 << 23;

/// So are more bins of all interfaces together: a capture may describe any number of them.
const MOST_BINS_IN_ALL: usize = 2 * MOST_BINS;

/// What arrived at each interface, in bins of time from the first packet on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Width of a bin.
    pub bin: Time,
    /// By number of the interface, or of the direction; all have the same number of bins.
    pub interfaces: Vec<Series>,
    /// How many bins they have.
    bins: u64,
    /// What the pass in front of this has found.
    pub notes: Notes,
}

/// The arrivals at an interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Packets in each bin.
    pub packets: Vec<f64>,
    /// Their bytes on the wire.
    pub bytes: Vec<f64>,
}

impl Series {
    fn halve(&mut self) {
        for column in [&mut self.packets, &mut self.bytes] {
            *column = column.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

impl Arrivals {
    fn add(&mut self, since_first: Time, interface: usize, bytes: u32) {
        if interface >= self.interfaces.len() {
            self.interfaces.resize_with(interface + 1, Series::default);
        }
        let index = since_first.as_nanos() / self.bin.as_nanos();
        self.bins = self.bins.max(index + 1);
        let most = MOST_BINS
            .min(MOST_BINS_IN_ALL / self.interfaces.len())
            .max(1);
        while self.bins > most as u64 {
            self.bin = Time::from_nanos(self.bin.as_nanos().saturating_mul(2));
            self.interfaces.iter_mut().for_each(Series::halve);
            self.bins = self.bins.div_ceil(2);
        }
        let series = &mut self.interfaces[interface];
        let index = (since_first.as_nanos() / self.bin.as_nanos()) as usize;
        if index >= series.packets.len() {
            series.packets.resize(index + 1, 0.0);
            series.bytes.resize(index + 1, 0.0);
        }
        series.packets[index] += 1.0;
        series.bytes[index] += f64::from(bytes);
    }

    fn finish(&mut self) {
        let bins = self.bins as usize;
        for series in &mut self.interfaces {
            series.packets.resize(bins, 0.0);
            series.bytes.resize(bins, 0.0);
        }
    }
}

/// What packets are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The interface that captured them.
    Interface,
    /// Where they go: 0 home, 1 away from it, 2 not known.
    Direction,
}

/// Counts the packets of a capture in bins of that width, wider ones if there would be more than
/// eight million for an interface or sixteen million in all. Packets without a time are left out; those before the first are in the first
/// bin. `progress` gets the number of bytes read and returns whether to go on.
pub fn arrivals(
    input: impl Read,
    plan: &Plan,
    bin: Time,
    by: By,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Arrivals, CaptureError> {
    let mut reader = Tidy::new(input, plan)?;
    let mut found = Arrivals {
        bin,
        ..Arrivals::default()
    };
    let (mut first, mut packets) = (None, 0_u64);
    while let Some(packet) = reader.next_packet()? {
        if let Some(time) = packet.time {
            let since_first = time.saturating_sub(*first.get_or_insert(time));
            let series = match by {
                By::Interface => packet.interface as usize,
                By::Direction => plan.leaves(&packet).map_or(2, usize::from),
            };
            found.add(since_first, series, packet.original);
        }
        packets += 1;
        if packets % PROGRESS == 0 && !progress(reader.consumed()) {
            break;
        }
    }
    found.finish();
    found.notes = plan.notes.clone();
    found.notes.second_sights = reader.second_sights;
    found.notes.cut = reader.cut().map(str::to_owned);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_become_wider_where_there_would_be_too_many() {
        let mut found = Arrivals {
            bin: Time::from_millis(1),
            ..Arrivals::default()
        };
        found.add(Time::ZERO, 1, 40);
        found.add(Time::from_millis(1), 1, 60);
        found.add(Time::from_millis(2), 0, 1500);
        assert_eq!(found.interfaces[1].bytes, [40.0, 60.0]);
        found.add(Time::from_millis(3 * MOST_BINS as u64), 1, 7);
        found.finish();
        assert_eq!(found.bin, Time::from_millis(4));
        let [other, one] = &found.interfaces[..] else {
            panic!("two interfaces");
        };
        assert_eq!((one.packets[0], one.bytes[0]), (2.0, 100.0));
        assert_eq!((other.packets[0], other.bytes[0]), (1.0, 1500.0));
        assert_eq!(one.bytes[3 * MOST_BINS / 4], 7.0);
        assert_eq!(other.packets.len(), one.packets.len());
    }

    #[test]
    fn all_interfaces_together_have_a_bounded_number_of_bins() {
        let mut found = Arrivals {
            bin: Time::from_millis(1),
            ..Arrivals::default()
        };
        let end = Time::from_secs(1_000_000);
        for interface in 0..400 {
            found.add(Time::ZERO, interface, 40);
            found.add(end, interface, 60);
            let bins = found.interfaces.iter().map(|it| it.packets.len());
            assert!(bins.sum::<usize>() <= MOST_BINS_IN_ALL);
        }
        found.finish();
        for series in &found.interfaces {
            let last = (end.as_nanos() / found.bin.as_nanos()) as usize;
            assert_eq!((series.packets[0], series.packets[last]), (1.0, 1.0));
            assert_eq!((series.bytes.len(), series.bytes[last]), (last + 1, 60.0));
        }
        // Half a bin more in each would be too many.
        assert!(400 * found.bins as usize > MOST_BINS_IN_ALL / 2);
    }
}
