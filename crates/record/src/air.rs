//! What is counted of stations on the air.

use std::collections::BTreeMap;

use aqmlab_net::Time;

use crate::declaration::results;

/// What a station sent, or was sent, in the measured span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirTally {
    /// How long its transmissions lasted, those included that were not understood.
    pub airtime: Time,
    /// Transmissions.
    pub transmissions: u64,
    /// Packets in them, each as often as it was sent.
    pub packets: u64,
    /// Transmissions that collided with another.
    pub collisions: u64,
    /// Packets that were to be sent again.
    pub retries: u64,
    /// Packets that were given up.
    pub lost: u64,
    /// Transmissions that did not begin because a higher access category of the sender began at the same
    /// time; nothing without access categories.
    pub internal_collisions: Option<u64>,
}

impl AirTally {
    /// Adds what another station did.
    pub fn merge(&mut self, other: &Self) {
        self.airtime += other.airtime;
        self.transmissions += other.transmissions;
        self.packets += other.packets;
        self.collisions += other.collisions;
        self.retries += other.retries;
        self.lost += other.lost;
        if let Some(count) = other.internal_collisions {
            *self.internal_collisions.get_or_insert_default() += count;
        }
    }
}

/// Stations that are alike: what they are called, how many they are, and what was sent to them and
/// by them.
#[derive(Clone, Debug)]
pub struct StationsOnAir {
    /// Their class of traffic, or their modulation.
    pub name: String,
    /// How many they are.
    pub count: u64,
    /// Down and up.
    pub tallies: [AirTally; 2],
}

results! {
    /// The air between the access point and alike stations, in one direction, in the measured span.
    pub struct AirSummary {
        /// Stations that are alike.
        stations: u64 = "stations", NUMBER;
        /// Share of time with their transmissions on the air, including failed transmissions.
        airtime_share: f64 = "time on the air", SHARE;
        /// Transmissions, each an aggregate of packets or a single one.
        transmissions: u64 = "transmissions", NUMBER;
        /// Mean packets of a transmission.
        aggregate_mean_packets: Option<f64> = "packets of a transmission", PACKETS;
        /// Share of the transmissions that collided with another.
        collision_rate: Option<f64> = "collided", SHARE;
        /// Packets that were sent again; each time counts.
        retried_packets: u64 = "sent again", PACKETS;
        /// Packets that were given up after their last try.
        given_up_packets: u64 = "given up", PACKETS;
        /// Transmissions that waited because a higher access category of the same sender began at
        /// the same time. Only with `edca`.
        #[serde(skip_serializing_if = "Option::is_none")]
        internal_collisions: Option<u64> = "internal collisions", NUMBER;
    }
}

/// The summary of all stations.
pub(crate) fn summarize(
    stations: &[StationsOnAir],
    measured: Time,
) -> BTreeMap<String, BTreeMap<String, AirSummary>> {
    let of = |alike: &StationsOnAir, tally: &AirTally| {
        let share = |part: u64| {
            let all = tally.transmissions;
            (all > 0).then(|| part as f64 / all as f64)
        };
        let values = AirSummaryValues {
            stations: alike.count,
            airtime_share: tally.airtime.as_secs_f64() / measured.as_secs_f64(),
            transmissions: tally.transmissions,
            aggregate_mean_packets: share(tally.packets),
            collision_rate: share(tally.collisions),
            retried_packets: tally.retries,
            given_up_packets: tally.lost,
            internal_collisions: tally.internal_collisions,
        };
        AirSummary::from(values)
    };
    let summaries = stations.iter().map(|alike| {
        let ways = ["down", "up"].into_iter().zip(&alike.tallies);
        let ways = ways.map(|(way, tally)| (way.to_owned(), of(alike, tally)));
        (alike.name.clone(), ways.collect())
    });
    summaries.collect()
}
