//! The objects, indexes and version of one moment.

use std::sync::{Arc, OnceLock, Weak};

use super::builtin::posting_of_label;
use super::index::text_of;
use super::objects::{Objects, Without};
use super::posting::Posting;
use super::shared::Shared;
use super::state::{BY_LABEL, BY_NAMESPACE, State};
use crate::Operator;
use crate::{Object, ObjectKey, Requirement, ResourceVersion, Selector};

/// Everything in a cache at one moment; it never changes. A clone is one reference count.
///
/// It keeps its objects alive. It slows down neither the writer nor readers.
#[derive(Clone)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

struct Inner {
    state: State,
    /// The slots in the order of their objects' keys, built on demand.
    sorted: OnceLock<Box<[u32]>>,
    /// Builds the label index on demand. Does not keep the store alive.
    shared: Weak<Shared>,
}

impl Snapshot {
    pub(super) fn new(state: State, shared: &Arc<Shared>) -> Self {
        Self { inner: Arc::new(Inner { state, sorted: OnceLock::new(), shared: Arc::downgrade(shared) }) }
    }

    pub(super) fn state(&self) -> &State {
        &self.inner.state
    }

    /// The number of steps that led to this state. Compare it to find out which changes a snapshot includes.
    pub fn revision(&self) -> u64 {
        self.inner.state.revision
    }

    /// The object of a key. O(1).
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.get_str(key.as_str())
    }

    /// The object of a key given as text, `namespace/name` or `name`. O(1).
    pub fn get_str(&self, key: &str) -> Option<&Arc<Object>> {
        self.state().locate(key).map(|(_, object)| object)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.state().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version that this reflects, as [`Cache::resource_version`](super::Cache::resource_version).
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.state().resource_version
    }

    /// Whether each source's initial list was committed.
    pub fn is_synced(&self) -> bool {
        self.state().is_synced
    }

    /// The sum of the objects' [`Object::held_bytes`]. O(1).
    pub fn held_bytes(&self) -> usize {
        self.state().held_bytes
    }

    /// All objects, in no particular order.
    pub fn iter(&self) -> Objects<'_> {
        Objects::all(&self.state().slots)
    }

    /// The objects of a namespace, in no particular order. O(number of hits).
    pub fn namespace(&self, namespace: &str) -> Objects<'_> {
        let posting = self.state().namespace(namespace);
        Objects::of(&self.state().slots, posting.cloned().unwrap_or_default())
    }

    /// The namespaces that have objects, and the number of objects in each, in no particular order.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, usize)> {
        let values = self.state().index(BY_NAMESPACE).into_iter().flat_map(|index| index.values.iter());
        values.filter_map(|filed| Some((text_of(&*filed.value)?, filed.posting.len())))
    }

    /// The objects with these labels, in no particular order.
    ///
    /// O(number of hits) for the usual selectors. The first such query of a cache scans all objects' labels instead,
    /// and the second one builds an index, unless [`Cache::index_labels`](super::Cache::index_labels) did.
    pub fn select(&self, selector: &Selector) -> Objects<'_> {
        self.select_in(None, selector)
    }

    /// The objects with these labels in one namespace, or in all of them (`None`), as [`Snapshot::select`].
    pub fn select_in(&self, namespace: Option<&str>, selector: &Selector) -> Objects<'_> {
        let state = self.state();
        let slots = &state.slots;
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let mut hits = namespace.map(|namespace| state.namespace(namespace).cloned().unwrap_or_default());
        if selector.is_everything() {
            return hits.map_or_else(|| Objects::all(slots), |hits| Objects::of(slots, hits));
        }
        if state.index(BY_LABEL).is_none() {
            if let Some(shared) = self.inner.shared.upgrade() {
                shared.note_label_query();
            }
            let candidates = hits.map_or_else(|| Objects::all(slots), |hits| Objects::of(slots, hits));
            return candidates.but(Without::Mismatches(selector.clone()));
        }
        let (mut wanted, unwanted): (Vec<_>, Vec<_>) = selector
            .requirements()
            .iter()
            .map(|requirement| self.asks(requirement))
            .partition(|(_, wants)| *wants);
        wanted.sort_by_key(|(posting, _)| posting.len());
        for (posting, _) in wanted {
            hits = Some(match hits {
                None => posting,
                Some(hits) => hits.and(&posting),
            });
        }
        let compares = selector.requirements().iter().any(|requirement| requirement.operator().compares());
        let rest = if compares { Without::Mismatches(selector.clone()) } else { Without::Nothing };
        match hits {
            None => {
                let unwanted = unwanted.into_iter().map(|(posting, _)| posting);
                Objects::all(slots).but(Without::Slots(unwanted.reduce(|a, b| a.or(&b)).unwrap_or_default()))
            }
            Some(hits) => {
                let hits = unwanted.iter().fold(hits, |hits, (posting, _)| hits.and_not(posting));
                Objects::of(slots, hits).but(rest)
            }
        }
    }

    /// The set that contains a requirement's hits (`true`), or the set that the requirement excludes (`false`).
    fn asks(&self, requirement: &Requirement) -> (Posting, bool) {
        let state = self.state();
        let of = |value: Option<&str>| {
            let index = state.index(BY_LABEL)?;
            posting_of_label(&index.values, &state.hasher, requirement.key(), value).cloned()
        };
        let of_values = || {
            let postings = requirement.values().filter_map(|value| of(Some(value)));
            postings.reduce(|a, b| a.or(&b)).unwrap_or_default()
        };
        match requirement.operator() {
            Operator::In => (of_values(), true),
            Operator::NotIn => (of_values(), false),
            Operator::Exists | Operator::GreaterThan | Operator::LessThan => {
                (of(None).unwrap_or_default(), true)
            }
            Operator::DoesNotExist => (of(None).unwrap_or_default(), false),
        }
    }

    /// The first `limit` objects whose keys come after `after`, ordered by namespace and name: for reading page by page.
    ///
    /// The first page sorts the keys, O(n log n). All clones of the snapshot share the order. A further page costs O(limit +
    /// log n).
    pub fn page(
        &self,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> impl ExactSizeIterator<Item = &Arc<Object>> {
        let sorted = self.sorted();
        let start = after.map_or(0, |after| {
            sorted.partition_point(|&slot| {
                self.state().object(slot).is_some_and(|object| object.key() <= after)
            })
        });
        let end = start.saturating_add(limit).min(sorted.len());
        let page: Vec<_> = sorted
            .get(start..end)
            .unwrap_or_default()
            .iter()
            .filter_map(|&slot| self.state().object(slot))
            .collect();
        page.into_iter()
    }

    fn sorted(&self) -> &[u32] {
        self.inner.sorted.get_or_init(|| {
            let objects =
                self.state().slots.iter().filter_map(|(slot, object)| Some((object.as_ref()?, slot)));
            let mut keyed: Vec<_> = objects
                .map(|(object, slot)| ((object.key().namespace(), object.key().name()), slot))
                .collect();
            keyed.sort_unstable();
            keyed.into_iter().map(|(_, slot)| slot).collect()
        })
    }
}

impl<'a> IntoIterator for &'a Snapshot {
    type Item = &'a Arc<Object>;
    type IntoIter = Objects<'a>;

    fn into_iter(self) -> Objects<'a> {
        self.iter()
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({} objects at {:?})", self.len(), self.resource_version())
    }
}
