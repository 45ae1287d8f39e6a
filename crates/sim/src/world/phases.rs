//! What happens when congestion controls enter phases.

use aqmlab_net::{Role, Time};
use aqmlab_record::TraceRow;
use aqmlab_scenario::{Change, Effect};
use aqmlab_tcp::Probe;
use aqmlab_traffic::Connect;

use super::{Steps, World};
use crate::engine::Engine;
use crate::event::Event;

impl<E: Engine> World<E> {
    /// A connection opens: whether it is followed from now on, for its trace or for its phases.
    #[inline]
    pub(super) fn follows(&mut self, class: usize, index: u32, connect: &Connect) -> bool {
        let is_traced = self.tracer.wants(class, self.now, &connect.script);
        if is_traced {
            self.tracer.follow(index);
        }
        is_traced | self.watch.wants(class, connect.token, index)
    }

    /// What a followed connection is like just now: that may be what something waits for, and is a row
    /// of its trace if that `is_due`.
    pub(super) fn show(&mut self, index: u32, is_due: bool, class: usize, probe: Probe) {
        let phase = probe.control_state.map_or("", |state| state.phase);
        for (number, time) in self.watch.see(index, phase, self.now) {
            self.network.push(time, Event::change(number));
        }
        if is_due {
            self.metrics.trace(&TraceRow {
                flow: self.network.routes(index).flow(),
                class,
                time: self.now,
                probe,
            });
        }
    }

    /// The time has come for a change that a phase has caused.
    #[cold]
    pub(super) fn change_at_phase(&mut self, time: Time, number: u32) {
        self.now = time;
        match self.watch.effect(number) {
            Effect::Link(port, change) => {
                self.record_samples_before(time);
                self.network.change_port(time, port, &change);
            }
            Effect::Value(change) => {
                let change = Change {
                    at: Some(time),
                    ..change
                };
                if let Err(error) = self.change(change) {
                    self.watch.fail(error);
                }
            }
            Effect::Pause(class, length) => self.pause(class, length),
        }
    }

    /// The applications of a class write nothing for so long.
    fn pause(&mut self, class: usize, length: Time) {
        let now = self.now;
        let open = self.connections.of_class(class);
        let open: Vec<u32> = open.map(|(index, _)| index).collect();
        for index in open {
            let is_asked = self.application(index).player.pause(now, length);
            // A stack over datagrams sends what it has been given.
            if is_asked && self.stack_mut(index, Role::Server).is_none() {
                self.play_on(index, Role::Server);
            }
        }
    }
}
