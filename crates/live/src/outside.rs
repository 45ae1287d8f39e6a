//! What the gateway met outside.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;

/// What the gateway met outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OutsideReport {
    /// Connections that were made.
    pub connections: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Connections to places that cannot be reached or do not answer.
    pub unreachable: u64,
    /// Flows of datagrams.
    pub datagram_flows: u64,
    /// Median of the time that making a connection took outside, which no queue of the link saw.
    pub connect_p50_s: Option<f64>,
    /// The longest.
    pub connect_max_s: Option<f64>,
    /// Sockets that this machine could not make.
    #[serde(skip)]
    pub local_failures: u64,
    /// What the first of them said.
    #[serde(skip)]
    pub first_failure: Option<String>,
}

/// Counts while the gateway works.
#[derive(Debug, Default)]
pub(crate) struct Outside(Mutex<(OutsideReport, Vec<Duration>)>);

const UNPOISONED: &str = "nothing panics while it holds the lock";

impl Outside {
    /// A connection was made, and took so long.
    pub(crate) fn connected(&self, took: Duration) {
        let mut seen = self.0.lock().expect(UNPOISONED);
        seen.0.connections += 1;
        seen.1.push(took);
    }

    /// A flow of datagrams has begun.
    pub(crate) fn flowed(&self) {
        self.0.lock().expect(UNPOISONED).0.datagram_flows += 1;
    }

    /// A place was not reached.
    pub(crate) fn not_reached(&self, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => self.0.lock().expect(UNPOISONED).0.refused += 1,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TimedOut => self.0.lock().expect(UNPOISONED).0.unreachable += 1,
            _ => self.failed(error),
        }
    }

    /// This machine lacks something.
    pub(crate) fn failed(&self, error: &io::Error) {
        let report = &mut self.0.lock().expect(UNPOISONED).0;
        report.local_failures += 1;
        report
            .first_failure
            .get_or_insert_with(|| error.to_string());
    }

    pub(crate) fn report(&self) -> OutsideReport {
        let (mut report, mut times) = self.0.lock().expect(UNPOISONED).clone();
        times.sort_unstable();
        let seconds = |time: &Duration| time.as_secs_f64();
        report.connect_p50_s = times.get(times.len() / 2).map(seconds);
        report.connect_max_s = times.last().map(seconds);
        report
    }
}
