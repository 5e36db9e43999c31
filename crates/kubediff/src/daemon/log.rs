//! The history as one sink reads it: the records that its routes let through, in words and in its format.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use kubediff_delivery::{Entry, Log, Page, Record as Parcelled, Settled};
use kubediff_history::{
    At, ChangeRecord, DeadLetter, Error, Filter, Gap, Ids, Number, ObjectId, Page as HistoryPage, Reader,
    Record, Scope, Scrubbed,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{Format, Sink};
use crate::history::shared::{SharedHistory, WRITE_AGAIN};
use crate::route::{Delivery, Routes};
use crate::show::render::{self, Renderer, plain};
use crate::{Change, Redacted, Secrets, Verb};

/// The most records that are read at a time.
const MOST: usize = 50;
/// The overhead of a record besides its texts, in bytes.
const OVERHEAD: usize = 256;
/// How wide the lines of differences are, in columns.
const WIDTH: usize = 100;

/// The most dead letters that are remembered for the records after them, and that are read at a time to be sent again.
const REMEMBERED: usize = 1_000;

/// How far a sink has come.
pub(super) struct Place {
    pub(super) position: u64,
    /// How many dead letters it has.
    pub(super) dead: u64,
    /// The latest of them, the newest first.
    pub(super) letters: Vec<DeadLetter>,
}

/// The history for one sink.
#[derive(Clone)]
pub(super) struct SinkLog {
    sink: Arc<str>,
    /// The envelope of arriqaaq/kubediff, which has objects and no gaps.
    envelope: Option<EnvelopeMode>,
    pub(super) history: SharedHistory,
    reader: Arc<Mutex<Reader>>,
    ids: Arc<Ids>,
    routes: Arc<Routes>,
    secrets: Secrets,
    newest: watch::Receiver<u64>,
    stop: CancellationToken,
}

#[derive(Clone, Copy)]
struct EnvelopeMode {
    with_differences: bool,
}

/// Why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    #[error(transparent)]
    History(#[from] Error),
    #[error("the thread that reads the history has ended")]
    Thread(#[from] tokio::task::JoinError),
}

impl SinkLog {
    pub(super) fn new(
        name: &str,
        sink: &Sink,
        history: SharedHistory,
        routes: Arc<Routes>,
        secrets: Secrets,
        stop: CancellationToken,
    ) -> Result<Self, Error> {
        let envelope = match sink {
            Sink::Webhook(webhook) => match webhook.format {
                Format::ArriqaaqWatch => Some(EnvelopeMode { with_differences: false }),
                Format::ArriqaaqDiff => Some(EnvelopeMode { with_differences: true }),
                Format::Plain | Format::CloudEvents => None,
            },
            _ => None,
        };
        let mut reader = history.lock().reader()?;
        // A value may have become known since it was recorded.
        reader.mask(Arc::new(secrets.clone()));
        let ids = Arc::new(reader.ids()?);
        let reader = Arc::new(Mutex::new(reader));
        let newest = history.newest();
        Ok(Self { sink: name.into(), envelope, history, reader, ids, routes, secrets, newest, stop })
    }

    /// How far the sink has come.
    pub(super) fn place(&self) -> Result<Place, Error> {
        let mut reader = self.reader();
        let sinks = reader.sinks()?;
        let (position, dead) = match sinks.iter().find(|sink| *sink.name == *self.sink) {
            Some(sink) => (sink.position.0, sink.dead),
            None => (0, 0),
        };
        Ok(Place {
            position,
            dead,
            letters: reader.dead_letters(&self.sink, &HistoryPage::newest(REMEMBERED))?,
        })
    }

    /// Gives the dead letters, the oldest first, as long as `taken` returns true: those that still exist and that the routes
    /// still let through. Blocks.
    pub(super) fn each_dead_letter(&self, mut taken: impl FnMut(Parcelled) -> bool) -> Result<(), Error> {
        let filter = Filter { gaps: true, ..Filter::default() };
        let mut page = HistoryPage::oldest(REMEMBERED);
        loop {
            let letters = self.reader().dead_letters(&self.sink, &page)?;
            let Some(last) = letters.last() else { return Ok(()) };
            page = page.after(last.number);
            for letter in letters {
                let one = HistoryPage::oldest(1).after(Number(letter.number.0.saturating_sub(1)));
                let mut reader = self.reader();
                let found = reader.records(&filter, &one)?.records.pop();
                let Some(found) = found.filter(|found| found.number() == letter.number) else { continue };
                let record = self.record(&mut reader, found)?;
                drop(reader);
                if record.is_some_and(|record| !taken(record)) {
                    return Ok(());
                }
            }
        }
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, reader: &mut Reader, record: Record) -> Result<Option<Parcelled>, Error> {
        match record {
            Record::Change(change) => self.change(reader, *change),
            Record::Gap(gap) => Ok(self.gap(&gap)),
            Record::Scrubbed(scrubbed) => Ok(self.scrubbed(&scrubbed)),
        }
    }

    /// Blocks.
    fn page(&self, after: u64, records: usize, bytes: usize) -> Result<Page, Error> {
        // Taken before reading: whatever has this number or a smaller one is found.
        let newest = *self.newest.borrow();
        let mut reader = self.reader();
        let filter = Filter { gaps: true, ..Filter::default() };
        let limit = HistoryPage::oldest(records.clamp(1, MOST)).after(Number(after));
        let found = reader.records(&filter, &limit)?;
        let mut page = Page { records: Vec::new(), through: after };
        let mut size = 0;
        for record in found.records {
            let number = record.number().0;
            if let Some(made) = self.record(&mut reader, record)? {
                size += made.entry.bytes;
                if size > bytes && !page.records.is_empty() {
                    return Ok(page);
                }
                page.records.push(made);
            }
            page.through = number;
        }
        if !found.more {
            page.through = page.through.max(newest);
        }
        Ok(page)
    }

    fn change(&self, reader: &mut Reader, record: ChangeRecord) -> Result<Option<Parcelled>, Error> {
        let number = record.number.unwrap_or_default();
        let order = order_of(&record);
        // To read and unpack both states costs more than all the rest, and an update says what differs by itself.
        let has_all = record.verb == Verb::Updated && self.envelope.is_none() && !self.routes.need_objects();
        let (old, new) = if has_all { (None, None) } else { objects(reader, &record)? };
        let change = Change::of_record(record.clone()).or_else(|error| {
            // A record of another version of kubediff is sent without its differences.
            crate::text::terminal::say(&format!("the sink {}: {error}", self.sink));
            Change::of_record(ChangeRecord { diff: Value::Null, key: None, ..record })
        });
        let Ok(mut change) = change else { return Ok(None) };
        (change.old, change.new) = (old, new);
        let deliveries = self.routes.of(&change);
        let Some(Delivery { severity, text, .. }) =
            deliveries.into_iter().find(|delivery| delivery.sink == &*self.sink)
        else {
            return Ok(None);
        };
        let body = match self.envelope {
            Some(EnvelopeMode { with_differences }) => change.envelope(with_differences).into_inner(),
            None => {
                let mut body = serde_json::to_value(&change).unwrap_or_default();
                body["severity"] = severity.as_str().into();
                render::json(&body).unwrap_or_default().into_bytes()
            }
        };
        let renderer = Renderer { width: WIDTH, ..Renderer::default() };
        let details = plain(&renderer.differences(&change));
        let subject = match &change.object.namespace {
            Some(namespace) => format!("{} {namespace}/{}", change.object.gvk.kind, change.object.name),
            None => format!("{} {}", change.object.gvk.kind, change.object.name),
        };
        let time = change.observed_at;
        Ok(Some(self.parcelled((number.0, order), time, subject, text.into_inner(), details, body)))
    }

    fn gap(&self, gap: &Gap) -> Option<Parcelled> {
        if self.envelope.is_some() {
            return None;
        }
        // A daemon may watch one object of a resource: `deployments.apps/cart`.
        let resource = gap.resource.as_deref().and_then(|name| name.split('/').next());
        if !self.routes.of_gap(resource).contains(&*self.sink) {
            return None;
        }
        let what = gap.resource.as_deref().unwrap_or("everything");
        let (from, to) = (gap.from, gap.to);
        let summary = format!("{what} was not watched from {from:.0} to {to:.0}: {}", gap.reason);
        let body = json!({
            "number": gap.number, "change": "gap", "from": from, "to": to, "resource": gap.resource,
            "cause": gap.reason,
        });
        let body = render::json(&body).unwrap_or_default().into_bytes();
        // Gaps are in order among each other.
        Some(self.parcelled(
            (gap.number.0, NO_OBJECT),
            to,
            format!("gap {what}"),
            summary,
            String::new(),
            body,
        ))
    }

    fn scrubbed(&self, scrubbed: &Scrubbed) -> Option<Parcelled> {
        if self.envelope.is_some() || !self.routes.of_gap(None).contains(&*self.sink) {
            return None;
        }
        let Scrubbed { number, at, from, to, masked, cause } = scrubbed;
        let summary = format!(
            "{masked} versions from number {from} to {to} were masked: {cause}; what was sent of them may have values that must not be known"
        );
        let body = json!({
            "number": number, "change": "scrubbed", "at": at, "from": from, "to": to, "masked": masked, "cause": cause,
        });
        let body = render::json(&body).unwrap_or_default().into_bytes();
        Some(self.parcelled((number.0, NO_OBJECT), *at, "scrubbed".to_owned(), summary, String::new(), body))
    }

    fn parcelled(
        &self,
        (number, Order { object, namespace }): (u64, Order),
        time: Timestamp,
        subject: String,
        summary: String,
        details: String,
        body: Vec<u8>,
    ) -> Parcelled {
        let bytes = OVERHEAD + subject.len() + summary.len() + details.len() + body.len();
        Parcelled {
            entry: Entry { number, object, namespace, bytes },
            id: self.ids.of(Number(number)).into(),
            time,
            subject: subject.into(),
            summary: summary.into(),
            details: details.into(),
            body: Bytes::from(body),
        }
    }
}

/// The state before, and after.
type States = (Option<Redacted<Value>>, Option<Redacted<Value>>);

/// The states as far as the history has them.
fn objects(reader: &mut Reader, record: &ChangeRecord) -> Result<States, Error> {
    let gvk = &record.object.gvk;
    let scope = Scope {
        group: Some(gvk.group.clone()),
        resource: Some(record.object.resource.clone()),
        uid: Some(record.object.uid.clone()),
        ..Scope::default()
    };
    let incarnations = reader.incarnations(&scope)?;
    let Some(incarnation) = incarnations.last() else { return Ok((None, None)) };
    let mut version = |at: &At| -> Result<_, Error> {
        let found = reader.version(incarnation, at)?;
        Ok(found.map(|version| Redacted::vouched(version.body.value())))
    };
    let number = record.number.unwrap_or_default();
    let now = version(&At::Number(number))?;
    Ok(match record.verb {
        Verb::Deleted => (now, None),
        // Noise in between has no version, so the resourceVersion before may have none.
        Verb::Updated => (version(&At::Before(number))?, now),
        _ => (None, now),
    })
}

/// Hashes of an object and its namespace.
#[derive(Clone, Copy)]
struct Order {
    object: u64,
    namespace: u64,
}

/// Of gaps and of objects without a namespace, which are in order among each other.
const NO_OBJECT: Order = Order { object: 0, namespace: 0 };

/// Records of one name are delivered in order, whatever the incarnation.
fn order_of(record: &ChangeRecord) -> Order {
    let ObjectId { gvk, resource, namespace, name, .. } = &record.object;
    let object = fnv_1a(&[&gvk.group, resource, namespace.as_ref().unwrap_or(name), name]);
    Order {
        object,
        namespace: namespace.as_ref().map_or(NO_OBJECT.namespace, |namespace| fnv_1a(&[namespace])),
    }
}

fn fnv_1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Log for SinkLog {
    type Error = LogError;

    async fn read(&self, after: u64, records: usize, bytes: usize) -> Result<Page, LogError> {
        let log = self.clone();
        let read = move || log.history.noticing(log.page(after, records, bytes));
        Ok(tokio::task::spawn_blocking(read).await??)
    }

    fn edition(&self) -> u64 {
        self.secrets.edition() + self.history.scrubs()
    }

    async fn store(&self, settled: Settled) -> Result<(), LogError> {
        let log = self.clone();
        let dead = settled.dead.into_iter().map(|letter| DeadLetter {
            number: Number(letter.number),
            object: letter.object,
            reason: letter.reason.into(),
        });
        let settled = kubediff_history::Settled {
            position: Number(settled.position),
            dead: dead.collect(),
            resent: settled.resent.into_iter().map(Number).collect(),
        };
        let settled = Arc::new(settled);
        loop {
            let (log, settled) = (log.clone(), settled.clone());
            let stored = move || log.history.noticing(log.history.lock().settle_sink(&log.sink, &settled));
            match tokio::task::spawn_blocking(stored).await? {
                // To begin again would send again what the sink has.
                Err(error) if error.is_passing() => {
                    let wait = self.stop.run_until_cancelled(tokio::time::sleep(WRITE_AGAIN));
                    if wait.await.is_none() {
                        return Err(error.into());
                    }
                }
                stored => return Ok(stored?),
            }
        }
    }

    async fn grown(&self, after: u64) -> u64 {
        let mut newest = self.newest.clone();
        let grown = newest.wait_for(|newest| *newest > after).await.map(|newest| *newest);
        match grown {
            Ok(newest) => newest,
            // The history is closed: nothing more will come.
            Err(_) => std::future::pending().await,
        }
    }
}
