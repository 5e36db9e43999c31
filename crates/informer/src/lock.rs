//! Mutexes under which no user code runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// No user code runs while one of these is held, so a poisoned one guards a consistent value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
