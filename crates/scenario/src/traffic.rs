//! One class of traffic: what every class has, and its model's parameters, in one flat table.

use std::borrow::Cow;

use aqmlab_declare::tagged::{self, Located};
use aqmlab_declare::{Declared, parameters};
use aqmlab_net::{Bytes, Time};
use aqmlab_traffic::{Activity, Direction, HostCounts, Model, Opening, Rtt, Starts, Subset};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use toml::{Table, Value};

use crate::transport::QUIC;
use crate::{Network, Path, Quic, Quinn, Stacks, Transport};

/// One class of traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// Name of the class in every result.
    pub name: String,
    /// The model and its parameters.
    #[serde(flatten)]
    pub model: Model,
    /// The way the responses go.
    pub direction: Direction,
    /// Share of `load` that the class makes, relative to the shares of the other calibrated
    /// classes.
    pub share: f64,
    /// Round-trip times of the connections, without queueing.
    pub rtt: Rtt,
    /// The path between its servers and its clients; nothing where the network has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The plans of a tree of rates whose client hosts it has; none: all client hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<String>,
    /// Which transport its connections have.
    #[serde(skip_serializing_if = "Transport::is_default")]
    pub transport: Transport,
    /// The stacks of its end points where they have TCP.
    pub tcp: Stacks,
    /// Bytes that its applications write at a time; `None`: a message at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_size: Option<Bytes>,
    /// Those where they have QUIC of our own.
    #[serde(skip_serializing_if = "is_default")]
    pub quic: Quic,
    /// Those where they have QUIC by quinn.
    #[serde(skip_serializing_if = "is_default")]
    pub quinn: Quinn,
    /// Differentiated services code point of its packets, 0 to 63.
    pub dscp: u8,
    /// When it begins, or each of its flows.
    pub start: Starts,
    /// When it begins nothing new any more; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Most connections at a time; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Which of the model's connections it has; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset: Option<Subset>,
}

/// Keys of every class, whatever its model.
#[parameters]
pub(crate) struct Common {
    /// Name of the class in the results. Default: `kind` of the class.
    name: Option<String>,
    /// Direction of the responses.
    #[param(default)]
    direction: Direction,
    /// Weight of this class in the offered `load`. If two classes have the weights 1 and 3, the
    /// first class offers a quarter of the load. Only with `load`.
    #[param(default = 1.0, above = 0.0, words = "a share must be above 0")]
    share: f64,
    /// Round-trip times of the connections, without queueing.
    rtt: Rtt,
    /// Name of the path between servers and clients. Required if the network has several paths.
    /// Default: the only path.
    path: Option<String>,
    /// Names of plans of the discipline `htb`. The class uses only the client hosts of subscribers
    /// with these plans. With an empty list, the class uses all client hosts.
    #[param(default)]
    plans: Vec<String>,
    /// Transport of the connections: `"tcp"`, `"quic"` (aqmlab's own QUIC) or `"quinn"` (the QUIC
    /// library quinn). A table mixes transports: with `{ quic = 0.35, tcp = 0.65 }`, each
    /// connection draws its transport with these probabilities. Default: `"quic"` with `kind =
    /// "http3-web"`, otherwise `"tcp"`.
    #[param(default)]
    #[schemars(default = "default_transport")]
    transport: Transport,
    /// TCP stack of both ends: the name of a profile, or a table. The table contains a `profile`
    /// and the keys that replace values of the profile. A table with `client` and `server` gives
    /// each end its own stack.
    #[param(default)]
    #[schemars(default = "default_tcp_name")]
    tcp: Stacks,
    /// Maximum number of bytes in one write of an application. The application splits a longer
    /// message into several writes at the same simulated time. Nagle's algorithm applies after each
    /// write. Default: one write per message.
    #[param(least = Bytes(1))]
    write_size: Option<Bytes>,
    /// Parameters of connections with `transport = "quic"`.
    #[param(default, table)]
    quic: Quic,
    /// Parameters of connections with `transport = "quinn"`.
    #[param(default, table)]
    quinn: Quinn,
    /// DSCP of the packets. Disciplines with service classes and the access categories of Wi-Fi use
    /// this value.
    #[param(default, most = 63, words = "a code point is 0 to 63")]
    dscp: u8,
    /// Start time of the class, counted from the start of the run. A class with flows, sessions or
    /// users can have a list with one time for each of them. It can also have a table: `{ first =
    /// "10 s", every = "5 s" }` starts one of them at 10 s, the next at 15 s, and so on. The
    /// default of `first` is 0 s. A list or table disables the key `start_within` of the class,
    /// which sets random start times.
    #[param(default)]
    start: Starts,
    /// Stop time of the class, counted from the start of the run. After this time the class starts
    /// no connections and no transfers. Endless transfers and streams of datagrams stop at this
    /// time. Other transfers continue until they are complete. Default: never.
    stop: Option<Time>,
    /// Maximum number of open connections of the class. Further connections are refused. Results
    /// count them as `refused`. Default: unlimited.
    #[param(least = 1)]
    max_connections: Option<u32>,
    /// Random part of the model's connections: `{ of = "web", to = 0.2 }` selects a fifth. `of` is
    /// a name of your choice. A second class with the same `of`, model and round-trip times selects
    /// the rest with `from = 0.2, to = 1.0`. Only for models with a given arrival rate. Default:
    /// all connections.
    subset: Option<Subset>,
}

/// Keys that have another name today.
const RENAMED: [(&str, &str); 1] = [("part", "subset")];

fn default_transport() -> &'static str {
    "tcp"
}

fn is_default<T: Default + PartialEq>(settings: &T) -> bool {
    *settings == T::default()
}

fn default_tcp_name() -> &'static str {
    aqmlab_tcp::Profile::NAMES[0]
}

impl<'de> Deserialize<'de> for Traffic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_table(tagged::table(deserializer)?).map_err(Located::pass)
    }
}

impl Traffic {
    /// The path between its servers and its clients, with its number in the order of the names.
    ///
    /// The class and the network have passed their checks.
    pub fn path_in<'a>(&self, network: &'a Network) -> (usize, &'a Path) {
        let path = network.path(self.path.as_deref());
        path.expect("a checked class names a path, or there is only one")
    }

    /// Which client hosts it has: first and number of those of each of its plans; none: all.
    ///
    /// The class and the network have passed their checks.
    pub fn clients(&self, network: &Network) -> Vec<(u32, u32)> {
        let plans = self.plans.iter();
        let clients = plans.map(|plan| network.plan(self.path.as_deref(), plan));
        let clients = clients.collect::<Option<_>>();
        clients.expect("a checked class names plans of its path")
    }

    /// The hosts that it has at both sides of its path.
    pub fn hosts(&self, network: &Network) -> HostCounts {
        let all = &network.hosts;
        let of_plans = self.clients(network).iter().map(|(_, hosts)| hosts).sum();
        HostCounts {
            clients: if self.plans.is_empty() {
                all.clients
            } else {
                of_plans
            },
            servers: all.servers,
        }
    }

    /// What its random numbers are named after: the whole that it has a subset of, or itself.
    pub fn drawn_as(&self) -> &str {
        self.subset.as_ref().map_or(&self.name, |subset| &subset.of)
    }

    /// How many flows, sessions or users it has, each of which begins once; `None` where that is
    /// to be calibrated, or connections arrive.
    pub fn flows(&self) -> Option<u32> {
        let parameters = self.model.parameters();
        match parameters.opening() {
            Opening::OpenLoop => None,
            Opening::ClosedLoop | Opening::Fixed => parameters.population().map(|it| it as u32),
        }
    }

    /// When it acts, and within which limits.
    pub fn activity(&self) -> Activity {
        let unlimited = Activity::default();
        Activity {
            start: self.start.clone(),
            stop: self.stop.unwrap_or(unlimited.stop),
            max_connections: self.max_connections.unwrap_or(unlimited.max_connections),
        }
    }

    fn from_table(table: Table) -> Result<Self, Located> {
        for (old, new) in RENAMED {
            if table.contains_key(old) {
                return Err(Located::new(format!("unknown key; it is called {new}")).under(old));
            }
        }
        let kind = table
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let has_transport = table.contains_key("transport");
        let (common, model): (Table, Table) = table
            .into_iter()
            .partition(|(key, _)| Common::KEYS.contains(&key.as_str()));
        // The model first: a misspelt key is a better message than the key that it leaves missing.
        let model: Model = tagged::from_value(Value::Table(model)).map_err(|error: Located| {
            if error.is_unknown_key_here() {
                error.allow(Common::KEYS)
            } else {
                error
            }
        })?;
        let common: Common = tagged::from_value(Value::Table(common))?;
        common.check_each()?;
        let mut transport = common.transport;
        if model.is_for_streams() {
            let of_streams = Transport::of_streams()?;
            match has_transport {
                true => transport.is_tcp_by_choice = transport.is_tcp(),
                false => transport = of_streams,
            }
        }
        Ok(Self {
            name: common.name.unwrap_or(kind),
            model,
            direction: common.direction,
            share: common.share,
            rtt: common.rtt,
            path: common.path,
            plans: common.plans,
            transport,
            tcp: common.tcp,
            write_size: common.write_size,
            quic: common.quic,
            quinn: common.quinn,
            dscp: common.dscp,
            start: common.start,
            stop: common.stop,
            max_connections: common.max_connections,
            subset: common.subset,
        })
    }
}

impl JsonSchema for Traffic {
    fn schema_name() -> Cow<'static, str> {
        "Traffic".into()
    }

    /// The model's alternatives, each with the common keys added.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let common = Common::json_schema(generator).to_value();
        let mut schema = Model::json_schema(generator);
        schema.insert("description".to_owned(), json!("One class of traffic."));
        let models = schema
            .get_mut("oneOf")
            .and_then(|models| models.as_array_mut());
        let models = models.expect("the models are alternatives");
        for model in models.iter_mut() {
            add_keys(model, &common);
        }
        for (model, is_for_streams) in models.iter_mut().zip(Model::for_streams()) {
            if is_for_streams {
                model["properties"]["transport"]["default"] = json!(QUIC);
            }
        }
        schema
    }
}

/// Adds the properties and required keys of one object schema to another.
fn add_keys(schema: &mut serde_json::Value, from: &serde_json::Value) {
    let properties = from["properties"]
        .as_object()
        .expect("an object schema")
        .clone();
    schema["properties"]
        .as_object_mut()
        .expect("an object schema")
        .extend(properties);
    let required = from["required"]
        .as_array()
        .expect("some keys are required")
        .clone();
    schema["required"]
        .as_array_mut()
        .expect("kind is required")
        .extend(required);
}
