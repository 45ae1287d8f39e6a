//! Connection vectors for the traffic of a whole campus or backbone: many applications, most
//! connections small, most bytes in few.
//!
//! L. Le, "Investigating the Effects of Active Queue Management on the Performance of TCP
//! Applications", dissertation, University of North Carolina, 2005, chapters 6 and 7, replayed the
//! connections of a backbone trace (Abilene, Cleveland to Indianapolis) that cannot be had. This
//! generator makes connections of the same kind: web, mail, news, file transfer, chat and
//! peer-to-peer, in turn or at once, with think times, keep-alive pauses and heavy-tailed sizes.
//! Connections arrive as a Poisson process. The numbers are this model's own, chosen so that the
//! traffic resembles what the dissertation reports: connections of some 150 kB, lasting 0.7 s (half
//! of them), 6 s (three quarters) and 19 s (nine in ten) without congestion.

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Frequency, RandomStream, Role, Time};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, check_rate, population};
use crate::replay::{Feed, Options, Replay};
use crate::setting::Setting;
use crate::sizes::BoundedPareto;
use crate::vector::{Adu, Body, ConnectionVector};

/// Connections of many applications, as on a backbone. Shares count connections and are relative to
/// each other.
#[parameters]
pub struct GeneralTcp {
    /// New connections per second. Default: computed from `load`.
    #[param(unwritten)]
    pub rate: Option<Frequency>,
    /// Share of web transfers.
    #[param(default = 0.6)]
    pub web: f64,
    /// Share of mail messages.
    #[param(default = 0.1)]
    pub mail: f64,
    /// Share of news feeds.
    #[param(default = 0.04)]
    pub news: f64,
    /// Share of file transfers.
    #[param(default = 0.06)]
    pub files: f64,
    /// Share of chats.
    #[param(default = 0.04)]
    pub chat: f64,
    /// Share of peer-to-peer file sharing.
    #[param(default = 0.16)]
    pub peer_to_peer: f64,
    /// Tail index of the heavy-tailed sizes. A smaller index means more very large transfers.
    #[param(default = 1.2, above = 0.0)]
    pub tail: f64,
    /// Maximum of the heavy-tailed sizes.
    #[param(default = "100000000 bytes")]
    pub largest: Bytes,
}

/// Files begin at 250 kB: the largest must leave them a range.
const SMALLEST_LARGEST: u64 = 1_000_000;

impl Parameters for GeneralTcp {
    const ABOUT: About = About {
        title: "General TCP traffic",
        paper: "the traffic of L. Le, dissertation, University of North Carolina, 2005, chapters 6 \
                and 7; the generator is aqmlab's own",
        purpose: "Open loop: connections of many applications, as on a backbone. The two ends take \
                  turns or send at the same time. Most connections are small; few carry most bytes.",
        departures: &[
            "The dissertation's backbone trace is not available; sizes and durations are chosen to \
             resemble its reports.",
            "The trace has daily trends and long memory in its arrivals. Here arrivals are \
             Poisson, and long memory comes from sizes.",
            "The behaviour of a connection does not depend on its round-trip time.",
        ],
        memory: "the next connection",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check_rate(self.rate)?;
        let shares = [
            ("web", self.web),
            ("mail", self.mail),
            ("news", self.news),
            ("files", self.files),
            ("chat", self.chat),
            ("peer_to_peer", self.peer_to_peer),
        ];
        for (field, share) in shares {
            if !(share.is_finite() && share >= 0.0) {
                return problem(field, format!("found {share}; a share is not negative"));
            }
        }
        if shares.iter().all(|&(_, share)| share == 0.0) {
            return problem(
                "web",
                "found no share above 0; some application must have one",
            );
        }
        if self.largest.0 < SMALLEST_LARGEST {
            let right = format!("it must be at least {}", Bytes(SMALLEST_LARGEST));
            return problem("largest", format!("found {}; {right}", self.largest));
        }
        Ok(())
    }
}

impl ModelParameters for GeneralTcp {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "general-tcp"
rate = "76 /s"
direction = "both"
rtt = { kind = "vector" }
"#
    }

    population!(rate in "connections/s", OpenLoop);

    fn has_round_trips(&self) -> bool {
        true
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let rate = self.rate.ok_or(PopulationUnset { field: "rate" })?;
        let generator = Generator::new(self, rate.0, setting.seed, setting.class);
        let source = GeneralTcpSource::new(generator, Options::PLAIN, setting);
        Ok(Box::new(source))
    }
}

type GeneralTcpSource = Replay<Generator>;

impl Feed for Generator {
    fn next(&mut self) -> Result<Option<ConnectionVector>, String> {
        Ok(Some(self.generate()))
    }
}

/// Median and logarithmic spread of round-trip times: half of a campus's connections go less than
/// 50 ms far, a tenth more than 0.2 s.
const RTT: (f64, f64) = (0.05, 1.1);

/// Shortest and longest round-trip time, in seconds.
const RTT_RANGE: (f64, f64) = (0.005, 3.0);

/// Longest pause between ADUs, in seconds: servers lose patience.
const LONGEST_PAUSE: f64 = 120.0;

/// A server that keeps a connection open for the next request closes it after this, in seconds.
const KEEP_ALIVE: f64 = 15.0;

/// Bytes that peers of a file-sharing network ask each other for at a time.
const BLOCK: u64 = 16_384;

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Application {
    Web,
    Mail,
    News,
    Files,
    Chat,
    PeerToPeer,
}

/// Makes connection vectors, one after the other, without end.
#[derive(Clone, Debug)]
pub struct Generator {
    mean_gap_s: f64,
    /// Applications and the cumulative shares of connections that they have.
    shares: [(Application, f64); 6],
    tail: f64,
    largest: f64,
    arrivals: RandomStream,
    seed: u64,
    name: String,
    now: Time,
    id: u64,
}

impl Generator {
    /// Connections arrive at `rate` per second; `class` names their random numbers.
    pub fn new(params: &GeneralTcp, rate: f64, seed: u64, class: &str) -> Self {
        let mut sum = 0.0;
        let shares = [
            (Application::Web, params.web),
            (Application::Mail, params.mail),
            (Application::News, params.news),
            (Application::Files, params.files),
            (Application::Chat, params.chat),
            (Application::PeerToPeer, params.peer_to_peer),
        ]
        .map(|(application, share)| {
            sum += share;
            (application, sum)
        });
        Self {
            mean_gap_s: 1.0 / rate,
            shares: shares.map(|(application, cumulative)| (application, cumulative / sum)),
            tail: params.tail,
            largest: params.largest.0 as f64,
            arrivals: RandomStream::new(seed, &format!("{class}/arrivals"), 0),
            seed,
            name: format!("{class}/connection"),
            now: Time::ZERO,
            id: 0,
        }
    }

    /// The next connection.
    pub fn generate(&mut self) -> ConnectionVector {
        let gap = self.arrivals.exponential(self.mean_gap_s);
        self.now = self.now.saturating_add(Time::from_secs_f64(gap));
        self.id += 1;
        let mut draws = Draws {
            stream: RandomStream::new(self.seed, &self.name, self.id),
            tail: self.tail,
            largest: self.largest,
        };
        let (median, sigma) = RTT;
        let rtt = draws.lognormal(median, sigma);
        let rtt = rtt.clamp(RTT_RANGE.0, RTT_RANGE.1);
        let u = draws.stream.uniform();
        let chosen = self.shares.iter().find(|&&(_, cumulative)| u < cumulative);
        let application = chosen.map_or(Application::PeerToPeer, |&(application, _)| application);
        ConnectionVector {
            start: self.now,
            id: self.id,
            body: draws.body(application),
            windows: [None; 2],
            segments: [None; 2],
            rtt: Some(Time::from_secs_f64(rtt)),
            loss: None,
        }
    }
}

/// The random numbers of one connection.
struct Draws {
    stream: RandomStream,
    tail: f64,
    largest: f64,
}

/// A conversation in turn, as it grows.
type Talk = Vec<(Role, Adu)>;

impl Draws {
    fn body(&mut self, application: Application) -> Body {
        match application {
            Application::Web => Body::Sequential(self.web()),
            Application::Mail => Body::Sequential(self.mail()),
            Application::News => Body::Sequential(self.news()),
            Application::Files => Body::Sequential(self.file()),
            Application::Chat => Body::Sequential(self.chat()),
            Application::PeerToPeer if self.chance(0.4) => self.peers(),
            Application::PeerToPeer => Body::Sequential(self.greeting()),
        }
    }

    /// A page's object, or several on a connection that is kept open.
    fn web(&mut self) -> Talk {
        let mut talk = Talk::new();
        let kept_open = self.chance(0.33);
        let objects = if kept_open {
            1 + self.geometric(3.0)
        } else {
            1
        };
        for _ in 0..objects {
            let (request, think) = (self.size(450.0, 0.5), self.pause(0.015, 1.2));
            talk.push((Role::Client, adu(request, think)));
            let (response, pause) = (self.heavy(1_500.0), self.pause(0.4, 1.5));
            talk.push((Role::Server, adu(response, pause)));
        }
        let close = match kept_open {
            true if self.chance(0.6) => KEEP_ALIVE,
            true => self.pause(0.4, 1.5),
            false => 0.0,
        };
        end(talk, close)
    }

    /// A message, announced line by line (SMTP): the acceptor speaks first.
    fn mail(&mut self) -> Talk {
        let mut talk = Talk::new();
        let greeting = self.pause(0.03, 1.0);
        talk.push((Role::Server, adu(90, greeting)));
        for (command, answer) in [(25, 120), (45, 45), (40, 45), (6, 50)] {
            let (think, pause) = (self.pause(0.03, 1.5), self.pause(0.005, 1.0));
            talk.push((Role::Client, adu(command, think)));
            talk.push((Role::Server, adu(answer, pause)));
        }
        let (message, delivery) = (self.heavy(1_500.0), self.pause(0.1, 1.5));
        talk.push((Role::Client, adu(message, delivery)));
        talk.push((Role::Server, adu(50, 0.005)));
        talk.push((Role::Client, adu(6, 0.005)));
        talk.push((Role::Server, adu(60, 0.0)));
        end(talk, 0.0)
    }

    /// Articles that a news server hands on to another (NNTP), one by one.
    fn news(&mut self) -> Talk {
        let mut talk = vec![(Role::Server, adu(100, 0.01))];
        for _ in 0..1 + self.geometric(40.0) {
            let (article, think) = (self.heavy(3_000.0), self.pause(0.02, 1.0));
            talk.push((Role::Client, adu(article, think)));
            let pause = self.pause(0.05, 1.5);
            talk.push((Role::Server, adu(40, pause)));
        }
        let idle = self.exponential(10.0);
        end(talk, idle)
    }

    /// The data connection of a file transfer: one side sends, and closes.
    fn file(&mut self) -> Talk {
        let sender = match self.chance(0.5) {
            true => Role::Client,
            false => Role::Server,
        };
        vec![(sender, adu(self.heavy(250_000.0), 0.0))]
    }

    /// Lines that people type, either side.
    fn chat(&mut self) -> Talk {
        let mut talk = Talk::new();
        let mut party = Role::Client;
        for _ in 0..4 + self.geometric(12.0) {
            let (line, pause) = (self.size(60.0, 0.8), self.exponential(3.0));
            talk.push((party, adu(line, pause)));
            if self.chance(0.8) {
                party = party.other();
            }
        }
        talk
    }

    /// Peers that have nothing for each other: a handshake, an idle time, the end.
    fn greeting(&mut self) -> Talk {
        let (think, idle) = (self.pause(0.02, 1.0), self.pause(0.2, 1.5));
        vec![
            (Role::Client, adu(68, think)),
            (Role::Server, adu(68, idle)),
        ]
    }

    /// Peers that send each other blocks of files, both at once.
    fn peers(&mut self) -> Body {
        Body::Concurrent([(); 2].map(|()| {
            let mut left = self.heavy(80_000.0);
            let mut adus = Vec::new();
            while left > 0 {
                let bytes = left.min(BLOCK);
                adus.push(adu(bytes, self.exponential(0.15)));
                left -= bytes;
            }
            adus
        }))
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.stream.uniform() < probability
    }

    /// Geometric from 0, with this mean.
    fn geometric(&mut self, mean: f64) -> u64 {
        let survives = libm::log(mean / (1.0 + mean));
        (libm::log(self.stream.uniform_positive()) / survives) as u64
    }

    fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.stream.normal())
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        self.stream.exponential(mean).min(LONGEST_PAUSE)
    }

    /// A log-normal pause in seconds.
    fn pause(&mut self, median: f64, sigma: f64) -> f64 {
        self.lognormal(median, sigma).min(LONGEST_PAUSE)
    }

    /// A log-normal size in bytes.
    fn size(&mut self, median: f64, sigma: f64) -> u64 {
        (self.lognormal(median, sigma).ceil() as u64).max(1)
    }

    /// A heavy-tailed size in bytes, at least `smallest`.
    fn heavy(&mut self, smallest: f64) -> u64 {
        let largest = self.largest.max(2.0 * smallest);
        let pareto = BoundedPareto::new(self.tail, smallest, largest);
        pareto.quantile(self.stream.uniform()).ceil() as u64
    }
}

/// An ADU and the pause behind it in seconds, at least a microsecond.
fn adu(bytes: u64, pause: f64) -> Adu {
    let micros = (pause * 1e6).round().max(1.0) as u64;
    Adu {
        bytes,
        pause: Time::from_micros(micros),
    }
}

/// The conversation, closed after this pause.
fn end(mut talk: Talk, pause: f64) -> Talk {
    if let Some((_, last)) = talk.last_mut() {
        *last = adu(last.bytes, pause);
    }
    talk
}
