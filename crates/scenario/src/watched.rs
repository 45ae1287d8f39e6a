//! What happens when a congestion control enters a phase.

use aqmlab_declare::tagged::Located;
use aqmlab_net::Time;
use aqmlab_traffic::{Action, Model, When};

use crate::change::Change;
use crate::{Link, LinkChange, Scenario, ScenarioError, Topology, Traffic};

/// Something that happens when the congestion control of a connection enters a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Class of the connection.
    pub class: usize,
    /// Its token there.
    pub token: u32,
    /// Which phase, and how often.
    pub when: When,
    /// What happens.
    pub effect: Effect,
}

/// What happens then.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Something about a direction of a link changes: two for each link in the order of their names,
    /// forward first.
    Link(usize, LinkChange),
    /// A value changes.
    Value(Change),
    /// The applications of a class pause for so long.
    Pause(usize, Time),
}

impl Scenario {
    /// What happens when congestion controls enter phases.
    pub fn watched(&self) -> Result<Vec<Watched>, ScenarioError> {
        let mut stated: Vec<(String, &When, Effect)> = Vec::new();
        let network = self.topology.network();
        for (number, (name, link)) in network.links.iter().enumerate() {
            for (way, link) in [&link.forward, &link.reverse].into_iter().enumerate() {
                let changes = link.changes_when().into_iter();
                stated.extend(changes.map(|(place, when, change)| {
                    let place = format!("{}.{place}", self.link_path(name));
                    (place, when, Effect::Link(2 * number + way, change))
                }));
            }
        }
        for (index, change) in self.changes.iter().enumerate() {
            let effect = |when| {
                (
                    format!("changes.{index}"),
                    when,
                    Effect::Value(change.clone()),
                )
            };
            stated.extend(change.when.as_ref().map(effect));
        }
        for (class, traffic) in self.traffic.iter().enumerate() {
            let Model::Bulk(bulk) = &traffic.model else {
                continue;
            };
            for (index, pause) in bulk.pauses.iter().enumerate() {
                let place = format!("traffic.{}.pauses.{index}", traffic.name);
                let effect = |when| (place, when, Effect::Pause(class, pause.r#for));
                stated.extend(pause.when.as_ref().map(effect));
            }
        }
        if stated.is_empty() {
            return Ok(Vec::new());
        }
        let transfers = self.transfers()?;
        let watched = stated.into_iter().map(|(place, when, effect)| {
            let wrong = |key: &str, error: Located| {
                let error = ScenarioError::from(error.under(key).under("when"));
                ScenarioError::new(format!("{place}.{}", error.path), error.message)
            };
            let transfer = transfers.get(when.flow as usize - 1);
            let Some(&(class, token)) = transfer else {
                let count = transfers.len();
                let message = format!("found {}; the scenario has {count} bulk transfers", when.flow);
                return Err(wrong("flow", Located::new(message)));
            };
            let phases = phases(&self.traffic[class]);
            if phases.is_empty() {
                let message = format!(
                    "found {}, a transfer over quinn, whose congestion control shows no phases; expected \
                     one over tcp or quic",
                    when.flow
                );
                return Err(wrong("flow", Located::new(message)));
            }
            if !phases.contains(&&when.phase[..]) {
                return Err(wrong("phase", Located::unknown_word(&when.phase, &phases)));
            }
            let when = when.clone();
            Ok(Watched {
                class,
                token,
                when,
                effect,
            })
        });
        watched.collect()
    }

    /// Class and token of each bulk transfer, in the order in which they start.
    fn transfers(&self) -> Result<Vec<(usize, u32)>, ScenarioError> {
        let mut starts = Vec::new();
        for (class, traffic) in self.traffic.iter().enumerate() {
            let Model::Bulk(bulk) = &traffic.model else {
                continue;
            };
            let mut actions = Vec::new();
            let source = self.source(class);
            let mut source = source.map_err(|error| ScenarioError::new("", error.to_string()))?;
            source.start(&mut actions);
            starts.extend(actions.iter().filter_map(|action| match *action {
                Action::WakeAt { at, token } if token < bulk.flows => Some((at, class, token)),
                _ => None,
            }));
        }
        starts.sort();
        let transfers = starts.into_iter();
        Ok(transfers.map(|(_, class, token)| (class, token)).collect())
    }

    /// Where the table of a link is.
    fn link_path(&self, name: &str) -> String {
        match &self.topology {
            Topology::Dumbbell(_) => "topology.bottleneck".to_owned(),
            Topology::ParkingLot(lot) => {
                let core = name.strip_prefix("core-").and_then(|it| it.parse().ok());
                let is_congested = core.is_some_and(|core: u32| core <= lot.bottlenecks);
                format!(
                    "topology.{}",
                    ["aggregation", "bottleneck"][usize::from(is_congested)]
                )
            }
            Topology::Network(_) => format!("topology.links.{name}"),
        }
    }
}

impl Link {
    /// Changes whose times a congestion control decides: the list and the place in it, when, and what
    /// changes.
    fn changes_when(&self) -> Vec<(String, &When, LinkChange)> {
        let rates = (0..).zip(&self.rate_changes);
        let rates =
            rates.map(|(index, it)| ("rate", index, it.when.as_ref(), LinkChange::Rate(it.rate)));
        let delays = (0..).zip(&self.delay_changes);
        let delays = delays.map(|(index, it)| {
            (
                "delay",
                index,
                it.when.as_ref(),
                LinkChange::Delay(it.delay),
            )
        });
        let losses = (0..).zip(&self.loss_changes);
        let losses =
            losses.map(|(index, it)| ("loss", index, it.when.as_ref(), LinkChange::Loss(it.loss)));
        let all = rates.chain(delays).chain(losses);
        all.filter_map(|(what, index, when, change): (_, usize, _, _)| {
            Some((format!("{what}_changes.{index}"), when?, change))
        })
        .collect()
    }

    /// Whether a congestion control decides when something changes: nothing can be computed ahead.
    pub fn waits_for_phases(&self) -> bool {
        !self.changes_when().is_empty()
    }
}

/// The phases that the senders of a class's responses may have; none where one of them may show none.
fn phases(class: &Traffic) -> Vec<&'static str> {
    let transport = &class.transport;
    if transport.quinn > 0.0 {
        return Vec::new();
    }
    let mut phases = Vec::new();
    if transport.quic < 1.0 {
        phases.extend(class.tcp.server.congestion_control.phases());
    }
    if transport.quic > 0.0 {
        let own = class.quic.phases().iter();
        let new: Vec<_> = own.filter(|it| !phases.contains(*it)).collect();
        phases.extend(new);
    }
    phases
}
