//! The network between the hosts: ready-made ones, and any graph of links with static routes.

use std::collections::BTreeMap;

use aqmlab_aqm::Discipline;
use aqmlab_declare::JsonSchema;
use aqmlab_declare::tagged::Located;
use aqmlab_declare::{Declared, parameters};
use aqmlab_net::{Rate, Time};
use serde::{Deserialize, Serialize};

#[cfg(feature = "air")]
use crate::Wifi;
use crate::{Bottleneck, Framing, Link, limits};

aqmlab_declare::tagged! {
    /// The network between the hosts.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Topology {
        /// One link, with clients on one side and servers on the other side.
        Dumbbell(Dumbbell),
        /// A chain of routers (Weigle et al. 2003, figure 3). The path `through` crosses all
        /// routers. The paths `cross-1`, `cross-2` and so on each cross one congested link.
        ParkingLot(ParkingLot),
        /// Links and paths of your choice.
        Network(Network),
    }
}

/// One link, with clients on one side and servers on the other side. *Forward* is the direction
/// from servers to clients, *reverse* the other.
#[parameters]
pub struct Dumbbell {
    /// Parameters of the link between clients and servers.
    pub bottleneck: Bottleneck,
    /// Wi-Fi network between the bottleneck and the clients.
    #[cfg(feature = "air")]
    #[param(table, unwritten)]
    pub wifi: Option<Wifi>,
    /// Hosts at both ends of the link.
    #[param(default, table)]
    pub hosts: Hosts,
}

/// Routers in a row, with traffic through all of them and cross-traffic over each congested link.
#[parameters]
pub struct ParkingLot {
    /// Number of routers in the chain.
    #[param(default = 6, least = 4, most = 17, words = "expected 4 to 17 routers")]
    pub routers: u32,
    /// Number of congested links, from 1 to `routers` - 3. The links between the inner routers are
    /// `core-1`, `core-2` and so on. The first `bottlenecks` of these links are congested.
    #[param(default = 1)]
    #[schemars(range(min = 1))]
    pub bottlenecks: u32,
    /// Parameters of each congested link.
    pub bottleneck: Bottleneck,
    /// Parameters of each link without congestion.
    pub aggregation: Bottleneck,
    /// Hosts at both ends of each path.
    #[param(default, table)]
    pub hosts: Hosts,
}

/// Links by name, and paths over them.
#[parameters]
pub struct Network {
    /// Links by name. Each link has two directions, *forward* and *reverse*.
    pub links: BTreeMap<String, Bottleneck>,
    /// Paths by name. Each path has its own hosts.
    pub paths: BTreeMap<String, Path>,
    /// Hosts at both ends of each path.
    #[param(default, table)]
    pub hosts: Hosts,
}

/// The links between servers and clients.
#[parameters]
#[derive(Eq)]
pub struct Path {
    /// Links that packets from servers to clients cross, in this order. A minus before a name
    /// (`"-core"`) selects the reverse direction of the link.
    pub links: Vec<String>,
    /// Links that packets from clients to servers cross, in this order. Default: the links of
    /// `links`, in reverse order and in the opposite direction.
    #[param(default, unwritten)]
    pub back: Vec<String>,
}

/// A link crossed in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number of the link, in the order of their names.
    pub link: usize,
    /// Crossed in its reverse direction.
    pub reversed: bool,
}

/// Most links on the way from one host to another.
pub const MOST_HOPS: usize = 16;

/// A link that packets pass before the queue of another: its name's ending, and itself if there is one.
type Stage = (&'static str, fn(&Link) -> Option<Link>);

/// Stages before the queue of a link, in the order of packets.
const STAGES: &[Stage] = &[
    ("-input", Link::input),
    #[cfg(feature = "shapers")]
    ("-policer", Link::policed),
];

/// Most links of a network.
const MOST_LINKS: usize = 200;

/// The name of the only link, and of the only path, of a dumbbell.
pub(crate) const BOTTLENECK: &str = "bottleneck";

/// The path of a parking lot over all links.
const THROUGH: &str = "through";

impl Topology {
    /// The links and paths that it stands for. A router's processor and a policer
    /// are links before the link's own.
    pub fn network(&self) -> Network {
        let network = match self {
            Self::Dumbbell(dumbbell) => dumbbell.network(),
            Self::ParkingLot(lot) => lot.network(),
            Self::Network(network) => network.clone(),
        };
        network.with_inputs()
    }

    /// Hosts at both ends of each path.
    pub const fn hosts(&self) -> &Hosts {
        match self {
            Self::Dumbbell(dumbbell) => &dumbbell.hosts,
            Self::ParkingLot(lot) => &lot.hosts,
            Self::Network(network) => &network.hosts,
        }
    }

    /// The Wi-Fi behind its links, if there is any.
    #[cfg(feature = "air")]
    pub const fn wifi(&self) -> Option<&Wifi> {
        match self {
            Self::Dumbbell(dumbbell) => dumbbell.wifi.as_ref(),
            Self::ParkingLot(_) | Self::Network(_) => None,
        }
    }

    /// The disciplines of all queues.
    pub(crate) fn disciplines_mut(&mut self) -> Vec<&mut Discipline> {
        let (links, of_wifi) = match self {
            Self::Dumbbell(dumbbell) => {
                #[cfg(feature = "air")]
                let wifi = dumbbell.wifi.as_mut();
                #[cfg(feature = "air")]
                let own = wifi.map(|it| [&mut it.discipline, &mut it.station_queue]);
                #[cfg(not(feature = "air"))]
                let own: Option<[&mut Discipline; 2]> = None;
                (vec![&mut dumbbell.bottleneck], own)
            }
            Self::ParkingLot(lot) => (vec![&mut lot.bottleneck, &mut lot.aggregation], None),
            Self::Network(network) => (network.links.values_mut().collect(), None),
        };
        let directions = links
            .into_iter()
            .flat_map(|it| [&mut it.forward, &mut it.reverse]);
        let of_links = directions.map(|link| &mut link.discipline);
        of_links.chain(of_wifi.into_iter().flatten()).collect()
    }

    /// Both directions of every link that the scenario states.
    pub fn links_mut(&mut self) -> Vec<&mut Link> {
        let named = self.named_links_mut().into_iter();
        named.map(|(_, link)| link).collect()
    }

    /// Both directions of every link with their keys, from the topology on.
    pub(crate) fn named_links_mut(&mut self) -> Vec<(String, &mut Link)> {
        let stated: Vec<(String, &mut Bottleneck)> = match self {
            Self::Dumbbell(dumbbell) => vec![(BOTTLENECK.to_owned(), &mut dumbbell.bottleneck)],
            Self::ParkingLot(lot) => vec![
                (BOTTLENECK.to_owned(), &mut lot.bottleneck),
                ("aggregation".to_owned(), &mut lot.aggregation),
            ],
            Self::Network(network) => {
                let links = network.links.iter_mut();
                links
                    .map(|(name, link)| (format!("links.{name}"), link))
                    .collect()
            }
        };
        let directions = stated.into_iter().flat_map(|(name, link)| {
            let forward = (format!("{name}.forward"), &mut link.forward);
            [forward, (format!("{name}.reverse"), &mut link.reverse)]
        });
        directions.collect()
    }

    /// Everything but the links, which are checked as they are read.
    pub(crate) fn check(&self) -> Result<(), Located> {
        match self {
            Self::Dumbbell(dumbbell) => Ok(dumbbell.check_each()?),
            Self::ParkingLot(lot) => lot.check(),
            Self::Network(network) => network.check(),
        }
    }
}

impl Dumbbell {
    fn network(&self) -> Network {
        let path = Path {
            links: vec![BOTTLENECK.to_owned()],
            back: Vec::new(),
        };
        Network {
            links: BTreeMap::from([(BOTTLENECK.to_owned(), self.bottleneck.clone())]),
            paths: BTreeMap::from([(BOTTLENECK.to_owned(), path)]),
            hosts: self.hosts.clone(),
        }
    }
}

impl ParkingLot {
    /// Links between the routers, except the first and the last.
    const fn core(&self) -> u32 {
        self.routers - 3
    }

    fn network(&self) -> Network {
        let mut links = BTreeMap::new();
        let mut paths = BTreeMap::new();
        let mut through = vec!["in".to_owned()];
        for number in 1..=self.core() {
            let core = format!("core-{number}");
            through.push(core.clone());
            if number > self.bottlenecks {
                links.insert(core, self.aggregation.clone());
                continue;
            }
            links.insert(core.clone(), self.bottleneck.clone());
            let [enter, leave] = ["in", "out"].map(|end| format!("cross-{number}-{end}"));
            for link in [&enter, &leave] {
                links.insert(link.clone(), self.aggregation.clone());
            }
            let cross = Path {
                links: vec![enter, core, leave],
                back: Vec::new(),
            };
            paths.insert(format!("cross-{number}"), cross);
        }
        through.push("out".to_owned());
        for end in ["in", "out"] {
            links.insert(end.to_owned(), self.aggregation.clone());
        }
        let through = Path {
            links: through,
            back: Vec::new(),
        };
        paths.insert(THROUGH.to_owned(), through);
        Network {
            links,
            paths,
            hosts: self.hosts.clone(),
        }
    }

    fn check(&self) -> Result<(), Located> {
        self.check_each()?;
        if !(1..=self.core()).contains(&self.bottlenecks) {
            let message = format!(
                "found {}; {} routers have 1 to {} congested links",
                self.bottlenecks,
                self.routers,
                self.core()
            );
            return Err(Located::new(message).under("bottlenecks"));
        }
        Ok(())
    }
}

impl Network {
    /// This topology with links of their own for what packets pass before a queue.
    fn with_inputs(mut self) -> Self {
        let before = self.links.iter().flat_map(|(name, link)| {
            STAGES.iter().filter_map(move |(suffix, stage)| {
                let [forward, reverse] = [stage(&link.forward), stage(&link.reverse)];
                // Where only one direction has it, nobody crosses the other direction.
                let forward = forward.or_else(|| reverse.clone())?;
                let reverse = reverse.unwrap_or_else(|| forward.clone());
                Some((format!("{name}{suffix}"), Bottleneck { forward, reverse }))
            })
        });
        let before: Vec<_> = before.collect();
        if before.is_empty() {
            return self;
        }
        let paths: Vec<_> = self
            .paths
            .values()
            .map(|path| self.through_inputs(path))
            .collect();
        for (path, through) in self.paths.values_mut().zip(paths) {
            *path = through;
        }
        self.links.extend(before);
        self
    }

    /// A path that also crosses what is before its links.
    fn through_inputs(&self, path: &Path) -> Path {
        let names: Vec<&String> = self.links.keys().collect();
        let [links, back] = self.ways(path).map(|way| {
            let hops = way.into_iter().flat_map(|hop| {
                let sign = if hop.reversed { "-" } else { "" };
                let (name, link) = (names[hop.link], self.link(hop));
                let stages = STAGES.iter().filter(|(_, stage)| stage(link).is_some());
                let stages = stages.map(|(suffix, _)| format!("{sign}{name}{suffix}"));
                let stages: Vec<String> = stages.collect();
                stages.into_iter().chain([format!("{sign}{name}")])
            });
            hops.collect()
        });
        Path { links, back }
    }

    /// A path by its name, or the only one, with its number in the order of the names.
    pub fn path(&self, name: Option<&str>) -> Option<(usize, &Path)> {
        let mut paths = self.paths.iter().enumerate();
        let found = match name {
            Some(name) => paths.find(|(_, (path, _))| *path == name),
            None => paths.next().filter(|_| paths.next().is_none()),
        };
        found.map(|(number, (_, path))| (number, path))
    }

    /// The ways of a path: from servers to clients, from clients to servers.
    ///
    /// The network has passed its check.
    pub fn ways(&self, path: &Path) -> [Vec<Hop>; 2] {
        let hops = |names: &[String]| -> Vec<Hop> {
            let hop = |name: &String| self.hop(name).expect("a checked path names links");
            names.iter().map(hop).collect()
        };
        let there = hops(&path.links);
        let back = if path.back.is_empty() {
            there.iter().rev().map(Hop::turned).collect()
        } else {
            hops(&path.back)
        };
        [there, back]
    }

    /// The client hosts of a plan of the first tree of rates on a path: the first and their number.
    pub fn plan(&self, path: Option<&str>, plan: &str) -> Option<(u32, u32)> {
        let ways = self.ways(self.path(path)?.1);
        let mut hops = ways.iter().flatten();
        hops.find_map(|hop| self.link(*hop).discipline.plan(plan))
    }

    /// The link that is crossed at a hop, in that direction.
    pub fn link(&self, hop: Hop) -> &Link {
        let link = self
            .links
            .values()
            .nth(hop.link)
            .expect("a hop of this network");
        if hop.reversed {
            &link.reverse
        } else {
            &link.forward
        }
    }

    /// Propagation on all links of a path, both ways together.
    pub fn delay(&self, path: &Path) -> Time {
        let hops = self.ways(path).into_iter().flatten();
        hops.fold(Time::ZERO, |sum, hop| {
            sum.saturating_add(self.link(hop).delay)
        })
    }

    fn hop(&self, name: &str) -> Option<Hop> {
        let (reversed, name) = match name.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let link = self.links.keys().position(|link| link == name)?;
        Some(Hop { link, reversed })
    }

    fn check(&self) -> Result<(), Located> {
        self.check_each()?;
        let count = self.links.len();
        if count == 0 || count > MOST_LINKS {
            let message = format!("found {count} links; expected 1 to {MOST_LINKS}");
            return Err(Located::new(message).under("links"));
        }
        if self.paths.is_empty() {
            let message = "found none; a network needs at least one path";
            return Err(Located::new(message).under("paths"));
        }
        let named = |name: &String, key: &str| plain_name(name).map_err(|error| error.under(key));
        for name in self.links.keys() {
            named(name, "links")?;
        }
        for (name, link) in &self.links {
            for (suffix, stage) in STAGES {
                let has_it = stage(&link.forward).is_some() || stage(&link.reverse).is_some();
                let taken = format!("{name}{suffix}");
                if has_it && self.links.contains_key(&taken) {
                    let what = &suffix[1..];
                    let message =
                        format!("found this name, which the {what} of {name} has in results");
                    return Err(Located::new(message).under(&taken).under("links"));
                }
            }
        }
        for (name, path) in &self.paths {
            named(name, "paths")?;
            let checked = self
                .check_way("links", &path.links)
                .and_then(|()| match path.back[..] {
                    [] => Ok(()),
                    _ => self.check_way("back", &path.back),
                });
            checked.map_err(|error| error.under(name).under("paths"))?;
        }
        Ok(())
    }

    fn check_way(&self, key: &str, way: &[String]) -> Result<(), Located> {
        if way.is_empty() || way.len() > MOST_HOPS {
            let message = format!("found {} links; expected 1 to {MOST_HOPS}", way.len());
            return Err(Located::new(message).under(key));
        }
        for (index, name) in way.iter().enumerate() {
            if self.hop(name).is_none() {
                let names: Vec<&str> = self.links.keys().map(String::as_str).collect();
                let error = Located::unknown_word(name.trim_start_matches('-'), &names);
                return Err(error.under(&index.to_string()).under(key));
            }
        }
        Ok(())
    }
}

impl Hop {
    const fn turned(&self) -> Self {
        Self {
            link: self.link,
            reversed: !self.reversed,
        }
    }

    /// The direction in which the link is crossed, as results call it.
    pub const fn direction(self) -> &'static str {
        if self.reversed { "reverse" } else { "forward" }
    }
}

/// A name that can stand in results and after a minus.
fn plain_name(name: &str) -> Result<(), Located> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let starts = name.starts_with(char::is_alphabetic);
    if starts && name.chars().all(is_plain) && name.chars().count() <= 60 {
        return Ok(());
    }
    let message = "a name is a letter and then letters, digits, - and _, at most 60 in all";
    Err(Located::new(message).under(name))
}

/// Which hosts delay the packets of a connection. Round-trip times are equal, but packets of
/// different connections meet in a different order: an end without delay answers packets that left
/// one queue together at the same moment at the other queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayAt {
    /// The client and the server. Each adds half of the delay.
    #[default]
    Both,
    /// The client.
    Clients,
    /// The server.
    Servers,
}

impl DelayAt {
    /// What client and server contribute to this delay.
    pub const fn shares(self, delay: Time) -> [Time; 2] {
        match self {
            Self::Both => [Time::from_nanos(delay.as_nanos() / 2); 2],
            Self::Clients => [delay, Time::ZERO],
            Self::Servers => [Time::ZERO, delay],
        }
    }
}

/// The hosts at the ends of a path.
#[parameters]
pub struct Hosts {
    /// Number of client hosts. The users of a class are distributed over these hosts.
    #[param(
        default = 10,
        least = 1,
        most = 100_000,
        words = "expected 1 to 100000 hosts"
    )]
    pub clients: u32,
    /// Number of server hosts.
    #[param(
        default = 10,
        least = 1,
        most = 100_000,
        words = "expected 1 to 100000 hosts"
    )]
    pub servers: u32,
    /// Rate of the access link of each host, in both directions. Default: unlimited.
    #[param(check = limits::rate, unwritten)]
    pub rate: Option<Rate>,
    /// Framing on the access links of the hosts.
    #[param(default)]
    pub framing: Framing,
    /// Hosts that delay packets. Their delay is the round-trip time of the connection minus the
    /// delay of the links.
    #[param(default)]
    pub delay_at: DelayAt,
    /// Maximum offset of the clock of a host. Each host draws its offset between 0 and this value.
    /// Only transports with time stamps use the clock.
    #[param(default, most = "1 h", words = "at most 3600 s")]
    pub clock_offset: Time,
    /// Maximum drift of the clock of a host, in microseconds per second. Each host draws its drift
    /// between minus this value and plus this value.
    #[param(default, most = 100_000, words = "at most 100000")]
    pub clock_drift: u32,
    /// Maximum number of open sockets of a host. At the limit, a client opens no connection and a
    /// server accepts no connection until a socket is free. Default: unlimited.
    #[param(least = 1, unwritten)]
    pub sockets: Option<u32>,
    /// Maximum number of connections that wait until the server accepts them, including handshakes
    /// in progress. The server drops further SYNs. Only with `sockets`. Default: 128.
    #[param(least = 1, unwritten)]
    pub backlog: Option<u32>,
}
