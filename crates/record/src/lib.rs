//! What a run records, whatever carried its packets.
//!
//! An engine keeps a [`LinkStats`] for each direction of each link, and [`ResponseStats`] and
//! [`FlowStats`] for each class of traffic. Memory does not depend on the length of the run.

mod direction;
mod flows;
mod link;
mod responses;
mod samples;
mod span;
mod summary;
mod times;

pub use direction::LinkDirection;
pub use flows::{FlowStats, RetransmittedKinds, Seen};
pub use link::LinkStats;
pub use responses::ResponseStats;
pub use samples::QueueSamples;
pub use span::MeasuredSpan;
pub use summary::{FlowSummary, LinkSummary, ResponseSummary, RetransmissionShares, Summary};
pub use times::TimeHistogram;
