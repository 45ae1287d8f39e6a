//! A congestion control of quinn that lets others see what it is given.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// What the control of a connection has seen. Both are used by one thread at a time.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The latest round trip in nanoseconds; 0 once it has been taken.
    pub(super) sample: AtomicU64,
    /// Bytes in flight at the latest acknowledgement.
    pub(super) in_flight: AtomicU64,
    /// How often packets were declared lost.
    pub(super) losses: AtomicU64,
}

/// Makes controls that can be looked at.
pub(super) struct Watched {
    pub(super) factory: Arc<dyn ControllerFactory + Send + Sync>,
    pub(super) seen: Arc<Seen>,
}

impl ControllerFactory for Watched {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Control {
            inner: Arc::clone(&self.factory).build(now, current_mtu),
            seen: Arc::clone(&self.seen),
            newest: None,
        })
    }
}

struct Control {
    inner: Box<dyn Controller>,
    seen: Arc<Seen>,
    /// When the newest packet of the acknowledgement under way was sent.
    newest: Option<Instant>,
}

impl Controller for Control {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.newest = self.newest.max(Some(sent));
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        if let Some(sent) = self.newest.take() {
            let sample = now.saturating_duration_since(sent).as_nanos() as u64;
            self.seen.sample.store(sample, Ordering::Relaxed);
        }
        self.seen.in_flight.store(in_flight, Ordering::Relaxed);
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let lost = u64::from(lost_bytes > 0);
        self.seen.losses.fetch_add(lost, Ordering::Relaxed);
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            seen: Arc::clone(&self.seen),
            newest: self.newest,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
