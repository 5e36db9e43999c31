//! `kubediff clusters`.

use jiff::{SignedDuration, Timestamp, Zoned};
use kubediff_history::{Overview, Reader, ask_all};
use serde::Serialize;

use super::args::{BlameFormat, ClustersArgs};
use super::error::QueryError;
use super::output::Output;
use crate::ask::period::end_of;
use crate::text::clock::date_and_time;
use crate::text::table::Table;
use crate::text::terminal::{escape, thousands};

/// Changes of this time are counted.
const RECENT: SignedDuration = SignedDuration::from_hours(1);

pub(super) fn run(args: &ClustersArgs, now: &Zoned) -> Result<(), QueryError> {
    let location = args.source.location()?;
    // What the environment chooses is for other questions.
    let is_chosen = args.source.cluster.cluster.is_some();
    let clusters = if is_chosen { args.source.clusters(&location)? } else { Vec::new() };
    let readers = Reader::several(&location, &clusters).map_err(|error| args.source.failed(error))?;
    let mut output = Output::whole();
    let mut table = Table::default();
    table.row(["CLUSTER", "UID", "LEADER", "LAST RECORD", "WATCHED UNTIL", "LAST HOUR", "OBJECTS", "SIZE"]);
    let since = now.timestamp() - RECENT;
    let mut found: Vec<_> = readers.into_iter().map(|reader| (reader, None)).collect();
    ask_all(&mut found, |(reader, found)| reader.overview(since).map(|overview| *found = Some(overview)))?;
    for found in found.into_iter().filter_map(|(_, found)| found) {
        match args.output {
            BlameFormat::Json => output.json(&Row::of(&found))?,
            BlameFormat::Text => table.row(cells(&found, now)),
        }
    }
    if args.output == BlameFormat::Text {
        output.text(&table.text())?;
    }
    Ok(output.finish()?)
}

/// A cluster, for people.
fn cells(found: &Overview, now: &Zoned) -> [String; 8] {
    let time =
        |at: Option<Timestamp>| at.map_or_else(|| "none".to_owned(), |at| date_and_time(at, now.time_zone()));
    let leader = found.leader.as_ref().map(|it| format!("{} since {}", it.name, time(Some(it.since))));
    let count = |number: u64| thousands(usize::try_from(number).unwrap_or(usize::MAX));
    let Overview { cluster, standing, changes, existing, bytes, .. } = found;
    [
        escape(cluster.name.as_deref().unwrap_or("none")).into_owned(),
        escape(&cluster.uid).into_owned(),
        escape(leader.as_deref().unwrap_or("none")).into_owned(),
        time(standing.last.map(|(_, at)| at)),
        time(end_of(standing)),
        count(*changes),
        count(*existing),
        format!("{} bytes", count(*bytes)),
    ]
}

/// A cluster, for programs.
#[derive(Serialize)]
struct Row<'a> {
    name: Option<&'a str>,
    uid: &'a str,
    leader: Option<Leader<'a>>,
    last: Option<Last>,
    watched_until: Option<Timestamp>,
    changes_in_last_hour: u64,
    objects: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Leader<'a> {
    name: &'a str,
    since: Timestamp,
}

/// The last record.
#[derive(Serialize)]
struct Last {
    number: kubediff_history::Number,
    at: Timestamp,
}

impl<'a> Row<'a> {
    fn of(found: &'a Overview) -> Self {
        Self {
            name: found.cluster.name.as_deref(),
            uid: &found.cluster.uid,
            leader: found.leader.as_ref().map(|it| Leader { name: &it.name, since: it.since }),
            last: found.standing.last.map(|(number, at)| Last { number, at }),
            watched_until: end_of(&found.standing),
            changes_in_last_hour: found.changes,
            objects: found.existing,
            bytes: found.bytes,
        }
    }
}
