//! What happens to connections whose end points are not ours.

use aqmlab_net::{Role, Time};
use aqmlab_record::Flow;
use aqmlab_stacks::{End, HEADER, Progress};
use aqmlab_tcp::{Events, Options, RoundTrip, SegmentKind};
use aqmlab_traffic::{Connect, Script};

use super::World;
use crate::breakdown::Causes;
use crate::connection::Application;
use crate::engine::Engine;
use crate::event::Event;
use crate::guests::{Guest, Payloads};
use crate::hosts::{Ends, Headers};
use crate::network::Network;

/// UDP payload of an acknowledgement, about: for the round trip on an idle path.
const ACK: u32 = 35;

impl<E: Engine> World<E> {
    /// Opens a connection of a class between two ends that are not ours. `datagram`: UDP payload of a
    /// full one.
    pub(super) fn open_guest(
        &mut self,
        class: usize,
        connect: Connect,
        ends: [End; 2],
        datagram: u32,
    ) {
        let (path, dscp) = (self.classes[class].path, self.classes[class].dscp);
        let to = Ends {
            client: connect.client,
            server: connect.server,
            flipped: connect.flipped,
            rtt: connect.rtt,
        };
        let of_class = (class, path, dscp);
        let headers = Headers::Datagram(HEADER);
        let routes = self.hosts.routes(self.flows_opened, of_class, &to, headers);
        let index = self.connections.take_slot(routes, &mut self.network);
        let propagation = routes.round_trip(self.hosts.link_delay(path));
        let sizes = [datagram + HEADER, ACK + HEADER];
        self.network.set_idle_round_trip(index, propagation, sizes);
        if matches!(connect.script, Script::Open(_)) {
            self.note_open_script(class, connect.token, index);
        }
        let is_traced = self.follows(class, index, &connect);
        let guest = Guest {
            ends,
            timer_at: [Time::NEVER; 2],
            in_network: 0,
            class: class as u16,
            aborted: false,
            stopped: false,
            is_traced,
            last_event: self.now,
            lost: 0,
            app: Application::new(connect, self.now),
        };
        if E::Causes::ON && guest.app.player.may_answer() {
            let flow = self.network.routes(index).flow();
            self.network.causes_mut().opens(index, self.now, flow);
        }
        self.guests.put(index, guest);
        self.serve_guest(index, Role::Client);
        // As for a connection of ours: the first datagrams have their way before them.
        if self.shifted_clocks && self.classes[class].may_be_shifted() {
            self.network.routes_mut(index).shift_clocks();
        }
        self.rearm_guest(index, Role::Client);
    }

    /// A datagram reaches the other end; nothing happens if there is no such connection.
    pub(super) fn guest_receives(&mut self, event: &Event) -> bool {
        if self.guests.get(event.conn).is_none() {
            return false;
        }
        let role = event.sender().other();
        self.network.count_delivered();
        let payload = self.guests.payloads.take(event.seq);
        if E::Causes::ON {
            if let Some(guest) = self.guests.get(event.conn) {
                let end = &guest.ends[role as usize];
                let causes = self.network.causes_mut();
                causes.datagram_arrives(event, self.now, end);
            }
            self.network.take_options(event.options);
        }
        if let Some(guest) = self.guests.get_mut(event.conn) {
            guest.in_network -= 1;
            if !guest.aborted {
                guest.last_event = self.now;
                guest.ends[role as usize].receive(self.now, event.ecn(), &payload);
            }
        }
        self.guests.payloads.give_back(event.seq, payload);
        self.after_guest(event.conn, role);
        true
    }

    /// A timer of such an end may be due.
    pub(super) fn guest_timer(&mut self, time: Time, role: Role, event: &Event) {
        if !self.connections.is_current(event) {
            return;
        }
        let Some(guest) = self.guests.get_mut(event.conn) else {
            return;
        };
        let (_, now) = self.network.at_host(time, event.conn, role);
        if guest.aborted || guest.timer_at[role as usize] != now {
            return;
        }
        guest.timer_at[role as usize] = Time::NEVER;
        self.now = now;
        let end = &mut guest.ends[role as usize];
        if end.deadline() <= now {
            if !end.is_complete() {
                guest.last_event = now;
            }
            self.network
                .causes_mut()
                .stack_expires(event.conn, role, now);
            end.expire(now);
        }
        self.after_guest(event.conn, role);
    }

    /// The pause of an application at such an end is over.
    pub(super) fn guest_resumes(&mut self, time: Time, role: Role, event: &Event) {
        if !self.connections.is_current(event) {
            return;
        }
        let Some(guest) = self.guests.get_mut(event.conn) else {
            return;
        };
        if guest.aborted {
            return;
        }
        self.now = time - self.network.clock_shift(event.conn);
        guest.last_event = self.now;
        let causes = self.network.causes_mut();
        causes.resumes(event.conn, role, self.now);
        self.play(event.conn, role);
        self.after_guest(event.conn, role);
    }

    /// An end has been given something: its application hears of it, its datagrams leave, its timer
    /// is set.
    pub(super) fn after_guest(&mut self, index: u32, role: Role) {
        self.serve_guest(index, role);
        self.rearm_guest(index, role);
    }

    /// Serves an end that has been given something, without its timer.
    #[inline(always)]
    fn serve_guest(&mut self, index: u32, role: Role) {
        while let Some((guest, payloads)) = self.guests.with_payloads(index)
            && !guest.aborted
        {
            let end = &mut guest.ends[role as usize];
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
                let mut ready = guest.app.on_events(role, events, measured);
                if progress.messages > 0 {
                    while let Some(number) = end.message() {
                        ready |= guest.app.player.on_object(role, number);
                    }
                }
                // Mostly it waits for more.
                if ready | events.eof | events.failed {
                    self.on_app_events(index, role, events, ready);
                    if let Some((guest, payloads)) = self.guests.with_payloads(index) {
                        send_all(guest, payloads, (index, role), self.now, &mut self.network);
                    }
                    continue;
                }
            }
            let sends = send_all(guest, payloads, (index, role), self.now, &mut self.network);
            if !((sends || has_news) && guest.ends[role as usize].informs_by_sending()) {
                break;
            }
        }
        self.notify_losses(Some(index));
        if E::Causes::ON
            && let Some(guest) = self.guests.get(index)
        {
            let causes = self.network.causes_mut();
            causes.stack_acted(index, role, self.now, &guest.ends[role as usize]);
        }
        self.count_guest(index, role);
    }

    /// Sets the timer of an end, or forgets the connection if it is over.
    #[inline(always)]
    fn rearm_guest(&mut self, index: u32, role: Role) {
        let Some(guest) = self.guests.get_mut(index) else {
            return;
        };
        let wake = guest.schedule(role, self.now);
        let may_be_over = guest.in_network == 0;
        if let Some(wake) = wake {
            self.push_timer(index, role, wake);
        }
        if may_be_over {
            self.release_if_over(index);
        }
    }

    /// Counts what an end has measured and found lost.
    fn count_guest(&mut self, index: u32, role: Role) {
        let now = self.now;
        let Some(guest) = self.guests.get_mut(index) else {
            return;
        };
        let end = &mut guest.ends[role as usize];
        let lost = end.losses();
        guest.lost += lost;
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
        for _ in 0..lost {
            self.network
                .on_retransmission(now, index, SegmentKind::Data);
        }
        if guest.is_traced && role == Role::Server {
            self.trace_guest(index);
        }
    }

    #[cold]
    fn trace_guest(&mut self, index: u32) {
        let is_due = self.tracer.is_due(index, self.now);
        if !is_due && self.watch.is_empty() {
            return;
        }
        if let Some(guest) = self.guests.get_mut(index) {
            let (class, probe) = (guest.class.into(), guest.probe(Role::Server, self.now));
            self.show(index, is_due, class, probe);
        }
    }

    /// A datagram was dropped or lost, if it is one of such a connection.
    pub(super) fn guest_loses(&mut self, event: &Event, time: Time) -> bool {
        let Some(guest) = self.guests.get_mut(event.conn) else {
            return false;
        };
        guest.in_network -= 1;
        let class = usize::from(guest.class);
        self.guests.payloads.forget(event.seq);
        self.segment_lost(time, class, event);
        true
    }

    /// The hosts forget the connections of a class.
    pub(super) fn stop_guests(&mut self, class: usize) {
        let of_class = self.guests.iter().filter_map(|(index, guest)| {
            (usize::from(guest.class) == class && !guest.aborted).then_some(index)
        });
        let open: Vec<u32> = of_class.collect();
        for index in open {
            self.stop_guest(index);
            self.release_if_over(index);
        }
    }

    /// The hosts forget a connection.
    fn stop_guest(&mut self, index: u32) {
        if let Some(guest) = self.guests.get_mut(index) {
            (guest.aborted, guest.stopped) = (true, true);
            guest.last_event = self.now;
        }
    }

    /// The time has come for such a connection to end.
    pub(super) fn guest_stops(&mut self, time: Time, event: &Event) {
        let goes_on = self.guests.get(event.conn).is_some_and(|it| !it.aborted);
        if goes_on && self.connections.is_current(event) {
            self.now = time - self.network.clock_shift(event.conn);
            self.stop_guest(event.conn);
            self.report(event.conn);
            self.release_if_over(event.conn);
        }
    }

    /// Forgets such a connection, which is over.
    pub(super) fn release_guest(&mut self, index: u32) {
        let Some(guest) = self.guests.get(index) else {
            return;
        };
        if guest.is_traced {
            self.tracer.forget(index);
            self.watch.forget(index);
        }
        self.metrics.on_closed(&self.flow_of_guest(index, guest));
        self.guests.remove(index);
        self.connections.remove(index);
        self.network.causes_mut().closes(index);
    }

    /// What such a connection has done so far.
    pub(super) fn flow_of_guest(&self, index: u32, guest: &Guest) -> Flow {
        let class = usize::from(guest.class);
        let routes = self.network.routes(index);
        let (response_bytes, request_bytes) = guest.app.received();
        Flow {
            flow: routes.flow(),
            class,
            start: guest.app.connected_at,
            rtt: routes.round_trip(self.hosts.link_delay(self.classes[class].path)),
            end: guest.last_event,
            request_bytes,
            response_bytes,
            measured_bytes: guest.app.measured_bytes,
            retransmissions: guest.retransmissions(),
            delayed_by: guest.app.delayed_by,
            has_fast_retransmit: guest.lost > 0,
            failed: guest.aborted && !guest.stopped,
        }
    }
}

/// Sends what an end of the connection in this slot has to send now. True if that was anything.
#[inline(always)]
fn send_all<E: Engine>(
    guest: &mut Guest,
    payloads: &mut Payloads,
    (index, role): (u32, Role),
    now: Time,
    network: &mut Network<E>,
) -> bool {
    if guest.aborted {
        return false;
    }
    let end = &mut guest.ends[role as usize];
    let mut sent = 0;
    while let Some(burst) = end.transmit(now, payloads.room()) {
        let each = burst.datagram.max(1);
        while let Some((ticket, len)) = payloads.take_in(each) {
            let packet = ((len as isize + burst.left_out) as u16, burst.ecn);
            let mut event = Event::datagram(role, index, (ticket, 0), packet);
            if E::Causes::ON {
                event.options = network.put_options(&Options::NONE);
                let what = (event.ticket(), index, role);
                let causes = network.causes_mut();
                let datagram = payloads.peek(ticket);
                event.ack = causes.datagram_leaves(what, now, end, datagram);
            }
            network.send(now, event);
            sent += 1;
        }
    }
    guest.in_network += sent;
    sent > 0
}
