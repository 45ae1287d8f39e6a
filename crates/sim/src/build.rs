//! What a world is made of, from the scenario.

use std::sync::Arc;

use aqmlab_net::{RandomStream, Time};
use aqmlab_record::RunError;
use aqmlab_scenario::{Network, Scenario, Stacks, Traffic};
use aqmlab_tcp::{Clock, DelayedAck, HostClock, Profile};
use aqmlab_traffic::Source;

use crate::limits::Variants;
use crate::route::{Path, Way};
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
    let sources = scenario.sources()?;
    let classes = scenario.traffic.iter().zip(sources);
    let class = |(traffic, source): (&Traffic, Source)| Class {
        name: traffic.name.clone(),
        path: traffic.path_in(network).0,
        dscp: traffic.dscp,
        profiles: profiles(&traffic.tcp),
        variants: Variants::default(),
        source,
        datagrams: Vec::new(),
    };
    Ok(classes.map(class).collect())
}

/// The clocks of all hosts. They booted at unrelated times: the phases of their timers are uniform.
pub(crate) fn clocks(scenario: &Scenario, network: &Network) -> Vec<HostClock> {
    let slow = longest(scenario, |profile| match profile.clock {
        Clock::Ticks { period } | Clock::RttTicks { period } => Some(period),
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

/// The stacks of client and server, which share one where they are the same.
fn profiles(stacks: &Stacks) -> [Arc<Profile>; 2] {
    match stacks.same() {
        Some(stack) => {
            let stack = Arc::new(stack.clone());
            [Arc::clone(&stack), stack]
        }
        None => stacks.connected().map(Arc::new),
    }
}

/// The longest of the periods that the profiles in use have.
fn longest(scenario: &Scenario, period: impl Fn(&Profile) -> Option<Time>) -> Time {
    let stacks = scenario
        .traffic
        .iter()
        .flat_map(|traffic| traffic.tcp.ends());
    stacks.filter_map(period).max().unwrap_or(Time::ZERO)
}
