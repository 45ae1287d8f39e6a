//! Closed loop: users who fetch a page over parallel connections, think, and fetch the next.
//!
//! A user opens at most `parallel` connections at a time; when all connections of a page are over,
//! the user thinks. The primary server stays for a run of consecutive pages, then it is drawn anew.
//!
//! All sizes of a page are drawn when the page starts, in one order, and round-trip times in the
//! order in which its connections open: who a user is and what it fetches never depends on the order
//! in which its connections finish.

use aqmlab_net::{RandomStream, Time};

use crate::error::PopulationUnset;
use crate::model::ModelSource;
use crate::rtt::{Rank, Rtt};
use crate::script::{Action, Connect, Script};
use crate::setting::{HostCounts, Pair, Setting};

/// What users fetch, and how long they think.
pub(crate) trait Web: Send {
    /// Consecutive pages of a primary server.
    fn visit(&self, stream: &mut RandomStream) -> u32;

    /// The connections of a page: hands the server and the script of each to `fetch`, in the order
    /// in which they open. The page stands on server `primary` of `servers`.
    fn page(
        &self,
        primary: u32,
        servers: u32,
        stream: &mut RandomStream,
        fetch: &mut dyn FnMut(u32, Script),
    );

    /// A time to think.
    fn think(&self, stream: &mut RandomStream) -> Time;

    /// What is left of the think time of a user who is met at a random moment. Long think times
    /// are met in proportion to their length (the stationary residual of a renewal process).
    fn rest_of_think(&self, stream: &mut RandomStream) -> Time;
}

/// All users of a class; a user's token is its number.
pub(crate) struct Users<W> {
    web: W,
    parallel: u32,
    start_within: Option<Time>,
    hosts: HostCounts,
    rtt: Rtt,
    users: Vec<User>,
}

/// One person: their own random numbers, and the page that they are fetching.
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
    /// Servers and scripts of the page's connections that are still to be opened, the next one last.
    pending: Vec<(u32, Script)>,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same pages.
    rtts: RandomStream,
    /// When to begin; apart, so that the way to begin does not change the pages.
    starts: RandomStream,
}

impl<W: Web> Users<W> {
    /// So many users of this web. Without `start_within` they are met in the middle of their think
    /// times.
    pub(crate) fn new(
        web: W,
        users: Option<u32>,
        parallel: u32,
        start_within: Option<Time>,
        setting: &Setting<'_>,
    ) -> Result<Self, PopulationUnset> {
        let count = users.ok_or(PopulationUnset { field: "users" })?;
        let user = |token| {
            let (flipped, ordinal) = setting.direction.place(token);
            User {
                token,
                rank: Rank::Of {
                    index: token,
                    count,
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
        Ok(Self {
            web,
            parallel,
            start_within,
            hosts: setting.hosts,
            rtt: setting.rtt.clone(),
            users: (0..count).map(user).collect(),
        })
    }
}

impl<W: Web> ModelSource for Users<W> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for user in &mut self.users {
            let at = match self.start_within {
                Some(span) => Time::from_secs_f64(user.starts.uniform() * span.as_secs_f64()),
                None => self.web.rest_of_think(&mut user.starts),
            };
            let token = user.token;
            actions.push(Action::WakeAt { at, token });
        }
    }

    /// The user is done thinking.
    fn on_wake(&mut self, _now: Time, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.draw_page(&self.web, self.hosts);
        user.open_next(&self.rtt, actions);
    }

    /// A connection is over.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.open -= 1;
        while user.open < self.parallel && user.open_next(&self.rtt, actions) {}
        if user.open == 0 {
            let at = now.saturating_add(self.web.think(&mut user.stream));
            actions.push(Action::WakeAt { at, token });
        }
    }
}

impl User {
    fn draw_page(&mut self, web: &impl Web, hosts: HostCounts) {
        let servers = hosts.as_seen(self.flipped).servers;
        if self.pages_left == 0 {
            self.pages_left = web.visit(&mut self.stream);
            self.server = self.stream.below(servers as usize) as u32;
        }
        self.pages_left -= 1;
        let pending = &mut self.pending;
        let mut fetch = |server, script| pending.push((server, script));
        web.page(self.server, servers, &mut self.stream, &mut fetch);
        self.pending.reverse();
    }

    /// Opens the next connection of the page, if there is one.
    fn open_next(&mut self, rtt: &Rtt, actions: &mut Vec<Action>) -> bool {
        let Some((server, script)) = self.pending.pop() else {
            return false;
        };
        self.open += 1;
        let pair = Pair {
            client: self.client,
            server,
            flipped: self.flipped,
            rank: self.rank,
        };
        actions.push(Action::Connect(Connect {
            token: self.token,
            client: self.client,
            server,
            rtt: rtt.sample(pair, &mut self.rtts),
            flipped: self.flipped,
            script,
            limits: None,
            begins_with_tls: false,
        }));
        true
    }
}
