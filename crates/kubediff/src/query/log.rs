//! `kubediff log`.

use jiff::Zoned;
use kubediff_history::{ChangeRecord, Number, Order, Reader, Record, Verb, ask_all};
use serde::Serialize;

use super::args::{Fold, Format, LogArgs, Sort};
use super::error::QueryError;
use super::fleet::{Fleet, Member, Remarks};
use super::output::Output;
use crate::ask::log::{Item, Question, Walk};
use crate::ask::merge::{self, Merge};
use crate::ask::period::{Period, covered, end_of, ended, events_removed, unwatched};
use crate::ask::{AskError, Stories, object};
use crate::model::path::PathPattern;
use crate::show::render::painter::{DIM, Painter};
use crate::story::Story;
use crate::text::terminal::{say, width};
use crate::{Change, Gap};

/// Records that all logs together have read, but not shown yet, are about this many at most.
const READ: usize = 20_000;
/// Entries that a screen shows.
const SCREEN: usize = 100;
pub(super) fn run(args: &LogArgs, now: &Zoned) -> Result<(), QueryError> {
    if let Some(story) = args.story {
        return story_of(Number(story), args, now);
    }
    let period = Period::read(args.since.as_deref(), args.until.as_deref(), now)?;
    let path: Option<PathPattern> = args.path.as_deref().map(str::parse).transpose()?;
    let fleet = Fleet::open(&args.source)?;
    let is_several = fleet.is_several;
    let mut remarks = Remarks::new(is_several);
    let members = fleet.targets(&args.target, args.namespaces.one(), &mut remarks)?;
    let mut output = Output::paged(args.screen, now);
    let format = if args.oneline { Format::Oneline } else { args.output };
    let order = if args.reverse { Order::OldestFirst } else { Order::NewestFirst };
    let limit = args.limit.unwrap_or(usize::MAX);
    // The latest of all may be of few logs, and a person waits for the first of them.
    let soon = if output.columns().is_some() { limit.min(SCREEN) } else { limit };
    let share = 4.max(soon.saturating_mul(2) / members.len().max(1));
    let most = if is_several { limit.min(READ / members.len().max(1)) } else { limit };
    let first = if is_several { most.min(share) } else { most };
    let (mut logs, mut standings) = (Vec::new(), Vec::new());
    for (Member { cluster, mut reader, standing }, target) in members {
        let question = Question {
            target: target.clone(),
            period,
            manager: args.manager.clone(),
            user: args.by_user.clone(),
            path: path.clone(),
            verbs: args.change.iter().map(|sort| verb(*sort)).collect(),
            events: args.events,
            in_words: format == Format::Oneline,
        };
        let walk = Walk::new(&mut reader, &question, order, first)?.growing(most);
        let has_all = walk.filter().gaps;
        let folds = match args.fold {
            Fold::Auto => output.columns().is_some() && format == Format::Text && !args.patch && has_all,
            Fold::Always => true,
            Fold::Never => false,
        };
        let mut stories = None;
        if folds {
            let (found, remark) = stories_of(&mut reader, now)?;
            remark.into_iter().for_each(|remark| remarks.add(&cluster, remark));
            stories = Some(found);
        }
        let newest = standing.last.map(|(_, at)| at);
        logs.push((merge::Log { cluster, reader, walk, stories }, newest));
        standings.push((standing, target));
    }
    if is_several && limit == usize::MAX {
        // All of them will be read.
        ask_all(&mut logs, |(merge::Log { reader, walk, stories, .. }, _)| {
            walk.look(reader, stories.as_ref())
        })?;
    }
    let names = logs.iter().map(|(log, _)| width(&log.cluster)).max().filter(|_| is_several);
    output.indent(names.map_or(0, |names| names + 2));
    let mut log = Log { format, patch: args.patch, names, output };
    let mut logs = Merge::new(logs, order);
    let written = records(&mut logs, limit, &mut log);
    log.output.finish()?;
    let shown = written?;
    let zone = now.time_zone();
    if shown == 0 && args.limit != Some(0) {
        let mut which = String::new();
        for (word, value) in
            [("by manager", &args.manager), ("by user", &args.by_user), ("at path", &args.path)]
        {
            which.extend(value.as_ref().map(|value| format!(" {word} {value}")));
        }
        let of = standings.first().map(|(_, target)| target.of_it()).unwrap_or_default();
        let nothing = format!("no change{of}{which}{}", period.words(zone));
        let mut has_hidden = false;
        for log in logs.logs() {
            let nothing = if is_several { String::new() } else { format!("{nothing}; ") };
            remarks.add(&log.cluster, format!("{nothing}{}", covered(&mut log.reader, zone)?));
            has_hidden |=
                args.path.is_some() && log.reader.paths()?.iter().any(|path| path.contains("<hmac:"));
        }
        if is_several {
            say(&nothing);
        }
        if has_hidden {
            let hidden = "names that Secrets have as values are hidden, and no path finds them";
            logs.logs().for_each(|log| remarks.add(&log.cluster, hidden.to_owned()));
        }
    }
    let at = period.to.unwrap_or_else(|| now.timestamp());
    for (log, (standing, target)) in logs.logs().zip(&standings) {
        let mut doubts = Vec::new();
        if log.walk.filter().events {
            doubts.extend(events_removed(&mut log.reader, period.from, zone)?);
        }
        if args.by_user.is_some() && !log.reader.has_users()? {
            let none = "no change has a user here: the daemon has read no audit log (docs/audit.md)";
            doubts.push(none.to_owned());
        }
        // Between the lines of others, nobody sees that one is silent.
        if is_several && shown > 0 {
            let end = end_of(standing);
            doubts.extend(
                end.map_or_else(|| Some("the history is empty".to_owned()), |end| ended(end, at, zone)),
            );
        }
        doubts.extend(unwatched(standing, &target.scope, at, zone));
        doubts.into_iter().for_each(|doubt| remarks.add(&log.cluster, doubt));
    }
    remarks.say();
    Ok(())
}

/// The stories of all records up to now, and a word about those of which there are none.
fn stories_of(reader: &mut Reader, now: &Zoned) -> Result<(Stories, Option<String>), AskError> {
    let mut stories = Stories::open(reader)?;
    let first = stories.begins_at();
    stories.catch_up(reader, now.timestamp())?;
    let one_by_one =
        |first| format!("changes before #{first} are shown one by one: the daemon has not folded them");
    Ok((stories, first.map(one_by_one)))
}

/// Shows entries, and returns how many that were.
fn records(logs: &mut Merge, most: usize, log: &mut Log) -> Result<usize, QueryError> {
    let mut shown = 0;
    while shown < most
        && let Some((merge::Log { cluster, reader, .. }, item)) = logs.next()?
    {
        match item {
            Item::Record(record) => log.record(cluster, reader, record)?,
            Item::Gap(gap) => log.gap(cluster, gap)?,
            Item::Story(told) => log.story(cluster, &told.story, told.root.as_deref())?,
        }
        shown += 1;
    }
    Ok(shown)
}

/// Shows one story, and its records.
fn story_of(id: Number, args: &LogArgs, now: &Zoned) -> Result<(), QueryError> {
    let reader = &mut args.source.open()?;
    let (stories, remark) = stories_of(reader, now)?;
    remark.iter().for_each(|remark| say(remark));
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
    let format = if args.oneline { Format::Oneline } else { args.output };
    let mut log = Log { format, patch: args.patch, names: None, output: Output::paged(args.screen, now) };
    let mut write = || {
        log.story("", &story, root.as_ref())?;
        for record in records.drain(..).take(args.limit.unwrap_or(usize::MAX)) {
            log.record("", reader, record)?;
        }
        Ok(())
    };
    let written = write();
    log.output.finish()?;
    written
}

/// What does not say itself of which cluster it is, for programs.
#[derive(Serialize)]
struct OfCluster<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(flatten)]
    it: T,
}

/// A story as JSON.
#[derive(Serialize)]
struct Told<'a> {
    story: &'a Story,
}

/// The output, entry by entry.
struct Log {
    format: Format,
    patch: bool,
    /// The columns of the names of clusters, where lines begin with them.
    names: Option<usize>,
    output: Output,
}

impl Log {
    fn text(&mut self, cluster: &str, text: &str) -> Result<(), QueryError> {
        let Some(names) = self.names else { return Ok(self.output.text(text)?) };
        let mut name = Painter::default();
        name.put(DIM, cluster).spaces(names - width(cluster) + 2);
        let name = name.finish();
        for line in text.split_inclusive('\n') {
            self.output.text(&name)?;
            self.output.text(line)?;
        }
        Ok(())
    }

    fn json(&mut self, cluster: &str, it: impl Serialize) -> Result<(), QueryError> {
        let cluster = Some(cluster).filter(|_| self.names.is_some());
        Ok(self.output.json(&OfCluster { cluster, it })?)
    }

    fn story(&mut self, cluster: &str, story: &Story, root: Option<&ChangeRecord>) -> Result<(), QueryError> {
        if self.format == Format::Json {
            return self.json(cluster, Told { story });
        }
        let text = self.output.renderer.story(story, root, self.format == Format::Oneline);
        self.text(cluster, &text)
    }

    fn gap(&mut self, cluster: &str, gap: Gap) -> Result<(), QueryError> {
        if self.format == Format::Json {
            return Ok(self.output.json(&gap.of_cluster(cluster))?);
        }
        let text = self.output.renderer.gap(&gap, self.format == Format::Oneline);
        self.text(cluster, &text)
    }

    fn record(&mut self, cluster: &str, reader: &mut Reader, record: Record) -> Result<(), QueryError> {
        let text = match (self.format, record) {
            (Format::Json, Record::Change(record)) => return Ok(self.output.json(&record)?),
            (Format::Json, record) => return self.json(cluster, record),
            (_, Record::Change(record)) => return self.change(cluster, reader, *record),
            (_, Record::Scrubbed(scrubbed)) => self.output.renderer.scrubbed(&scrubbed),
            (format, Record::Event(event)) => self.output.renderer.event(&event, format == Format::Oneline),
            // A walk joins those of one outage.
            (_, Record::Gap(_)) => return Ok(()),
        };
        self.text(cluster, &text)
    }

    fn change(&mut self, cluster: &str, reader: &mut Reader, record: ChangeRecord) -> Result<(), QueryError> {
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
        self.text(cluster, &text)
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
