//! Notices a program that does not calm down: a loop of reads, or of writes that change nothing, leaves no trace in objects.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::history::{Author, Entry, What};

/// The time that is looked at.
const MINUTE: Duration = Duration::from_secs(60);

/// How busy the program is while neither the script nor the bench acts.
pub(crate) struct Calm {
    /// The most requests and reconciliations in a minute.
    limit: u64,
    since: Duration,
    acts: u64,
}

impl Calm {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, since: Duration::ZERO, acts: 0 }
    }

    /// Somebody else acts at this time.
    pub(crate) fn disturbed(&mut self, at: Duration) {
        (self.since, self.acts) = (at, 0);
    }

    /// Looks at the next entry. Whether the program does too much.
    pub(crate) fn is_broken_by(&mut self, entry: &Entry) -> bool {
        match entry.what {
            What::Step(_) | What::Disturbed(_) | What::Started => self.disturbed(entry.at),
            What::Answered(_) | What::Began { .. } => {
                if entry.at.saturating_sub(self.since) >= MINUTE {
                    self.disturbed(entry.at);
                }
                self.acts += 1;
            }
            _ => {}
        }
        self.acts > self.limit
    }

    /// A sentence about the acts of the program.
    pub(crate) fn words(&self, entries: &[Entry]) -> String {
        let mut acts: BTreeMap<String, u64> = BTreeMap::new();
        for entry in entries.iter().rev().take_while(|entry| entry.at >= self.since) {
            match (&entry.what, entry.by) {
                (What::Answered(request), Author::Program(_)) => {
                    *acts.entry(request.line.clone()).or_default() += 1;
                }
                (What::Began { key, .. }, _) => *acts.entry(format!("reconciling {key}")).or_default() += 1,
                _ => {}
            }
        }
        let mut acts: Vec<_> = acts.into_iter().collect();
        acts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most: Vec<_> = acts.iter().take(3).map(|(act, count)| format!("{count} times {act}")).collect();
        let until = entries.last().map_or(self.since, |entry| entry.at);
        format!(
            "{} requests and reconciliations in {:.1} s in which nobody else acted, among them {}",
            self.acts,
            until.saturating_sub(self.since).as_secs_f64(),
            most.join(", ")
        )
    }
}
