//! What a run records, whatever carried its packets.
//!
//! An engine keeps a [`LinkStats`] for each direction of each link, tells [`Metrics`] what its
//! exchanges and connections do, and gets a [`Summary`]. Rows go to [`Records`], which come from
//! outside. Nothing here writes files. Memory does not depend on the length of the run.

mod air;
mod breakdown;
mod classes;
mod conservation;
mod datagrams;
mod declaration;
mod delays;
mod direction;
mod error;
mod flows;
mod link;
mod metrics;
mod packets;
mod parts;
mod quality;
mod records;
mod responses;
mod round_trips;
mod rows;
mod samples;
mod schema;
mod senders;
mod sockets;
mod span;
mod story;
mod summary;
mod times;
mod unit;
mod version;

pub use air::{AirSummary, AirTally, StationsOnAir};
pub use breakdown::{
    Breakdown, LinkPartsSummary, LossOnPath, LostSegment, ON_WIRE, PARTS_OF_PORT, Part,
    PartsSummary, PathCount, PortParts,
};
pub use classes::ClassMetrics;
pub use conservation::{Conservation, check_queue};
pub use datagrams::{DatagramFlow, DatagramStats};
pub use delays::{DelayHistogram, Transit};
pub use direction::LinkDirection;
pub use error::RunError;
pub use flows::{FlowStats, View};
pub use link::LinkStats;
pub use metrics::Metrics;
pub use packets::{PacketKind, PacketOutcome, PacketRow, SentPackets};
pub use parts::SubscriberRow;
pub use quality::QualitySummary;
pub use records::{Discard, PacketRecords, Records};
pub use responses::ResponseStats;
pub use round_trips::RoundTrips;
pub use rows::{Exchange, Flow, RetransmittedKinds, TraceRow};
pub use samples::QueueSamples;
pub use schema::{
    Metric, RENAMED, RESULTS_VERSION, Section, sections, summary_and_sections, summary_schema,
};
pub use senders::SenderStats;
pub use sockets::{SocketStats, SocketSummary};
pub use span::MeasuredSpan;
pub use story::{Frames, StoryEvent, StoryRow};
pub use summary::{
    FlowSummary, LinkSummary, PartSummary, ResponseSummary, RetransmissionShares, Summary,
    TransitSummary,
};
pub use times::TimeHistogram;
pub use unit::Unit;
pub use version::version;
