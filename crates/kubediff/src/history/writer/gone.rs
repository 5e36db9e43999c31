//! The objects that a list of a former leader found gone. The position of the watch is below their deletions, which a standby has kept and
//! would record again.

use std::collections::HashMap;
use std::time::Duration;

use informer::ResourceVersion;
use jiff::Timestamp;
use kubediff_history::{Error, Filter, Page, Reader, Record};

use crate::{Change, Origin, Verb};

/// The clocks of two processes differ by less, and so do the ways of their watches.
const LATE: Duration = Duration::from_secs(120);
/// This many deletions are read at a time.
const PAGE: usize = 500;

/// The last version of each of these objects, by uid.
#[derive(Default)]
pub(super) struct Gone(HashMap<String, ResourceVersion>);

impl Gone {
    /// Those that may have gone since this time.
    pub(super) fn since(reader: &mut Reader, since: Timestamp) -> Result<Self, Error> {
        let from = since.checked_sub(LATE).unwrap_or(Timestamp::MIN);
        let filter = Filter { verbs: vec![Verb::Deleted], from: Some(from), ..Filter::default() };
        let (mut gone, mut page) = (HashMap::new(), Page::oldest(PAGE));
        loop {
            let found = reader.records(&filter, &page)?;
            let Some(last) = found.records.last() else { return Ok(Self(gone)) };
            page = page.after(last.number());
            for record in found.records {
                if let Record::Change(change) = record
                    && change.origin != Origin::Watch
                {
                    gone.insert(change.object.uid, version(change.rv.as_deref()));
                }
            }
        }
    }

    /// Whether a change was before such a deletion, or is it.
    pub(super) fn has(&mut self, change: &Change) -> bool {
        match change.verb {
            Verb::Updated | Verb::Deleted => self.0.contains_key(&change.object.uid),
            // An object that a selector had left out is there again, with a later version.
            Verb::Added | Verb::Recreated => {
                let Some(last) = self.0.get(&change.object.uid) else { return false };
                let is_before = last.is_at_least(&version(change.rv.as_deref()));
                if !is_before {
                    self.0.remove(&change.object.uid);
                }
                is_before
            }
        }
    }
}

fn version(text: Option<&str>) -> ResourceVersion {
    ResourceVersion::new(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use kubediff_history::{
        Batch, Body, ChangeRecord, Cluster, History, ObjectId, Observation, Settings, What,
    };

    use super::*;

    fn record(uid: &str, verb: Verb, origin: Origin, rv: &str) -> ChangeRecord {
        let object = ObjectId { uid: uid.to_owned(), name: uid.to_owned(), ..ObjectId::default() };
        let at = "2026-11-29T12:00:00Z".parse().unwrap();
        let rv = Some(rv.to_owned());
        ChangeRecord { object, verb, origin, observed_at: at, rv, ..ChangeRecord::default() }
    }

    #[test]
    fn k11_a_deletion_that_a_list_found_is_not_recorded_again() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let mut history =
            History::open(folder.path().join("history.db"), &cluster, &Settings::default()).unwrap();
        let mut batch = Batch::default();
        for (uid, origin) in
            [("listed", Origin::List), ("restarted", Origin::Restart), ("watched", Origin::Watch)]
        {
            for verb in [Verb::Added, Verb::Deleted] {
                let body = Body::redacted(format!(r#"{{"metadata":{{"uid":"{uid}"}}}}"#));
                let record = record(uid, verb, origin, "20");
                batch.observe(Observation { record, body, what: What::Change, replaces: None });
            }
        }
        history.commit(&batch).unwrap();
        let gone = |at: &str| Gone::since(&mut history.reader().unwrap(), at.parse().unwrap()).unwrap();
        let mut of = gone("2026-11-29T12:01:00Z");
        let mut has_at =
            |uid, verb, rv: &str| of.has(&Change::of_record(record(uid, verb, Origin::Watch, rv)).unwrap());
        // Its creation may be beyond the position of the watch, too.
        assert!(has_at("listed", Verb::Added, "9") && has_at("listed", Verb::Added, "20"));
        let mut has = |uid, verb| has_at(uid, verb, "100");
        assert!(
            has("listed", Verb::Updated) && has("listed", Verb::Deleted) && has("restarted", Verb::Deleted)
        );
        assert!(!has("watched", Verb::Deleted) && !has("another", Verb::Updated));
        // An object that comes back is another matter.
        assert!(!has("listed", Verb::Added) && !has("listed", Verb::Deleted));
        assert!(gone("2026-11-29T13:00:00Z").0.is_empty());
    }
}
