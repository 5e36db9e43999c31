//! `kubediff log`.

use jiff::Zoned;
use kubediff_history::{ChangeRecord, Number, Order, Reader, Record, Verb};
use serde::Serialize;

use super::args::{Fold, Format, LogArgs, Sort};
use super::error::QueryError;
use super::output::Output;
use crate::ask::log::{Item, Question, Step, Walk};
use crate::ask::names::Target;
use crate::ask::period::{Period, covered, events_removed, unwatched};
use crate::ask::{AskError, Stories, object};
use crate::story::Story;
use crate::text::terminal::say;
use crate::{Change, Gap};

pub(super) fn run(args: &LogArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let question = Question {
        period: Period::read(args.since.as_deref(), args.until.as_deref(), now)?,
        target: Target::read(&mut reader, &args.target, args.namespaces.one())?,
        manager: args.manager.clone(),
        path: args.path.as_deref().map(str::parse).transpose()?,
        verbs: args.change.iter().map(|sort| verb(*sort)).collect(),
        events: args.events,
    };
    let cluster = reader.cluster()?;
    let mut log = Log {
        cluster: cluster.name.unwrap_or(cluster.uid),
        format: if args.oneline { Format::Oneline } else { args.output },
        patch: args.patch,
        output: Output::paged(args.screen, now),
    };
    if let Some(story) = args.story {
        return story_of(&mut reader, Number(story), args, log, now);
    }
    let order = if args.reverse { Order::OldestFirst } else { Order::NewestFirst };
    let mut walk = Walk::new(&mut reader, &question, order, args.limit.unwrap_or(usize::MAX))?;
    let has_all = walk.filter().gaps;
    let folds = match args.fold {
        Fold::Auto => log.output.columns().is_some() && log.format == Format::Text && !args.patch && has_all,
        Fold::Always => true,
        Fold::Never => false,
    };
    let stories = if folds { Some(stories(&mut reader, now)?) } else { None };
    let written = records(&mut reader, &mut walk, stories.as_ref(), args, &mut log);
    log.output.finish()?;
    let shown = written?;
    let (period, target) = (&question.period, &question.target);
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
    if walk.filter().events {
        events_removed(&mut reader, period.from, now.time_zone())?.iter().for_each(|doubt| say(doubt));
    }
    let at = period.to.unwrap_or_else(|| now.timestamp());
    unwatched(&mut reader, &target.scope, at, now.time_zone())?.iter().for_each(|doubt| say(doubt));
    Ok(())
}

/// The stories of all records up to now.
fn stories(reader: &mut Reader, now: &Zoned) -> Result<Stories, AskError> {
    let mut stories = Stories::open(reader)?;
    if let Some(first) = stories.begins_at() {
        say(&format!("changes before #{first} are shown one by one: the daemon has not folded them"));
    }
    stories.catch_up(reader, now.timestamp())?;
    Ok(stories)
}

/// Shows what the walk finds, and returns how many entries that were.
fn records(
    reader: &mut Reader,
    walk: &mut Walk,
    stories: Option<&Stories>,
    args: &LogArgs,
    log: &mut Log,
) -> Result<usize, QueryError> {
    let most = args.limit.unwrap_or(usize::MAX);
    let mut shown = 0;
    while shown < most
        && let Step::Item(item) = walk.next(reader, stories)?
    {
        match item {
            Item::Record(record) => log.record(reader, record)?,
            Item::Gap(gap) => log.gap(gap)?,
            Item::Story(told) => log.story(&told.story, told.root.as_deref())?,
        }
        shown += 1;
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
    let stories = stories(reader, now)?;
    let Some(story) = stories.story(reader, id)? else {
        return Err(AskError::Nothing(format!(
            "there is no story {id}: `kubediff log --fold` shows the numbers of stories"
        ))
        .into());
    };
    let mut records = stories.records(reader, id, usize::MAX)?;
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

/// The output, entry by entry.
struct Log {
    cluster: String,
    format: Format,
    patch: bool,
    output: Output,
}

impl Log {
    fn story(&mut self, story: &Story, root: Option<&ChangeRecord>) -> Result<(), QueryError> {
        if self.format == Format::Json {
            return Ok(self.output.json(&Told { story })?);
        }
        let text = self.output.renderer.story(story, root, self.format == Format::Oneline);
        Ok(self.output.text(&text)?)
    }

    fn gap(&mut self, gap: Gap) -> Result<(), QueryError> {
        if self.format == Format::Json {
            return Ok(self.output.json(&gap.of_cluster(&self.cluster))?);
        }
        let text = self.output.renderer.gap(&gap, self.format == Format::Oneline);
        Ok(self.output.text(&text)?)
    }

    fn record(&mut self, reader: &mut Reader, record: Record) -> Result<(), QueryError> {
        let text = match (self.format, record) {
            (Format::Json, record) => return Ok(self.output.json(&record)?),
            (_, Record::Change(record)) => return self.change(reader, *record),
            (_, Record::Scrubbed(scrubbed)) => self.output.renderer.scrubbed(&scrubbed),
            (format, Record::Event(event)) => self.output.renderer.event(&event, format == Format::Oneline),
            // A walk joins those of one outage.
            (_, Record::Gap(_)) => return Ok(()),
        };
        Ok(self.output.text(&text)?)
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
                    change.new = reader.version_of(number)?.as_ref().map(object);
                }
                self.output.renderer.text(&change)
            }
        };
        Ok(self.output.text(&text)?)
    }
}

fn verb(sort: Sort) -> Verb {
    match sort {
        Sort::Added => Verb::Added,
        Sort::Updated => Verb::Updated,
        Sort::Deleted => Verb::Deleted,
        Sort::Recreated => Verb::Recreated,
    }
}
