//! The sockets of hosts that may have only so many open, as the summary says it.

use aqmlab_net::Time;

use crate::MeasuredSpan;
use crate::declaration::results;

/// What became of the sockets of the hosts at one side, in the measured span.
#[derive(Clone, Debug, Default)]
pub struct SocketStats {
    /// Hosts that have had a socket open.
    pub hosts: u32,
    /// Open sockets over time, of all hosts: nanoseconds of sockets.
    pub open: u128,
    /// Nanoseconds for which a host had all its sockets open, of all hosts.
    pub full: u128,
    /// Most that a host had open at once.
    pub most: u32,
    /// Connections that waited for a socket and got it in the measured span.
    pub waits: u64,
    /// How long these waited together.
    pub waited: Time,
    /// SYNs that a server dropped because too many connections waited already.
    pub dropped_syns: u64,
}

impl SocketStats {
    /// A host had so many sockets open from one time to another; these are `all` it may have.
    pub fn hold(&mut self, open: u32, all: u32, times: (Time, Time), span: MeasuredSpan) {
        let (from, to) = (times.0.max(span.start), times.1.min(span.end));
        if to <= from {
            return;
        }
        let lasted = u128::from((to - from).as_nanos());
        self.open += u128::from(open) * lasted;
        self.full += if open >= all { lasted } else { 0 };
        self.most = self.most.max(open);
    }
}

results! {
    /// Sockets of the clients' and of the servers' hosts in the measured span. Only with
    /// `topology.hosts.sockets`.
    pub struct SocketSummary {
        /// Mean number of open sockets of a host, over hosts that had one.
        open_mean: f64 = "open sockets", NUMBER, digits 1;
        /// Most that a host had open at once.
        open_max: u32 = "most open sockets", NUMBER, digits 0;
        /// Share of time in which a host had all its sockets open, mean over hosts.
        full_share: f64 = "all sockets open", SHARE, digits 1;
        /// Connections that waited for a socket and got it: clients before they connect, servers
        /// before they accept.
        waits: u64 = "waits for a socket", NUMBER, digits 0;
        /// Their mean waiting time.
        wait_mean_s: Option<f64> = "mean wait for a socket", SECONDS, digits 2;
        /// SYNs that servers dropped because their `backlog` was full.
        dropped_syns: u64 = "SYNs dropped by servers", NUMBER, digits 0;
    }
}

impl SocketSummary {
    pub(crate) fn of(stats: &SocketStats, measured: Time) -> Self {
        let time = f64::from(stats.hosts.max(1)) * measured.as_nanos() as f64;
        let values = SocketSummaryValues {
            open_mean: stats.open as f64 / time,
            open_max: stats.most,
            full_share: stats.full as f64 / time,
            waits: stats.waits,
            wait_mean_s: (stats.waits > 0).then(|| stats.waited.as_secs_f64() / stats.waits as f64),
            dropped_syns: stats.dropped_syns,
        };
        values.into()
    }
}
