//! The cluster at a time: its kinds, and a table of one of them as kubectl would have printed it.

use std::collections::BTreeSet;
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use kube_table::Table;
use kubediff_history::{KindName, Number, Scope, Version};
use serde_json::{Value, json};

use crate::ask::instant::instant as time_of;
use crate::ask::names::Target;
use crate::ask::period::doubts;
use crate::ask::{object, resource};
use crate::text::clock::date_and_time;
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::store::Asked;
use crate::web::template::{Frame, render};

const KNOWN: &[&str] = &["kind", "ns", "start"];
/// Rows of a page.
const ROWS: usize = 250;

/// The time that somebody means: in words, or as the number of a change, which was the last one then.
pub(in crate::web) fn moment(
    asked: &mut Asked<'_>,
    parameter: &str,
    text: &str,
) -> Result<Timestamp, Problem> {
    if let Some(number) = text.strip_prefix('#').and_then(|number| number.parse().ok()) {
        // To others, a hidden record is as one that there is not.
        let is_seen = !asked.reader.is_limited()? || asked.reader.version_of(Number(number))?.is_some();
        let at = if is_seen { asked.reader.time_of(Number(number))? } else { None };
        return at.ok_or_else(|| Problem::missing(format!("There is no change {text}"), ""));
    }
    let at = time_of(text, &asked.now).map_err(|error| Problem::wrong(parameter, error.to_string()))?;
    if at > asked.now.timestamp() {
        return Err(Problem::wrong(parameter, "The time is in the future: nothing is known of it."));
    }
    Ok(at)
}

/// The page of a time.
pub(in crate::web) fn instant(
    asked: &mut Asked<'_>,
    at: Option<Timestamp>,
    params: &Params,
) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let mut frame = Frame::new("The cluster at a time", "instant", params, KNOWN);
    frame.search.clear();
    let when = at.unwrap_or_else(|| asked.now.timestamp());
    let path = at.map_or_else(|| "/at".to_owned(), |at| format!("/at/{at}/"));
    let namespace = params.get("ns");
    let namespaces: Vec<String> = namespace.iter().map(|it| (*it).to_owned()).collect();
    let link = |others: &[(&str, &str)]| params.address(&path, &["kind", "ns"], others);

    let names: BTreeSet<(String, String)> =
        asked.reader.kinds()?.into_iter().map(|(gvk, plural)| (gvk.group, plural)).collect();
    let target = match params.get("kind") {
        Some(kind) => {
            Some(Target::read(asked.reader, &[kind.to_owned()], namespace).map_err(Problem::of("kind"))?)
        }
        None => None,
    };
    let chosen = target.as_ref().and_then(|target| target.scope.kinds.first()).map(ToString::to_string);
    let mut kinds = Vec::new();
    for (group, resource) in names {
        let kind = KindName { group: Some(group), resource };
        let label = kind.to_string();
        let scope = Scope { kinds: vec![kind], namespaces: namespaces.clone(), ..Scope::default() };
        let count = asked.reader.present(&scope, at)?.len();
        if count > 0 {
            let current = chosen.as_ref() == Some(&label);
            kinds.push(json!({ "label": label, "count": count, "href": link(&[("kind", &label)]), "current": current }));
        }
    }
    let table = match &target {
        Some(target) => table(asked, target, at, params, &path)?,
        None => Value::Null,
    };
    let number = asked.reader.first_since(when)?.0.saturating_sub(1);
    let moved = |by: i64| when.checked_add(SignedDuration::from_mins(by)).unwrap_or(when);
    let at_of = |at: Timestamp| params.address(&format!("/at/{at}/"), &["kind", "ns"], &[]);
    let later = moved(5);
    frame.notices.extend(match &target {
        Some(target) => doubts(asked.reader, &target.scope, when, &zone)?,
        None => doubts(asked.reader, &Scope::default(), when, &zone)?,
    });
    let place = namespace.map_or_else(|| " -A".to_owned(), |namespace| format!(" -n {namespace}"));
    let of = chosen.unwrap_or_else(|| "pods".to_owned());
    let moment = at.map(|at| format!(" --at {at}")).unwrap_or_default();
    let context = json!({
        "page": frame.json(asked),
        "at": {
            "input": at.map(|at| at.to_string()).unwrap_or_default(), "words": date_and_time(when, &zone), "is_now": at.is_none(),
            "before": at_of(moved(-5)), "after": if at.is_some() && later < asked.now.timestamp() { Some(at_of(later)) } else { None },
            "number": number,
        },
        "kinds": kinds, "namespaces": places(asked, at, namespace, &link)?, "ns": namespace.unwrap_or_default(), "table": table,
        "commands": [format!("kubediff get {of}{place}{moment}")],
    });
    Ok(render("instant.html", context)?)
}

/// The address of this screen with other parameters.
type Link<'a> = dyn Fn(&[(&str, &str)]) -> String + 'a;

/// The namespaces that were there.
fn places(
    asked: &mut Asked<'_>,
    at: Option<Timestamp>,
    chosen: Option<&str>,
    link: &Link<'_>,
) -> Result<Vec<Value>, Problem> {
    /// More do not help to choose.
    const MOST: usize = 60;
    let kind = KindName { group: Some(String::new()), resource: "namespaces".to_owned() };
    let scope = Scope { kinds: vec![kind], ..Scope::default() };
    let present = asked.reader.present(&scope, at)?;
    let states = asked.reader.states(&present, 0..present.len().min(MOST))?;
    let mut found = vec![json!({ "label": "all", "href": link(&[("ns", "")]), "current": chosen.is_none() })];
    found.extend(states.iter().map(|state| {
        let name = &state.object.name;
        json!({ "label": name, "href": link(&[("ns", name)]), "current": chosen == Some(name.as_str()) })
    }));
    // Without the objects of the namespaces, those of the records would be all of every time.
    Ok(if found.len() > 1 { found } else { Vec::new() })
}

/// A page of the table of a kind.
fn table(
    asked: &mut Asked<'_>,
    target: &Target,
    at: Option<Timestamp>,
    params: &Params,
    path: &str,
) -> Result<Value, Problem> {
    let present = asked.reader.present(&target.scope, at)?;
    let start = params.number("start", 0, 0, usize::MAX)?.min(present.len());
    let end = present.len().min(start + ROWS);
    let states = asked.reader.states(&present, start..end)?;
    let has_namespace =
        target.scope.namespaces.is_empty() && states.iter().any(|it| it.object.namespace.is_some());
    let seen = SystemTime::from(at.unwrap_or_else(|| asked.now.timestamp()));
    let mut printer: Option<(kubediff_history::Gvk, Table)> = None;
    let (mut heads, mut rows) = (Vec::new(), Vec::new());
    for state in &states {
        let Version { object: id, .. } = state;
        if printer.as_ref().is_none_or(|(gvk, _)| *gvk != id.gvk) {
            let resource = resource(asked.reader, &id.gvk, &id.resource, at)?;
            printer = Some((id.gvk.clone(), Table::of(&resource, false)));
        }
        let Some((_, printer)) = &printer else { continue };
        if heads.is_empty() {
            heads = printer.heads().iter().map(ToString::to_string).collect::<Vec<_>>();
            if has_namespace {
                heads.insert(1.min(heads.len()), "NAMESPACE".to_owned());
            }
        }
        let mut cells = printer.row(&object(state), seen);
        if has_namespace {
            cells.insert(1.min(cells.len()), id.namespace.clone().unwrap_or_default());
        }
        let href = match at {
            Some(at) => address::with(&address::object(id), [("at", at.to_string())]),
            None => address::object(id),
        };
        rows.push(json!({ "cells": cells, "href": href }));
    }
    let next = (end < present.len()).then(|| params.address(path, KNOWN, &[("start", &end.to_string())]));
    let kind = target.scope.kinds.first().map(ToString::to_string).unwrap_or_default();
    Ok(json!({ "kind": kind, "heads": heads, "rows": rows, "next": next, "total": present.len() }))
}
