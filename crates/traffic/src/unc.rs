//! Closed loop: web users whose pages come from several servers, some over persistent connections.
//!
//! F. D. Smith, F. Hernández-Campos, K. Jeffay, D. Ott, "What TCP/IP Protocol Headers Can Tell Us
//! About the Web", SIGMETRICS 2001, as driven in L. Le's dissertation (University of North Carolina,
//! 2005). The distributions are a reconstruction: `data/unc2001/README.md`.
//!
//! A user thinks, fetches the top-level object of a page from its primary server, then the embedded
//! objects from all servers of the page, over at most `parallel` connections at once. A connection
//! is persistent or not. A persistent one fetches, one after the other, all objects of the page
//! that are still to come from its server when it opens; others fetch one. The primary server stays
//! for a run of consecutive pages, then it is drawn anew. Servers answer at once; clients close
//! persistent connections, servers the others.
//!
//! Departures from the dissertation:
//!
//! - a connection ends with its page, where a persistent one of the original could wait for the next
//!   page of the same server; the share of persistent connections is chosen so that the published
//!   shares of connections, objects and bytes hold all the same;
//! - when the first connection of a page is persistent, the others open when it has ended.
//!
//! All random numbers of a page are drawn when the page starts, in one order: who a user is and
//! what it fetches never depends on the order in which its connections finish.

mod numbers;
mod params;

use aqmlab_net::{RandomStream, Role, Time};

use crate::params::Rtt;
use crate::script::{Action, Connect, Exchange, HostCounts, Script};
use crate::source::{PopulationUnset, Setting};
use numbers::Numbers;

pub use params::UncWeb;

/// All users of a class; a user's token is its number.
#[derive(Clone, Debug)]
pub(crate) struct UncUsers {
    web: Web,
    users: Vec<User>,
}

/// What all users share.
#[derive(Clone, Debug)]
struct Web {
    params: UncWeb,
    hosts: HostCounts,
    rtt: Rtt,
    numbers: Numbers,
}

/// One person: their own random numbers, and the page that they are fetching.
#[derive(Clone, Debug)]
struct User {
    token: u32,
    flipped: bool,
    client: u32,
    /// The primary server, and pages still to come from it.
    server: u32,
    pages_left: u32,
    /// Open connections.
    open: u32,
    /// Connections of the page that are still to be opened, the next one last.
    pending: Vec<Connect>,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same pages.
    rtts: RandomStream,
    /// When to begin; apart, so that the way to begin does not change the pages.
    starts: RandomStream,
}

impl UncUsers {
    pub(crate) fn new(params: &UncWeb, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let number = params.users.ok_or(PopulationUnset { field: "users" })?;
        let web = Web {
            params: params.clone(),
            hosts: setting.hosts,
            rtt: setting.rtt.clone(),
            numbers: Numbers::shipped(),
        };
        let stream = |name: &str, token| {
            let name = format!("{}/{name}", setting.class);
            RandomStream::new(setting.seed, &name, u64::from(token))
        };
        let user = |token| {
            let (flipped, ordinal) = setting.direction.place(token);
            User {
                token,
                flipped,
                client: ordinal % setting.hosts.as_seen(flipped).clients,
                server: 0,
                pages_left: 0,
                open: 0,
                pending: Vec::new(),
                stream: stream("user", token),
                rtts: stream("rtts", token),
                starts: stream("starts", token),
            }
        };
        let users = (0..number).map(user).collect();
        Ok(Self { web, users })
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        let Web {
            params, numbers, ..
        } = &self.web;
        for user in &mut self.users {
            let at = match params.start_within {
                Some(span) => numbers::seconds(user.starts.uniform(), span.as_secs_f64()),
                None => numbers::seconds(numbers.think.rest(&mut user.starts), params.think_scale),
            };
            let token = user.token;
            actions.push(Action::WakeAt { at, token });
        }
    }

    /// The user is done thinking.
    pub(crate) fn on_wake(&mut self, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.draw_page(&self.web);
        user.open_next(actions);
    }

    /// A connection is over.
    pub(crate) fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.open -= 1;
        while user.open < self.web.params.parallel && user.open_next(actions) {}
        if user.open == 0 {
            let think = self.web.numbers.think.sample(&mut user.stream);
            let think = numbers::seconds(think, self.web.params.think_scale);
            let at = now.saturating_add(think);
            actions.push(Action::WakeAt { at, token });
        }
    }
}

impl User {
    /// Draws everything about the next page: its objects, server by server, dealt out to
    /// connections.
    fn draw_page(&mut self, web: &Web) {
        let servers = web.hosts.as_seen(self.flipped).servers;
        if self.pages_left == 0 {
            self.pages_left = web.numbers.visit(&mut self.stream);
            self.server = self.stream.below(servers as usize) as u32;
        }
        self.pages_left -= 1;
        for (index, mut objects) in web.numbers.page(&mut self.stream).into_iter().enumerate() {
            let server = match index {
                0 => self.server,
                _ => self.stream.below(servers as usize) as u32,
            };
            while objects > 0 {
                let is_persistent = self.stream.uniform() < web.params.persistent;
                let number = if is_persistent { objects } else { 1 };
                objects -= number;
                let connect = self.draw_connection(web, server, number);
                self.pending.push(connect);
            }
        }
        // The connection with the top-level object comes first, the others by server: what a
        // browser finds in a page is mixed, but whose objects come first does not matter here.
        self.pending.reverse();
    }

    /// A connection that fetches so many objects from a server.
    fn draw_connection(&mut self, web: &Web, server: u32, objects: u32) -> Connect {
        let (client, flipped) = (self.client, self.flipped);
        let is_persistent = objects > 1;
        let exchanges = (0..objects).map(|_| web.exchange(is_persistent, &mut self.stream));
        let closer = if is_persistent {
            Role::Client
        } else {
            Role::Server
        };
        let script = Script::new(exchanges.collect(), closer);
        Connect {
            token: self.token,
            client,
            server,
            rtt: web.rtt.sample(client, server, flipped, &mut self.rtts),
            flipped,
            script,
            limits: None,
        }
    }

    /// Opens the next connection of the page, if there is one.
    fn open_next(&mut self, actions: &mut Vec<Action>) -> bool {
        let Some(connect) = self.pending.pop() else {
            return false;
        };
        self.open += 1;
        actions.push(Action::Connect(connect));
        true
    }
}

impl Web {
    /// Request and response of an object.
    fn exchange(&self, is_persistent: bool, stream: &mut RandomStream) -> Exchange {
        let factor = &self.numbers.response_factor;
        let factor = if is_persistent {
            factor.persistent
        } else {
            factor.other
        };
        let request = self.numbers.request.sample(stream);
        let response = self.numbers.response.sample(stream) * factor * self.params.response_scale;
        Exchange::new(
            (request.round() as u64).max(1),
            (response.round() as u64).max(1),
        )
    }
}
