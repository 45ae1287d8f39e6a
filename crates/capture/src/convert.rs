//! From a capture file to a file of connection vectors.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read, Seek, Write};

use aqmlab_traffic::vector::{ConnectionVector, write_alternate, write_original};

use crate::error::CaptureError;
use crate::extract::{Extractor, Options};
use crate::reader::PROGRESS;
use crate::report::Report;
use crate::sides::Shown;
use crate::sort::Sorter;
use crate::tidy::{Plan, Tidy};

/// The two text formats of connection vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// With `SEQ` and `CONC`.
    #[default]
    Original,
    /// With `S` and `C`.
    Alternate,
}

/// Why there is no file of vectors.
#[derive(Debug)]
pub enum ConvertError {
    /// The capture is at fault.
    Capture(CaptureError),
    /// Vectors, or scratch files, cannot be written.
    Write(io::Error),
    /// No connection was found of which a vector could be made.
    NoVectors(Box<Report>),
    /// The caller wanted to stop.
    Stopped,
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::NoVectors(report) => {
                let (packets, connections) = (&report.packets, &report.connections);
                write!(
                    f,
                    "no connection vector can be made of its {} packets and {} TCP connections",
                    packets.read, connections.seen
                )?;
                for (found, count) in packets.skipped.kinds() {
                    write!(f, "; {count} packets: {found}")?;
                }
                for (reason, count) in connections.skipped.named() {
                    write!(f, "; {count} connections: {reason}")?;
                }
                if let Some(cut) = &packets.notes.cut {
                    write!(f, "; {cut}")?;
                }
                Ok(())
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for ConvertError {}

impl From<CaptureError> for ConvertError {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}

/// Reads a capture as its plan says and writes its connections in the order of their starts.
///
/// With `outside`, connections that were opened from beyond the link go there.
///
/// `scratch` opens an empty file whenever vectors exceed the memory set aside for them. `progress`
/// gets the number of bytes read and returns whether to go on.
#[expect(clippy::too_many_arguments, reason = "two files in, two out, and how")]
pub fn convert<S: Read + Write + Seek>(
    input: impl Read,
    plan: &Plan,
    out: &mut impl Write,
    outside: Option<&mut dyn Write>,
    scratch: impl FnMut() -> io::Result<S>,
    options: Options,
    format: Format,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, ConvertError> {
    let mut reader = Tidy::new(input, plan)?;
    let mut extractor = Extractor::new(options);
    let scratch = RefCell::new(scratch);
    let mut sorter = Sorter::new(|| (scratch.borrow_mut())());
    let mut beyond = Sorter::new(|| (scratch.borrow_mut())());
    let (splits, mut opened_outside) = (outside.is_some(), 0);
    let mut hand_over = |extractor: &mut Extractor| {
        extractor.ready_with_ends().try_for_each(|(vector, ends)| {
            let [initiator, acceptor] = ends.map(|end| end.address);
            let comes = plan.sides.shown != Shown::Nothing
                && plan.sides.leaves(initiator, acceptor) == Some(false);
            opened_outside += u64::from(comes);
            let text = |text: &mut Vec<u8>| write(text, &vector, format);
            match comes && splits {
                true => beyond.push(vector.start, text),
                false => sorter.push(vector.start, text),
            }
            .map_err(ConvertError::Write)
        })
    };
    let mut packets = 0;
    while let Some(packet) = reader.next_packet()? {
        extractor.on_packet(&packet);
        hand_over(&mut extractor)?;
        packets += 1;
        if packets % PROGRESS == 0 && !progress(reader.consumed()) {
            return Err(ConvertError::Stopped);
        }
    }
    extractor.finish();
    hand_over(&mut extractor)?;
    let mut notes = plan.notes.clone();
    notes.second_sights = reader.second_sights;
    notes.cut = reader.cut().map(str::to_owned);
    extractor.note(notes, opened_outside);
    let report = extractor.report().clone();
    if report.connections.made == 0 {
        return Err(ConvertError::NoVectors(Box::new(report)));
    }
    sorter.finish(out).map_err(ConvertError::Write)?;
    if let Some(mut outside) = outside {
        beyond.finish(&mut outside).map_err(ConvertError::Write)?;
    }
    Ok(report)
}

fn write(text: &mut Vec<u8>, vector: &ConnectionVector, format: Format) -> io::Result<()> {
    match format {
        Format::Original => write_original(text, vector),
        Format::Alternate => write_alternate(text, vector),
    }
}
