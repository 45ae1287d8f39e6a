//! Long-lived transfers: a fixed number of connections that each carry one response.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Rate, Time};

use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::script::{Action, Connect, Script};
use crate::setting::Setting;
use crate::sizes::ENDLESS;
use crate::written::{self, Pause, Written};

/// Transfers that never end or all have the same size.
#[parameters]
pub struct Bulk {
    /// Number of transfers.
    #[param(least = 1)]
    pub flows: u32,
    /// Size of each transfer. Default: endless.
    #[param(least = Bytes(1), unwritten)]
    pub size: Option<Bytes>,
    /// Rate at which each application writes, every 10 ms. Default: as fast as the network takes
    /// the data.
    #[param(least = "8 bit/s", unwritten)]
    pub limit: Option<Rate>,
    /// Periods in which the applications write nothing, in order of time.
    #[param(default, table, unwritten)]
    pub pauses: Vec<Pause>,
    /// Each transfer starts at a random time within this span.
    #[param(default = "1 s")]
    pub start_within: Time,
}

impl Parameters for Bulk {
    const ABOUT: About = About {
        title: "Bulk transfers",
        paper: "no paper; theory: J. Padhye et al., Modeling TCP Throughput, SIGCOMM 1998",
        purpose: "A fixed number of long-lived transfers. They show throughput, loss, and fairness \
                  between round-trip times.",
        departures: &[],
        memory: "one entry for each transfer",
    };

    fn check_together(&self) -> Result<(), Problem> {
        if self.size.is_some() && self.limit.is_none() && !self.pauses.is_empty() {
            let message = "found some beside size; an application that pauses in a transfer of a \
                           given size has a limit";
            return problem("pauses", message);
        }
        written::ascending(&self.pauses)
    }
}

impl ModelParameters for Bulk {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "bulk"
flows = 10
rtt = { kind = "uniform", min = "20 ms", max = "200 ms" }
"#
    }

    population!(flows in "flows", Fixed, Members);

    fn is_endless(&self) -> bool {
        self.size.is_none()
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(BulkSource::new(self, setting)))
    }
}

impl Bulk {
    /// Whether its applications take back what they have written: they pause, and have no rate.
    pub const fn withdraws(&self) -> bool {
        self.limit.is_none() && !self.pauses.is_empty()
    }
}

#[derive(Clone, Debug)]
struct BulkSource {
    /// When each transfer starts, and what it is; its token is its place here.
    transfers: Vec<(Time, Connect)>,
}

impl BulkSource {
    fn new(params: &Bulk, setting: &Setting<'_>) -> Self {
        let response = params.size.map_or(ENDLESS, |size| size.0);
        let transfer = |token| {
            let mut stream = setting.stream("transfer", token);
            let start = stream.uniform() * params.start_within.as_secs_f64();
            let pair = setting.pair(token, params.flows);
            let connect = Connect {
                token,
                client: pair.client,
                server: pair.server,
                rtt: setting.rtt.sample(pair, &mut stream),
                flipped: pair.flipped,
                script: match (params.limit, &params.pauses[..]) {
                    (None, []) => Script::single(1, response),
                    (limit, pauses) => {
                        Script::Written(Box::new(Written::new(response, limit, pauses)))
                    }
                },
                limits: None,
                begins_with_tls: false,
            };
            (Time::from_secs_f64(start), connect)
        };
        Self {
            transfers: (0..params.flows).map(transfer).collect(),
        }
    }
}

impl ModelSource for BulkSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let wakes = self.transfers.iter().map(|(at, connect)| Action::WakeAt {
            at: *at,
            token: connect.token,
        });
        actions.extend(wakes);
    }

    fn on_wake(&mut self, _now: Time, token: u32, actions: &mut Vec<Action>) {
        let (_, connect) = &self.transfers[token as usize];
        actions.push(Action::Connect(connect.clone()));
    }
}
