//! Files of connection vectors: found and checked when a scenario is read, opened when it runs.
//!
//! A table is small and becomes part of the effective scenario. A file of millions of vectors does
//! not: the scenario keeps its path, its length and a hash, and a run reads it as time goes on. A
//! file is read through once when the scenario is (every line is checked), and once before each
//! run (its hash is), so that no run stops in the middle over its file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;

use aqmlab_declare::tagged::quoted;
use aqmlab_net::{FNV_BASIS, fnv1a};
use aqmlab_traffic::vector::VectorReader;
use aqmlab_traffic::{VectorFile, Vectors};

use crate::{Scenario, ScenarioError};

/// Finds and checks the files of connection vectors that a scenario names, relative to `folder`,
/// and notes their paths, lengths and hashes in it. A file whose length and hash are known already
/// must have kept them.
pub(crate) fn find(scenario: &mut Scenario, folder: &Path) -> Result<(), ScenarioError> {
    for class in &mut scenario.traffic {
        if let Some(vectors) = class.model.parameters_mut().vectors_mut() {
            find_one(vectors, folder).map_err(|message| {
                let message = format!("found {}, {message}", quoted(&vectors.file));
                ScenarioError::new(format!("traffic.{}.file", class.name), message)
            })?;
        }
    }
    Ok(())
}

fn find_one(vectors: &mut Vectors, folder: &Path) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("which cannot be read: {error}");
    let path = folder.join(&vectors.file);
    let path = std::path::absolute(path).map_err(unreadable)?;
    let path = path.to_str().ok_or("whose path is not Unicode")?.to_owned();
    let mut file = File::open(&path).map_err(unreadable)?;
    let content = Content::of(&mut file).map_err(unreadable)?;
    // What is noted was checked when it was noted.
    if vectors.file_hash.is_none() || vectors.file_bytes.is_none() {
        let reader = VectorReader::new(BufReader::with_capacity(BUFFER, file));
        for vector in reader {
            vector.map_err(|error| format!("whose {error}"))?;
        }
    }
    content.check(vectors)?;
    vectors.file = path;
    vectors.file_bytes = Some(content.bytes);
    vectors.file_hash = Some(content.hash);
    Ok(())
}

/// Opens a file of connection vectors, if it is still what the scenario says.
pub(crate) fn open(vectors: &Vectors) -> io::Result<Box<dyn VectorFile>> {
    let wrong = |reason: String| {
        let message = format!("found {}, {reason}", quoted(&vectors.file));
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    let unreadable = |error: io::Error| wrong(format!("which cannot be read: {error}"));
    let mut file = File::open(&vectors.file).map_err(unreadable)?;
    let content = Content::of(&mut file).map_err(unreadable)?;
    content.check(vectors).map_err(wrong)?;
    Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
}

const BUFFER: usize = 1 << 16;

/// What tells a file from another.
struct Content {
    bytes: u64,
    hash: String,
}

impl Content {
    /// Reads a file through and goes back to its beginning.
    fn of(file: &mut File) -> io::Result<Self> {
        let mut hash = FNV_BASIS;
        let mut bytes = 0;
        let mut buffer = BufReader::with_capacity(BUFFER, file);
        loop {
            let read = buffer.fill_buf()?;
            let length = read.len();
            if length == 0 {
                break;
            }
            hash = fnv1a(hash, read.iter().copied());
            bytes += length as u64;
            buffer.consume(length);
        }
        buffer.into_inner().rewind()?;
        Ok(Self {
            bytes,
            hash: format!("{:016x}", hash),
        })
    }

    /// Whether this is what the scenario says, as far as it says anything.
    fn check(&self, vectors: &Vectors) -> Result<(), String> {
        let Self { bytes, hash } = self;
        match (vectors.file_bytes, &vectors.file_hash) {
            (Some(expected), _) if expected != *bytes => Err(format!(
                "which has {bytes} bytes and had {expected}: it has changed"
            )),
            (_, Some(expected)) if expected != hash => Err(format!(
                "which has the hash {hash} and had {expected}: it has changed"
            )),
            _ => Ok(()),
        }
    }
}
