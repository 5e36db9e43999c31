//! Tells what happened in a run, in plain sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use crate::end_state::{FAILING, THINGS, without_uids};
use crate::history::{Author, Change, Entry, History, Instance, What};
use crate::plan::{DATE, Plan};
use crate::verdict::Trouble;

/// More lines than this are not read: the middle is left out.
const LINES: usize = 60;
/// The result of a reconciliation that waits for the program's own writes, and the time from which on this is told.
const PUT_OFF: &str = "put_off";
const SHORT: Duration = Duration::from_millis(100);
/// The number of unseen changes that are named.
const UNSEEN: usize = 6;

/// The story of a failure. `original` is the plan before it was shrunk.
pub(crate) fn tell(
    original: &Plan,
    shrunk: &Plan,
    steps: usize,
    trouble: &Trouble,
    history: &History,
) -> String {
    let mut story = String::new();
    let seed = original.seed;
    // A String takes everything.
    let _ = writeln!(story, "seed {seed}: {trouble}\n");
    let _ = writeln!(
        story,
        "The smallest case that was found has {} of {} disturbances, and {} of {steps} steps of the script:",
        shrunk.disturbances.len(),
        original.disturbances.len(),
        steps.saturating_sub(shrunk.left_out.len()),
    );
    for planned in &shrunk.disturbances {
        let _ = writeln!(story, "  - {planned}");
    }
    if shrunk.date != DATE {
        let _ = writeln!(
            story,
            "  - the date is {}, not {}: the program takes the time from the clock of the machine, not from its surroundings",
            day(shrunk.date),
            day(DATE)
        );
    }
    for words in history.refused() {
        let _ = writeln!(
            story,
            "The server refused a step of the script: {words}. `World::gone` waits for the end of a deletion."
        );
    }
    let wrong = wrong_write(trouble, history);
    let last = last_reconciliation(trouble, history, wrong);
    let _ = writeln!(story, "\nWhat happened:");
    let mut lines = Vec::new();
    for (number, entry) in history.entries.iter().enumerate() {
        if (entry.is_renewal() || is_short_wait(history, number)) && Some(number) != wrong {
            continue;
        }
        let words = match last.as_ref().filter(|last| last.entry == number) {
            Some(last) => last.words(),
            None => match sentence(entry) {
                Some(words) => words,
                None => continue,
            },
        };
        let is_repeated =
            Some(number) != wrong && lines.last().is_some_and(|last: &Line| last.words == words);
        match lines.last_mut().filter(|_| is_repeated) {
            Some(last) => last.times += 1,
            None => lines.push(Line { number, at: entry.at, words, times: 1 }),
        }
    }
    // The step that led to a broken rule counts; otherwise the end does.
    let breaks = wrong.filter(|_| matches!(trouble, Trouble::Rule { .. }));
    let from = breaks.and_then(|wrong| lines.iter().position(|line| line.number == wrong));
    let keep_until = from.map_or(lines.len(), |at| (at + 6).min(lines.len()));
    let first = keep_until.saturating_sub(LINES);
    if first > 0 {
        let _ = writeln!(story, "   ({first} lines are left out)");
    }
    for Line { number, at, words, times } in lines.iter().take(keep_until).skip(first) {
        let mark = if Some(*number) == wrong { ">>" } else { "  " };
        let again = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        let _ = writeln!(story, "{mark} {:9.3} s  {words}{again}", at.as_secs_f64());
    }
    if keep_until < lines.len() {
        let _ = writeln!(story, "   ({} lines are left out)", lines.len() - keep_until);
    }
    if let Some((entry, number)) = wrong.and_then(|number| Some((history.entries.get(number)?, number))) {
        let words = sentence(entry).unwrap_or_else(|| "the creation of an object of the start".to_owned());
        let _ = writeln!(story, "\nThe write to look at: {words}, at {:.3} s.", entry.at.as_secs_f64());
        if let Author::Program(instance) = entry.by {
            let _ =
                write!(story, "{}", Unseen::of(history, number, departed(history, number), instance).words());
        }
    }
    if let Some(last) = last {
        let _ = writeln!(
            story,
            "\nThe reconciliation to look at: {}, at {:.3} s. It began at {:.3} s.",
            last.words(),
            last.at.as_secs_f64(),
            last.began.as_secs_f64()
        );
        let _ = write!(story, "{}", Unseen::at(history, last.beginning, last.by).words());
    }
    story
}

/// A line of the story; the same one several times after another is one.
struct Line {
    number: usize,
    at: Duration,
    words: String,
    times: usize,
}

/// 2026-01-01
fn day(date: i64) -> String {
    let text = jiff::Timestamp::new(date, 0).map(|time| time.to_string()).unwrap_or_default();
    text.split('T').next().unwrap_or_default().to_owned()
}

/// The last chance to make an end right: a reconciliation of the object, or of its owner.
struct Reconciled<'a> {
    by: Instance,
    key: &'a str,
    result: &'a str,
    error: Option<&'a str>,
    began: Duration,
    at: Duration,
    /// The numbers of the entries with its beginning and its end.
    beginning: usize,
    entry: usize,
    writes: usize,
}

impl Reconciled<'_> {
    fn words(&self) -> String {
        let (by, key, result) = (Author::Program(self.by), self.key, self.result);
        let writes = match self.writes {
            0 => "without a write".to_owned(),
            1 => "after a write".to_owned(),
            writes => format!("after {writes} writes"),
        };
        let error = self.error.map(|error| format!(": {error}")).unwrap_or_default();
        format!("{by} ends the reconciliation of {key} {writes}, with the result \"{result}\"{error}")
    }
}

/// The last reconciliation that could have made the end right, if it came after the wrong write.
fn last_reconciliation<'a>(
    trouble: &Trouble,
    history: &'a History,
    wrong: Option<usize>,
) -> Option<Reconciled<'a>> {
    let Trouble::End(differences) = trouble else { return None };
    let first = differences.first()?;
    // A wrong value was written by somebody; other ends lack a write.
    if wrong.is_some() && !first.path.is_empty() && first.found.is_some() {
        return None;
    }
    let object = &first.object;
    let keys = keys(object, history);
    let entries = || history.entries.iter().enumerate();
    let (entry, ended) = entries().rev().find(|(number, entry)| {
        matches!(&entry.what, What::Reconciled { key, result, .. }
            if Some(*number) > wrong && *result != PUT_OFF && keys.contains(key))
    })?;
    let (Author::Program(by), What::Reconciled { controller, key, result, error }) = (ended.by, &ended.what)
    else {
        return None;
    };
    let (beginning, begun) = entries().take(entry).rev().find(|(_, entry)| {
        entry.by == ended.by
            && matches!(&entry.what, What::Began { controller: of, key: its } if of == controller && its == key)
    })?;
    let during = history.entries.get(beginning..entry)?.iter().filter(|entry| entry.by == ended.by);
    // Reconciliations of other keys may write at the same time.
    let writes = during.filter(|entry| matches!(entry.what, What::Changed(_) | What::External(_))).count();
    let error = error.as_deref();
    Some(Reconciled { by, key, result, error, began: begun.at, at: ended.at, beginning, entry, writes })
}

/// The keys of an object, named as in the end state, and of its owners.
fn keys(object: &str, history: &History) -> BTreeSet<String> {
    let named = object.strip_prefix(FAILING).and_then(|rest| rest.split(" by ").next());
    let mut keys = BTreeSet::from([named.or(object.split(' ').nth(1)).unwrap_or_default().to_owned()]);
    for entry in history.entries.iter().filter(|entry| is_about(entry, object)) {
        match &entry.what {
            What::External(change) => drop(keys.insert(change.owner.clone())),
            What::Changed(change) => {
                let owners = change.object()["metadata"]["ownerReferences"].as_array();
                let namespace = change.object()["metadata"]["namespace"].as_str();
                for owner in owners.into_iter().flatten().filter_map(|owner| owner["name"].as_str()) {
                    keys.insert(
                        namespace.map_or(owner.to_owned(), |namespace| format!("{namespace}/{owner}")),
                    );
                }
            }
            _ => {}
        }
    }
    keys
}

/// The number of the entry with the write that broke a rule, or that left the difference.
fn wrong_write(trouble: &Trouble, history: &History) -> Option<usize> {
    match trouble {
        Trouble::Rule { entry, .. } => *entry,
        Trouble::End(differences) => {
            let all = || history.entries.iter().enumerate().rev();
            let of = |entry: &Entry, by_program: bool| {
                (!by_program || entry.by.is_program())
                    && differences.iter().any(|difference| is_about(entry, &difference.object))
            };
            let found = all()
                .find(|(_, entry)| of(entry, true))
                .or_else(|| all().find(|(_, entry)| of(entry, false)));
            found.map(|(number, _)| number)
        }
        _ => None,
    }
}

/// Whether an entry changes an object, named as in the end state: `Secret shop/a`, `Secret shop/a-* #2`.
fn is_about(entry: &Entry, object: &str) -> bool {
    let object = object.split(" #").next().unwrap_or_default();
    match &entry.what {
        What::Changed(change) => {
            let name = without_uids(&format!("{} {}", change.kind(), change.key()));
            object.strip_suffix('*').map_or(name == object, |prefix| name.starts_with(prefix))
        }
        What::External(change) if object.starts_with(THINGS) => object == format!("{THINGS}{}", change.owner),
        What::External(change) => without_uids(object) == without_uids(&format!("external {}", change.name)),
        _ => false,
    }
}

/// Whether an entry says that a reconciliation is put off which begins soon: a cache is always a little behind.
fn is_short_wait(history: &History, number: usize) -> bool {
    let Some(Entry { at, by, what: What::Reconciled { controller, key, result: PUT_OFF, .. } }) =
        history.entries.get(number)
    else {
        return false;
    };
    let soon = history.entries.iter().skip(number).take_while(|entry| entry.at < *at + SHORT);
    soon.filter(|entry| entry.by == *by).any(|entry| {
        matches!(&entry.what, What::Began { controller: of, key: its } if of == controller && its == key)
    })
}

/// The entries of the history when a write left the program.
fn departed(history: &History, write: usize) -> usize {
    let Some(Entry { by, what: What::Changed(_), .. }) = history.entries.get(write) else { return write };
    // The answer is made right after the change.
    let answered = history.entries.iter().skip(write).find_map(|entry| match &entry.what {
        What::Answered(request) if entry.by == *by && request.writes => Some(request.departed),
        _ => None,
    });
    answered.unwrap_or(write)
}

/// The changes that an instance had not been shown when it wrote.
struct Unseen<'a> {
    /// Changes that its watches had not brought yet.
    late: Vec<&'a Change>,
    /// States that no watch has brought, and none will: a list has skipped them.
    skipped: Vec<&'a Change>,
}

impl<'a> Unseen<'a> {
    /// Of the changes before the beginning of a reconciliation. It reads its caches a little later, in the same instant.
    fn at(history: &'a History, beginning: usize, instance: Instance) -> Self {
        let at = history.entries.get(beginning).map(|entry| entry.at);
        let later = history.entries.iter().skip(beginning).take_while(|entry| Some(entry.at) == at);
        Self::of(history, beginning, beginning + later.count(), instance)
    }

    /// Of the changes before an entry, those that had not arrived before another one.
    fn of(history: &'a History, entry: usize, arrived: usize, instance: Instance) -> Self {
        let mut seen: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut skipped = Vec::new();
        let before: Vec<_> = history.entries.iter().take(entry).collect();
        let changes = || {
            before.iter().filter_map(|entry| match &entry.what {
                What::Changed(change) => Some(change),
                _ => None,
            })
        };
        let arrived = history.entries.iter().take(arrived);
        for entry in arrived.filter(|entry| entry.by == Author::Program(instance)) {
            let What::Seen(now) = &entry.what else { continue };
            let former = seen.insert((&now.resource, &now.scope), now.upto);
            if let Some(former) = former.filter(|_| now.by_list) {
                let jumped = changes().filter(|change| {
                    *change.resource == *now.resource
                        && change.revision > former
                        && change.revision < now.upto
                });
                skipped.extend(jumped);
            }
        }
        // Of several watches of a resource, the one that has come furthest counts.
        let mut shown: BTreeMap<&str, u64> = BTreeMap::new();
        for ((resource, _), upto) in seen {
            let furthest = shown.entry(resource).or_default();
            *furthest = upto.max(*furthest);
        }
        let late = changes()
            .filter(|change| shown.get(change.resource()).is_some_and(|upto| change.revision > *upto));
        Self { late: late.collect(), skipped }
    }

    fn words(&self) -> String {
        let mut words = String::new();
        let mut list = |title: &str, changes: &[&Change]| {
            if changes.is_empty() {
                return;
            }
            let _ = writeln!(words, "{title}");
            let left_out = changes.len().saturating_sub(UNSEEN);
            if left_out > 0 {
                let _ = writeln!(words, "  - {left_out} earlier changes");
            }
            for change in changes.iter().skip(left_out) {
                let _ = writeln!(words, "  - {}", described(change));
            }
        };
        list("Its watches and lists had not shown it by then:", &self.late);
        list("No watch has ever shown it these states, because a list skipped them:", &self.skipped);
        if self.late.is_empty() && self.skipped.is_empty() {
            words.push_str("Its watches had shown it everything by then.\n");
        }
        words
    }
}

/// `Secret shop/a, which the script created at 3.200 s`
fn described(change: &Change) -> String {
    format!(
        "{} {}, which {} {} at {:.3} s",
        change.kind(),
        change.key(),
        change.by(),
        verb(change, true),
        change.at().as_secs_f64()
    )
}

fn verb(change: &Change, past: bool) -> &'static str {
    let (present, then) = match (change.before(), change.after()) {
        (None, _) => ("creates", "created"),
        (_, None) => ("removes", "removed"),
        _ if change.deletes() => ("begins to delete", "began to delete"),
        _ => ("changes", "changed"),
    };
    if past { then } else { present }
}

/// An entry as a sentence; `None` if it is not worth a line.
fn sentence(entry: &Entry) -> Option<String> {
    let by = entry.by;
    Some(match &entry.what {
        What::Started => match by {
            Author::Program(Instance { restarts, .. }) if restarts > 0 => format!("{by} starts again"),
            _ => format!("{by} starts"),
        },
        What::Ended(why) => format!("{by} {why}"),
        What::Step(words) => format!("{by}: {words}"),
        What::Disturbed(words) => words.clone(),
        What::Refused(words) => format!("the server refuses to {words}"),
        What::Answered(request) => match request.status {
            None => format!("{by} gives up waiting for the answer: {}", request.line),
            Some(status) if status >= if request.writes { 300 } else { 429 } => {
                format!("{by} gets {status}: {}", request.line)
            }
            Some(_) => return None,
        },
        What::Reconciled { key, error: Some(wait), result: PUT_OFF, .. } => {
            format!("{by} puts off the reconciliation of {key}: {wait}")
        }
        What::Reconciled { key, error: Some(error), result, .. } => {
            format!("{by} ends the reconciliation of {key} with the result \"{result}\": {error}")
        }
        What::Changed(change) => match change.at().is_zero() && by == Author::World {
            // The objects of the start.
            true if change.kind() == "Namespace" => return None,
            _ => format!("{by} {} {} {}{}", verb(change, false), change.kind(), change.key(), fields(change)),
        },
        What::External(change) => {
            let verb = if change.exists { "makes" } else { "removes" };
            format!("{by} {verb} {} of {} in the external system", change.name, change.owner)
        }
        What::Began { .. } | What::Reconciled { .. } | What::Seen(_) => return None,
    })
}

/// The top-level fields that a change changed.
fn fields(change: &Change) -> String {
    let (Some(before), Some(after)) = (change.before(), change.after()) else { return String::new() };
    let mut changed = Vec::new();
    for name in after.as_object().into_iter().flat_map(|members| members.keys()) {
        if name == "metadata" {
            for part in ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"] {
                if before["metadata"][part] != after["metadata"][part] {
                    changed.push(format!("metadata.{part}"));
                }
            }
        } else if before[name] != after[name] {
            changed.push(name.clone());
        }
    }
    if changed.is_empty() { String::new() } else { format!(" ({})", changed.join(", ")) }
}

#[cfg(test)]
mod tests;
