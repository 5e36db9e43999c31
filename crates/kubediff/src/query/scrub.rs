//! `kubediff history scrub`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Zoned;
use kubediff_history::{Address, Batch, Filter, History, Page, Reader, Record, Scope as Objects, Settings};

use super::args::ScrubArgs;
use super::error::QueryError;
use super::output::Output;
use crate::ask::names::Target;
use crate::history::notes;
use crate::history::scrub::{CAUSE, Order};
use crate::model::path::PathPattern;
use crate::text::terminal::{escape, say};
use crate::{HashKey, Secrets};

/// How often the file, or the daemon's answer, is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// The record of a scrub is among so many of the latest ones.
const LATEST: usize = 1_000;

/// Said when a process has the file.
const LEFT: &str = "another process has the file: a daemon masks it now, and after any other this command does it; it need not wait for a daemon";

/// Said when another command has left an order.
const WAITS: &str = "another process has the file, and another order waits for it; this one comes after it";

pub(super) fn run(args: &ScrubArgs, now: &Zoned) -> Result<(), QueryError> {
    if args.file.to_str().is_some_and(Address::is_one) {
        return Err(QueryError::OfFiles);
    }
    let mut reader = Reader::open(&args.file)?;
    let objects = match &args.resource {
        Some(resource) => {
            let words: Vec<String> = std::iter::once(resource).chain(&args.name).cloned().collect();
            Target::read(&mut reader, &words, args.namespace.as_deref())?.scope
        }
        None => Objects {
            namespaces: args.namespace.iter().cloned().collect(),
            name: args.name.clone(),
            ..Objects::default()
        },
    };
    let cluster = reader.cluster()?;
    let noted = reader.notes()?.remove(notes::KEY);
    drop(reader);
    let key = match HashKey::beside(&args.file, noted.as_deref()).map_err(QueryError::Key)? {
        Some(key) => key,
        None if noted.is_none() => {
            HashKey::open(&HashKey::file_beside(&args.file)).map_err(QueryError::Key)?
        }
        None => return Err(QueryError::NoKey(args.file.clone())),
    };
    let secrets = Secrets::new(key);
    secrets.news();
    if let Some(file) = &args.value {
        let value = read(file).map_err(|source| QueryError::Value { file: file.clone(), source })?;
        if !secrets.learn_value(args.namespace.as_deref(), &value) {
            return Err(QueryError::ShortValue);
        }
    }
    if let Some(path) = &args.path {
        path.parse::<PathPattern>()?.may_hide()?;
        say("what comes has it in clear, unless the configuration has the path at `hide`");
    }
    let news = secrets.news();
    let prints = news.iter().filter_map(|(namespace, print)| Some((namespace.clone()?, print.clone())));
    let id = getrandom::u64().unwrap_or_else(|_| std::process::id().into());
    let order = Order { id, objects, path: args.path.clone(), prints: prints.collect() };
    let chosen = order.mask(&secrets).map_err(QueryError::Order)?;

    let (mut was_left, mut waits) = (false, false);
    let mut history = loop {
        match History::open(&args.file, &cluster, &Settings::default()) {
            Err(kubediff_history::Error::InUse { .. }) if !was_left => {
                was_left = order.leave(&args.file).map_err(QueryError::Order)?;
                match (was_left, waits) {
                    (true, _) => say(LEFT),
                    (false, false) => say(WAITS),
                    (false, true) => std::thread::sleep(LOOK),
                }
                waits = !was_left;
            }
            Err(kubediff_history::Error::InUse { .. }) => {
                if order.is_done(&args.file).map_err(QueryError::Order)? {
                    return done(&args.file);
                }
                std::thread::sleep(LOOK);
            }
            opened => break opened?,
        }
    };
    let mut scrub = history.scrub_of_all();
    while history.scrub(&mut scrub, &chosen)? {}
    let mut batch = Batch::default();
    // A daemon hides the value from its next start on, too.
    for (namespace, print) in news {
        batch.print(namespace, print);
    }
    let masked = scrub.masked();
    let is_clean = scrub.is_clean();
    batch.scrubbed(scrub, now.timestamp(), CAUSE);
    history.commit(&batch)?;
    if was_left && !order.is_done(&args.file).map_err(QueryError::Order)? {
        Order::done(&args.file, None, None).map_err(QueryError::Order)?;
    }
    // A file that an older kubediff has written may have it in pages that are free.
    if let Err(error) = history.compact() {
        say(&format!("free pages of the file may still have what was masked: {error}"));
    }
    if !is_clean {
        say("a reader has the log beside the file; what was masked is in it until that one ends");
    }
    let name = escape(&args.file.display().to_string()).into_owned();
    let mut output = Output::whole();
    output.text(&format!("{} masked in {name}\n", versions(masked)))?;
    output.finish()?;
    not_reached(&args.file);
    Ok(())
}

/// Says what the daemon has done.
fn done(file: &Path) -> Result<(), QueryError> {
    let filter = Filter { gaps: true, ..Filter::default() };
    let newest = Reader::open(file)?.records(&filter, &Page::newest(LATEST))?;
    let masked = newest.records.into_iter().find_map(|record| match record {
        Record::Scrubbed(scrubbed) if scrubbed.cause == CAUSE => Some(scrubbed.masked),
        _ => None,
    });
    let masked = masked.map_or_else(String::new, |masked| format!(": {} masked", versions(masked)));
    let mut output = Output::whole();
    output.text(&format!("the daemon is done{masked}\n"))?;
    output.finish()?;
    not_reached(file);
    Ok(())
}

/// `1 version was`, `2 versions were`.
fn versions(count: u64) -> String {
    if count == 1 { "1 version was".to_owned() } else { format!("{count} versions were") }
}

fn not_reached(file: &Path) {
    let copies = copies(file);
    if !copies.is_empty() {
        say(&format!("these files beside it are not reached: {}", copies.join(", ")));
    }
    say(
        "backups, recordings, names of managers, and what sinks have received are not reached: remove the value from them, and rotate it",
    );
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut value = Vec::new();
    match file == Path::new("-") {
        true => std::io::stdin().lock().read_to_end(&mut value),
        false => std::fs::File::open(file)?.read_to_end(&mut value),
    }?;
    Ok(value)
}

/// Files beside the history whose names begin as its own: backups before a migration, and copies.
fn copies(file: &Path) -> Vec<String> {
    const OWN: &[&str] = &["", "-wal", "-shm", "-lock", ".key"];
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let of = |file: PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(own) = of(file.to_owned()) else { return Vec::new() };
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut copies: Vec<String> = beside
        .filter_map(|entry| of(entry.path()))
        .filter(|name| name.starts_with(&stem))
        .filter(|name| {
            !name.strip_prefix(&own).is_some_and(|end| OWN.contains(&end) || end.starts_with("-scrub"))
        })
        .collect();
    copies.sort_unstable();
    copies
}
