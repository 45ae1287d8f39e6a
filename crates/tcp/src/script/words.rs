//! The words of a segment, read and written.

use std::fmt::Write;

use aqmlab_net::Ecn;

use crate::segment::{AccEcnOption, Flags, Options, Segment, Timestamps};

/// Letters of the control bits, in the order in which they are written.
const FLAGS: [(char, Flags); 7] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('A', Flags::ACK),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('N', Flags::AE),
];
/// The most segments of one line.
const MOST: u32 = 10_000;

/// A sequence number, or another whole number of 32 bits.
pub(super) fn number(word: &str) -> Result<u32, String> {
    word.parse()
        .map_err(|_| format!("found {word:?}; expected a number below 4294967296"))
}

/// `FLAGS SEQ[+LEN] [ack N] [sack A-B,C-D] [sackok] [ts VALUE/ECHO] [accecn|accecn1 N/N/N] [ect|ect1|ce] [xTIMES]`.
pub(super) fn parse(words: &str) -> Result<(Segment, u32), String> {
    let mut words = words.split_whitespace();
    let letters = words.next().unwrap_or_default();
    let mut flags = Flags::default();
    for letter in letters.chars() {
        let (_, flag) = FLAGS
            .iter()
            .find(|(known, _)| *known == letter)
            .ok_or_else(|| format!("unknown flag {letter}"))?;
        flags = flags.with(*flag);
    }
    let numbers = words.next().unwrap_or_default();
    let (seq, len) = numbers.split_once('+').unwrap_or((numbers, "0"));
    let mut segment = Segment {
        seq: u64::from(number(seq)?),
        ack: 0,
        len: number(len)?,
        flags,
        ecn: Ecn::NotEct,
        options: Options::NONE,
    };
    let mut times = 1;
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or_else(|| format!("{word} lacks its value"))
        };
        match word {
            "ack" => segment.ack = u64::from(number(value()?)?),
            "sackok" => segment.options.permit_sack(),
            "ect" => segment.ecn = Ecn::Ect0,
            "ect1" => segment.ecn = Ecn::Ect1,
            "ce" => segment.ecn = Ecn::Ce,
            "sack" => {
                for block in value()?.split(',') {
                    let (from, to) = block.split_once('-').ok_or("a block is FROM-TO")?;
                    let (from, to) = (number(from)?, number(to)?);
                    segment.options.push_sack_block(from.into(), to.into());
                }
            }
            "accecn" | "accecn1" => {
                segment
                    .options
                    .set_accecn(counters(value()?, word == "accecn1")?);
            }
            "ts" => {
                let (value, echo) = value()?.split_once('/').ok_or("time stamps are V/E")?;
                segment.options.set_timestamps(Timestamps {
                    value: number(value)?,
                    echo: number(echo)?,
                    transit: None,
                });
            }
            _ => match word.strip_prefix('x').map(number) {
                Some(Ok(count)) if count <= MOST => times = count,
                Some(Ok(_)) => return Err(format!("found {word}; expected at most x{MOST}")),
                _ => return Err(format!("unknown word {word}")),
            },
        }
    }
    Ok((segment, times))
}

/// The counters of the option of Accurate ECN, in its order.
fn counters(words: &str, ect1_first: bool) -> Result<AccEcnOption, String> {
    let fields: Vec<u32> = words.split('/').map(number).collect::<Result<_, _>>()?;
    let mut all = [0; 3];
    let Some(place) = all.get_mut(..fields.len()) else {
        return Err(format!("found {} counters; expected 1 to 3", fields.len()));
    };
    place.copy_from_slice(&fields);
    if all.iter().any(|&count| count > AccEcnOption::MASK) {
        return Err(format!(
            "found {words}; expected counters up to {}",
            AccEcnOption::MASK
        ));
    }
    if ect1_first {
        all.reverse();
    }
    let mut option = AccEcnOption::new(ect1_first, all);
    option.truncate(fields.len());
    Ok(option)
}

/// A segment in the words of scripts.
pub fn show(segment: &Segment) -> String {
    let mut shown: String = FLAGS
        .iter()
        .filter(|(_, flag)| segment.flags.has(*flag))
        .map(|(letter, _)| *letter)
        .collect();
    let _ = write!(shown, " {}", segment.seq);
    if segment.len > 0 {
        let _ = write!(shown, "+{}", segment.len);
    }
    if segment.flags.has(Flags::ACK) {
        let _ = write!(shown, " ack {}", segment.ack);
    }
    if segment.options.sack_permitted() {
        shown += " sackok";
    }
    let blocks: Vec<_> = segment
        .options
        .sack_blocks()
        .map(|(from, to)| format!("{from}-{to}"))
        .collect();
    if !blocks.is_empty() {
        let _ = write!(shown, " sack {}", blocks.join(","));
    }
    if let Some(option) = segment.options.accecn() {
        let fields: Vec<_> = option.fields().iter().map(u32::to_string).collect();
        let order = if option.is_ect1_first() { "1" } else { "" };
        let _ = write!(shown, " accecn{order} {}", fields.join("/"));
    }
    if let Some(stamps) = segment.options.timestamps() {
        let _ = write!(shown, " ts {}/{}", stamps.value, stamps.echo);
    }
    match segment.ecn {
        Ecn::NotEct => {}
        Ecn::Ce => shown += " ce",
        Ecn::Ect1 => shown += " ect1",
        Ecn::Ect0 => shown += " ect",
    }
    shown
}
