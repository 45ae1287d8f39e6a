//! From a capture file to a file of connection vectors.

use std::fmt;
use std::io::{self, Read, Seek, Write};

use aqmlab_traffic::vector::{ConnectionVector, write_alternate, write_original};

use crate::error::CaptureError;
use crate::extract::{Extractor, Options};
use crate::reader::CaptureReader;
use crate::report::Report;
use crate::sort::Sorter;

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
                let packets = packets.skipped.named().map(|entry| (entry, "packets"));
                let connections = connections.skipped.named();
                let connections = connections.map(|entry| (entry, "connections"));
                for ((reason, count), what) in packets.chain(connections) {
                    write!(f, "; {count} {what}: {reason}")?;
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

/// How many packets pass between two reports of progress.
pub(crate) const PROGRESS: u64 = 1 << 17;

/// Reads a capture and writes its connections in the order of their starts.
///
/// `scratch` opens an empty file whenever vectors exceed the memory set aside for them. `progress`
/// gets the number of bytes read and returns whether to go on.
pub fn convert<S: Read + Write + Seek>(
    input: impl Read,
    out: &mut impl Write,
    scratch: impl FnMut() -> io::Result<S>,
    options: Options,
    format: Format,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, ConvertError> {
    let mut reader = CaptureReader::new(input)?;
    let mut extractor = Extractor::new(options);
    let mut sorter = Sorter::new(scratch);
    let mut hand_over = |extractor: &mut Extractor| {
        extractor
            .ready()
            .try_for_each(|vector| sorter.push(vector.start, |text| write(text, &vector, format)))
            .map_err(ConvertError::Write)
    };
    let mut packets = 0;
    while let Some(record) = reader.next_packet()? {
        extractor.on_record(&record);
        hand_over(&mut extractor)?;
        packets += 1;
        if packets % PROGRESS == 0 && !progress(reader.consumed()) {
            return Err(ConvertError::Stopped);
        }
    }
    extractor.finish();
    hand_over(&mut extractor)?;
    let report = extractor.report().clone();
    if report.connections.made == 0 {
        return Err(ConvertError::NoVectors(Box::new(report)));
    }
    sorter.finish(out).map_err(ConvertError::Write)?;
    Ok(report)
}

fn write(text: &mut Vec<u8>, vector: &ConnectionVector, format: Format) -> io::Result<()> {
    match format {
        Format::Original => write_original(text, vector),
        Format::Alternate => write_alternate(text, vector),
    }
}
