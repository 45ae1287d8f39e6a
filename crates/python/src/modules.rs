//! Modules of plug-ins in Python: each run has its own, executed anew. What one run leaves in globals
//! or in attributes of classes is not there for the next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The modules of a run, by the function that executes one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modules(Arc<Mutex<HashMap<usize, Py<PyDict>>>>);

thread_local! {
    /// Those of the run that this thread works for.
    static CURRENT: RefCell<Modules> = RefCell::default();
}

impl Modules {
    /// Works for the run that has these modules.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        struct Back(Modules);
        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(std::mem::take(&mut self.0));
            }
        }
        let _back = Back(CURRENT.replace(self.clone()));
        work()
    }

    /// The module that `renew` executes, as this run has it.
    fn find<'py>(&self, py: Python<'py>, renew: &Py<PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let modules = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = renew.as_ptr() as usize;
        if let Some(module) = modules().get(&key) {
            return Ok(module.bind(py).clone());
        }
        // The lock is not held: this is the user's code.
        let module = renew.bind(py).call0()?.cast_into::<PyDict>()?;
        modules().insert(key, module.clone().unbind());
        Ok(module)
    }
}

/// The class of that name in a module of the run that this thread works for; `renew` executes it.
pub(crate) fn class<'py>(
    py: Python<'py>,
    renew: &Py<PyAny>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let current = CURRENT.with_borrow(Modules::clone);
    current.find(py, renew)?.as_any().get_item(name)
}
