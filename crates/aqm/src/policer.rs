//! A policer: a token bucket without a queue, as Linux's `act_police` keeps it. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Packet, QueueSize, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks};
use crate::bucket::{Bucket, elapsed};
use crate::check::{self, Problem};
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of a policer.
#[parameters]
pub struct Params {
    /// Rate at which tokens fill the bucket.
    #[param(least = "8 kbit/s", changeable)]
    pub rate: Rate,
    /// Size of the bucket, at least 1500 bytes.
    #[param(changeable)]
    pub burst: Bytes,
    /// What happens to a packet when the bucket has too few tokens.
    #[param(default)]
    pub excess: Excess,
    /// Tokens in the bucket at the start of the run, as a share of `burst`.
    #[param(default = 1.0, least = 0.0, most = 1.0)]
    pub initial: f64,
    /// Bytes that the policer adds to the IP size of each packet. Default: the bytes that the
    /// link's `framing` adds.
    #[param(most = 256, changeable)]
    pub overhead: Option<u32>,
    /// Size of the FIFO after the policer.
    #[param(default = "1000 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Set `excess = "mark"` instead.
    #[serde(skip)]
    pub ecn: bool,
}

/// What happens to a packet when the bucket has too few tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// The packet is dropped.
    #[default]
    Drop,
    /// An ECN-capable packet is marked and passes. Other packets are dropped.
    Mark,
}

/// The bucket had too little for the packet.
const POLICED: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "policed",
    meaning: "the bucket of the policer had too few tokens for the packet",
    marks: true,
});

/// The largest packet of common links.
pub(crate) const USUAL_PACKET: u64 = 1500;

/// A burst below a usual packet lets none of them pass.
pub(crate) fn burst_of_a_packet(burst: Bytes) -> Result<(), Problem> {
    if burst.0 >= USUAL_PACKET {
        return Ok(());
    }
    let message = format!(
        "found {burst}, which never passes a packet of {USUAL_PACKET} bytes; it must be at least that"
    );
    check::problem("burst", message)
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "A policer",
        paper: "T. Flach et al., An Internet-Wide Analysis of Traffic Policing, ACM SIGCOMM 2016, \
                section 2; the rules follow Linux's act_police",
        purpose: "Limits traffic to a rate. Packets do not wait for tokens: the policer drops a \
                  packet if the token bucket has too few tokens for this packet.",
        departures: &[
            "Packets that pass enter a FIFO, where they wait for the link.",
            "aqmlab has no `peakrate` (peak rate limit), no `mtu` (packet size limit), and no \
             actions except drop and mark.",
        ],
        memory: "one token bucket",
    };

    fn check_together(&self) -> Result<(), Problem> {
        burst_of_a_packet(self.burst)
    }
}

impl AqmParameters for Params {
    type Aqm = Policer;

    const REASONS: &'static [Reason] = &[POLICED, Reason::OVERFLOW];

    fn marks(&self) -> bool {
        self.excess == Excess::Mark
    }

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Policer {
        Policer {
            bucket: Bucket::new(self.rate, self.burst, self.initial),
            stated: self.overhead,
            overhead: self.overhead.unwrap_or(link.framing.0 as u32),
            burst: self.burst,
            looked: Time::ZERO,
        }
    }
}

/// The AQM of a policer: its bucket.
#[derive(Clone, Debug)]
pub struct Policer {
    bucket: Bucket,
    burst: Bytes,
    stated: Option<u32>,
    overhead: u32,
    /// When the last packet passed: a packet that does not pass changes nothing.
    looked: Time,
}

impl Aqm for Policer {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        _queue: Backlog,
        _draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let bytes = packet.size + self.overhead;
        let left = self.bucket.left(elapsed(self.looked, now), bytes);
        if left < 0 {
            return Decision::Signal(POLICED);
        }
        self.bucket.set(left);
        self.looked = now;
        Decision::Admit
    }

    fn hooks(&self) -> Hooks {
        Hooks::ARRIVALS
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.overhead = self.stated.unwrap_or(link.framing.0 as u32);
    }

    fn adopt(&mut self, fresh: Self) {
        self.bucket.adopt(fresh.bucket);
        (self.burst, self.stated) = (fresh.burst, fresh.stated);
        self.overhead = fresh.overhead;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["credit_ms"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.push(self.bucket.credit() as f64 / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{Ecn, FlowKey, RandomStream};

    use super::*;
    use crate::worked::rows;

    const LINK: LinkFacts = LinkFacts {
        rate: Rate::from_mbps(100),
        framing: Bytes(0),
    };

    fn packet(size: u32) -> Packet {
        Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        }
    }

    fn params(bps: u64, burst: u64) -> Params {
        Params {
            rate: Rate::from_bps(bps),
            burst: Bytes(burst),
            excess: Excess::Drop,
            initial: 1.0,
            overhead: None,
            limit: QueueSize::Packets(1000.0),
            ecn: false,
        }
    }

    fn passes(policer: &mut Policer, now: Time, size: u32) -> bool {
        let mut draw = || unreachable!("nothing is left to chance");
        let queue = Backlog::default();
        policer.on_arrival(now, &packet(size), queue, &mut draw) == Decision::Admit
    }

    #[test]
    fn passes_what_the_kernel_passes_and_keeps_its_credit() {
        let mut policer = params(1_000_000, 10_000).aqm(LINK, 1);
        let mut seen = 0;
        for row in rows(include_str!("../tests/data/police.csv")) {
            if row.text("case") != "rate 1 Mbit/s burst 10000" {
                continue; // With a peak rate, which a policer here lacks.
            }
            let now = Time::from_nanos(row.text("time_ns").parse().unwrap());
            let passed = passes(&mut policer, now, row.text("size_bytes").parse().unwrap());
            let packet = row.text("packet");
            assert_eq!(passed, row.text("fate") == "pass", "packet {packet}");
            let credit = policer.bucket.credit().to_string();
            assert_eq!(credit, row.text("credit_after_ns"), "packet {packet}");
            seen += 1;
        }
        assert_eq!(seen, 121);
    }

    /// In bytes and ns multiplied, without any rounding: 8 ns a byte.
    #[test]
    fn decides_as_fractions_do_and_never_passes_more_than_burst_and_rate() {
        const BURST: i128 = 30_000;
        let mut policer = params(1_000_000_000, BURST as u64).aqm(LINK, 1);
        let mut stream = RandomStream::new(1, "arrivals", 0);
        let (mut tokens, mut last, mut now) = (BURST * 8, 0_i128, 0_i128);
        // How far what has passed is above the rate, and the least that this has been.
        let (mut above, mut least) = (0_i128, 0_i128);
        for arrival in 0..10_000 {
            let step = stream.below(20_000) as i128;
            now += step;
            above -= step;
            let size = [64, 576, 1500][stream.below(3)];
            let filled = (tokens + now - last).min(BURST * 8);
            let right = filled >= i128::from(size) * 8;
            let found = passes(&mut policer, Time::from_nanos(now as u64), size);
            assert_eq!(found, right, "arrival {arrival}");
            least = least.min(above);
            if found {
                (tokens, last) = (filled - i128::from(size) * 8, now);
                above += i128::from(size) * 8;
                assert!(above - least <= BURST * 8, "arrival {arrival}");
            }
        }
    }

    #[test]
    fn a_burst_below_a_packet_is_refused() {
        let (field, message) = params(1_000_000, 1000).check_together().unwrap_err();
        assert_eq!(field, "burst");
        assert!(
            message.contains("1000 bytes, which never passes a packet of 1500"),
            "{message}"
        );
    }

    #[test]
    fn the_framing_of_the_link_counts_unless_an_overhead_is_stated() {
        let framed = LinkFacts {
            framing: Bytes(38),
            ..LINK
        };
        let stated = Params {
            overhead: Some(0),
            ..params(8_000_000, 3000)
        };
        let mut policers = [params(8_000_000, 3000), stated].map(|params| params.aqm(framed, 1));
        let passed = policers
            .each_mut()
            .map(|policer| [1500, 1500].map(|size| passes(policer, Time::ZERO, size)));
        assert_eq!(passed, [[true, false], [true, true]]);
    }
}
