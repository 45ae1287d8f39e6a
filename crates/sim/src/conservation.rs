//! The books: what is recorded of exchanges and connections, and the check that they balance.

use aqmlab_net::{Role, Time};

use crate::RunError;
use crate::connection::Connection;
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::network::Conservation;
use crate::port::Port;
use crate::recorder::{FlowRow, ResponseRow};
use crate::stats::FlowStats;
use crate::world::World;
use aqmlab_traffic::Answered;

/// The bytes that a client got in the measured span, in how much of it, and the minimum round trip.
struct Goodput {
    bytes: u64,
    span: Time,
    rtt: Time,
}

impl Goodput {
    fn count(&self, flows: &mut FlowStats) {
        flows.response_bytes += self.bytes;
        flows.add_goodput(self.bytes, self.span, self.rtt);
    }
}

impl<A: EventQueue> World<A> {
    pub(crate) fn record_response(&mut self, index: u32, exchange: &Answered) {
        if !self.window.contains(self.now) {
            return;
        }
        let (now, class) = (self.now, self.class_of(index));
        let flow = self.network.routes[index as usize].flow();
        let app = self.application(index);
        let row = ResponseRow {
            flow,
            class,
            start: exchange.asked_at,
            response: now - exchange.asked_at,
            request_bytes: exchange.request_bytes,
            response_bytes: exchange.response_bytes,
            client: app.client,
            server: app.server,
        };
        self.classes[class].responses.add(row.response);
        self.recorder.response(&row);
    }

    pub(crate) fn close_flow(&mut self, index: u32) {
        let slot = &self.slots[index as usize];
        let Some(connection) = &slot.connection else {
            return;
        };
        let (end, app) = (connection.last_event, &connection.app);
        let class = usize::from(connection.class);
        let goodput = self.goodput_of(index, connection, end);
        let flows = &mut self.classes[class].flows;
        goodput.count(flows);
        if !self.window.contains(end) {
            return;
        }
        let again = connection.retransmissions();
        let (response_bytes, request_bytes) = app.received();
        let failed = connection.failed && !connection.stopped;
        let duration = end - app.connected_at;
        flows.add_closed(again, app.delayed_by, duration, failed);
        flows.with_fast_retransmit += u64::from(connection.has_retransmitted_fast());
        self.recorder.flow(&FlowRow {
            flow: self.network.routes[index as usize].flow(),
            class,
            start: app.connected_at,
            duration,
            request_bytes,
            response_bytes,
            retransmitted_syn: again.syn,
            retransmitted_fin: again.fin,
            retransmitted_data: again.data,
            timeouts: again.timeouts,
            failed,
        });
    }

    /// What a connection that ended at `end` has done for its client.
    fn goodput_of(&self, index: u32, connection: &Connection, end: Time) -> Goodput {
        let app = &connection.app;
        Goodput {
            bytes: app.measured_bytes,
            span: self.window.overlap(app.connected_at, end),
            rtt: self.rtt_of(index, usize::from(connection.class)),
        }
    }

    /// A segment of a connection was dropped or lost.
    pub(crate) fn segment_lost(&mut self, time: Time, class: usize, event: &Event) {
        if event.len > 0 && self.window.contains(time) {
            let flows = &mut self.classes[class].flows;
            flows.see(|seen| seen.lost_segments += 1);
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
        let slots = std::mem::take(&mut self.slots);
        for (index, slot) in (0..).zip(&slots) {
            if let Some(connection) = &slot.connection {
                let goodput = self.goodput_of(index, connection, self.window.end);
                goodput.count(&mut self.classes[usize::from(connection.class)].flows);
            }
        }
        let claimed: u64 = slots
            .iter()
            .filter_map(|s| s.connection.as_ref())
            .map(|c| u64::from(c.in_network))
            .sum();
        let Conservation {
            sent,
            delivered,
            dropped,
            in_flight,
        } = self.network.conservation;
        let ports = &self.network.ports;
        let waiting = in_flight + ports.iter().map(Port::kept).sum::<u64>();
        if sent != delivered + dropped + waiting || claimed > waiting {
            return Err(RunError::Conservation(format!(
                "{sent} segments sent, but {delivered} delivered + {dropped} dropped or lost + \
                 {waiting} in flight (connections count {claimed})"
            )));
        }
        for (port, name) in ports.iter().zip(&self.network.port_names) {
            port.check_conservation(&name.stream())?;
        }
        Ok(())
    }
}
