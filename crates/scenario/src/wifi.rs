//! Wi-Fi between the bottleneck and the clients, as a scenario states it.

use std::fmt;

use aqmlab_aqm::{Discipline, droptail, fq_codel};
use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem, within};
use aqmlab_declare::{Declared, parameters};
use aqmlab_net::{Bytes, QueueSize, Rate, Time};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::{Packets, ScenarioError};

/// Wi-Fi: an access point behind the bottleneck, and the client hosts as its stations. All of them
/// hear each other and equally loud; one sends at a time. *Down* is from the access point to the
/// stations, *up* the other way. Results list the two as the link `wifi`.
#[parameters]
pub struct Wifi {
    /// Wi-Fi standard and channel width in the 5 GHz band.
    #[param(default)]
    pub phy: Phy,
    /// Groups of stations. aqmlab assigns the client hosts to the stations in turn.
    #[param(default = Stations::usual(), table)]
    pub stations: Vec<Stations>,
    /// Queue structure of the access point.
    #[param(default)]
    pub queue: AccessPointQueue,
    /// Discipline of the queue for each station at the access point. Only with `queue =
    /// "mac80211"`.
    #[serde(deserialize_with = "crate::discipline::read")]
    #[schemars(with = "crate::discipline::Readable")]
    #[param(default = of_the_kernel())]
    pub discipline: Discipline,
    /// Discipline of the send queue of each station.
    #[serde(deserialize_with = "crate::discipline::read")]
    #[schemars(with = "crate::discipline::Readable")]
    #[param(default = of_the_kernel())]
    pub station_queue: Discipline,
    /// If true, the access point gives each station the same air time. If false, it sends one
    /// aggregate to each station in turn. Only with `queue = "mac80211"`.
    #[param(default = true)]
    pub airtime_fairness: bool,
    /// Rule that maps the `dscp` of a packet to an access category (EDCA): voice, video, best
    /// effort or background.
    #[param(default, unwritten)]
    pub edca: Edca,
    /// Maximum length of the shared queue. With `edca`, each access category has a queue of this
    /// length. Only with `queue = "fifo"`.
    #[param(default = "1000 packets", least = Packets(1), words = "at least 1 packets")]
    pub fifo: Packets,
    /// Limits of an A-MPDU, an aggregate of packets in one transmission.
    #[param(default, table)]
    pub ampdu: Ampdu,
    /// Maximum number of retransmissions of a packet on the air. If all fail, the packet is
    /// dropped.
    #[param(default = 7, most = 255, words = "expected 0 to 255")]
    pub retries: u32,
}

/// Stations that are alike.
#[parameters]
pub struct Stations {
    /// Number of stations with these settings.
    #[param(
        default = 1,
        least = 1,
        most = 2007,
        words = "expected 1 to 2007 stations"
    )]
    pub count: u32,
    /// Modulation and coding scheme (MCS) in both directions. The range is 0 to 15 with `"ht20"`
    /// and `"ht40"`, 0 to 9 with `"vht80"`, and 0 to 11 with `"he80"`. Values from 8 to 15 with
    /// `"ht20"` and `"ht40"` use two spatial streams. Required, except with `"11a"`.
    #[param(unwritten)]
    pub mcs: Option<u32>,
    /// Number of spatial streams. Only with `"vht80"` and `"he80"`. Default: 1.
    #[param(unwritten)]
    #[schemars(range(min = 1, max = 4))]
    pub streams: Option<u32>,
    /// Rate in both directions: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s. Required with `"11a"`, not
    /// allowed otherwise.
    #[param(unwritten)]
    pub rate: Option<Rate>,
    /// Probability that the transmission of a packet on the air fails.
    #[param(
        default,
        least = 0.0,
        most = 1.0,
        words = "expected a probability from 0 to 1"
    )]
    pub frame_error: f64,
    /// Traffic class that uses these stations. Default: all classes that no other entry names.
    #[param(unwritten)]
    pub class: Option<String>,
}

/// Packets that share a transmission, an A-MPDU. A transmission of one packet is none.
#[parameters]
#[derive(Eq)]
pub struct Ampdu {
    /// Maximum number of packets in an aggregate. 0 and 1 disable aggregation. `"11a"` has no
    /// aggregation. Default: 32 with `"ht20"` and `"ht40"`, 64 with `"vht80"` and `"he80"`.
    #[param(most = 64, words = "expected 0 to 64 packets")]
    pub subframes: Option<u32>,
    /// Maximum size of an aggregate. Default: `"65535 bytes"` with `"ht20"` and `"ht40"`, `"1048575
    /// bytes"` with `"vht80"` and `"he80"`.
    #[param(least = Bytes(1), most = Bytes(1_048_575), words = "expected 1 to 1048575 bytes")]
    pub bytes: Option<Bytes>,
    /// Maximum transmission time of an aggregate, up to 5.484 ms.
    #[param(
        default = "4 ms",
        above = "0 s",
        most = "5.484 ms",
        words = "expected more than 0 s and at most 5.484 ms, the longest transmission of the standard"
    )]
    pub time: Time,
}

/// What is sent on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phy {
    /// 802.11a, 20 MHz.
    #[serde(rename = "11a")]
    A,
    /// 802.11n, 20 MHz, short guard interval.
    #[default]
    #[serde(rename = "ht20")]
    Ht20,
    /// 802.11n, 40 MHz, short guard interval.
    #[serde(rename = "ht40")]
    Ht40,
    /// 802.11ac, 80 MHz, short guard interval.
    #[serde(rename = "vht80")]
    Vht80,
    /// 802.11ax, 80 MHz, guard interval of 0.8 us.
    #[serde(rename = "he80")]
    He80,
}

/// The queues of an access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessPointQueue {
    /// The access point has one queue for each station, as in Linux since 2016.
    #[default]
    Mac80211,
    /// All stations share one queue. The driver stores up to 123 more packets.
    Fifo,
}

/// Access categories, and what tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Edca {
    /// No access categories. All packets are best effort.
    #[default]
    Off,
    /// RFC 8325, as in Linux 6.8 and later. For example, EF (46) is voice, AF41 (34) is video and
    /// CS1 (8) is background.
    Rfc8325,
    /// The upper three bits of `dscp` select the category, as in Linux up to 6.7. For example, EF
    /// (46) is video.
    Precedence,
}

/// What one station sends with, and what is sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// Of 802.11a: millions of bits per second.
    Rate(u32),
    /// A modulation and coding scheme, and spatial streams.
    Mcs(u32, u32),
}

/// Refuses Wi-Fi where it cannot be, before the tables there are read: they do not know the key.
pub(crate) fn check_place(scenario: &Table) -> Result<(), ScenarioError> {
    let topology = scenario.get("topology").and_then(|it| it.as_table());
    let Some((topology, wifi)) = topology.and_then(|it| Some((it, it.get("wifi")?))) else {
        return Ok(());
    };
    let kind = topology.get("kind").and_then(|it| it.as_str());
    if let Some(kind) = kind.filter(|kind| ["network", "parking-lot"].contains(kind)) {
        let message = format!(
            "found it beside kind = \"{kind}\"; expected kind = \"dumbbell\", whose clients are the \
             stations"
        );
        return Err(ScenarioError::new("topology.wifi", message));
    }
    if wifi.get("trace").is_some() {
        let message = "found one, but the rate on the air follows from phy and stations; leave it out, \
                       or give it to topology.bottleneck, the link in front of the access point";
        return Err(ScenarioError::new("topology.wifi.trace", message));
    }
    Ok(())
}

/// The rates of 802.11a in Mbit/s.
const RATES: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

/// The most stations that an access point can tell apart.
const MOST_STATIONS: u32 = 2007;

/// What Linux gives each station: FQ-CoDel, whose target and quantum suit the air.
fn of_the_kernel() -> Discipline {
    Discipline::FqCodel(fq_codel::Params {
        target: Some(Time::from_millis(20)),
        quantum: Some(Bytes(300)),
        limit: QueueSize::Packets(8192.0),
        ..fq_codel::Params::default()
    })
}

/// Whether a discipline holds packets back to a rate of its own.
const fn shapes(discipline: &Discipline) -> bool {
    match discipline {
        #[cfg(feature = "shapers")]
        Discipline::Htb(_) | Discipline::Shaper(_) => true,
        Discipline::Cake(cake) => cake.bandwidth.is_some(),
        _ => false,
    }
}

impl fmt::Display for Phy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "11a",
            Self::Ht20 => "ht20",
            Self::Ht40 => "ht40",
            Self::Vht80 => "vht80",
            Self::He80 => "he80",
        })
    }
}

impl Stations {
    /// Three nearby, one far away.
    fn usual() -> Vec<Self> {
        let stations = |count, mcs| Self {
            count,
            mcs: Some(mcs),
            ..Self::default()
        };
        vec![stations(3, 15), stations(1, 0)]
    }

    /// What they send with; an error names the key and what this PHY has.
    pub fn modulation(&self, phy: Phy) -> Result<Modulation, Problem> {
        let refuse = |key: &str, found: Option<String>, right: &str| {
            let found = found.unwrap_or_else(|| "nothing".to_owned());
            let message = format!("found {found}; {phy} has {right}");
            problem(key, message).map(|()| Modulation::Rate(0))
        };
        let text = |number: Option<u32>| number.map(|it| it.to_string());
        if phy == Phy::A {
            let rates = "the rates 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s, no mcs and no streams";
            for (key, found) in [("mcs", self.mcs), ("streams", self.streams)] {
                if found.is_some() {
                    return refuse(key, text(found), rates);
                }
            }
            let known = |rate: &Rate| RATES.iter().any(|it| Rate::from_mbps(*it) == *rate);
            return match self.rate.filter(known) {
                Some(rate) => Ok(Modulation::Rate((rate.bps() / 1_000_000) as u32)),
                None => refuse("rate", self.rate.map(|rate| rate.to_string()), rates),
            };
        }
        let (most, has_streams, right) = match phy {
            Phy::Vht80 => (9, true, "MCS 0 to 9"),
            Phy::He80 => (11, true, "MCS 0 to 11"),
            _ => (15, false, "MCS 0 to 15"),
        };
        if let Some(rate) = self.rate {
            return refuse(
                "rate",
                Some(rate.to_string()),
                &format!("no rate, but {right}"),
            );
        }
        let Some(mcs) = self.mcs.filter(|mcs| *mcs <= most) else {
            return refuse("mcs", text(self.mcs), right);
        };
        if !has_streams {
            return match self.streams {
                None => Ok(Modulation::Mcs(mcs % 8, 1 + mcs / 8)),
                found => refuse(
                    "streams",
                    text(found),
                    "those of its MCS: one up to 7, two from 8 on",
                ),
            };
        }
        match self.streams.unwrap_or(1) {
            3 if phy == Phy::Vht80 && mcs == 6 => {
                refuse("streams", text(self.streams), "no MCS 6 with three streams")
            }
            streams @ 1..=4 => Ok(Modulation::Mcs(mcs, streams)),
            _ => refuse("streams", text(self.streams), "1 to 4 streams"),
        }
    }
}

impl Wifi {
    /// The discipline of `queue = "fifo"`.
    pub fn fifo(&self) -> Discipline {
        let limit = QueueSize::Packets(f64::from(self.fifo.0));
        Discipline::Droptail(droptail::Params { limit, ecn: false })
    }

    /// Packets, bytes and time of a transmission at most.
    pub fn aggregation(&self) -> (u32, u64, Time) {
        let (subframes, bytes) = match self.phy {
            Phy::A => (1, 4095),
            Phy::Ht20 | Phy::Ht40 => (32, 65_535),
            Phy::Vht80 | Phy::He80 => (64, 1_048_575),
        };
        let Ampdu { time, .. } = self.ampdu;
        let most = match self.phy {
            Phy::A => 1,
            _ => self.ampdu.subframes.unwrap_or(subframes).max(1),
        };
        let bytes = self.ampdu.bytes.map_or(bytes, |bytes| bytes.0);
        (most, bytes, time)
    }

    /// What results call the stations of each entry: their class, or their modulation.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for stations in &self.stations {
            let modulation = || match stations.modulation(self.phy) {
                Ok(Modulation::Rate(mbps)) => format!("{mbps}-mbit"),
                _ => {
                    let mcs = format!("mcs-{}", stations.mcs.unwrap_or_default());
                    let streams = stations.streams.map(|it| format!("x{it}"));
                    mcs + &streams.unwrap_or_default()
                }
            };
            let plain = stations.class.clone().unwrap_or_else(modulation);
            let mut name = plain.clone();
            for number in 2.. {
                if !names.contains(&name) {
                    break;
                }
                name = format!("{plain}-{number}");
            }
            names.push(name);
        }
        names
    }

    /// By class of traffic: the stations that are its client hosts, in turn.
    pub fn dealt(&self, classes: &[&str]) -> Vec<Vec<u16>> {
        let entries = self.stations.iter();
        let each = entries.flat_map(|it| (0..it.count).map(|_| it.class.as_deref()));
        let each: Vec<Option<&str>> = each.collect();
        let of = |class: Option<&str>| -> Vec<u16> {
            let stations = (0_u16..).zip(&each);
            let own = stations.filter(|(_, of)| **of == class);
            own.map(|(station, _)| station).collect()
        };
        let dealt = classes.iter().map(|class| match of(Some(class)) {
            own if own.is_empty() => of(None),
            own => own,
        });
        dealt.collect()
    }

    /// How many stations there are.
    pub fn count(&self) -> u32 {
        let counts = self.stations.iter().map(|it| it.count);
        counts.fold(0, u32::saturating_add)
    }

    /// Refuses what contradicts itself, beside so many client hosts and these classes of traffic.
    pub(crate) fn check(&self, clients: u32, classes: &[&str]) -> Result<(), Problem> {
        self.check_each()?;
        if self.stations.is_empty() {
            return problem("stations", "found none; expected at least one");
        }
        if self.phy == Phy::A && self.ampdu.subframes.is_some_and(|it| it > 1) {
            let message = "found more than 1; 11a sends each packet alone";
            return problem("ampdu.subframes", message);
        }
        if self.phy == Phy::A && self.edca != Edca::Off {
            let message = "found access categories, which 11a does not know; expected \"off\", or another phy";
            return problem("edca", message);
        }
        for (index, stations) in self.stations.iter().enumerate() {
            within(
                &format!("stations.{index}"),
                stations.modulation(self.phy).map(|_| ()),
            )?;
            if let Some(class) = &stations.class
                && !classes.contains(&class.as_str())
            {
                let known = classes.join(", ");
                let message = format!("found \"{class}\"; the classes of traffic are {known}");
                return problem(&format!("stations.{index}.class"), message);
            }
        }
        let free = self.stations.iter().any(|it| it.class.is_none());
        let named = |class: &&&str| {
            let mut names = self.stations.iter().filter_map(|it| it.class.as_deref());
            names.any(|name| name == **class)
        };
        if !free && let Some(class) = classes.iter().find(|class| !named(class)) {
            let message = format!(
                "found none for the class \"{class}\"; expected stations without a class, or with this one"
            );
            return problem("stations", message);
        }
        let count = self.count();
        if count > MOST_STATIONS {
            let message = format!("found {count}; an access point has at most {MOST_STATIONS}");
            return problem("stations", message);
        }
        if count > clients {
            let message = format!(
                "found {count}, but topology.hosts.clients is {clients}; expected at most as many stations"
            );
            return problem("stations", message);
        }
        for (key, discipline) in [
            ("discipline", &self.discipline),
            ("station_queue", &self.station_queue),
        ] {
            within(key, discipline.check())?;
            if shapes(discipline) {
                let message = "found a shaper; expected a discipline that has no rate of its own, because \
                               the air sets the rate";
                return problem(key, message);
            }
        }
        Ok(())
    }
}
