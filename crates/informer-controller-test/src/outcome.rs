//! The result of a rehearsal.

use std::collections::BTreeMap;
use std::fmt;

use crate::history::History;
use crate::plan::Disturbance;

/// The environment variable that replaces the seeds of all rehearsals: a number of seeds (`10000`), or a range (`17..18`).
pub const SEEDS: &str = "REHEARSAL_SEEDS";

/// The result of a rehearsal.
#[derive(Debug)]
pub struct Outcome {
    /// How many seeds were rehearsed, each twice.
    pub seeds: u64,
    /// How often each kind of disturbance happened.
    pub disturbances: BTreeMap<Disturbance, u64>,
    /// The failure with the lowest seed of those that were found.
    pub failure: Option<Failure>,
}

/// A seed with which the program fails.
pub struct Failure {
    /// The seed; `None` if it fails without disturbances.
    pub seed: Option<u64>,
    /// The failure, in a sentence.
    pub summary: String,
    /// The story of the run, step by step.
    pub story: String,
    /// Everything that happened in the smallest case that was found.
    pub history: History,
}

/// The story, then what went wrong once more, because stories are long, and how to repeat it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story)?;
        if let Some(seed) = self.seed {
            // The test harness names a test's thread after the test.
            let thread = std::thread::current();
            let test = thread.name().filter(|name| *name != "main").unwrap_or_default();
            let next = seed + 1;
            write!(
                f,
                "\nIn short: {}\nTo repeat it: {SEEDS}={seed}..{next} cargo test {test}",
                self.summary
            )?;
        }
        Ok(())
    }
}

/// Without the objects' bodies.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("seed", &self.seed)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}
