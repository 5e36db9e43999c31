//! Watches: the records of a resource as events.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kubediff_history::{At, ChangeRecord, Filter, KindName, Number, Page, Reader, Record, Scope, Verb};
use serve::{Batch, Change, CollectionError, Event, Events, Status};

use super::content::Form;
use super::view::{VERSIONS, View, complete_from, failed};

/// Records that are read at once.
const RECORDS: usize = 100;
/// How often a watch of `now` looks for new records.
const LOOK: Duration = Duration::from_millis(200);

/// The events of a resource after a version.
pub(super) struct Following {
    view: Arc<View>,
    kind: KindName,
    form: Form,
    /// The last record that was read.
    read: Number,
    is_begun: bool,
}

impl Following {
    pub(super) fn new(view: Arc<View>, kind: KindName, form: Form, after: u64) -> Self {
        Self { view, kind, form, read: Number(after / VERSIONS), is_begun: false }
    }
}

impl Events for Following {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>> {
        async move {
            loop {
                let until = (!self.view.is_now).then_some(self.view.at.number);
                if until.is_some_and(|until| self.read >= until) {
                    // A past has no further events.
                    return std::future::pending().await;
                }
                let (kind, form, after, is_begun) =
                    (self.kind.clone(), self.form.clone(), self.read, self.is_begun);
                let (events, read) = self
                    .view
                    .ask(move |reader| {
                        let oldest = complete_from(reader)?;
                        // The end of a stream would say nothing: the client would go on from here again.
                        if !is_begun && after.0 + 1 < oldest.0 {
                            let (after, oldest) = (after.0 * VERSIONS, oldest.0 * VERSIONS);
                            return Err(CollectionError::Failed(Status::expired(after, oldest)));
                        }
                        read(reader, &kind, &form, after, until)
                    })
                    .await?;
                let is_all = read <= self.read;
                (self.read, self.is_begun) = (self.read.max(read), true);
                if !events.is_empty() {
                    return Ok(Batch { events });
                }
                if is_all {
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
        .boxed()
    }

    fn revision(&self) -> u64 {
        self.read.0 * VERSIONS
    }

    fn now(&self) -> SystemTime {
        self.view.now()
    }
}

/// The events after a record, and up to which record they are.
fn read(
    reader: &mut Reader,
    kind: &KindName,
    form: &Form,
    after: Number,
    until: Option<Number>,
) -> Result<(Vec<Event>, Number), CollectionError> {
    let last = reader.last().map_err(failed)?.map_or(Number(0), |(last, _)| last);
    let last = until.map_or(last, |until| last.min(until));
    if last <= after {
        return Ok((Vec::new(), after));
    }
    let is_of_events = kind.to_string() == "events";
    let scope = Scope { kinds: vec![kind.clone()], ..Scope::default() };
    let filter = Filter { scope, events: is_of_events, in_words: true, ..Filter::default() };
    let page = Page::oldest(RECORDS).after(after).until(last);
    let found = reader.records(&filter, &page).map_err(failed)?;
    let mut events = Vec::new();
    for record in &found.records {
        match record {
            Record::Change(change) => events.extend(of_change(reader, kind, form, change)?),
            Record::Event(event) => events.extend(of_version(reader, form, event.number, None)?),
            Record::Gap(_) | Record::Scrubbed(_) => {}
        }
    }
    let reached = found.records.last().filter(|_| found.more).map(Record::number);
    Ok((events, reached.unwrap_or(last)))
}

fn of_change(
    reader: &mut Reader,
    kind: &KindName,
    form: &Form,
    record: &ChangeRecord,
) -> Result<Vec<Event>, CollectionError> {
    let number = record.number.unwrap_or_default();
    let mut events = Vec::new();
    if record.verb == Verb::Recreated {
        let id = &record.object;
        let scope = Scope {
            kinds: vec![kind.clone()],
            namespaces: vec![id.namespace.clone().unwrap_or_default()],
            name: Some(id.name.clone()),
            ..Scope::default()
        };
        let former = reader.incarnations(&scope).map_err(failed)?;
        let former = former.into_iter().rfind(|it| it.object.uid != id.uid && it.first < number);
        if let Some(former) = former
            && let Some(version) = reader.version(&former, &At::Before(number)).map_err(failed)?
            && let Some(last) = form.object_at(&version, number.0 * VERSIONS - 1)
        {
            events.push(Event { change: Change::Deleted, object: last, previous: form.object(&version) });
        }
    }
    let change = match record.verb {
        Verb::Added | Verb::Recreated => Some(Change::Added),
        Verb::Updated => Some(Change::Modified),
        Verb::Deleted => Some(Change::Deleted),
    };
    events.extend(of_version(reader, form, number, change)?);
    Ok(events)
}

/// The event of a version; without a kind, the version before says which.
fn of_version(
    reader: &mut Reader,
    form: &Form,
    number: Number,
    change: Option<Change>,
) -> Result<Option<Event>, CollectionError> {
    let version = reader.version_of(number).map_err(failed)?;
    let Some(object) = version.as_ref().and_then(|it| form.object(it)) else { return Ok(None) };
    let before = match change {
        Some(Change::Added) => None,
        _ => reader.version_before(number).map_err(failed)?,
    };
    let previous = before.as_ref().and_then(|it| form.object(it));
    let change = change.unwrap_or(if previous.is_some() { Change::Modified } else { Change::Added });
    Ok(Some(Event { change, object, previous }))
}
