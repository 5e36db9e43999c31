//! The rehearsal of a program, as a test builds it.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;

use crate::env::Env;
use crate::outcome::{Outcome, SEEDS};
use crate::plan::Disturbance;
use crate::rule::Rule;
use crate::run::Case;
use crate::stage::Stage;
use crate::world::World;

/// Rehearses a program: runs it many times in simulated time against an embedded server, and disturbs what it sees.
///
/// See the [crate's documentation](crate) for an example.
#[must_use = "nothing is rehearsed before `run`"]
#[derive(Clone)]
pub struct Rehearsal {
    pub(crate) case: Case,
    seeds: Range<u64>,
    reads_environment: bool,
}

impl Rehearsal {
    /// A rehearsal of a program: an async function from its surroundings. It is started again whenever it ends, as a pod
    /// is.
    pub fn new<P, F, E>(program: P) -> Self
    where
        P: Fn(Env) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let program = Arc::new(move |env| {
            let running = program(env);
            async move { running.await.map_err(Into::into) }.boxed()
        });
        let case = Case {
            program,
            objects: Vec::new(),
            script: Arc::new(|_| std::future::ready(()).boxed()),
            rules: Vec::new(),
            kinds: Disturbance::ALL.into_iter().filter(|kind| *kind != Disturbance::SecondInstance).collect(),
            ignored: BTreeSet::from(["Event".to_owned(), "Lease".to_owned()]),
            quiet: Duration::from_secs(180),
            patience: Duration::from_secs(3600),
            garbage_collection: true,
            workloads: None,
            busiest: 1_000,
        };
        Self { case, seeds: 0..200, reads_environment: true }
    }

    /// Objects that exist when the program starts, in the order of their creation. They need `kind` and `apiVersion`;
    /// missing namespaces are created. Definitions of custom resources come first.
    pub fn objects(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        self.case.objects.extend(objects);
        self
    }

    /// The script of the cluster while the program runs.
    pub fn script<F>(mut self, script: impl Fn(World) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.case.script = Arc::new(move |world| script(world).boxed());
        self
    }

    /// A rule that every run has to keep, those without disturbances too.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.case.rules.push(rule);
        self
    }

    /// The seeds to rehearse; 0 to 199 by default. The environment variable [`SEEDS`] replaces them.
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Uses the seeds of [`seeds`](Self::seeds) whatever the environment says: for a rehearsal that has to find something.
    pub fn exactly(mut self) -> Self {
        self.reads_environment = false;
        self
    }

    /// The kinds of disturbances; all except [`Disturbance::SecondInstance`] by default. A program that may run twice at
    /// a time, or that elects a leader, should be rehearsed with [`Disturbance::ALL`].
    pub fn disturbances(mut self, kinds: impl IntoIterator<Item = Disturbance>) -> Self {
        self.case.kinds = kinds.into_iter().collect();
        self
    }

    /// Leaves the objects of a kind out of the comparison of ends, or a field of them: `ConfigMap`, or
    /// `ConfigMap/data/port`, with the field as a JSON pointer
    /// ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)). `Event` and `Lease` are always left out.
    pub fn ignore(mut self, kind_or_field: impl Into<String>) -> Self {
        self.case.ignored.insert(kind_or_field.into());
        self
    }

    /// How long nothing may have changed before a run is over, in simulated time. 3 minutes by default. A program that
    /// waits longer before it repairs something needs more.
    pub fn quiet(mut self, time: Duration) -> Self {
        self.case.quiet = time;
        self
    }

    /// How long the script may take, and then the program to come to rest, in simulated time. An hour by default.
    pub fn patience(mut self, time: Duration) -> Self {
        self.case.patience = time;
        self
    }

    /// The requests and reconciliations that a minute of simulated time may have in which neither the script nor the bench
    /// acts; 1,000 by default. More is a loop, and a failure. A program that looks at something every second needs few.
    pub fn busiest_minute(mut self, requests_and_reconciliations: u64) -> Self {
        self.case.busiest = requests_and_reconciliations;
        self
    }

    /// Whether the cluster collects garbage; on by default.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.case.garbage_collection = on;
        self
    }

    /// Adds scripted controllers of Deployments and ReplicaSets, which act `delay` after each change:
    /// [`testapi::Api::workloads`].
    pub fn workloads(mut self, delay: Duration) -> Self {
        self.case.workloads = Some(delay);
        self
    }

    /// Rehearses the program.
    ///
    /// # Panics
    ///
    /// With the story of the first failure. Also if nothing was disturbed: such a rehearsal shows nothing.
    #[allow(clippy::panic, reason = "it is an assertion of a test")]
    pub fn run(self) {
        let outcome = self.outcome();
        if let Some(failure) = outcome.failure {
            panic!("{failure}");
        }
        assert!(
            outcome.seeds < 20 || outcome.disturbances.values().sum::<u64>() > 0,
            "none of {} seeds disturbed the program: it watches and writes nothing",
            outcome.seeds
        );
    }

    /// Rehearses the program, and returns what was found.
    pub fn outcome(self) -> Outcome {
        let seeds = match std::env::var(SEEDS) {
            Ok(text) if self.reads_environment => seeds_of(&text).unwrap_or(self.seeds),
            _ => self.seeds,
        };
        Stage::new(self.case).rehearse(seeds)
    }
}

/// Parses `10000` or `A..B`.
fn seeds_of(text: &str) -> Option<Range<u64>> {
    match text.split_once("..") {
        Some((first, end)) => Some(first.trim().parse().ok()?..end.trim().parse().ok()?),
        None => Some(0..text.trim().parse().ok()?),
    }
}

impl fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rehearsal").field("seeds", &self.seeds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_count_or_a_range() {
        assert_eq!(seeds_of("10000"), Some(0..10_000));
        assert_eq!(seeds_of("17..18"), Some(17..18));
        assert_eq!(seeds_of("many"), None);
    }
}
