//! Closed loop: web users whose pages come from several servers, some over persistent connections.
//!
//! F. D. Smith, F. Hernández-Campos, K. Jeffay, D. Ott, "What TCP/IP Protocol Headers Can Tell Us
//! About the Web", SIGMETRICS 2001, as driven in L. Le's dissertation (University of North Carolina,
//! 2005). The distributions are a reconstruction: `data/unc2001/README.md`.
//!
//! A user ([`users`](crate::users)) fetches the top-level object of a page from its primary server,
//! then the embedded objects from all servers of the page. A connection is persistent or not. A
//! persistent one fetches, one after the other, all objects of the page that are still to come from
//! its server when it opens; others fetch one. Servers answer at once; clients close persistent
//! connections, servers the others.

mod numbers;

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Role, Time};

use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::script::{Exchange, Script};
use crate::setting::Setting;
use crate::users::{Users, Web};
use numbers::Numbers;

/// Web users after Smith et al. 2001, as Le's dissertation of 2005 used them: pages of objects from
/// several servers over parallel connections, some of them persistent. Reconstructed.
#[parameters]
pub struct UncWeb {
    /// Number of users. Default: computed from `load`.
    #[param(least = 1, unwritten)]
    pub users: Option<u32>,
    /// Connections that a user keeps open at once.
    #[param(default = 2, least = 1)]
    pub parallel: u32,
    /// Probability that a connection fetches all remaining objects of a page from its server, one
    /// after another. Other connections fetch one object.
    #[param(default = 0.245, least = 0.0, most = 1.0)]
    pub persistent: f64,
    /// Factor on every think time.
    #[param(default = 1.0, above = 0.0)]
    pub think_scale: f64,
    /// Factor on every response size.
    #[param(default = 1.0, above = 0.0)]
    pub response_scale: f64,
    /// Each user starts the first page at a random time within this span. Default: each user
    /// starts in the middle of a think time, which avoids a burst of requests.
    #[param(unwritten)]
    pub start_within: Option<Time>,
}

impl Parameters for UncWeb {
    const ABOUT: About = About {
        title: "UNC web users",
        paper: "F. D. Smith et al., What TCP/IP Protocol Headers Can Tell Us About the Web, \
                SIGMETRICS 2001; L. Le, dissertation, University of North Carolina, 2005, sections \
                3.2 and 3.3; reconstructed",
        purpose: "Closed loop: users think, fetch the top-level object of a page, then its \
                  embedded objects from several servers, some over persistent connections.",
        departures: &[
            "A connection ends with its page; in the original a persistent connection can wait for \
             the next page. The published shares of persistent connections still hold.",
            "When the first connection of a page is persistent, the other connections open after \
             it has ended.",
            "Top-level and embedded objects share one distribution of response sizes, because no \
             publication separates them.",
        ],
        memory: "one entry for each user, and the connections of the page that the user fetches",
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

    population!(users in "users", ClosedLoop, Members);

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let pages = Pages {
            params: self.clone(),
            numbers: Numbers::shipped(),
        };
        let users = Users::new(pages, self.users, self.parallel, self.start_within, setting)?;
        Ok(Box::new(users))
    }
}

/// The pages of the model, and the think times.
struct Pages {
    params: UncWeb,
    numbers: Numbers,
}

impl Web for Pages {
    fn visit(&self, stream: &mut RandomStream) -> u32 {
        self.numbers.visit(stream)
    }

    /// The connection with the top-level object comes first, the others by server: what a browser
    /// finds in a page is mixed, but whose objects come first does not matter here.
    fn page(
        &self,
        primary: u32,
        servers: u32,
        stream: &mut RandomStream,
        fetch: &mut dyn FnMut(u32, Script),
    ) {
        for (index, mut objects) in self.numbers.page(stream).into_iter().enumerate() {
            let server = match index {
                0 => primary,
                _ => stream.below(servers as usize) as u32,
            };
            while objects > 0 {
                let is_persistent = stream.uniform() < self.params.persistent;
                let number = if is_persistent { objects } else { 1 };
                objects -= number;
                fetch(server, self.script(number, stream));
            }
        }
    }

    fn think(&self, stream: &mut RandomStream) -> Time {
        let think = self.numbers.think.sample(stream);
        Time::from_secs_f64(think * self.params.think_scale)
    }

    fn rest_of_think(&self, stream: &mut RandomStream) -> Time {
        let rest = self.numbers.think.rest(stream);
        Time::from_secs_f64(rest * self.params.think_scale)
    }
}

impl Pages {
    /// A connection that fetches so many objects from a server.
    fn script(&self, objects: u32, stream: &mut RandomStream) -> Script {
        let is_persistent = objects > 1;
        let exchanges = (0..objects).map(|_| self.exchange(is_persistent, stream));
        let closer = if is_persistent {
            Role::Client
        } else {
            Role::Server
        };
        Script::new(exchanges.collect(), closer)
    }

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
