//! The slowest get of a thread, by the clock and by the thread's own time. The clock includes time that the library is
//! not responsible for: the operating system, or the hypervisor, may take the core away in the middle of a get.

use std::time::{Duration, Instant};

pub struct Slowest {
    pub get: Duration,
    /// The thread's CPU time; the clock's time if the thread has waited.
    pub own_get: Duration,
}

impl Slowest {
    pub fn new() -> Self {
        Self { get: Duration::ZERO, own_get: Duration::ZERO }
    }

    pub fn time<T>(&mut self, get: impl FnOnce() -> T) -> T {
        let thread = Thread::now();
        let before = Instant::now();
        let got = get();
        let took = before.elapsed();
        self.get = self.get.max(took);
        if took > self.own_get {
            self.own_get = self.own_get.max(thread.own(took));
        }
        got
    }

    pub fn or(self, other: Self) -> Self {
        Self { get: self.get.max(other.get), own_get: self.own_get.max(other.own_get) }
    }
}

/// The system's counters of this thread. Where they are missing, all time counts as the thread's own.
struct Thread {
    /// How often the thread has given its core away voluntarily.
    waits: i64,
    cpu: Option<Duration>,
}

impl Thread {
    /// The thread's own part of the time since then.
    fn own(&self, passed: Duration) -> Duration {
        let now = Self::now();
        match (now.cpu, self.cpu) {
            (Some(now_cpu), Some(cpu)) if now.waits == self.waits => passed.min(now_cpu.saturating_sub(cpu)),
            _ => passed,
        }
    }

    #[cfg(target_os = "linux")]
    #[allow(unsafe_code, reason = "the system's only way to say it")]
    fn now() -> Self {
        // SAFETY: structures of integers, which the calls fill; all zeroes is one.
        let (usage, cpu) = unsafe {
            let mut usage = std::mem::zeroed::<libc::rusage>();
            let mut cpu = std::mem::zeroed::<libc::timespec>();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut cpu);
            (usage, cpu)
        };
        let seconds = u64::try_from(cpu.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(cpu.tv_nsec).unwrap_or_default();
        Self { waits: usage.ru_nvcsw, cpu: Some(Duration::new(seconds, nanoseconds)) }
    }

    #[cfg(not(target_os = "linux"))]
    fn now() -> Self {
        Self { waits: 0, cpu: None }
    }
}
