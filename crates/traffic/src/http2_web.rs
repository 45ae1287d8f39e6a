//! Closed loop: users who fetch pages of many objects over one multiplexed connection each.
//!
//! The counts and sizes are fitted to the medians that the HTTP Archive reported for desktop pages
//! in 2024; multiplexing is that of HTTP/2 (RFC 9113), the handshake that of TLS 1.3 (RFC 8446).

use std::ops::Range;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, RandomStream, Time};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::quality::Quality;
use crate::rtt::Rtt;
use crate::script::{Action, Connect, Script, Step};
use crate::setting::{Pair, Setting};

/// Users who fetch pages of many objects. Each page has its own connection.
#[parameters]
pub struct Http2Web {
    /// Number of users. Default: computed from `load`.
    #[param(least = 1, unwritten)]
    pub users: Option<u32>,
    /// Median number of objects per page, HTML included. It is log-normal, 1 to 500.
    #[param(default = 70, least = 1, most = MOST_OBJECTS)]
    pub objects: u32,
    /// Sigma of the number of objects. 0: every page has the median.
    #[param(default = 0.8, least = 0.0)]
    pub objects_sigma: f64,
    /// Size of the HTML.
    #[param(default = "30000 bytes", least = Bytes(1))]
    pub html: Bytes,
    /// Median size of the other objects. It is log-normal, up to `object_max`.
    #[param(default = "6200 bytes", least = Bytes(1))]
    pub object: Bytes,
    /// Sigma of object sizes. 0: every object has the median.
    #[param(default = 1.9, least = 0.0)]
    pub object_sigma: f64,
    /// Maximum object size.
    #[param(default = "5000000 bytes", least = Bytes(1))]
    pub object_max: Bytes,
    /// Share of the objects that the HTML itself references. Scripts and style sheets refer to
    /// the other objects.
    #[param(default = 0.3, above = 0.0, below = 1.0)]
    pub first_wave: f64,
    /// Share of scripts and style sheets among the HTML's objects. The server sends them first.
    #[param(default = 0.5, above = 0.0, below = 1.0)]
    pub critical: f64,
    /// Minimum time to parse a resource that references other objects.
    #[param(default = "10 ms")]
    pub parse_min: Time,
    /// Maximum time to parse it. The time is uniform between the two.
    #[param(default = "50 ms")]
    pub parse_max: Time,
    /// If true, TLS 1.3 follows the TCP handshake and costs a round trip. The handshake of QUIC
    /// includes TLS.
    #[param(default = true)]
    pub tls: bool,
    /// Median time that a user reads a page. It is log-normal with sigma 1.
    #[param(default = "15 s", above = Time::ZERO)]
    pub think: Time,
    /// Each user starts the first page at a random time within this span.
    #[param(default = "15 s")]
    pub start_within: Time,
}

/// Most objects of a page.
const MOST_OBJECTS: u32 = 500;
/// Bytes of a client's and of a server's part of a TLS 1.3 handshake.
pub(crate) const TLS: [u64; 2] = [517, 4_000];
/// Bytes of the first request of a connection, and of those after it (HPACK).
pub(crate) const REQUESTS: [u64; 2] = [450, 60];
/// Bytes of the header of a response.
pub(crate) const HEADER: u64 = 200;
/// Sigma of the time that users read.
const THINK_SIGMA: f64 = 1.0;

impl Parameters for Http2Web {
    const ABOUT: About = About {
        title: "Web page loads over HTTP/2",
        paper: "M. Thomson, C. Benfield, HTTP/2, RFC 9113, 2022; HTTP Archive, Web Almanac 2024, \
                page weight",
        purpose: "Closed loop: users fetch pages of about 70 objects, each page over one \
                  multiplexed connection. Result: page load time, from the first SYN to the last \
                  byte of the last object.",
        departures: &[
            "All objects come from one server. The median page of 2024 uses 12 servers; a few of \
             them carry most bytes.",
            "Every page opens a connection. Real users reuse open connections.",
        ],
        memory: "one entry for each user and for each page that was complete in the measured span",
    };

    fn check_together(&self) -> Result<(), Problem> {
        if self.parse_max < self.parse_min {
            let (least, most) = (self.parse_min, self.parse_max);
            let message = format!("found {most}; it must not be below parse_min, {least}");
            return problem("parse_max", message);
        }
        Ok(())
    }
}

impl ModelParameters for Http2Web {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "http2-web"
users = 20
rtt = { kind = "constant", rtt = "40 ms" }
"#
    }

    population!(users in "users", ClosedLoop);

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(PageSource::new(self, setting, page)?))
    }
}

/// All users of a class; a user's token is its number.
#[derive(Clone, Debug)]
pub(crate) struct PageSource {
    users: Vec<User>,
    params: Http2Web,
    page: Draw,
    rtt: Rtt,
    span: Range<Time>,
    quality: Quality,
}

/// Draws what happens on the connection of a page.
type Draw = fn(&Http2Web, &mut RandomStream) -> Script;

#[derive(Clone, Debug)]
struct User {
    pair: Pair,
    pages: RandomStream,
    rtts: RandomStream,
    /// When the page under way was asked for.
    asked_at: Time,
    /// How many of its objects have arrived, and after how long: the sum.
    arrivals: (u32, Time),
}

impl PageSource {
    pub(crate) fn new(
        params: &Http2Web,
        setting: &Setting<'_>,
        page: Draw,
    ) -> Result<Self, PopulationUnset> {
        let users = params.users.ok_or(PopulationUnset { field: "users" })?;
        let user = |token| User {
            pair: setting.pair(token, users),
            pages: setting.stream("page", token),
            rtts: setting.stream("rtts", token),
            asked_at: Time::ZERO,
            arrivals: (0, Time::ZERO),
        };
        Ok(Self {
            users: (0..users).map(user).collect(),
            params: params.clone(),
            page,
            rtt: setting.rtt.clone(),
            span: Time::NEVER..Time::NEVER,
            quality: Quality::default(),
        })
    }
}

/// What a user fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Bytes of each object behind the HTML, its header included.
    pub(crate) objects: Vec<u64>,
    /// How many of them are critical, and how many the HTML names, those among them.
    pub(crate) critical: usize,
    pub(crate) named: usize,
    /// Times to parse the HTML and what is critical, where they name anything.
    pub(crate) parse: [Option<Time>; 2],
}

impl Draft {
    pub(crate) fn draw(params: &Http2Web, draws: &mut RandomStream) -> Self {
        let objects = lognormal(f64::from(params.objects), params.objects_sigma, draws);
        let all = (objects.round() as usize).clamp(1, MOST_OBJECTS as usize) - 1;
        let part = |of: usize, share: f64| (of as f64 * share).round() as usize;
        let named = part(all, params.first_wave);
        let critical = part(named, params.critical);
        let size = |_| {
            let size = lognormal(params.object.0 as f64, params.object_sigma, draws);
            HEADER + (size.ceil() as u64).clamp(1, params.object_max.0)
        };
        let objects = (0..all).map(size).collect();
        let [least, most] = [params.parse_min, params.parse_max].map(Time::as_secs_f64);
        let mut parse = || Time::from_secs_f64(draws.uniform_in(least, most));
        let parse = [named > 0, all > named].map(|is_there| is_there.then(&mut parse));
        Self {
            objects,
            critical,
            named,
            parse,
        }
    }

    /// What both ends do over one stream of bytes.
    pub(crate) fn programs(&self, params: &Http2Web) -> [Vec<Step>; 2] {
        let (mut client, mut server) = (Vec::new(), Vec::new());
        if params.tls {
            let [hello, certificate] = TLS;
            client.extend([Step::Send(hello), Step::Receive(certificate)]);
            server.extend([Step::Receive(hello), Step::Send(certificate)]);
        }
        let html = params.html.0 + HEADER;
        client.extend([Step::Send(REQUESTS[0]), Step::Receive(html)]);
        server.extend([Step::Receive(REQUESTS[0]), Step::Send(html)]);
        let (named_by_html, last) = self.objects.split_at(self.named);
        let mut waiting = 0;
        // What is critical names the last wave; where nothing is, the HTML does.
        for (wave, awaited, parse) in [
            (
                named_by_html,
                &named_by_html[..self.critical],
                self.parse[0],
            ),
            (last, last, self.parse[1]),
        ] {
            let Some(parse) = parse else {
                continue;
            };
            let [bytes, awaited] = [wave, awaited].map(|wave| wave.iter().sum::<u64>());
            let requests = wave.len() as u64 * REQUESTS[1];
            client.extend([Step::Pause(parse), Step::Send(requests)]);
            server.extend([Step::Receive(requests), Step::Send(bytes)]);
            client.push(Step::Receive(awaited));
            waiting += bytes - awaited;
        }
        // The objects that nothing waited for but the page itself.
        client.extend([Step::Receive(waiting), Step::Answered, Step::Close]);
        server.extend([Step::ReceiveClose, Step::Close]);
        [client, server]
    }
}

fn lognormal(median: f64, sigma: f64, draws: &mut RandomStream) -> f64 {
    median * libm::exp(sigma * draws.normal())
}

/// How long a user reads a page.
pub(crate) fn think(params: &Http2Web, draws: &mut RandomStream) -> Time {
    let think = lognormal(params.think.as_secs_f64(), THINK_SIGMA, draws);
    Time::from_secs_f64(think)
}

/// What happens on the connection of a page.
fn page(params: &Http2Web, draws: &mut RandomStream) -> Script {
    let draft = Draft::draw(params, draws);
    Script::Programs(Box::new(draft.programs(params)))
}

impl ModelSource for PageSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let within = self.params.start_within.as_secs_f64();
        for (user, token) in self.users.iter_mut().zip(0..) {
            let at = Time::from_secs_f64(user.pages.uniform() * within);
            actions.push(Action::WakeAt { at, token });
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let user = &mut self.users[token as usize];
        user.asked_at = now;
        user.arrivals = (0, Time::ZERO);
        let pair = user.pair;
        actions.push(Action::Connect(Connect {
            token,
            client: pair.client,
            server: pair.server,
            rtt: self.rtt.sample(pair, &mut user.rtts),
            flipped: pair.flipped,
            script: (self.page)(&self.params, &mut user.pages),
            limits: None,
            begins_with_tls: self.params.tls,
        }));
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_object(&mut self, now: Time, token: u32) {
        let user = &mut self.users[token as usize];
        user.arrivals.0 += 1;
        user.arrivals.1 += now - user.asked_at;
    }

    /// The page is complete.
    fn on_answered(&mut self, now: Time, token: u32, _actions: &mut Vec<Action>) {
        if self.span.contains(&now) {
            let user = &self.users[token as usize];
            self.quality.page_loads.add_time(now - user.asked_at);
            if let (objects @ 1.., sum) = user.arrivals {
                let mean = sum.as_secs_f64() / f64::from(objects);
                self.quality.object_index.add(mean);
            }
        }
    }

    /// The user has the page, or an error, and reads.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let draws = &mut self.users[token as usize].pages;
        let at = now.saturating_add(think(&self.params, draws));
        actions.push(Action::WakeAt { at, token });
    }

    fn measure(&mut self, span: &Range<Time>) {
        self.span = span.clone();
    }

    fn quality(&self, _now: Time, _stop: Time) -> Option<Quality> {
        Some(self.quality.clone())
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Role;

    use super::*;

    fn params(text: &str) -> Http2Web {
        toml::from_str(text).expect("a table")
    }

    fn sum(script: &Script, role: Role, pick: impl Fn(Step) -> Option<u64>) -> u64 {
        script.steps(role).filter_map(pick).sum()
    }

    #[test]
    fn a_page_waits_for_each_level_of_names() {
        let params = params(
            "objects = 11\nobjects_sigma = 0\nobject = '1000 bytes'\nobject_sigma = 0\n\
             html = '5000 bytes'\nfirst_wave = 0.5\ncritical = 0.4\nparse_max = '10 ms'",
        );
        let script = page(&params, &mut RandomStream::new(1, "t", 0));
        let parse = Step::Pause(Time::from_millis(10));
        let client: Vec<_> = script.steps(Role::Client).collect();
        let expected = [
            Step::Send(517),
            Step::Receive(4_000),
            Step::Send(450),
            Step::Receive(5_200),
            parse,
            Step::Send(5 * 60),
            Step::Receive(2 * 1_200),
            parse,
            Step::Send(5 * 60),
            Step::Receive(5 * 1_200),
            Step::Receive(3 * 1_200),
            Step::Answered,
            Step::Close,
        ];
        assert_eq!(client, expected);
        // QUIC has the handshake in its own.
        let within = script.without_tls();
        assert!(within.steps(Role::Client).eq(expected.into_iter().skip(2)));
        assert_eq!(within.step(Role::Server, 0), Some(Step::Receive(450)));
    }

    #[test]
    fn both_ends_agree_on_the_bytes_of_every_page() {
        let mut draws = RandomStream::new(7, "t", 0);
        let (mut pages, mut bytes) = (0.0, 0.0);
        for _ in 0..2_000 {
            let script = page(&params(""), &mut draws);
            let received = |step| match step {
                Step::Receive(bytes) => Some(bytes),
                _ => None,
            };
            let [asked, answered] = script.bytes();
            assert_eq!(sum(&script, Role::Client, received), answered);
            assert_eq!(sum(&script, Role::Server, received), asked);
            pages += 1.0;
            bytes += answered as f64;
        }
        // 96 objects on average, of 35 kB: the median page of 2.6 MB is 70 of them.
        let mean = bytes / pages;
        assert!((2.5e6..4.2e6).contains(&mean), "{mean}");
    }
}
