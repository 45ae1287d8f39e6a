//! What serde cannot check: values that contradict each other or make no experiment. All numbers
//! are finite here: the reader refuses others.

use std::collections::HashMap;

use aqmlab_declare::Declared;
use aqmlab_declare::tagged::{Located, quoted};
use aqmlab_net::Time;
use aqmlab_traffic::{Model, Opening, Rtt, Starts};

use crate::{
    DelayAt, HAS_BREAKDOWN, Hosts, MOST_HOPS, Measure, Network, Path, ResponseTime, Scenario,
    ScenarioError, Traffic, limits, variable,
};

type Checked = Result<(), ScenarioError>;

/// Most samples of the queue in a run: more would fill a disk, not a figure.
const MOST_SAMPLES: u64 = 10_000_000;

fn wrong(path: impl AsRef<str>, message: impl AsRef<str>) -> Checked {
    Err(ScenarioError::new(path, message))
}

/// Classes can be told apart, which every later message relies on.
pub(crate) fn names(scenario: &Scenario) -> Checked {
    if scenario.traffic.is_empty() {
        return wrong("traffic", "found no class; a scenario needs at least one");
    }
    let mut seen = HashMap::new();
    for (index, class) in scenario.traffic.iter().enumerate() {
        let path = format!("traffic.{index}.name");
        let name = class.name.as_str();
        let found = quoted(name);
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        if !name.starts_with(char::is_alphabetic) || !name.chars().all(is_plain) {
            let right = "a name is a letter and then letters, digits, spaces, - and _";
            return wrong(path, format!("found {found}; {right}"));
        }
        if name.chars().count() > 60 {
            return wrong(
                path,
                format!("found {found}; a name has at most 60 characters"),
            );
        }
        if name == "all" {
            return wrong(
                path,
                "found \"all\", which results use for all classes together",
            );
        }
        if let Some(first) = seen.insert(name, index) {
            return wrong(
                path,
                format!("found {found}, which traffic.{first} is called already"),
            );
        }
    }
    Ok(())
}

/// Everything else but the links, which are checked as they are read.
pub(crate) fn scenario(scenario: &Scenario) -> Checked {
    scenario.check_each().map_err(Located::from)?;
    measure(&scenario.measure)?;
    let checked = scenario.topology.check();
    checked.map_err(|error| error.under("topology"))?;
    #[cfg(feature = "air")]
    wifi(scenario)?;
    let network = scenario.topology.network();
    crate::capture::check(&scenario.measure, &network)?;
    for link in network
        .links
        .values()
        .flat_map(|link| [&link.forward, &link.reverse])
    {
        variable::check_rate(link).map_err(|error| error.under("topology"))?;
        #[cfg(feature = "shapers")]
        subscribers(link, network.hosts.clients)?;
        // A host's own link takes packets in the order in which they were sent.
        if link.reordering.is_some() && network.hosts.rate.is_some() {
            let why = "hosts whose links have a rate get packets in order";
            let right = "leave out the reordering of links, or the rate";
            return wrong("topology.hosts.rate", format!("{why}; {right}"));
        }
    }
    let ways = network.paths.values().flat_map(|path| network.ways(path));
    if let Some(longest) = ways
        .map(|way| way.len())
        .max()
        .filter(|most| *most > MOST_HOPS)
    {
        let message = format!("found a path over {longest} links and inputs of routers");
        return wrong("topology", format!("{message}; at most {MOST_HOPS}"));
    }
    sockets(scenario, &network.hosts)?;
    for class in &scenario.traffic {
        traffic(class, &network)?;
        let path = format!("traffic.{}", class.name);
        activity(&path, class, &scenario.measure)?;
        subset(&format!("{path}.subset"), class)?;
    }
    breakdown(scenario)?;
    crate::changes::check(scenario)?;
    load(scenario)
}

/// The client hosts are those of a tree's plans.
#[cfg(feature = "shapers")]
fn subscribers(link: &crate::Link, clients: u32) -> Checked {
    let aqmlab_aqm::Discipline::Htb(tree) = &link.discipline else {
        return Ok(());
    };
    match tree.hosts() {
        hosts if hosts == u64::from(clients) => Ok(()),
        hosts => {
            let message = format!("found {clients}; the plans of the tree have {hosts} hosts");
            wrong("topology.hosts.clients", message)
        }
    }
}

/// Sockets are those of TCP connections.
fn sockets(scenario: &Scenario, hosts: &Hosts) -> Checked {
    let Some(found) = hosts.sockets else {
        return match hosts.backlog {
            Some(backlog) => wrong(
                "topology.hosts.backlog",
                format!("found {backlog}, but no sockets, behind which connections would wait"),
            ),
            None => Ok(()),
        };
    };
    if cfg!(target_family = "wasm") {
        let message =
            format!("found {found}; the playground has no limit of sockets: leave it out");
        return wrong("topology.hosts.sockets", message);
    }
    let mut classes = scenario.traffic.iter();
    if let Some(class) = classes.find(|class| !class.transport.is_tcp()) {
        let (name, other) = (&class.name, class.transport.other());
        let why = format!("found {found}, but the transport of traffic.{name} is {other}");
        let right = "leave it out, or expected tcp";
        return wrong("topology.hosts.sockets", format!("{why}; {right}"));
    }
    if scenario.measure.breakdown {
        let why = format!("found {found}, but measure.breakdown knows no wait for a socket");
        return wrong(
            "topology.hosts.sockets",
            format!("{why}; leave one of them out"),
        );
    }
    Ok(())
}

/// Wi-Fi, and what cannot be beside it.
#[cfg(feature = "air")]
fn wifi(scenario: &Scenario) -> Checked {
    let Some(wifi) = scenario.topology.wifi() else {
        return Ok(());
    };
    let classes: Vec<&str> = scenario.traffic.iter().map(|it| it.name.as_str()).collect();
    let clients = scenario.topology.hosts().clients;
    at("topology.wifi", wifi.check(clients, &classes))?;
    let mut classes = scenario.traffic.iter();
    if let Some(class) = classes.find(|class| class.population().is_none()) {
        let message = format!(
            "found no {} beside topology.wifi, where load means nothing: stations share the air with \
             what they send themselves; state it",
            class.population_key()
        );
        return wrong(format!("traffic.{}", class.name), message);
    }
    if scenario.measure.record.contains(&crate::Record::Packets) {
        let why = "found \"packets\", which does not know the queues of topology.wifi";
        return wrong("measure.record", format!("{why}; leave one of them out"));
    }
    Ok(())
}

/// What response times cannot be broken down for.
fn breakdown(scenario: &Scenario) -> Checked {
    if !HAS_BREAKDOWN {
        let message = "found true, which this build does not have; expected false";
        return match scenario.measure.breakdown {
            true => wrong("measure.breakdown", message),
            false => Ok(()),
        };
    }
    let mut classes = scenario.traffic.iter();
    if let Some(class) = classes.find(|class| class.transport.quinn > 0.0)
        && scenario.measure.breakdown
    {
        let why = "but nobody sees what connections of quinn wait for";
        let right = "leave it out, or give the class the transport quic or tcp";
        let message = format!("found true, {why} (traffic.{}); {right}", class.name);
        return wrong("measure.breakdown", message);
    }
    if let Some(flow) = scenario.measure.story
        && !scenario.measure.breakdown
    {
        let message = format!("found {flow}, but measure.breakdown is false; set it to true");
        return wrong("measure.story", message);
    }
    if scenario.measure.response_time != ResponseTime::Connect && scenario.measure.breakdown {
        let why =
            "found another than connect, but measure.breakdown divides all of what users wait";
        let message = format!("{why}; leave one of them out");
        return wrong("measure.response_time", message);
    }
    if scenario.measure.breakdown && scenario.measure.record.contains(&crate::Record::Packets) {
        let why = "found \"packets\", but measure.breakdown is true";
        let right = "leave one of them out and run twice: both runs do the same";
        return wrong("measure.record", format!("{why}; {right}"));
    }
    Ok(())
}

fn measure(measure: &Measure) -> Checked {
    let period = measure.queue_sample;
    let samples = measure.duration.as_nanos() / period.as_nanos();
    if samples > MOST_SAMPLES {
        let message = format!("found {period}, which makes {samples} samples; at most 10 million");
        return wrong("measure.queue_sample", message);
    }
    let record = &measure.record;
    match record
        .iter()
        .enumerate()
        .find(|(index, table)| record[..*index].contains(table))
    {
        Some((index, _)) => wrong(
            format!("measure.record.{index}"),
            "found the same table twice",
        ),
        None => Ok(()),
    }
}

fn traffic(class: &Traffic, network: &Network) -> Checked {
    let path = format!("traffic.{}", class.name);
    at(&path, class.model.check())?;
    let parameters = class.model.parameters();
    if network.hosts.delay_at == DelayAt::Servers
        && parameters.is_adaptive()
        && parameters.packets_per_s() > 0.0
    {
        let message = "found \"servers\", where datagrams are delayed behind their arrival; \
                       expected another place, because this model goes by when they arrive";
        return wrong(
            "topology.hosts.delay_at",
            format!("{message} (traffic.{})", class.name),
        );
    }
    for plan in &class.plans {
        if network.plan(class.path.as_deref(), plan).is_none() {
            let message = format!("found {plan}; no tree of rates on its path has such a plan");
            return wrong(format!("{path}.plans"), message);
        }
    }
    let hosts = class.hosts(network);
    at(&format!("{path}.rtt"), class.rtt.check(hosts))?;
    if matches!(class.rtt, Rtt::Vector { .. }) && !class.model.parameters().has_round_trips() {
        return wrong(
            format!("{path}.rtt.kind"),
            "found \"vector\", but connections of this model have no round-trip times of their own",
        );
    }
    let (shortest, longest) = class.rtt.extremes();
    if shortest == Time::ZERO && !matches!(class.rtt, Rtt::Vector { .. }) {
        let message = "found a round trip of 0 s; in no time everything would happen at once";
        return wrong(format!("{path}.rtt"), message);
    }
    let delays = network.delay(path_of(class, network)?);
    if shortest < delays {
        let message = format!(
            "found a round trip of {shortest}, which is shorter than its links' delays of {delays} \
             that are part of it"
        );
        return wrong(format!("{path}.rtt"), message);
    }
    at(&path, limits::time("rtt", longest))?;
    at(&format!("{path}.tcp"), class.tcp.check())?;
    transport(&path, class)
}

/// The transport of a class, whose model opens connections.
fn transport(path: &str, class: &Traffic) -> Checked {
    if class.transport.is_tcp() {
        return Ok(());
    }
    at(&format!("{path}.quic"), class.quic.check())?;
    at(&format!("{path}.quinn"), class.quinn.check())?;
    let found = class.transport.other();
    if let Model::Bulk(bulk) = &class.model
        && bulk.withdraws()
    {
        let message = format!(
            "found some with the transport {found}, which sends all that is written; give a limit, \
             or leave them out"
        );
        return wrong(format!("{path}.pauses"), message);
    }
    let path = format!("{path}.transport");
    let model = class.model.parameters();
    if model.packets_per_s() > 0.0 {
        return wrong(
            path,
            format!("found {found}, but this model sends datagrams of its own; leave it out"),
        );
    }
    if class.model.is_for_streams() && class.transport.quinn > 0.0 {
        let message = "found quinn, which has one stream each way here; expected quic, or tcp \
                       (HTTP/2), for this model";
        return wrong(path, message);
    }
    let is_tcp = match &class.model {
        Model::Vectors(vectors) => vectors.windows || vectors.losses,
        _ => model.has_round_trips(),
    };
    if is_tcp {
        let why = "but vectors have the windows, segments and losses of TCP connections; expected \
                   tcp, or windows = false and losses = false";
        return wrong(path, format!("found {found}, {why}"));
    }
    Ok(())
}

/// The path that a class names, or the only one.
fn path_of<'a>(class: &Traffic, network: &'a Network) -> Result<&'a Path, ScenarioError> {
    if let Some((_, path)) = network.path(class.path.as_deref()) {
        return Ok(path);
    }
    let names: Vec<&str> = network.paths.keys().map(String::as_str).collect();
    let error = match &class.path {
        Some(name) => Located::unknown_word(name, &names),
        None => Located::new("missing; the network has several paths").allow(&names),
    };
    Err(error
        .under("path")
        .under(&class.name)
        .under("traffic")
        .into())
}

/// The class acts within the run.
fn activity(path: &str, class: &Traffic, measure: &Measure) -> Checked {
    let start = format!("{path}.start");
    let is_together = matches!(class.start, Starts::Together(_));
    if !is_together && class.model.parameters().opening() == Opening::OpenLoop {
        let message = "found several times, but connections of this model arrive; give one time";
        return wrong(start, message);
    }
    let end = measure.warm_up + measure.duration;
    at(&start, class.start.check(class.flows(), end))?;
    let first = class.start.first();
    if let Some(stop) = class.stop
        && stop <= first
    {
        let message = format!("found {stop}; it must be after start, {first}");
        return wrong(format!("{path}.stop"), message);
    }
    Ok(())
}

/// A subset is one of connections that do not wait for each other, and whose number is given.
fn subset(path: &str, class: &Traffic) -> Checked {
    let Some(subset) = &class.subset else {
        return Ok(());
    };
    at(path, subset.check())?;
    if class.model.parameters().opening() != Opening::OpenLoop {
        let message = "found one, but the model is no open loop; only connections that arrive \
                       whatever becomes of those before have subsets";
        return wrong(path, message);
    }
    if class.population().is_none() {
        let key = class.population_key();
        let message = format!(
            "found a subset of an unknown whole; give traffic.{}.{key}",
            class.name
        );
        return wrong(path, message);
    }
    Ok(())
}

/// Each class has a population, or there is a load to find it from; and not both.
fn load(scenario: &Scenario) -> Checked {
    let calibrated = scenario
        .traffic
        .iter()
        .find(|class| class.population().is_none());
    match (scenario.load, calibrated) {
        (Some(load), None) => {
            let why = "every class has its own number of users, connections or flows";
            wrong(
                "load",
                format!("found {load}, but {why}; leave out the one or the other"),
            )
        }
        (None, Some(class)) => {
            let key = class.population_key();
            let path = format!("traffic.{}.{key}", class.name);
            wrong(
                path,
                "missing; give it, or give the load at the top from which it is found",
            )
        }
        _ => Ok(()),
    }
}

/// The answer of another room's check, which knows its own field but not where it stands.
fn at(path: &str, checked: Result<(), (String, String)>) -> Checked {
    checked.map_err(|(field, message)| {
        let separator = if field.is_empty() { "" } else { "." };
        ScenarioError::new(format!("{path}{separator}{field}"), message)
    })
}
