//! The cache of an informer and who listens to it, as `crates/informer/src/shared/fanout.rs` tells them, and checks of both.

use std::sync::Arc;

use informer_core::mailbox::Notice;
use informer_core::reader::{Expected, Reader};
use informer_core::store::Snapshot;
use informer_core::{Cache, Change, Delta, Index, Object, ResourceVersion, Selector, Storage, Store};

use crate::invariant::{Invariant, Violation};
use crate::plan::Reading;
use crate::render;
use crate::subscription::Subscription;
use crate::trace::Trace;
use crate::truth::{KEYS, Key, NAMESPACES, Truth, namespace};

/// The cache and the subscriptions.
pub(crate) struct Content {
    pub(crate) store: Store,
    pub(crate) cache: Cache,
    pub(crate) reader: Reader,
    /// Where its objects are kept.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) subscriptions: Vec<Subscription>,
    synced: bool,
    pub(crate) doubts: Doubts,
    /// The past of the last list that was committed.
    pub(crate) epoch: Option<usize>,
    /// A restored backup was reported since this was last asked.
    pub(crate) restored: bool,
    last_version: ResourceVersion,
    /// A source was removed since this was last asked.
    pub(crate) removed: bool,
    held: Vec<Held>,
    index: Option<Index<&'static str>>,
    odd: Selector,
    checked: Option<u64>,
}

/// Whose story may be told in another order than it happened: once in doubt, for the rest of the informer's life.
#[derive(Clone, Default)]
pub(crate) struct Doubts {
    everything: bool,
    keys: [bool; KEYS as usize],
}

/// A snapshot that somebody keeps, and what it had.
struct Held {
    snapshot: Snapshot,
    version: ResourceVersion,
    objects: Vec<Arc<Object>>,
}

const HELD: usize = 3;

impl Doubts {
    pub(crate) fn everything(&mut self) {
        self.everything = true;
    }

    pub(crate) fn of(&mut self, key: Key) {
        if let Some(doubt) = self.keys.get_mut(usize::from(key.0)) {
            *doubt = true;
        }
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.everything || self.keys.get(usize::from(key.0)).copied().unwrap_or_default()
    }
}

impl Content {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        let store = Store::new();
        let pods = Expected { api_version: "v1".into(), kind: "Pod".into(), or_kind: None };
        Self {
            cache: store.cache(),
            reader: Reader::new(store.cache(), storage.clone(), pods, None),
            storage,
            store,
            subscriptions: Vec::new(),
            synced: false,
            doubts: Doubts::default(),
            epoch: None,
            restored: false,
            last_version: ResourceVersion::UNSET,
            removed: false,
            held: Vec::new(),
            index: None,
            odd: "app=odd".parse().unwrap_or_default(),
            checked: None,
        }
    }

    /// Changes the cache, and tells everybody what came of it.
    pub(crate) fn change(
        &mut self,
        change: impl FnOnce(&mut Store) -> Result<Vec<Change>, Violation>,
    ) -> Result<(), Violation> {
        let changes = change(&mut self.store)?;
        let is_deletion = |change: &Change| matches!(change.delta, Delta::Deleted { .. });
        let behind = changes.iter().skip_while(|change| is_deletion(change));
        Invariant::Content.holds(!behind.clone().any(is_deletion), || {
            format!("a deletion comes behind other changes of its step: {changes:?}")
        })?;
        let revision = self.store.revision();
        for subscription in &mut self.subscriptions {
            for change in &changes {
                subscription.offer(revision, change);
            }
        }
        if self.store.is_synced() && !std::mem::replace(&mut self.synced, true) {
            let snapshot = self.cache.snapshot();
            for subscription in &mut self.subscriptions {
                subscription.cache_synced(&snapshot);
            }
        }
        Ok(())
    }

    pub(crate) fn subscribe(&mut self, reading: Reading) {
        let mut subscription = Subscription::new(reading, self.synced);
        if !reading.slow_to_join {
            subscription.join(&self.cache);
            subscription.join(&self.cache);
        }
        self.subscriptions.push(subscription);
    }

    /// Who is slow to join has a look at the cache before it is loaded.
    pub(crate) fn look_before_loading(&mut self) {
        for subscription in self.subscriptions.iter_mut().filter(|subscription| !subscription.is_joined()) {
            subscription.join(&self.cache);
        }
    }

    /// Lets a subscription take so many notices.
    pub(crate) fn read(
        &mut self,
        which: usize,
        notices: usize,
        truth: &Truth,
        trace: &mut Trace,
    ) -> Result<(), Violation> {
        let Some(subscription) = self.subscriptions.get_mut(which) else { return Ok(()) };
        if !subscription.is_joined() {
            subscription.join(&self.cache);
            return Ok(());
        }
        for _ in 0..notices {
            let Some(notice) = subscription.take() else { break };
            trace.line(|| format!("       reader {which}: {}", shown(&notice)));
            subscription.told(&notice, &self.cache, self.synced, &self.doubts, truth).map_err(
                |violation| Violation { what: format!("reader {which}: {}", violation.what), ..violation },
            )?;
        }
        Ok(())
    }

    pub(crate) fn read_all(&mut self, truth: &Truth, trace: &mut Trace) -> Result<(), Violation> {
        for which in 0..self.subscriptions.len() {
            // Twice to join, then everything.
            for _ in 0..3 {
                self.read(which, usize::MAX, truth, trace)?;
            }
        }
        Ok(())
    }

    pub(crate) fn check_nothing_lost(&self) -> Result<(), Violation> {
        for (which, subscription) in self.subscriptions.iter().enumerate() {
            subscription
                .knows_all_of(&self.cache, self.synced)
                .map_err(|what| Invariant::Lost.violated(format!("reader {which}: {what}")))?;
        }
        Ok(())
    }

    pub(crate) fn keep_snapshot(&mut self) {
        let snapshot = self.cache.snapshot();
        let (version, objects) = (snapshot.resource_version().clone(), snapshot.iter().cloned().collect());
        if self.held.len() == HELD {
            self.held.remove(0);
        }
        self.held.push(Held { snapshot, version, objects });
    }

    pub(crate) fn toggle_index(&mut self) {
        self.index = match self.index.take() {
            Some(_) => None,
            None => Some(self.cache.add_index(|object: &Object| {
                Ok(render::read(object).map(|(_, state)| render::label(state.value)).into_iter().collect())
            })),
        };
        self.checked = None;
    }

    /// What has to hold after each step, whatever happened.
    pub(crate) fn check(&mut self) -> Result<(), Violation> {
        self.check_progress()?;
        for (which, subscription) in self.subscriptions.iter().enumerate() {
            subscription
                .check_bound()
                .map_err(|what| Invariant::Bound.violated(format!("reader {which}: {what}")))?;
        }
        let revision = self.store.revision();
        if self.checked == Some(revision) {
            return Ok(());
        }
        self.checked = Some(revision);
        self.check_snapshots()
    }

    fn check_progress(&mut self) -> Result<(), Violation> {
        let version = self.cache.resource_version();
        let back =
            version.is_older_than(&self.last_version) || version.is_unset() && !self.last_version.is_unset();
        let restored = std::mem::take(&mut self.restored);
        let removed = std::mem::take(&mut self.removed);
        let may_be_unset = !version.is_unset() || removed;
        Invariant::Progress.holds(!back || (restored || removed) && may_be_unset, || {
            format!("the cache's version went from {:?} to {version:?}", self.last_version)
        })?;
        self.last_version = version;
        Ok(())
    }

    fn check_snapshots(&self) -> Result<(), Violation> {
        for Held { snapshot, version, objects } in &self.held {
            let same = snapshot.len() == objects.len()
                && snapshot.resource_version() == version
                && snapshot.iter().zip(objects).all(|(now, then)| Arc::ptr_eq(now, then));
            Invariant::Snapshot
                .holds(same, || format!("a snapshot has changed: {objects:?} to {snapshot:?}"))?;
        }
        let snapshot = self.cache.snapshot();
        let is_odd = |object: &&Arc<Object>| object.labels().value("app") == Some("odd");
        let odd = snapshot.iter().filter(is_odd).count();
        Invariant::Snapshot.holds(snapshot.select(&self.odd).filter(is_odd).count() == odd, || {
            "a selector does not find what has its label".to_owned()
        })?;
        for number in 0..NAMESPACES {
            let name = namespace(number);
            let is_in = |object: &&Arc<Object>| object.key().namespace() == Some(name);
            let right = snapshot.namespace(name).filter(is_in).count();
            Invariant::Snapshot.holds(
                right == snapshot.iter().filter(is_in).count() && right == snapshot.namespace(name).count(),
                || format!("namespace {name} has other objects than the whole has of it"),
            )?;
        }
        if let Some(index) = &self.index {
            let found = index.lookup(&snapshot, &"odd");
            Invariant::Snapshot.holds(
                found.filter(is_odd).count() == odd && index.count(&snapshot, &"odd") == odd,
                || "an index does not find what is filed under it".to_owned(),
            )?;
        }
        Ok(())
    }
}

fn shown(notice: &Notice) -> String {
    match notice {
        Notice::Change { change, initial } => {
            let initial = if *initial { " (initial)" } else { "" };
            match &change.delta {
                Delta::Added(new) => format!("+ {new:?}{initial}"),
                Delta::Updated { old, new } => format!("{old:?} -> {new:?}{initial}"),
                Delta::Deleted { old, last } => format!("- {old:?}, last {last:?}{initial}"),
            }
        }
        other => format!("{other:?}"),
    }
}
