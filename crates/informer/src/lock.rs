//! Locks a mutex under which no user code runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// No user code runs while such a mutex is locked. A poisoned one therefore guards a consistent value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
