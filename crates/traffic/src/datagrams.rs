//! What the models of datagrams share: they have fixed flows from servers to clients.

use std::ops::RangeInclusive;

use aqmlab_declare::check::{Problem, at_least_one, problem};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};

use crate::script::OpenDatagrams;
use crate::setting::Setting;

/// A datagram has at least a byte behind its IP and UDP headers.
const DATAGRAM_BYTES: RangeInclusive<u64> = 29..=65_535;

/// Refuses flows, rates and lengths that mean nothing.
pub(crate) fn check(flows: u32, rate: Rate, packet: Bytes) -> Result<(), Problem> {
    at_least_one("flows", flows)?;
    if rate.bps() == 0 {
        return problem("rate", "found 0 bit/s; a rate must be above 0");
    }
    if !DATAGRAM_BYTES.contains(&packet.0) {
        let right = "a datagram has 29 to 65535 bytes, 28 of them headers";
        return problem("packet", format!("found {packet}; {right}"));
    }
    if rate.transmission_time(packet.0) == Time::ZERO {
        let right = "at such a rate a datagram takes less than 1 ns, which time is counted in";
        return problem("rate", format!("found {rate}; {right}"));
    }
    Ok(())
}

/// Datagrams per second of so many flows.
pub(crate) fn per_second(flows: u32, rate: Rate, packet: Bytes) -> f64 {
    f64::from(flows) * rate.bps() as f64 / (8.0 * packet.0 as f64)
}

/// Number `token` of `count` flows and the time at which it sends its first datagram, at random
/// within `start_within`.
pub(crate) fn flow(
    setting: &Setting<'_>,
    (token, count): (u32, u32),
    start_within: Time,
    draws: &mut RandomStream,
) -> (OpenDatagrams, Time) {
    let start = draws.uniform() * start_within.as_secs_f64();
    let pair = setting.pair(token, count);
    let open = OpenDatagrams {
        token,
        client: pair.client,
        server: pair.server,
        rtt: setting.rtt.sample(pair, draws),
        flipped: pair.flipped,
        ecn: Ecn::NotEct,
    };
    (open, Time::from_secs_f64(start))
}

/// The other way: datagrams from the client to the server of a flow.
pub(crate) fn back(open: &OpenDatagrams, token: u32) -> OpenDatagrams {
    OpenDatagrams {
        token,
        client: open.server,
        server: open.client,
        rtt: open.rtt,
        flipped: !open.flipped,
        ecn: open.ecn,
    }
}
