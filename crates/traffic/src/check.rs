//! Refuses parameters that contradict each other or mean nothing. Every error names the field and
//! says what was found and what would be right.

use aqmlab_net::{Bytes, Frequency, Rate, Time};

use crate::on_off::OnOff;
use crate::packmime::PackMime;
use crate::params::{Bulk, Cbr, GeneralTcp, MahWeb, Model, Poisson, Rtt, Sizes, Vectors};
use crate::script::HostCounts;
use crate::session::WebSessions;
use crate::telnet::Telnet;
use crate::unc::UncWeb;

/// Which field is wrong, and why.
type Problem = (String, String);

fn problem(field: &str, message: impl Into<String>) -> Result<(), Problem> {
    Err((field.to_owned(), message.into()))
}

/// A real number that must be finite and above zero.
fn positive(field: &str, value: f64) -> Result<(), Problem> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        problem(field, format!("found {value}; it must be above 0"))
    }
}

/// A number of things, of which there must be one.
fn at_least_one(field: &str, number: u32) -> Result<(), Problem> {
    if number > 0 {
        Ok(())
    } else {
        problem(field, "found 0; it must be at least 1")
    }
}

/// A size that must hold a byte.
fn some_bytes(field: &str, size: Bytes) -> Result<(), Problem> {
    if size.0 > 0 {
        Ok(())
    } else {
        problem(field, format!("found {size}; it must be at least 1 byte"))
    }
}

/// Puts the name of the enclosing field in front.
fn within(field: &str, result: Result<(), Problem>) -> Result<(), Problem> {
    result.map_err(|(inner, message)| (format!("{field}.{inner}"), message))
}

impl Model {
    /// Refuses what means nothing; the error is the field and the message.
    pub fn check(&self) -> Result<(), (String, String)> {
        match self {
            Self::MahWeb(params) => params.check(),
            Self::UncWeb(params) => params.check(),
            Self::WebSessions(params) => params.check(),
            Self::Poisson(params) => params.check(),
            Self::Vectors(params) => params.check(),
            Self::GeneralTcp(params) => params.check(),
            Self::Packmime(params) => params.check(),
            Self::Bulk(params) => params.check(),
            Self::Cbr(params) => params.check(),
            Self::OnOff(params) => params.check(),
            Self::Telnet(params) => params.check(),
        }
    }
}

impl MahWeb {
    fn check(&self) -> Result<(), Problem> {
        at_least_one("users", self.users.unwrap_or(1))?;
        at_least_one("parallel", self.parallel)?;
        positive("reply_scale", self.reply_scale)
    }
}

/// More copies than this are another experiment.
const MOST_COPIES: f64 = 1000.0;

impl Vectors {
    fn check(&self) -> Result<(), Problem> {
        positive("copies", self.copies.unwrap_or(1.0))?;
        if self.copies.unwrap_or(1.0) > MOST_COPIES {
            let copies = self.copies.unwrap_or_default();
            return problem("copies", format!("found {copies}; at most {MOST_COPIES}"));
        }
        positive("stretch", self.stretch)
    }
}

impl GeneralTcp {
    fn check(&self) -> Result<(), Problem> {
        some_rate(self.rate)?;
        let shares = [
            ("web", self.web),
            ("mail", self.mail),
            ("news", self.news),
            ("files", self.files),
            ("chat", self.chat),
            ("peer_to_peer", self.peer_to_peer),
        ];
        for (field, share) in shares {
            if !(share.is_finite() && share >= 0.0) {
                return problem(field, format!("found {share}; a share is not negative"));
            }
        }
        if shares.iter().all(|&(_, share)| share == 0.0) {
            return problem(
                "web",
                "found no share above 0; some application must have one",
            );
        }
        positive("tail", self.tail)?;
        if self.largest.0 < SMALLEST_LARGEST {
            let right = format!("it must be at least {}", Bytes(SMALLEST_LARGEST));
            return problem("largest", format!("found {}; {right}", self.largest));
        }
        Ok(())
    }
}

/// Files begin at 250 kB: the largest must leave them a range.
const SMALLEST_LARGEST: u64 = 1_000_000;

impl Poisson {
    fn check(&self) -> Result<(), Problem> {
        some_rate(self.rate)?;
        within("request", self.request.check())?;
        within("response", self.response.check())
    }
}

impl PackMime {
    fn check(&self) -> Result<(), Problem> {
        some_rate(self.rate)
    }
}

/// A rate of connections, where one is given.
fn some_rate(rate: Option<Frequency>) -> Result<(), Problem> {
    match rate {
        Some(rate) if !(rate.0.is_finite() && rate.0 > 0.0) => {
            problem("rate", format!("found {rate}; it must be above 0 /s"))
        }
        _ => Ok(()),
    }
}

impl Bulk {
    fn check(&self) -> Result<(), Problem> {
        at_least_one("flows", self.flows)?;
        some_bytes("size", self.size.unwrap_or(Bytes(1)))
    }
}

/// A datagram has at least a byte behind its IP and UDP headers.
const DATAGRAM_BYTES: std::ops::RangeInclusive<u64> = 29..=65_535;

impl Cbr {
    fn check(&self) -> Result<(), Problem> {
        datagrams(self.flows, self.rate, self.packet)
    }
}

impl OnOff {
    fn check(&self) -> Result<(), Problem> {
        datagrams(self.flows, self.rate, self.packet)?;
        for (field, mean) in [("mean_on", self.mean_on), ("mean_off", self.mean_off)] {
            if mean == Time::ZERO {
                return problem(field, format!("found {mean}; it must be above 0"));
            }
        }
        if self.shape.is_finite() && self.shape > 1.0 {
            return Ok(());
        }
        let right = "a Pareto distribution has a mean only if its shape is above 1";
        problem("shape", format!("found {}; {right}", self.shape))
    }
}

fn datagrams(flows: u32, rate: Rate, packet: Bytes) -> Result<(), Problem> {
    at_least_one("flows", flows)?;
    if rate.bps() == 0 {
        return problem("rate", "found 0 bit/s; a rate must be above 0");
    }
    if DATAGRAM_BYTES.contains(&packet.0) {
        return Ok(());
    }
    let right = "a datagram has 29 to 65535 bytes, 28 of them headers";
    problem("packet", format!("found {packet}; {right}"))
}

impl UncWeb {
    fn check(&self) -> Result<(), Problem> {
        at_least_one("users", self.users.unwrap_or(1))?;
        at_least_one("parallel", self.parallel)?;
        if !(0.0..=1.0).contains(&self.persistent) {
            let message = format!("found {}; a probability from 0 to 1", self.persistent);
            return problem("persistent", message);
        }
        positive("think_scale", self.think_scale)?;
        positive("response_scale", self.response_scale)
    }
}

impl WebSessions {
    fn check(&self) -> Result<(), Problem> {
        at_least_one("sessions", self.sessions.unwrap_or(1))?;
        within("transfer", self.transfer.check())?;
        let (least, most) = (self.think_min, self.think_max);
        if most < least {
            let message = format!("found {most}; it must not be below think_min, {least}");
            return problem("think_max", message);
        }
        if most == Time::ZERO {
            let message = "found 0 s; with no time to think a session would never stop asking";
            return problem("think_max", message);
        }
        Ok(())
    }
}

impl Telnet {
    fn check(&self) -> Result<(), Problem> {
        at_least_one("sessions", self.sessions)?;
        some_bytes("keystroke", self.keystroke)?;
        some_bytes("echo", self.echo)?;
        if (1..=MOST_KEYSTROKES).contains(&self.keystrokes) {
            return Ok(());
        }
        let message = format!("found {}; expected 1 to {MOST_KEYSTROKES}", self.keystrokes);
        problem("keystrokes", message)
    }
}

/// All keystrokes of a connection are kept in memory.
const MOST_KEYSTROKES: u32 = 100_000;

impl Sizes {
    /// Refuses what means nothing; the error is the field and the message.
    pub fn check(&self) -> Result<(), (String, String)> {
        match self {
            Self::Constant { size } => some_bytes("size", *size),
            Self::Lognormal { median, sigma } => {
                some_bytes("median", *median)?;
                positive("sigma", *sigma)
            }
            Self::Pareto { shape, minimum } => {
                positive("shape", *shape)?;
                some_bytes("minimum", *minimum)
            }
            Self::BoundedPareto {
                shape,
                minimum,
                maximum,
            } => {
                positive("shape", *shape)?;
                some_bytes("minimum", *minimum)?;
                if maximum > minimum {
                    return Ok(());
                }
                problem(
                    "maximum",
                    format!("found {maximum}; it must exceed minimum, {minimum}"),
                )
            }
            Self::Empirical { cdf, .. } => check_cdf(cdf),
        }
    }
}

/// Rows of (round-trip time, cumulative probability): both ascending, the last probability 1. Times
/// may stay the same: then they have the probability between them.
fn check_rtts(cdf: &[(Time, f64)]) -> Result<(), Problem> {
    let Some(&(first, probability)) = cdf.first() else {
        return problem("cdf", "found no rows; give them, or a file that has them");
    };
    if first == Time::ZERO || !(0.0..=1.0).contains(&probability) {
        let right = "a time is above 0 and a probability from 0 to 1";
        return problem(
            "cdf",
            format!("found ({first}, {probability}) in row 1; {right}"),
        );
    }
    for (index, pair) in cdf.windows(2).enumerate() {
        let ((rtt, probability), (next, after)) = (pair[0], pair[1]);
        if !(next >= rtt && after >= probability) {
            let found = format!("found ({next}, {after}) in row {}", index + 2);
            let right = "times and probabilities must ascend";
            return problem(
                "cdf",
                format!("{found} after ({rtt}, {probability}); {right}"),
            );
        }
    }
    let (longest, last) = cdf[cdf.len() - 1];
    if (last - 1.0).abs() > 1e-9 {
        let right = "its probability must be 1";
        return problem(
            "cdf",
            format!("found ({longest}, {last}) in the last row; {right}"),
        );
    }
    Ok(())
}

/// Rows of (bytes, cumulative probability): both ascending, the last probability 1.
fn check_cdf(cdf: &[(f64, f64)]) -> Result<(), Problem> {
    let Some(&(first_size, first_probability)) = cdf.first() else {
        return problem("cdf", "found no rows; give them, or a file that has them");
    };
    if !(first_size >= 0.0 && first_probability >= 0.0) {
        return problem(
            "cdf",
            format!("found ({first_size}, {first_probability}) in row 1; nothing is negative"),
        );
    }
    for (index, pair) in cdf.windows(2).enumerate() {
        let ((size, probability), (next_size, next_probability)) = (pair[0], pair[1]);
        if !(next_size > size && next_probability >= probability) {
            return problem(
                "cdf",
                format!(
                    "found ({next_size}, {next_probability}) in row {} after ({size}, \
                     {probability}); sizes and probabilities must ascend",
                    index + 2
                ),
            );
        }
    }
    let (last_size, last) = cdf[cdf.len() - 1];
    if !last_size.is_finite() || (last - 1.0).abs() > 1e-9 {
        return problem(
            "cdf",
            format!("found ({last_size}, {last}) in the last row; its probability must be 1"),
        );
    }
    Ok(())
}

impl Rtt {
    /// Refuses what means nothing between `hosts`; the error is the field and the message.
    pub fn check(&self, hosts: HostCounts) -> Result<(), (String, String)> {
        match self {
            Self::Constant { .. }
            | Self::Vector { .. }
            | Self::General { .. }
            | Self::Packmime { .. } => Ok(()),
            Self::Empirical { cdf, .. } => check_rtts(cdf),
            Self::Uniform { min, max } => {
                if min <= max {
                    return Ok(());
                }
                problem(
                    "max",
                    format!("found {max}; it must not be below min, {min}"),
                )
            }
            Self::Pairs { matrix, .. } => {
                let HostCounts { clients, servers } = hosts;
                if matrix.len() != servers as usize {
                    return problem(
                        "matrix",
                        format!(
                            "found {} rows; there must be one per server host, {servers}",
                            matrix.len()
                        ),
                    );
                }
                let odd = |row: &Vec<_>| row.len() != clients as usize;
                let Some(row) = matrix.iter().position(odd) else {
                    return Ok(());
                };
                problem(
                    "matrix",
                    format!(
                        "found {} entries in row {}; there must be one per client host, {clients}",
                        matrix[row].len(),
                        row + 1
                    ),
                )
            }
        }
    }
}
