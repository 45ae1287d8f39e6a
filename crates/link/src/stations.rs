//! Which stations the client hosts are, and what alike stations are called.

use aqmlab_record::{AirTally, StationsOnAir};
#[cfg(feature = "air")]
use aqmlab_scenario::Wifi;

/// The stations of a scenario.
#[derive(Clone, Debug)]
pub struct Stations {
    /// By class of traffic: the stations that are its client hosts, in turn.
    dealt: Vec<Vec<u16>>,
    /// What alike stations are called, and how many they are.
    alike: Vec<(String, u32)>,
}

impl Stations {
    /// Those of a scenario with these classes of traffic.
    #[cfg(feature = "air")]
    pub fn new(wifi: &Wifi, classes: &[&str]) -> Self {
        let counts = wifi.stations.iter().map(|it| it.count);
        Self {
            dealt: wifi.dealt(classes),
            alike: wifi.names().into_iter().zip(counts).collect(),
        }
    }

    /// The station that a client host is for a class, by the numbers of both.
    #[inline]
    pub fn of(&self, class: usize, client: usize) -> usize {
        let stations = &self.dealt[class];
        usize::from(stations[client % stations.len()])
    }

    /// What alike stations did together, down and up.
    pub fn sums(self, tallies: &[[AirTally; 2]]) -> Vec<StationsOnAir> {
        let mut tallies = tallies.iter();
        let alike = self.alike.into_iter().map(|(name, count)| {
            let mut sums = [AirTally::default(); 2];
            for station in tallies.by_ref().take(count as usize) {
                for (sum, tally) in sums.iter_mut().zip(station) {
                    sum.merge(tally);
                }
            }
            StationsOnAir {
                name,
                count: count.into(),
                tallies: sums,
            }
        });
        alike.collect()
    }
}
