//! The distributions of the UNC model; the numbers are `data/unc2001/parameters.toml`.

use aqmlab_net::RandomStream;
use serde::Deserialize;

use crate::shipped;
use crate::sizes::BoundedPareto;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    pub(super) request: Size,
    pub(super) response: Size,
    pub(super) response_factor: Factor,
    embedded: Embedded,
    servers: Servers,
    visit: Visit,
    pub(super) think: Think,
}

/// Log-normal, with a bounded Pareto tail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    median: f64,
    sigma: f64,
    tail_probability: f64,
    tail_minimum: f64,
    tail_shape: f64,
    tail_maximum: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Factor {
    pub(super) persistent: f64,
    pub(super) other: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Embedded {
    median: f64,
    sigma: f64,
    largest: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    another: f64,
    most: usize,
    primary: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Visit {
    another: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Think {
    median: f64,
    sigma: f64,
    longest: f64,
}

impl Numbers {
    pub(super) fn shipped() -> Self {
        shipped::parameters(include_str!("../../data/unc2001/parameters.toml"))
    }

    /// Objects of a page on each of its servers; the first one is the primary server, which has
    /// the top-level object.
    pub(super) fn page(&self, stream: &mut RandomStream) -> Vec<u32> {
        let drawn = log_normal(self.embedded.median, self.embedded.sigma, stream);
        let embedded = (drawn as u32).min(self.embedded.largest);
        let mut objects = vec![1];
        while objects.len() < self.servers.most
            && objects.len() <= embedded as usize
            && stream.uniform() < self.servers.another
        {
            objects.push(1);
        }
        let placed = objects.len() as u32 - 1;
        for _ in placed..embedded {
            let server = if stream.uniform() < self.servers.primary {
                0
            } else {
                stream.below(objects.len())
            };
            objects[server] += 1;
        }
        objects
    }

    /// Consecutive pages of a primary server.
    pub(super) fn visit(&self, stream: &mut RandomStream) -> u32 {
        let mut pages = 1;
        while stream.uniform() < self.visit.another {
            pages += 1;
        }
        pages
    }
}

impl Size {
    pub(super) fn sample(&self, stream: &mut RandomStream) -> f64 {
        if stream.uniform() < self.tail_probability {
            let tail = BoundedPareto::new(self.tail_shape, self.tail_minimum, self.tail_maximum);
            return tail.quantile(stream.uniform());
        }
        loop {
            let size = log_normal(self.median, self.sigma, stream);
            if size < self.tail_minimum {
                return size;
            }
        }
    }
}

impl Think {
    pub(super) fn sample(&self, stream: &mut RandomStream) -> f64 {
        loop {
            let think = log_normal(self.median, self.sigma, stream);
            if think <= self.longest {
                return think;
            }
        }
    }

    /// What is left of one that is met at a random moment.
    pub(super) fn rest(&self, stream: &mut RandomStream) -> f64 {
        loop {
            let think = self.sample(stream);
            if stream.uniform() * self.longest < think {
                return stream.uniform() * think;
            }
        }
    }
}

fn log_normal(median: f64, sigma: f64, stream: &mut RandomStream) -> f64 {
    median * libm::exp(sigma * stream.normal())
}
