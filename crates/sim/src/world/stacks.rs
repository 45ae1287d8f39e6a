//! What happens to connections over datagrams: their ends are stacks, such as QUIC.

use aqmlab_net::Role;
use aqmlab_stacks::{End, Progress};
use aqmlab_tcp::{Events, Options, RoundTrip, SegmentKind};

use super::World;
use crate::breakdown::Causes;
use crate::engine::Engine;
use crate::event::Event;

impl<E: Engine> World<E> {
    /// An end of a connection over datagrams.
    pub(super) fn stack_mut(&mut self, index: u32, role: Role) -> Option<&mut End> {
        self.connections.get_mut(index)?.ends.stack_mut(role)
    }

    /// A datagram reaches the other end. Nothing happens if it is none of a connection.
    pub(super) fn stack_receives(&mut self, event: &Event) -> bool {
        let role = event.sender().other();
        let Some(connection) = self.connections.get_mut(event.conn) else {
            return false;
        };
        let Some(end) = connection.ends.stack_mut(role) else {
            return false;
        };
        self.network.count_delivered();
        let payload = self.payloads.take(event.seq);
        if E::Causes::ON {
            let causes = self.network.causes_mut();
            causes.datagram_arrives(event, self.now, end);
            self.network.take_options(event.options);
        }
        connection.in_network -= 1;
        if !connection.aborted {
            connection.last_event = self.now;
            end.receive(self.now, event.ecn(), &payload);
        }
        self.payloads.give_back(event.seq, payload);
        self.after_stack(event.conn, role);
        true
    }

    /// A timer of such an end may be due.
    pub(super) fn stack_timer(&mut self, index: u32, role: Role) {
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let Some(end) = connection.ends.stack_mut(role) else {
            return;
        };
        if end.deadline() <= self.now {
            if !end.is_complete() {
                connection.last_event = self.now;
            }
            let causes = self.network.causes_mut();
            causes.stack_expires(index, role, self.now);
            end.expire(self.now);
        }
        self.after_stack(index, role);
    }

    /// An end has been given something: its application hears of it, its datagrams leave, its timer
    /// is set.
    pub(super) fn after_stack(&mut self, index: u32, role: Role) {
        self.serve_stack(index, role);
        self.schedule(index, role);
        self.release_if_over(index);
    }

    /// Serves an end that has been given something, without its timer.
    #[inline(always)]
    pub(super) fn serve_stack(&mut self, index: u32, role: Role) {
        while let Some(connection) = self.connections.get_mut(index)
            && !connection.aborted
            && let Some(end) = connection.ends.stack_mut(role)
        {
            let progress = end.progress();
            let has_news = progress != Progress::default();
            if has_news {
                let events = Events {
                    established: progress.established,
                    received: progress.received,
                    eof: progress.finished,
                    failed: progress.failed,
                };
                let measured = self.span.contains(self.now);
                let mut ready = connection.app.on_events(role, events, measured);
                if progress.messages > 0 {
                    while let Some(number) = end.message() {
                        ready |= connection.app.player.on_object(role, number);
                    }
                }
                // Mostly it waits for more.
                if ready | events.eof | events.failed {
                    self.on_app_events(index, role, events, ready);
                    self.send_all(index, role);
                    continue;
                }
            }
            let informs = end.informs_by_sending();
            let sends = self.send_all(index, role);
            if !((sends || has_news) && informs) {
                break;
            }
        }
        self.notify_losses(Some(index));
        if E::Causes::ON
            && let Some(connection) = self.connections.get_mut(index)
            && let Some(end) = connection.ends.stack_mut(role)
        {
            let causes = self.network.causes_mut();
            causes.stack_acted(index, role, self.now, end);
        }
        self.count_stack(index, role);
    }

    /// Sends what an end has to send now. True if that was anything.
    #[inline(always)]
    fn send_all(&mut self, index: u32, role: Role) -> bool {
        let (now, network) = (self.now, &mut self.network);
        let Some(connection) = self.connections.get_mut(index) else {
            return false;
        };
        let Some(end) = connection.ends.stack_mut(role) else {
            return false;
        };
        if connection.aborted {
            return false;
        }
        let mut sent = 0;
        while let Some(burst) = end.transmit(now, self.payloads.room()) {
            let each = burst.datagram.max(1);
            while let Some((ticket, len)) = self.payloads.take_in(each) {
                let packet = ((len as isize + burst.left_out) as u16, burst.ecn);
                let mut event = Event::datagram(role, index, (ticket, 0), packet);
                if E::Causes::ON {
                    event.options = network.put_options(&Options::NONE);
                    let what = (event.ticket(), index, role);
                    let causes = network.causes_mut();
                    let datagram = self.payloads.peek(ticket);
                    event.ack = causes.datagram_leaves(what, now, end, datagram);
                }
                network.send(now, event);
                sent += 1;
            }
        }
        connection.in_network += sent;
        sent > 0
    }

    /// Counts what an end has measured and found lost.
    fn count_stack(&mut self, index: u32, role: Role) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let lost = connection.ends.losses(role);
        let Some(end) = connection.ends.stack_mut(role) else {
            return;
        };
        if role == Role::Server
            && let Some(time) = end.round_trip()
        {
            let state = end.state();
            let sample = RoundTrip {
                time,
                smoothed: state.round_trip,
                cwnd: state.cwnd,
            };
            self.network.on_round_trip(now, index, &sample);
        }
        let is_traced = connection.is_traced;
        for _ in 0..lost {
            self.network
                .on_retransmission(now, index, SegmentKind::Data);
        }
        if is_traced {
            self.trace(index, role);
        }
    }
}
