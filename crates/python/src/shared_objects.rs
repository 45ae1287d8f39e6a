//! Loading a shared object with plug-ins. Its code runs with all rights of this process, from the
//! moment it is loaded: only ever at the word of the user (`--plugin FILE`, `aqmlab.plugins.load`).
#![expect(
    unsafe_code,
    reason = "loads the code that the user has named, and calls the two functions that aqmlab.h \
              declares; nothing can check that their descriptions are true. A handler of signals \
              names the plug-in that ends the process"
)]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use aqmlab_plugin::abi::{AqmlabControl, AqmlabDiscipline};
use aqmlab_plugin::foreign::{self, AtWork};
use libloading::{Library, Symbol};
use pyo3::prelude::*;

use crate::AqmlabError;
use crate::plugins::{leaked, registered};

type Description<T> = extern "C" fn() -> *const T;

/// Makes the plug-ins of a shared object known; their names. It stays loaded. `shown` is the file
/// that the user has given, of which `path` is a copy.
#[pyfunction]
pub(crate) fn load_shared_object(
    path: &str,
    sha256: &str,
    shown: &str,
) -> PyResult<Vec<(String, String)>> {
    name_crashes();
    let wrong = |problem: String| AqmlabError::new_err(format!("{shown}: {problem}"));
    let origin = leaked(shown);
    let at = |callback| AtWork {
        plugin: "",
        origin,
        callback,
    };
    // SAFETY: the user has named this file, to have its code run here.
    let library = foreign::working(at("loading it"), || unsafe { Library::new(path) });
    let library = library.map_err(|error| wrong(unnamed(&error.to_string(), path)))?;
    // Plug-ins live as long as the process.
    let library: &'static Library = Box::leak(Box::new(library));
    let mut found = Vec::new();
    // SAFETY: aqmlab.h declares the function with this type.
    let symbol = unsafe { library.get(b"aqmlab_discipline\0") };
    let symbol: Result<Symbol<'_, Description<AqmlabDiscipline>>, _> = symbol;
    if let Ok(describe) = symbol {
        let plugin = foreign::working(at("aqmlab_discipline"), || {
            // SAFETY: its author compiled it against aqmlab.h and vouches for what it returns.
            unsafe { foreign::discipline(describe(), sha256.to_owned(), origin) }
        });
        found.push(plugin.map_err(wrong)?);
    }
    // SAFETY: aqmlab.h declares the function with this type.
    let symbol = unsafe { library.get(b"aqmlab_control\0") };
    let symbol: Result<Symbol<'_, Description<AqmlabControl>>, _> = symbol;
    if let Ok(describe) = symbol {
        let plugin = foreign::working(at("aqmlab_control"), || {
            // SAFETY: its author compiled it against aqmlab.h and vouches for what it returns.
            unsafe { foreign::control(describe(), sha256.to_owned(), origin) }
        });
        found.push(plugin.map_err(wrong)?);
    }
    if found.is_empty() {
        let message = "found neither aqmlab_discipline nor aqmlab_control; expected one of these \
                       functions of aqmlab.h";
        return Err(wrong(message.to_owned()));
    }
    found.into_iter().map(registered).collect()
}

/// A message of the loader without the name of the copy.
fn unnamed(message: &str, path: &str) -> String {
    let message = message.replace(path, "");
    message.trim_start_matches([':', ' ']).to_owned()
}

/// Signals that end a process whose code is wrong, and their names.
const CRASHES: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

/// What happened at these signals until `name_crashes`.
static BEFORE: OnceLock<[libc::sigaction; CRASHES.len()]> = OnceLock::new();

/// From now on a crash in a plug-in says which plug-in it is.
fn name_crashes() {
    let zeroed = || {
        // SAFETY: zeros are a sigaction: the default action, no flags, no signal blocked.
        unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() }
    };
    BEFORE.get_or_init(|| {
        CRASHES.map(|(signal, _)| {
            let mut before = zeroed();
            // SAFETY: it only asks.
            unsafe { libc::sigaction(signal, ptr::null(), &raw mut before) };
            before
        })
    });
    let mut action = zeroed();
    action.sa_sigaction = on_crash as extern "C" fn(c_int) as libc::sighandler_t;
    for (signal, _) in CRASHES {
        // SAFETY: the handler does what handlers may do, and what comes after it is what was there.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

/// Names the plug-in that is at work. The signal comes again when it returns, to what was there
/// before.
extern "C" fn on_crash(signal: c_int) {
    let Some(index) = CRASHES.iter().position(|&(known, _)| known == signal) else {
        return;
    };
    if let Some(at) = foreign::at_work() {
        for text in [
            "\naqmlab: plug-in ",
            at.plugin,
            if at.plugin.is_empty() { "" } else { ": " },
            at.callback,
            ": ended the process by ",
            CRASHES[index].1,
            " (",
            at.origin,
            ")\n",
        ] {
            // SAFETY: the text is that long. A handler may write.
            unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        }
    }
    // SAFETY: actions that the system has given; abort() and a fault that is met again go on there.
    unsafe {
        match BEFORE.get() {
            Some(before) => libc::sigaction(signal, &raw const before[index], ptr::null_mut()),
            None => libc::sigaction(signal, ptr::null(), ptr::null_mut()),
        };
    }
}
