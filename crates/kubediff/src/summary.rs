//! Counts the changes of a session.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::change::{Change, Verb};
use crate::facts::duration;
use crate::noise::Tally;
use crate::terminal::escape;

/// Counts of a session, for its end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Session {
    /// Changes shown, by resource and verb.
    pub shown: BTreeMap<String, Counts>,
    /// What was left out.
    #[serde(flatten)]
    pub tally: Tally,
    /// Resources that could not be watched, and why.
    pub not_watched: BTreeMap<String, String>,
}

/// How many changes of each sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Objects that came.
    pub added: u64,
    /// Objects that changed.
    pub updated: u64,
    /// Objects that went.
    pub deleted: u64,
    /// Objects that went and came again.
    pub recreated: u64,
}

impl Session {
    /// Counts a change that was shown.
    pub fn record(&mut self, change: &Change) {
        let resource = match change.gvk.group.as_str() {
            "" => change.resource.clone(),
            group => format!("{}.{group}", change.resource),
        };
        let counts = self.shown.entry(resource).or_default();
        match change.verb {
            Verb::Added => counts.added += 1,
            Verb::Updated => counts.updated += 1,
            Verb::Deleted => counts.deleted += 1,
            Verb::Recreated => counts.recreated += 1,
        }
    }

    /// Notes that `resource` cannot be watched. The last reason counts.
    pub fn not_watched(&mut self, resource: &str, reason: &str) {
        self.not_watched.insert(resource.to_owned(), reason.to_owned());
    }

    /// Notes that `resource` can be watched after all.
    pub fn watched(&mut self, resource: &str) {
        self.not_watched.remove(resource);
    }

    /// The summary of a session that lasted `elapsed`, in a few lines.
    pub fn text(&self, elapsed: Duration) -> String {
        let mut lines = vec![self.first_line(elapsed)];
        table(&mut lines, self.shown.iter().map(|(resource, counts)| (resource.clone(), counts.text())));
        if self.tally.hidden() > 0 {
            lines.push(format!("{} not shown:", changes(self.tally.hidden())));
            let mut rules: Vec<_> = self.tally.changes.iter().collect();
            rules.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            table(&mut lines, rules.into_iter().map(|(rule, count)| (rule.clone(), count.to_string())));
        }
        if !self.not_watched.is_empty() {
            lines.push("Not watched:".to_owned());
            table(
                &mut lines,
                self.not_watched.iter().map(|(resource, reason)| (resource.clone(), reason.clone())),
            );
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn first_line(&self, elapsed: Duration) -> String {
        let shown = self.shown.values().map(Counts::total).sum();
        let kinds = match self.shown.len() {
            0 => String::new(),
            1 => " of 1 kind".to_owned(),
            count => format!(" of {count} kinds"),
        };
        let elapsed = duration(i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX));
        format!("{}{kinds} in {elapsed}", changes(shown))
    }
}

impl Counts {
    fn total(&self) -> u64 {
        self.added + self.updated + self.deleted + self.recreated
    }

    fn text(&self) -> String {
        let counts = [("+", self.added), ("~", self.updated), ("-", self.deleted), ("±", self.recreated)];
        let texts =
            counts.iter().filter(|(_, count)| *count > 0).map(|(mark, count)| format!("{mark}{count}"));
        texts.collect::<Vec<_>>().join("  ")
    }
}

fn changes(count: u64) -> String {
    if count == 1 { "1 change".to_owned() } else { format!("{count} changes") }
}

fn table(lines: &mut Vec<String>, rows: impl Iterator<Item = (String, String)>) {
    let rows: Vec<(String, String)> =
        rows.map(|(name, text)| (escape(&name).into_owned(), escape(&text).into_owned())).collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines.extend(rows.iter().map(|(name, text)| format!("  {name:width$}  {text}")));
}
