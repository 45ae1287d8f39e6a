//! Open loop: connections arrive as a Poisson process and carry one exchange each.
//!
//! Every purpose draws from its own stream, so that another distribution of responses meets the
//! same arrivals and the same hosts.

use aqmlab_net::{RandomStream, Time};

use crate::params::{Poisson, Rtt};
use crate::script::{Action, Connect, Direction, HostCounts, Script};
use crate::sizes::SizeDraws;
use crate::source::{PopulationUnset, Setting};

#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
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

impl Arrivals {
    pub(crate) fn new(params: &Poisson, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let rate = params.rate.ok_or(PopulationUnset { field: "rate" })?;
        let stream =
            |name| RandomStream::new(setting.seed, &format!("{}/{name}", setting.class), 0);
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

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        self.wait(Time::ZERO, actions);
    }

    pub(crate) fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        let (flipped, _) = self.direction.place(self.next);
        let hosts = self.hosts.as_seen(flipped);
        let client = self.streams.hosts.below(hosts.clients as usize) as u32;
        let server = self.streams.hosts.below(hosts.servers as usize) as u32;
        actions.push(Action::Connect(Connect {
            token: self.next,
            client,
            server,
            rtt: self
                .rtt
                .sample(client, server, flipped, &mut self.streams.rtts),
            flipped,
            script: Script::single(
                self.request.sample(&mut self.streams.requests),
                self.response.sample(&mut self.streams.responses),
            ),
            limits: None,
        }));
        self.next = self.next.wrapping_add(1);
        self.wait(now, actions);
    }

    fn wait(&mut self, now: Time, actions: &mut Vec<Action>) {
        let gap = self.streams.arrivals.exponential(self.mean_gap_s);
        actions.push(Action::WakeAt {
            at: now.saturating_add(Time::from_secs_f64(gap)),
            token: self.next,
        });
    }
}
