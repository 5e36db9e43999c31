//! The machine that a program runs on, as far as controllers ask: its clocks, its randomness, its name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer::ObjectKey;
use informer_core::Time;
use jiff::Timestamp;

/// The clocks and the randomness of a [`Controller`](crate::Controller), an [`Election`](crate::election::Election) or a
/// [`Recorder`](crate::recorder::Recorder): by default those of this machine. Tests replace them.
///
/// ```
/// use informer_controller::Host;
///
/// let start = tokio::time::Instant::now();
/// let host = Host::default().with_uptime(move || start.elapsed()).with_seed(7);
/// assert!(host.uptime() <= host.uptime());
/// ```
///
/// Delays use tokio's clock, which tests can pause.
#[derive(Clone)]
pub struct Host {
    clock: Arc<dyn Clock>,
    uptime: Arc<dyn Fn() -> Duration + Send + Sync>,
    seed: Option<u64>,
    observer: Option<Observer>,
}

/// Hears the beginning and the end of each reconciliation: for rehearsals.
#[doc(hidden)]
pub type Observer = Arc<dyn Fn(Observed<'_>) + Send + Sync>;

/// The beginning of a reconciliation, its end, or that it is put off.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    pub controller: &'a str,
    pub key: &'a ObjectKey,
    /// The result, as in `controller_reconciles_total`, and the error or the wait; `None` at the beginning.
    pub ended: Option<(&'static str, Option<&'a str>)>,
}

/// A clock for dates.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), uptime: Arc::new(boot_time), seed: None, observer: None }
    }
}

impl Host {
    /// Another clock for the dates of what is written, and for [`Context::now`](crate::Context::now).
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Another clock for the deadlines of elections: it never goes back, and goes on while the machine sleeps.
    #[must_use]
    pub fn with_uptime(mut self, uptime: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.uptime = Arc::new(uptime);
        self
    }

    /// The seed of everything random. By default each user of the host gets another one.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The observer of all reconciliations.
    #[doc(hidden)]
    #[must_use]
    pub fn with_observer(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    pub(crate) fn observe(&self, observed: Observed<'_>) {
        if let Some(observer) = &self.observer {
            observer(observed);
        }
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
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
    pub fn uptime(&self) -> Duration {
        (self.uptime)()
    }

    /// The same, for logic without a clock.
    #[doc(hidden)]
    pub fn time(&self) -> Time {
        Time::from_start(self.uptime())
    }

    /// A seed: the one that was set, or a random one.
    #[doc(hidden)]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| fastrand::u64(..))
    }

    /// Waits for a time of the uptime. After a sleep of the machine it returns at most a second late.
    #[doc(hidden)]
    pub async fn sleep_until(&self, at: Time) {
        loop {
            let left = at.since(self.time());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// How long a wait relies on tokio's timers, which stop while the machine sleeps, before it reads the clock again.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

#[cfg(unix)]
fn boot_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    let read = clock_gettime(CLOCK);
    let seconds = Duration::from_secs(u64::try_from(read.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(read.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn boot_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// The host's name: in a container, that of the pod.
#[cfg(unix)]
#[doc(hidden)]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The host's name.
#[cfg(not(unix))]
#[doc(hidden)]
pub fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "host".to_owned())
}
