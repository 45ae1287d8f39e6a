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
//! All random numbers of a page are drawn when the page starts, in one order: who a user is and
//! what it fetches never depends on the order in which its connections finish.

mod numbers;

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Role, Time};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{
    Changing, ModelParameters, ModelSource, OpenFile, Opening, PopulationKey, whole,
};
use crate::rtt::{Rank, Rtt};
use crate::script::{Action, Connect, Exchange, Script};
use crate::setting::{HostCounts, Pair, Setting};
use numbers::Numbers;

/// Web users after Smith et al. 2001, as Le's dissertation of 2005 drove them: pages of objects
/// from several servers over parallel connections, some of them persistent. Reconstructed.
#[parameters]
pub struct UncWeb {
    /// Number of users; left out: calibrated from `load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(least = 1)]
    pub users: Option<u32>,
    /// Connections that a user keeps open at once.
    #[param(default = 2, least = 1)]
    pub parallel: u32,
    /// Probability that a connection is persistent: it fetches all that is left of a page on its
    /// server, one object after the other. Others fetch one object.
    #[param(default = 0.245, least = 0.0, most = 1.0)]
    pub persistent: f64,
    /// Factor on every think time.
    #[param(default = 1.0, above = 0.0)]
    pub think_scale: f64,
    /// Factor on every response size.
    #[param(default = 1.0, above = 0.0)]
    pub response_scale: f64,
    /// Users begin their first page at random within this time. Left out: they are met in the
    /// middle of their think times, as if they had browsed for long, so that no rush begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Time>,
}

impl Parameters for UncWeb {
    const ABOUT: About = About {
        title: "UNC web users",
        paper: "F. D. Smith, F. Hernández-Campos, K. Jeffay, D. Ott, What TCP/IP Protocol Headers \
                Can Tell Us About the Web, SIGMETRICS 2001, as driven in L. Le, Investigating the \
                Effects of Active Queue Management on the Performance of TCP Applications, \
                dissertation, University of North Carolina, 2005, sections 3.2 and 3.3; \
                reconstructed",
        purpose: "Closed loop: a fixed number of users who think, fetch the top-level object of a \
                  page and then its embedded objects from several servers, some over persistent \
                  connections.",
        departures: &[
            "A connection ends with its page, where a persistent one of the original could wait \
             for the next page of the same server; the share of persistent connections is chosen \
             so that the published shares of connections, objects and bytes hold all the same.",
            "When the first connection of a page is persistent, the others open when it has ended.",
            "Top-level and embedded objects have one distribution of responses: nothing published \
             separates them.",
        ],
        memory: "one entry for each user, and the connections of the page that is being fetched",
    };
}

impl ModelParameters for UncWeb {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "unc-web"
users = 19040
direction = "both"
tcp = "freebsd-4.5"
rtt = { kind = "uniform", min = "10 ms", max = "150 ms" }
"#
    }

    fn population_key(&self) -> PopulationKey {
        PopulationKey::USERS
    }

    fn population(&self) -> Option<f64> {
        self.users.map(f64::from)
    }

    fn set_population(&mut self, population: f64) {
        self.users = Some(whole(population));
    }

    fn changing(&self) -> Changing {
        Changing::Members
    }

    fn opening(&self) -> Opening {
        Opening::ClosedLoop
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(UncWebSource::new(self, setting)?))
    }
}

/// All users of a class; a user's token is its number.
#[derive(Clone, Debug)]
struct UncWebSource {
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
    rank: Rank,
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

impl UncWebSource {
    fn new(params: &UncWeb, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let number = params.users.ok_or(PopulationUnset { field: "users" })?;
        let web = Web {
            params: params.clone(),
            hosts: setting.hosts,
            rtt: setting.rtt.clone(),
            numbers: Numbers::shipped(),
        };
        let user = |token| {
            let (flipped, ordinal) = setting.direction.place(token);
            User {
                token,
                rank: Rank::Of {
                    index: token,
                    count: number,
                },
                flipped,
                client: ordinal % setting.hosts.as_seen(flipped).clients,
                server: 0,
                pages_left: 0,
                open: 0,
                pending: Vec::new(),
                stream: setting.stream("user", token),
                rtts: setting.stream("rtts", token),
                starts: setting.stream("starts", token),
            }
        };
        let users = (0..number).map(user).collect();
        Ok(Self { web, users })
    }
}

impl ModelSource for UncWebSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
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
    fn on_wake(&mut self, _now: Time, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.draw_page(&self.web);
        user.open_next(actions);
    }

    /// A connection is over.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
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
        let pair = Pair {
            client,
            server,
            flipped,
            rank: self.rank,
        };
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
            rtt: web.rtt.sample(pair, &mut self.rtts),
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
