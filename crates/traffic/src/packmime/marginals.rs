//! PackMime's marginal distributions and what remembers between their draws.

use aqmlab_net::{RandomStream, Time};
use serde::Deserialize;

use crate::curve::Curve;
use crate::long_memory::{LongMemory, normal_above, normal_below};
use crate::sizes::ENDLESS;

/// `parameters.toml`; the comments stand there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
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

impl Parameters {
    pub(super) fn shipped() -> Self {
        toml::from_str(include_str!("../../data/packmime/parameters.toml"))
            .expect("parameters that ship with the crate are well formed")
    }
}

/// A Weibull distribution: P(W > w) = exp(-(w / scale)^shape).
#[derive(Clone, Copy, Debug)]
struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// The value that is exceeded with probability `above`.
    fn exceeded(&self, above: f64) -> f64 {
        self.scale * libm::pow(-libm::log(above), 1.0 / self.shape)
    }
}

/// Times between connections: Weibull, with long memory.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    weibull: Weibull,
    memory: LongMemory,
}

impl Gaps {
    pub(super) fn new(numbers: &Parameters, rate: f64, stream: RandomStream) -> Self {
        let Arrivals {
            shape,
            d,
            white_share,
        } = &numbers.arrivals;
        let shape = shape.at(rate);
        // Mean 1 / rate.
        let scale = 1.0 / (rate * libm::tgamma(1.0 + 1.0 / shape));
        Self {
            weibull: Weibull { shape, scale },
            memory: LongMemory::new(*d, white_share.at(rate), stream),
        }
    }

    /// Seconds.
    pub(super) fn next(&mut self) -> f64 {
        self.weibull.exceeded(normal_above(self.memory.next()))
    }
}

/// Sizes of requests, with long memory.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    low: Curve,
    high: Curve,
    memory: LongMemory,
}

impl Requests {
    pub(super) fn new(numbers: &Parameters, rate: f64, stream: RandomStream) -> Self {
        let Memory { d, white_share } = &numbers.requests;
        Self {
            low: Curve::read(include_str!("../../data/packmime/request_low.csv")),
            high: Curve::read(include_str!("../../data/packmime/request_high.csv")),
            memory: LongMemory::new(*d, white_share.at(rate), stream),
        }
    }

    /// Bytes. Each half of the distribution has its own table.
    pub(super) fn next(&mut self) -> u64 {
        let z = self.memory.next();
        whole(if z <= 0.0 {
            self.low.at(2.0 * normal_below(z))
        } else {
            libm::exp2(self.high.at(libm::log2(2.0 * normal_above(z))))
        })
    }
}

/// Sizes of responses: runs of cache validations and of downloads take turns; within a run sizes
/// are independent.
#[derive(Clone, Debug)]
pub(super) struct Responses {
    cache: Curve,
    download: Curve,
    /// Lengths of runs of cache validations, and of downloads.
    runs: [Weibull; 2],
    is_download: bool,
    /// Responses of this run still to come.
    left: u64,
    stream: RandomStream,
}

impl Responses {
    pub(super) fn new(numbers: &Parameters, rate: f64, stream: RandomStream) -> Self {
        let runs = [&numbers.cache_runs, &numbers.download_runs].map(|runs| Weibull {
            shape: runs.shape.at(rate),
            scale: runs.scale,
        });
        Self {
            cache: Curve::read(include_str!("../../data/packmime/response_cache.csv")),
            download: Curve::read(include_str!("../../data/packmime/response_download.csv")),
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
            let run = self.runs[usize::from(self.is_download)];
            let length = run.exceeded(self.stream.uniform_positive());
            self.left = (length.ceil() as u64).max(1);
        }
        self.left -= 1;
        let u = self.stream.uniform_positive();
        whole(if self.is_download {
            libm::exp2(self.download.at(libm::log2(u)))
        } else {
            self.cache.at(1.0 - u)
        })
    }
}

/// Bytes as PackMime counts them: truncated, at least 1.
pub(super) fn whole(size: f64) -> u64 {
    (size as u64).clamp(1, ENDLESS)
}

/// Round-trip times: a part for the client's side and one for the server's, each with long memory.
#[derive(Clone, Debug)]
pub(crate) struct RttParts {
    curves: RttCurves,
    memories: [LongMemory; 2],
}

/// The distributions of both parts, without memory.
#[derive(Clone, Debug)]
pub(crate) struct RttCurves([(Curve, f64); 2]);

impl RttCurves {
    pub(crate) fn shipped() -> Self {
        Self::new(&Parameters::shipped())
    }

    fn new(numbers: &Parameters) -> Self {
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

    /// Milliseconds of the round trip whose parts are exceeded with these probabilities.
    pub(crate) fn exceeded_ms(&self, above: [f64; 2]) -> f64 {
        let parts = self.0.iter().zip(above);
        parts
            .map(|((curve, power), above)| libm::pow(curve.at(-libm::log10(above)), *power))
            .sum()
    }

    /// The shortest round trip, in milliseconds.
    pub(crate) fn shortest_ms(&self) -> f64 {
        self.exceeded_ms([1.0; 2])
    }
}

impl RttParts {
    pub(super) fn new(numbers: &Parameters, rate: f64, streams: [RandomStream; 2]) -> Self {
        let [client, server] = streams;
        let memory =
            |part: &RttPart, stream| LongMemory::new(part.d, part.white_share.at(rate), stream);
        Self {
            curves: RttCurves::new(numbers),
            memories: [
                memory(&numbers.rtt_client, client),
                memory(&numbers.rtt_server, server),
            ],
        }
    }

    /// Milliseconds of the next connection's round trip.
    pub(super) fn next_ms(&mut self) -> f64 {
        let above = self
            .memories
            .each_mut()
            .map(|memory| normal_above(memory.next()));
        self.curves.exceeded_ms(above)
    }
}

/// How long servers take from the end of a request to the response.
#[derive(Clone, Debug)]
pub(super) struct ServerDelays {
    /// Of the inverse, in 1/s.
    weibull: Weibull,
    least: f64,
    stream: RandomStream,
}

impl ServerDelays {
    pub(super) fn new(numbers: &Parameters, stream: RandomStream) -> Self {
        let ServerDelay {
            shape,
            scale,
            least,
        } = numbers.server_delay;
        Self {
            weibull: Weibull { shape, scale },
            least,
            stream,
        }
    }

    pub(super) fn next(&mut self) -> Time {
        let inverse = self.weibull.exceeded(self.stream.uniform_positive());
        Time::from_secs_f64(1.0 / inverse.max(self.least))
    }
}
