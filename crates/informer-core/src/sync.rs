//! What threads share memory by: the standard library's locks and atomics, or those of loom, which goes through the
//! orders in which threads may meet (`cargo xtask loom`).

#[cfg(not(loom))]
mod primitives {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub(crate) use std::thread::yield_now;
}

#[cfg(loom)]
mod primitives {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub(crate) use loom::thread::yield_now;
}

pub(crate) use primitives::*;
