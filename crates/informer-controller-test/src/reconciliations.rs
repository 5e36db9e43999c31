//! The reconciliations of a run, from the history's entries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::history::{Author, History, Instance, What};

/// A reconciliation of the program. The controller has the [`host`](crate::Env::host) of the surroundings, or is not heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    /// When it began, since the start of the run.
    pub began: Duration,
    /// The process that ran it.
    pub by: Instance,
    /// The name of the controller.
    pub controller: String,
    /// The object, as `namespace/name` or `name`.
    pub key: String,
    /// How it ended; `None` if it was running when its process, or the run, ended.
    pub end: Option<ReconciliationEnd>,
}

/// The end of a [`Reconciliation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationEnd {
    /// When, since the start of the run.
    pub at: Duration,
    /// As the label `result` of the metrics: `done`, `again`, `failed`, `timed_out`, `gave_up`, `panicked`, `interrupted`.
    pub result: &'static str,
    /// The error of a failure.
    pub error: Option<String>,
}

impl ReconciliationEnd {
    /// Whether it is tried again because of a failure.
    pub fn is_failure(&self) -> bool {
        matches!(self.result, "failed" | "timed_out" | "panicked")
    }
}

impl History {
    /// The reconciliations of the program, in the order of their beginning.
    pub fn reconciliations(&self) -> Vec<Reconciliation> {
        let mut all: Vec<Reconciliation> = Vec::new();
        // A key is in one worker of its controller.
        let mut open: BTreeMap<(Instance, &str, &str), usize> = BTreeMap::new();
        for entry in &self.entries {
            let Author::Program(by) = entry.by else { continue };
            match &entry.what {
                What::Began { controller, key } => {
                    open.insert((by, controller, key), all.len());
                    let (controller, key) = (controller.to_string(), key.clone());
                    all.push(Reconciliation { began: entry.at, by, controller, key, end: None });
                }
                What::Reconciled { controller, key, result, error } => {
                    let begun = open.remove(&(by, &**controller, key)).and_then(|number| all.get_mut(number));
                    if let Some(begun) = begun {
                        begun.end = Some(ReconciliationEnd { at: entry.at, result, error: error.clone() });
                    }
                }
                _ => {}
            }
        }
        all
    }
}

/// The last reconciliation of each controller and key in the last process, if it failed.
pub(crate) fn failing(history: &History) -> Vec<Reconciliation> {
    let all = history.reconciliations();
    // The last one may have had nothing to reconcile.
    let started = history.entries.iter().filter(|entry| entry.what == What::Started);
    let last = started.filter_map(|entry| match entry.by {
        Author::Program(by) if by.replica == 0 => Some(by),
        _ => None,
    });
    let last = last.max();
    let mut met = BTreeSet::new();
    let of_last = all.iter().rev().filter(|it| Some(it.by) == last && it.end.is_some());
    let mut failing: Vec<_> = of_last
        .filter(|it| met.insert((&it.controller, &it.key)))
        .filter(|it| it.end.as_ref().is_some_and(ReconciliationEnd::is_failure))
        .cloned()
        .collect();
    failing.reverse();
    failing
}
