//! Values that change during a run: of links, of their disciplines, of populations.

use aqmlab_aqm::Discipline;
use aqmlab_declare::tagged::{self, Located, quoted};
use aqmlab_net::{Frequency, Rate, Time};
use aqmlab_tcp::CongestionControlKind;
use aqmlab_traffic::{Changing, Model, time_of};
use toml::{Table, Value};

use crate::change::Change;
use crate::{Link, Network, Scenario, ScenarioError, Stacks, overrides};

/// What changes, ready for the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// Something about a direction of a link.
    Link {
        /// Number of the direction: two for each link in the order of their names, forward first.
        port: usize,
        /// What.
        change: LinkChange,
    },
    /// How many users, sessions or flows a class has, or how many connections arrive per second.
    Population {
        /// Number of the class.
        class: usize,
        /// How many from then on.
        population: f64,
    },
    /// Parameters of the congestion controls of a class, of its open connections too.
    CongestionControl {
        /// Number of the class.
        class: usize,
        /// Those of clients and servers; they stay of their kinds.
        controls: [CongestionControlKind; 2],
    },
}

/// What can change about a direction of a link during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// Bits per second on the wire. A transmission under way ends as it began.
    Rate(Rate),
    /// Propagation of packets whose transmission begins from then on; packets keep their order.
    Delay(Time),
    /// Probability that a packet is lost whose transmission begins from then on.
    Loss(f64),
    /// Parameters of the discipline, whose kind stays. So do the packets that wait.
    Discipline(Box<Discipline>),
}

/// A scenario's links and populations as changes have left them so far.
#[derive(Clone, Debug)]
pub struct Changes {
    network: Network,
    classes: Vec<(String, Model, Stacks)>,
}

/// Where the keys of classes begin.
const TRAFFIC: &str = "traffic";
/// What the keys of a class's congestion control begin with.
const CONTROL: &str = "congestion_control";

impl Changes {
    /// Nothing has changed yet.
    pub fn new(scenario: &Scenario) -> Self {
        let classes = scenario.traffic.iter();
        Self {
            network: scenario.topology.network(),
            classes: classes
                .map(|class| (class.name.clone(), class.model.clone(), class.tcp.clone()))
                .collect(),
        }
    }

    /// Gives `key` a new value: what that changes, or nothing if it has this value already.
    ///
    /// Keys and values are those of [`Change`]; a short key is to be made [`full`](Self::full). The
    /// error's path is the key where the value is wrong, and empty where the key is.
    pub fn change(&mut self, key: &str, value: &str) -> Result<Option<Changed>, ScenarioError> {
        match key.split_once('.') {
            Some((TRAFFIC, rest)) => self.change_class(key, rest, value),
            _ => self.change_link(key, value),
        }
    }

    /// All keys that can change.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (name, link) in &self.network.links {
            for (direction, link) in [("forward", &link.forward), ("reverse", &link.reverse)] {
                let parameters = link.discipline.changing().into_iter();
                let parameters = parameters.map(|parameter| format!("discipline.{parameter}"));
                let of_link = ["rate", "delay"].map(str::to_owned).into_iter();
                let of_link = of_link.chain(parameters).filter(|key| can(link, key));
                keys.extend(of_link.map(|key| format!("{name}.{direction}.{key}")));
            }
        }
        for (name, model, stacks) in &self.classes {
            let parameters = model.parameters();
            if parameters.changing() != Changing::Never && parameters.population().is_some() {
                let key = parameters.population_key().name;
                keys.push(format!("{TRAFFIC}.{name}.{key}"));
            }
            let [client, server] = stacks.ends().map(|it| it.congestion_control.changeable());
            let only_server = server.iter().filter(|key| !client.contains(key));
            let of_control = client.iter().chain(only_server);
            keys.extend(of_control.map(|key| format!("{TRAFFIC}.{name}.{CONTROL}.{key}")));
        }
        keys
    }

    /// The key that a short one stands for: the only one that ends with it, as
    /// `bottleneck.forward.discipline.target` ends with `discipline.target`.
    pub fn full(&self, key: &str) -> Option<String> {
        match &mut self.ending_with(key)[..] {
            [one] => Some(std::mem::take(one)),
            _ => None,
        }
    }

    fn ending_with(&self, key: &str) -> Vec<String> {
        let ending = format!(".{key}");
        let keys = self.keys().into_iter();
        keys.filter(|known| known.ends_with(&ending)).collect()
    }

    /// No such key: which there are, or which it is short for.
    fn unknown(&self, key: &str) -> ScenarioError {
        let several = self.ending_with(key);
        if several.len() > 1 {
            let (key, full) = (quoted(key), several.join(", "));
            let message = format!("found {key}, which is short for several; expected {full}");
            return ScenarioError::new("", message);
        }
        let keys = self.keys();
        let words: Vec<&str> = keys.iter().map(String::as_str).collect();
        ScenarioError::from(Located::unknown_word(key, &words))
    }

    fn change_link(&mut self, key: &str, value: &str) -> Result<Option<Changed>, ScenarioError> {
        let mut parts = key.splitn(3, '.');
        let [name, direction, of_link] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let links = self.network.links.iter_mut().enumerate();
        let mut links = links.filter(|(_, (other, _))| other.as_str() == name);
        let found = links
            .next()
            .and_then(|(number, (_, link))| match direction {
                "forward" => Some((number, &mut link.forward)),
                "reverse" => Some((number, &mut link.reverse)),
                _ => None,
            });
        let Some((number, link)) = found.filter(|(_, link)| can(link, of_link)) else {
            return Err(self.unknown(key));
        };
        let changed = with(link, of_link, value).map_err(|error| at(key, of_link, &error))?;
        let checked = changed.check().map_err(ScenarioError::from);
        checked.map_err(|error| at(key, of_link, &error))?;
        if changed == *link {
            return Ok(None);
        }
        *link = changed;
        let change = match of_link {
            "rate" => LinkChange::Rate(link.rate),
            "delay" => LinkChange::Delay(link.delay),
            _ => LinkChange::Discipline(Box::new(link.discipline.clone())),
        };
        let port = 2 * number + usize::from(direction == "reverse");
        Ok(Some(Changed::Link { port, change }))
    }

    fn change_class(
        &mut self,
        key: &str,
        rest: &str,
        value: &str,
    ) -> Result<Option<Changed>, ScenarioError> {
        let of_control = self.classes.iter().enumerate().find_map(|(class, it)| {
            let rest = rest.strip_prefix(&it.0)?.strip_prefix('.')?;
            let parameter = rest.strip_prefix(CONTROL)?.strip_prefix('.')?;
            Some((class, parameter))
        });
        match of_control {
            Some((class, parameter)) => self.change_control(key, class, parameter, value),
            None => self.change_population(key, rest, value),
        }
    }

    /// A parameter of the congestion control at both ends of a class's connections, where they have
    /// one that can change.
    fn change_control(
        &mut self,
        key: &str,
        class: usize,
        parameter: &str,
        value: &str,
    ) -> Result<Option<Changed>, ScenarioError> {
        let stacks = &mut self.classes[class].2;
        let before = stacks.ends().map(|stack| stack.congestion_control);
        let mut controls = before;
        let mut is_known = false;
        for control in &mut controls {
            if control.changeable().contains(&parameter) {
                is_known = true;
                *control = with_parameter(control, parameter, value)
                    .map_err(|error| ScenarioError::new(key, error.message))?;
            }
        }
        if !is_known {
            return Err(self.unknown(key));
        }
        [
            stacks.client.congestion_control,
            stacks.server.congestion_control,
        ] = controls;
        let changed = Changed::CongestionControl { class, controls };
        Ok((controls != before).then_some(changed))
    }

    fn change_population(
        &mut self,
        key: &str,
        rest: &str,
        value: &str,
    ) -> Result<Option<Changed>, ScenarioError> {
        let found = self.classes.iter().position(|(name, model, _)| {
            let parameters = model.parameters();
            let expected = format!("{name}.{}", parameters.population_key().name);
            rest == expected
                && parameters.changing() != Changing::Never
                && parameters.population().is_some()
        });
        let Some(class) = found else {
            return Err(self.unknown(key));
        };
        let parameters = self.classes[class].1.parameters_mut();
        let wrong = |right: &str| {
            let message = format!("found {}; {right}", quoted(value));
            Err(ScenarioError::new(key, message))
        };
        let population = match parameters.changing() {
            Changing::Rate => match value.parse::<Frequency>() {
                Ok(rate) if rate.0.is_finite() && rate.0 > 0.0 => rate.0,
                _ => return wrong("expected a rate above 0, as \"40 /s\""),
            },
            Changing::Members | Changing::Never => match value.parse::<u32>() {
                Ok(members) if members > 0 => f64::from(members),
                _ => return wrong("expected a whole number of at least 1"),
            },
        };
        if parameters.population() == Some(population) {
            return Ok(None);
        }
        parameters.set_population(population);
        Ok(Some(Changed::Population { class, population }))
    }
}

/// Whether something about a link can change.
fn can(link: &Link, key: &str) -> bool {
    match key.split_once('.') {
        Some(("discipline", parameter)) => {
            let changing = link.discipline.changing();
            changing.iter().any(|it| it == parameter)
        }
        // A trace says when a link can send.
        _ => key == "delay" || (key == "rate" && link.trace.is_none()),
    }
}

/// A link with another value at a key of its table.
fn with(link: &Link, key: &str, value: &str) -> Result<Link, ScenarioError> {
    let table = Table::try_from(link).expect("a link holds only what TOML can say");
    let mut table = Table::from_iter([("link".to_owned(), Value::Table(table))]);
    overrides::set(&mut table, &format!("link.{key}"), value)?;
    let link = table.remove("link").unwrap_or(Value::Boolean(false));
    Ok(tagged::from_value(link)?)
}

/// A congestion control with another value of a parameter.
fn with_parameter(
    control: &CongestionControlKind,
    parameter: &str,
    value: &str,
) -> Result<CongestionControlKind, ScenarioError> {
    let table = Table::try_from(control).expect("a control holds only what TOML can say");
    let mut table = Table::from_iter([(CONTROL.to_owned(), Value::Table(table))]);
    overrides::set(&mut table, &format!("{CONTROL}.{parameter}"), value)?;
    let control = table.remove(CONTROL).unwrap_or(Value::Boolean(false));
    let control: CongestionControlKind = tagged::from_value(control)?;
    let checked = control.check();
    checked.map_err(|(_, message)| ScenarioError::new(parameter, message))?;
    Ok(control)
}

/// An error of a link, which knows the key in the link's table, as one of the key of a change.
/// Another key of the same discipline may be what contradicts it.
fn at(key: &str, of_link: &str, error: &ScenarioError) -> ScenarioError {
    let place = error.path.strip_prefix("link.").unwrap_or(&error.path);
    let message = match place == of_link || place.is_empty() {
        true => error.message.clone(),
        false => format!("{place}: {}", error.message),
    };
    ScenarioError::new(key, message)
}

impl Scenario {
    /// Its changes in their order with their places, ready for the world. Those that wait for a phase are as if nothing
    /// had changed before.
    pub(crate) fn planned_changes(&self) -> Result<Vec<(usize, Changed)>, ScenarioError> {
        let mut in_order = Changes::new(self);
        let mut planned = Vec::with_capacity(self.changes.len());
        for (index, change) in self.changes.iter().enumerate() {
            let Change { key, value, .. } = change;
            let mut alone = change.when.as_ref().map(|_| Changes::new(self));
            let changes = alone.as_mut().unwrap_or(&mut in_order);
            let place = |field: &str| format!("changes.{index}.{field}");
            let changed = changes.change(key, value).map_err(|error| {
                let field = if error.path.is_empty() {
                    "key"
                } else {
                    "value"
                };
                ScenarioError::new(place(field), error.message)
            })?;
            // A value may come back that another phase has changed.
            let Some(changed) = changed else {
                if change.when.is_some() {
                    continue;
                }
                let message = format!("found {}, which {key} is already", quoted(value));
                return Err(ScenarioError::new(place("value"), message));
            };
            planned.push((index, changed));
        }
        Ok(planned)
    }
}

/// Spells out the keys of changes that are short; those that are wrong stay for [`check`].
pub(crate) fn spell_out(scenario: &mut Scenario) {
    if scenario.changes.is_empty() {
        return;
    }
    let known = Changes::new(scenario);
    for change in &mut scenario.changes {
        if let Some(key) = known.full(&change.key) {
            change.key = key;
        }
    }
}

/// The changes come in order, within the run, and mean something.
pub(crate) fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    let end = scenario.measure.warm_up + scenario.measure.duration;
    let mut before = Time::ZERO;
    for (index, Change { at, when, .. }) in scenario.changes.iter().enumerate() {
        let at = time_of(&format!("changes.{index}"), *at, when.as_ref());
        let at = at.map_err(|problem| ScenarioError::from(Located::from(problem)))?;
        let Some(at) = at else {
            continue;
        };
        let wrong = |message: String| {
            let path = format!("changes.{index}.at");
            Err(ScenarioError::new(path, message))
        };
        if at < before {
            return wrong(format!("found {at}; not before the last change, {before}"));
        }
        if at >= end {
            return wrong(format!("found {at}; the run ends at {end}"));
        }
        before = at;
    }
    let network = scenario.topology.network();
    let links = network.links.values();
    let links = links.flat_map(|link| [&link.forward, &link.reverse]);
    let links: Vec<&Link> = links.collect();
    for (index, changed) in scenario.planned_changes()? {
        let Changed::Link { port, change } = changed else {
            continue;
        };
        let link = links[port];
        let twice = match change {
            LinkChange::Rate(_) if !link.rate_changes.is_empty() => {
                "the rate of a link that has rate_changes"
            }
            LinkChange::Delay(_) if !link.delay_changes.is_empty() => {
                "the delay of a link that has delay_changes"
            }
            _ => continue,
        };
        let message = format!("found {twice}; give either");
        return Err(ScenarioError::new(format!("changes.{index}.key"), message));
    }
    scenario.watched().map(|_| ())
}
