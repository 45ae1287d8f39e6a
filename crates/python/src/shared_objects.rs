//! Loading a shared object with plug-ins. Its code runs with all rights of this process, from the
//! moment it is loaded: only ever at the word of the user (`--plugin FILE`, `aqmlab.plugins.load`).
#![expect(
    unsafe_code,
    reason = "loads the code that the user has named, and calls the two functions that aqmlab.h \
              declares; nothing can check that their descriptions are true"
)]

use aqmlab_plugin::abi::{AqmlabControl, AqmlabDiscipline};
use aqmlab_plugin::{Plugin, foreign};
use libloading::{Library, Symbol};
use pyo3::prelude::*;

use crate::AqmlabError;
use crate::plugins::registered;

type Description<T> = extern "C" fn() -> *const T;

/// Makes the plug-ins of a shared object known; their names. It stays loaded.
#[pyfunction]
pub(crate) fn load_shared_object(path: &str, sha256: &str) -> PyResult<Vec<(String, String)>> {
    // SAFETY: the user has named this file, to have its code run here.
    let library = unsafe { Library::new(path) };
    let library = library.map_err(|error| AqmlabError::new_err(format!("{path}: {error}")))?;
    // Plug-ins live as long as the process.
    let library: &'static Library = Box::leak(Box::new(library));
    let mut found: Vec<Plugin> = Vec::new();
    let wrong = |problem: String| AqmlabError::new_err(format!("{path}: {problem}"));
    // SAFETY: aqmlab.h declares the function with this type.
    let symbol = unsafe { library.get(b"aqmlab_discipline\0") };
    let symbol: Result<Symbol<'_, Description<AqmlabDiscipline>>, _> = symbol;
    if let Ok(describe) = symbol {
        // SAFETY: whoever has compiled it against aqmlab.h vouches for what it returns.
        let plugin = unsafe { foreign::discipline(describe(), sha256.to_owned()) };
        found.push(plugin.map_err(wrong)?);
    }
    // SAFETY: aqmlab.h declares the function with this type.
    let symbol = unsafe { library.get(b"aqmlab_control\0") };
    let symbol: Result<Symbol<'_, Description<AqmlabControl>>, _> = symbol;
    if let Ok(describe) = symbol {
        // SAFETY: whoever has compiled it against aqmlab.h vouches for what it returns.
        let plugin = unsafe { foreign::control(describe(), sha256.to_owned()) };
        found.push(plugin.map_err(wrong)?);
    }
    if found.is_empty() {
        let message = "found neither aqmlab_discipline nor aqmlab_control; expected one of these \
                       functions of aqmlab.h";
        return Err(wrong(message.to_owned()));
    }
    found.into_iter().map(registered).collect()
}
