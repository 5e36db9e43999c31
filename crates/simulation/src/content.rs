//! The tested informer: an engine with its subscriptions, and the checks of both.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use informer_core::engine::{self, Compute, Computed, Engine, Start, Subscriber};
use informer_core::mailbox::{self, Delivery, Notice, WhenFull};
use informer_core::reader::Expected;
use informer_core::reflector::Status;
use informer_core::store::{IndexReport, Snapshot};
use informer_core::{
    Cache, Delta, HotSet, Index, Object, ObjectKey, ResourceVersion, Retention, Scope, Selector, Shelf,
    Storage,
};

use crate::doubt::Doubts;
use crate::guest::{Guest, fails_index};
use crate::invariant::{Invariant, Violation};
use crate::plan::{self, Reading};
use crate::render::number;
use crate::subscription::{PLENTY, Subscription};
use crate::trace::Trace;
use crate::truth::{Key, NAMESPACES, Truth, namespace, scope};

/// The engine and its subscriptions.
pub(crate) struct Content {
    pub(crate) engine: Engine,
    /// The storage of its objects.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) subscriptions: Vec<Subscription>,
    /// User code that has to run, or whose result has to be returned.
    code: Option<Code>,
    /// A subscription that reads everything at once. It says what the others have to receive.
    witness: Arc<Subscriber>,
    witnessed: BTreeMap<ObjectKey, Arc<Object>>,
    pub(crate) synced: bool,
    /// The witness's view at the end of the initial list, which was not compared with the history yet.
    pub(crate) first: Option<BTreeMap<ObjectKey, Arc<Object>>>,
    /// The doubts of the present. A subscription may read what they concern much later.
    pub(crate) doubts: Doubts,
    guest: Guest,
    /// The epoch of the last committed list.
    pub(crate) epoch: Option<usize>,
    /// The engine reported a restored backup since the last check.
    pub(crate) restored: bool,
    last_version: ResourceVersion,
    /// A source was removed since the last check.
    pub(crate) removed: bool,
    /// The loaded versions, also of sources that the engine has not started.
    pub(crate) loaded: HashMap<Scope, ResourceVersion>,
    held: Vec<Held>,
    index: Option<Index<&'static str>>,
    odd: Selector,
    checked: Option<u64>,
    /// The objects, with their versions, for which the engine reported a failure of the index.
    reported: BTreeSet<(Key, u64)>,
    /// The number of changes that the engine has notified of since the last input.
    pub(crate) heard: usize,
    /// The number of operations that the engine has applied since then.
    pub(crate) steps: usize,
    /// The keys that the cache had before the last input.
    before: Vec<Key>,
    /// A list is under way, so resyncs wait.
    pub(crate) is_listing: bool,
    /// The status of the whole informer.
    pub(crate) status: Status,
}

pub(crate) enum Code {
    Asked(Box<Compute>),
    Run(Box<Computed>),
}

/// A snapshot that a caller keeps, and its objects when it was taken.
struct Held {
    snapshot: Snapshot,
    version: ResourceVersion,
    objects: Vec<Arc<Object>>,
}

const HELD: usize = 3;

impl Content {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        // So small that most versions cool during the run.
        let hot = HotSet::new(8 << 10);
        let engine = Engine::new(Shelf::new(&hot, storage.clone(), Retention::WhileHot));
        let mode = mailbox::Mode::Every { capacity: PLENTY.into(), when_full: WhenFull::Coalesce };
        let delivery = Delivery { mode, ..Delivery::default() };
        let witness = engine.fanout().subscribe(delivery);
        let witness = witness.unwrap_or_else(|| unreachable!("a new engine has not stopped"));
        witness.with_mailbox(|mailbox| mailbox.join(Vec::new(), 0));
        Self {
            engine,
            storage,
            subscriptions: Vec::new(),
            code: None,
            witness,
            witnessed: BTreeMap::new(),
            synced: false,
            first: None,
            doubts: Doubts::default(),
            guest: Guest::default(),
            epoch: None,
            restored: false,
            last_version: ResourceVersion::UNSET,
            removed: false,
            loaded: HashMap::new(),
            held: Vec::new(),
            index: None,
            odd: "app=odd".parse().unwrap_or_default(),
            checked: None,
            reported: BTreeSet::new(),
            heard: 0,
            steps: 0,
            before: Vec::new(),
            is_listing: false,
            status: Status::NotStarted,
        }
    }

    /// The start of an engine for these scopes.
    pub(crate) fn start(scopes: impl IntoIterator<Item = Scope>) -> Start {
        Start::new(Expected { api_version: "v1".into(), kind: "Pod".into(), or_kind: None }, scopes)
    }

    pub(crate) fn cache(&self) -> &Cache {
        self.engine.cache()
    }

    /// Whether the key is in quarantine.
    pub(crate) fn is_quarantined(&self, key: Key) -> bool {
        let quarantine = self.engine.quarantine();
        !quarantine.is_empty() && quarantine.all().iter().any(|held| held.key.as_str() == key.text())
    }

    /// Whether user code has the writer. Then the cache may be ahead of the subscriptions.
    pub(crate) fn is_lent(&self) -> bool {
        self.code.is_some() || self.engine.reach(&Scope::All).is_err()
    }

    /// Whether the cache may be ahead of the subscriptions.
    pub(crate) fn is_ahead(&self) -> bool {
        self.is_lent() || self.engine.has_work()
    }

    pub(crate) fn lend(&mut self, compute: Box<Compute>) {
        self.code = Some(Code::Asked(compute));
    }

    /// Whether user code has to run, or its result has to be returned.
    pub(crate) fn has_code(&self) -> bool {
        self.code.is_some()
    }

    /// Runs waiting user code. The next call returns its result.
    pub(crate) fn run_code(&mut self) -> Option<Box<Computed>> {
        match self.code.take()? {
            Code::Asked(compute) => {
                self.code = Some(Code::Run(Box::new(self.guest.allowed(|| compute.run()))));
                None
            }
            Code::Run(computed) => Some(computed),
        }
    }

    /// The version that the source of a namespace has reached; unset while that is unknown.
    pub(crate) fn source_version(&self, namespace: Option<u8>) -> ResourceVersion {
        match self.engine.reach(&scope(namespace)) {
            Ok(Some(reach)) => reach.resource_version,
            // The source was loaded, and the engine has not started it.
            Ok(None) => self.loaded.get(&scope(namespace)).cloned().unwrap_or_default(),
            Err(_) => ResourceVersion::UNSET,
        }
    }

    /// Remembers the cached keys before an input.
    pub(crate) fn look_before(&mut self) {
        self.before.clear();
        // A compute applies many operations, and nothing shows the states in between.
        if !self.is_lent() {
            self.before.extend(Key::all().filter(|key| self.engine.cache().get_str(key.text()).is_some()));
        }
    }

    /// Whether the cache had an object of the key before the last input.
    pub(crate) fn had(&self, key: Key) -> bool {
        !self.is_lent() && self.before.contains(&key)
    }

    /// The key is in doubt, for each subscription, too.
    pub(crate) fn doubt(&mut self, key: Key) {
        self.doubts.of(key);
        self.subscriptions.iter_mut().for_each(|subscription| subscription.doubts.of(key));
    }

    /// From now on these keys are in doubt, and no others.
    pub(crate) fn are_in_doubt(&mut self, doubts: Doubts) {
        for subscription in &mut self.subscriptions {
            subscription.doubts.join(&doubts);
        }
        self.doubts = doubts;
    }

    pub(crate) fn doubt_everything(&mut self) {
        self.doubts.everything();
        self.subscriptions.iter_mut().for_each(|subscription| subscription.doubts.everything());
    }

    /// The transform of a plan.
    pub(crate) fn transform(&self, transform: plan::Transform) -> Option<engine::TransformFn> {
        self.guest.transform(transform)
    }

    /// Reads the witness, and expects the same of all subscriptions.
    pub(crate) fn listen(&mut self) {
        let revision = self.engine.cache().snapshot().revision();
        while let Some(notice) = self.witness.take() {
            match notice {
                Notice::Change { change, initial } => {
                    self.heard += 1;
                    match &change.delta {
                        Delta::Added(new) | Delta::Updated { new, .. } => {
                            self.witnessed.insert(new.key().clone(), new.clone());
                        }
                        Delta::Deleted { last, .. } => drop(self.witnessed.remove(last.key())),
                    }
                    for subscription in &mut self.subscriptions {
                        subscription.offered(revision, &change, initial);
                    }
                }
                Notice::Synced => {
                    self.synced = true;
                    let first: Vec<_> = self.witnessed.values().cloned().collect();
                    for subscription in &mut self.subscriptions {
                        subscription.cache_synced(&first);
                    }
                    self.first = Some(self.witnessed.clone());
                }
                // The witness has room for every change.
                Notice::Lagged(_) => {}
            }
        }
    }

    /// The engine loaded a cache. The witness starts with its objects.
    pub(crate) fn loaded(&mut self) {
        let snapshot = self.engine.cache().snapshot();
        let present: Vec<_> = snapshot.iter().map(Arc::clone).collect();
        while self.witness.take().is_some() {}
        self.witnessed = present.iter().map(|object| (object.key().clone(), object.clone())).collect();
        for subscription in &mut self.subscriptions {
            subscription.load(snapshot.revision(), &present);
        }
    }

    pub(crate) fn subscribe(&mut self, reading: Reading) {
        let doubts = self.doubts.clone();
        let Some(mut subscription) = Subscription::new(reading, &self.engine, self.synced, doubts) else {
            return;
        };
        if self.is_lent() {
            subscription.joins_beside_user_code();
        }
        if !reading.slow_to_join {
            subscription.join(self.engine.cache());
            subscription.join(self.engine.cache());
        }
        self.subscriptions.push(subscription);
    }

    /// Lets each subscription that is slow to join take its snapshot before the load.
    pub(crate) fn look_before_loading(&mut self) {
        for subscription in self.subscriptions.iter_mut().filter(|subscription| !subscription.is_joined()) {
            subscription.join(self.engine.cache());
        }
    }

    /// Lets a subscription take this many notices.
    pub(crate) fn read(
        &mut self,
        which: usize,
        notices: usize,
        truth: &Truth,
        trace: &mut Trace,
    ) -> Result<(), Violation> {
        let is_ahead = self.is_ahead();
        let Some(subscription) = self.subscriptions.get_mut(which) else { return Ok(()) };
        if is_ahead {
            subscription.joins_beside_user_code();
        }
        if !subscription.is_joined() {
            subscription.join(self.engine.cache());
            subscription.is_not_done();
            return Ok(());
        }
        subscription.sleep();
        for taken in 0..=notices {
            if taken == notices {
                subscription.is_not_done();
                break;
            }
            let Some(notice) = subscription.take() else {
                // The mailbox is empty, so only the doubts of the present are left.
                subscription.doubts = self.doubts.clone();
                if !is_ahead {
                    let cache = self.engine.cache();
                    subscription.is_up_to_date(cache, self.is_listing).map_err(|what| {
                        Invariant::Lost.violated(format!("reader {which}, which has read everything: {what}"))
                    })?;
                }
                break;
            };
            trace.line(|| format!("       reader {which}: {}", shown(&notice)));
            subscription.receive(&notice, self.engine.cache(), self.synced, truth).map_err(|violation| {
                Violation { what: format!("reader {which}: {}", violation.what), ..violation }
            })?;
        }
        Ok(())
    }

    pub(crate) fn resync(&mut self, which: usize) {
        if let Some(subscription) = self.subscriptions.get_mut(which) {
            subscription.resync(self.engine.cache());
        }
    }

    /// Each reader with something to read was woken.
    pub(crate) fn check_wakes(&self) -> Result<(), Violation> {
        let asleep = self.subscriptions.iter().position(|subscription| subscription.oversleeps(self.synced));
        Invariant::Lost.holds(asleep.is_none() || self.is_ahead(), || {
            format!("reader {asleep:?} sleeps, and has something to read")
        })
    }

    /// An index function failed, and the engine says so.
    pub(crate) fn index_failed(&mut self, report: &IndexReport) {
        self.reported.extend(Key::of(report.key.as_str()).map(|key| (key, number(&report.resource_version))));
    }

    /// The cached objects for which the index function fails, with their versions.
    fn failing(&self) -> impl Iterator<Item = (Key, u64)> {
        let snapshot = self.cache().snapshot();
        let failing = snapshot
            .iter()
            .filter(|object| fails_index(object))
            .filter_map(|object| Some((Key::of(object.key().as_str())?, number(object.resource_version()))));
        failing.collect::<Vec<_>>().into_iter()
    }

    pub(crate) fn check_resyncs(&self) -> Result<(), Violation> {
        let waiting = self.subscriptions.iter().position(Subscription::waits_for_resync);
        Invariant::Lost.holds(waiting.is_none(), || format!("the resync of reader {waiting:?} never comes"))
    }

    pub(crate) fn read_all(&mut self, truth: &Truth, trace: &mut Trace) -> Result<(), Violation> {
        for which in 0..self.subscriptions.len() {
            // Two calls join it, the third one reads everything.
            for _ in 0..3 {
                self.read(which, usize::MAX, truth, trace)?;
            }
        }
        Ok(())
    }

    pub(crate) fn check_nothing_lost(&self) -> Result<(), Violation> {
        for (which, subscription) in self.subscriptions.iter().enumerate() {
            subscription
                .knows_all_of(self.engine.cache(), self.synced)
                .map_err(|what| Invariant::Lost.violated(format!("reader {which}: {what}")))?;
        }
        Ok(())
    }

    pub(crate) fn keep_snapshot(&mut self) {
        let snapshot = self.cache().snapshot();
        let (version, objects) = (snapshot.resource_version().clone(), snapshot.iter().cloned().collect());
        if self.held.len() == HELD {
            self.held.remove(0);
        }
        self.held.push(Held { snapshot, version, objects });
    }

    pub(crate) fn toggle_index(&mut self) {
        self.index = match self.index.take() {
            Some(_) => None,
            None => Some(self.guest.allowed(|| {
                let index = self.guest.index();
                self.cache().add_index(move |object: &Arc<Object>| Ok(index(object)?))
            })),
        };
        // The next compute reports the failures of an index that is added late.
        self.reported = self.failing().collect();
        self.checked = None;
    }

    /// Checks what must hold after each step. This many controllers are subscribed.
    pub(crate) fn check(&mut self, controllers: usize) -> Result<(), Violation> {
        self.check_progress()?;
        // The subscriptions of the run, those of controllers, and the witness.
        let (count, right) = (self.engine.fanout().len(), self.subscriptions.len() + controllers + 1);
        let is_stopped = self.witness.is_closed();
        Invariant::Bound.holds(is_stopped || count == right, || {
            format!("there are {count} subscriptions instead of {right}")
        })?;
        Invariant::Guest
            .holds(!self.guest.was_elsewhere(), || "user code ran outside a compute".to_owned())?;
        for (which, subscription) in self.subscriptions.iter().enumerate() {
            subscription
                .check_bound()
                .map_err(|what| Invariant::Bound.violated(format!("reader {which}: {what}")))?;
        }
        let revision = self.cache().snapshot().revision();
        if self.checked == Some(revision) {
            return Ok(());
        }
        self.checked = Some(revision);
        self.check_snapshots()
    }

    fn check_progress(&mut self) -> Result<(), Violation> {
        let version = self.cache().resource_version();
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
        let snapshot = self.cache().snapshot();
        let is_odd = |object: &&Arc<Object>| object.labels().value("app") == Some("odd");
        let odd = snapshot.iter().filter(is_odd).count();
        Invariant::Snapshot.holds(snapshot.select(&self.odd).filter(is_odd).count() == odd, || {
            "a selector does not find the objects with its label".to_owned()
        })?;
        for number in 0..NAMESPACES {
            let name = namespace(number);
            let is_in = |object: &&Arc<Object>| object.key().namespace() == Some(name);
            let right = snapshot.namespace(name).filter(is_in).count();
            Invariant::Snapshot.holds(
                right == snapshot.iter().filter(is_in).count() && right == snapshot.namespace(name).count(),
                || format!("namespace {name} has other objects than a scan finds"),
            )?;
        }
        if let Some(index) = &self.index {
            let unreported = self.failing().find(|failing| !self.reported.contains(failing));
            Invariant::Guest.holds(unreported.is_none(), || {
                format!("the index function fails for {unreported:?}, and no report says so")
            })?;
            let odd = snapshot.iter().filter(is_odd).filter(|object| !fails_index(object)).count();
            let found = index.lookup(&snapshot, &"odd");
            Invariant::Snapshot.holds(
                found.filter(is_odd).count() == odd && index.count(&snapshot, &"odd") == odd,
                || "an index does not find the objects of its value".to_owned(),
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
