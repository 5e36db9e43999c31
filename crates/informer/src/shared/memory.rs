//! What the fan-out's threads share memory by: lock, flags and waker, or those of loom, which goes through the orders
//! in which threads may meet (`cargo xtask loom`).

#[cfg(not(loom))]
mod primitives {
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

    pub(crate) use futures_util::task::AtomicWaker;

    pub(crate) use crate::shared::lock;
}

#[cfg(loom)]
mod primitives {
    use std::sync::PoisonError;
    use std::task::Waker;

    use loom::sync::MutexGuard;

    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With the promises of the other one: who registers, then looks, misses nothing.
    pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

    impl AtomicWaker {
        pub(crate) fn new() -> Self {
            Self(loom::future::AtomicWaker::new())
        }

        pub(crate) fn register(&self, waker: &Waker) {
            self.0.register_by_ref(waker);
        }

        pub(crate) fn wake(&self) {
            self.0.wake();
        }
    }
}

pub(crate) use primitives::*;
