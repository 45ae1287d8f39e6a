//! The names of links and their directions.

use aqmlab_net::RandomStream;
use aqmlab_scenario::{Hop, Network};

/// One direction of a link, as results and random streams call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkDirection {
    /// The link's name.
    pub link: String,
    /// `forward` or `reverse`; of Wi-Fi `down` or `up`.
    pub direction: &'static str,
}

impl LinkDirection {
    /// Those of a network's links: two for each link, forward first.
    pub fn all(network: &Network) -> Vec<Self> {
        let both = |link: &String| {
            [false, true].map(|reversed| Self {
                link: link.clone(),
                direction: Hop { link: 0, reversed }.direction(),
            })
        };
        network.links.keys().flat_map(both).collect()
    }

    /// Those of the air that Wi-Fi shares: from the access point to the stations, and back.
    pub fn of_air() -> [Self; 2] {
        ["down", "up"].map(|direction| Self {
            link: "wifi".to_owned(),
            direction,
        })
    }

    /// What its random streams are called. A dumbbell's have no other name than the direction.
    pub fn stream(&self) -> String {
        match self.link.as_str() {
            "bottleneck" => self.direction.to_owned(),
            link => format!("{link}/{}", self.direction),
        }
    }

    /// Its random numbers for a purpose, such as `loss`, in a run with this seed.
    pub fn random_stream(&self, seed: u64, purpose: &str) -> RandomStream {
        RandomStream::new(seed, &format!("{purpose}/{}", self.stream()), 0)
    }
}
