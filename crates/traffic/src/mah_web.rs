//! Closed loop: web users who fetch pages over HTTP/1.0.
//!
//! B. Mah, "An Empirical Model of HTTP Network Traffic", INFOCOM 1997, as driven in M.
//! Christiansen, K. Jeffay, D. Ott, F. D. Smith, "Tuning RED for Web Traffic", SIGCOMM 2000.
//!
//! A user fetches the primary file of a page, then its embedded files over at most `parallel`
//! connections, one per file; when all have come the user thinks, and fetches the next page. A
//! server is kept for a run of consecutive pages, then drawn anew. Servers answer at once.
//!
//! The tail of the reply sizes is parametric with `replies = "christiansen2000"`; see
//! `data/mah1997/README.md`.
//!
//! All random numbers of a page are drawn when the page starts, in one order: who a user is and
//! what it fetches never depends on the order in which its connections finish.

mod tables;

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{
    Changing, ModelParameters, ModelSource, OpenFile, Opening, PopulationKey, whole,
};
use crate::rtt::{Rank, Rtt};
use crate::script::{Action, Connect, Script};
use crate::setting::{HostCounts, Pair, Setting};
use tables::{Kind, ReplySizes, Tables};

/// Web users after Mah's empirical model of 1995 traffic, as Christiansen et al. 2000 drove it.
#[parameters]
pub struct MahWeb {
    /// Number of users; left out: calibrated from `load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(least = 1)]
    pub users: Option<u32>,
    /// Connections that a user keeps open at once for the files embedded in a page.
    #[param(default = 2, least = 1)]
    pub parallel: u32,
    /// Longest think time; longer ones of the table are cut to this. Left out: 445.5 s, which
    /// gives the paper's rate of requests (the table's longest is a day).
    #[param(default = "445.5 s")]
    pub think_cap: Time,
    /// Distribution of reply sizes.
    #[param(default)]
    pub replies: Replies,
    /// Factor on every reply size.
    #[param(default = 1.0, above = 0.0)]
    pub reply_scale: f64,
    /// Users begin their first page at random within this time. Left out: they are met in the
    /// middle of their think times, as if they had browsed for long, so that no rush begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Time>,
}

/// Distribution of web reply sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// Mah's table up to its 90th percentile, then bounded Pareto tails (one for primary, one for
    /// embedded files) fitted to the traffic that Christiansen et al. 2000 measured.
    #[default]
    Christiansen2000,
    /// Mah's table as published, one for primary and embedded files.
    Mah1997,
}

impl Parameters for MahWeb {
    const ABOUT: About = About {
        title: "Web users after Mah",
        paper: "B. Mah, An Empirical Model of HTTP Network Traffic, INFOCOM 1997, as driven in M. \
                Christiansen, K. Jeffay, D. Ott, F. D. Smith, Tuning RED for Web Traffic, SIGCOMM \
                2000, sections 3.2 to 3.4 and table 2",
        purpose: "Closed loop: a fixed number of users who think, fetch the primary file of a page \
                  and then its embedded files, one connection for each (HTTP/1.0). A slow network \
                  slows them down.",
        departures: &[
            "Mah's table has think times of up to a day. Uncapped, users would make 16 requests in \
             70 minutes where Christiansen et al. saw 139, and their rate would decay throughout a \
             run. The default cap gives the paper's rate.",
            "Replies of primary and embedded files differ, but the published table does not \
             separate them; hence one body for both kinds and a tail for each, with `replies = \
             \"christiansen2000\"`.",
            "A drawn length of zero counts as one byte.",
            "The number of files of a page includes the primary one (ns-2's script takes it as the \
             number of embedded files, one too many).",
        ],
        memory: "one entry for each user, and the files of the page that is being fetched",
    };
}

impl ModelParameters for MahWeb {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "mah-web"
users = 3332
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
        if cfg!(target_family = "wasm") {
            return Err(SourceError::NoTables);
        }
        Ok(Box::new(MahWebSource::new(self, setting)?))
    }
}

/// All users of a class; a user's token is its number.
#[derive(Clone, Debug)]
struct MahWebSource {
    web: Web,
    users: Vec<User>,
    start_within: Option<Time>,
}

/// What all users share.
#[derive(Clone, Debug)]
struct Web {
    parallel: u32,
    hosts: HostCounts,
    rtt: Rtt,
    think_cap: Time,
    replies: ReplySizes,
    reply_scale: f64,
    tables: Tables,
}

/// One person: their own random numbers, and the page that they are fetching.
#[derive(Clone, Debug)]
struct User {
    token: u32,
    rank: Rank,
    flipped: bool,
    client: u32,
    server: u32,
    /// Pages still to come from this server.
    pages_left: u32,
    /// Open connections.
    open: u32,
    /// Files of the page that are still to be asked for, the next one last.
    pending: Vec<File>,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same pages.
    rtts: RandomStream,
    /// When to begin; apart, so that the way to begin does not change the pages.
    starts: RandomStream,
}

/// One file of a page, and the connection that will fetch it.
#[derive(Clone, Copy, Debug)]
struct File {
    request: u64,
    reply: u64,
    rtt: Time,
}

impl MahWebSource {
    fn new(params: &MahWeb, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let number = params.users.ok_or(PopulationUnset { field: "users" })?;
        let web = Web {
            parallel: params.parallel,
            hosts: setting.hosts,
            rtt: setting.rtt.clone(),
            think_cap: params.think_cap,
            replies: ReplySizes::new(params.replies),
            reply_scale: params.reply_scale,
            tables: Tables::mah1997(),
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
        Ok(Self {
            web,
            users: (0..number).map(user).collect(),
            start_within: params.start_within,
        })
    }
}

impl ModelSource for MahWebSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for user in &mut self.users {
            let at = match self.start_within {
                Some(span) => Time::from_secs_f64(user.starts.uniform() * span.as_secs_f64()),
                None => self.web.rest_of_think_time(&mut user.starts),
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

    /// A file has come.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.open -= 1;
        while user.open < self.web.parallel && user.open_next(actions) {}
        if user.open == 0 {
            let at = now.saturating_add(self.web.think_time(&mut user.stream));
            actions.push(Action::WakeAt { at, token });
        }
    }
}

impl User {
    /// Draws everything about the next page.
    fn draw_page(&mut self, web: &Web) {
        let stream = &mut self.stream;
        if self.pages_left == 0 {
            self.pages_left = web.tables.consecutive_pages.sample(stream) as u32;
            let servers = web.hosts.as_seen(self.flipped).servers;
            self.server = stream.below(servers as usize) as u32;
        }
        self.pages_left -= 1;
        let files = web.tables.files_per_page.sample(stream) as usize;
        let pair = Pair {
            client: self.client,
            server: self.server,
            flipped: self.flipped,
            rank: self.rank,
        };
        for index in 0..files {
            let kind = if index == 0 {
                Kind::Primary
            } else {
                Kind::Embedded
            };
            self.pending.push(File {
                request: (web.tables.request.sample(stream) as u64).max(1),
                reply: web.reply(kind, stream),
                rtt: web.rtt.sample(pair, &mut self.rtts),
            });
        }
        self.pending.reverse();
    }

    /// Opens the connection for the next file of the page, if there is one.
    fn open_next(&mut self, actions: &mut Vec<Action>) -> bool {
        let Some(file) = self.pending.pop() else {
            return false;
        };
        self.open += 1;
        actions.push(Action::Connect(Connect {
            token: self.token,
            client: self.client,
            server: self.server,
            rtt: file.rtt,
            flipped: self.flipped,
            script: Script::single(file.request, file.reply),
            limits: None,
        }));
        true
    }
}

impl Web {
    fn think_time(&self, stream: &mut RandomStream) -> Time {
        Time::from_secs_f64(self.tables.think_s.sample(stream)).min(self.think_cap)
    }

    /// What is left of the think time of a user who is met at a random moment. Long think times
    /// are met in proportion to their length (the stationary residual of a renewal process).
    fn rest_of_think_time(&self, stream: &mut RandomStream) -> Time {
        if self.think_cap == Time::ZERO {
            return Time::ZERO;
        }
        let longest = self.think_cap.as_secs_f64();
        loop {
            let think = self.think_time(stream).as_secs_f64();
            if stream.uniform() * longest < think {
                return Time::from_secs_f64(stream.uniform() * think);
            }
        }
    }

    /// Bytes of a reply, scaled, at least 1.
    fn reply(&self, kind: Kind, stream: &mut RandomStream) -> u64 {
        let bytes = self.replies.sample(kind, stream);
        ((bytes * self.reply_scale).round() as u64).max(1)
    }
}
