//! The waits after failures.

use std::time::Duration;

use crate::Time;

/// The waits after failures in a row. They double from `first` to `longest`. Each is stretched at random by up to `jitter`
/// times itself. After `reset_after` without a failure they start over.
///
/// The defaults are those of client-go's reflector: 0.8 s doubling to 30 s, jitter 1.0 (so the longest waits are
/// between 30 s and 60 s), reset after two minutes.
#[derive(Debug, Clone, PartialEq)]
pub struct BackoffConfig {
    /// The first wait.
    pub first: Duration,
    /// The longest wait, without jitter.
    pub longest: Duration,
    /// A wait `w` becomes a random one between `w` and `w * (1 + jitter)`.
    pub jitter: f64,
    /// After this long without a failure, the next failure counts as the first one again.
    pub reset_after: Duration,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(800),
            longest: Duration::from_secs(30),
            jitter: 1.0,
            reset_after: Duration::from_secs(120),
        }
    }
}

/// A longer Retry-After is cut to this. By then the cause may have passed, or the server can repeat the header.
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// The state of the waits.
#[derive(Debug)]
pub struct Backoff {
    config: BackoffConfig,
    failures: u32,
    /// The end of the last wait, from which the time without a failure is counted.
    last_wait_ended: Time,
    random: fastrand::Rng,
}

impl Backoff {
    /// Starts at the first wait; the same seed gives the same waits.
    pub fn new(config: BackoffConfig, seed: u64) -> Self {
        Self { config, failures: 0, last_wait_ended: Time::ZERO, random: fastrand::Rng::with_seed(seed) }
    }

    /// Counts a failure at `now`, and returns the wait after it. It is at least as long as the server asked for.
    pub fn after_failure(&mut self, now: Time, asked: Option<Duration>) -> Duration {
        if now.since(self.last_wait_ended) > self.config.reset_after {
            self.failures = 0;
        }
        let doubled = self.config.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        let wait = self.stretched(doubled.min(self.config.longest));
        let wait = asked.map_or(wait, |asked| self.stretched_a_little(asked.min(LONGEST_ASKED)).max(wait));
        self.last_wait_ended = now + wait;
        wait
    }

    /// The number of failures in a row so far.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// A wait of another length, with the jitter of these.
    pub fn stretched(&mut self, wait: Duration) -> Duration {
        stretch(wait, self.config.jitter * self.random.f64())
    }

    /// Adds a little jitter, so that clients with the same Retry-After do not all return at the same instant.
    fn stretched_a_little(&mut self, wait: Duration) -> Duration {
        stretch(wait, 0.1 * self.random.f64())
    }
}

/// Returns `wait` stretched by `part` of itself, or `wait` if the result overflows.
fn stretch(wait: Duration, part: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * (1.0 + part.max(0.0))).unwrap_or(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(duration: Duration) -> f64 {
        duration.as_secs_f64()
    }

    #[test]
    fn w14_doubles_from_800_ms_to_30_s_with_jitter_and_starts_over_after_health() {
        let mut backoff = Backoff::new(BackoffConfig::default(), 7);
        let mut now = Time::ZERO;
        for expected in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let wait = backoff.after_failure(now, None);
            assert!((expected..=2.0 * expected).contains(&seconds(wait)), "{expected} {wait:?}");
            now = now + wait + Duration::from_secs(119);
        }
        let wait = backoff.after_failure(now + Duration::from_secs(2), None);
        assert!((0.8..=1.6).contains(&seconds(wait)), "{wait:?}");
    }

    #[test]
    fn never_overflows_and_honours_longer_requests() {
        let mut backoff = Backoff::new(BackoffConfig::default(), 1);
        for _ in 0..100 {
            assert!(seconds(backoff.after_failure(Time::ZERO, None)) <= 60.0);
        }
        assert!(seconds(backoff.after_failure(Time::ZERO, Some(Duration::from_secs(300)))) >= 300.0);
        let asked = backoff.after_failure(Time::ZERO, Some(Duration::from_secs(u64::MAX)));
        assert!(asked <= 2 * LONGEST_ASKED, "{asked:?}");
        for jitter in [f64::NAN, f64::INFINITY, -7.0] {
            let mut backoff = Backoff::new(BackoffConfig { jitter, ..BackoffConfig::default() }, 1);
            assert!(backoff.stretched(Duration::MAX) >= Duration::from_secs(1));
            assert!(seconds(backoff.after_failure(Time::ZERO, None)) >= 0.8);
        }
    }
}
