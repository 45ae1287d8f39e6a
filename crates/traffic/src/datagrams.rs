//! What the models of datagrams share: they have fixed flows from servers to clients.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};

use crate::model::ModelSource;
use crate::script::{Action, OpenDatagrams};
use crate::setting::Setting;

/// A datagram has at least a byte behind its IP and UDP headers.
pub(crate) const SHORTEST: Bytes = Bytes(29);
/// Its header can say no more.
pub(crate) const LONGEST: Bytes = Bytes(65_535);
/// Both in words.
pub(crate) const LENGTHS: &str = "a datagram has 29 to 65535 bytes, 28 of them headers";

/// A flow has a rate.
pub(crate) fn check_rate(key: &str, rate: Rate) -> Result<(), Problem> {
    match rate.bps() {
        0 => problem(key, "found 0 bit/s; a rate must be above 0"),
        _ => Ok(()),
    }
}

/// A datagram takes some time at this rate.
pub(crate) fn check_together(rate: Rate, packet: Bytes) -> Result<(), Problem> {
    if rate.transmission_time(packet.0) > Time::ZERO {
        return Ok(());
    }
    let right = "at such a rate a datagram takes less than 1 ns, which time is counted in";
    problem("rate", format!("found {rate}; {right}"))
}

/// Datagrams per second of so many flows.
pub(crate) fn per_second(flows: u32, rate: Rate, packet: Bytes) -> f64 {
    f64::from(flows) * rate.bps() as f64 / (8.0 * packet.0 as f64)
}

/// The gaps between the datagrams of a flow.
pub(crate) trait Gaps: Send {
    /// The time from a datagram to the next one.
    fn next(&mut self, draws: &mut RandomStream) -> Time;
}

/// Flows of datagrams of one size; a flow's token is its number.
pub(crate) struct Flows<G> {
    size: u32,
    flows: Vec<Flow<G>>,
}

struct Flow<G> {
    open: OpenDatagrams,
    start: Time,
    draws: RandomStream,
    gaps: G,
}

impl<G: Gaps> Flows<G> {
    /// `count` flows, each with random numbers named after `name`, and with its own gaps.
    pub(crate) fn new(
        setting: &Setting<'_>,
        (name, count): (&str, u32),
        start_within: Time,
        (packet, ecn): (Bytes, Ecn),
        gaps: impl Fn(&mut RandomStream) -> G,
    ) -> Self {
        let flow = |token| {
            let mut draws = setting.stream(name, token);
            let (open, start) = flow(setting, (token, count), start_within, &mut draws);
            let gaps = gaps(&mut draws);
            Flow {
                open: OpenDatagrams { ecn, ..open },
                start,
                draws,
                gaps,
            }
        };
        Self {
            size: packet.0 as u32,
            flows: (0..count).map(flow).collect(),
        }
    }
}

impl<G: Gaps> ModelSource for Flows<G> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for flow in &self.flows {
            let (at, token) = (flow.start, flow.open.token);
            actions.push(Action::OpenDatagrams(flow.open.clone()));
            actions.push(Action::WakeAt { at, token });
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let size = self.size;
        actions.push(Action::Datagram { token, size });
        let flow = &mut self.flows[token as usize];
        let at = now.saturating_add(flow.gaps.next(&mut flow.draws));
        actions.push(Action::WakeAt { at, token });
    }
}

/// Number `token` of `count` flows and the time at which it sends its first datagram, at random
/// within `start_within`.
pub(crate) fn flow(
    setting: &Setting<'_>,
    (token, count): (u32, u32),
    start_within: Time,
    draws: &mut RandomStream,
) -> (OpenDatagrams, Time) {
    let start = draws.uniform() * start_within.as_secs_f64();
    let pair = setting.pair(token, count);
    let open = OpenDatagrams {
        token,
        client: pair.client,
        server: pair.server,
        rtt: setting.rtt.sample(pair, draws),
        flipped: pair.flipped,
        ecn: Ecn::NotEct,
    };
    (open, Time::from_secs_f64(start))
}

/// The other way: datagrams from the client to the server of a flow.
pub(crate) fn back(open: &OpenDatagrams, token: u32) -> OpenDatagrams {
    OpenDatagrams {
        token,
        client: open.server,
        server: open.client,
        rtt: open.rtt,
        flipped: !open.flipped,
        ecn: open.ecn,
    }
}
