//! What becomes of a class that has too many connections, or stops.

use crate::event_queue::EventQueue;
use crate::world::World;

impl<A: EventQueue> World<A> {
    /// A connection was not opened because its class has as many as it may.
    pub(crate) fn refused(&mut self, class: usize) {
        self.metrics.on_refused(class, self.now);
    }

    /// The hosts forget the connections of a class: nothing more is sent, what is on its way is
    /// ignored where it arrives, and the connections count as ended now.
    pub(crate) fn end_connections(&mut self, class: usize) {
        let now = self.now;
        for index in 0..self.slots.len() {
            let Some(connection) = self.slots[index].connection.as_mut() else {
                continue;
            };
            if usize::from(connection.class) != class || connection.failed {
                continue;
            }
            (connection.failed, connection.stopped) = (true, true);
            connection.last_event = now;
            self.release_if_over(index as u32);
        }
    }
}
