//! Captures: from a file of packets to a file of connection vectors.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use aqmlab_capture::{
    By, CaptureError, ConvertError, Format, Options, Partial, Plan, arrivals, convert, segments,
};
use aqmlab_net::Time;
use pyo3::exceptions::PyValueError;
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

import_exception!(aqmlab.errors, AqmlabError);

#[pyfunction]
#[pyo3(signature = (capture, out, scratch_dir, settings, outside=None, progress=None))]
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
    outside: Option<String>,
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
    let (first, input) = (File::open(capture)?, File::open(capture)?);
    let mut output = BufWriter::new(File::create(out)?);
    let mut beyond = outside.map(File::create).transpose()?.map(BufWriter::new);
    let mut runs = 0;
    let scratch = || {
        runs += 1;
        scratch_file(&Path::new(scratch_dir).join(format!("run-{runs}")))
    };
    let mut raised = None;
    let mut tell = teller(progress, &mut raised);
    let result = py.detach(|| {
        let plan = Plan::read(first, &mut tell)?;
        let far = beyond.as_mut().map(|file| file as &mut dyn Write);
        let report = convert(
            input,
            &plan,
            &mut output,
            far,
            scratch,
            options,
            format,
            &mut tell,
        )?;
        output.flush().map_err(ConvertError::Write)?;
        if let Some(beyond) = &mut beyond {
            beyond.flush().map_err(ConvertError::Write)?;
        }
        Ok(report)
    });
    drop(tell);
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

/// Packets and bytes at an interface, in bins, as the bytes of little-endian doubles.
type Columns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyfunction]
#[pyo3(signature = (capture, bin_s, by_direction=false, progress=None))]
pub(crate) fn capture_arrivals<'py>(
    py: Python<'py>,
    capture: &str,
    bin_s: f64,
    by_direction: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(f64, Vec<Columns<'py>>, String)> {
    let (first, input) = (File::open(capture)?, File::open(capture)?);
    let by = match by_direction {
        true => By::Direction,
        false => By::Interface,
    };
    let mut raised = None;
    let mut tell = teller(progress, &mut raised);
    let found = py.detach(|| {
        let plan = Plan::read(first, &mut tell)?;
        arrivals(input, &plan, Time::from_secs_f64(bin_s), by, &mut tell)
    });
    drop(tell);
    if let Some(error) = raised {
        return Err(error);
    }
    let found = found.map_err(|error| match error {
        CaptureError::Io(error) => error.into(),
        error => AqmlabError::new_err(format!("{capture}: {error}")),
    })?;
    let column = |values: &[f64]| {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        PyBytes::new(py, &bytes)
    };
    let interfaces = found.interfaces.iter();
    let columns = interfaces.map(|series| (column(&series.packets), column(&series.bytes)));
    let notes = serde_json::to_string(&found.notes).expect("notes hold only numbers and words");
    Ok((found.bin.as_secs_f64(), columns.collect(), notes))
}

/// Segments, datagrams, and who is at home: words as bytes.
type Segments<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

#[pyfunction]
#[pyo3(signature = (capture, progress=None))]
pub(crate) fn capture_segments<'py>(
    py: Python<'py>,
    capture: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Segments<'py>, u64, String)> {
    let (first, input) = (File::open(capture)?, File::open(capture)?);
    let mut raised = None;
    let mut tell = teller(progress, &mut raised);
    let found = py.detach(|| {
        let plan = Plan::read(first, &mut tell)?;
        segments(input, &plan, &mut tell)
    });
    drop(tell);
    if let Some(error) = raised {
        return Err(error);
    }
    let found = found.map_err(|error| match error {
        CaptureError::Io(error) => error.into(),
        error => AqmlabError::new_err(format!("{capture}: {error}")),
    })?;
    let bytes = |words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        PyBytes::new(py, &bytes)
    };
    let notes = serde_json::to_string(&found.notes).expect("notes hold only numbers and words");
    Ok((
        (
            bytes(&found.words),
            bytes(&found.datagrams),
            bytes(&found.homes),
        ),
        found.first.unwrap_or_default(),
        notes,
    ))
}

/// Tells Python how many bytes have been read, and whether to go on: a signal such as Ctrl-C, or
/// what `progress` raises, ends the work.
fn teller<'a>(
    progress: Option<Bound<'_, PyAny>>,
    raised: &'a mut Option<PyErr>,
) -> impl FnMut(u64) -> bool + Send + use<'a> {
    let progress = progress.map(Bound::unbind);
    move |bytes| {
        let called = Python::attach(|py| {
            py.check_signals()?;
            progress
                .as_ref()
                .map_or(Ok(()), |call| call.call1(py, (bytes,)).map(drop))
        });
        *raised = called.err();
        raised.is_none()
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
