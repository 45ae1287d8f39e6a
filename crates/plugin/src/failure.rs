//! What a callback raised. A callback has no way to end a run: the thread remembers, the instance
//! does nothing from then on, and the loop of the simulation looks here and ends it.

use std::cell::RefCell;
use std::error::Error;

/// What went wrong in a plug-in.
#[derive(Debug)]
pub struct Failure {
    /// The plug-in's name.
    pub plugin: &'static str,
    /// The callback.
    pub callback: &'static str,
    /// What it raised, or what was wrong with what it returned.
    pub error: Box<dyn Error + Send + Sync>,
}

thread_local! {
    static FAILURE: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Remembers the first failure of this thread.
#[cold]
pub fn set(failure: Failure) {
    FAILURE.with_borrow_mut(|slot| {
        slot.get_or_insert(failure);
    });
}

/// Whether something has failed on this thread.
pub fn is_set() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// The failure of this thread, which is forgotten.
pub fn take() -> Option<Failure> {
    FAILURE.take()
}
