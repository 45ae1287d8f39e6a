//! An end point alone, and packet scripts, for Python.

use aqmlab_net::Time;
use aqmlab_tcp::script::{self, Fault};
use pyo3::prelude::*;

use crate::AqmlabError;

/// An end point that is sent segments and shows what it sends.
#[pyclass(module = "aqmlab._native")]
pub(crate) struct Bench {
    inner: script::Bench,
}

fn wrong(message: String) -> PyErr {
    AqmlabError::new_err(message)
}

#[pymethods]
impl Bench {
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let mut bench = Self {
            inner: script::Bench::default(),
        };
        bench.set(settings)?;
        Ok(bench)
    }

    fn set(&mut self, settings: &str) -> PyResult<()> {
        self.inner.set(settings).map_err(wrong)?;
        self.inner.profile().map_err(wrong)?;
        Ok(())
    }

    #[getter]
    fn now(&self) -> u64 {
        self.inner.now().as_nanos()
    }

    #[getter]
    fn wake_at(&self) -> Option<u64> {
        self.inner.wake_at().map(Time::as_nanos)
    }

    fn advance(&mut self, nanoseconds: u64) -> PyResult<()> {
        self.inner
            .advance(Time::from_nanos(nanoseconds))
            .map_err(wrong)
    }

    #[pyo3(signature = (word, length=0))]
    fn perform(&mut self, word: &str, length: u64) -> PyResult<()> {
        self.inner.perform(word, length).map_err(wrong)
    }

    fn inject(&mut self, segment: &str) -> PyResult<()> {
        self.inner.inject(segment).map_err(wrong)
    }

    fn take_sent(&mut self) -> Vec<(u64, String)> {
        let sent = self.inner.take_sent().into_iter();
        sent.map(|(time, segment)| (time.as_nanos(), segment))
            .collect()
    }

    fn show(&mut self, word: &str) -> PyResult<Option<f64>> {
        self.inner.show(word).map_err(wrong)
    }
}

/// Plays a packet script: nothing, or where and how it does not hold.
#[pyfunction]
pub(crate) fn play_script(
    py: Python<'_>,
    text: &str,
) -> Option<(Option<usize>, Option<String>, String)> {
    let failure = py.detach(|| script::play(text)).err()?;
    let line = failure.line.map(|(number, _)| number);
    Some(match failure.fault {
        Fault::Unreadable(message) => (line, None, message),
        Fault::Differs { expected, found } => (line, Some(expected), found),
    })
}
