//! What connections tell the metrics, and the check that no packet was lost by mistake.

use aqmlab_net::{Role, Time};
use aqmlab_record::{Exchange, Flow, RunError};

use crate::connection::{Answered, Connection};
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::port::Port;
use crate::world::World;

impl<A: EventQueue> World<A> {
    pub(crate) fn record_response(&mut self, index: u32, exchange: &Answered) {
        let (end, class) = (self.now, self.class_of(index));
        let flow = self.network.routes[index as usize].flow();
        let app = self.application(index);
        let exchange = Exchange {
            flow,
            class,
            start: exchange.asked_at,
            end,
            request_bytes: exchange.request_bytes,
            response_bytes: exchange.response_bytes,
            client: app.client,
            server: app.server,
        };
        self.metrics.on_exchange(&exchange);
    }

    pub(crate) fn close_flow(&mut self, index: u32) {
        if let Some(connection) = &self.slots[index as usize].connection {
            let flow = self.flow_of(index, connection);
            self.metrics.on_closed(&flow);
        }
    }

    /// What a connection has done so far.
    #[inline]
    fn flow_of(&self, index: u32, connection: &Connection) -> Flow {
        let (app, class) = (&connection.app, usize::from(connection.class));
        let (response_bytes, request_bytes) = app.received();
        Flow {
            flow: self.network.routes[index as usize].flow(),
            class,
            start: app.connected_at,
            rtt: self.rtt_of(index, class),
            end: connection.last_event,
            request_bytes,
            response_bytes,
            measured_bytes: app.measured_bytes,
            retransmissions: connection.retransmissions(),
            delayed_by: app.delayed_by,
            has_fast_retransmit: connection.has_retransmitted_fast(),
            failed: connection.failed && !connection.stopped,
        }
    }

    /// A segment of a connection was dropped or lost.
    pub(crate) fn segment_lost(&mut self, time: Time, class: usize, event: &Event) {
        if event.len > 0 {
            self.metrics.on_lost_segment(class, time);
        }
    }

    /// The minimum round trip of a connection, or of a flow of datagrams.
    pub(crate) fn rtt_of(&self, index: u32, class: usize) -> Time {
        let routes = &self.network.routes[index as usize];
        let [there, back] = [Role::Client, Role::Server].map(|side| routes.of(side).access_delay);
        self.paths[self.classes[class].path].delay + there + back
    }

    /// The end of the run: counts what goes on, and checks that no segment was lost or made.
    pub(crate) fn check_conservation(&mut self) -> Result<(), RunError> {
        self.close_datagrams();
        for class in &self.classes {
            if let Some(failure) = class.source.failure() {
                let message = format!("traffic.{}.file: {failure}", class.name);
                return Err(RunError::Vectors(message));
            }
        }
        let mut claimed = 0;
        for index in 0..self.slots.len() {
            if let Some(connection) = &self.slots[index].connection {
                claimed += u64::from(connection.in_network);
                let flow = self.flow_of(index as u32, connection);
                self.metrics.on_still_open(&flow);
            }
        }
        let ports = &self.network.ports;
        let kept = ports.iter().map(Port::kept).sum();
        self.network.conservation.check(kept, claimed)?;
        for (port, name) in ports.iter().zip(&self.network.port_names) {
            port.check_conservation(&name.stream())?;
        }
        Ok(())
    }
}
