//! Writes connection vectors in either text format.

use std::io::{self, Write};

use aqmlab_net::{Role, Time};

use super::types::{Adu, Body, ConnectionVector};

/// Writes a vector in the original format (`SEQ`, `CONC`). Vectors go in order of start time.
pub fn write_original(out: &mut impl Write, vector: &ConnectionVector) -> io::Result<()> {
    write_head(out, vector, ["SEQ", "CONC"])?;
    match &vector.body {
        Body::Sequential(adus) => {
            for (party, Adu { bytes, pause }) in adus {
                let arrow = [">", "<"][*party as usize];
                writeln!(out, "{arrow} {bytes}\nt {}", micros(*pause))?;
            }
        }
        Body::Concurrent(sides) => {
            for (arrow, adus) in [">", "<"].iter().zip(sides) {
                for Adu { bytes, pause } in adus {
                    writeln!(out, "c{arrow} {bytes}\nt{arrow} {}", micros(*pause))?;
                }
            }
        }
    }
    writeln!(out)
}

/// Writes a vector in the alternate format (`S`, `C`). Vectors go in order of start time.
pub fn write_alternate(out: &mut impl Write, vector: &ConnectionVector) -> io::Result<()> {
    write_head(out, vector, ["S", "C"])?;
    match &vector.body {
        Body::Sequential(adus) => write_waits(out, adus.iter().copied())?,
        Body::Concurrent(sides) => {
            for (party, adus) in Role::BOTH.into_iter().zip(sides) {
                write_waits(out, adus.iter().map(|&adu| (party, adu)))?;
            }
        }
    }
    writeln!(out)
}

/// Every ADU with the pause of the one before it, and the close as one of 0 bytes.
fn write_waits(out: &mut impl Write, adus: impl Iterator<Item = (Role, Adu)>) -> io::Result<()> {
    let mut before: Option<(Role, Time)> = None;
    for (party, Adu { bytes, pause }) in adus {
        write_adu(out, party, before, bytes)?;
        before = Some((party, pause));
    }
    match before {
        Some((party, _)) => write_adu(out, party, before, 0),
        None => Ok(()),
    }
}

fn write_adu(
    out: &mut impl Write,
    party: Role,
    before: Option<(Role, Time)>,
    bytes: u64,
) -> io::Result<()> {
    let (after_sending, after_receiving) = match before {
        Some((previous, pause)) if previous == party => (micros(pause), 0),
        Some((_, pause)) => (0, micros(pause)),
        None => (0, 0),
    };
    let letter = ['I', 'A'][party as usize];
    writeln!(out, "{letter} {after_sending} {after_receiving} {bytes}")
}

fn write_head(out: &mut impl Write, vector: &ConnectionVector, names: [&str; 2]) -> io::Result<()> {
    let ConnectionVector { start, id, .. } = vector;
    let start = start.as_nanos() / 1000;
    match &vector.body {
        Body::Sequential(adus) => {
            let from = |side| adus.iter().filter(|(party, _)| *party == side).count();
            let epochs = from(Role::Client).max(from(Role::Server));
            writeln!(out, "{} {start} {epochs} 0 {id}", names[0])?;
        }
        Body::Concurrent([initiator, acceptor]) => {
            let (initiator, acceptor) = (initiator.len(), acceptor.len());
            writeln!(out, "{} {start} {initiator} {acceptor} 0 {id}", names[1])?;
        }
    }
    for (name, values) in [("w", vector.windows), ("m", vector.segments)] {
        if values != [None; 2] {
            let [initiator, acceptor] = values.map(|value| value.unwrap_or(0));
            writeln!(out, "{name} {initiator} {acceptor}")?;
        }
    }
    if let Some(rtt) = vector.rtt {
        writeln!(out, "r {}", micros(rtt))?;
    }
    if let Some([there, back]) = vector.loss {
        writeln!(out, "l {there} {back}")?;
    }
    Ok(())
}

/// Microseconds; a shorter time is written as one.
fn micros(time: Time) -> u64 {
    (time.as_nanos() / 1000).max(1)
}
