//! The locks and atomics through which threads share memory: those of the standard library, or those of loom, which runs tests
//! with every order of the threads' steps (`cargo xtask loom`).

use std::sync::PoisonError;

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

/// Locks a mutex under which a panic leaves a consistent value.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
