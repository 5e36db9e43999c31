//! The bounds and waits of a delivery.

use std::time::Duration;

use fastrand::Rng;

/// The bounds and waits of a delivery. The defaults suit a webhook.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether the sink keeps one order of all records, as a stream does; off by default. No record is sent before the one before it is
    /// accepted or a dead letter then, whatever their objects and namespaces, and a record that the sink refuses is a dead letter at once.
    pub in_order: bool,
    /// The most records of a batch; 50 by default.
    pub batch: usize,
    /// The most bytes of a batch of several records; 256 KiB by default. A larger record is sent alone.
    pub batch_bytes: usize,
    /// The most records in memory; 1,000 by default.
    pub window: usize,
    /// The most bytes in memory, apart from one record that is larger; 4 MiB by default.
    pub window_bytes: usize,
    /// The least time between the starts of two batches; none by default.
    pub pace: Duration,
    /// Send digests while more records than this wait. Off by default.
    pub digest_beyond: Option<usize>,
    /// The most records of a digest; 100 by default.
    pub digest: usize,
    /// How often a sink may refuse a record that is sent alone, before the record is a dead letter; 5 by default. While the sink accepts no
    /// other record it refuses everything, is treated as one that fails, and no record is to blame.
    pub refusals: u32,
    /// How long a sink may refuse everything before a record is a dead letter all the same, and one more after each such time; 6 h by
    /// default.
    pub longest_refusal: Duration,
    /// How often in a row the sink may fail with the same batch of one namespace, before its records are tried alone and in turn, and how
    /// often with a record alone, while it takes others, before that counts as a refusal; 3 by default. Namespaces are tried in turn at once.
    pub failures: u32,
    /// The wait after the first failure; 1 s by default. It doubles with each further one, and is up to a half shorter, at random.
    pub first_wait: Duration,
    /// The longest of these waits; 5 min by default.
    pub longest_wait: Duration,
    /// The longest wait that a sink may ask for; 1 h by default.
    pub longest_asked_wait: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            in_order: false,
            batch: 50,
            batch_bytes: 256 << 10,
            window: 1_000,
            window_bytes: 4 << 20,
            pace: Duration::ZERO,
            digest_beyond: None,
            digest: 100,
            refusals: 5,
            longest_refusal: Duration::from_secs(6 * 60 * 60),
            failures: 3,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(5 * 60),
            longest_asked_wait: Duration::from_secs(60 * 60),
        }
    }
}

impl Policy {
    /// A policy for a channel that people read: a message for each record, about one in a second, and digests for a sink that is more than
    /// 20 behind. Slack allows one message a second in a channel.
    ///
    /// ```
    /// let policy = kubediff_delivery::Policy::chat();
    /// assert_eq!((policy.batch, policy.digest_beyond), (1, Some(20)));
    /// ```
    #[must_use]
    pub fn chat() -> Self {
        let pace = Duration::from_millis(1_100);
        Self { batch: 1, digest_beyond: Some(20), pace, ..Self::default() }
    }

    /// A policy for a stream: batches of 500 in the order of the log, and waits of up to 15 s.
    #[must_use]
    pub fn stream() -> Self {
        let (batch_bytes, longest_wait) = (1 << 20, Duration::from_secs(15));
        Self { in_order: true, batch: 500, batch_bytes, longest_wait, ..Self::default() }
    }

    /// The wait after the `times`-th failure in a row.
    pub(crate) fn wait(&self, times: u32, random: &mut Rng) -> Duration {
        let doublings = times.saturating_sub(1).min(31);
        let wait = self.first_wait.saturating_mul(1 << doublings).min(self.longest_wait);
        wait.mul_f64(random.f64().mul_add(-0.5, 1.0))
    }
}
