//! Modules of plug-ins in Python: each run has its own, executed anew, and its own of what they import
//! from their folders. What one run leaves in globals or in attributes of classes is not there for
//! the next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The modules of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modules(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Those of plug-ins, by the function that executes one.
    executed: HashMap<usize, Py<PyDict>>,
    /// Those that they have imported, by name.
    imported: Option<Py<PyDict>>,
}

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
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = renew.as_ptr() as usize;
        if let Some(module) = kept().executed.get(&key) {
            return Ok(module.bind(py).clone());
        }
        let imported = kept()
            .imported
            .get_or_insert_with(|| PyDict::new(py).unbind())
            .clone_ref(py);
        // The lock is not held: this is the user's code.
        let module = renew.bind(py).call1((imported,))?.cast_into::<PyDict>()?;
        kept().executed.insert(key, module.clone().unbind());
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
