//! The stories of a history: those that are stored, and those of later records, which are folded here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use jiff::Timestamp;
use kubediff_history::{ChangeRecord, Filter, Number, Page, Reader, Record, Scope};

use crate::ask::error::AskError;
use crate::story::{Fold, Story};

/// The most records that are folded here. Where a daemon runs, all but the last ones are folded already.
const MOST: u64 = 50_000;

/// The stories that are stored, and those of later records.
pub(crate) struct Stories {
    fold: Fold,
    /// The first record that may be in a story, where earlier ones were too many to fold.
    first: Option<Number>,
    later: BTreeMap<Number, Story>,
    members: BTreeMap<Number, Number>,
}

impl Stories {
    /// The stories that are stored. [`catch_up`](Self::catch_up) folds the rest.
    pub(crate) fn open(reader: &mut Reader) -> Result<Self, AskError> {
        let mut fold = Fold::of_history(reader)?;
        let last = reader.last()?.map_or(Number(0), |(last, _)| last);
        let first = Some(Number(last.0.saturating_sub(MOST))).filter(|first| fold.through() < *first);
        if let Some(first) = first {
            fold = Fold::after(first);
        }
        Ok(Self { fold, first, later: BTreeMap::new(), members: BTreeMap::new() })
    }

    /// The record from which on changes are folded, where earlier ones are not.
    pub(crate) fn begins_at(&self) -> Option<Number> {
        self.first
    }

    /// Folds what is not folded yet, as far as it was there at this time.
    pub(crate) fn catch_up(&mut self, reader: &mut Reader, now: Timestamp) -> Result<(), AskError> {
        // A daemon has stored by now what was folded here.
        if self.members.len() as u64 > MOST && reader.folded()?.1.0 + MOST > self.fold.through().0 {
            *self = Self::open(reader)?;
        }
        let mut more = true;
        while more {
            more = self.fold.advance(reader)?;
            if !more {
                self.fold.tick(now, reader)?;
            }
            let folded = self.fold.changes();
            self.members.extend(folded.members);
            for stored in folded.stories {
                self.later.extend(Story::read(stored.content).map(|story| (stored.id, story)));
            }
        }
        Ok(())
    }

    /// To which stories these records belong.
    pub(crate) fn of(
        &self,
        reader: &mut Reader,
        records: &[Record],
    ) -> Result<BTreeMap<Number, Number>, AskError> {
        let numbers = || records.iter().map(Record::number);
        match (numbers().min(), numbers().max()) {
            (Some(first), Some(last)) => self.within(reader, first..=last),
            _ => Ok(BTreeMap::new()),
        }
    }

    fn within(
        &self,
        reader: &mut Reader,
        numbers: RangeInclusive<Number>,
    ) -> Result<BTreeMap<Number, Number>, AskError> {
        let mut members = reader.members(numbers.clone())?;
        members.extend(self.members.range(numbers).map(|(number, story)| (*number, *story)));
        Ok(members)
    }

    /// The story of a record.
    pub(crate) fn of_record(&self, reader: &mut Reader, number: Number) -> Result<Option<Number>, AskError> {
        let of = self.within(reader, number..=number)?.remove(&number);
        Ok(match of {
            Some(id) if self.story(reader, id)?.is_some() => Some(id),
            _ => None,
        })
    }

    /// Whether a reader may know a story: its words are made of all its records. Retention may have removed the record of its object.
    fn is_shown(&self, reader: &mut Reader, story: &Story) -> Result<bool, AskError> {
        if !reader.is_limited()? {
            return Ok(true);
        }
        let object = Scope { uid: Some(story.object.uid.clone()), ..Scope::default() };
        let members = self.members(reader, story.id)?;
        Ok(!reader.incarnations(&object)?.is_empty() && reader.sees(members)?)
    }

    /// One story.
    pub(crate) fn story(&self, reader: &mut Reader, id: Number) -> Result<Option<Story>, AskError> {
        let story = match self.later.get(&id) {
            Some(story) => Some(story.clone()),
            None => Story::of_history(reader, id)?,
        };
        match story {
            Some(story) if self.is_shown(reader, &story)? => Ok(Some(story)),
            _ => Ok(None),
        }
    }

    /// One story, with the change that it began with.
    pub(crate) fn told(&self, reader: &mut Reader, id: Number) -> Result<Option<Told>, AskError> {
        let Some(story) = self.story(reader, id)? else { return Ok(None) };
        let root = reader.version_of(id)?.and_then(|version| version.change);
        Ok(Some(Told { story, root }))
    }

    /// The numbers of the records of a story.
    pub(crate) fn members(&self, reader: &mut Reader, id: Number) -> Result<BTreeSet<Number>, AskError> {
        let mut numbers: BTreeSet<Number> = reader.members_of(id)?.into_iter().collect();
        numbers.extend(self.members.iter().filter(|(_, story)| **story == id).map(|(number, _)| *number));
        Ok(numbers)
    }

    /// The first records of a story, the oldest first, at most this many.
    pub(crate) fn records(
        &self,
        reader: &mut Reader,
        id: Number,
        most: usize,
    ) -> Result<Vec<Record>, AskError> {
        let mut records = Vec::new();
        let filter = Filter { events: true, ..Filter::default() };
        for number in self.members(reader, id)?.into_iter().take(most) {
            let page = Page::oldest(1).after(Number(number.0 - 1)).until(number);
            records.append(&mut reader.records(&filter, &page)?.records);
        }
        Ok(records)
    }
}

/// A story with the change that it began with, as long as the history has that.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) story: Story,
    pub(crate) root: Option<Box<ChangeRecord>>,
}
