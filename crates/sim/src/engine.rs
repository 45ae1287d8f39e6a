//! What a world is built with: one parameter for all that has several kinds.

use std::marker::PhantomData;

use crate::breakdown::{Causes, Unobserved};
use crate::event_queue::EventQueue;

/// What a world is built with.
pub(crate) trait Engine {
    /// What gives it the next event.
    type Queue: EventQueue;
    /// What it remembers of the causes of events.
    type Causes: Causes;
}

/// Remembers no causes: its worlds pay nothing for them.
pub(crate) struct Plain<Q>(PhantomData<Q>);

impl<Q: EventQueue> Engine for Plain<Q> {
    type Queue = Q;
    type Causes = Unobserved;
}

/// Logs every packet that reaches a port.
pub(crate) struct Logged<Q>(PhantomData<Q>);

impl<Q: EventQueue> Engine for Logged<Q> {
    type Queue = Q;
    type Causes = crate::packet_log::PacketLog;
}

/// Breaks down the time of each response.
pub(crate) struct Explained<Q>(PhantomData<Q>);

impl<Q: EventQueue> Engine for Explained<Q> {
    type Queue = Q;
    type Causes = crate::breakdown::paths::Paths;
}
