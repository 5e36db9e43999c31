//! Time as an argument.

use std::ops::Add;
use std::time::Duration;

/// A point in time, counted from whenever the caller began to count.
///
/// Nothing in this crate reads a clock (design D13): whoever drives it says what time it is, and never a smaller one
/// than before.
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
    /// When the count began.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The time that `elapsed` after the count began.
    pub const fn from_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// How long after `earlier` this is; zero when it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}
