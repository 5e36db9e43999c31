//! Metrics of informers (contract M1).
//!
//! A snapshot is taken on demand, of the informers that exist at that moment: nothing needs to be unregistered. On the
//! data path there are only relaxed counters.
//!
//! Names and units: `docs/METRICS.md`.

mod exposition;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer_core::exposition::labels;
use informer_core::reflector::Status;
use informer_core::{HotSet, ResourceVersion, Time};

use crate::inner::counters::lowest_free;
use crate::inner::{Core, Lifeline};
use crate::options::cooling::Hot;
use crate::options::resource::ResourceType;
use crate::options::selection::Selection;
use crate::options::settings::Representation;

pub use crate::inner::counters::HandlerMetrics;
pub use informer_core::engine::{EventCounts, RequestCounts};
/// kubediff writes its own metrics with it. It promises nothing to others.
#[doc(hidden)]
pub use informer_core::exposition as text;
pub use informer_core::exposition::Format;

/// The metrics of one informer at one moment. Counts begin with the informer.
///
/// ```no_run
/// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
/// let now = pods.metrics();
/// println!("{} pods in {} bytes, {} watches so far", now.objects, now.held_bytes, now.requests.watches);
/// for handler in &now.handlers {
///     println!("{}: {} changes wait", handler.name, handler.backlog);
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerMetrics {
    /// Names and values of the labels that identify the informer in a monitoring system. No two informers of a
    /// [`FactoryMetrics`] have the same labels, and no label is an object's name.
    pub labels: Vec<(String, String)>,
    /// The resource.
    pub resource: ResourceType,
    /// The status.
    pub status: Status,
    /// Whether the initial list is in the cache.
    pub is_synced: bool,
    /// The version that the cache reflects.
    pub resource_version: ResourceVersion,
    /// The age of the last update of the cache, by an event, a bookmark or a list; of several namespaces, the highest.
    /// `None` before the first.
    pub last_update_age: Option<Duration>,
    /// Objects in the cache.
    pub objects: usize,
    /// Bytes of memory that the cache takes ([`Informer::held_bytes`](crate::Informer::held_bytes)).
    pub held_bytes: usize,
    /// The hot part of `held_bytes`: bytes of events, and decoded values.
    pub hot_bytes: usize,
    /// Requests that were sent.
    pub requests: RequestCounts,
    /// Re-lists, streaming ones included, by cause ([`Cause::name`](crate::Cause::name)).
    pub relists: BTreeMap<&'static str, u64>,
    /// Events of watches, those of streaming lists included.
    pub events: EventCounts,
    /// Items of lists, unchanged ones included.
    pub list_items: u64,
    /// Items of lists and events that were left out, because their objects are not in the informer's share
    /// ([`with_share`](crate::SharedInformerFactory::with_share)).
    pub outside_share: u64,
    /// Undecodable objects and events.
    pub unreadable: u64,
    /// Saves of the cache in the directory of [`FactoryBuilder::saved_in`](crate::FactoryBuilder::saved_in).
    pub saves: u64,
    /// Failed saves.
    pub failed_saves: u64,
    /// Objects whose newest version is undecodable ([`Informer::quarantined`](crate::Informer::quarantined)).
    pub quarantined: usize,
    /// Bytes of responses, as they came over the wire.
    pub received_bytes: u64,
    /// Time spent turning bytes into objects.
    pub decode_time: Duration,
    /// The metrics of each handler and stream.
    pub handlers: Vec<HandlerMetrics>,
}

/// The metrics of all informers of a factory that have a handle.
///
/// ```no_run
/// # fn example(factory: informer::SharedInformerFactory) {
/// // The answer of a handler of `GET /metrics`.
/// let format = informer::metrics::Format::OpenMetrics;
/// let (content_type, body) = (format.content_type(), factory.metrics().to_text(format));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FactoryMetrics {
    /// The informers, sorted by their labels.
    pub informers: Vec<InformerMetrics>,
    /// The hot sets: one per factory.
    pub hot: Vec<HotMetrics>,
}

/// The metrics of a factory's hot set ([`FactoryBuilder::hot_bytes`](crate::FactoryBuilder::hot_bytes)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotMetrics {
    /// The labels that distinguish it: a number, and those of [`FactoryMetrics::labelled`].
    pub labels: Vec<(String, String)>,
    /// The bytes that count towards the bound: those of all informers whose layout is not
    /// [`Decoded`](crate::Layout::Decoded).
    pub bytes: usize,
    /// The bound.
    pub bound: usize,
    /// Reads of a value that was hot.
    pub hits: u64,
    /// Reads of a value that had to be decoded.
    pub misses: u64,
}

impl FactoryMetrics {
    /// Puts one more label in front of all others, to distinguish several factories of a program.
    ///
    /// Invalid label names are sanitized: a character other than an ASCII letter, digit or `_` becomes `_`, a leading
    /// digit gets a `_` before it, leading `_`s are reduced to one, and an empty name becomes `label`. A name that is
    /// taken gets a `_` appended. [`InformerMetrics::labels`] has the result.
    ///
    /// ```no_run
    /// # fn example(east: informer::SharedInformerFactory, west: informer::SharedInformerFactory) {
    /// use informer::metrics::Format;
    ///
    /// let both = east.metrics().labelled("cluster", "east").and(west.metrics().labelled("cluster", "west"));
    /// println!("{}", both.to_text(Format::OpenMetrics));
    /// # }
    /// ```
    #[must_use]
    pub fn labelled(mut self, name: &str, value: &str) -> Self {
        for informer in &mut self.informers {
            labels::add(&mut informer.labels, name, value);
        }
        self.hot.iter_mut().for_each(|hot| labels::add(&mut hot.labels, name, value));
        self.told_apart()
    }

    /// Joins these metrics and others. If an informer of the others has the same labels as one of these, because no
    /// [`labelled`](Self::labelled) distinguishes them, its label `informer` gets another number: the lowest free one. Hot
    /// sets get another number in their label `factory`.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.informers.extend(others.informers);
        self.hot.extend(others.hot);
        self.told_apart()
    }

    fn told_apart(mut self) -> Self {
        labels::tell_apart(self.informers.iter_mut().map(|informer| &mut informer.labels), "informer");
        labels::tell_apart(self.hot.iter_mut().map(|hot| &mut hot.labels), "factory");
        self
    }

    pub(crate) fn of(informers: &[Arc<Lifeline>], hot: &HotSet) -> Self {
        let mut informers: Vec<_> =
            informers.iter().map(|informer| InformerMetrics::of(informer.core())).collect();
        informers.sort_by(|one, other| one.labels.cmp(&other.labels));
        Self { informers, hot: vec![HotMetrics::of(hot)] }
    }

    /// The metrics of the informers that these are.
    pub(crate) fn of_cores<'a>(cores: impl IntoIterator<Item = &'a Core>) -> Self {
        let mut all = Self::default();
        let mut sets: Vec<&Arc<Hot>> = Vec::new();
        for core in cores {
            all.informers.push(InformerMetrics::of(core));
            if !sets.iter().any(|set| Arc::ptr_eq(set, &core.settings.hot)) {
                sets.push(&core.settings.hot);
                all.hot.push(HotMetrics::of(&core.settings.hot.set));
            }
        }
        all.told_apart()
    }
}

impl HotMetrics {
    fn of(set: &HotSet) -> Self {
        Self {
            labels: vec![("factory".to_owned(), "1".to_owned())],
            bytes: set.bytes(),
            bound: set.bound(),
            hits: set.hits(),
            misses: set.misses(),
        }
    }
}

impl InformerMetrics {
    pub(crate) fn of(core: &Core) -> Self {
        let (counters, now) = (&core.counters, Time::from_start(core.started().elapsed()));
        Self {
            labels: labels(core),
            resource: core.resource.clone(),
            status: core.progress.status().borrow().clone(),
            is_synced: core.progress.is_synced(),
            resource_version: core.cache.resource_version(),
            last_update_age: counters.last_update_age(now),
            objects: core.cache.len(),
            held_bytes: core.held_bytes(),
            hot_bytes: core.shelf.hot_bytes(),
            requests: counters.requests(),
            relists: counters.relists(),
            events: counters.events(),
            list_items: counters.list_items.get(),
            outside_share: counters.outside_share.get(),
            unreadable: counters.unreadable.get(),
            saves: counters.saves.get(),
            failed_saves: counters.failed_saves.get(),
            quarantined: core.quarantine.len(),
            received_bytes: counters.received_bytes.get(),
            decode_time: Duration::from_nanos(counters.decode_nanos.get()),
            handlers: core.handlers(),
        }
    }
}

fn labels(core: &Core) -> Vec<(String, String)> {
    let selection = &core.selection;
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" };
    let labels = [
        ("group", core.resource.group.as_str()),
        ("version", &core.resource.version),
        ("resource", &core.resource.plural),
        ("namespace", namespace(selection)),
        ("selector", yes_or_no(selection.has_selector())),
        ("metadata_only", yes_or_no(core.chosen().representation == Representation::Metadata)),
        ("informer", &core.number.to_string()),
    ];
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// At most one name: a list of names would be a label without a bound.
fn namespace(selection: &Selection) -> &str {
    match selection.namespaces() {
        None => "all",
        Some([]) => "none",
        Some([one]) => one,
        Some(_) => "several",
    }
}

/// A number that distinguishes a new informer from those with equal labels: the lowest free one, so that the numbers
/// stay as few as the informers.
pub(crate) fn free_number(
    resource: &ResourceType,
    selection: &Selection,
    living: impl Iterator<Item = Arc<Lifeline>>,
) -> usize {
    let same_labels = |core: &Core| {
        (&core.resource.group, &core.resource.version, &core.resource.plural)
            == (&resource.group, &resource.version, &resource.plural)
            && namespace(&core.selection) == namespace(selection)
            && core.selection.has_selector() == selection.has_selector()
    };
    lowest_free(living.filter(|other| same_labels(other.core())).map(|other| other.core().number))
}
