//! Delays between a change and its notification.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The annotation holds the time just before the change was sent, in microseconds of Unix time.
pub const SENT_AT: &str = "bench/sent-at";

/// The number of delays kept for the 99th percentile. It is bounded because the benchmark measures memory too.
const KEPT: usize = 10_000;

#[derive(Default)]
pub struct Delays {
    count: u64,
    sum: f64,
    most: f64,
    first: Vec<f64>,
}

impl Delays {
    /// Adds the delay from a time, in microseconds of Unix time, until now.
    pub fn add_since(&mut self, micros: f64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let delay = now.as_secs_f64() - micros / 1e6;
        self.count += 1;
        self.sum += delay;
        self.most = self.most.max(delay);
        if self.first.len() < KEPT {
            self.first.push(delay);
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
        self.first.extend_from_slice(&other.first);
    }

    /// The fields of the protocol.
    pub fn say_in(&self, answer: &mut Value) {
        answer["delayMeanSeconds"] = json!(if self.count > 0 { self.sum / self.count as f64 } else { 0.0 });
        answer["delayP99Seconds"] = json!(self.percentile99());
        answer["delayMaxSeconds"] = json!(self.most);
    }

    /// The 99th percentile of the delays that were kept.
    fn percentile99(&self) -> f64 {
        let mut sorted = self.first.clone();
        sorted.sort_by(f64::total_cmp);
        let at = sorted.len().saturating_sub(1) * 99 / 100;
        sorted.get(at).copied().unwrap_or_default()
    }
}
