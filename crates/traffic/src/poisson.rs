//! Open loop: connections arrive as a Poisson process and carry one exchange each.
//!
//! Every purpose draws from its own stream, so that another distribution of responses meets the
//! same arrivals and the same hosts.

use aqmlab_declare::check::{Problem, within};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Frequency, RandomStream, Time};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, check_rate, population};
use crate::rtt::{Rank, Rtt};
use crate::script::{Action, Connect, Script};
use crate::setting::{Direction, HostCounts, Pair, Setting};
use crate::sizes::{SizeDraws, Sizes};

/// Connections that arrive as a Poisson process, each with one request and one response.
#[parameters]
pub struct Poisson {
    /// New connections per second. Default: computed from `load`.
    #[param(unwritten)]
    pub rate: Option<Frequency>,
    /// Distribution of request sizes.
    pub request: Sizes,
    /// Distribution of response sizes.
    pub response: Sizes,
}

impl Parameters for Poisson {
    const ABOUT: About = About {
        title: "Poisson arrivals",
        paper: "no paper; V. Paxson, S. Floyd, Wide-Area Traffic: The Failure of Poisson Modeling, \
                IEEE/ACM Transactions on Networking 3(3), 1995",
        purpose: "Open loop: connections arrive as a Poisson process. Each carries one request and \
                  one response, and the server closes it.",
        departures: &["Rows of a table of sizes are not interpolated."],
        memory: "a constant number of values",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check_rate(self.rate)?;
        within("request", self.request.check())?;
        within("response", self.response.check())
    }
}

impl ModelParameters for Poisson {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "poisson"
rate = "120 /s"
request = { kind = "constant", size = "300 bytes" }
response = { kind = "bounded-pareto", shape = 1.2, minimum = "2 kB", maximum = "10 MB" }
rtt = { kind = "constant", rtt = "80 ms" }
"#
    }

    population!(rate in "connections/s", OpenLoop, Rate);

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        vec![
            ("request", &mut self.request),
            ("response", &mut self.response),
        ]
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(PoissonSource::new(self, setting)?))
    }
}

#[derive(Clone, Debug)]
struct PoissonSource {
    mean_gap_s: f64,
    request: SizeDraws,
    response: SizeDraws,
    rtt: Rtt,
    direction: Direction,
    hosts: HostCounts,
    streams: Streams,
    /// Number of the next connection.
    next: u32,
}

#[derive(Clone, Debug)]
struct Streams {
    arrivals: RandomStream,
    requests: RandomStream,
    responses: RandomStream,
    hosts: RandomStream,
    rtts: RandomStream,
}

impl PoissonSource {
    fn new(params: &Poisson, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let rate = params.rate.ok_or(PopulationUnset { field: "rate" })?;
        let stream = |purpose| setting.stream(purpose, 0);
        Ok(Self {
            mean_gap_s: 1.0 / rate.0,
            request: SizeDraws::new(&params.request),
            response: SizeDraws::new(&params.response),
            rtt: setting.rtt.clone(),
            direction: setting.direction,
            hosts: setting.hosts,
            streams: Streams {
                arrivals: stream("arrivals"),
                requests: stream("requests"),
                responses: stream("responses"),
                hosts: stream("hosts"),
                rtts: stream("rtts"),
            },
            next: 0,
        })
    }

    fn wait(&mut self, now: Time, actions: &mut Vec<Action>) {
        let gap = self.streams.arrivals.exponential(self.mean_gap_s);
        actions.push(Action::WakeAt {
            at: now.saturating_add(Time::from_secs_f64(gap)),
            token: self.next,
        });
    }
}

impl ModelSource for PoissonSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.wait(Time::ZERO, actions);
    }

    fn on_wake(&mut self, now: Time, _token: u32, actions: &mut Vec<Action>) {
        let (flipped, _) = self.direction.place(self.next);
        let hosts = self.hosts.as_seen(flipped);
        let client = self.streams.hosts.below(hosts.clients as usize) as u32;
        let server = self.streams.hosts.below(hosts.servers as usize) as u32;
        let pair = Pair {
            client,
            server,
            flipped,
            rank: Rank::Arrival(self.next),
        };
        actions.push(Action::Connect(Connect {
            token: self.next,
            client,
            server,
            rtt: self.rtt.sample(pair, &mut self.streams.rtts),
            flipped,
            script: Script::single(
                self.request.sample(&mut self.streams.requests),
                self.response.sample(&mut self.streams.responses),
            ),
            limits: None,
            begins_with_tls: false,
        }));
        self.next = self.next.wrapping_add(1);
        self.wait(now, actions);
    }

    fn set_population(&mut self, rate: f64, _now: Time, _actions: &mut Vec<Action>) -> bool {
        self.mean_gap_s = 1.0 / rate;
        true
    }
}
