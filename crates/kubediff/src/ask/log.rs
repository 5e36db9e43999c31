//! The log: records in order, folded to stories where that is asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use jiff::Timestamp;
use kubediff_history::{Filter, Number, Order, Page, Reader, Record, Verb};

use super::cursor::Cursor;
use super::error::AskError;
use super::names::Target;
use super::period::Period;
use super::stories::{Stories, Told};
use crate::Change;
use crate::model::gap::Gap;
use crate::model::path::{Path, PathPattern};

/// Records that are read at once.
const PAGE: usize = 500;
/// The numbers in which a bounded walk looks at once.
const WINDOW: u64 = 50_000;

/// Which part of the log.
#[derive(Debug, Default)]
pub(crate) struct Question {
    pub(crate) target: Target,
    pub(crate) period: Period,
    pub(crate) manager: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) path: Option<PathPattern>,
    pub(crate) verbs: Vec<Verb>,
    pub(crate) events: bool,
    /// Whether the differences of changes are not shown.
    pub(crate) in_words: bool,
}

impl Question {
    /// The question as the history takes it.
    pub(crate) fn filter(&self, reader: &mut Reader) -> Result<Filter, AskError> {
        Ok(Filter {
            // Where changes are picked by what they are, a gap says nothing.
            gaps: self.manager.is_none()
                && self.user.is_none()
                && self.path.is_none()
                && self.verbs.is_empty(),
            scope: self.target.scope.clone(),
            from: self.period.from,
            to: self.period.to,
            manager: self.manager.clone(),
            user: self.user.clone(),
            paths: match &self.path {
                Some(pattern) => paths_of(reader, pattern)?,
                None => Vec::new(),
            },
            verbs: self.verbs.clone(),
            events: self.events || self.target.is_of_events(),
            // A change above the path is judged by its differences.
            in_words: self.in_words && self.path.is_none(),
        })
    }
}

/// The paths of changes that the pattern covers, or that lead to what it names; the pattern itself, which finds nothing, if there are none.
fn paths_of(reader: &mut Reader, pattern: &PathPattern) -> Result<Vec<String>, AskError> {
    let mut paths = reader.paths()?;
    paths.retain(|path| {
        path.parse().is_ok_and(|path: Path| pattern.covers(&path) || pattern.below(&path).is_some())
    });
    Ok(if paths.is_empty() { vec![pattern.to_string()] } else { paths })
}

/// An entry of the log.
pub(crate) enum Item {
    /// A change, a scrub or an Event.
    Record(Record),
    /// An outage. The history has a record for each resource of it.
    Gap(Gap),
    /// A story, at the place of its first record that is reached.
    Story(Box<Told>),
}

/// The next thing of a walk.
pub(crate) enum Step {
    Item(Item),
    /// The bound is reached, and there may be more.
    Bound,
    End,
}

/// A walk through the log.
pub(crate) struct Walk {
    filter: Filter,
    path: Option<PathPattern>,
    page: Page,
    /// The most records that are read at once.
    most: usize,
    /// When it stops, and the first number that can match.
    bound: Option<(Instant, Number)>,
    read: VecDeque<Record>,
    is_over: bool,
    members: BTreeMap<Number, Number>,
    shown: BTreeSet<Number>,
    /// The outage that may go on.
    gap: Option<Gap>,
    /// A record after it.
    next: Option<Record>,
    taken: Option<Number>,
    at: Timestamp,
}

impl Walk {
    /// A walk in this order, which reads at most so many records at once.
    pub(crate) fn new(
        reader: &mut Reader,
        question: &Question,
        order: Order,
        size: usize,
    ) -> Result<Self, AskError> {
        Ok(Self {
            filter: question.filter(reader)?,
            path: question.path.clone(),
            page: Page { order, after: None, until: None, limit: size.clamp(1, PAGE) },
            most: size.clamp(1, PAGE),
            bound: None,
            read: VecDeque::new(),
            is_over: false,
            members: BTreeMap::new(),
            shown: BTreeSet::new(),
            gap: None,
            next: None,
            taken: None,
            at: Timestamp::MIN,
        })
    }

    /// Reads more records with each look, up to this many.
    pub(crate) fn growing(mut self, most: usize) -> Self {
        self.most = most.clamp(self.most, PAGE);
        self
    }

    /// The same from the end of a page on.
    pub(crate) fn from(mut self, cursor: Cursor) -> Self {
        self.taken = Some(cursor.after);
        self.page.after = Some(cursor.after);
        self.shown = cursor.shown;
        self
    }

    /// Bounds a walk from the newest record on: it stops at about `until`, and looks at `WINDOW` numbers at a time.
    pub(crate) fn within(mut self, reader: &mut Reader, until: Instant) -> Result<Self, AskError> {
        let first = match self.filter.from {
            Some(from) => reader.first_since(from)?,
            None => Number(0),
        };
        self.bound = Some((until, first));
        Ok(self)
    }

    /// The filter of the question.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The next entry. Records are folded where there are stories.
    pub(crate) fn next(&mut self, reader: &mut Reader, stories: Option<&Stories>) -> Result<Step, AskError> {
        loop {
            let before = self.taken;
            let Some(record) = self.record(reader, stories)? else {
                return Ok(match self.gap.take() {
                    Some(gap) => Step::Item(Item::Gap(gap)),
                    None if self.is_over => Step::End,
                    None => Step::Bound,
                });
            };
            if !self.wants(&record) {
                continue;
            }
            let story = stories.zip(self.members.get(&record.number()).copied());
            if story.is_some_and(|(_, id)| self.shown.contains(&id)) {
                continue;
            }
            if let Record::Gap(gap) = &record {
                let next = outage(gap.clone());
                match &mut self.gap {
                    Some(known) if is_same_outage(known, &next) => {
                        known.resources.extend(next.resources);
                        known.resources.sort_unstable();
                        continue;
                    }
                    None => {
                        self.gap = Some(next);
                        continue;
                    }
                    Some(_) => {}
                }
            }
            if let Some(gap) = self.gap.take() {
                (self.next, self.taken) = (Some(record), before);
                return Ok(Step::Item(Item::Gap(gap)));
            }
            if let Some((stories, id)) = story
                && let Some(told) = stories.told(reader, id)?
            {
                self.shown.insert(id);
                return Ok(Step::Item(Item::Story(Box::new(told))));
            }
            return Ok(Step::Item(Item::Record(record)));
        }
    }

    /// The last record of the entries so far.
    pub(crate) fn taken(&self) -> Option<Number> {
        self.taken
    }

    /// The time of the record at whose place the last entry is, unless that is an outage.
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// The place that the walk has come to.
    pub(crate) fn place(&self, reader: &mut Reader, stories: Option<&Stories>) -> Result<Cursor, AskError> {
        let after = self.taken.or(self.page.after).unwrap_or_default();
        let after = if self.next.is_none() && self.read.is_empty() {
            self.page.after.unwrap_or(after)
        } else {
            after
        };
        let mut shown = BTreeSet::new();
        for id in &self.shown {
            let members = stories.map(|it| it.members(reader, *id)).transpose()?.unwrap_or_default();
            let is_beyond = match self.page.order {
                Order::NewestFirst => members.first().is_some_and(|first| *first < after),
                Order::OldestFirst => members.last().is_some_and(|last| *last > after),
            };
            if is_beyond {
                shown.insert(*id);
            }
        }
        Ok(Cursor { after, shown })
    }

    /// The next record; `None` at the end, or at the bound.
    fn record(&mut self, reader: &mut Reader, stories: Option<&Stories>) -> Result<Option<Record>, AskError> {
        let mut has_looked = false;
        let record = loop {
            if let Some(record) = self.next.take().or_else(|| self.read.pop_front()) {
                break record;
            }
            let is_late = self.bound.is_some_and(|(until, _)| has_looked && Instant::now() >= until);
            if self.is_over || is_late {
                return Ok(None);
            }
            self.look(reader, stories)?;
            has_looked = true;
        };
        (self.taken, self.at) = (Some(record.number()), record.at());
        Ok(Some(record))
    }

    /// Reads the next records.
    pub(crate) fn look(&mut self, reader: &mut Reader, stories: Option<&Stories>) -> Result<(), AskError> {
        if let Some((_, first)) = self.bound {
            let last = reader.last()?.map_or(0, |(last, _)| last.0);
            let after = self.page.after.unwrap_or(Number(last + 1));
            self.page.until = Some(Number(after.0.saturating_sub(WINDOW).max(first.0)));
        }
        let found = reader.records(&self.filter, &self.page)?;
        self.page.limit = (4 * self.page.limit).min(self.most);
        self.is_over = !found.more;
        if let (false, Some(until), Some((_, first))) = (found.more, self.page.until, self.bound) {
            self.is_over = until <= first;
            self.page.after = Some(until);
        }
        if let Some(last) = found.records.last().filter(|_| found.more || self.page.until.is_none()) {
            self.page.after = Some(last.number());
        }
        if let Some(stories) = stories {
            self.members = stories.of(reader, &found.records)?;
        }
        self.read.extend(found.records);
        Ok(())
    }

    /// A change above the path matches only if its values contain the path: a map may be added with or without this key.
    fn wants(&self, record: &Record) -> bool {
        let (Some(pattern), Record::Change(record)) = (&self.path, record) else { return true };
        let is_at = |path: &String| path.parse().is_ok_and(|path: Path| pattern.covers(&path));
        record.paths.iter().any(is_at)
            || Change::of_record((**record).clone())
                .is_ok_and(|change| change.diff.iter().any(|difference| difference.is_at(pattern)))
    }
}

fn outage(gap: kubediff_history::Gap) -> Gap {
    Gap::since(gap.from, gap.resource.into_iter().collect(), gap.reason).until(gap.to)
}

/// A gap without resources is one of all of them.
fn is_same_outage(a: &Gap, b: &Gap) -> bool {
    (a.from, a.to, &a.cause, a.resources.is_empty()) == (b.from, b.to, &b.cause, b.resources.is_empty())
}
