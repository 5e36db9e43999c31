//! The log of a period: stories and changes, how many there were when, and of what.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kubediff_history::{Number, Order, Survey};
use serde_json::{Value, json};

use super::histogram;
use crate::ask::cursor::Cursor;
use crate::ask::log::{Question, Step, Walk};
use crate::ask::period::{covered, end, events_removed, unwatched};
use crate::changes::facts::duration;
use crate::text::clock::date_and_time;
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::question::{SCOPE, question};
use crate::web::row::Rows;
use crate::web::store::Asked;
use crate::web::template::{Frame, render, sentence};

/// Rows of a page.
const ROWS: usize = 100;
/// How long a page looks for rows.
pub(in crate::web) const WORK: Duration = Duration::from_millis(300);
/// Values of a facet that are shown.
const FACET: usize = 8;

/// The parameters of the timeline.
const KNOWN: &[&str] = &[
    "q", "kind", "ns", "name", "by", "user", "path", "change", "since", "until", "events", "fold", "cursor",
];

/// The period that is shown: that of the question, or the last hour of the history.
pub(in crate::web) fn shown(
    asked: &mut Asked<'_>,
    question: &Question,
) -> Result<(Timestamp, Timestamp), Problem> {
    const HOUR: SignedDuration = SignedDuration::from_hours(1);
    let now = asked.now.timestamp();
    let to = match question.period.to {
        Some(to) => to,
        // A history that nobody writes any more ended some time ago.
        None => end(asked.reader)?
            .filter(|end| now.duration_since(*end) > HOUR)
            .map_or(now, |end| end.checked_add(SignedDuration::from_secs(1)).unwrap_or(end)),
    };
    let from = question.period.from.unwrap_or_else(|| to.checked_sub(HOUR).unwrap_or(to));
    let from = asked.reader.complete_since()?.map_or(from, |begin| from.max(begin));
    Ok((from.min(to), to))
}

/// The timeline.
pub(in crate::web) fn timeline(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    let frame = Frame::new("Timeline", "timeline", params, KNOWN);
    let mut question = question(params, asked.reader, &asked.now)?;
    let (from, to) = shown(asked, &question)?;
    question.period.from = Some(from);
    let is_live = question.period.to.is_none() && to == asked.now.timestamp();
    if !is_live {
        question.period.to = Some(to);
    }
    let folds = params.flag("fold", true)?;
    let scope = params.address("", SCOPE, &[]);
    let cursor = params.get("cursor").map(|text| Cursor::read(text, &scope)).transpose();
    let cursor = cursor.map_err(Problem::of("cursor"))?;
    let is_first = cursor.is_none();
    let newest = asked.reader.last()?.map_or(Number(0), |(last, _)| last);

    let Asked { reader, store, now, is_partial, .. } = asked;
    let zone = now.time_zone().clone();
    let known = if folds { store.stories_soon(reader, now.timestamp())? } else { None };
    let stories = known.as_ref().and_then(|known| known.stories());
    let begin = stories.and_then(crate::ask::Stories::begins_at);
    let is_folding = folds && known.is_none();
    let mut walk = Walk::new(reader, &question, Order::NewestFirst, ROWS)?;
    walk = walk.within(reader, Instant::now() + WORK)?;
    if let Some(cursor) = cursor {
        walk = walk.from(cursor);
    }
    let mut rows = Rows::new(&zone);
    let (mut looked, mut next) = (None, None);
    while rows.rows.len() < ROWS {
        match walk.next(reader, stories)? {
            Step::Item(item) => rows.item(&item),
            Step::End => break,
            Step::Bound => {
                looked = Some(walk.place(reader, stories)?);
                *is_partial = true;
                break;
            }
        }
    }
    if rows.rows.len() == ROWS || looked.is_some() {
        let place = walk.place(reader, stories)?;
        let cursor = place.text(&scope);
        next = Some(params.address("/", KNOWN, &[("cursor", &cursor)]));
    }
    let looked = match looked {
        Some(place) => {
            reader.time_of(place.after)?.map(|at| format!("Looked back to {}.", date_and_time(at, &zone)))
        }
        None => None,
    };
    drop(known);

    let filter = walk.filter().clone();
    let parts = histogram::parts(from, to, &zone);
    let survey = reader.survey(&filter, &parts.times)?;
    let gaps = histogram::gaps(reader, &filter, (from, to), now.timestamp())?;
    let total: u64 = survey.parts.iter().map(kubediff_history::Counts::total).sum();
    let unseen: i64 = gaps.iter().map(|(from, to)| to.as_second() - from.as_second()).sum();
    let about = if survey.parts.iter().any(|part| part.others > 0) { "about " } else { "" };
    let mut summary = format!("{about}{total} {}", if total == 1 { "change" } else { "changes" });
    if !gaps.is_empty() {
        let unseen = if unseen == 0 { "less than a second".to_owned() } else { duration(unseen) };
        summary.push_str(&format!("; not watched for {unseen}"));
    }
    let mut notices = frame.notices.clone();
    if is_folding {
        notices
            .push("A long log is folded for the first time: changes stand one by one until then.".to_owned());
    }
    if let Some(first) = begin {
        notices.push(format!("Changes before #{first} stand one by one: nobody has folded them."));
    }
    let at = question.period.to.unwrap_or_else(|| asked.now.timestamp());
    notices.extend(unwatched(&asked.reader.standing()?, &filter.scope, at, &zone));
    if filter.events {
        notices.extend(events_removed(asked.reader, Some(from), &zone)?);
    }
    let is_empty = total == 0 && looked.is_none() && rows.rows.iter().all(|row| row["sort"] == "gap");
    let presets = histogram::presets_of(params);
    let wider = presets.wider.clone();
    let empty = match is_empty && is_first {
        true => json!({
            "text": format!("No change{} between {} and {}.", question.target.of_it(), date_and_time(from, &zone), date_and_time(to, &zone)),
            "covered": sentence(&covered(asked.reader, &zone)?),
            "wider": wider,
        }),
        false => Value::Null,
    };
    let is_live = is_live && is_first;
    let toggle = |name: &str, on: bool, default: bool| {
        let value = if on == default { if default { "0" } else { "1" } } else { "" };
        json!({ "on": on, "href": params.address("/", SCOPE, &[(name, value)]) })
    };
    let context = json!({
        "page": Frame { notices, ..frame }.json(asked),
        "period": {
            "from": date_and_time(from, &zone), "to": date_and_time(to, &zone), "words": presets.words,
            "is_live": is_live, "presets": presets.presets,
            "earlier": shifted(params, from, to, -1), "later": if is_live { None } else { Some(shifted(params, from, to, 1)) },
            "wider": wider,
        },
        "fields": {
            "q": params.text("q"), "kind": params.text("kind"), "ns": params.text("ns"), "name": params.text("name"),
            "by": params.text("by"), "path": params.text("path"), "change": params.text("change"),
            "since": params.text("since"), "until": params.text("until"), "events": question.events, "fold": folds,
        },
        "toggles": { "events": toggle("events", question.events, false), "fold": toggle("fold", folds, true) },
        "histogram": if is_first && !(is_empty && gaps.is_empty()) { histogram::histogram(&parts, &survey, &gaps, params, &zone) } else { Value::Null },
        "summary": summary,
        "facets": if is_first { facets(&survey, params) } else { Vec::new() },
        "rows": rows.rows,
        "next": next,
        "previous": if is_first { None } else { Some(params.address("/", SCOPE, &[])) },
        "looked": looked,
        "empty": empty,
        "live": if is_live { json!({
            "url": params.address("/live", SCOPE, &[]), "after": newest,
        }) } else { Value::Null },
    });
    Ok(render("timeline.html", context)?)
}

/// The period of the same length before or after.
fn shifted(params: &Params, from: Timestamp, to: Timestamp, steps: i32) -> String {
    let by = to.duration_since(from) * steps;
    let moved = |at: Timestamp| at.checked_add(by).unwrap_or(at).to_string();
    params.address("/", SCOPE, &[("since", &moved(from)), ("until", &moved(to))])
}

/// The most frequent values, each with the address of the list that has it alone.
fn facets(survey: &Survey, params: &Params) -> Vec<Value> {
    let facet = |title: &str, name: &str, values: Vec<(String, String, u64)>| {
        let more = values.len().saturating_sub(FACET);
        let shown = values.into_iter().take(FACET).map(|(label, value, count)| {
            let current = params.text(name) == value;
            let href = params.address("/", SCOPE, &[(name, if current { "" } else { &value })]);
            json!({ "label": label, "count": count, "href": href, "current": current })
        });
        json!({ "title": title, "items": shown.collect::<Vec<_>>(), "more": more })
    };
    let same = |text: String, count: u64| (text.clone(), text, count);
    let kinds = survey.kinds.iter().map(|(kind, count)| same(kind.to_string(), *count)).collect();
    let namespaces = survey.namespaces.iter().map(|(name, count)| match name.as_str() {
        "" => ("(none)".to_owned(), address::NONE.to_owned(), *count),
        name => same(name.to_owned(), *count),
    });
    let managers = survey.managers.iter().map(|(name, count)| same(name.clone(), *count)).collect();
    let all = [
        facet("Kinds", "kind", kinds),
        facet("Namespaces", "ns", namespaces.collect()),
        facet("By", "by", managers),
    ];
    all.into_iter().filter(|facet| facet["items"].as_array().is_some_and(|items| !items.is_empty())).collect()
}
