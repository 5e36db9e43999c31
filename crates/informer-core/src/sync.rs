//! The primitives through which threads share memory: the locks and atomics of the standard library, or those of loom, which
//! runs tests with every order of the threads' steps (`cargo xtask loom`). Also a place whose value readers load without a
//! lock.

#[cfg(not(loom))]
mod primitives {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
    pub(crate) use std::thread::yield_now;

    use std::ops::Deref;
    use std::sync::Arc;

    use arc_swap::{ArcSwap, ArcSwapOption, Guard};

    /// Holds one value. Reading it never waits.
    pub(crate) struct Place<T>(ArcSwap<T>);

    /// The value of a place at the time when it was read.
    pub(crate) struct Reading<T>(Guard<Arc<T>>);

    impl<T> Place<T> {
        pub(crate) fn new(value: Arc<T>) -> Self {
            Self(ArcSwap::new(value))
        }

        #[inline]
        pub(crate) fn read(&self) -> Reading<T> {
            Reading(self.0.load())
        }

        /// Returns the former value. Its reference count then includes each [`Reading`] of it.
        pub(crate) fn exchange(&self, value: Arc<T>) -> Arc<T> {
            self.0.swap(value)
        }
    }

    impl<T> Deref for Reading<T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            &self.0
        }
    }

    /// A place that may be empty. Eight bytes.
    pub(crate) struct Vacant<T>(ArcSwapOption<T>);

    impl<T> Vacant<T> {
        pub(crate) fn new(value: Option<Arc<T>>) -> Self {
            Self(ArcSwapOption::new(value))
        }

        /// Calls `look` with the value, without taking a reference count.
        #[inline]
        pub(crate) fn with<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
            look(self.0.load().as_deref())
        }

        pub(crate) fn get(&self) -> Option<Arc<T>> {
            self.0.load_full()
        }

        pub(crate) fn exchange(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
            self.0.swap(value)
        }
    }
}

#[cfg(loom)]
mod primitives {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    use std::ops::Deref;
    use std::sync::{Arc, PoisonError};

    /// For loom, reading and exchanging are one step each, behind a lock. The tests of `arc-swap` have to show that it does
    /// the same without a lock.
    pub(crate) struct Place<T>(Mutex<Arc<T>>);

    pub(crate) struct Reading<T>(Arc<T>);

    /// The standard library's cell, with a lock through which loom sees that threads meet here.
    pub(crate) struct OnceLock<T> {
        once: std::sync::OnceLock<T>,
        turn: Mutex<()>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn get(&self) -> Option<&T> {
            let _turn = self.turn.lock();
            self.once.get()
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            let _turn = self.turn.lock();
            self.once.get_or_init(make)
        }
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> Self {
            Self { once: std::sync::OnceLock::new(), turn: Mutex::default() }
        }
    }

    impl<T> Place<T> {
        pub(crate) fn new(value: Arc<T>) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn read(&self) -> Reading<T> {
            Reading(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }

        pub(crate) fn exchange(&self, value: Arc<T>) -> Arc<T> {
            std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), value)
        }
    }

    impl<T> Deref for Reading<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    pub(crate) struct Vacant<T>(Mutex<Option<Arc<T>>>);

    impl<T> Vacant<T> {
        pub(crate) fn new(value: Option<Arc<T>>) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn with<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
            look(self.get().as_deref())
        }

        pub(crate) fn get(&self) -> Option<Arc<T>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }

        pub(crate) fn exchange(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
            std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), value)
        }
    }
}

pub(crate) use primitives::*;
