//! Datagrams at a constant rate that nothing slows down.

use aqmlab_net::{RandomStream, Time};

use crate::bulk;
use crate::params::{Cbr, Gaps};
use crate::script::{Action, OpenDatagrams};
use crate::source::Setting;

#[derive(Clone, Debug)]
pub(crate) struct Streams {
    flows: Vec<Flow>,
    /// Mean time between datagrams of a flow.
    gap: Time,
    gaps: Gaps,
    size: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    open: OpenDatagrams,
    start: Time,
    draws: RandomStream,
}

impl Streams {
    pub(crate) fn new(params: &Cbr, setting: &Setting<'_>) -> Self {
        let name = format!("{}/datagrams", setting.class);
        let flow = |token| {
            let mut draws = RandomStream::new(setting.seed, &name, u64::from(token));
            let start = draws.uniform() * params.start_within.as_secs_f64();
            let (flipped, ordinal) = setting.direction.place(token);
            let (client, server) = bulk::pair(ordinal, setting.hosts.as_seen(flipped));
            Flow {
                open: OpenDatagrams {
                    token,
                    client,
                    server,
                    rtt: setting.rtt.sample(client, server, flipped, &mut draws),
                    flipped,
                },
                start: Time::from_secs_f64(start),
                draws,
            }
        };
        Self {
            flows: (0..params.flows).map(flow).collect(),
            gap: params.rate.transmission_time(params.packet.0),
            gaps: params.gaps,
            size: params.packet.0 as u32,
        }
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        for flow in &self.flows {
            let (at, token) = (flow.start, flow.open.token);
            actions.push(Action::OpenDatagrams(flow.open.clone()));
            actions.push(Action::WakeAt { at, token });
        }
    }

    pub(crate) fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let size = self.size;
        actions.push(Action::Datagram { token, size });
        let draws = &mut self.flows[token as usize].draws;
        let factor = match self.gaps {
            Gaps::Constant => 1.0,
            Gaps::Uniform => draws.uniform_in(0.5, 1.5),
            Gaps::Exponential => draws.exponential(1.0),
        };
        let gap = Time::from_secs_f64(self.gap.as_secs_f64() * factor);
        actions.push(Action::WakeAt {
            at: now + gap,
            token,
        });
    }
}
