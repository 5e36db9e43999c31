//! Tells what happened in a run, in plain sentences.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

use crate::history::{Author, Change, Entry, History, Instance, What};
use crate::plan::Plan;
use crate::verdict::Trouble;

/// More lines than this are not read: the middle is left out.
const LINES: usize = 60;
/// A writer cannot have known an event that the server sent within this time before the write arrived.
const ON_THE_WAY: Duration = Duration::from_millis(10);
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
    let wrong = wrong_write(trouble, history);
    let _ = writeln!(story, "\nWhat happened:");
    let mut lines = Vec::new();
    for (number, entry) in history.entries.iter().enumerate() {
        if is_renewal(entry) && Some(number) != wrong {
            continue;
        }
        let Some(words) = sentence(entry) else { continue };
        let mark = if Some(number) == wrong { ">>" } else { "  " };
        lines.push((number, format!("{mark} {:9.3} s  {words}", entry.at.as_secs_f64())));
    }
    // The step that led to a broken rule counts; otherwise the end does.
    let breaks = wrong.filter(|_| matches!(trouble, Trouble::Rule { .. }));
    let from = breaks.and_then(|wrong| lines.iter().position(|(number, _)| *number == wrong));
    let keep_until = from.map_or(lines.len(), |at| (at + 6).min(lines.len()));
    let first = keep_until.saturating_sub(LINES);
    if first > 0 {
        let _ = writeln!(story, "   ({first} lines are left out)");
    }
    for (_, line) in lines.iter().take(keep_until).skip(first) {
        let _ = writeln!(story, "{line}");
    }
    if keep_until < lines.len() {
        let _ = writeln!(story, "   ({} lines are left out)", lines.len() - keep_until);
    }
    if let Some((entry, number)) = wrong.and_then(|number| Some((history.entries.get(number)?, number))) {
        let words = sentence(entry).unwrap_or_else(|| "the creation of an object of the start".to_owned());
        let _ = writeln!(story, "\nThe write to look at: {words}, at {:.3} s.", entry.at.as_secs_f64());
        if let Author::Program(instance) = entry.by {
            let _ = write!(story, "{}", Unseen::of(history, number, instance).words());
        }
    }
    story
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
            let name = format!("{} {}", change.kind(), change.key());
            object.strip_suffix('*').map_or(name == object, |prefix| name.starts_with(prefix))
        }
        What::External(change) => object == format!("external {}", change.name),
        _ => false,
    }
}

/// Whether a leader renews its lease. There are more of these than of everything else.
fn is_renewal(entry: &Entry) -> bool {
    let What::Changed(change) = &entry.what else { return false };
    let holder = |lease: Option<&Value>| lease.map(|lease| lease["spec"]["holderIdentity"].clone());
    change.kind() == "Lease" && holder(change.before()) == holder(change.after())
}

/// The changes that an instance had not been shown when it wrote.
struct Unseen {
    /// Changes that its watches had not brought yet.
    late: Vec<String>,
    /// States that no watch has brought, and none will: a list has skipped them.
    skipped: Vec<String>,
}

impl Unseen {
    fn of(history: &History, upto: usize, instance: Instance) -> Self {
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        let mut skipped = Vec::new();
        let before: Vec<_> = history.entries.iter().take(upto).collect();
        let wrote = history.entries.get(upto).map_or(Duration::ZERO, |entry| entry.at);
        let changes = || {
            before.iter().filter_map(|entry| match &entry.what {
                What::Changed(change) => Some(change),
                _ => None,
            })
        };
        for entry in before.iter().filter(|entry| entry.by == Author::Program(instance)) {
            if entry.at + ON_THE_WAY > wrote {
                break;
            }
            let What::Seen(now) = &entry.what else { continue };
            let former = seen.insert(&now.resource, now.upto);
            if let Some(former) = former.filter(|_| now.by_list) {
                let jumped = changes().filter(|change| {
                    *change.resource == *now.resource
                        && change.revision > former
                        && change.revision < now.upto
                });
                skipped.extend(jumped.map(described));
            }
        }
        let late = changes()
            .filter(|change| seen.get(change.resource()).is_some_and(|upto| change.revision > *upto));
        Self { late: late.map(described).collect(), skipped }
    }

    fn words(&self) -> String {
        let mut words = String::new();
        let mut list = |title: &str, changes: &[String]| {
            if changes.is_empty() {
                return;
            }
            let _ = writeln!(words, "{title}");
            let left_out = changes.len().saturating_sub(UNSEEN);
            if left_out > 0 {
                let _ = writeln!(words, "  - {left_out} earlier changes");
            }
            for change in changes.iter().skip(left_out) {
                let _ = writeln!(words, "  - {change}");
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
        What::Lost(request) => format!("{by} gives up waiting for the answer: {request}"),
        What::Answered { request, status, writes: true } if *status >= 300 => {
            format!("{by} gets {status}: {request}")
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
        What::Answered { .. } | What::Seen(_) => return None,
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
