//! Plays a script: who sends what, and what it waits for before it does.

use std::borrow::BorrowMut;

use aqmlab_net::{Role, Time};

use crate::page::Next;
use crate::script::{Exchange, Script, Step};
use crate::sizes::ENDLESS;
use crate::written::Due;

/// The applications at both ends of a connection, playing its [`Script`].
///
/// It has no clock and no transport. Its caller tells it what a transport has brought
/// ([`on_delivery`](Self::on_delivery)) and asks it for the next [`AppAction`]
/// ([`next`](Self::next)) when an end need not wait any longer: when it has received what it waited
/// for, when its pause is over, and after every action that is none of waiting. A caller that has
/// only one of the ends, as a host has, asks for that one alone.
#[derive(Debug)]
pub struct Player<S> {
    script: S,
    /// How far client and server have come.
    ends: [Progress; 2],
    /// When the exchange under way began: the first one with the connect.
    asked_at: Time,
    /// Bytes of its request, and what the client had received before it.
    request_bytes: u64,
    received_before: u64,
}

/// How far an end has come in its program.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Bytes that it has received, and those that it waits for or has waited for.
    received: u64,
    expected: u64,
    /// Number of its next step.
    step: u32,
    waits_for: WaitsFor,
    /// The other end has closed.
    closed: bool,
}

/// What an end waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WaitsFor {
    /// The handshake.
    #[default]
    Connection,
    /// Bytes: as many as it expects.
    Bytes,
    /// The close of the other end.
    Close,
    /// The end of a pause; or nothing any more.
    Other,
}

/// What a transport has brought to an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The handshake is complete.
    pub established: bool,
    /// So many more bytes have arrived.
    pub bytes: u64,
    /// The other end has closed.
    pub closed: bool,
}

/// What an application does: what its network has to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppAction {
    /// It waits for a delivery.
    Wait,
    /// It waits for so much time to pass.
    Pause(Time),
    /// It writes so many bytes; and closes if they are the last: then its program has ended.
    Write {
        /// How many; none where it only closes.
        bytes: u64,
        /// Nothing is written after them.
        close: bool,
    },
    /// It takes back what has been written and not sent.
    Withdraw,
    /// A client asks for an object on a stream of its own.
    Fetch {
        /// Number of the object in its page.
        number: u32,
        /// Bytes of the request.
        bytes: u64,
    },
    /// A server answers on the stream of a request.
    Answer {
        /// Number of the object in its page.
        number: u32,
        /// Bytes of the response.
        bytes: u64,
        /// How urgent it is: from 0, which goes first, to 7.
        urgency: u8,
    },
    /// An object has arrived.
    Loaded,
    /// An exchange has begun.
    Asked,
    /// An exchange is over.
    Answered(Answered),
    /// Its program has ended.
    End,
}

/// An exchange that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When it began.
    pub asked_at: Time,
    /// Bytes that the client has sent since then.
    pub request_bytes: u64,
    /// Bytes that it has received since then.
    pub response_bytes: u64,
}

impl Player<Script> {
    /// Adds an exchange to an open script; both ends have to be asked for their next action then.
    pub fn add(&mut self, exchange: Exchange) {
        if let Script::Open(exchanges) = &mut self.script {
            exchanges.push(exchange);
        }
    }
}

impl<S: BorrowMut<Script>> Player<S> {
    /// The server writes nothing from `now` on for so long, if it writes little by little. Whether it
    /// has to be asked for its next action then.
    pub fn pause(&mut self, now: Time, length: Time) -> bool {
        match self.script.borrow_mut() {
            Script::Written(written) => written.pause(now, length),
            _ => false,
        }
    }

    /// Both ends wait for the handshake of a connection that the client asks for now.
    pub fn new(script: S, now: Time) -> Self {
        Self {
            script,
            ends: [Progress::default(); 2],
            asked_at: now,
            request_bytes: 0,
            received_before: 0,
        }
    }

    /// The first exchange counts from `now` on, if the client has not sent any of it.
    pub fn begin(&mut self, now: Time) {
        if self.ends[Role::Client as usize].step == 0 {
            self.asked_at = now;
        }
    }

    /// Bytes that an end has received.
    pub const fn received(&self, end: Role) -> u64 {
        self.ends[end as usize].received
    }

    /// Whether an end waits for bytes that have not arrived.
    pub fn awaits_bytes(&self, end: Role) -> bool {
        let end = &self.ends[end as usize];
        end.waits_for == WaitsFor::Bytes && end.received < end.expected
    }

    /// Whether an exchange may be over later: not while an endless response is under way, and not
    /// behind the last answer of a script to which nobody adds.
    pub fn may_answer(&self) -> bool {
        let script = self.script.borrow();
        let next = self.ends[Role::Client as usize].step;
        match script {
            Script::Open(_) => true,
            Script::Single(exchange) if exchange.response >= ENDLESS => false,
            Script::Written(written) if written.is_endless() => false,
            _ => (next..)
                .map_while(|index| script.step(Role::Client, index))
                .any(|step| step == Step::Answered),
        }
    }

    /// An end hears of something. True if that is what it has waited for.
    pub fn on_delivery(&mut self, end: Role, delivery: Delivery) -> bool {
        let end = &mut self.ends[end as usize];
        end.received += delivery.bytes;
        end.closed |= delivery.closed;
        match end.waits_for {
            WaitsFor::Connection => delivery.established,
            WaitsFor::Bytes => end.received >= end.expected,
            WaitsFor::Close => end.closed,
            WaitsFor::Other => false,
        }
    }

    /// An end hears of bytes, and of nothing else: [`on_delivery`](Self::on_delivery) of most
    /// segments.
    #[inline(always)]
    pub fn on_bytes(&mut self, end: Role, bytes: u64) -> bool {
        let end = &mut self.ends[end as usize];
        end.received += bytes;
        match end.waits_for {
            WaitsFor::Bytes => end.received >= end.expected,
            WaitsFor::Close => end.closed,
            WaitsFor::Connection | WaitsFor::Other => false,
        }
    }

    /// An object has arrived on a stream of its own or, at the server, a request has. True if the end has
    /// waited for something like that.
    pub fn on_object(&mut self, end: Role, number: u32) -> bool {
        if let Script::Page(page) = self.script.borrow_mut() {
            page.loading.on_arrival(number);
        }
        self.ends[end as usize].waits_for == WaitsFor::Bytes
    }

    /// What an end does next, now that it need not wait any longer.
    #[inline(always)]
    pub fn next(&mut self, role: Role, now: Time) -> AppAction {
        let script = self.script.borrow_mut();
        let end = &mut self.ends[role as usize];
        while let Some(step) = script.step(role, end.step) {
            end.step += 1;
            match step {
                Step::Send(bytes) => {
                    let close = script.step(role, end.step) == Some(Step::Close);
                    if close {
                        end.step += 1;
                        end.waits_for = WaitsFor::Other;
                    }
                    if role == Role::Client {
                        self.request_bytes += bytes;
                    }
                    return AppAction::Write { bytes, close };
                }
                Step::Receive(bytes) => {
                    end.expected += bytes;
                    if end.received < end.expected {
                        end.waits_for = WaitsFor::Bytes;
                        return AppAction::Wait;
                    }
                }
                Step::ReceiveClose if end.closed => {}
                Step::ReceiveClose => {
                    end.waits_for = WaitsFor::Close;
                    return AppAction::Wait;
                }
                Step::Pause(Time::ZERO) => {}
                Step::Pause(time) => {
                    end.waits_for = WaitsFor::Other;
                    return AppAction::Pause(time);
                }
                Step::Ask => {
                    self.asked_at = now;
                    self.request_bytes = 0;
                    self.received_before = end.received;
                    return AppAction::Asked;
                }
                Step::Answered => {
                    return AppAction::Answered(Answered {
                        asked_at: self.asked_at,
                        request_bytes: self.request_bytes,
                        response_bytes: end.received - self.received_before,
                    });
                }
                Step::Produce => {
                    if let Some(action) = produce(script, end, now) {
                        return action;
                    }
                }
                Step::Load => {
                    if let Some(action) = load(script, (role, end), now) {
                        if let AppAction::Fetch { bytes, .. } | AppAction::Write { bytes, .. } =
                            action
                        {
                            self.request_bytes += bytes;
                        }
                        return action;
                    }
                }
                Step::Close => {
                    end.waits_for = WaitsFor::Other;
                    return AppAction::Write {
                        bytes: 0,
                        close: true,
                    };
                }
            }
        }
        end.waits_for = WaitsFor::Other;
        AppAction::End
    }
}

/// What an application that writes little by little does next; none if it has written all.
fn produce(script: &mut Script, end: &mut Progress, now: Time) -> Option<AppAction> {
    let Script::Written(written) = script else {
        return None;
    };
    end.waits_for = WaitsFor::Other;
    // It comes again until all is written.
    end.step -= 1;
    Some(match written.next(now) {
        Due::Write { bytes, last } => {
            if last {
                end.step += 2;
            }
            AppAction::Write { bytes, close: last }
        }
        Due::Pause(time) => AppAction::Pause(time),
        Due::Withdraw => AppAction::Withdraw,
        Due::Nothing => AppAction::Wait,
    })
}

/// What an end of a page does next, and its step goes on; none if the page is complete.
fn load(script: &mut Script, (role, end): (Role, &mut Progress), now: Time) -> Option<AppAction> {
    let Script::Page(played) = script else {
        return None;
    };
    let (page, loading) = (&played.page, &mut played.loading);
    end.waits_for = WaitsFor::Other;
    let (next, until) = match role {
        Role::Client => loading.client(page, end.received, now)?,
        Role::Server => (loading.server(page), u64::MAX),
    };
    // It hears of what arrives in a pause, too.
    end.waits_for = WaitsFor::Bytes;
    end.expected = until;
    end.step -= 1;
    Some(match next {
        Next::Wait => AppAction::Wait,
        Next::Parse(time) => AppAction::Pause(time),
        Next::Note => AppAction::Loaded,
        Next::Ask(number, bytes) => AppAction::Fetch { number, bytes },
        Next::AskAll(bytes) => AppAction::Write {
            bytes,
            close: false,
        },
        Next::Answer(number, object) => AppAction::Answer {
            number,
            bytes: object.response,
            urgency: object.urgency,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(5);

    fn bytes(bytes: u64) -> Delivery {
        Delivery {
            bytes,
            ..Delivery::default()
        }
    }

    const ESTABLISHED: Delivery = Delivery {
        established: true,
        bytes: 0,
        closed: false,
    };

    const CLOSED: Delivery = Delivery {
        established: false,
        bytes: 0,
        closed: true,
    };

    #[test]
    fn a_single_exchange_is_played_at_both_ends() {
        let mut player = Player::new(Script::single(10, 20), Time::from_secs(1));
        assert!(player.on_delivery(Role::Client, ESTABLISHED));
        let request = AppAction::Write {
            bytes: 10,
            close: false,
        };
        assert_eq!(player.next(Role::Client, NOW), request);
        assert_eq!(player.next(Role::Client, NOW), AppAction::Wait);

        assert!(player.on_delivery(Role::Server, ESTABLISHED));
        assert_eq!(player.next(Role::Server, NOW), AppAction::Wait);
        assert!(!player.on_delivery(Role::Server, bytes(9)));
        assert!(player.on_delivery(Role::Server, bytes(1)));
        let response = AppAction::Write {
            bytes: 20,
            close: true,
        };
        assert_eq!(player.next(Role::Server, NOW), response);
        // Who has closed waits for nothing.
        assert!(!player.on_bytes(Role::Server, 1));
        assert_eq!(player.next(Role::Server, NOW), AppAction::End);

        // The response ends with the server's close, not with its last byte.
        assert!(!player.on_delivery(Role::Client, bytes(20)));
        assert!(player.on_delivery(Role::Client, CLOSED));
        let answered = Answered {
            asked_at: Time::from_secs(1),
            request_bytes: 10,
            response_bytes: 20,
        };
        assert_eq!(
            player.next(Role::Client, NOW),
            AppAction::Answered(answered)
        );
        let close = AppAction::Write {
            bytes: 0,
            close: true,
        };
        assert_eq!(player.next(Role::Client, NOW), close);
        assert_eq!(player.next(Role::Client, NOW), AppAction::End);
        assert!(!player.on_delivery(Role::Client, bytes(1)));
    }

    #[test]
    fn what_came_before_it_was_waited_for_counts() {
        let pause = Time::from_secs(2);
        let exchange = Exchange {
            pause,
            ..Exchange::new(10, 20)
        };
        let script = Script::new(vec![exchange; 2], Role::Client);
        let mut player = Player::new(script, Time::ZERO);
        player.on_delivery(Role::Client, ESTABLISHED);
        player.next(Role::Client, NOW);
        // A response and a half, in one go and before the client waits.
        player.on_delivery(Role::Client, bytes(30));
        let mut actions = Vec::new();
        loop {
            match player.next(Role::Client, NOW) {
                AppAction::Wait => break,
                action => actions.push(action),
            }
        }
        let answered = Answered {
            asked_at: Time::ZERO,
            request_bytes: 10,
            response_bytes: 30,
        };
        let request = AppAction::Write {
            bytes: 10,
            close: false,
        };
        let expected = [
            AppAction::Answered(answered),
            AppAction::Pause(pause),
            AppAction::Asked,
            request,
        ];
        assert_eq!(actions, expected);
        // Ten of the second response's bytes are there.
        assert!(!player.on_delivery(Role::Client, bytes(9)));
        assert!(player.on_delivery(Role::Client, bytes(1)));
        let AppAction::Answered(second) = player.next(Role::Client, NOW) else {
            panic!("the second response is there");
        };
        assert_eq!((second.asked_at, second.response_bytes), (NOW, 10));
    }

    #[test]
    fn an_open_script_waits_for_more() {
        let write = |bytes| AppAction::Write {
            bytes,
            close: false,
        };
        let mut player = Player::new(Script::Open(vec![Exchange::new(10, 20)]), NOW);
        for role in Role::BOTH {
            assert!(player.on_delivery(role, ESTABLISHED));
        }
        assert_eq!(player.next(Role::Client, NOW), write(10));
        assert_eq!(player.next(Role::Client, NOW), AppAction::Wait);
        assert_eq!(player.next(Role::Server, NOW), AppAction::Wait);
        assert!(player.on_delivery(Role::Server, bytes(10)));
        assert_eq!(player.next(Role::Server, NOW), write(20));
        assert_eq!(player.next(Role::Server, NOW), AppAction::End);
        assert!(player.on_delivery(Role::Client, bytes(20)));
        let AppAction::Answered(_) = player.next(Role::Client, NOW) else {
            panic!("the response is there");
        };
        assert_eq!(player.next(Role::Client, NOW), AppAction::End);

        player.add(Exchange::new(30, 40));
        assert!(!player.awaits_bytes(Role::Client));
        assert_eq!(player.next(Role::Server, NOW), AppAction::Wait);
        assert_eq!(player.next(Role::Client, NOW), AppAction::Asked);
        assert_eq!(player.next(Role::Client, NOW), write(30));
        assert_eq!(player.next(Role::Client, NOW), AppAction::Wait);
        assert!(player.awaits_bytes(Role::Client));
        assert!(player.on_delivery(Role::Server, bytes(30)));
        assert_eq!(player.next(Role::Server, NOW), write(40));
    }
}
