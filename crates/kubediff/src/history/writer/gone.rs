//! What a list of a process before this one found gone. The watch had not delivered how it went, so its position says nothing of that, and a
//! standby that has seen it would record it again.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use kubediff_history::{Error, Filter, Page, Reader, Record};

use crate::{Change, Origin, Verb};

/// The clocks of two processes differ by less, and so do the ways of their watches.
const LATE: Duration = Duration::from_secs(120);
/// This many deletions are read at a time.
const PAGE: usize = 500;

/// The uids of these objects.
#[derive(Default)]
pub(super) struct Gone(HashSet<String>);

impl Gone {
    /// Those that may have gone since this time.
    pub(super) fn since(reader: &mut Reader, since: Timestamp) -> Result<Self, Error> {
        let from = since.checked_sub(LATE).unwrap_or(Timestamp::MIN);
        let filter = Filter { verbs: vec![Verb::Deleted], from: Some(from), ..Filter::default() };
        let (mut gone, mut page) = (HashSet::new(), Page::oldest(PAGE));
        loop {
            let found = reader.records(&filter, &page)?;
            let Some(last) = found.records.last() else { return Ok(Self(gone)) };
            page = page.after(last.number());
            for record in found.records {
                if let Record::Change(change) = record
                    && change.origin != Origin::Watch
                {
                    gone.insert(change.object.uid);
                }
            }
        }
    }

    /// Whether a change was before such a deletion, or is it.
    pub(super) fn has(&mut self, change: &Change) -> bool {
        match change.verb {
            Verb::Updated | Verb::Deleted => self.0.contains(&change.object.uid),
            // An object that other settings had left out is there again.
            Verb::Added | Verb::Recreated => {
                self.0.remove(&change.object.uid);
                false
            }
        }
    }
}
