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
use super::output::Output;
use crate::ask::instant::instant;
use crate::ask::names::Target;
use crate::ask::period::{covered, doubts, nothing};
use crate::ask::{self, AskError, resource, shown as manifest};
use crate::show::render::{json_pretty, yaml};
use crate::text::clock::date_and_time;
use crate::text::table::Table;
use crate::text::terminal::{escape, say};

/// Objects that are read at once.
const PAGE: usize = 500;

pub(super) fn run(args: &GetArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let zone = now.time_zone();
    let at = args.at.as_deref().map(|text| instant(text, now)).transpose()?;
    if at.is_some_and(|at| at > now.timestamp()) {
        return Err(AskError::Period("--at is in the future: nothing is known of it".to_owned()).into());
    }
    let target = Target::read(&mut reader, &args.target, args.namespaces.one())?;
    // As kubectl does: one kind after the other.
    let mut objects = Vec::new();
    for kind in &target.scope.kinds {
        let scope = Scope { kinds: vec![kind.clone()], ..target.scope.clone() };
        objects.push(reader.present(&scope, at)?);
    }
    let count: usize = objects.iter().map(Present::len).sum();
    let when = at.map(|at| format!(" at {}", date_and_time(at, zone))).unwrap_or_default();
    if count == 0 && target.scope.name.is_some() {
        return Err(absent(&mut reader, &target, at, zone).into());
    }
    let mut answer = Answer { reader: &mut reader, objects: &objects, at, output: Output::whole() };
    match args.output {
        ObjectFormat::Table | ObjectFormat::Wide => answer.tables(args, now.timestamp())?,
        ObjectFormat::Name => answer.names()?,
        ObjectFormat::Yaml | ObjectFormat::Json => {
            answer.manifests(args, count, target.scope.name.is_some())?;
        }
    }
    answer.output.finish()?;
    if count == 0 {
        say(&format!("no {target} found{when}; {}", covered(&mut reader, zone)?));
    }
    let at = at.unwrap_or_else(|| now.timestamp());
    doubts(&mut reader, &target.scope, at, zone)?.iter().for_each(|doubt| say(doubt));
    Ok(())
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
    reader: &'a mut Reader,
    /// The objects of each kind.
    objects: &'a [Present],
    at: Option<Timestamp>,
    output: Output,
}

impl Answer<'_> {
    /// Gives each object, with the place of its kind among those that were asked for.
    fn each(
        &mut self,
        mut take: impl FnMut(&mut Reader, &mut Output, usize, &Version) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        for (place, objects) in self.objects.iter().enumerate() {
            for start in (0..objects.len()).step_by(PAGE) {
                for version in self.reader.states(objects, start..objects.len().min(start + PAGE))? {
                    take(self.reader, &mut self.output, place, &version)?;
                }
            }
        }
        Ok(())
    }

    fn names(&mut self) -> Result<(), QueryError> {
        self.each(|_, output, _, version| Ok(output.text(&(name(version) + "\n"))?))
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
        let (at, mut by_kind, has_kinds) = (self.at, BTreeMap::new(), self.objects.len() > 1);
        self.each(|reader, _, place, version| {
            let Version { object, .. } = version;
            let (printer, rows) = match by_kind.entry((place, object.gvk.clone())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let resource = resource(reader, &object.gvk, &object.resource, at)?;
                    let printer = Printer::of(&resource, args.output == ObjectFormat::Wide);
                    let mut rows = Table::default();
                    if !args.no_headers {
                        let namespace = has_namespace(args, object).then(|| "NAMESPACE".to_owned());
                        rows.row(namespace.into_iter().chain(printer.heads().iter().map(|head| shown(head))));
                    }
                    new.insert((printer, rows))
                }
            };
            let mut cells = printer.row(&ask::object(version), SystemTime::from(at.unwrap_or(now)));
            // As kubectl does, so that each name can be typed again.
            if let Some(cell) = cells.first_mut().filter(|_| has_kinds) {
                *cell = name(version);
            }
            let namespace = object.namespace.clone().filter(|_| has_namespace(args, object));
            rows.row(namespace.into_iter().chain(cells).map(|cell| shown(&cell)));
            Ok(())
        })?;
        for (at, (_, rows)) in by_kind.values().enumerate() {
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
