//! Wi-Fi in a world: which station the packets of a host go to, or come from.

use aqmlab_link::{Air, Stations, Way};
use aqmlab_net::{Role, Time};
use aqmlab_record::{LinkStats, StationsOnAir};
use aqmlab_scenario::Scenario;

use crate::event::Event;
use crate::route::Routes;

/// The air, behind the last port.
pub(crate) struct Wifi {
    pub(crate) air: Air<Event>,
    /// Its next departure, as the event queue knows it.
    pub(crate) departure: Time,
    stations: Stations,
    /// How many hosts come before the first client.
    servers: u32,
}

impl Wifi {
    /// That of a scenario, if there is any.
    #[cfg(feature = "air")]
    pub(crate) fn new(scenario: &Scenario) -> Option<Self> {
        let wifi = scenario.topology.wifi()?;
        let classes: Vec<&str> = scenario.traffic.iter().map(|it| it.name.as_str()).collect();
        Some(Self {
            air: Air::new(wifi, scenario.seed, &scenario.measure),
            departure: Time::NEVER,
            stations: Stations::new(wifi, &classes),
            servers: scenario.topology.hosts().servers,
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
        let client = (node - self.servers) as usize;
        (self.stations.of(usize::from(route.class), client), way)
    }

    /// What was counted: down and up, and by alike stations.
    pub(crate) fn into_stats(self) -> ([LinkStats; 2], Vec<StationsOnAir>) {
        let (links, tallies) = self.air.into_stats();
        (links, self.stations.sums(&tallies))
    }
}
