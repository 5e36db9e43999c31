//! Applies operations to the store, one after the other. Within the engine, only this module runs the user's transforms and
//! index functions.

use std::collections::HashMap;
use std::sync::Arc;

use crate::labels::RecentLabels;
use crate::object::Arrival;
use crate::reflector::{Report, StoreOperation};
use crate::store::{ChangeSet, CommitError, IndexReport, Replace, SourcePoint};
use crate::{
    Change, Checkpoint, ContentKey, Object, ObjectKey, ResourceVersion, Scope, Shelf, SourceId, Store,
};

use super::quarantine::{Put, Quarantine, Undecodable};
use super::request::RequestId;

/// Changes an object before it is stored, or drops it (`Ok(None)`). The error says why the object cannot be transformed, and
/// must not quote its content.
pub type TransformFn = Arc<dyn Fn(&Object) -> Result<Option<Object>, String> + Send + Sync>;

/// The store, the lists being staged for it, and the user's transform.
pub(super) struct Writer {
    store: Store,
    staging: HashMap<SourceId, Staging>,
    transform: Option<TransformFn>,
    skips_managed_fields: bool,
    shelf: Arc<Shelf>,
    quarantine: Arc<Quarantine>,
    labels: RecentLabels,
}

struct Staging {
    list: Replace,
    undecodable: Undecodable,
}

/// One operation on the store.
pub(super) enum Operation {
    Add(Scope),
    Of { source: SourceId, request: RequestId, scope: Scope, step: Step },
}

pub(super) enum Step {
    Store(StoreOperation),
    Quarantine { key: Option<ObjectKey>, reason: String },
    Remove,
}

/// The result of one operation.
pub(super) struct Outcome {
    pub(super) source: SourceId,
    pub(super) request: RequestId,
    pub(super) scope: Scope,
    pub(super) applied: Option<Applied>,
    /// The report of a transform that failed.
    pub(super) failed: Option<Report>,
    /// The report of the first object in a quarantine that was empty.
    pub(super) first_quarantined: Option<Report>,
    /// Objects that have other content at each list.
    pub(super) unsteady: Vec<ObjectKey>,
    /// The changes that are not in the mailboxes yet.
    pub(super) changes: ChangeSet,
    pub(super) revision: u64,
    /// Whether the store was synced after the operation.
    pub(super) is_synced: bool,
}

/// In which way the cache changed.
#[derive(Debug)]
pub enum Applied {
    /// The scope's source feeds the cache from now on.
    SourceAdded,
    /// The source no longer feeds the cache, and the objects that no other source covers were removed.
    SourceRemoved,
    /// A list is being staged. Readers do not see it yet.
    ListBegun {
        /// Whether an equal resourceVersion means an equal state.
        trust_versions: bool,
    },
    /// A list replaced the former objects of its scope.
    Listed(ResourceVersion),
    /// A list was refused, because it was older than the cache. Nothing changed.
    ListRefused(CommitError),
    /// An event added or modified the object.
    Upserted(ObjectKey, ResourceVersion),
    /// An event deleted the object.
    Deleted(ObjectKey, ResourceVersion),
    /// A bookmark moved the source's version.
    Bookmark(ResourceVersion),
    /// A server resumed the watch from the loaded content.
    Confirmed,
}

impl Applied {
    /// Whether this operation was counted as one that may change objects in the cache.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Listed(_) | Self::ListRefused(_) | Self::Upserted(..) | Self::Deleted(..))
    }
}

/// A list or removal that may change more objects than this is applied on another thread, whether or not it runs user code. On
/// the connection thread it would delay the other informers by milliseconds.
const LARGE: usize = 4096;
/// The same where an index reads each object, which takes some microseconds.
const LARGE_READ: usize = 256;

/// The result of the transform of an object.
enum Transformed {
    Kept(Arc<Object>),
    LeftOut,
    Failed(String),
}

impl Writer {
    pub(super) fn new(store: Store, shelf: Arc<Shelf>, quarantine: Arc<Quarantine>) -> Self {
        Self {
            store,
            staging: HashMap::new(),
            transform: None,
            skips_managed_fields: false,
            shelf,
            quarantine,
            labels: RecentLabels::default(),
        }
    }

    pub(super) fn transform_with(&mut self, transform: Option<TransformFn>, skips_managed_fields: bool) {
        (self.transform, self.skips_managed_fields) = (transform, skips_managed_fields);
    }

    pub(super) fn load(
        &mut self,
        points: Vec<SourcePoint>,
        objects: Vec<Arc<Object>>,
        key: ContentKey,
    ) -> Vec<SourceId> {
        self.store.use_content_key(key);
        self.store.load(points, objects)
    }

    /// Whether a source is synced, and the version that the cache reflects of it.
    pub(super) fn reach(&self, source: SourceId) -> (bool, ResourceVersion) {
        (self.store.is_source_synced(source), self.store.source_version(source))
    }

    /// The quarantine is updated so that no checkpoint claims more than it has. An undecodable object enters it before later
    /// events are applied, and leaves it after a list was applied.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let mut checkpoint = self.store.checkpoint();
        for source in &mut checkpoint.sources {
            source.has_unread |= self.quarantine.covers_any(&source.scope);
        }
        checkpoint
    }

    pub(super) fn take_reports(&self) -> Vec<IndexReport> {
        self.store.take_reports()
    }

    /// Whether the operation runs user code, or takes long enough to delay other informers.
    pub(super) fn needs_compute(&self, operation: &Operation) -> bool {
        let Operation::Of { source, step, .. } = operation else { return false };
        match step {
            Step::Quarantine { .. } => false,
            Step::Remove => self.store.runs_user_code() || self.is_large(self.store.covered_len(*source)),
            Step::Store(operation) => match operation {
                // If the cache has the object at the same version, staging compares the contents of both, which takes long.
                StoreOperation::Stage(object) => {
                    let is_known = |object: &Object| {
                        let (key, version) = (object.key().as_str(), object.resource_version());
                        self.store.is_unchanged(key, version)
                    };
                    self.transform.is_some() || is_known(object)
                }
                StoreOperation::Unstage(_) => self.transform.is_some(),
                // Most of these concern objects that are not in the share, and so not in the cache.
                StoreOperation::DeleteKey(key, _) => {
                    let is_cached = || self.store.cache().with(key.as_str(), |_| ()).is_some();
                    self.store.has_waiting_index() || self.store.runs_user_code() && is_cached()
                }
                StoreOperation::Upsert(_) | StoreOperation::Delete(_) => {
                    self.transform.is_some() || self.store.runs_user_code()
                }
                StoreOperation::Commit { .. } => {
                    self.store.runs_user_code()
                        || self.staging.get(source).is_some_and(|Staging { list, .. }| {
                            // The list deletes at most the objects that it does not keep.
                            let unkept = self.store.covered_len(*source).saturating_sub(list.kept_len());
                            self.is_large(list.staged_len().max(unkept))
                        })
                }
                StoreOperation::Bookmark(_) | StoreOperation::Confirm => self.store.has_waiting_index(),
                StoreOperation::BeginReplace { .. }
                | StoreOperation::Keep(_)
                | StoreOperation::UnstageKey(..)
                | StoreOperation::Discard => false,
            },
        }
    }

    fn is_large(&self, objects: usize) -> bool {
        objects > if self.store.reads_bytes() { LARGE_READ } else { LARGE }
    }

    pub(super) fn apply(&mut self, operation: Operation) -> Outcome {
        match operation {
            Operation::Add(scope) => {
                let source = self.store.add_source(scope.clone());
                Outcome { applied: Some(Applied::SourceAdded), ..self.outcome(source, RequestId(0), scope) }
            }
            Operation::Of { source, request, scope, step } => {
                let outcome = self.outcome(source, request, scope);
                let outcome = self.step(outcome, step);
                Outcome { revision: self.store.revision(), is_synced: self.store.is_synced(), ..outcome }
            }
        }
    }

    fn outcome(&self, source: SourceId, request: RequestId, scope: Scope) -> Outcome {
        Outcome {
            source,
            request,
            scope,
            applied: None,
            failed: None,
            first_quarantined: None,
            unsteady: Vec::new(),
            changes: ChangeSet::default(),
            revision: self.store.revision(),
            is_synced: self.store.is_synced(),
        }
    }

    fn step(&mut self, mut outcome: Outcome, step: Step) -> Outcome {
        let source = outcome.source;
        match step {
            Step::Quarantine { key, reason } => self.quarantine(&mut outcome, key, reason),
            Step::Remove => {
                self.staging.remove(&source);
                outcome.changes = self.store.remove_source(source);
                self.quarantine.listed(source, &outcome.scope, &Undecodable::default());
                outcome.applied = Some(Applied::SourceRemoved);
            }
            Step::Store(operation) => self.store_operation(&mut outcome, operation),
        }
        outcome
    }

    fn store_operation(&mut self, outcome: &mut Outcome, operation: StoreOperation) {
        let source = outcome.source;
        match operation {
            StoreOperation::BeginReplace { trust_versions, expects_revisions } => {
                let mut list = match trust_versions {
                    true => self.store.begin_replace(source),
                    false => self.store.begin_restored_replace(source),
                };
                list.expects_revisions = expects_revisions;
                self.staging.insert(source, Staging { list, undecodable: Undecodable::default() });
                outcome.applied = Some(Applied::ListBegun { trust_versions });
            }
            StoreOperation::Discard => drop(self.staging.remove(&source)),
            StoreOperation::Keep(key) => self.stage(source, |staging| staging.list.keep_cached(&key)),
            StoreOperation::Stage(object) => self.stage_object(outcome, object),
            StoreOperation::Unstage(object) => {
                let (key, version) = (object.key().clone(), object.resource_version().clone());
                let shelf = self.shelf.clone();
                let last = self.transformed(object, Arrival::Cold(&shelf));
                self.stage(source, |staging| {
                    staging.undecodable.keys.remove(&key);
                    match last {
                        Transformed::Kept(object) => {
                            shelf.settle(&object);
                            staging.list.delete(object);
                        }
                        Transformed::LeftOut | Transformed::Failed(_) => {
                            staging.list.delete_key(&key, &version)
                        }
                    }
                });
            }
            StoreOperation::UnstageKey(key, version) => self.stage(source, |staging| {
                staging.undecodable.keys.remove(&key);
                staging.list.delete_key(&key, &version);
            }),
            StoreOperation::DeleteKey(key, version) => {
                self.release(&key, &version);
                outcome.changes = self.store.delete_key(source, &key, &version).into();
                outcome.applied = Some(Applied::Deleted(key, version));
            }
            StoreOperation::Commit { resource_version } => self.commit(outcome, resource_version),
            StoreOperation::Upsert(object) => self.upsert(outcome, object),
            StoreOperation::Delete(object) => self.delete(outcome, object),
            StoreOperation::Confirm => {
                self.store.confirm(source);
                outcome.applied = Some(Applied::Confirmed);
            }
            StoreOperation::Bookmark(version) => {
                self.store.bookmark(source, &version);
                outcome.applied = Some(Applied::Bookmark(version));
            }
        }
    }

    fn stage(&mut self, source: SourceId, stage: impl FnOnce(&mut Staging)) {
        if let Some(staging) = self.staging.get_mut(&source) {
            stage(staging);
        }
    }

    fn stage_object(&mut self, outcome: &mut Outcome, object: Arc<Object>) {
        let source = outcome.source;
        let (key, version) = (object.key().clone(), object.resource_version().clone());
        self.stage(source, |staging| {
            staging.undecodable.keys.remove(&key);
        });
        match self.transformed(object, Arrival::Cold(&self.shelf.clone())) {
            Transformed::Kept(object) => {
                self.shelf.settle(&object);
                self.stage(source, |staging| staging.list.stage(object));
            }
            Transformed::LeftOut => self.stage(source, |staging| staging.list.delete_key(&key, &version)),
            Transformed::Failed(reason) => {
                self.stage(source, |staging| staging.list.keep_cached(&key));
                self.failed(outcome, key, reason);
            }
        }
    }

    fn commit(&mut self, outcome: &mut Outcome, version: ResourceVersion) {
        let Some(Staging { mut list, undecodable }) = self.staging.remove(&outcome.source) else { return };
        outcome.unsteady = list.take_unsteady();
        match self.store.commit(list, version.clone()) {
            Ok(listed) => {
                self.quarantine.listed(outcome.source, &outcome.scope, &undecodable);
                outcome.changes = listed;
                outcome.applied = Some(Applied::Listed(version));
            }
            // The source was removed in the meantime, so its list is dropped.
            Err(error) if error.is_unknown_source() => {}
            Err(error) => outcome.applied = Some(Applied::ListRefused(error)),
        }
    }

    fn upsert(&mut self, outcome: &mut Outcome, object: Arc<Object>) {
        let (key, version) = (object.key().clone(), object.resource_version().clone());
        let change = match self.transformed(object, Arrival::Hot(&self.shelf.clone())) {
            Transformed::Kept(object) => {
                self.release(&key, &version);
                let change = self.store.upsert(outcome.source, object.clone());
                self.admit(change, &object)
            }
            Transformed::LeftOut => {
                self.release(&key, &version);
                self.store.delete_key(outcome.source, &key, &version)
            }
            Transformed::Failed(reason) => {
                if !self.is_past(&key, &version) {
                    self.failed(outcome, key.clone(), reason);
                }
                // The object stays as it is, but the source has reached this version.
                self.store.bookmark(outcome.source, &version);
                None
            }
        };
        outcome.changes = change.into();
        outcome.applied = Some(Applied::Upserted(key, version));
    }

    fn delete(&mut self, outcome: &mut Outcome, object: Arc<Object>) {
        let (key, version) = (object.key().clone(), object.resource_version().clone());
        self.release(&key, &version);
        let change = match self.transformed(object, Arrival::Hot(&self.shelf.clone())) {
            Transformed::Kept(object) => {
                let change = self.store.delete(outcome.source, object.clone());
                self.admit(change, &object)
            }
            Transformed::LeftOut => self.store.delete_key(outcome.source, &key, &version),
            // The deletion is applied even if the transform fails on its last state.
            Transformed::Failed(reason) => {
                outcome.failed = Some(Report::Quarantined { key: Some(key.clone()), reason });
                self.store.delete_key(outcome.source, &key, &version)
            }
        };
        outcome.changes = change.into();
        outcome.applied = Some(Applied::Deleted(key, version));
    }

    /// Ends the quarantine of an object: an event brought a good version of it, or deleted it.
    fn release(&self, key: &ObjectKey, version: &ResourceVersion) {
        self.quarantine.release(key, || self.is_past(key, version));
    }

    /// Whether the cache has a newer version. If so, this version says nothing about the newest one.
    fn is_past(&self, key: &ObjectKey, version: &ResourceVersion) -> bool {
        let is_older = |known: &Arc<Object>| version.is_older_than(known.resource_version());
        self.store.cache().with(key.as_str(), is_older).unwrap_or_default()
    }

    /// Admits the object to the hot set, unless the store refused it.
    fn admit(&self, change: Option<Change>, object: &Arc<Object>) -> Option<Change> {
        if change.is_some() {
            self.shelf.admit(object);
        }
        change
    }

    fn transformed(&mut self, object: Arc<Object>, arrival: Arrival<'_>) -> Transformed {
        let Some(transform) = &self.transform else { return Transformed::Kept(object) };
        let transformed = match transform(&object) {
            Ok(Some(transformed)) => transformed,
            Ok(None) => return Transformed::LeftOut,
            Err(reason) => return Transformed::Failed(reason),
        };
        // Lists compare contents as received, so the object keeps the hash from before the transform.
        let transformed = transformed.with_content(object.content().clone());
        let kept = match transformed.moved(arrival) {
            Ok(kept) => kept,
            Err(error) => return Transformed::Failed(error.to_string()),
        };
        let former = self.store.cache().get(kept.key());
        let kept = kept.sharing_labels(former.as_deref(), &mut self.labels);
        Transformed::Kept(Arc::new(if self.skips_managed_fields {
            kept.skipping_managed_fields()
        } else {
            kept
        }))
    }

    fn failed(&mut self, outcome: &mut Outcome, key: ObjectKey, reason: String) {
        outcome.failed = Some(Report::Quarantined { key: Some(key.clone()), reason: reason.clone() });
        self.quarantine(outcome, Some(key), reason);
    }

    fn quarantine(&mut self, outcome: &mut Outcome, key: Option<ObjectKey>, reason: String) {
        let put = self.quarantine.put(outcome.source, &outcome.scope, key.clone(), reason.clone());
        self.stage(outcome.source, |staging| {
            staging.undecodable.keys.extend(key.clone());
            staging.undecodable.some_lost |= put == Put::Lost;
        });
        if put == Put::First {
            outcome.first_quarantined = Some(Report::Quarantined { key, reason });
        }
    }
}

impl Operation {
    /// The bytes of memory that the operation holds while it waits.
    pub(super) fn bytes(&self) -> usize {
        let Self::Of { step: Step::Store(operation), .. } = self else { return 0 };
        match operation {
            StoreOperation::Stage(object)
            | StoreOperation::Unstage(object)
            | StoreOperation::Upsert(object)
            | StoreOperation::Delete(object) => object.waiting_bytes(),
            _ => 0,
        }
    }
}
