//! Counts the changes of a session.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::changes::change::{Change, Verb};
use crate::changes::facts::duration;
use crate::hide::noise::Tally;
use crate::model::gap::Gap;
use crate::text::terminal::escape;

/// Counts of a session, for its end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Session {
    /// Changes shown, by resource and verb.
    pub shown: BTreeMap<String, Counts>,
    /// The number of entries left out.
    #[serde(flatten)]
    pub tally: Tally,
    /// Resources that could not be watched, and why.
    pub not_watched: BTreeMap<String, String>,
    /// When something was not watched that was watched at other times.
    pub gaps: Vec<Gap>,
    /// Changes that were merged into others, because the reader of the output was slow.
    pub merged: u64,
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
        let resource = match change.object.gvk.group.as_str() {
            "" => change.object.resource.clone(),
            group => format!("{}.{group}", change.object.resource),
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

    /// The summary of a session that lasted `elapsed`, in a few lines: what is missing first, what was shown last.
    pub fn text(&self, elapsed: Duration) -> String {
        let mut lines = Vec::new();
        lines.extend(
            together(&self.not_watched).map(|(reason, names)| {
                format!("Not watched: {} ({})", escape(&some(&names)), escape(reason))
            }),
        );
        if !self.gaps.is_empty() {
            lines.push(format!("Not watched for a time: {}", gaps(&self.gaps)));
        }
        if self.merged > 0 {
            lines.push(self.merged_text());
        }
        if self.tally.hidden() > 0 {
            lines.push(format!("{} not shown:", changes(self.tally.hidden())));
            let mut rules: Vec<_> = self.tally.changes.iter().collect();
            rules.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            table(&mut lines, rules.into_iter().map(|(rule, count)| (rule.clone(), count.to_string())));
        }
        lines.push(self.total(elapsed));
        table(&mut lines, self.shown.iter().map(|(resource, counts)| (resource.clone(), counts.text())));
        lines.push(String::new());
        lines.join("\n")
    }

    /// How many changes were merged into others.
    pub(crate) fn merged_text(&self) -> String {
        let were = if self.merged == 1 { "was" } else { "were" };
        format!(
            "{} {were} merged into others, because the reader of the output was slow",
            changes(self.merged)
        )
    }

    fn total(&self, elapsed: Duration) -> String {
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

/// The names by reason, those of the most frequent one first.
pub(crate) fn together(reasons: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, reason) in reasons {
        by_reason.entry(reason).or_default().push(name);
    }
    let mut by_reason: Vec<_> = by_reason.into_iter().collect();
    by_reason.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    by_reason.into_iter()
}

/// `a, b, c`, or `a, b, c and 52 more`.
pub(crate) fn some(names: &[&str]) -> String {
    const NAMED: usize = 4;
    match names.get(..NAMED) {
        Some(first) if names.len() > NAMED + 1 => {
            format!("{} and {} more", first.join(", "), names.len() - NAMED)
        }
        _ => names.join(", "),
    }
}

/// `2 gaps, 5m12s together; shown where they ended`.
fn gaps(gaps: &[Gap]) -> String {
    let open = gaps.iter().filter(|gap| gap.to.is_none()).count();
    let seconds: i64 = gaps.iter().filter_map(|gap| Some(gap.to?.as_second() - gap.from.as_second())).sum();
    let count = if gaps.len() == 1 { "1 gap".to_owned() } else { format!("{} gaps", gaps.len()) };
    match (open, gaps.len()) {
        (0, _) => format!("{count}, {} together", duration(seconds)),
        (open, all) if open == all => format!("{count}, to the end"),
        (open, _) => format!("{count}, {} together and {open} to the end", duration(seconds)),
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
