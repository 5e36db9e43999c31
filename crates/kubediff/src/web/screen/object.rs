//! One object: its manifest with the author of each line, its changes, Events, two versions side by side, and what it belongs to.

use std::time::Instant;

use kubediff_history::{At, Filter, Incarnation, Number, Order, Page, Reader, Record, Scope, Verb, Version};
use serde_json::{Value, json};

use super::manifest::{self, Gutter};
use super::timeline::WORK;
use crate::ask::cursor::Cursor;
use crate::ask::instant::instant;
use crate::ask::log::{Item, Question, Step, Walk};
use crate::ask::names::{self, Target};
use crate::ask::period::doubts;
use crate::ask::{authors, fields_of, net, shown};
use crate::model::path::{Path, PathPattern};
use crate::text::clock::date_and_time;
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::row::{Rows, differences, title};
use crate::web::store::Asked;
use crate::web::template::{Frame, render};

const KNOWN: &[&str] = &["at", "rev", "vs", "tab", "path", "cursor"];
/// Rows of a tab.
const ROWS: usize = 100;
/// Versions that one can compare.
const CHOICES: usize = 200;
/// Objects that it controls.
const CHILDREN: usize = 1_000;

/// The object that an address names.
#[derive(Debug, Clone)]
pub(in crate::web) struct Named {
    pub(in crate::web) resource: String,
    pub(in crate::web) namespace: Option<String>,
    pub(in crate::web) name: String,
}

/// The parts of the page of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Tab {
    Manifest,
    Changes,
    Diff,
    Events,
    Related,
}

impl Tab {
    const ALL: [Self; 5] = [Self::Manifest, Self::Changes, Self::Diff, Self::Events, Self::Related];

    fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Changes => "changes",
            Self::Diff => "diff",
            Self::Events => "events",
            Self::Related => "related",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Manifest => "Manifest",
            Self::Changes => "Changes",
            Self::Diff => "Compare",
            Self::Events => "Events",
            Self::Related => "Related",
        }
    }
}

/// A version of an object, and the incarnation that it is of.
pub(in crate::web) struct Found {
    pub(in crate::web) target: Target,
    pub(in crate::web) incarnations: Vec<Incarnation>,
    pub(in crate::web) incarnation: Incarnation,
    pub(in crate::web) version: Version,
}

/// The version that the parameters mean: the newest one, that of a record, or that at a time.
pub(in crate::web) fn find(asked: &mut Asked<'_>, named: &Named, params: &Params) -> Result<Found, Problem> {
    let zone = asked.now.time_zone().clone();
    let found = names::named(asked.reader, &named.resource, named.namespace.as_deref(), &named.name, &zone)?;
    let at = match (params.get("rev"), params.get("at")) {
        (Some(text), _) => match text.trim_start_matches('#').parse() {
            Ok(number) => At::Number(Number(number)),
            Err(_) => {
                return Err(Problem::wrong("rev", format!("`{text}` is no number of a change, such as 812")));
            }
        },
        (None, Some(text)) => {
            At::Time(instant(text, &asked.now).map_err(|error| Problem::wrong("at", error.to_string()))?)
        }
        (None, None) => At::Newest,
    };
    for incarnation in found.incarnations.iter().rev() {
        if let Some(version) = asked.reader.version(incarnation, &at)? {
            let incarnation = incarnation.clone();
            return Ok(Found {
                target: found.target,
                incarnations: found.incarnations,
                incarnation,
                version,
            });
        }
    }
    let when = match at {
        At::Time(time) => format!(" at {}", date_and_time(time, &zone)),
        At::Number(number) => format!(" of change #{number}"),
        _ => String::new(),
    };
    let title = format!("The history has no state of {}{when}", found.target);
    let first = found.incarnations.iter().map(|it| it.first).min().unwrap_or_default();
    let since = asked
        .reader
        .time_of(first)?
        .map(|at| format!("Its first state here is of {}.", date_and_time(at, &zone)));
    Err(Problem::missing(title, since.unwrap_or_default())
        .hint("Without `at` and `rev`, the answer is the newest state."))
}

/// The page of an object.
pub(in crate::web) fn object(
    asked: &mut Asked<'_>,
    named: &Named,
    params: &Params,
) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let found = find(asked, named, params)?;
    let tab = match params.text("tab") {
        "" => Tab::Manifest,
        name => Tab::ALL
            .into_iter()
            .find(|tab| tab.name() == name)
            .ok_or_else(|| Problem::wrong("tab", "the tabs are manifest, changes, diff, events, related"))?,
    };
    let Found { incarnation, version, .. } = &found;
    let id = &version.object;
    let path = address::named(&named.resource, named.namespace.as_deref(), &named.name);
    let link = |others: &[(&str, &str)]| params.address(&path, KNOWN, others);
    let (older, newer) = around(asked.reader, incarnation, version.number)?;
    let of_version =
        |number: Number| link(&[("rev", &number.to_string()), ("at", ""), ("cursor", ""), ("vs", "")]);
    let is_gone = version.change.as_ref().is_some_and(|change| change.verb == Verb::Deleted);
    let at = params
        .get("at")
        .map(|text| instant(text, &asked.now))
        .transpose()
        .map_err(crate::ask::AskError::from)?;
    let tabs = Tab::ALL.map(|it| {
        let name = if it == Tab::Manifest { "" } else { it.name() };
        let href = link(&[("tab", name), ("cursor", ""), ("vs", "")]);
        json!({ "label": it.label(), "href": href, "current": it == tab, "count": null })
    });
    let heading = title(id);
    let mut frame = Frame::new(&heading, "", params, KNOWN);
    frame.search.clear();
    let when = at.unwrap_or_else(|| asked.now.timestamp());
    if tab == Tab::Manifest {
        frame.notices.extend(doubts(asked.reader, &found.target.scope, when, &zone)?);
    }
    let content = match tab {
        Tab::Manifest => authors_of(asked, &found, params)?,
        Tab::Changes => log(asked, &found, params, false)?,
        Tab::Events => log(asked, &found, params, true)?,
        Tab::Diff => compared(asked, &found, params)?,
        Tab::Related => related(asked, &found)?,
    };
    let place = named.namespace.as_ref().map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
    let incarnations = match found.incarnations.len() {
        0 | 1 => None,
        count => Some(format!(
            "An object of this name was deleted and created again: the history has {count} of them."
        )),
    };
    let mut context = json!({
        "page": frame.json(asked),
        "object": {
            "title": heading, "resource": id.qualified_resource(), "exists": incarnation.ended_at.is_none(),
            "state": incarnation.ended_at.map(|at| format!("deleted at {}", date_and_time(at, &zone))).unwrap_or_default(),
            "at": at.map(|at| date_and_time(at, &zone)), "at_input": params.text("at"),
            "number": version.number, "time": date_and_time(version.observed_at, &zone),
            "older": older.map(of_version), "newer": newer.map(of_version),
            "current_href": if params.get("at").is_some() || params.get("rev").is_some() || is_gone { Some(link(&[("at", ""), ("rev", ""), ("cursor", "")])) } else { None },
            "begins": null, "incarnations": incarnations,
            "tab": tab.name(), "tabs": tabs,
            "json_href": params.address(&format!("/v1/objects{}", path.trim_start_matches("/o")), &["at", "rev"], &[]),
            "command": format!("kubediff blame {}/{}{place}", named.resource, named.name),
        },
    });
    if let (Some(context), Value::Object(mut content)) = (context.as_object_mut(), content) {
        if let (Some(begins), Some(object)) = (content.remove("begins"), context.get_mut("object")) {
            object["begins"] = begins;
        }
        context.append(&mut content);
    }
    Ok(render("object.html", context)?)
}

/// The versions before and after one.
fn around(
    reader: &mut Reader,
    incarnation: &Incarnation,
    number: Number,
) -> Result<(Option<Number>, Option<Number>), Problem> {
    let filter = of_incarnation(incarnation);
    let after = reader.records(&filter, &Page::oldest(1).after(number))?.records.first().map(Record::number);
    let before = reader.version_before(number)?.map(|version| version.number);
    Ok((before, after))
}

fn of_incarnation(incarnation: &Incarnation) -> Filter {
    let scope = Scope { uid: Some(incarnation.object.uid.clone()), ..Scope::default() };
    Filter { scope, ..Filter::default() }
}

/// The manifest with the author of each line.
fn authors_of(asked: &mut Asked<'_>, found: &Found, params: &Params) -> Result<Value, Problem> {
    let zone = asked.now.time_zone().clone();
    let pattern: Option<PathPattern> = params
        .get("path")
        .map(str::parse)
        .transpose()
        .map_err(|error: crate::InvalidPattern| Problem::wrong("path", error.to_string()))?;
    let Found { incarnation, version, .. } = found;
    let is_past = params.get("rev").is_some() || params.get("at").is_some();
    let until = is_past.then_some(version.number);
    let blame = authors(asked.reader, incarnation, until, None)?;
    let state = shown(version, false);
    let fields = fields_of(asked.reader, &version.object, Some(version.observed_at), &state)?;
    let now = if is_past { version.observed_at } else { asked.now.timestamp() };
    let gutter = Gutter { fields: &fields, blame: &blame.fields, now, zone: &zone };
    let covers = |path: &str| {
        pattern.as_ref().is_none_or(|pattern| path.parse().is_ok_and(|path: Path| pattern.covers(&path)))
    };
    let title = if incarnation.ended_at.is_some() && !is_past { "Its last state" } else { "Its state" };
    let only: Option<&dyn Fn(&str) -> bool> = if pattern.is_some() { Some(&covers) } else { None };
    let begins = blame.starts_in_the_middle.map(|since| {
        format!(
            "The history of it begins at {}, in the middle of its life: of earlier writes it knows only the managers that own fields.",
            date_and_time(since, &zone)
        )
    });
    let removed: Vec<Value> =
        gutter.removed().into_iter().filter(|it| covers(it["path"].as_str().unwrap_or_default())).collect();
    Ok(json!({
        "manifest": manifest::blamed(title, &state, &gutter, only),
        "removed": removed, "filter": params.text("path"), "begins": begins,
    }))
}

/// Its changes, or the Events about it and about what it controls.
fn log(asked: &mut Asked<'_>, found: &Found, params: &Params, events: bool) -> Result<Value, Problem> {
    let zone = asked.now.time_zone().clone();
    let question = Question { target: found.target.clone(), events, ..Question::default() };
    let scope = format!("{}{events}", found.target);
    let cursor = params
        .get("cursor")
        .map(|text| Cursor::read(text, &scope))
        .transpose()
        .map_err(Problem::of("cursor"))?;
    let reader = &mut *asked.reader;
    let mut walk =
        Walk::new(reader, &question, Order::NewestFirst, ROWS)?.within(reader, Instant::now() + WORK)?;
    if let Some(cursor) = cursor {
        walk = walk.from(cursor);
    }
    let mut rows = Rows::new(&zone);
    let mut is_whole = false;
    while rows.rows.len() < ROWS {
        match walk.next(reader, None)? {
            Step::Item(Item::Record(Record::Change(_)) | Item::Gap(_)) if events => {}
            Step::Item(item) => rows.item(&item),
            Step::End => {
                is_whole = true;
                break;
            }
            Step::Bound => {
                asked.is_partial = true;
                break;
            }
        }
    }
    let next = match is_whole {
        true => None,
        false => {
            let cursor = walk.place(reader, None)?.text(&scope);
            let path = address::object(&found.version.object);
            Some(params.address(&path, KNOWN, &[("cursor", &cursor)]))
        }
    };
    Ok(json!({ "rows": rows.rows, "next": next }))
}

/// Two versions of it.
fn compared(asked: &mut Asked<'_>, found: &Found, params: &Params) -> Result<Value, Problem> {
    let zone = asked.now.time_zone().clone();
    let filter = of_incarnation(&found.incarnation);
    let records = asked.reader.records(&filter, &Page::newest(CHOICES))?.records;
    let number = |text: &str| {
        text.trim_start_matches('#')
            .parse()
            .map(Number)
            .map_err(|_| Problem::wrong("vs", format!("`{text}` is no number of a change, such as 812")))
    };
    let new = found.version.clone();
    let old = match params.get("vs") {
        Some(text) => {
            let number = number(text)?;
            let version = asked.reader.version(&found.incarnation, &At::Number(number))?;
            version.ok_or_else(|| Problem::missing(format!("#{number} is no version of this object"), ""))?
        }
        None => asked.reader.version_before(new.number)?.unwrap_or_else(|| new.clone()),
    };
    let choices: Vec<Value> = records
        .iter()
        .filter_map(|record| match record {
            Record::Change(change) => {
                let it = change.number.unwrap_or_default();
                let label = format!("#{it} {} {}", date_and_time(change.observed_at, &zone), change.summary);
                Some(json!({
                    "number": it, "label": crate::text::terminal::cut(&label, 100),
                    "selected_old": it == old.number, "selected_new": it == new.number,
                }))
            }
            _ => None,
        })
        .collect();
    let found = net::between(asked.reader, &old, &new)?;
    Ok(json!({
        "vs": {
            "old_number": old.number, "new_number": new.number, "old_time": date_and_time(old.observed_at, &zone),
            "new_time": date_and_time(new.observed_at, &zone), "choices": choices,
        },
        "differences": differences(&found),
    }))
}

/// Its controllers, and what it controls.
fn related(asked: &mut Asked<'_>, found: &Found) -> Result<Value, Problem> {
    let zone = asked.now.time_zone().clone();
    let id = &found.version.object;
    let last = asked.reader.last()?.map_or(found.version.number, |(last, _)| last);
    let (lineage, _) = asked.reader.lineage(&id.uid, id.namespace.as_deref(), last)?;
    let owners: Vec<Value> = lineage
        .iter()
        .skip(1)
        .map(|owner| json!({ "title": title(owner), "href": address::object(owner), "state": "" }))
        .collect();
    let children = asked.reader.controlled(id, CHILDREN + 1)?;
    let more = children.len().saturating_sub(CHILDREN);
    let child = |it: &Incarnation| {
        let state = it
            .ended_at
            .map_or_else(|| "exists".to_owned(), |at| format!("deleted at {}", date_and_time(at, &zone)));
        json!({ "title": title(&it.object), "href": address::object(&it.object), "state": state })
    };
    Ok(json!({
        "owners": owners, "children": children.iter().take(CHILDREN).map(child).collect::<Vec<_>>(), "more": more,
    }))
}
