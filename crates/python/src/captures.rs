//! Captures: from a file of packets to a file of connection vectors.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use aqmlab_capture::{CaptureError, ConvertError, Format, Options, Partial, convert};
use aqmlab_net::Time;
use pyo3::exceptions::PyValueError;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(aqmlab.errors, AqmlabError);

#[pyfunction]
#[pyo3(signature = (capture, out, scratch_dir, settings, progress=None))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "tuples come from Python by value"
)]
pub(crate) fn vectors_from_capture(
    py: Python<'_>,
    capture: &str,
    out: &str,
    scratch_dir: &str,
    settings: (String, String, String, String),
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (idle, timeout, partial, format) = &settings;
    let options = Options {
        idle: time("--idle", idle)?,
        timeout: time("--timeout", timeout)?,
        partial: match partial.as_str() {
            "keep" => Partial::Keep,
            "drop" => Partial::Drop,
            other => return Err(PyValueError::new_err(other.to_owned())),
        },
    };
    let format = match format.as_str() {
        "original" => Format::Original,
        "alternate" => Format::Alternate,
        other => return Err(PyValueError::new_err(other.to_owned())),
    };
    let input = File::open(capture)?;
    let mut output = BufWriter::new(File::create(out)?);
    let mut runs = 0;
    let scratch = || {
        runs += 1;
        scratch_file(&Path::new(scratch_dir).join(format!("run-{runs}")))
    };
    let progress = progress.map(Bound::unbind);
    let mut raised: Option<PyErr> = None;
    let mut tell = |bytes: u64| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress
                .as_ref()
                .map_or(Ok(()), |call| call.call1(py, (bytes,)).map(drop))
        });
        raised = told.err();
        raised.is_none()
    };
    let result = py.detach(|| {
        let report = convert(input, &mut output, scratch, options, format, &mut tell)?;
        output.flush().map_err(ConvertError::Write)?;
        Ok(report)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    match result {
        Ok(report) => Ok(serde_json::to_string(&report).expect("a report holds only numbers")),
        Err(ConvertError::Capture(CaptureError::Io(error)) | ConvertError::Write(error)) => {
            Err(error.into())
        }
        Err(error) => Err(AqmlabError::new_err(format!("{capture}: {error}"))),
    }
}

fn time(option: &str, text: &str) -> PyResult<Time> {
    text.parse()
        .map_err(|error| AqmlabError::new_err(format!("{option}: {error}")))
}

/// A file that is written, then read.
fn scratch_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
}
