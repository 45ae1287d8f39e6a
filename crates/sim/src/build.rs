//! What a world is made of, from the scenario.

use aqmlab_net::{RandomStream, Time};
use aqmlab_record::RunError;
use aqmlab_scenario::{Network, Scenario};
use aqmlab_tcp::{Clock, DelayedAck, HostClock, Profile};
use aqmlab_traffic::{HostCounts, Source, SourceError};

use crate::connection::{Path, Way};
use crate::limits::Variants;
use crate::vectors;
use crate::world::Class;

/// The paths of a network, and the ports of all their hops, one way after another.
pub(crate) fn paths(network: &Network) -> (Vec<Path>, Vec<u16>) {
    let mut hops = Vec::new();
    let hosts = network.hosts.servers + network.hosts.clients;
    let paths = network.paths.values().zip(0..);
    let paths = paths.map(|(path, number)| Path {
        ways: network.ways(path).map(|way| {
            let first = hops.len() as u16;
            hops.extend(
                way.iter()
                    .map(|hop| 2 * hop.link as u16 + u16::from(hop.reversed)),
            );
            Way {
                first,
                hops: way.len() as u8,
            }
        }),
        delay: network.delay(path),
        first_node: hosts * number,
    });
    (paths.collect(), hops)
}

pub(crate) fn classes(scenario: &Scenario, network: &Network) -> Result<Vec<Class>, RunError> {
    let hosts = HostCounts {
        clients: network.hosts.clients,
        servers: network.hosts.servers,
    };
    scenario
        .traffic
        .iter()
        .map(|traffic| {
            let name = traffic.name.clone();
            let source = Source::with_files(
                &traffic.model,
                &traffic.rtt,
                traffic.direction,
                hosts,
                scenario.seed,
                traffic.drawn_as(),
                &mut vectors::open,
            )
            .map_err(|error| match error {
                SourceError::PopulationUnset(unset) => {
                    RunError::Population(format!("traffic.{name}: {unset}"))
                }
                SourceError::File(error) => RunError::Vectors(format!("traffic.{name}.{error}")),
            })?
            .with_activity(traffic.activity())
            .with_part(traffic.part.as_ref(), scenario.seed);
            Ok(Class {
                name,
                path: traffic.path_in(network).0,
                dscp: traffic.dscp,
                profile: traffic.tcp.clone(),
                variants: Variants::default(),
                source,
                datagrams: Vec::new(),
            })
        })
        .collect()
}

/// The clocks of all hosts. They booted at unrelated times: the phases of their timers are uniform.
pub(crate) fn clocks(scenario: &Scenario, network: &Network) -> Vec<HostClock> {
    let slow = longest(scenario, |profile| match profile.clock {
        Clock::Ticks { period } | Clock::Counted { period } => Some(period),
        Clock::Fine { .. } => None,
    });
    let fast = longest(scenario, |profile| match profile.delayed_ack {
        DelayedAck::Grid { period } => Some(period),
        _ => None,
    });
    let hosts = &network.hosts;
    let count = u64::from(hosts.servers + hosts.clients) * network.paths.len() as u64;
    (0..count)
        .map(|index| {
            let mut draws = RandomStream::new(scenario.seed, "host-phase", index);
            let mut phase =
                |period: Time| Time::from_secs_f64(draws.uniform() * period.as_secs_f64());
            let mut wrong = RandomStream::new(scenario.seed, "host-clock", index);
            let offset = wrong.uniform() * hosts.clock_offset.as_secs_f64() * 1e6;
            let drift = wrong.uniform_in(-1.0, 1.0) * f64::from(hosts.clock_drift);
            HostClock {
                offset: offset as u32,
                drift: drift as i32,
                slow: phase(slow),
                fast: phase(fast),
            }
        })
        .collect()
}

/// The longest of the periods that the profiles in use have.
fn longest(scenario: &Scenario, period: impl Fn(&Profile) -> Option<Time>) -> Time {
    let periods = scenario
        .traffic
        .iter()
        .filter_map(|traffic| period(&traffic.tcp));
    periods.max().unwrap_or(Time::ZERO)
}
