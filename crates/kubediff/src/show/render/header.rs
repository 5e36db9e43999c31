//! The first line of a change, or its only one: the time, the object and the managers.

use std::fmt::Write as _;

use anstyle::Style;
use jiff::Timestamp;
use kubediff_history::ChangeRecord;

use super::painter::{BOLD, DIM, GREEN, MAGENTA, PLAIN, Painter, RED, YELLOW};
use super::{INDENT, Renderer};
use crate::changes::change::{Change, Origin, Verb};
use crate::model::managers;
use crate::text::clock;
use crate::text::terminal::{cut, escape, width};

pub(super) fn header(renderer: &Renderer, change: &Change, out: &mut Painter) {
    let mut used = object(renderer, change, out);
    let words = words(renderer, change);
    used += 2 + width(&escape(&words));
    if used <= renderer.width {
        out.spaces(2);
    } else {
        out.line();
        out.spaces(INDENT);
    }
    out.put(DIM, &words).line();
}

/// `14:03:22  ~ deployments.apps shop/cart  replicas 2 -> 3  (kubectl-scale)`.
pub(super) fn line(renderer: &Renderer, change: &Change, columns: Option<usize>) -> String {
    /// Of the summary, this much is shown in a terminal that is too narrow for it.
    const LEAST: usize = 24;
    let mut out = Painter::default();
    let used = object(renderer, change, &mut out) + 2;
    let words = words(renderer, change);
    let summary = summary(change);
    let of_words = width(&escape(&words)) + 2;
    let room = columns.map_or(width(&summary) + of_words, |columns| columns.saturating_sub(used));
    let (summary, words) = match room.checked_sub(of_words) {
        Some(left) if left >= LEAST.min(width(&summary)) => (cut(&summary, left), Some(words)),
        _ => (cut(&summary, room.max(LEAST)), None),
    };
    if !summary.is_empty() {
        out.spaces(2).put(PLAIN, &summary);
    }
    if let Some(words) = words {
        out.spaces(2).put(DIM, &words);
    }
    out.line();
    out.finish()
}

/// The change in a few words.
pub(super) fn summary(change: &Change) -> String {
    match (change.verb, change.paths.is_empty()) {
        (Verb::Updated, true) => "changed, and changed back".to_owned(),
        _ => change.summary.clone(),
    }
}

/// `14:03:22`.
pub(super) fn time(renderer: &Renderer, at: Timestamp) -> String {
    clock::time_of_day(at, &renderer.time_zone)
}

/// `2026-11-23 14:03:22`.
pub(super) fn date_and_time(renderer: &Renderer, at: Timestamp) -> String {
    clock::date_and_time(at, &renderer.time_zone)
}

/// The start of a line: the time, in a log with the date.
pub(super) fn beginning(renderer: &Renderer, at: Timestamp) -> String {
    if renderer.log { date_and_time(renderer, at) } else { time(renderer, at) }
}

/// `(updated by kubectl-edit)`, in a log with its number: `(updated by kubectl-edit) #812`.
fn words(renderer: &Renderer, change: &Change) -> String {
    let number = change.number.filter(|_| renderer.log).map(|number| format!(" #{number}"));
    format!("({}){}", circumstances(change), number.unwrap_or_default())
}

/// `14:03:22  ~ deployments.apps shop/cart`; the columns it takes.
fn object(renderer: &Renderer, change: &Change, out: &mut Painter) -> usize {
    let (mark, style) = mark(change.verb);
    let time = beginning(renderer, change.observed_at);
    let group = if change.object.gvk.group.is_empty() {
        String::new()
    } else {
        format!(".{}", change.object.gvk.group)
    };
    let object = match &change.object.namespace {
        Some(namespace) => format!("{namespace}/{}", change.object.name),
        None => change.object.name.clone(),
    };
    let cluster = change.cluster.as_ref().map(|cluster| format!("{cluster} ")).unwrap_or_default();
    out.put(DIM, &time).spaces(2).put(style.bold(), mark).spaces(1).put(DIM, &cluster);
    out.put(style, &change.object.resource).put(DIM, &group).spaces(1).put(BOLD, &object);
    let texts = [
        time.as_str(),
        mark,
        cluster.as_str(),
        change.object.resource.as_str(),
        group.as_str(),
        object.as_str(),
    ];
    texts.iter().map(|text| width(&escape(text))).sum::<usize>() + 4
}

pub(crate) fn mark(verb: Verb) -> (&'static str, Style) {
    match verb {
        Verb::Added => ("+", GREEN),
        Verb::Updated => ("~", YELLOW),
        Verb::Deleted => ("-", RED),
        Verb::Recreated => ("±", MAGENTA),
    }
}

/// `updated by kubectl-edit, seen in a list`.
fn circumstances(change: &Change) -> String {
    let mut text = change.verb.as_str().to_owned();
    if let Some((by, names)) = authors(change) {
        let _ = write!(text, "{by}{names}");
    }
    for way in ways(change) {
        let _ = write!(text, ", {way}");
    }
    text
}

/// The user of a change and its managers, or these alone, behind the words for how sure that is: `(" by ", "jane (kubectl-edit, helm)")`.
pub(crate) fn authors<D>(change: &ChangeRecord<D>) -> Option<(&'static str, String)> {
    let mut names: Vec<String> = Vec::new();
    for name in change.managers.iter().chain(&change.owners).map(managers::name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let by = match change.managers.is_empty() {
        true => " by unknown; what was removed was owned by ",
        false if change.managers.iter().all(|manager| manager.probable) => ", probably by ",
        false => " by ",
    };
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let managers = names.join(", ") + &more;
    match &change.user {
        Some(user) => {
            let by = if user.probable { ", probably by " } else { " by " };
            let managers = if change.managers.is_empty() { String::new() } else { format!(" ({managers})") };
            Some((by, user.name.clone() + &managers))
        }
        None => (!names.is_empty()).then_some((by, managers)),
    }
}

/// How a change was seen, where that is not a watch's event.
pub(crate) fn ways<D>(change: &ChangeRecord<D>) -> Vec<String> {
    let merged = (change.merged > 1).then(|| format!("{} changes merged", change.merged));
    let origin = match change.origin {
        Origin::Watch => None,
        Origin::List => Some("seen in a list".to_owned()),
        Origin::Restart => Some("while kubediff did not run".to_owned()),
    };
    merged.into_iter().chain(origin).collect()
}
