//! Long-lived transfers: a fixed number of connections that each carry one response.

use aqmlab_net::{RandomStream, Time};

use crate::params::Bulk;
use crate::script::{Action, Connect, HostCounts, Script};
use crate::sizes::ENDLESS;
use crate::source::Setting;

#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    /// When each starts, and what it is; its token is its place here.
    transfers: Vec<(Time, Connect)>,
}

impl Transfers {
    pub(crate) fn new(params: &Bulk, setting: &Setting<'_>) -> Self {
        let response = params.size.map_or(ENDLESS, |size| size.0);
        let name = format!("{}/transfer", setting.class);
        let transfer = |token| {
            let mut stream = RandomStream::new(setting.seed, &name, u64::from(token));
            let start = stream.uniform() * params.start_within.as_secs_f64();
            let (flipped, ordinal) = setting.direction.place(token);
            let (client, server) = pair(ordinal, setting.hosts.as_seen(flipped));
            let connect = Connect {
                token,
                client,
                server,
                rtt: setting.rtt.sample(client, server, flipped, &mut stream),
                flipped,
                script: Script::single(1, response),
                limits: None,
            };
            (Time::from_secs_f64(start), connect)
        };
        Self {
            transfers: (0..params.flows).map(transfer).collect(),
        }
    }

    pub(crate) fn is_endless(&self) -> bool {
        let mut transfers = self.transfers.iter();
        transfers.any(|(_, connect)| connect.script.exchanges()[0].response == ENDLESS)
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        let wakes = self.transfers.iter().map(|(at, connect)| Action::WakeAt {
            at: *at,
            token: connect.token,
        });
        actions.extend(wakes);
    }

    pub(crate) fn on_wake(&mut self, token: u32, actions: &mut Vec<Action>) {
        let (_, connect) = &self.transfers[token as usize];
        actions.push(Action::Connect(connect.clone()));
    }
}

/// Spreads transfers evenly: both ends go round their hosts, and each time a round of pairs is
/// complete the servers shift by one, until every pair has had its turn.
pub(crate) fn pair(ordinal: u32, hosts: HostCounts) -> (u32, u32) {
    let (ordinal, clients, servers) = (
        u64::from(ordinal),
        u64::from(hosts.clients),
        u64::from(hosts.servers),
    );
    let round = clients / greatest_common_divisor(clients, servers) * servers;
    let server = (ordinal + ordinal / round) % servers;
    ((ordinal % clients) as u32, server as u32)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_pair_of_hosts_gets_a_transfer_before_any_gets_two() {
        for (clients, servers) in [(1, 1), (7, 7), (1, 2), (2, 3), (4, 6), (5, 1)] {
            let hosts = HostCounts { clients, servers };
            let pairs: HashSet<_> = (0..clients * servers).map(|i| pair(i, hosts)).collect();
            assert_eq!(pairs.len(), (clients * servers) as usize, "{hosts:?}");
        }
    }
}
