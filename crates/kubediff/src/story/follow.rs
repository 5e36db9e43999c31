//! A fold that follows the log of a history.

use jiff::Timestamp;
use kubediff_history::{Error, Filter, Number, Page, Reader, Record};
use serde_json::Value;

use super::fold::seen;
use super::{Fold, Story, VERSION};

/// Records that are read at once.
const PAGE: usize = 500;

/// Everything that a fold reads.
fn everything() -> Filter {
    Filter { events: true, gaps: true, ..Filter::default() }
}

impl Story {
    /// A story from its stored form; `None` for a form that is not known.
    pub fn read(content: Value) -> Option<Self> {
        serde_json::from_value(content).ok()
    }

    /// A story that is stored, in a form that is known.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub fn of_history(reader: &mut Reader, id: Number) -> Result<Option<Self>, Error> {
        Ok(reader.story(id)?.and_then(|stored| Self::read(stored.content)))
    }
}

impl Fold {
    /// Goes on where the stored stories end. Where another version has stored them, it begins anew.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub fn of_history(reader: &mut Reader) -> Result<Self, Error> {
        Ok(Self::of_history_unless(reader, &|| false)?.unwrap_or_default())
    }

    /// The same; `None` if it is to stop before it has read what it needs: the records of half a minute, which may be tens of thousands.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub fn of_history_unless(reader: &mut Reader, stops: &dyn Fn() -> bool) -> Result<Option<Self>, Error> {
        let (version, through) = reader.folded()?;
        if version != VERSION {
            return Ok(Some(Self::default()));
        }
        let now = reached(reader, through)?;
        // Stories of a form that is not known are found again.
        let Ok(mut fold) = Self::resume(through, now, reader.open_stories()?) else {
            return Ok(Some(Self::default()));
        };
        let is_whole = fold.remember(reader, through, now, stops)?;
        Ok(is_whole.then_some(fold))
    }

    /// Recalls the records before a place that belong to no story. Returns whether that was all of them.
    fn remember(
        &mut self,
        reader: &mut Reader,
        through: Number,
        now: Timestamp,
        stops: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let from = now.checked_sub(Self::MEMORY).unwrap_or(Timestamp::MIN);
        let filter = Filter { from: Some(from), ..everything() };
        let mut page = Page::oldest(PAGE);
        while !stops() {
            let found = reader.records(&filter, &page)?;
            let (Some(first), Some(last)) = (found.records.first(), found.records.last()) else {
                return Ok(true);
            };
            let members = reader.members(first.number()..=last.number())?;
            page = page.after(last.number());
            for record in &found.records {
                if record.number() > through {
                    return Ok(true);
                }
                if !members.contains_key(&record.number()) {
                    self.recall(record, reader)?;
                }
            }
            if !found.more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes some of the next records. Returns whether there are more.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub fn advance(&mut self, reader: &mut Reader) -> Result<bool, Error> {
        let found = reader.records(&everything(), &Page::oldest(PAGE).after(self.through()))?;
        for record in &found.records {
            self.push(record, reader)?;
        }
        Ok(found.more)
    }
}

/// The time to which the records up to a number lead a fold. Those that concern no object, such as gaps, lead it nowhere.
fn reached(reader: &mut Reader, through: Number) -> Result<Timestamp, Error> {
    let found = reader.records(&everything(), &Page::newest(PAGE).after(Number(through.0 + 1)))?;
    for record in &found.records {
        if let Some(seen) = seen(record, reader)? {
            return Ok(seen.at);
        }
    }
    Ok(found.records.last().map_or(Timestamp::UNIX_EPOCH, time))
}

/// When a record was seen.
fn time(record: &Record) -> Timestamp {
    match record {
        Record::Change(change) => change.observed_at,
        Record::Event(event) => event.observed_at,
        Record::Gap(gap) => gap.to,
        Record::Scrubbed(scrubbed) => scrubbed.at,
    }
}
