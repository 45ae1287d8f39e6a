//! Open loop: HTTP connections between two clouds of hosts, with long memory.
//!
//! J. Cao, W. S. Cleveland, Y. Gao, K. Jeffay, F. D. Smith, M. Weigle, "Stochastic Models for
//! Generating Synthetic HTTP Source Traffic", INFOCOM 2004 (PackMime-HTTP). One number, the rate of
//! new connections, sets everything: the busier the clouds, the nearer the arrivals are to a Poisson
//! process and the sizes to independence.
//!
//! - Times between connections, request sizes and the two parts of the round-trip time have
//!   long memory: a Gaussian series (`LongMemory`) is made uniform by the normal distribution
//!   function, and then becomes the marginal distribution by its quantiles.
//! - Response sizes come in alternating runs of small ones (cache validations) and downloads.
//! - With HTTP/1.1 some connections are persistent (`persistent`).
//!
//! The numbers are those of ns-2 2.35; `data/packmime/README.md` says more.
//!
//! Every purpose draws from its own stream: other round-trip times meet the same connections.

mod marginals;
mod persistent;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::Problem;
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Frequency, RandomStream, Role, Time};
use serde::{Deserialize, Serialize};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, check_rate, population};
use crate::rtt::{PackmimeRtt, Rank, Rtt};
use crate::script::{Action, Connect, Exchange, Script};
use crate::setting::{Direction, HostCounts, Pair, Setting};
use crate::sizes::ENDLESS;
use marginals::{Gaps, Numbers, Requests, Responses, RttParts, ServerDelays};
use persistent::Persistence;

pub(crate) use marginals::RttCurves;

/// HTTP connections between two clouds, after Cao et al. 2004 (PackMime-HTTP).
#[parameters]
pub struct Packmime {
    /// New connections per second, summed over both directions. Default: computed from `load`.
    #[param(unwritten)]
    pub rate: Option<Frequency>,
    /// HTTP version.
    #[param(default)]
    pub http: Http,
    /// If true, a server waits up to 0.1 s, on average 22 ms, before it sends a response.
    #[param(default = true)]
    pub server_delay: bool,
    /// Factor on each response size. The result is at least 1 byte.
    #[param(default = 1.0, above = 0.0, unwritten)]
    pub response_scale: f64,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Http {
    /// One request and one response per connection.
    #[default]
    #[serde(rename = "1.0")]
    Http10,
    /// 9 % of the connections are persistent. A persistent connection transfers the objects of one
    /// or more pages. The client pauses between two objects and between two pages.
    #[serde(rename = "1.1")]
    Http11,
}

impl Parameters for Packmime {
    const ABOUT: About = About {
        title: "PackMime: HTTP connections with long memory",
        paper: "J. Cao et al., Stochastic Models for Generating Synthetic HTTP Source Traffic, \
                INFOCOM 2004; parameters of ns-2.35",
        purpose: "Open-loop HTTP traffic between a group of clients and a group of servers. With \
                  a higher rate of new connections, the arrivals approach a Poisson process and \
                  the sizes become independent of each other.",
        departures: &[
            "Pauses have a log-normal distribution. In aqmlab, each persistent connection draws \
             its own parameters of this distribution. In ns-2, all connections of a run have the \
             same parameters.",
            "With `direction = \"both\"`, each direction has separate groups of clients and servers \
             and half of the rate.",
            "The parameters come from ns-2 and are not verified against the paper.",
        ],
        memory: "44 numbers for each of four quantities with long-range dependence, at any rate",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check_rate(self.rate)
    }
}

impl ModelParameters for Packmime {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "packmime"
rate = "144 /s"
rtt = { kind = "packmime", extra = "14 ms" }
"#
    }

    population!(rate in "connections/s", OpenLoop);

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(PackmimeSource::new(self, setting)?))
    }
}

/// The clouds of a class; a wake-up's token is the number of the cloud whose connection is due.
#[derive(Clone, Debug)]
struct PackmimeSource {
    clouds: Vec<Cloud>,
    /// Number of the next connection.
    next: u32,
}

/// A cloud of clients and one of servers.
#[derive(Clone, Debug)]
struct Cloud {
    flipped: bool,
    hosts: HostCounts,
    gaps: Gaps,
    requests: Requests,
    responses: Responses,
    response_scale: f64,
    delays: Option<ServerDelays>,
    persistence: Option<Persistence>,
    rtts: Rtts,
    draws: RandomStream,
}

/// Where round-trip times come from.
#[derive(Clone, Debug)]
enum Rtts {
    /// PackMime's own, with their memory; something is added to each.
    Remembered(Box<RttParts>, Time),
    Independent(Rtt, RandomStream),
}

impl PackmimeSource {
    fn new(params: &Packmime, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let rate = params.rate.ok_or(PopulationUnset { field: "rate" })?.0;
        let cloud = |flipped, rate| Cloud::new(params, setting, flipped, rate);
        let clouds = match setting.direction {
            Direction::Forward => vec![cloud(false, rate)],
            Direction::Reverse => vec![cloud(true, rate)],
            Direction::Both => vec![cloud(false, rate / 2.0), cloud(true, rate / 2.0)],
        };
        Ok(Self { clouds, next: 0 })
    }

    fn wait(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let gap = self.clouds[token as usize].gaps.next();
        let at = now.saturating_add(Time::from_secs_f64(gap));
        actions.push(Action::WakeAt { at, token });
    }
}

impl ModelSource for PackmimeSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for token in 0..self.clouds.len() as u32 {
            self.wait(Time::ZERO, token, actions);
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let connect = self.clouds[token as usize].connect(self.next);
        actions.push(Action::Connect(connect));
        self.next = self.next.wrapping_add(1);
        self.wait(now, token, actions);
    }
}

impl Cloud {
    fn new(params: &Packmime, setting: &Setting<'_>, flipped: bool, rate: f64) -> Self {
        let numbers = Numbers::shipped();
        let stream = |purpose| setting.stream(purpose, flipped.into());
        let rtts = match setting.rtt {
            Rtt::Packmime {
                table: PackmimeRtt::Ns2,
                extra,
            } => {
                let parts = RttParts::new(&numbers, rate, [stream("client-rtts"), stream("rtts")]);
                Rtts::Remembered(Box::new(parts), *extra)
            }
            other => Rtts::Independent(other.clone(), stream("rtts")),
        };
        Self {
            flipped,
            hosts: setting.hosts.as_seen(flipped),
            gaps: Gaps::new(&numbers, rate, stream("arrivals")),
            requests: Requests::new(&numbers, rate, stream("requests")),
            responses: Responses::new(&numbers, rate, stream("responses")),
            response_scale: params.response_scale,
            delays: params
                .server_delay
                .then(|| ServerDelays::new(stream("server-delays"))),
            persistence: (params.http == Http::Http11)
                .then(|| Persistence::new(&numbers, stream("persistent"))),
            rtts,
            draws: stream("hosts"),
        }
    }

    fn connect(&mut self, token: u32) -> Connect {
        let client = self.draws.below(self.hosts.clients as usize) as u32;
        let server = self.draws.below(self.hosts.servers as usize) as u32;
        let pair = Pair {
            client,
            server,
            flipped: self.flipped,
            rank: Rank::Arrival(token),
        };
        Connect {
            token,
            client,
            server,
            rtt: self.rtts.next(pair),
            flipped: self.flipped,
            script: self.script(),
            limits: None,
            begins_with_tls: false,
        }
    }

    fn script(&mut self) -> Script {
        let mut first = Exchange::new(self.requests.next(), self.responses.next());
        first.think = self.think();
        let Some(persistence) = &mut self.persistence else {
            first.response = scaled(first.response, self.response_scale);
            return Script::Single(first);
        };
        let mut exchanges = persistence.exchanges(first);
        for later in &mut exchanges[1..] {
            later.think = self.think();
        }
        for exchange in &mut exchanges {
            exchange.response = scaled(exchange.response, self.response_scale);
        }
        Script::new(exchanges, Role::Server)
    }

    fn think(&mut self) -> Time {
        self.delays.as_mut().map_or(Time::ZERO, ServerDelays::next)
    }
}

/// A response size times a factor; a factor of one changes no byte.
fn scaled(bytes: u64, factor: f64) -> u64 {
    if factor == 1.0 {
        return bytes;
    }
    ((bytes as f64 * factor).round() as u64).clamp(1, ENDLESS)
}

impl Rtts {
    fn next(&mut self, pair: Pair) -> Time {
        match self {
            Self::Remembered(parts, extra) => {
                Time::from_secs_f64(parts.next_ms() / 1e3).saturating_add(*extra)
            }
            Self::Independent(rtt, stream) => rtt.sample(pair, stream),
        }
    }
}
