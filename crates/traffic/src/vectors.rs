//! Open loop: recorded or synthetic connections, from a file of connection vectors.

use std::io::{self, BufRead, Seek};

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::replay::{Feed, Options, Replay};
use crate::script::Action;
use crate::setting::Setting;
use crate::vector::{CLOSE_AFTER, ConnectionVector, VectorReader};

/// Recorded or synthetic connections that start at their own times and follow their own course: the
/// connection vectors of the a-b-t model.
#[parameters]
pub struct Vectors {
    /// File of connection vectors, in either format of tmix, in the folder of the scenario.
    pub file: String,
    /// Length of the file in bytes. aqmlab sets it when it reads the file. A file of another length
    /// is an error.
    #[param(unwritten)]
    pub file_bytes: Option<u64>,
    /// FNV-1a hash of the file, 64 bits in hexadecimal. aqmlab sets it when it reads the file. A
    /// file with another hash is an error.
    #[param(unwritten)]
    pub file_hash: Option<String>,
    /// Mean number of replays of each connection. Below 1 some connections are left out. Default:
    /// computed from `load`.
    #[param(above = 0.0, most = MOST_COPIES, unwritten)]
    pub copies: Option<f64>,
    /// Further copies of a connection start at random times within this span after it.
    #[param(default = "10 s")]
    pub spread: Time,
    /// Factor on start times. Times within a connection do not change.
    #[param(default = 1.0, least = STRETCH.0, most = STRETCH.1)]
    pub stretch: f64,
    /// If true, the file starts again when it ends.
    #[param(default)]
    pub repeat: bool,
    /// If true, a connection uses the windows and segment sizes of its vector, if it has any.
    #[param(default = true)]
    pub windows: bool,
    /// If true, packets are also lost at random, with the loss rates of the vector.
    #[param(default)]
    pub losses: bool,
}

/// More copies than this are another experiment.
const MOST_COPIES: f64 = 1000.0;

/// A trace that is shorter or longer by more than this is no experiment, but a slip.
const STRETCH: (f64, f64) = (1e-6, 1e6);

impl Parameters for Vectors {
    const ABOUT: About = About {
        title: "Connection vectors",
        paper: "M. Weigle et al., Tmix: A Tool for Generating Realistic TCP Application Workloads \
                in ns-2, CCR 36(3), 2006; `copies`: L. Le, dissertation, 2005, section 3.3.2",
        purpose: "Open loop: replays TCP connections as their applications see them (the a-b-t \
                  model): which end sends how many bytes, after which pause.",
        departures: &[
            "Both ends use the larger segment size of a vector; ns-2's replayer does so only with \
             two-way TCP.",
            "aqmlab does not shuffle bins of start times to remove trends from a trace.",
        ],
        memory: "the vectors that it has read and that have not started. aqmlab reads the file \
                 during the run",
    };
}

impl ModelParameters for Vectors {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "vectors"
file = "synthetic.cvec"
copies = 2
repeat = true
rtt = { kind = "vector" }
"#
    }

    population!(copies in "copies of each connection", OpenLoop);

    fn has_round_trips(&self) -> bool {
        true
    }

    fn vectors_mut(&mut self) -> Option<&mut Vectors> {
        Some(self)
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let file = files(self).map_err(SourceError::File)?;
        let copies = self.copies.ok_or(PopulationUnset { field: "copies" })?;
        let feed = FileFeed {
            reader: VectorReader::new(file),
            repeat: self.repeat,
            begin: Time::ZERO,
            last: Time::ZERO,
            count: 0,
        };
        let options = Options {
            copies,
            spread: self.spread,
            stretch: self.stretch,
            windows: self.windows,
            losses: self.losses,
        };
        Ok(Box::new(VectorsSource::new(feed, options, setting)))
    }
}

/// A file of connection vectors, open.
pub trait VectorFile: BufRead + Seek + Send {}

impl<T: BufRead + Seek + Send> VectorFile for T {}

type VectorsSource = Replay<FileFeed>;

/// A file that is read as time goes on, again and again if it is to be repeated.
struct FileFeed {
    reader: VectorReader<Box<dyn VectorFile>>,
    repeat: bool,
    /// Start of this pass, and of the last vector in it; how many vectors it has had.
    begin: Time,
    last: Time,
    count: u64,
}

impl Feed for FileFeed {
    fn next(&mut self) -> Result<Option<ConnectionVector>, String> {
        loop {
            match self.reader.next() {
                Some(Ok(mut vector)) => {
                    vector.start = self.begin.saturating_add(vector.start);
                    self.last = vector.start;
                    self.count += 1;
                    return Ok(Some(vector));
                }
                Some(Err(error)) => return Err(error.to_string()),
                None if self.repeat => self.rewind().map_err(|error| error.to_string())?,
                None => return Ok(None),
            }
        }
    }
}

impl FileFeed {
    /// Begins anew, a mean gap behind the last vector.
    fn rewind(&mut self) -> io::Result<()> {
        let span = self.last.saturating_sub(self.begin);
        let gap = match self.count {
            0 | 1 => CLOSE_AFTER,
            // All at once: the next pass needs some time, too.
            _ if span == Time::ZERO => CLOSE_AFTER,
            count => Time::from_nanos(span.as_nanos() / (count - 1) + 1),
        };
        self.begin = self.last.saturating_add(gap);
        self.count = 0;
        self.reader.rewind()
    }
}

impl<F: Feed> ModelSource for Replay<F> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.begin(actions);
    }

    fn on_wake(&mut self, now: Time, _token: u32, actions: &mut Vec<Action>) {
        self.start_due(now, actions);
    }

    fn failure(&self) -> Option<&str> {
        self.feed_failure()
    }
}
