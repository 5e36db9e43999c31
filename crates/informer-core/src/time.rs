//! Time as an argument.

use std::ops::Add;
use std::time::Duration;

/// A point in time, as a duration since a start that the caller chooses.
///
/// No code in this crate reads a clock (design D13). The caller passes the time, which must never go back.
///
/// ```
/// use std::time::Duration;
/// use informer_core::Time;
///
/// let start = Time::ZERO;
/// let later = start + Duration::from_secs(3);
/// assert_eq!(later.since(start), Duration::from_secs(3));
/// assert_eq!(start.since(later), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(Duration);

impl Time {
    /// The start.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The time at `elapsed` after the start.
    pub const fn from_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time at this number of nanoseconds after the start.
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// The nanoseconds since the start; the greatest number after 584 years.
    pub(crate) fn nanos(self) -> u64 {
        nanos(self.0)
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The nanoseconds of a duration; the greatest number for more than 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}
