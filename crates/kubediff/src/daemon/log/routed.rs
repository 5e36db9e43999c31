//! The history as all sinks read it: each record is read, masked, routed and written out once for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use kubediff_delivery::{Entry, Event, Place, Record as Parcelled};
use kubediff_history::{
    At, ChangeRecord, Error, Filter, Gap, Ids, KindName, Number, ObjectId, Page, Reader, Record, Scope,
    Scrubbed,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::event;
use super::milestones::{Reached, Share};
use crate::config::{Config, Format, Severity, Sink};
use crate::history::notes;
use crate::history::shared::SharedHistory;
use crate::route::Routes;
use crate::show::render::{self, Renderer, plain};
use crate::text::terminal::say;
use crate::{Change, Redacted, Secrets, Verb};

/// The most records that are read at a time.
const MOST: usize = 50;
/// The overhead of a record besides its texts, in bytes.
const OVERHEAD: usize = 256;
/// The width of the lines of differences, in columns.
const WIDTH: usize = 100;

/// The history for all sinks. One sink reads at a time: a record may take a hundred times its bytes while it is made.
pub(in crate::daemon) struct Routed {
    history: SharedHistory,
    reading: Mutex<Reading>,
    routes: Arc<Routes>,
    secrets: Secrets,
    ids: Ids,
    newest: watch::Receiver<u64>,
    decided: watch::Receiver<u64>,
    /// The sinks that take records in another shape than the usual one.
    shapes: BTreeMap<String, Shape>,
    /// The sinks that are copies of the log, for programs.
    streams: BTreeSet<String>,
}

struct Reading {
    reader: Reader,
    /// The page that was read last. The sinks that follow it find it here.
    last: Option<Arc<RoutedPage>>,
}

/// The shape of a record's JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Shape {
    /// All of the record.
    #[default]
    Record,
    /// The envelope of arriqaaq/kubediff, which has objects, and none for gaps.
    Envelope { with_differences: bool },
    /// An event of OpenTelemetry.
    Event,
}

/// Some records in a row.
pub(super) struct RoutedPage {
    after: u64,
    edition: u64,
    pub(super) records: Vec<RoutedRecord>,
    /// Everything up to this number was looked at.
    pub(super) through: u64,
    /// The records up to this number had their stories.
    decided: u64,
}

impl RoutedPage {
    /// The number up to which a sink has its records here.
    pub(super) fn through_for(&self, folds: bool) -> u64 {
        if folds { self.through.min(self.decided) } else { self.through }
    }
}

/// A record as each sink that a route leads to gets it.
pub(super) struct RoutedRecord {
    pub(super) number: u64,
    parcels: Vec<(String, Parcelled)>,
}

impl RoutedRecord {
    /// The record for this sink, if a route leads to it.
    pub(super) fn of(&self, sink: &str) -> Option<&Parcelled> {
        self.parcels.iter().find(|(name, _)| name == sink).map(|(_, parcelled)| parcelled)
    }
}

impl Routed {
    /// # Errors
    ///
    /// When the history cannot be read.
    pub(in crate::daemon) fn new(
        config: &Config,
        history: SharedHistory,
        routes: Arc<Routes>,
        secrets: Secrets,
    ) -> Result<Self, Error> {
        let shape = |sink: &Sink| match sink {
            Sink::Webhook(webhook) => match webhook.format {
                Format::ArriqaaqWatch => Shape::Envelope { with_differences: false },
                Format::ArriqaaqDiff => Shape::Envelope { with_differences: true },
                Format::Otlp => Shape::Event,
                Format::Plain | Format::CloudEvents => Shape::Record,
            },
            _ => Shape::Record,
        };
        let shapes = config.sinks.iter().map(|(name, sink)| (name.clone(), shape(sink))).collect();
        let is_stream = |sink: &Sink| match sink {
            Sink::JetStream(_) => true,
            Sink::Webhook(webhook) => matches!(webhook.format, Format::Otlp | Format::CloudEvents),
            Sink::Slack(_) | Sink::File(_) | Sink::Stdout(_) => false,
        };
        let streams = config.sinks.iter().filter(|(_, sink)| is_stream(sink));
        let streams = streams.map(|(name, _)| name.clone()).collect();
        let mut reader = history.lock().reader()?;
        // A value may have become known since it was recorded.
        reader.mask(Arc::new(secrets.clone()));
        let ids = reader.ids()?;
        let (newest, decided) = (history.told(), history.decided());
        let reading = Mutex::new(Reading { reader, last: None });
        Ok(Self { shapes, streams, history, reading, routes, secrets, ids, newest, decided })
    }

    pub(super) fn ids(&self) -> Ids {
        self.ids.clone()
    }

    /// The number of what has become known so far that must not be sent.
    pub(super) fn edition(&self) -> u64 {
        self.secrets.edition() + self.history.scrubs()
    }

    /// Whether a sink gets stories.
    pub(super) fn folds(&self, sink: &str) -> bool {
        self.routes.fold_for(sink)
    }

    fn shape(&self, sink: &str) -> Shape {
        self.shapes.get(sink).copied().unwrap_or_default()
    }

    /// Asks the history about something else. Blocks.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut Reader) -> Result<T, Error>) -> Result<T, Error> {
        question(&mut self.reading().reader)
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page that begins after this number, or before it, for a sink that gets stories or one that gets none. Blocks.
    pub(super) fn page(&self, after: u64, folds: bool) -> Result<Arc<RoutedPage>, Error> {
        let mut reading = self.reading();
        let edition = self.edition();
        let has = |page: &Arc<RoutedPage>| {
            page.edition == edition && page.after <= after && after < page.through_for(folds)
        };
        if let Some(page) = reading.last.clone().filter(has) {
            return Ok(page);
        }
        // Its memory is free before the next one takes some.
        reading.last = None;
        // Taken before reading: whatever has this number or a smaller one is found.
        let (newest, decided) = (*self.newest.borrow(), *self.decided.borrow());
        let page = Page::oldest(MOST).after(Number(after)).until(Number(newest));
        let found = reading.reader.records(&Filter { gaps: true, ..Filter::default() }, &page)?;
        let mut through = after;
        let mut records = Vec::new();
        for record in found.records {
            through = record.number().0;
            records.push(self.route(&mut reading.reader, record)?);
        }
        if !found.more {
            through = through.max(newest);
        }
        let page = Arc::new(RoutedPage { after, edition, records, through, decided });
        reading.last = Some(page.clone());
        Ok(page)
    }

    /// The record of this number, if it still exists. Blocks.
    pub(super) fn one(&self, number: u64) -> Result<Option<RoutedRecord>, Error> {
        let mut reading = self.reading();
        let page = Page::oldest(1).after(Number(number.saturating_sub(1)));
        let found = reading.reader.records(&Filter { gaps: true, ..Filter::default() }, &page)?.records.pop();
        let found = found.filter(|found| found.number().0 == number);
        found.map(|found| self.route(&mut reading.reader, found)).transpose()
    }

    fn route(&self, reader: &mut Reader, record: Record) -> Result<RoutedRecord, Error> {
        let number = record.number().0;
        let parcels = match record {
            Record::Change(change) => self.change(reader, *change)?,
            Record::Gap(gap) => self.gap(&gap),
            Record::Scrubbed(scrubbed) => self.scrubbed(&scrubbed),
            // No sink asks for Events.
            Record::Event(_) => Vec::new(),
        };
        Ok(RoutedRecord { number, parcels })
    }

    fn change(
        &self,
        reader: &mut Reader,
        mut record: ChangeRecord,
    ) -> Result<Vec<(String, Parcelled)>, Error> {
        let number = record.number.unwrap_or_default();
        let order = order_of(&record.object);
        let share = if self.routes.fold_any() { Share::of(reader, number)? } else { Share::Alone };
        // To read and unpack both states costs more than all the rest, and an update says what differs by itself.
        let has_envelope = self.shapes.values().any(|shape| matches!(shape, Shape::Envelope { .. }));
        let has_all = record.verb == Verb::Updated && !has_envelope && !self.routes.need_objects();
        let (old, new) = if has_all { (None, None) } else { objects(reader, &record)? };
        let diff = record.diff.take();
        let bare = record.clone();
        record.diff = diff;
        let change = Change::of_record(record).or_else(|error| {
            // A record of another version of kubediff is sent without its differences.
            say(&format!("sinks: {error}"));
            Change::of_record(ChangeRecord { key: None, ..bare })
        });
        let Ok(mut change) = change else { return Ok(Vec::new()) };
        (change.old, change.new) = (old, new);
        let is_alone = matches!(share, Share::Alone);
        let mut deliveries = self.routes.of(&change);
        deliveries.retain(|delivery| delivery.fold.is_empty() || is_alone);
        let mut parcels = Vec::new();
        if !deliveries.is_empty() {
            let details = differences(&change);
            let subject = subject(&change.object);
            let mut bodies: Vec<((Severity, Shape), Bytes)> = Vec::new();
            let event = event(&format!("change.{}", change.verb.as_str()), &change.object);
            for delivery in deliveries {
                let form = match self.shape(delivery.sink) {
                    envelope @ Shape::Envelope { .. } => (Severity::default(), envelope),
                    shape => (delivery.severity, shape),
                };
                let made = bodies.iter().find(|(known, _)| *known == form).map(|(_, body)| body.clone());
                let body = made.unwrap_or_else(|| {
                    let body = Bytes::from(body(&change, form));
                    bodies.push((form, body.clone()));
                    body
                });
                let texts = Texts {
                    event: event.clone(),
                    subject: subject.as_str().into(),
                    summary: delivery.text.into_inner().into(),
                    details: details.clone(),
                    body,
                };
                let parcelled = self.parcelled(number.0, order, change.observed_at, texts);
                parcels.push((delivery.sink.to_owned(), parcelled));
            }
        }
        if let Share::Milestone(reached) = share {
            let of_story = self.story(reader, change, &reached)?;
            // A sink gets one message for a record.
            parcels.retain(|(sink, _)| !of_story.iter().any(|(other, _)| other == sink));
            parcels.extend(of_story);
        }
        Ok(parcels)
    }

    /// A milestone of a story, for the sinks of the folded routes that match the change with which it began.
    fn story(
        &self,
        reader: &mut Reader,
        change: Change,
        reached: &Reached,
    ) -> Result<Vec<(String, Parcelled)>, Error> {
        let Reached { story, tells, root } = reached;
        let (number, at) = (change.number.unwrap_or_default(), change.observed_at);
        let mut began = match root.as_deref().map(|root| Change::of_record(root.clone())) {
            Some(Ok(mut began)) => {
                if let Some(root) = root.as_deref().filter(|_| self.routes.need_objects()) {
                    (began.old, began.new) = objects(reader, root)?;
                }
                began
            }
            // Retention has removed it, or another version has written it.
            Some(Err(_)) | None => change,
        };
        began.object = story.object.clone();
        let subject = subject(&story.object);
        let words = story.words(root.as_ref().map(|root| &*root.summary));
        let details = if root.is_some() { differences(&began) } else { Box::default() };
        let mut parcels = Vec::new();
        for delivery in self.routes.of(&began).iter().filter(|delivery| delivery.fold.contains(tells)) {
            let body = match self.shape(delivery.sink) {
                Shape::Event => event::story(story, *tells, delivery.severity),
                Shape::Record | Shape::Envelope { .. } => json!({
                    "number": number, "change": "story", "observed_at": at, "tells": tells, "text": words,
                    "story": story, "began": root, "severity": delivery.severity.as_str(),
                }),
            };
            let event = event("story", &story.object);
            let texts = Texts {
                details: details.clone(),
                ..Texts::of(event, &subject, format!("{subject}: {words}"), &body)
            };
            let parcelled = self.parcelled(number.0, order_of(&story.object), at, texts);
            parcels.push((delivery.sink.to_owned(), Parcelled { story: Some(story.id.0), ..parcelled }));
        }
        Ok(parcels)
    }

    fn gap(&self, gap: &Gap) -> Vec<(String, Parcelled)> {
        // A daemon may watch one object of a resource: `deployments.apps/cart`.
        let resource = gap.resource.as_deref().and_then(|name| name.split('/').next());
        let what = gap.resource.as_deref().unwrap_or("everything");
        let (from, to) = (gap.from, gap.to);
        let body = json!({
            "number": gap.number, "change": "gap", "from": from, "to": to, "resource": gap.resource,
            "cause": gap.reason,
        });
        let summary = format!("{what} was not watched from {from:.0} to {to:.0}: {}", gap.reason);
        let event = Event { kind: "io.kubediff.gap".into(), about: what.into(), place: None };
        let texts = |body: &Value| Texts::of(event.clone(), &format!("gap {what}"), summary.clone(), body);
        let mut parcels = self.told(gap.number, to, resource, [texts(&body), texts(&event::gap(gap))]);
        // The first start in a large cluster makes such a gap of each resource whose list takes long. Nobody has missed a message then.
        if gap.reason == notes::NEVER_BEFORE {
            parcels.retain(|(sink, _)| self.streams.contains(sink));
        }
        parcels
    }

    fn scrubbed(&self, scrubbed: &Scrubbed) -> Vec<(String, Parcelled)> {
        let Scrubbed { number, at, from, to, masked, cause } = scrubbed;
        let summary = format!(
            "{masked} versions from number {from} to {to} were masked: {cause}; what was sent of them may have values that must not be known"
        );
        let body = json!({
            "number": number, "change": "scrubbed", "at": at, "from": from, "to": to, "masked": masked, "cause": cause,
        });
        let event =
            Event { kind: "io.kubediff.scrubbed".into(), about: format!("{from}-{to}").into(), place: None };
        let texts = |body: &Value| Texts::of(event.clone(), "scrubbed", summary.clone(), body);
        self.told(*number, *at, None, [texts(&body), texts(&event::scrubbed(scrubbed))])
    }

    /// For the sinks that could have got a change of the resource, or of everything: the record, and its event. Gaps and scrubs are in
    /// order among each other.
    fn told(
        &self,
        number: Number,
        time: Timestamp,
        resource: Option<&str>,
        [record, event]: [Texts; 2],
    ) -> Vec<(String, Parcelled)> {
        let told = |sink: &str| {
            let texts = match self.shape(sink) {
                Shape::Record => record.clone(),
                Shape::Event => event.clone(),
                Shape::Envelope { .. } => return None,
            };
            Some((sink.to_owned(), self.parcelled(number.0, NO_OBJECT, time, texts)))
        };
        self.routes.of_gap(resource).into_iter().filter_map(told).collect()
    }

    fn parcelled(&self, number: u64, order: Order, time: Timestamp, texts: Texts) -> Parcelled {
        let Order { object, namespace } = order;
        let Texts { event, subject, summary, details, body } = texts;
        let bytes = OVERHEAD + subject.len() + summary.len() + details.len() + body.len();
        let id = self.ids.of(Number(number)).into();
        let entry = Entry { number, object, namespace, bytes };
        Parcelled { entry, id, time, event, subject, summary, details, body, story: None }
    }
}

/// A record in words, and in its format.
#[derive(Clone)]
struct Texts {
    event: Event,
    subject: Box<str>,
    summary: Box<str>,
    details: Box<str>,
    body: Bytes,
}

impl Texts {
    fn of(event: Event, subject: &str, summary: String, body: &Value) -> Self {
        let body = render::json(body).unwrap_or_default().into_bytes().into();
        Self { event, subject: subject.into(), summary: summary.into(), details: Box::default(), body }
    }
}

/// What happened to an object: `change.updated`, `story`.
fn event(what: &str, object: &ObjectId) -> Event {
    let ObjectId { gvk, resource, namespace, name, .. } = object;
    let dot = if gvk.group.is_empty() { "" } else { "." };
    let namespace: Option<Box<str>> = namespace.as_deref().map(Into::into);
    let key = namespace.as_deref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
    let about = format!("{resource}{dot}{}/{key}", gvk.group).into();
    let place = Place { group: gvk.group.as_str().into(), resource: resource.as_str().into(), namespace };
    Event { kind: format!("io.kubediff.{what}").into(), about, place: Some(place) }
}

/// `Deployment shop/cart`.
fn subject(object: &ObjectId) -> String {
    match &object.namespace {
        Some(namespace) => format!("{} {namespace}/{}", object.gvk.kind, object.name),
        None => format!("{} {}", object.gvk.kind, object.name),
    }
}

fn differences(change: &Change) -> Box<str> {
    let renderer = Renderer { width: WIDTH, ..Renderer::default() };
    plain(&renderer.differences(change)).into()
}

fn body(change: &Change, (severity, shape): (Severity, Shape)) -> Vec<u8> {
    let body = match shape {
        Shape::Envelope { with_differences } => return change.envelope(with_differences).into_inner(),
        Shape::Event => event::change(change, severity),
        Shape::Record => {
            let mut body = serde_json::to_value(change).unwrap_or_default();
            body["severity"] = severity.as_str().into();
            body
        }
    };
    render::json(&body).unwrap_or_default().into_bytes()
}

/// The state before, and after.
type States = (Option<Redacted<Value>>, Option<Redacted<Value>>);

/// The states as far as the history has them.
fn objects(reader: &mut Reader, record: &ChangeRecord) -> Result<States, Error> {
    let gvk = &record.object.gvk;
    let kind = KindName { group: Some(gvk.group.clone()), resource: record.object.resource.clone() };
    let scope = Scope { kinds: vec![kind], uid: Some(record.object.uid.clone()), ..Scope::default() };
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
fn order_of(object: &ObjectId) -> Order {
    let ObjectId { gvk, resource, namespace, name, .. } = object;
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
