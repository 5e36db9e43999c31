//! The three durations of an election, and their order.

use std::time::Duration;

use super::ElectionError;

/// The renew deadline is longer than so many retry periods, as client-go demands.
const PERIODS: f64 = 1.2;
/// The longest lease. A longer one in the object was not written by a candidate of this crate, and counts as this long.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// The durations of an election, by default those of client-go.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Of the lease: how long others wait after a renewal.
    pub lease_duration: Duration,
    /// Until when a renewal has to be confirmed.
    pub renew_deadline: Duration,
    /// Between two renewals.
    pub retry_period: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Refuses durations with which two candidates could lead at once, or a leader could not renew its lease in time.
    pub(crate) fn check(&self) -> Result<(), ElectionError> {
        let Self { lease_duration, renew_deadline, retry_period } = *self;
        let refused = |reason: String| Err(ElectionError::invalid(reason));
        if lease_duration.subsec_nanos() != 0 || lease_duration.is_zero() || lease_duration > LONGEST {
            return refused(format!(
                "the lease duration {lease_duration:?} is not in whole seconds from 1 to 3600"
            ));
        }
        if renew_deadline >= lease_duration {
            return refused(format!(
                "the renew deadline {renew_deadline:?} is not less than the lease duration {lease_duration:?}"
            ));
        }
        if retry_period.is_zero()
            || renew_deadline <= retry_period
            || renew_deadline <= retry_period.mul_f64(PERIODS)
        {
            return refused(format!(
                "the renew deadline {renew_deadline:?} is not more than {PERIODS} times the retry period {retry_period:?}"
            ));
        }
        Ok(())
    }

    /// The limit of one request. Two fit into the renew deadline, so one that hangs does not cost the leadership.
    pub(crate) fn request_limit(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// A candidate's wait between two looks at the lease, with a random part. It is at most a retry period, so that a released lease has
    /// a new holder by then. client-go waits for one to 2.2 of them.
    pub(crate) fn look_period(&self, random: &mut fastrand::Rng) -> Duration {
        self.retry_period.mul_f64(0.5 + 0.5 * random.f64())
    }

    pub(crate) fn lease_seconds(&self) -> i64 {
        i64::try_from(self.lease_duration.as_secs()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lease: u64, renew: u64, retry: u64) -> Result<(), String> {
        let [lease_duration, renew_deadline, retry_period] = [lease, renew, retry].map(Duration::from_millis);
        let timing = Timing { lease_duration, renew_deadline, retry_period };
        timing.check().map_err(|error| error.to_string())
    }

    #[test]
    fn q8_durations_out_of_order_are_refused() {
        assert!(Timing::default().check().is_ok());
        assert_eq!(check(2_000, 1_500, 500), Ok(()));
        for (lease, renew, retry, reason) in [
            (10_000, 10_000, 2_000, "is not less than the lease duration"),
            (15_000, 2_400, 2_000, "is not more than 1.2 times the retry period"),
            (15_000, 10_000, u64::MAX, "is not more than 1.2 times the retry period"),
            (15_000, 10_000, 0, "is not more than 1.2 times the retry period"),
            (1_500, 1_000, 200, "is not in whole seconds"),
            (0, 0, 0, "is not in whole seconds"),
            (3_601_000, 10_000, 2_000, "is not in whole seconds"),
        ] {
            let refused = check(lease, renew, retry).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
