//! PackMime's persistent connections (HTTP/1.1): pages of objects, with gaps.

use aqmlab_net::{RandomStream, Time};
use serde::Deserialize;

use super::marginals::{self, whole};
use crate::script::Exchange;

/// `[persistent]` of `parameters.toml`; the comments stand there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    probability: f64,
    one_page: f64,
    pages_scale: f64,
    one_object: f64,
    objects_scale: f64,
    largest_validation: u64,
    page_gap: LogNormalMixture,
    object_gap: LogNormalMixture,
    response: LogNormalMixture,
}

/// 2^(L + sqrt(S error) N): location L and spread S once per connection, N each time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogNormalMixture {
    mean: f64,
    variance: f64,
    gamma: f64,
    error: f64,
}

/// A mixture with the location and the spread of one connection.
#[derive(Clone, Copy, Debug)]
struct LogNormal {
    location: f64,
    deviation: f64,
}

impl LogNormalMixture {
    fn of_connection(&self, stream: &mut RandomStream) -> LogNormal {
        let location = self.mean + libm::sqrt(self.variance) * stream.normal();
        let spread = gamma(self.gamma, stream) / self.gamma;
        LogNormal {
            location,
            deviation: libm::sqrt(spread * self.error),
        }
    }
}

impl LogNormal {
    fn sample(&self, stream: &mut RandomStream) -> f64 {
        libm::exp2(self.location + self.deviation * stream.normal())
    }
}

/// A gamma variable of scale 1 and a `shape` of at least 1 (Marsaglia and Tsang 2000).
fn gamma(shape: f64, stream: &mut RandomStream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = stream.normal();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        if libm::log(stream.uniform_positive()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// Which connections are persistent, and what happens on them.
#[derive(Clone, Debug)]
pub(super) struct Persistence {
    numbers: Parameters,
    stream: RandomStream,
}

impl Persistence {
    pub(super) fn new(numbers: &marginals::Numbers, stream: RandomStream) -> Self {
        Self {
            numbers: numbers.persistent.clone(),
            stream,
        }
    }

    /// The exchanges of a connection: only the first one if it is not persistent.
    pub(super) fn exchanges(&mut self, first: Exchange) -> Vec<Exchange> {
        let (numbers, stream) = (&self.numbers, &mut self.stream);
        let mut exchanges = vec![first];
        if stream.uniform() >= numbers.probability {
            return exchanges;
        }
        let page_gap = numbers.page_gap.of_connection(stream);
        let object_gap = numbers.object_gap.of_connection(stream);
        let sizes = numbers.response.of_connection(stream);
        let pages = numbers.pages(stream);
        for page in 0..pages {
            let objects = numbers.objects(pages, stream);
            for object in 0..objects {
                if page + object == 0 {
                    continue; // It is there.
                }
                let gap = if object == 0 { page_gap } else { object_gap };
                let pause = Time::from_secs_f64(gap.sample(stream));
                exchanges.last_mut().expect("the first is there").pause = pause;
                let response = if first.response > numbers.largest_validation {
                    whole(sizes.sample(stream))
                } else {
                    first.response
                };
                exchanges.push(Exchange::new(first.request, response));
            }
        }
        exchanges
    }
}

impl Parameters {
    fn pages(&self, stream: &mut RandomStream) -> u32 {
        if stream.uniform() < self.one_page {
            1
        } else {
            several(self.pages_scale, stream)
        }
    }

    /// Objects of one of the `pages` of a connection.
    fn objects(&self, pages: u32, stream: &mut RandomStream) -> u32 {
        if pages > 1 && stream.uniform() < self.one_object {
            1
        } else {
            several(self.objects_scale, stream)
        }
    }
}

/// ceil(1 + exponential), at least 2.
fn several(scale: f64, stream: &mut RandomStream) -> u32 {
    (1.0 + stream.exponential(scale)).ceil().max(2.0) as u32
}
