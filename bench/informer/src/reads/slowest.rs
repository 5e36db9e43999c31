//! The slowest get of a thread, and the slowest for which the library has to answer: while a get was under way the
//! scheduler may have given the core to somebody else.

use std::time::{Duration, Instant};

pub struct Slowest {
    pub get: Duration,
    /// Without those during which the thread was preempted and had not waited.
    pub unpreempted_get: Duration,
}

impl Slowest {
    pub fn new() -> Self {
        Self { get: Duration::ZERO, unpreempted_get: Duration::ZERO }
    }

    pub fn time<T>(&mut self, get: impl FnOnce() -> T) -> T {
        let switches = Switches::of_this_thread();
        let before = Instant::now();
        let got = get();
        let took = before.elapsed();
        self.get = self.get.max(took);
        if took > self.unpreempted_get && !Switches::of_this_thread().are_preemption_since(&switches) {
            self.unpreempted_get = took;
        }
        got
    }

    pub fn or(self, other: Self) -> Self {
        Self {
            get: self.get.max(other.get),
            unpreempted_get: self.unpreempted_get.max(other.unpreempted_get),
        }
    }
}

/// How often a thread gave its core away: because it waited, and because it was made to.
struct Switches {
    voluntary: i64,
    involuntary: i64,
}

impl Switches {
    /// Where the system does not say it, no get counts as preempted.
    #[allow(unsafe_code, reason = "the system's only way to say it")]
    fn of_this_thread() -> Self {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: a structure of integers, which the call fills; all zeroes is one.
            let usage = unsafe {
                let mut usage = std::mem::zeroed::<libc::rusage>();
                libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
                usage
            };
            Self { voluntary: usage.ru_nvcsw.into(), involuntary: usage.ru_nivcsw.into() }
        }
        #[cfg(not(target_os = "linux"))]
        Self { voluntary: 0, involuntary: 0 }
    }

    fn are_preemption_since(&self, former: &Self) -> bool {
        self.involuntary > former.involuntary && self.voluntary == former.voluntary
    }
}
