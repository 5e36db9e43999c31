//! From when to when: what a question asks for, and what the history has.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use kubediff_history::{Page, Reader, Scope, Standing};

use super::error::AskError;
use super::instant::instant;
use crate::follow::Within;
use crate::history::notes::{LEFT_OUT, OPEN, WATCHED_UNTIL, WITHIN, left};
use crate::text::clock::date_and_time;

/// A part of the past: from a time on, before a time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Period {
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

impl Period {
    pub(crate) fn read(from: Option<&str>, to: Option<&str>, now: &Zoned) -> Result<Self, AskError> {
        let time = |text: Option<&str>| text.map(|text| instant(text, now)).transpose();
        let period = Self { from: time(from)?, to: time(to)? };
        match (period.from, period.to) {
            (Some(from), Some(to)) if from > to => {
                let (from, to) = (date_and_time(from, now.time_zone()), date_and_time(to, now.time_zone()));
                Err(AskError::Period(format!(
                    "the time from {from} to {to} is empty: it ends before it begins"
                )))
            }
            _ => Ok(period),
        }
    }

    /// ` since 14:05 before 15:05`, or nothing.
    pub(crate) fn words(&self, zone: &TimeZone) -> String {
        let from = self.from.map(|from| format!(" since {}", date_and_time(from, zone)));
        let to = self.to.map(|to| format!(" before {}", date_and_time(to, zone)));
        from.unwrap_or_default() + &to.unwrap_or_default()
    }
}

/// `the history covers 2026-11-23 13:59:00 to 2026-11-23 14:15:00`.
pub(crate) fn covered(reader: &mut Reader, zone: &TimeZone) -> Result<String, AskError> {
    Ok(match (reader.complete_since()?, end(reader)?) {
        (Some(from), Some(to)) => {
            format!("the history covers {} to {}", date_and_time(from, zone), date_and_time(to, zone))
        }
        _ => "the history is empty".to_owned(),
    })
}

/// Says what is missing, and what time the history covers.
pub(crate) fn nothing(reader: &mut Reader, what: String, zone: &TimeZone) -> AskError {
    match covered(reader, zone) {
        Ok(covered) => AskError::Nothing(format!("{what}; {covered}")),
        Err(error) => error,
    }
}

/// Until when the history knows what happened.
pub(crate) fn end(reader: &mut Reader) -> Result<Option<Timestamp>, AskError> {
    Ok(end_of(&reader.standing()?))
}

/// The same of a history whose writer knows this.
pub(crate) fn end_of(standing: &Standing) -> Option<Timestamp> {
    let watched_until = standing.notes.get(WATCHED_UNTIL).and_then(|time| time.parse().ok());
    watched_until.max(standing.last.map(|(_, at)| at))
}

/// The doubt whether a history that ends then knows of this time, in a sentence.
pub(crate) fn ended(end: Timestamp, at: Timestamp, zone: &TimeZone) -> Option<String> {
    /// How long after the last sign of life nobody needs to be told that time has passed.
    const SOON: SignedDuration = SignedDuration::from_secs(60);
    let is_over = at.duration_since(end) > SOON;
    is_over.then(|| {
        format!("the history ends at {}: what happened later is not known", date_and_time(end, zone))
    })
}

/// The doubt whether a history knows all of the time from then on, in a sentence.
pub(crate) fn begins(
    reader: &mut Reader,
    from: Option<Timestamp>,
    zone: &TimeZone,
) -> Result<Option<String>, AskError> {
    let since = reader.complete_since()?.filter(|since| from.is_some_and(|from| from < *since));
    let begins = |since| {
        format!("the history begins at {}: what happened before is not known", date_and_time(since, zone))
    };
    Ok(since.map(begins))
}

/// The doubts about the state at a time, in sentences.
pub(crate) fn doubts(
    reader: &mut Reader,
    scope: &Scope,
    at: Timestamp,
    zone: &TimeZone,
) -> Result<Vec<String>, AskError> {
    let standing = reader.standing()?;
    let mut doubts = Vec::new();
    if let Some(since) = reader.complete_since()?.filter(|since| at < *since) {
        doubts.push(format!(
            "the history is complete since {} only: objects deleted before are missing, and states may be older",
            date_and_time(since, zone)
        ));
    }
    doubts.extend(end_of(&standing).and_then(|end| ended(end, at, zone)));
    for gap in reader.gaps(scope, Some(at), Some(at), &Page::newest(10))? {
        doubts.push(format!(
            "{} not watched from {} to {} ({}): the state at {} is the last one known before",
            gap.resource.as_deref().unwrap_or("everything"),
            date_and_time(gap.from, zone),
            date_and_time(gap.to, zone),
            gap.reason,
            date_and_time(at, zone)
        ));
    }
    if scope.kinds.iter().any(|kind| kind.to_string() == "events") {
        doubts.extend(events_removed(reader, Some(at), zone)?);
    }
    doubts.append(&mut unwatched(&standing, scope, at, zone));
    Ok(doubts)
}

/// Whether Events of this time or later were removed, in a sentence.
pub(crate) fn events_removed(
    reader: &mut Reader,
    from: Option<Timestamp>,
    zone: &TimeZone,
) -> Result<Option<String>, AskError> {
    let since = reader.events_since()?.filter(|since| from.is_none_or(|from| from < *since));
    Ok(since.map(|since| format!("Events before {} were removed", date_and_time(since, zone))))
}

/// The objects of a scope that are not watched at a time, in sentences.
pub(crate) fn unwatched(standing: &Standing, scope: &Scope, at: Timestamp, zone: &TimeZone) -> Vec<String> {
    let Standing { notes, is_limited, .. } = standing;
    let mut unwatched = unwatched_kinds(standing, scope, at, zone);
    let within: Option<Within> = notes.get(WITHIN).and_then(|within| serde_json::from_str(within).ok());
    let since: Option<Timestamp> = notes.get(LEFT_OUT).and_then(|note| note.split_once(' ')?.0.parse().ok());
    if let Some((since, within)) = since.filter(|since| *since < at).zip(within) {
        let has = |namespace: &String| within.has(Some(namespace));
        let is_in = !scope.namespaces.is_empty() && scope.namespaces.iter().all(has);
        if !(is_in && within.selectors.is_empty()) {
            let since = date_and_time(since, zone);
            let what = if *is_limited { "a part of the cluster".to_owned() } else { within.in_words() };
            unwatched.push(format!("only {what} watched since {since}"));
        }
    }
    unwatched
}

/// The kinds of a scope that are not watched at a time, in sentences.
pub(crate) fn unwatched_kinds(
    standing: &Standing,
    scope: &Scope,
    at: Timestamp,
    zone: &TimeZone,
) -> Vec<String> {
    let Standing { notes, positions, .. } = standing;
    let mut unwatched = Vec::new();
    let kinds: Vec<String> = scope.kinds.iter().map(ToString::to_string).collect();
    for name in &kinds {
        let left: Option<Timestamp> = notes.get(&left(name)).and_then(|time| time.parse().ok());
        if let Some(left) = left.filter(|left| *left < at) {
            unwatched.push(format!("{name} not watched since {}", date_and_time(left, zone)));
        } else if !positions.is_empty() && !positions.keys().any(|target| is_of(target, name)) {
            unwatched.push(format!("{name} never watched"));
        }
    }
    let open = open_gaps(standing, scope, at);
    if let Some((since, _, cause)) = open.iter().min() {
        let names: Vec<&str> = open.iter().map(|(_, target, _)| &**target).collect();
        let (names, since) = (crate::show::summary::some(&names), date_and_time(*since, zone));
        unwatched.push(format!("{names} not watched since {since}: {cause}"));
    }
    unwatched
}

/// The gaps of a scope that last at a time: since when, of which target, and why.
pub(crate) fn open_gaps(
    standing: &Standing,
    scope: &Scope,
    at: Timestamp,
) -> Vec<(Timestamp, String, String)> {
    let Standing { notes, positions, is_limited, .. } = standing;
    let is_asked = |target: &str| {
        scope.kinds.is_empty() || scope.kinds.iter().any(|kind| is_of(target, &kind.to_string()))
    };
    let open = notes.iter().filter_map(|(note, value)| {
        let (since, cause) = value.split_once(' ')?;
        let since: Timestamp = since.parse().ok()?;
        let target = note.strip_prefix(OPEN).filter(|target| is_asked(target) && since <= at)?;
        let is_shown = !is_limited || positions.contains_key(target);
        is_shown.then(|| (since, target.to_owned(), cause.to_owned()))
    });
    open.collect()
}

/// Whether a target is this resource, or one object of it.
fn is_of(target: &str, resource: &str) -> bool {
    target.split('/').next() == Some(resource)
}
