//! `kubediff history`.

use std::path::Path;

use jiff::Zoned;
use jiff::tz::TimeZone;
use kubediff_history::{History, Location, Reader, migrate_database};
use serde_json::json;

use super::args::{BlameFormat, Maintain};
use super::error::QueryError;
use super::output::Output;
use crate::ask::period::end;
use crate::text::clock::date_and_time;
use crate::text::table::Table;
use crate::text::terminal::{escape, thousands};

pub(super) fn run(args: &Maintain, now: &Zoned) -> Result<(), QueryError> {
    let mut output = Output::whole();
    match args {
        Maintain::Check { source } => {
            let checked = source.open()?.check()?;
            for problem in &checked.problems {
                output.text(&format!("{}\n", escape(problem)))?;
            }
            let (versions, objects, gaps) = (checked.versions, checked.objects, checked.gaps);
            output.text(&format!("{versions} versions of {objects} objects, {gaps} gaps\n"))?;
            match checked.problems.len() {
                0 => output.text("The history is sound.\n")?,
                count => {
                    output.finish()?;
                    return Err(QueryError::Unsound(count));
                }
            }
        }
        Maintain::Backup { to, source } => {
            source.open()?.back_up(to)?;
            let (to, from) = (to.display().to_string(), source.location()?.to_string());
            output.text(&format!("{} is a copy of {}\n", escape(&to), escape(&from)))?;
        }
        Maintain::Migrate { history } => match Location::parse(history)? {
            Location::Database(address) => output.text(match migrate_database(&address)? {
                true => "the database has the tables of histories now, and the roles kubediff_writer and kubediff_reader\n",
                false => "the database has the tables of this program already\n",
            })?,
            Location::File(file) => output.text(&migrated(&file)?)?,
        },
        // They have files of their own.
        Maintain::Archive(_) | Maintain::Scrub(_) => {}
        Maintain::Stats { output: format, source } => {
            stats(&mut source.open()?, *format, &mut output, now.time_zone())?;
        }
    }
    Ok(output.finish()?)
}

/// Migrates a file, and says what became of it.
fn migrated(file: &Path) -> Result<String, QueryError> {
    let name = escape(&file.display().to_string()).into_owned();
    Ok(match History::migrate(file, None, |_| {})? {
        Some(backup) => {
            let backup = backup.display().to_string();
            format!("{name} has the format of this program now; {} is as it was before\n", escape(&backup))
        }
        None => format!("{name} has the format of this program already\n"),
    })
}

fn stats(
    reader: &mut Reader,
    format: BlameFormat,
    output: &mut Output,
    zone: &TimeZone,
) -> Result<(), QueryError> {
    let cluster = reader.cluster()?;
    let size = reader.size()?;
    let oldest = reader.complete_since()?;
    let newest = reader.last()?.map(|(_, at)| at);
    let watched_until = end(reader)?;
    let mut sinks = Vec::new();
    for sink in reader.sinks()? {
        let behind = reader.count_after(sink.position)?;
        sinks.push((sink, behind));
    }
    if format == BlameFormat::Json {
        let sinks: Vec<_> = sinks
            .iter()
            .map(|(sink, behind)| {
                json!({"name": sink.name, "position": sink.position, "behind": behind, "lost": sink.lost, "dead": sink.dead})
            })
            .collect();
        return Ok(output.json(&json!({
            "cluster": {"name": cluster.name, "uid": cluster.uid}, "bytes": size.bytes, "changes": size.changes, "events": size.events,
            "gaps": size.gaps, "objects": size.objects, "existing": size.existing, "oldest": oldest, "newest": newest, "watched_until": watched_until,
            "sinks": sinks,
        }))?);
    }
    let number = |number: u64| thousands(usize::try_from(number).unwrap_or(usize::MAX));
    let time =
        |at: Option<jiff::Timestamp>| at.map_or_else(|| "none".to_owned(), |at| date_and_time(at, zone));
    let name = cluster.name.map_or_else(String::new, |name| format!("{name} "));
    let rows = [
        ("cluster", format!("{name}({})", cluster.uid)),
        ("size", format!("{} bytes", number(size.bytes))),
        ("changes", number(size.changes)),
        ("events", number(size.events)),
        ("gaps", number(size.gaps)),
        ("objects", format!("{}, of which {} exist", number(size.objects), number(size.existing))),
        ("oldest", time(oldest)),
        ("newest", time(newest)),
        ("watched until", time(watched_until)),
    ];
    let mut table = Table::default();
    rows.iter().for_each(|(name, value)| table.row([*name, &*escape(value)]));
    output.text(&table.text())?;
    if !sinks.is_empty() {
        let mut table = Table::default();
        table.row(["SINK", "POSITION", "BEHIND", "LOST", "DEAD"]);
        for (sink, behind) in &sinks {
            let name = escape(&sink.name).into_owned();
            let position = format!("#{}", sink.position);
            table.row([name, position, number(*behind), number(sink.lost), number(sink.dead)]);
        }
        output.text("\n")?;
        output.text(&table.text())?;
    }
    Ok(())
}
