//! What a world is made of, from the scenario.

use aqmlab_net::{RandomStream, Time};
use aqmlab_scenario::{Dumbbell, Scenario};
use aqmlab_tcp::{Clock, DelayedAck, HostClock, Profile};
use aqmlab_traffic::{HostCounts, Source, SourceError};

use crate::RunError;
use crate::stats::{FlowStats, ResponseStats};
use crate::vectors;
use crate::world::{Class, Node};

pub(crate) fn classes(scenario: &Scenario, dumbbell: &Dumbbell) -> Result<Vec<Class>, RunError> {
    let hosts = HostCounts {
        clients: dumbbell.hosts.clients,
        servers: dumbbell.hosts.servers,
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
                &name,
                &mut vectors::open,
            )
            .map_err(|error| match error {
                SourceError::PopulationUnset(unset) => {
                    RunError::Population(format!("traffic.{name}: {unset}"))
                }
                SourceError::File(error) => RunError::Vectors(format!("traffic.{name}.{error}")),
            })?
            .with_activity(traffic.activity());
            Ok(Class {
                name,
                dscp: traffic.dscp,
                profile: traffic.tcp.clone(),
                source,
                responses: ResponseStats::new(),
                flows: FlowStats::default(),
                datagrams: Vec::new(),
            })
        })
        .collect()
}

/// Hosts booted at unrelated times: the phases of their timers are uniform.
pub(crate) fn nodes(scenario: &Scenario, dumbbell: &Dumbbell) -> Vec<Node> {
    let slow = longest(scenario, |profile| match profile.clock {
        Clock::Ticks { period } | Clock::Counted { period } => Some(period),
        Clock::Fine { .. } => None,
    });
    let fast = longest(scenario, |profile| match profile.delayed_ack {
        DelayedAck::Grid { period } => Some(period),
        _ => None,
    });
    let count = dumbbell.hosts.servers + dumbbell.hosts.clients;
    (0..u64::from(count))
        .map(|index| {
            let mut draws = RandomStream::new(scenario.seed, "host-phase", index);
            let mut phase =
                |period: Time| Time::from_secs_f64(draws.uniform() * period.as_secs_f64());
            let hosts = &dumbbell.hosts;
            let mut wrong = RandomStream::new(scenario.seed, "host-clock", index);
            let offset = wrong.uniform() * hosts.clock_offset.as_secs_f64() * 1e6;
            let drift = wrong.uniform_in(-1.0, 1.0) * f64::from(hosts.clock_drift);
            let clock = HostClock {
                offset: offset as u32,
                drift: drift as i32,
                slow: phase(slow),
                fast: phase(fast),
            };
            Node {
                clock,
                up_free: Time::ZERO,
                down_free: Time::ZERO,
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
