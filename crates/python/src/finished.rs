//! What a finished run leaves in its directory beside its tables, and how all of it gets there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use aqmlab_parquet::json_text;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Name of the file that says what the other files are.
const MANIFEST: &str = "manifest.json";
/// Bytes of a table that are hashed at a time.
const CHUNK: usize = 1 << 17;

/// Name, length and hash of a file.
type Entry = (String, u64, String);

/// Writes some files into a folder, then the manifest of everything in it.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "paths and lists come from Python by value"
)]
pub(crate) fn seal(
    py: Python<'_>,
    folder: PathBuf,
    key: &str,
    files: Vec<(String, PyBackedBytes)>,
) -> PyResult<Vec<Entry>> {
    py.detach(|| sealed(&folder, key, &files))
        .map_err(|error| os_error(&error))
}

/// Waits until the files of a folder, and their names, are on the disk.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "paths come from Python by value"
)]
pub(crate) fn sync_folder(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
    let sync = || {
        for entry in fs::read_dir(&folder)? {
            File::open(entry?.path())?.sync_all()?;
        }
        File::open(&folder)?.sync_all()
    };
    py.detach(sync).map_err(|error| os_error(&error))
}

fn sealed(folder: &Path, key: &str, files: &[(String, PyBackedBytes)]) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (name, content) in files {
        fs::write(folder.join(name), content)?;
        let hash = hexadecimal(&Sha256::digest(content));
        entries.push((name.clone(), content.len() as u64, hash));
    }
    let mut chunk = vec![0; CHUNK];
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string();
        let name = name.map_err(|_| io::Error::from(ErrorKind::InvalidFilename))?;
        if name != MANIFEST && files.iter().all(|(written, _)| *written != name) {
            let (length, hash) = hash_of(&folder.join(&name), &mut chunk)?;
            entries.push((name, length, hash));
        }
    }
    entries.sort_unstable();
    let listed: Map<String, Value> = entries
        .iter()
        .map(|(name, length, hash)| (name.clone(), json!({ "bytes": length, "sha256": hash })))
        .collect();
    let manifest = json!({ "key": key, "files": listed });
    fs::write(folder.join(MANIFEST), json_text(&manifest))?;
    Ok(entries)
}

/// Length and hash of a file, which may be larger than memory.
fn hash_of(path: &Path, chunk: &mut [u8]) -> io::Result<(u64, String)> {
    let mut found = Sha256::new();
    let mut file = File::open(path)?;
    let mut length = 0;
    loop {
        match file.read(chunk) {
            Ok(0) => return Ok((length, hexadecimal(&found.finalize()))),
            Ok(read) => {
                found.update(&chunk[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The error as Python raises it itself, with its number.
fn os_error(error: &io::Error) -> PyErr {
    let text = error.to_string();
    let reason = text.split(" (os error ").next().unwrap_or(&text).to_owned();
    PyOSError::new_err((error.raw_os_error().unwrap_or(libc::EIO), reason))
}
