//! What is counted of a class of traffic.

use aqmlab_traffic::Quality;

use crate::{FlowStats, ResponseStats, View};

/// What is counted of a class of traffic.
#[derive(Clone, Debug)]
pub struct ClassMetrics {
    name: String,
    pub(crate) responses: ResponseStats,
    pub(crate) flows: FlowStats,
    pub(crate) breakdowns: crate::breakdown::BreakdownStats,
    /// What its users got, if its source keeps account of that.
    pub(crate) quality: Option<Quality>,
}

impl ClassMetrics {
    /// Nothing yet, of a class in a run of which so much can be seen.
    pub(crate) fn new(name: String, view: View) -> Self {
        Self {
            name,
            responses: ResponseStats::default(),
            flows: FlowStats::new(view),
            breakdowns: Default::default(),
            quality: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its exchanges.
    pub const fn responses(&self) -> &ResponseStats {
        &self.responses
    }

    /// Its connections and flows of datagrams.
    pub const fn flows(&self) -> &FlowStats {
        &self.flows
    }
}
