//! The stories of a history, for a log that shows one line for each.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kubediff_history::{ChangeRecord, Number, Page, Reader, Record};

use crate::query::error::QueryError;
use crate::story::{Fold, Story};
use crate::text::terminal::say;

/// The most records that are folded for one answer. Where the daemon runs, all but the last ones are folded already.
const MOST: u64 = 50_000;

/// The stories that are stored, and those of later records.
pub(super) struct Stories {
    later: BTreeMap<Number, Story>,
    members: BTreeMap<Number, Number>,
    /// The stories that were shown.
    shown: BTreeSet<Number>,
}

/// The place of a record in a folded log.
pub(super) enum Shown {
    /// The record itself, which belongs to no story.
    Alone,
    /// Its story, with the change that this began with.
    Story(Box<(Story, Option<ChangeRecord>)>),
    /// Nothing: its story was shown.
    Already,
}

impl Stories {
    /// Folds what is not folded yet, as far as it was there at this time.
    pub(super) fn read(reader: &mut Reader, now: Timestamp) -> Result<Self, QueryError> {
        let mut stories = Self { later: BTreeMap::new(), members: BTreeMap::new(), shown: BTreeSet::new() };
        let mut fold = Fold::of_history(reader)?;
        let last = reader.last()?.map_or(Number(0), |(last, _)| last);
        let first = last.0.saturating_sub(MOST);
        if fold.through().0 < first {
            fold = Fold::after(Number(first));
            say(&format!("changes before #{first} are shown one by one: the daemon has not folded them"));
        }
        let mut more = true;
        while more {
            more = fold.advance(reader)?;
            if !more {
                fold.tick(now, reader)?;
            }
            let folded = fold.changes();
            stories.members.extend(folded.members);
            for stored in folded.stories {
                stories.later.extend(read(stored.content).map(|story| (stored.id, story)));
            }
        }
        Ok(stories)
    }

    /// To which stories these records belong.
    pub(super) fn of(
        &self,
        reader: &mut Reader,
        records: &[Record],
    ) -> Result<BTreeMap<Number, Number>, QueryError> {
        let numbers = || records.iter().map(Record::number);
        let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else {
            return Ok(BTreeMap::new());
        };
        let mut members = reader.members(first..=last)?;
        members.extend(self.members.range(first..=last).map(|(number, story)| (*number, *story)));
        Ok(members)
    }

    /// The place of a record: a story is shown once.
    pub(super) fn shown(&mut self, reader: &mut Reader, story: Option<Number>) -> Result<Shown, QueryError> {
        let Some(id) = story else { return Ok(Shown::Alone) };
        if self.shown.contains(&id) {
            return Ok(Shown::Already);
        }
        let Some(story) = self.story(reader, id)? else { return Ok(Shown::Alone) };
        self.shown.insert(id);
        let root = reader.version_of(id)?.and_then(|version| version.change).map(|change| *change);
        Ok(Shown::Story(Box::new((story, root))))
    }

    /// One story.
    pub(super) fn story(&self, reader: &mut Reader, id: Number) -> Result<Option<Story>, QueryError> {
        if let Some(story) = self.later.get(&id) {
            return Ok(Some(story.clone()));
        }
        Ok(reader.story(id)?.and_then(|stored| read(stored.content)))
    }

    /// The records of a story, the oldest first.
    pub(super) fn records(&self, reader: &mut Reader, id: Number) -> Result<Vec<Record>, QueryError> {
        let mut numbers: BTreeSet<Number> = reader.members_of(id)?.into_iter().collect();
        numbers.extend(self.members.iter().filter(|(_, story)| **story == id).map(|(number, _)| *number));
        let mut records = Vec::new();
        for number in numbers {
            let filter = kubediff_history::Filter { events: true, ..Default::default() };
            let page = Page::oldest(1).after(Number(number.0 - 1));
            records.extend(
                reader.records(&filter, &page)?.records.into_iter().filter(|it| it.number() == number),
            );
        }
        Ok(records)
    }
}

/// A story of a version that is not known is none.
fn read(content: serde_json::Value) -> Option<Story> {
    serde_json::from_value(content).ok()
}
