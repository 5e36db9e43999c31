//! `kubediff log`.

mod folded;

use std::collections::BTreeMap;

use jiff::Zoned;
use kubediff_history::{ChangeRecord, Filter, Number, Order, Page, Reader, Record, Verb};
use serde::Serialize;

use super::args::{Fold, Format, LogArgs, Sort};
use super::error::QueryError;
use super::names::Target;
use super::output::Output;
use super::period::{Period, covered, events_removed, unwatched};
use super::stored;
use crate::model::path::{Path, PathPattern};
use crate::story::Story;
use crate::text::terminal::say;
use crate::{Change, Gap};
use folded::{Shown, Stories};

/// Records that are read at once.
const PAGE: usize = 500;

pub(super) fn run(args: &LogArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let period = Period::read(args.since.as_deref(), args.until.as_deref(), now)?;
    let target = Target::read(&mut reader, &args.target, args.namespaces.one())?;
    let path: Option<PathPattern> = args.path.as_deref().map(str::parse).transpose()?;
    let paths = match &path {
        Some(pattern) => paths_of(&mut reader, pattern)?,
        None => Vec::new(),
    };
    let filter = Filter {
        // Where changes are picked by what they are, a gap says nothing.
        gaps: args.manager.is_none() && args.path.is_none() && args.change.is_empty(),
        scope: target.scope.clone(),
        from: period.from,
        to: period.to,
        manager: args.manager.clone(),
        paths,
        verbs: args.change.iter().map(|sort| verb(*sort)).collect(),
        events: args.events || target.is_of_events(),
    };
    let cluster = reader.cluster()?;
    let mut log = Log {
        cluster: cluster.name.unwrap_or(cluster.uid),
        format: if args.oneline { Format::Oneline } else { args.output },
        patch: args.patch,
        path,
        output: Output::paged(args.screen, now),
        gap: None,
        stories: None,
    };
    if let Some(story) = args.story {
        return story_of(&mut reader, Number(story), args, log, now);
    }
    let folds = match args.fold {
        Fold::Auto => {
            log.output.columns().is_some() && log.format == Format::Text && !args.patch && filter.gaps
        }
        Fold::Always => true,
        Fold::Never => false,
    };
    if folds {
        log.stories = Some(Stories::read(&mut reader, now.timestamp())?);
    }
    let written = records(&mut reader, &filter, args, &mut log).and_then(|shown| {
        log.end()?;
        Ok(shown)
    });
    log.output.finish()?;
    let shown = written?;
    if shown == 0 && args.limit != Some(0) {
        let mut which = String::new();
        for (word, value) in [("by manager", &args.manager), ("at path", &args.path)] {
            which.extend(value.as_ref().map(|value| format!(" {word} {value}")));
        }
        let (of, when) = (target.of_it(), period.words(now.time_zone()));
        say(&format!("no change{of}{which}{when}; {}", covered(&mut reader, now.time_zone())?));
        if args.path.is_some() && reader.paths()?.iter().any(|path| path.contains("<hmac:")) {
            say("names that Secrets have as values are hidden, and no path finds them");
        }
    }
    if filter.events {
        events_removed(&mut reader, period.from, now.time_zone())?.iter().for_each(|doubt| say(doubt));
    }
    let at = period.to.unwrap_or_else(|| now.timestamp());
    unwatched(&mut reader, &target.scope, at, now.time_zone())?.iter().for_each(|doubt| say(doubt));
    Ok(())
}

/// The paths of changes that the pattern covers, or that lead to what it names; the pattern itself, which finds nothing, if there are none.
fn paths_of(reader: &mut Reader, pattern: &PathPattern) -> Result<Vec<String>, QueryError> {
    let mut paths = reader.paths()?;
    paths.retain(|path| {
        path.parse().is_ok_and(|path: Path| pattern.covers(&path) || pattern.below(&path).is_some())
    });
    Ok(if paths.is_empty() { vec![pattern.to_string()] } else { paths })
}

/// Shows the records, and returns how many there are.
fn records(reader: &mut Reader, filter: &Filter, args: &LogArgs, log: &mut Log) -> Result<usize, QueryError> {
    let order = if args.reverse { Order::OldestFirst } else { Order::NewestFirst };
    let most = args.limit.unwrap_or(usize::MAX);
    let mut shown = 0;
    let mut page = Page { order, after: None, limit: PAGE };
    // The last gap is shown with all its resources.
    while shown < most || log.gap.is_some() {
        page.limit = if log.gap.is_some() { PAGE } else { PAGE.min(most - shown) };
        let found = reader.records(filter, &page)?;
        let members = match &log.stories {
            Some(stories) => stories.of(reader, &found.records)?,
            None => BTreeMap::new(),
        };
        for record in found.records {
            page = page.after(record.number());
            if !log.wants(&record) {
                continue;
            }
            let told = match &mut log.stories {
                Some(stories) => stories.shown(reader, members.get(&record.number()).copied())?,
                None => Shown::Alone,
            };
            match told {
                Shown::Alone => {}
                Shown::Already => continue,
                Shown::Story(_) if shown == most => return Ok(shown),
                Shown::Story(told) => {
                    log.story(&told.0, told.1.as_ref())?;
                    shown += 1;
                    continue;
                }
            }
            let is_more = !log.has_begun(&record);
            if is_more && shown == most {
                return Ok(shown);
            }
            log.record(reader, record)?;
            shown += usize::from(is_more);
        }
        if !found.more {
            break;
        }
    }
    Ok(shown)
}

/// Shows one story, and its records.
fn story_of(
    reader: &mut Reader,
    id: Number,
    args: &LogArgs,
    mut log: Log,
    now: &Zoned,
) -> Result<(), QueryError> {
    let stories = Stories::read(reader, now.timestamp())?;
    let Some(story) = stories.story(reader, id)? else {
        return Err(QueryError::Nothing(format!(
            "there is no story {id}: `kubediff log --fold` shows the numbers of stories"
        )));
    };
    let mut records = stories.records(reader, id)?;
    let root = records.iter().find_map(|it| match it {
        Record::Change(change) if change.number == Some(id) => Some((**change).clone()),
        _ => None,
    });
    if !args.reverse {
        records.reverse();
    }
    let mut write = || {
        log.story(&story, root.as_ref())?;
        for record in records.drain(..).take(args.limit.unwrap_or(usize::MAX)) {
            log.record(reader, record)?;
        }
        Ok(())
    };
    let written = write();
    log.output.finish()?;
    written
}

/// A story as JSON.
#[derive(Serialize)]
struct Told<'a> {
    story: &'a Story,
}

/// The output, record by record.
struct Log {
    cluster: String,
    format: Format,
    patch: bool,
    path: Option<PathPattern>,
    output: Output,
    /// Of one outage there is a record for each resource. They are shown as one.
    gap: Option<Gap>,
    /// Where records are folded.
    stories: Option<Stories>,
}

impl Log {
    /// A change above the path is one of it if its values have the path: a whole map may have come, with this key or without.
    fn wants(&self, record: &Record) -> bool {
        let (Some(pattern), Record::Change(record)) = (&self.path, record) else { return true };
        let is_at = |path: &String| path.parse().is_ok_and(|path: Path| pattern.covers(&path));
        record.paths.iter().any(is_at)
            || Change::of_record((**record).clone())
                .is_ok_and(|change| change.diff.iter().any(|difference| difference.is_at(pattern)))
    }

    fn story(&mut self, story: &Story, root: Option<&ChangeRecord>) -> Result<(), QueryError> {
        self.end()?;
        if self.format == Format::Json {
            return Ok(self.output.json(&Told { story })?);
        }
        let text = self.output.renderer.story(story, root, self.format == Format::Oneline);
        Ok(self.output.text(&text)?)
    }

    fn record(&mut self, reader: &mut Reader, record: Record) -> Result<(), QueryError> {
        match (self.format, record) {
            (_, Record::Gap(gap)) => self.gap(gap),
            (format, Record::Scrubbed(scrubbed)) => {
                self.end()?;
                match format {
                    Format::Json => Ok(self.output.json(&Record::Scrubbed(scrubbed))?),
                    _ => {
                        let text = self.output.renderer.scrubbed(&scrubbed);
                        Ok(self.output.text(&text)?)
                    }
                }
            }
            (format, Record::Event(event)) => {
                self.end()?;
                match format {
                    Format::Json => Ok(self.output.json(&Record::Event(event))?),
                    _ => {
                        let text = self.output.renderer.event(&event, format == Format::Oneline);
                        Ok(self.output.text(&text)?)
                    }
                }
            }
            (format, Record::Change(record)) => {
                self.end()?;
                match format {
                    Format::Json => Ok(self.output.json(&record)?),
                    Format::Text | Format::Oneline => self.change(reader, *record),
                }
            }
        }
    }

    fn change(&mut self, reader: &mut Reader, record: ChangeRecord) -> Result<(), QueryError> {
        let number = record.number.unwrap_or_default();
        // All of a history is of one cluster.
        let mut change = match Change::of_record(ChangeRecord { cluster: None, ..record }) {
            Ok(change) => change,
            Err(error) => {
                say(&error.to_string());
                return Ok(());
            }
        };
        let text = match self.format {
            Format::Oneline => self.output.renderer.line(&change, self.output.columns()),
            _ if !self.patch => self.output.renderer.brief(&change),
            _ => {
                if matches!(change.verb, Verb::Added | Verb::Deleted) {
                    change.new = reader.version_of(number)?.as_ref().map(stored::object);
                }
                self.output.renderer.text(&change)
            }
        };
        Ok(self.output.text(&text)?)
    }

    /// Whether it is of the outage that will be shown next.
    fn has_begun(&self, record: &Record) -> bool {
        let Record::Gap(gap) = record else { return false };
        self.gap.as_ref().is_some_and(|known| is_same_outage(known, &outage(gap.clone())))
    }

    fn gap(&mut self, gap: kubediff_history::Gap) -> Result<(), QueryError> {
        let next = outage(gap);
        match &mut self.gap {
            Some(known) if is_same_outage(known, &next) => known.resources.extend(next.resources),
            _ => {
                self.end()?;
                self.gap = Some(next);
            }
        }
        Ok(())
    }

    /// Shows the gap that might have gone on.
    fn end(&mut self) -> Result<(), QueryError> {
        if let Some(mut gap) = self.gap.take() {
            gap.resources.sort_unstable();
            if self.format == Format::Json {
                gap.cluster = Some(self.cluster.clone());
                return Ok(self.output.json(&gap)?);
            }
            let text = self.output.renderer.gap(&gap, self.format == Format::Oneline);
            self.output.text(&text)?;
        }
        Ok(())
    }
}

fn outage(gap: kubediff_history::Gap) -> Gap {
    Gap::since(gap.from, gap.resource.into_iter().collect(), gap.reason).until(gap.to)
}

/// A gap without resources is one of all of them.
fn is_same_outage(a: &Gap, b: &Gap) -> bool {
    (a.from, a.to, &a.cause, a.resources.is_empty()) == (b.from, b.to, &b.cause, b.resources.is_empty())
}

fn verb(sort: Sort) -> Verb {
    match sort {
        Sort::Added => Verb::Added,
        Sort::Updated => Verb::Updated,
        Sort::Deleted => Verb::Deleted,
        Sort::Recreated => Verb::Recreated,
    }
}
