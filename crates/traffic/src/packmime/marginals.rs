//! PackMime's marginal distributions and what remembers between their draws.

use std::sync::LazyLock;

use aqmlab_net::{RandomStream, Time};
use serde::Deserialize;

use crate::curve::Curve;
use crate::long_memory::LongMemory;
use crate::normal::{FromNormal, normal, normal_above, normal_below};
use crate::shipped;
use crate::sizes::ENDLESS;

/// `parameters.toml`; the comments stand there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    arrivals: Arrivals,
    requests: Memory,
    rtt_client: RttPart,
    rtt_server: RttPart,
    cache_runs: Runs,
    download_runs: Runs,
    server_delay: ServerDelay,
    pub(super) persistent: super::persistent::Parameters,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrivals {
    shape: Logistic,
    d: f64,
    white_share: Logistic,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    d: f64,
    white_share: Logistic,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RttPart {
    power: f64,
    d: f64,
    white_share: Logistic,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runs {
    shape: Logistic,
    scale: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerDelay {
    shape: f64,
    scale: f64,
    least: f64,
}

/// (a, b): g(a + b log2(rate)) with the inverse logit of base 2, g(v) = 2^v / (1 + 2^v).
#[derive(Clone, Copy, Debug, Deserialize)]
struct Logistic(f64, f64);

impl Logistic {
    fn at(self, rate: f64) -> f64 {
        let power = libm::exp2(self.0 + self.1 * libm::log2(rate));
        power / (1.0 + power)
    }
}

impl Numbers {
    pub(super) fn shipped() -> Self {
        shipped::parameters(include_str!("../../data/packmime/parameters.toml"))
    }
}

/// A Weibull distribution: P(W > w) = exp(-(w / scale)^shape).
#[derive(Clone, Copy, Debug)]
struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// The value of a normal score.
    fn at(&self, z: f64) -> f64 {
        self.scale * libm::pow(-libm::log(normal_above(z)), 1.0 / self.shape)
    }
}

/// The distributions that do not depend on the rate: the value of a normal score.
struct Exact {
    /// Each half has its own table.
    request: [Curve; 2],
    cache: Curve,
    download: Curve,
    /// Of the inverse, in 1/s, and its least value.
    server_delay: (Weibull, f64),
    rtt: RttCurves,
}

impl Exact {
    fn shipped() -> Self {
        let [low, high, cache, download] = [
            include_str!("../../data/packmime/request_low.csv"),
            include_str!("../../data/packmime/request_high.csv"),
            include_str!("../../data/packmime/response_cache.csv"),
            include_str!("../../data/packmime/response_download.csv"),
        ]
        .map(Curve::read);
        let numbers = Numbers::shipped();
        let ServerDelay {
            shape,
            scale,
            least,
        } = numbers.server_delay;
        Self {
            request: [low, high],
            cache,
            download,
            server_delay: (Weibull { shape, scale }, least),
            rtt: RttCurves::new(&numbers),
        }
    }

    /// Bytes.
    fn request(&self, z: f64) -> f64 {
        let [low, high] = &self.request;
        if z <= 0.0 {
            low.at(2.0 * normal_below(z))
        } else {
            libm::exp2(high.at(libm::log2(2.0 * normal_above(z))))
        }
    }

    /// Bytes of a cache validation.
    fn cache(&self, z: f64) -> f64 {
        self.cache.at(normal_below(z))
    }

    /// Bytes.
    fn download(&self, z: f64) -> f64 {
        libm::exp2(self.download.at(libm::log2(normal_above(z))))
    }

    /// Seconds.
    fn server_delay(&self, z: f64) -> f64 {
        let (inverse, least) = self.server_delay;
        1.0 / inverse.at(z).max(least)
    }

    /// Milliseconds on the client's side (part 0) or the server's.
    fn rtt_ms(&self, part: usize, z: f64) -> f64 {
        self.rtt.part_ms(part, normal_above(z))
    }
}

/// The marginal distributions from tables, fast.
struct Marginals {
    request: FromNormal,
    /// Of cache validations, and of downloads.
    response: [FromNormal; 2],
    server_delay: FromNormal,
    rtt_ms: [FromNormal; 2],
}

static MARGINALS: LazyLock<Marginals> = LazyLock::new(|| Marginals::new(&Exact::shipped()));

impl Marginals {
    fn new(exact: &Exact) -> Self {
        Self {
            request: FromNormal::new(|z| exact.request(z)),
            response: [
                FromNormal::new(|z| exact.cache(z)),
                FromNormal::new(|z| exact.download(z)),
            ],
            server_delay: FromNormal::new(|z| exact.server_delay(z)),
            rtt_ms: [0, 1].map(|part| FromNormal::new(|z| exact.rtt_ms(part, z))),
        }
    }
}

/// Times between connections: Weibull, with long memory.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    marginal: FromNormal,
    memory: LongMemory,
}

impl Gaps {
    pub(super) fn new(numbers: &Numbers, rate: f64, stream: RandomStream) -> Self {
        let Arrivals {
            shape,
            d,
            white_share,
        } = &numbers.arrivals;
        let shape = shape.at(rate);
        // Mean 1 / rate.
        let scale = 1.0 / (rate * libm::tgamma(1.0 + 1.0 / shape));
        let weibull = Weibull { shape, scale };
        Self {
            marginal: FromNormal::new(|z| weibull.at(z)),
            memory: LongMemory::new(*d, white_share.at(rate), stream),
        }
    }

    /// Seconds.
    #[inline]
    pub(super) fn next(&mut self) -> f64 {
        self.marginal.at(self.memory.next())
    }
}

/// Sizes of requests, with long memory.
#[derive(Clone, Debug)]
pub(super) struct Requests(LongMemory);

impl Requests {
    pub(super) fn new(numbers: &Numbers, rate: f64, stream: RandomStream) -> Self {
        let Memory { d, white_share } = &numbers.requests;
        Self(LongMemory::new(*d, white_share.at(rate), stream))
    }

    /// Bytes.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        whole(MARGINALS.request.at(self.0.next()))
    }
}

/// Sizes of responses: runs of cache validations and of downloads take turns; within a run sizes
/// are independent.
#[derive(Clone, Debug)]
pub(super) struct Responses {
    /// Lengths of runs of cache validations, and of downloads.
    runs: [FromNormal; 2],
    is_download: bool,
    /// Responses of this run still to come.
    left: u64,
    stream: RandomStream,
}

impl Responses {
    pub(super) fn new(numbers: &Numbers, rate: f64, stream: RandomStream) -> Self {
        let runs = [&numbers.cache_runs, &numbers.download_runs].map(|runs| {
            let weibull = Weibull {
                shape: runs.shape.at(rate),
                scale: runs.scale,
            };
            FromNormal::new(|z| weibull.at(z))
        });
        Self {
            runs,
            is_download: false,
            left: 0,
            stream,
        }
    }

    /// Bytes.
    pub(super) fn next(&mut self) -> u64 {
        if self.left == 0 {
            self.is_download = !self.is_download;
            let length = self.runs[usize::from(self.is_download)].at(normal(&mut self.stream));
            self.left = (length.ceil() as u64).max(1);
        }
        self.left -= 1;
        let marginal = &MARGINALS.response[usize::from(self.is_download)];
        whole(marginal.at(normal(&mut self.stream)))
    }
}

/// Bytes as PackMime counts them: truncated, at least 1.
pub(super) fn whole(size: f64) -> u64 {
    (size as u64).clamp(1, ENDLESS)
}

/// Round-trip times: a part for the client's side and one for the server's, each with long memory.
#[derive(Clone, Debug)]
pub(crate) struct RttParts([LongMemory; 2]);

/// The distributions of both parts, without memory.
#[derive(Clone, Debug)]
pub(crate) struct RttCurves([(Curve, f64); 2]);

impl RttCurves {
    pub(crate) fn shipped() -> Self {
        Self::new(&Numbers::shipped())
    }

    fn new(numbers: &Numbers) -> Self {
        Self([
            (
                Curve::read(include_str!("../../data/packmime/rtt_client.csv")),
                numbers.rtt_client.power,
            ),
            (
                Curve::read(include_str!("../../data/packmime/rtt_server.csv")),
                numbers.rtt_server.power,
            ),
        ])
    }

    /// Milliseconds of the part that is exceeded with this probability.
    fn part_ms(&self, part: usize, above: f64) -> f64 {
        let (curve, power) = &self.0[part];
        libm::pow(curve.at(-libm::log10(above)), *power)
    }

    /// Milliseconds of the round trip whose parts are exceeded with these probabilities.
    pub(crate) fn exceeded_ms(&self, above: [f64; 2]) -> f64 {
        self.part_ms(0, above[0]) + self.part_ms(1, above[1])
    }

    /// The shortest round trip, in milliseconds.
    pub(crate) fn shortest_ms(&self) -> f64 {
        self.exceeded_ms([1.0; 2])
    }
}

impl RttParts {
    pub(super) fn new(numbers: &Numbers, rate: f64, streams: [RandomStream; 2]) -> Self {
        let [client, server] = streams;
        let memory =
            |part: &RttPart, stream| LongMemory::new(part.d, part.white_share.at(rate), stream);
        Self([
            memory(&numbers.rtt_client, client),
            memory(&numbers.rtt_server, server),
        ])
    }

    /// Milliseconds of the next connection's round trip.
    pub(super) fn next_ms(&mut self) -> f64 {
        let [client, server] = &mut self.0;
        let [clients, servers] = &MARGINALS.rtt_ms;
        clients.at(client.next()) + servers.at(server.next())
    }
}

/// How long servers take from the end of a request to the response.
#[derive(Clone, Debug)]
pub(super) struct ServerDelays(RandomStream);

impl ServerDelays {
    pub(super) const fn new(stream: RandomStream) -> Self {
        Self(stream)
    }

    pub(super) fn next(&mut self) -> Time {
        Time::from_secs_f64(MARGINALS.server_delay.at(normal(&mut self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table's relative errors at normal scores between quantiles 1e-6 and 1 - 1e-6: the mean over the
    /// distribution, and the largest.
    fn errors(table: &FromNormal, exact: impl Fn(f64) -> f64) -> [f64; 2] {
        const STEP: f64 = 1.0 / 1024.0;
        let (mut mean, mut largest) = (0.0, 0.0_f64);
        for step in -4867..4867 {
            let z = f64::from(step) * STEP;
            let error = (table.at(z) / exact(z) - 1.0).abs();
            mean += error * (normal_below(z + STEP) - normal_below(z));
            largest = largest.max(error);
        }
        [mean, largest]
    }

    #[test]
    fn tables_are_right_within_a_ten_thousandth() {
        let exact = Exact::shipped();
        let found = Marginals::new(&exact);
        for (name, [mean, largest]) in [
            ("request", errors(&found.request, |z| exact.request(z))),
            ("cache", errors(&found.response[0], |z| exact.cache(z))),
            (
                "download",
                errors(&found.response[1], |z| exact.download(z)),
            ),
            (
                "delay",
                errors(&found.server_delay, |z| exact.server_delay(z)),
            ),
            ("client", errors(&found.rtt_ms[0], |z| exact.rtt_ms(0, z))),
            ("server", errors(&found.rtt_ms[1], |z| exact.rtt_ms(1, z))),
        ] {
            assert!(mean < 1e-4, "{name}: {mean} on average");
            // At the corners of the published tables.
            assert!(largest < 1e-2, "{name}: {largest}");
        }
        // At 1, 20 and 200 connections/s: no corners.
        for shape in [0.56, 0.80, 0.91] {
            let weibull = Weibull { shape, scale: 1.0 };
            let table = FromNormal::new(|z| weibull.at(z));
            let [mean, largest] = errors(&table, |z| weibull.at(z));
            assert!(mean < 1e-4 && largest < 6e-4, "{shape}: {mean}, {largest}");
        }
    }
}
