//! `kubediff history archive`: days of a history in a database, as files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kubediff_history::{Cluster, Location, Reader};

use super::args::ArchiveArgs;
use super::error::QueryError;
use super::output::Output;
use crate::history::notes::WATCHED_UNTIL;
use crate::text::terminal::escape;

pub(super) fn run(args: &ArchiveArgs, now: &Zoned) -> Result<(), QueryError> {
    let location = args.source.location()?;
    if let Location::File(_) = location {
        return Err(QueryError::OfDatabases);
    }
    if !args.to.is_dir() {
        return Err(QueryError::NoFolder(args.to.clone()));
    }
    // What is stored is copied as it is: the prints of values that became known later are in the copy, too.
    let clusters = args.source.clusters(&location)?;
    let readers = match (args.source.all_clusters, clusters.as_slice()) {
        (false, [] | [_]) => vec![Reader::at(&location, clusters.first().map(String::as_str))?],
        _ => Reader::several(&location, &clusters)?,
    };
    let mut output = Output::whole();
    let mut is_none = true;
    for mut reader in readers {
        let cluster = reader.cluster()?;
        let days = match (args.day, args.older_than) {
            (Some(day), _) => vec![day],
            (None, age) => {
                let end = now.timestamp().checked_sub(age.map_or(std::time::Duration::ZERO, |age| age.0));
                let end = end.unwrap_or(Timestamp::MIN).to_zoned(TimeZone::UTC).date();
                reader.days()?.into_iter().filter(|day| *day < end).collect()
            }
        };
        is_none &= days.is_empty();
        for day in days {
            let file = file(&args.to, &cluster, day);
            let name = file.display().to_string();
            let name = escape(&name);
            if args.day.is_none() && file.exists() {
                // Two names may differ by characters that no file name has, or one may be of another cluster now.
                if Reader::open(&file)?.cluster()?.uid != cluster.uid {
                    return Err(QueryError::OtherFile(file));
                }
                output.text(&format!("{name} is there already\n"))?;
                continue;
            }
            reader.archive(day, &file, ended)?;
            let size = Reader::open(&file)?.size()?;
            output.text(&format!(
                "{name} has the {} changes and {} gaps of {day}, with {} objects\n",
                size.changes, size.gaps, size.objects
            ))?;
        }
    }
    if is_none {
        output.text("no day of the history is so old\n")?;
    }
    Ok(output.finish()?)
}

/// A history that ends was watched until its end.
fn ended(notes: &mut BTreeMap<String, String>, until: Option<Timestamp>) {
    let watched: Option<Timestamp> = notes.get(WATCHED_UNTIL).and_then(|time| time.parse().ok());
    if let Some(until) = until.filter(|until| watched.is_some_and(|watched| *until < watched)) {
        notes.insert(WATCHED_UNTIL.to_owned(), until.to_string());
    }
}

/// The file of a day. Names of clusters may have characters that no file name has.
fn file(folder: &Path, cluster: &Cluster, day: Date) -> PathBuf {
    let is_plain = |at: usize, c: char| c.is_alphanumeric() || "-_".contains(c) || c == '.' && at > 0;
    let name = cluster.name.as_ref().unwrap_or(&cluster.uid);
    let name: String =
        name.chars().enumerate().map(|(at, c)| if is_plain(at, c) { c } else { '_' }).collect();
    folder.join(format!("{name}-{day}.db"))
}
