//! Closed loop: web users who fetch pages over HTTP/1.0.
//!
//! B. Mah, "An Empirical Model of HTTP Network Traffic", INFOCOM 1997, as driven in M.
//! Christiansen, K. Jeffay, D. Ott, F. D. Smith, "Tuning RED for Web Traffic", SIGCOMM 2000.
//!
//! A user fetches the primary file of a page, then its embedded files, with a connection for each
//! (`users`). All files of a page are on one server, which answers at once.
//!
//! The tail of the reply sizes is parametric with `replies = "christiansen2000"`; see
//! `data/mah1997/README.md`.

mod tables;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Time};
use serde::{Deserialize, Serialize};

use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::script::Script;
use crate::setting::Setting;
use crate::users::{Users, Web};
use tables::{Kind, ReplySizes, Tables};

/// Web users after Mah's empirical model of 1995 traffic, as Christiansen et al. 2000 used it.
#[parameters]
pub struct MahWeb {
    /// Number of users. Default: computed from `load`.
    #[param(least = 1, unwritten)]
    pub users: Option<u32>,
    /// Connections that a user keeps open at once for the embedded files of a page.
    #[param(default = 2, least = 1)]
    pub parallel: u32,
    /// Maximum think time. aqmlab replaces longer times by this value. The default gives the
    /// paper's request rate.
    #[param(default = "445.5 s")]
    pub think_cap: Time,
    /// Distribution of reply sizes.
    #[param(default)]
    pub replies: Replies,
    /// Factor on every reply size.
    #[param(default = 1.0, above = 0.0)]
    pub reply_scale: f64,
    /// Each user starts the first page at a random time within this span. Default: each user
    /// starts in the middle of a think time, which avoids a burst of requests.
    #[param(unwritten)]
    pub start_within: Option<Time>,
}

/// Distribution of web reply sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// Mah's table up to its 90th percentile, then bounded Pareto tails fitted to Christiansen et
    /// al. 2000.
    #[default]
    Christiansen2000,
    /// Mah's table as published, for primary and embedded files alike.
    Mah1997,
}

impl Parameters for MahWeb {
    const ABOUT: About = About {
        title: "Web users after Mah",
        paper: "B. Mah, An Empirical Model of HTTP Network Traffic, INFOCOM 1997; M. Christiansen \
                et al., Tuning RED for Web Traffic, SIGCOMM 2000, sections 3.2 to 3.4 and table 2",
        purpose: "Closed loop: users think, fetch the primary file of a page, then its embedded \
                  files, one connection for each (HTTP/1.0).",
        departures: &[
            "Mah's table has think times of up to a day. Without the cap users make 16 requests in \
             70 minutes. With the cap they make 139, as in the paper.",
            "The number of files includes the primary file. ns-2's script fetches one more.",
        ],
        memory: "one entry for each user, and the files of the page that the user fetches",
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

    population!(users in "users", ClosedLoop, Members);

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        if cfg!(target_family = "wasm") {
            return Err(SourceError::NoTables);
        }
        let pages = Pages {
            think_cap: self.think_cap,
            replies: ReplySizes::new(self.replies),
            reply_scale: self.reply_scale,
            tables: Tables::mah1997(),
        };
        let users = Users::new(pages, self.users, self.parallel, self.start_within, setting)?;
        Ok(Box::new(users))
    }
}

/// The pages of Mah, and the think times.
struct Pages {
    think_cap: Time,
    replies: ReplySizes,
    reply_scale: f64,
    tables: Tables,
}

impl Web for Pages {
    fn visit(&self, stream: &mut RandomStream) -> u32 {
        self.tables.consecutive_pages.sample(stream) as u32
    }

    /// A connection for each file, the primary one first.
    fn page(
        &self,
        primary: u32,
        _servers: u32,
        stream: &mut RandomStream,
        fetch: &mut dyn FnMut(u32, Script),
    ) {
        let files = self.tables.files_per_page.sample(stream) as usize;
        for index in 0..files {
            let kind = if index == 0 {
                Kind::Primary
            } else {
                Kind::Embedded
            };
            let request = (self.tables.request.sample(stream) as u64).max(1);
            let reply = self.replies.sample(kind, stream) * self.reply_scale;
            let reply = (reply.round() as u64).max(1);
            fetch(primary, Script::single(request, reply));
        }
    }

    fn think(&self, stream: &mut RandomStream) -> Time {
        Time::from_secs_f64(self.tables.think_s.sample(stream)).min(self.think_cap)
    }

    fn rest_of_think(&self, stream: &mut RandomStream) -> Time {
        if self.think_cap == Time::ZERO {
            return Time::ZERO;
        }
        let longest = self.think_cap.as_secs_f64();
        loop {
            let think = self.think(stream).as_secs_f64();
            if stream.uniform() * longest < think {
                return Time::from_secs_f64(stream.uniform() * think);
            }
        }
    }
}
