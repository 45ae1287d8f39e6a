//! File transfers of the 3GPP: FTP models 1 and 2 of TR 36.814, annex A.2.1.3.1.

use std::collections::HashMap;
use std::ops::Range;

use aqmlab_declare::check::{Problem, problem, within};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Frequency, RandomStream, Time};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, Opening, PopulationKey};
use crate::model::{check_rate, whole};
use crate::quality::Quality;
use crate::rtt::{Rank, Rtt};
use crate::script::{Action, Connect, Script};
use crate::setting::{Direction, HostCounts, Pair, Setting};
use crate::sizes::Sizes;

/// File transfers after the FTP models of the 3GPP.
#[parameters]
pub struct Ftp {
    /// Model 1: files per second, a Poisson process of new users. Without `rate` and `users`:
    /// calibrated from `load`.
    #[param(unwritten)]
    pub rate: Option<Frequency>,
    /// Model 2: number of users. Each user reads between two files.
    #[param(least = 1, unwritten)]
    pub users: Option<u32>,
    /// File size. NGMN: `{ kind = "lognormal", median = "1.89 MB", sigma = 0.35 }`.
    #[param(default = Sizes::Constant {
        size: Bytes(500_000),
    })]
    pub file: Sizes,
    /// Mean reading time of a user in model 2, exponential.
    #[param(default = "5 s", above = Time::ZERO)]
    pub reading: Time,
}

/// Bytes that ask for a file.
const REQUEST: u64 = 300;

impl Parameters for Ftp {
    const ABOUT: About = About {
        title: "File transfers of the 3GPP",
        paper: "3GPP TR 36.814, Further advancements for E-UTRA physical layer aspects, annex \
                A.2.1.3.1, 2017",
        purpose: "Files of half a megabyte arrive at a rate (model 1), or users fetch a file, read \
                  and fetch the next (model 2). Result: user-perceived throughput, size / time.",
        departures: &[
            "Time counts from the first SYN; the 3GPP counts from the arrival of the packet call.",
            "FTP model 3 (TR 36.872), a Poisson process for each of K users, equals model 1 at K \
             times the rate.",
        ],
        memory: "one entry for each user, and for each file that was in transfer or complete in \
                 the measured span",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check_rate(self.rate)?;
        if let (Some(rate), Some(users)) = (self.rate, self.users) {
            let message = format!("found {users} beside rate, {rate}; one of them says the model");
            return problem("users", message);
        }
        within("file", self.file.check())
    }
}

impl ModelParameters for Ftp {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "ftp"
rate = "1 /s"
rtt = { kind = "constant", rtt = "40 ms" }
"#
    }

    fn population_key(&self) -> PopulationKey {
        match self.users {
            Some(_) => PopulationKey::USERS,
            None => PopulationKey::RATE,
        }
    }

    fn population(&self) -> Option<f64> {
        let rate = self.rate.map(|rate| rate.0);
        self.users.map(f64::from).or(rate)
    }

    fn set_population(&mut self, population: f64) {
        match &mut self.users {
            Some(users) => *users = whole(population),
            None => self.rate = Some(Frequency(population)),
        }
    }

    fn opening(&self) -> Opening {
        match self.users {
            Some(_) => Opening::ClosedLoop,
            None => Opening::OpenLoop,
        }
    }

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        vec![("file", &mut self.file)]
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let unset = PopulationUnset { field: "rate" };
        self.population().ok_or(unset)?;
        let streams = |index| Streams {
            waits: setting.stream("waits", index),
            files: setting.stream("files", index),
            rtts: setting.stream("rtts", index),
        };
        Ok(Box::new(FtpSource {
            params: self.clone(),
            streams: (0..self.users.unwrap_or(1)).map(streams).collect(),
            place: Place {
                rtt: setting.rtt.clone(),
                direction: setting.direction,
                hosts: setting.hosts,
            },
            count: 0,
            open: HashMap::new(),
            span: Time::NEVER..Time::NEVER,
            quality: Quality::default(),
        }))
    }
}

/// Where the files go.
#[derive(Clone, Debug)]
struct Place {
    rtt: Rtt,
    direction: Direction,
    hosts: HostCounts,
}

#[derive(Clone, Debug)]
struct Streams {
    waits: RandomStream,
    files: RandomStream,
    rtts: RandomStream,
}

#[derive(Debug)]
struct FtpSource {
    params: Ftp,
    /// Of each user; model 1 has one of all.
    streams: Vec<Streams>,
    place: Place,
    /// Files so far.
    count: u32,
    /// When each file under way was asked for, and how large it is, by its token: the user, or the
    /// number of the file.
    open: HashMap<u32, (Time, u64)>,
    span: Range<Time>,
    quality: Quality,
}

impl FtpSource {
    /// The wait of a user until the next file, or of the next arrival.
    fn wait(&mut self, user: u32) -> Time {
        let mean = match self.params.users {
            Some(_) => self.params.reading.as_secs_f64(),
            None => 1.0 / self.params.rate.map_or(1.0, |rate| rate.0),
        };
        Time::from_secs_f64(self.streams[user as usize].waits.exponential(mean))
    }

    fn wake_later(&mut self, now: Time, user: u32, actions: &mut Vec<Action>) {
        let at = now.saturating_add(self.wait(user));
        actions.push(Action::WakeAt { at, token: user });
    }
}

impl ModelSource for FtpSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for user in 0..self.streams.len() as u32 {
            self.wake_later(Time::ZERO, user, actions);
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let (index, count) = match self.params.users {
            Some(users) => (token, users),
            None => (self.count, u32::MAX),
        };
        let (flipped, ordinal) = self.place.direction.place(index);
        let (client, server) = self.place.hosts.as_seen(flipped).pair(ordinal);
        let pair = Pair {
            client,
            server,
            flipped,
            rank: match self.params.users {
                Some(_) => Rank::Of { index, count },
                None => Rank::Arrival(index),
            },
        };
        let streams = &mut self.streams[token as usize];
        let size = self.params.file.sample(&mut streams.files);
        self.count = self.count.wrapping_add(1);
        self.open.insert(index, (now, size));
        actions.push(Action::Connect(Connect {
            token: index,
            client,
            server,
            rtt: self.place.rtt.sample(pair, &mut streams.rtts),
            flipped,
            script: Script::single(REQUEST, size),
            limits: None,
            begins_with_tls: false,
        }));
        if self.params.users.is_none() {
            self.wake_later(now, token, actions);
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_answered(&mut self, now: Time, token: u32, _actions: &mut Vec<Action>) {
        let Some((asked_at, size)) = self.open.remove(&token) else {
            return;
        };
        if self.span.contains(&now) {
            let seconds = (now - asked_at).as_secs_f64();
            self.quality.throughputs.add(size as f64 * 8.0 / seconds);
        }
    }

    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        // The client hears of the end before it takes the response for complete: whether that comes
        // is not known here.
        if self.params.users.is_some() {
            self.wake_later(now, token, actions);
        }
    }

    fn measure(&mut self, span: &Range<Time>) {
        self.span = span.clone();
    }

    fn quality(&self, _now: Time, _stop: Time) -> Option<Quality> {
        Some(self.quality.clone())
    }
}
