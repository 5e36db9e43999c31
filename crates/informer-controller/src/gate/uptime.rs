//! A clock that counts the time in which the machine sleeps.

use std::time::Duration;

use informer_core::Time;

/// How long a wait relies on tokio's timers, which stop while the machine sleeps, before it reads the clock again.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// A clock that never goes back and goes on while the machine sleeps.
///
/// Programs use [`BootTime`]. A test that simulates time passes a closure:
///
/// ```
/// use informer_controller::gate::{Time, Uptime};
///
/// let start = tokio::time::Instant::now();
/// let simulated = move || Time::from_start(start.elapsed());
/// assert!(simulated.now() <= simulated.now());
/// ```
pub trait Uptime: Send + Sync + 'static {
    /// The time since some start.
    fn now(&self) -> Time;
}

impl<F: Fn() -> Time + Send + Sync + 'static> Uptime for F {
    fn now(&self) -> Time {
        self()
    }
}

/// The time since the machine was started, sleep included.
///
/// | system | clock | while the machine sleeps |
/// |---|---|---|
/// | Linux, Android | `CLOCK_BOOTTIME` | goes on |
/// | macOS, iOS | `CLOCK_MONOTONIC` | goes on |
/// | other Unix systems | `CLOCK_MONOTONIC` | may stop |
/// | other systems | the clock of [`std::time::Instant`] | may stop |
///
/// Where the clock stops, a machine that wakes up may send a request for as long as its lease had left. A paused virtual
/// machine stops all clocks inside it: nothing in it can notice.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootTime;

impl Uptime for BootTime {
    #[cfg(unix)]
    fn now(&self) -> Time {
        use rustix::time::{ClockId, clock_gettime};

        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: ClockId = ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: ClockId = ClockId::Monotonic;

        let read = clock_gettime(CLOCK);
        let seconds = Duration::from_secs(u64::try_from(read.tv_sec).unwrap_or(0));
        Time::from_start(seconds + Duration::from_nanos(u64::try_from(read.tv_nsec).unwrap_or(0)))
    }

    #[cfg(not(unix))]
    fn now(&self) -> Time {
        use std::sync::LazyLock;
        use std::time::Instant;

        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Time::from_start(START.elapsed())
    }
}

/// Waits for a time of this clock. After a sleep of the machine it returns at most a second late.
pub(crate) async fn sleep_until(uptime: &dyn Uptime, at: Time) {
    loop {
        let left = at.since(uptime.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}
