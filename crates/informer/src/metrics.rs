//! What informers hold and have done, in numbers (contract M1).
//!
//! A snapshot is taken on demand, of the informers that live at that moment: an informer that is gone is in none, and
//! nothing has to be unregistered. On the way of the data there are relaxed counters only.
//!
//! What is called how, and in which unit: `docs/METRICS.md`.

mod counters;
mod exposition;
mod labels;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use informer_core::ResourceVersion;
use informer_core::reflector::Status;

use crate::resource::{ResourceType, Selection};
use crate::shared::{Content, Core, Shared};

pub(crate) use counters::{CallMeter, Counters, Freshness};
pub use exposition::Format;

/// The numbers of one informer at one moment. Counts begin with the informer.
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
    /// What tells it from others in a monitoring system: names and values of labels, no two informers of a [`FactoryMetrics`]
    /// with the same. Never an object's name.
    pub labels: Vec<(String, String)>,
    /// Of what.
    pub resource: ResourceType,
    /// Where it stands.
    pub status: Status,
    /// Whether the first content is in the cache.
    pub is_synced: bool,
    /// The version that the cache reflects.
    pub resource_version: ResourceVersion,
    /// How long ago the cache was last brought up to date, by an event, a bookmark or a list; of several namespaces, the
    /// one where that is longest. `None` before the first time.
    pub last_update_age: Option<Duration>,
    /// Objects in the cache.
    pub objects: usize,
    /// Bytes of memory that the cache takes ([`Informer::held_bytes`](crate::Informer::held_bytes)).
    pub held_bytes: usize,
    /// Requests that were sent.
    pub requests: RequestCounts,
    /// Lists after the first, streaming ones included, by what made them necessary ([`Cause::name`](crate::Cause::name)).
    pub relists: BTreeMap<&'static str, u64>,
    /// Events of watches, those of streaming lists included.
    pub events: EventCounts,
    /// Items of lists, unchanged ones included.
    pub list_items: u64,
    /// Objects and events that could not be read.
    pub unreadable: u64,
    /// How often it was saved in the directory of [`FactoryBuilder::saved_in`](crate::FactoryBuilder::saved_in).
    pub saves: u64,
    /// How often that failed.
    pub failed_saves: u64,
    /// Objects whose newest version is one of these ([`Informer::quarantined`](crate::Informer::quarantined)).
    pub quarantined: usize,
    /// Bytes of responses, as they came over the wire.
    pub received_bytes: u64,
    /// Time spent in turning bytes into objects.
    pub decode_time: Duration,
    /// Those who are told of changes.
    pub handlers: Vec<HandlerMetrics>,
}

/// Requests by what they were for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Lists, each counted with its first page.
    pub lists: u64,
    /// Further pages of lists.
    pub pages: u64,
    /// Streaming lists.
    pub streaming_lists: u64,
    /// Watches.
    pub watches: u64,
    /// Lists of one item, to learn how new the server's state is after a watch fell silent.
    pub probes: u64,
}

/// Events of watches by type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventCounts {
    /// `ADDED`.
    pub added: u64,
    /// `MODIFIED`.
    pub modified: u64,
    /// `DELETED`.
    pub deleted: u64,
    /// `BOOKMARK`.
    pub bookmarks: u64,
    /// `ERROR`.
    pub errors: u64,
}

/// The numbers of one handler, or of one stream of changes: that has no calls, so of these only the backlog counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerMetrics {
    /// As given by [`Subscribe::named`](crate::Subscribe::named), else a number: the lowest one that was free.
    pub name: String,
    /// Changes that wait.
    pub backlog: usize,
    /// Calls that have ended.
    pub calls: u64,
    /// How long they took together, with what they awaited.
    pub call_time: Duration,
    /// How long the call under way has taken.
    pub call_under_way: Option<Duration>,
}

/// The numbers of all informers of a factory of which somebody has a handle.
///
/// ```no_run
/// # fn example(factory: informer::SharedInformerFactory) {
/// // What a handler of `GET /metrics` answers with.
/// let format = informer::metrics::Format::OpenMetrics;
/// let (content_type, body) = (format.content_type(), factory.metrics().to_text(format));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FactoryMetrics {
    /// By resource, namespace and the other labels.
    pub informers: Vec<InformerMetrics>,
}

impl FactoryMetrics {
    /// With one more label on everything, in front: where a program has several factories, it tells them apart.
    ///
    /// A name that labels cannot have is made one: what is no ASCII letter, digit or `_` becomes a `_`, one is put before
    /// a digit in front, of several `_` in front one is left, and where nothing else is the name is `label`. A name that is taken, by a label of ours or an
    /// earlier one, gets a `_` behind. [`InformerMetrics::labels`] has what came of it.
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
        labels::tell_apart(&mut self.informers);
        self
    }

    /// These and others. One of the others with labels that are here already, as where nothing was
    /// [`labelled`](Self::labelled), gets another number as its label `informer`: the lowest that is free.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.informers.extend(others.informers);
        labels::tell_apart(&mut self.informers);
        self
    }

    pub(crate) fn of(informers: &[Arc<Shared>]) -> Self {
        let mut informers: Vec<_> =
            informers.iter().map(|informer| InformerMetrics::of(informer.core())).collect();
        informers.sort_by(|one, other| one.labels.cmp(&other.labels));
        Self { informers }
    }
}

impl InformerMetrics {
    pub(crate) fn of(core: &Core) -> Self {
        let counters = &core.counters;
        Self {
            labels: labels(core),
            resource: core.resource.clone(),
            status: core.progress.status().borrow().clone(),
            is_synced: core.progress.is_synced(),
            resource_version: core.cache.resource_version(),
            last_update_age: counters.last_update_age(),
            objects: core.cache.len(),
            held_bytes: core.held_bytes(),
            requests: counters.requests(),
            relists: counters.relists(),
            events: counters.events(),
            list_items: counters.list_items.get(),
            unreadable: counters.unreadable.get(),
            saves: counters.saves.get(),
            failed_saves: counters.failed_saves.get(),
            quarantined: core.quarantine.len(),
            received_bytes: counters.received_bytes.get(),
            decode_time: Duration::from_nanos(counters.decode_nanos.get()),
            handlers: core.fanout.metrics(),
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
        ("selector", yes_or_no(has_selector(selection))),
        ("metadata_only", yes_or_no(core.setup().content == Content::Metadata)),
        ("informer", &core.number.to_string()),
    ];
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn has_selector(selection: &Selection) -> bool {
    !selection.labels.is_empty() || !selection.fields.is_empty()
}

/// One name at most: a list of them would be a label without a bound.
fn namespace(selection: &Selection) -> &str {
    match selection.namespaces.as_slice() {
        [] => "all",
        [one] => one,
        _ => "several",
    }
}

/// A number for a new informer that tells it from those whose other labels are the same: the lowest that is free, so
/// that the numbers stay as few as the informers.
pub(crate) fn free_number(
    resource: &ResourceType,
    selection: &Selection,
    living: impl Iterator<Item = Arc<Shared>>,
) -> usize {
    let same_labels = |core: &Core| {
        (&core.resource.group, &core.resource.version, &core.resource.plural)
            == (&resource.group, &resource.version, &resource.plural)
            && namespace(&core.selection) == namespace(selection)
            && has_selector(&core.selection) == has_selector(selection)
    };
    lowest_free(living.filter(|other| same_labels(other.core())).map(|other| other.core().number))
}

/// From 1.
pub(crate) fn lowest_free(used: impl Iterator<Item = usize>) -> usize {
    let used: HashSet<_> = used.collect();
    (1..=used.len()).find(|number| !used.contains(number)).unwrap_or(used.len() + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_lowest_free_number_fills_gaps() {
        let lowest_free = |used: &[usize]| super::lowest_free(used.iter().copied());
        assert_eq!(lowest_free(&[]), 1);
        assert_eq!(lowest_free(&[1, 2, 3]), 4);
        assert_eq!(lowest_free(&[3, 1]), 2);
        assert_eq!(lowest_free(&[7, 9]), 1);
        // Named handlers have none.
        assert_eq!(lowest_free(&[0, 0, 1]), 2);
    }
}
