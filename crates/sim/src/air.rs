//! Wi-Fi in a world: which station the packets of a host go to, or come from.

use aqmlab_link::{Air, Way};
use aqmlab_net::{Role, Time};
use aqmlab_record::{AirTally, LinkStats, StationsOnAir};
use aqmlab_scenario::Scenario;

use crate::event::Event;
use crate::route::Routes;

/// The air, behind the last port.
pub(crate) struct Wifi {
    pub(crate) air: Air<Event>,
    /// Its next departure, as the event queue knows it.
    pub(crate) departure: Time,
    /// By class of traffic: the stations that are its client hosts, in turn.
    dealt: Vec<Vec<u16>>,
    /// How many hosts come before the first client.
    servers: u32,
    /// What alike stations are called, and how many they are.
    alike: Vec<(String, u32)>,
}

impl Wifi {
    /// That of a scenario, if there is any.
    #[cfg(feature = "air")]
    pub(crate) fn new(scenario: &Scenario) -> Option<Self> {
        let wifi = scenario.topology.wifi()?;
        let classes: Vec<&str> = scenario.traffic.iter().map(|it| it.name.as_str()).collect();
        let counts = wifi.stations.iter().map(|it| it.count);
        Some(Self {
            air: Air::new(wifi, scenario.seed, &scenario.measure),
            departure: Time::NEVER,
            dealt: wifi.dealt(&classes),
            servers: scenario.topology.hosts().servers,
            alike: wifi.names().into_iter().zip(counts).collect(),
        })
    }

    /// There is none.
    #[cfg(not(feature = "air"))]
    pub(crate) const fn new(_: &Scenario) -> Option<Self> {
        None
    }

    /// The station of a packet, and its way.
    #[inline]
    pub(crate) fn address(&self, routes: &Routes, sender: Role) -> (usize, Way) {
        let route = routes.of(sender);
        let (node, way) = match route.node < self.servers {
            true => (routes.of(sender.other()).node, Way::Down),
            false => (route.node, Way::Up),
        };
        let stations = &self.dealt[usize::from(route.class)];
        let client = (node - self.servers) as usize;
        (usize::from(stations[client % stations.len()]), way)
    }

    /// What was counted: down and up, and by alike stations.
    pub(crate) fn into_stats(self) -> ([LinkStats; 2], Vec<StationsOnAir>) {
        let (links, tallies) = self.air.into_stats();
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
        (links, alike.collect())
    }
}
