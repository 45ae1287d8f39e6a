//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod changes;
mod counted;
mod fairness;
mod fifo_queue;
mod kernel;
mod model;
mod peers;
mod plugin;
mod properties;
mod queues;
mod refused;
mod stabilizing;
mod worked;
