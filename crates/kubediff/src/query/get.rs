//! `kubediff get`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kube_table::Table as Printer;
use kubediff_history::{Gvk, ObjectId, Present, Reader, Scope, Version};

use super::args::{GetArgs, ObjectFormat};
use super::error::QueryError;
use super::fleet::{Fleet, Member, Remarks};
use super::output::Output;
use crate::ask::instant::instant;
use crate::ask::names::Target;
use crate::ask::period::{covered, doubts, nothing};
use crate::ask::{self, AskError, resource, shown as manifest};
use crate::show::render::{json_pretty, yaml};
use crate::text::clock::date_and_time;
use crate::text::table::Table;
use crate::text::terminal::escape;

/// Objects that are read at once.
const PAGE: usize = 500;

pub(super) fn run(args: &GetArgs, now: &Zoned) -> Result<(), QueryError> {
    let zone = now.time_zone();
    let at = args.at.as_deref().map(|text| instant(text, now)).transpose()?;
    if at.is_some_and(|at| at > now.timestamp()) {
        return Err(AskError::Period("--at is in the future: nothing is known of it".to_owned()).into());
    }
    let fleet = Fleet::open(&args.source)?;
    let is_several = fleet.is_several;
    match args.output {
        ObjectFormat::Yaml if is_several => return Err(QueryError::Unmarked("yaml")),
        ObjectFormat::Json if is_several => return Err(QueryError::Unmarked("json")),
        _ => {}
    }
    let mut remarks = Remarks::new(is_several);
    let mut parts = Vec::new();
    for (mut member, target) in fleet.targets(&args.target, args.namespaces.one(), &mut remarks)? {
        // As kubectl does: one kind after the other.
        let mut objects = Vec::new();
        for kind in &target.scope.kinds {
            let scope = Scope { kinds: vec![kind.clone()], ..target.scope.clone() };
            objects.push(member.reader.present(&scope, at)?);
        }
        parts.push(Part { member, target, objects });
    }
    let count: usize = parts.iter().flat_map(|part| &part.objects).map(Present::len).sum();
    let when = at.map(|at| format!(" at {}", date_and_time(at, zone))).unwrap_or_default();
    if let (0, [Part { member, target, .. }, others @ ..]) = (count, parts.as_mut_slice())
        && target.scope.name.is_some()
    {
        return Err(match others {
            [] => absent(&mut member.reader, target, at, zone),
            _ => AskError::Nothing(format!("no cluster has {target}{when}")),
        }
        .into());
    }
    let has_name = parts.iter().any(|part| part.target.scope.name.is_some());
    let mut answer = Answer { parts: &mut parts, is_several, at, output: Output::whole() };
    match args.output {
        ObjectFormat::Table | ObjectFormat::Wide => answer.tables(args, now.timestamp())?,
        ObjectFormat::Name => answer.names()?,
        ObjectFormat::Yaml | ObjectFormat::Json => answer.manifests(args, count, has_name)?,
    }
    answer.output.finish()?;
    let at = at.unwrap_or_else(|| now.timestamp());
    for Part { member, target, objects } in &mut parts {
        if objects.iter().all(Present::is_empty) {
            let covered = covered(&mut member.reader, zone)?;
            remarks.add(&member.cluster, format!("no {target} found{when}; {covered}"));
        }
        for doubt in doubts(&mut member.reader, &target.scope, at, zone)? {
            remarks.add(&member.cluster, doubt);
        }
    }
    remarks.say();
    Ok(())
}

/// A cluster's part of the answer.
struct Part {
    member: Member,
    target: Target,
    /// The objects of each kind.
    objects: Vec<Present>,
}

/// Why an object is not there, as far as the history knows.
fn absent(reader: &mut Reader, target: &Target, at: Option<Timestamp>, zone: &TimeZone) -> AskError {
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

/// `deployment.apps/cart`.
fn name(version: &Version) -> String {
    let Gvk { group, kind, .. } = &version.object.gvk;
    let dot = if group.is_empty() { "" } else { "." };
    let text = format!("{}{dot}{group}/{}", kind.to_lowercase(), version.object.name);
    escape(&text).into_owned()
}

/// An answer on its way. It takes its objects some at a time: all of them may be more than the memory.
struct Answer<'a> {
    parts: &'a mut [Part],
    /// Whether lines say of which cluster they are.
    is_several: bool,
    at: Option<Timestamp>,
    output: Output,
}

impl Answer<'_> {
    /// Gives each object, with the place of its kind among those that were asked for.
    fn each(
        &mut self,
        mut take: impl FnMut(&mut Member, &mut Output, usize, &Version) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let kinds = self.parts.iter().map(|part| part.objects.len()).max().unwrap_or_default();
        for place in 0..kinds {
            for Part { member, objects, .. } in &mut *self.parts {
                let Some(objects) = objects.get(place) else { continue };
                for start in (0..objects.len()).step_by(PAGE) {
                    for version in member.reader.states(objects, start..objects.len().min(start + PAGE))? {
                        take(member, &mut self.output, place, &version)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn names(&mut self) -> Result<(), QueryError> {
        let is_several = self.is_several;
        self.each(|member, output, _, version| {
            let of = if is_several { format!("{} ", escape(&member.cluster)) } else { String::new() };
            Ok(output.text(&format!("{of}{}\n", name(version)))?)
        })
    }

    /// One object, or a list as kubectl makes it.
    fn manifests(&mut self, args: &GetArgs, count: usize, has_name: bool) -> Result<(), QueryError> {
        let text = |version: &Version| {
            let object = manifest(version, args.show_managed_fields);
            if args.output == ObjectFormat::Yaml { yaml(&object) } else { json_pretty(&object) }
        };
        if has_name && count == 1 {
            return self.each(|_, output, _, version| Ok(output.text(&text(version)?)?));
        }
        let Frame { head, item, further, between, end, none } =
            if args.output == ObjectFormat::Yaml { YAML } else { JSON };
        if count == 0 {
            return Ok(self.output.text(none)?);
        }
        self.output.text(head)?;
        let mut is_first = true;
        self.each(|_, output, _, version| {
            if !std::mem::take(&mut is_first) {
                output.text(between)?;
            }
            for (at, line) in text(version)?.lines().enumerate() {
                // The end of a text in YAML may be empty lines.
                let before = if at == 0 { item } else { further };
                output.text(if line.is_empty() { "\n" } else { before })?;
                output.text(line)?;
            }
            Ok(())
        })?;
        Ok(self.output.text(end)?)
    }

    /// A table for each version of each kind. Times in it are seen from then, or from now.
    fn tables(&mut self, args: &GetArgs, now: Timestamp) -> Result<(), QueryError> {
        let (at, is_several) = (self.at, self.is_several);
        let has_kinds = self.parts.iter().any(|part| part.objects.len() > 1);
        let before = |cluster: &str, namespace: Option<&str>| {
            let cluster = Some(shown(cluster)).filter(|_| is_several);
            cluster.into_iter().chain(namespace.map(shown))
        };
        // Two clusters may have a custom kind with other columns.
        let (mut printers, mut tables) = (BTreeMap::new(), Vec::new());
        self.each(|member, _, place, version| {
            let Version { object, .. } = version;
            let (printer, table) = match printers.entry((place, object.gvk.clone(), member.cluster.clone())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let resource = resource(&mut member.reader, &object.gvk, &object.resource, at)?;
                    let printer = Printer::of(&resource, args.output == ObjectFormat::Wide);
                    let heads: Vec<String> = printer.heads().iter().map(|head| shown(head)).collect();
                    let of = (place, object.gvk.clone(), heads);
                    let known = tables.iter().position(|(known, _)| *known == of);
                    let table = known.unwrap_or_else(|| {
                        let mut rows = Table::default();
                        if !args.no_headers {
                            let namespace = has_namespace(args, object).then_some("NAMESPACE");
                            rows.row(before("CLUSTER", namespace).chain(of.2.iter().cloned()));
                        }
                        tables.push((of, rows));
                        tables.len() - 1
                    });
                    new.insert((printer, table))
                }
            };
            let Some((_, rows)) = tables.get_mut(*table) else { return Ok(()) };
            let mut cells = printer.row(&ask::object(version), SystemTime::from(at.unwrap_or(now)));
            // As kubectl does, so that each name can be typed again.
            if let Some(cell) = cells.first_mut().filter(|_| has_kinds) {
                *cell = name(version);
            }
            let namespace = object.namespace.as_deref().filter(|_| has_namespace(args, object));
            rows.row(before(&member.cluster, namespace).chain(cells.iter().map(|cell| shown(cell))));
            Ok(())
        })?;
        tables.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (at, (_, rows)) in tables.iter().enumerate() {
            if at > 0 {
                self.output.text("\n")?;
            }
            for line in rows.lines() {
                self.output.text(&line)?;
            }
        }
        Ok(())
    }
}

/// The texts around the items of a list: before all, before the first and each further line of one, between two, after all; and a list
/// without any.
struct Frame {
    head: &'static str,
    item: &'static str,
    further: &'static str,
    between: &'static str,
    end: &'static str,
    none: &'static str,
}

const YAML: Frame = Frame {
    head: "apiVersion: v1\nitems:\n",
    item: "- ",
    further: "\n  ",
    between: "\n",
    end: "\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
    none: "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
};

const JSON: Frame = Frame {
    head: "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n",
    item: "    ",
    further: "\n    ",
    between: ",\n",
    end: "\n  ],\n  \"kind\": \"List\",\n  \"metadata\": {\n    \"resourceVersion\": \"\"\n  }\n}\n",
    none: "{\n  \"apiVersion\": \"v1\",\n  \"items\": [],\n  \"kind\": \"List\",\n  \"metadata\": {\n    \"resourceVersion\": \"\"\n  }\n}\n",
};

/// Whether the rows of a table name namespaces.
fn has_namespace(args: &GetArgs, object: &ObjectId) -> bool {
    args.namespaces.one().is_none() && object.namespace.is_some()
}

/// The first line of a text, as kubectl shows it, made safe for a terminal.
fn shown(cell: &str) -> String {
    let first = cell.split(['\n', '\r', '\u{c}']).next().unwrap_or_default();
    let more = if first.len() < cell.len() { "..." } else { "" };
    format!("{}{more}", escape(first))
}
