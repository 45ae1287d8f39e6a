//! How many users, connections per second or flows a class has: what calibration finds.

use aqmlab_aqm::{Discipline, droptail};
use aqmlab_net::{QueueSize, Rate, Time};
use aqmlab_traffic::{Direction, Starts};

use crate::{Hop, Scenario, Traffic};

/// A link this much faster than the scenario's is not congested by any load that is calibrated.
const UNCONGESTED_SPEED_UP: u64 = 10;

/// A buffer that never overflows: longer than all windows of all users together.
const ENDLESS_PACKETS: f64 = 1e9;

impl Traffic {
    /// Users, connections per second, copies of vectors or flows; `None` if they are to be
    /// calibrated from the load.
    pub fn population(&self) -> Option<f64> {
        self.model.parameters().population()
    }

    /// The key that holds [`population`](Self::population).
    pub fn population_key(&self) -> &'static str {
        self.model.parameters().population_key().name
    }
}

impl Scenario {
    /// [`Traffic::population`] of a class.
    pub fn population(&self, class: usize) -> Option<f64> {
        self.traffic[class].population()
    }

    /// Gives a class its users, connections per second or flows. When no class is left to
    /// calibrate, the load has done its work and goes.
    pub fn set_population(&mut self, class: usize, population: f64) {
        let model = self.traffic[class].model.parameters_mut();
        model.set_population(population);
        if self
            .traffic
            .iter()
            .all(|class| class.population().is_some())
        {
            self.load = None;
        }
    }

    /// Where the load of a class is measured: for each direction in which its responses go the
    /// slowest link of its path, and the direction in which they cross it.
    pub fn loaded_hops(&self, class: usize) -> Vec<Hop> {
        let network = self.topology.network();
        let class = &self.traffic[class];
        let [there, back] = network.ways(class.path_in(&network).1);
        let ways = match class.direction {
            Direction::Forward => vec![there],
            Direction::Reverse => vec![back],
            Direction::Both => vec![there, back],
        };
        let slowest = |way: Vec<Hop>| {
            // A processor has no rate of its own.
            let is_wire = |hop: &Hop| network.link(*hop).packet_time.is_none();
            let hops = way.into_iter().filter(is_wire);
            hops.min_by_key(|&hop| network.link(hop).rate)
        };
        ways.into_iter().filter_map(slowest).collect()
    }

    /// The part of the load that a class which leaves its population to calibration has: its share
    /// over that of all such classes that cross the link where its load is measured.
    pub fn load_share(&self, class: usize) -> f64 {
        let network = self.topology.network();
        let measured = self.loaded_hops(class);
        let crosses = |other: &Traffic| {
            let ways = network.ways(other.path_in(&network).1);
            let mut hops = ways.iter().flatten();
            hops.any(|hop| measured.iter().any(|at| at.link == hop.link))
        };
        let calibrated = |other: &&Traffic| other.population().is_none() && crosses(other);
        let all: f64 = self
            .traffic
            .iter()
            .filter(calibrated)
            .map(|other| other.share)
            .sum();
        self.traffic[class].share / all
    }

    /// What calibration runs: only this class, with that population, all the time and without a
    /// limit of connections, where nothing is lost to congestion. Every link is ten times as fast
    /// behind an endless buffer; the hosts' own links do not change.
    pub fn uncongested(&self, class: usize, population: f64) -> Self {
        let mut traffic = self.traffic[class].clone();
        traffic.model.parameters_mut().set_population(population);
        (traffic.start, traffic.stop, traffic.max_connections) = (Starts::default(), None, None);
        let mut scenario = Self {
            load: None,
            traffic: vec![traffic],
            changes: Vec::new(),
            ..self.clone()
        };
        for link in scenario.topology.links_mut() {
            link.rate_changes.clear();
            link.delay_changes.clear();
            link.outages.clear();
            link.trace = None;
            link.input = None;
            #[cfg(feature = "shapers")]
            {
                link.policer = None;
            }
            link.loss_changes.clear();
            link.ack_batch = Time::ZERO;
            link.rate = Rate::from_bps(link.rate.bps().saturating_mul(UNCONGESTED_SPEED_UP));
            let limit = QueueSize::Packets(ENDLESS_PACKETS);
            link.discipline = Discipline::Droptail(droptail::Params { limit, ecn: false });
        }
        scenario
    }
}
