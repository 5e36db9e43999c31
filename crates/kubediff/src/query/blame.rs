//! `kubediff blame`.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kubediff_history::{Blame, FieldBlame, Manager};
use serde_json::{Value, json};

use super::args::{BlameArgs, BlameFormat};
use super::error::QueryError;
use super::output::Output;
use crate::ask::{AskError, authors, full_name, names};
use crate::model::managers;
use crate::model::path::PathPattern;
use crate::show::render::painter::{CYAN, DIM, PLAIN, Painter};
use crate::text::clock::date_and_time;
use crate::text::table::Table;
use crate::text::terminal::{cut, escape, flow, say, width, wrap};

/// A value has at least this many columns in a table.
const LEAST: usize = 16;
/// No value needs more.
const MOST: usize = 80;

pub(super) fn run(args: &BlameArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let zone = now.time_zone();
    let pattern: Option<PathPattern> = args.path.as_deref().map(str::parse).transpose()?;
    let found = names::object(&mut reader, &args.target, args.namespace.as_deref(), zone)?;
    let Some(incarnation) = found.incarnations.last() else {
        return Err(AskError::Nothing(format!("the history has no {}", found.target)).into());
    };
    let blame = authors(&mut reader, incarnation, None, pattern.as_ref())?;
    let mut output = Output::paged(args.screen, now);
    let shown = match args.output {
        BlameFormat::Json => output.json(&json!({
            "object": {
                "gvk": blame.object.gvk, "namespace": blame.object.namespace, "name": blame.object.name,
                "uid": blame.object.uid,
            },
            "ended_at": blame.ended_at,
            "starts_in_the_middle": blame.starts_in_the_middle,
            "fields": blame.fields,
        })),
        BlameFormat::Text => {
            let text = preamble(&blame, found.incarnations.len(), output.columns(), zone)
                + &rows(&blame, output.columns(), zone);
            output.text(&text)
        }
    };
    output.finish()?;
    shown?;
    if let (Some(path), true) = (&args.path, blame.fields.is_empty()) {
        let large = if path.contains('#') { ", unless it is in a document of more than 256 KiB" } else { "" };
        say(&format!("{} has and had nothing at {path}{large}", found.target));
    }
    Ok(())
}

/// The lines before the fields.
fn preamble(blame: &Blame, incarnations: usize, columns: Option<usize>, zone: &TimeZone) -> String {
    let object = full_name(&blame.object);
    let mut lines = Vec::new();
    if let Some(ended) = blame.ended_at {
        lines
            .push(format!("{object} was deleted at {}; this is its last state.", date_and_time(ended, zone)));
    }
    if let Some(since) = blame.starts_in_the_middle {
        let since = date_and_time(since, zone);
        lines.push(format!(
            "The history of {object} begins at {since}, in the middle of its life: of earlier writes it knows only the managers that own fields."
        ));
    }
    if incarnations > 1 {
        let before = incarnations - 1;
        let others = if before == 1 { "one".to_owned() } else { before.to_string() };
        lines.push(format!(
            "{object} was deleted and created again: this is the last incarnation, and the history has {others} before it."
        ));
    }
    let lines = lines.iter().flat_map(|line| wrap(&escape(line), " ", columns.unwrap_or(usize::MAX)));
    lines.map(|line| line + "\n").collect()
}

/// A field in words.
struct Row {
    path: String,
    value: String,
    since: String,
    by: String,
    number: String,
    before: String,
}

impl Row {
    fn new(field: &FieldBlame, zone: &TimeZone) -> Self {
        let shown = |value: &Value| flow(value);
        Self {
            path: escape(&field.path).into_owned(),
            value: field.value.as_ref().map_or_else(|| "(removed)".to_owned(), shown),
            since: since(field.since, field.exact, zone),
            by: by(field),
            number: format!("#{}", field.number),
            before: field.before.as_ref().map_or_else(String::new, shown),
        }
    }

    fn cells(&self, values: usize) -> Vec<String> {
        let value = |text: &str| cut(text, values);
        let Self { path, since, by, number, .. } = self;
        vec![path.clone(), value(&self.value), since.clone(), by.clone(), number.clone(), value(&self.before)]
    }
}

fn since(since: Timestamp, exact: bool, zone: &TimeZone) -> String {
    let at = date_and_time(since, zone);
    if exact { at } else { format!("{at} or before") }
}

/// The manager that set or removed the field, as far as that is known.
fn by(field: &FieldBlame) -> String {
    if field.owners.is_empty() {
        return names_of(&field.managers);
    }
    let owners: Vec<Manager> =
        field.owners.iter().map(|owner| Manager { probable: false, ..owner.clone() }).collect();
    format!("unknown; the field was owned by {}", names_of(&owners))
}

/// `kubelet/status, helm`; a question mark where nobody knows.
fn names_of(managers: &[Manager]) -> String {
    let mut names: Vec<String> = Vec::new();
    for manager in managers {
        let probably = if manager.probable { "probably " } else { "" };
        let name = escape(&format!("{probably}{}", managers::name(manager))).into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "?".to_owned() } else { names.join(", ") }
}

/// A table, or two lines for each field where a table is too wide for the terminal.
fn rows(blame: &Blame, columns: Option<usize>, zone: &TimeZone) -> String {
    let rows: Vec<Row> = blame.fields.iter().map(|field| Row::new(field, zone)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let text = |values: usize| {
        let mut table = Table::default();
        table.row(["FIELD", "VALUE", "SINCE", "MANAGER", "CHANGE", "BEFORE"]);
        rows.iter().for_each(|row| table.row(row.cells(values)));
        table.text()
    };
    let Some(columns) = columns else { return text(MOST) };
    let fits = |values: &usize| text(*values).lines().all(|line| width(line) <= columns);
    match (LEAST..=MOST).rev().step_by(8).find(fits) {
        Some(values) => text(values),
        None => rows.iter().map(|row| two_lines(row, columns)).collect(),
    }
}

fn two_lines(row: &Row, columns: usize) -> String {
    let Row { path, value, since, by, number, before } = row;
    let room = columns.saturating_sub(width(path) + 2).max(LEAST);
    let value = cut(value, room);
    let before = if before.is_empty() { String::new() } else { format!("(before: {before})") };
    let mut out = Painter::default();
    out.put(CYAN, path).put(DIM, ":").spaces(1).put(PLAIN, &value);
    let room = room.saturating_sub(width(&value) + 2);
    let is_below = !before.is_empty() && room < width(&before);
    if !is_below {
        out.spaces(2).put(DIM, &before);
    }
    out.line();
    if is_below {
        out.spaces(4).put(DIM, &cut(&before, columns.saturating_sub(4))).line();
    }
    out.spaces(4)
        .put(DIM, &cut(&format!("since {since}, by {by}, {number}"), columns.saturating_sub(4)))
        .line();
    out.finish()
}
