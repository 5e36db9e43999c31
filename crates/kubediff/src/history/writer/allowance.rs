//! The number of Events that a history takes: a component that repeats itself a thousand times a second must not fill the disk.

use std::time::{Duration, Instant};

/// The bucket holds this many tokens: the Events that are taken at once.
const BURST: f64 = 5_000.0;
/// The bucket gets this many tokens a second.
const PER_SECOND: f64 = 50.0;
/// How often people are told what was left out.
const TELL: Duration = Duration::from_secs(600);

/// A bucket of tokens.
pub(super) struct Allowance {
    tokens: f64,
    at: Instant,
    left_out: u64,
    told: Option<Instant>,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Self { tokens: BURST, at: now, left_out: 0, told: None }
    }

    /// Whether one more is taken.
    pub(super) fn takes(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.tokens, self.at) = ((self.tokens + since * PER_SECOND).min(BURST), now);
        if self.tokens < 1.0 {
            self.left_out += 1;
            return false;
        }
        self.tokens -= 1.0;
        true
    }

    /// How many were left out, when it is time to say so.
    pub(super) fn take_left_out(&mut self, now: Instant) -> Option<u64> {
        let is_due = self.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL);
        (is_due && self.left_out > 0).then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.left_out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_then_some_a_second_and_the_rest_is_counted() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin);
        let taken = |allowance: &mut Allowance, at| (0..10_000).filter(|_| allowance.takes(at)).count();
        assert_eq!(taken(&mut allowance, begin), 5_000);
        assert_eq!(allowance.take_left_out(begin), Some(5_000));
        assert_eq!(taken(&mut allowance, begin + Duration::from_secs(2)), 100);
        assert_eq!(allowance.take_left_out(begin + Duration::from_secs(2)), None);
        assert_eq!(taken(&mut allowance, begin + Duration::from_secs(3_600)), 5_000);
        assert_eq!(allowance.take_left_out(begin + TELL), Some(9_900 + 5_000));
    }
}
