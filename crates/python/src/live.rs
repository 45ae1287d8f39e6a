//! The same scenarios on real kernels, and a program behind the bottleneck of one.

use std::ffi::CString;
use std::path::Path;

use aqmlab_live::{LinkView, LiveError, Order, Program, Reach, ShellSettings, TcpSettings};
use aqmlab_net::Time;
use aqmlab_parquet::json_text;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::effective::read_effective;
use crate::failures::run_error;
use crate::work::{bound, with_progress};
use crate::{AqmlabError, RunError};

/// Why there was no live run, or why it did not end well.
fn live_error(error: LiveError) -> PyErr {
    match error {
        LiveError::Refused(message) => AqmlabError::new_err(message),
        LiveError::Run(error) => run_error(error),
        other => RunError::new_err(other.to_string()),
    }
}

#[pyfunction]
pub(crate) fn live_missing() -> Option<String> {
    aqmlab_live::missing()
}

#[pyfunction]
pub(crate) fn live_privileged() -> bool {
    aqmlab_live::is_privileged()
}

#[pyfunction]
#[pyo3(signature = (effective, out_dir, progress=None, memory=None))]
pub(crate) fn run_live(
    py: Python<'_>,
    effective: &str,
    out_dir: Option<&str>,
    progress: Option<Bound<'_, PyAny>>,
    memory: Option<u64>,
) -> PyResult<String> {
    let scenario = read_effective(effective)?;
    // What holds for simulated connections holds for those of the kernel, which are larger.
    bound(memory).check(&scenario).map_err(run_error)?;
    let summary = with_progress(py, progress, false, |tell| {
        let records = aqmlab_parquet::recorder(out_dir.map(Path::new), &scenario.measure);
        aqmlab_live::run(&scenario, records, tell).map_err(live_error)
    })?;
    Ok(json_text(&summary))
}

/// What `tell` returns to have the program killed; other numbers are signals, 0 is none.
const KILL: i32 = -1;

fn strings(of: Vec<Vec<u8>>) -> PyResult<Vec<CString>> {
    of.into_iter()
        .map(|text| CString::new(text).map_err(|_| PyValueError::new_err("found a NUL byte")))
        .collect()
}

/// Runs a program; its summary as JSON, how long it was measured in seconds, and its exit status.
#[pyfunction]
pub(crate) fn run_shell(
    py: Python<'_>,
    effective: &str,
    out_dir: &str,
    program: (Vec<u8>, Vec<Vec<u8>>, Vec<Vec<u8>>),
    settings: (f64, bool, bool, bool),
    tcp: (Option<bool>, Option<String>, Option<String>),
    tell: &Bound<'_, PyAny>,
) -> PyResult<(String, f64, Option<i32>)> {
    let tell = tell.clone().unbind();
    let (path, arguments, environment) = program;
    let (jitter_s, services, host, internet) = settings;
    let (ecn, control, far_control) = tcp;
    let scenario = read_effective(effective)?;
    let settings = ShellSettings {
        program: Program {
            path: strings(vec![path])?.remove(0),
            arguments: strings(arguments)?,
            environment: strings(environment)?,
        },
        jitter: Time::from_secs_f64(jitter_s),
        services,
        reach: Reach::new(host, internet),
        tcp: TcpSettings {
            ecn,
            control,
            far_control,
        },
    };
    let mut raised = None;
    let mut order = |now: Time, links: [LinkView; 2]| {
        let called = Python::attach(|py| {
            py.check_signals()?;
            let shown = links.map(|link| {
                (
                    link.at.as_secs_f64(),
                    link.departed_bytes,
                    link.dropped_packets,
                    link.marked_packets,
                    link.queue_packets,
                    link.drain.as_secs_f64(),
                    link.rate_bps,
                )
            });
            tell.call1(py, (now.as_secs_f64(), shown[0], shown[1]))?
                .extract::<i32>(py)
        });
        match called {
            Ok(0) => Order::Continue,
            Ok(KILL) => Order::Kill,
            Ok(number) => Order::Signal(number),
            Err(error) => {
                raised = Some(error);
                Order::Kill
            }
        }
    };
    let result = py.detach(|| {
        let records = aqmlab_parquet::recorder(Some(Path::new(out_dir)), &scenario.measure);
        aqmlab_live::shell(&scenario, records, &settings, &mut order)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let shown = result.map_err(live_error)?;
    Ok((
        json_text(&shown.summary),
        shown.measured.as_secs_f64(),
        shown.status,
    ))
}
