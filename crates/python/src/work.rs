//! Runs beside the interpreter: how much memory they may take, and what hears of their progress.

use aqmlab_plugin::failure;
use aqmlab_sim::Memory;
use pyo3::prelude::*;

use crate::modules::Modules;
use crate::plugins;

/// How much more memory a run may take.
pub(crate) fn bound(memory: Option<u64>) -> Memory {
    memory.map_or_else(Memory::free, Memory::bytes)
}

/// Does some work without holding the interpreter, unless it is `holding` it for its callbacks. A
/// plug-in that fails ends it. What it reports of its progress goes to
/// `progress`, and a signal such as Ctrl-C is seen then: what Python raises ends the work.
pub(crate) fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    holding: bool,
    work: impl FnOnce(&mut dyn FnMut(f64) -> bool) -> PyResult<T> + Send,
) -> PyResult<T> {
    let progress = progress.map(Bound::unbind);
    let mut raised: Option<PyErr> = None;
    let mut tell = |done: f64| {
        if failure::is_set() {
            return false;
        }
        let called = Python::attach(|py| {
            py.check_signals()?;
            progress
                .as_ref()
                .map_or(Ok(()), |call| call.call1(py, (done,)).map(drop))
        });
        raised = called.err();
        raised.is_none()
    };
    let _ = failure::take(); // of a caller that did not look
    let modules = Modules::default();
    let result = match holding {
        true => modules.within(|| work(&mut tell)),
        false => py.detach(|| modules.within(|| work(&mut tell))),
    };
    plugins::raise(py)?;
    match raised {
        Some(error) => Err(error),
        None => result,
    }
}
