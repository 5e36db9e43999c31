//! `kubediff get`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kube_table::{Columns, Resource, Table, builtin};
use kubediff_history::{Gvk, Reader, Version};
use serde_json::{Value, json};

use super::args::{GetArgs, ObjectFormat};
use super::error::QueryError;
use super::instant::instant;
use super::names::{Target, definition};
use super::output::Output;
use super::period::{covered, date_and_time, doubts, nothing};
use super::stored;
use crate::show::render::{json_pretty, yaml};
use crate::text::table::table;
use crate::text::terminal::{escape, say};

/// Objects that are read at once.
const PAGE: usize = 500;

pub(super) fn run(args: &GetArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let zone = now.time_zone();
    let at = args.at.as_deref().map(|text| instant(text, now)).transpose()?;
    if at.is_some_and(|at| at > now.timestamp()) {
        return Err(QueryError::Period("--at is in the future: nothing is known of it".to_owned()));
    }
    let target = Target::read(&mut reader, &args.target, args.namespaces.one())?;
    let objects = objects(&mut reader, &target, at)?;
    let when = at.map(|at| format!(" at {}", date_and_time(at, zone))).unwrap_or_default();
    if objects.is_empty() && target.scope.name.is_some() {
        return Err(absent(&mut reader, &target, at, zone));
    }
    let text = match args.output {
        ObjectFormat::Table | ObjectFormat::Wide => {
            tables(&mut reader, &objects, args, (at, now.timestamp()))?
        }
        ObjectFormat::Name => objects.iter().map(|version| name(version) + "\n").collect(),
        ObjectFormat::Yaml => yaml(&list(&objects, &target, args))?,
        ObjectFormat::Json => json_pretty(&list(&objects, &target, args))?,
    };
    let mut output = Output::whole();
    output.text(&text)?;
    output.finish()?;
    if objects.is_empty() {
        say(&format!("no {target} found{when}; {}", covered(&mut reader, zone)?));
    }
    let at = at.unwrap_or_else(|| now.timestamp());
    doubts(&mut reader, &target.scope, at, zone)?.iter().for_each(|doubt| say(doubt));
    Ok(())
}

/// Why an object is not there, as far as the history knows.
fn absent(reader: &mut Reader, target: &Target, at: Option<Timestamp>, zone: &TimeZone) -> QueryError {
    let incarnations = match reader.incarnations(&target.scope) {
        Ok(incarnations) => incarnations,
        Err(error) => return error.into(),
    };
    let is_before = |time: &Timestamp| at.is_none_or(|at| *time <= at);
    let ended = incarnations.iter().filter_map(|it| it.ended_at).filter(is_before).max();
    let when = at.map(|at| format!(" at {}", date_and_time(at, zone))).unwrap_or_default();
    let what = match (ended, incarnations.is_empty()) {
        (Some(ended), _) => {
            format!("there is no {target}{when}: it was deleted at {}", date_and_time(ended, zone))
        }
        (None, true) => format!("the history has no {target}"),
        (None, false) => format!("there is no {target}{when}: it was seen later only"),
    };
    nothing(reader, what, zone)
}

/// The objects of a kind at a time, by namespace and name.
fn objects(reader: &mut Reader, target: &Target, at: Option<Timestamp>) -> Result<Vec<Version>, QueryError> {
    let (mut objects, mut cursor) = (Vec::new(), None);
    loop {
        let state = reader.state(&target.scope, at, cursor, PAGE)?;
        objects.extend(state.objects);
        cursor = state.next;
        if cursor.is_none() {
            break;
        }
    }
    objects.sort_by(|a, b| {
        let key = |version: &Version| (version.object.namespace.clone(), version.object.name.clone());
        key(a).cmp(&key(b))
    });
    Ok(objects)
}

/// `deployment.apps/cart`.
fn name(version: &Version) -> String {
    let Gvk { group, kind, .. } = &version.object.gvk;
    let dot = if group.is_empty() { "" } else { "." };
    let text = format!("{}{dot}{group}/{}", kind.to_lowercase(), version.object.name);
    escape(&text).into_owned()
}

/// One object, or a list as kubectl makes it.
fn list(objects: &[Version], target: &Target, args: &GetArgs) -> Value {
    let mut items: Vec<Value> =
        objects.iter().map(|version| stored::shown(version, args.show_managed_fields)).collect();
    match items.as_mut_slice() {
        [one] if target.scope.name.is_some() => one.take(),
        _ => json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}),
    }
}

/// A table for each version of the kind. Times in it are seen from `at`, or now.
fn tables(
    reader: &mut Reader,
    objects: &[Version],
    args: &GetArgs,
    (at, now): (Option<Timestamp>, Timestamp),
) -> Result<String, QueryError> {
    let mut by_kind: BTreeMap<&Gvk, Vec<&Version>> = BTreeMap::new();
    for version in objects {
        by_kind.entry(&version.object.gvk).or_default().push(version);
    }
    let mut text = String::new();
    for (gvk, versions) in by_kind {
        let Some(first) = versions.first() else { continue };
        let resource = resource(reader, gvk, &first.object.resource, at)?;
        let printer = Table::of(&resource, args.output == ObjectFormat::Wide);
        let has_namespace = args.namespaces.one().is_none() && first.object.namespace.is_some();
        let row = |version: &&Version| {
            let cells = printer.row(&stored::object(version), SystemTime::from(at.unwrap_or(now)));
            let namespace = version.object.namespace.clone().filter(|_| has_namespace);
            namespace.into_iter().chain(cells).map(|cell| shown(&cell)).collect::<Vec<String>>()
        };
        let rows: Vec<Vec<String>> = versions.iter().map(row).collect();
        let namespace = has_namespace.then(|| "NAMESPACE".to_owned());
        let heads: Vec<String> =
            namespace.into_iter().chain(printer.heads().iter().map(|head| shown(head))).collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table((!args.no_headers).then_some(heads.as_slice()), &rows));
    }
    Ok(text)
}

/// The first line of a text, as kubectl shows it, made safe for a terminal.
fn shown(cell: &str) -> String {
    let first = cell.split(['\n', '\r', '\u{c}']).next().unwrap_or_default();
    let more = if first.len() < cell.len() { "..." } else { "" };
    format!("{}{more}", escape(first))
}

/// The resource whose columns a kind has: a built-in one, or as its definition declared it at that time.
fn resource(
    reader: &mut Reader,
    gvk: &Gvk,
    plural: &str,
    at: Option<Timestamp>,
) -> Result<Arc<Resource>, QueryError> {
    let is_it = |resource: &Resource| *resource.group == *gvk.group && *resource.plural == *plural;
    if let Some(found) = builtin::resources().into_iter().find(|resource| is_it(resource)) {
        return Ok(found);
    }
    let declared = match definition(reader, gvk, plural, at)? {
        Some(definition) => Resource::defined_by(&definition),
        None => Vec::new(),
    };
    let of_version = declared.into_iter().find(|resource| *resource.version == *gvk.version);
    Ok(Arc::new(of_version.unwrap_or_else(|| Resource {
        group: gvk.group.as_str().into(),
        version: gvk.version.as_str().into(),
        plural: plural.into(),
        singular: gvk.kind.to_lowercase().into(),
        kind: gvk.kind.as_str().into(),
        list_kind: format!("{}List", gvk.kind).into(),
        namespaced: true,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        selectable: Vec::new(),
        columns: Columns::BuiltIn,
        typed_items: true,
        stored_version: None,
    })))
}
