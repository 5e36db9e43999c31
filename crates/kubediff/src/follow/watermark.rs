//! The low watermark of a watch: the greatest version up to which everything that the watch delivered has left the inbox.
//!
//! Changes do not leave the inbox in the order of their versions: beyond its bound, the backlog merges a change into the place of an
//! earlier one of its object. So the version of a change that left says nothing of smaller versions. Instead, each change keeps the
//! watermark below its version for as long as it exists: in the backlog, while it is held, or in an unfinished first list.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer::{ObjectKey, ResourceVersion};

use crate::Origin;
use crate::model::position;
use crate::model::targets::Target;

/// The watches of a target by their namespaces; without a name, that of all namespaces.
pub(crate) struct Watches(HashMap<String, Arc<Watermark>>);

impl Watches {
    /// One in each of these namespaces, or one in all.
    pub(crate) fn new(target: &Target, namespaces: Option<&[String]>) -> Self {
        let text = target.text();
        let watch = |namespace: Option<&String>| {
            let name = position::of_watch(&text, namespace.map(String::as_str));
            (namespace.cloned().unwrap_or_default(), Arc::new(Watermark::new(name)))
        };
        Self(match namespaces.filter(|_| target.resource.namespaced) {
            Some(names) => names.iter().map(|name| watch(Some(name))).collect(),
            None => HashMap::from([watch(None)]),
        })
    }

    /// An object of the first list arrives.
    pub(super) fn first(&self, key: &ObjectKey, version: &ResourceVersion) {
        if let Some(watermark) = self.of(key) {
            watermark.lock().progress.list(version);
        }
    }

    /// A change arrives: the object has this version now, or is gone.
    pub(super) fn change(
        &self,
        key: &ObjectKey,
        version: &ResourceVersion,
        origin: Origin,
        is_gone: bool,
    ) -> Arrival {
        self.of(key).map_or(Arrival::New(None), |watermark| watermark.arrival(version, origin, is_gone))
    }

    /// The first list is complete. The watermarks, which count once all before is recorded.
    pub(crate) fn synced(&self) -> Vec<Arc<Watermark>> {
        self.0.values().for_each(|watermark| watermark.lock().progress.synced());
        self.0.values().cloned().collect()
    }

    fn of(&self, key: &ObjectKey) -> Option<&Arc<Watermark>> {
        self.0.get(key.namespace().unwrap_or_default()).or_else(|| self.0.get(""))
    }
}

/// The low watermark of one watch.
pub(crate) struct Watermark {
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What arrived.
    progress: Progress,
    arrivals: u64,
    /// What waits, by its arrival: the watermark for as long as nothing before it waits.
    waiting: BTreeMap<u64, Option<ResourceVersion>>,
    /// The latest arrival that has left.
    left: u64,
    /// Another process has recorded everything up to this version, which the watch has not delivered yet.
    recorded: Option<ResourceVersion>,
}

impl State {
    /// The version up to which everything has arrived, here or at the process before.
    fn reached(&self) -> Option<ResourceVersion> {
        self.recorded.clone().or_else(|| self.progress.reached())
    }
}

/// A change arrives.
pub(super) enum Arrival {
    /// It waits from now on, unless its watch is unknown.
    New(Option<Hold>),
    /// Another process has recorded it.
    Recorded,
}

impl Watermark {
    fn new(name: String) -> Self {
        Self { name, state: Mutex::default() }
    }

    /// The name of its position in a history.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The version; `None` while no version is known up to which everything has left.
    pub(crate) fn version(&self) -> Option<ResourceVersion> {
        let state = self.lock();
        match state.waiting.first_key_value() {
            Some((_, before)) => before.clone(),
            None => state.reached(),
        }
    }

    /// Whether more is recorded than the watermark says: something has left that arrived after something that waits, or came with a list.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.lock();
        match state.waiting.first_key_value() {
            Some((first, _)) => *first < state.left,
            None => state.left > 0 && state.reached().is_none(),
        }
    }

    /// Another process has recorded everything up to this version, which this watch may not have delivered yet.
    pub(super) fn go_on(&self, version: &ResourceVersion) {
        let mut state = self.lock();
        let has = state.progress.reached().is_some_and(|reached| reached.is_at_least(version));
        state.recorded = Some(version.clone()).filter(|_| !has);
    }

    fn arrival(self: &Arc<Self>, version: &ResourceVersion, origin: Origin, is_gone: bool) -> Arrival {
        let mut state = self.lock();
        let before = state.reached();
        let of_others = state.recorded.take().filter(|_| origin == Origin::Watch);
        let is_recorded = of_others.as_ref().is_some_and(|recorded| recorded.is_at_least(version));
        state.recorded = of_others.filter(|recorded| version.is_older_than(recorded));
        state.progress.change(version, origin, is_gone);
        state.arrivals += 1;
        if is_recorded {
            return Arrival::Recorded;
        }
        let arrival = state.arrivals;
        state.waiting.insert(arrival, before);
        Arrival::New(Some(Hold { watermark: self.clone(), arrival }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the watermark below the change with which it arrived, until it is dropped.
pub(crate) struct Hold {
    watermark: Arc<Watermark>,
    arrival: u64,
}

impl Hold {
    /// The name of the watch.
    pub(super) fn watch(&self) -> &str {
        self.watermark.name()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.watermark.lock();
        state.waiting.remove(&self.arrival);
        state.left = state.left.max(self.arrival);
    }
}

/// How far a watch has delivered.
enum Progress {
    /// The first list is not complete. Its objects come in no order; the greatest of their versions.
    Listing(Option<ResourceVersion>),
    /// Everything up to this version. After another list it is unknown until the watch delivers a version: the objects that a list
    /// changes come in no order either, nobody says which is the last, and the server may have gone back to a backup.
    Watching(Option<ResourceVersion>),
    /// The versions are no numbers, or came in another order.
    Unordered,
}

impl Default for Progress {
    fn default() -> Self {
        Self::Listing(None)
    }
}

impl Progress {
    fn reached(&self) -> Option<ResourceVersion> {
        match self {
            Self::Watching(version) => version.clone(),
            Self::Listing(_) | Self::Unordered => None,
        }
    }

    fn list(&mut self, version: &ResourceVersion) {
        let Self::Listing(greatest) = self else { return };
        match greatest {
            _ if !is_number(version) => *self = Self::Unordered,
            Some(greatest) if greatest.is_at_least(version) => {}
            _ => *greatest = Some(version.clone()),
        }
    }

    fn change(&mut self, version: &ResourceVersion, origin: Origin, is_gone: bool) {
        match self {
            Self::Listing(_) => self.list(version),
            Self::Watching(reached) if origin != Origin::Watch => *reached = None,
            Self::Watching(Some(before)) if before.is_older_than(version) => before.clone_from(version),
            // Some deletions come without a state, and have the version of the last one.
            Self::Watching(_) if is_gone => {}
            Self::Watching(reached @ None) if is_number(version) => *reached = Some(version.clone()),
            Self::Watching(_) => *self = Self::Unordered,
            Self::Unordered => {}
        }
    }

    fn synced(&mut self) {
        if let Self::Listing(greatest) = self {
            *self = Self::Watching(greatest.take());
        }
    }
}

/// Whether it has an order among others: KEP-5504.
pub(super) fn is_number(version: &ResourceVersion) -> bool {
    version.is_at_least(&ResourceVersion::new("1"))
}

#[cfg(test)]
mod tests {
    use informer::ResourceType;

    use super::*;

    /// What arrives at a watch of one namespace.
    struct Arrivals(Watches);

    impl Arrivals {
        fn new() -> Self {
            let (group, version, plural, kind) = Default::default();
            let resource = ResourceType { group, version, plural, kind, namespaced: true };
            Self(Watches::new(&Target { resource, name: None }, Some(&["shop".to_owned(), "dev".to_owned()])))
        }

        fn key(namespace: &str) -> ObjectKey {
            ObjectKey::new(Some(namespace), "cart").unwrap()
        }

        fn listed(versions: &[&str]) -> Self {
            let arrivals = Self::new();
            for version in versions {
                arrivals.0.first(&Self::key("shop"), &ResourceVersion::new(version));
            }
            arrivals.0.synced();
            arrivals
        }

        fn change(&self, version: &str, origin: Origin) -> Hold {
            self.hold(version, origin, false)
        }

        fn deletion(&self, version: &str) -> Hold {
            self.hold(version, Origin::Watch, true)
        }

        fn hold(&self, version: &str, origin: Origin, is_gone: bool) -> Hold {
            match self.0.change(&Self::key("shop"), &ResourceVersion::new(version), origin, is_gone) {
                Arrival::New(Some(hold)) => hold,
                _ => panic!("it is new"),
            }
        }

        fn of(&self, namespace: &str) -> String {
            let version = self.0.of(&Self::key(namespace)).unwrap().version();
            version.map_or_else(|| "none".to_owned(), |version| version.to_string())
        }
    }

    #[test]
    fn k1_a_first_list_reaches_its_greatest_version_and_each_namespace_its_own() {
        let arrivals = Arrivals::listed(&["9", "100", "99"]);
        assert_eq!([arrivals.of("shop"), arrivals.of("dev")], ["100", "none"]);
        let waits = arrivals.change("101", Origin::Watch);
        drop(arrivals.change("102", Origin::Watch));
        assert_eq!(arrivals.of("shop"), "100");
        drop(waits);
        assert_eq!([arrivals.of("shop"), arrivals.of("dev")], ["102", "none"]);
    }

    #[test]
    fn k1_after_a_list_no_version_is_known_until_the_watch_delivers_one() {
        let arrivals = Arrivals::listed(&["1000"]);
        // The server was restored from a backup.
        let waits = arrivals.change("400", Origin::List);
        let next = arrivals.change("501", Origin::Watch);
        assert_eq!(arrivals.of("shop"), "1000");
        drop(waits);
        assert_eq!(arrivals.of("shop"), "none");
        drop(next);
        assert_eq!(arrivals.of("shop"), "501");
    }

    #[test]
    fn k1_versions_without_an_order_have_no_watermark() {
        for versions in [["7", "7"], ["8", "7"], ["x", "9"], ["07", "9"], ["", "9"]] {
            let arrivals = Arrivals::listed(&["5"]);
            versions.iter().for_each(|version| drop(arrivals.change(version, Origin::Watch)));
            drop(arrivals.change("10", Origin::Watch));
            assert_eq!(arrivals.of("shop"), "none", "{versions:?}");
        }
        let arrivals = Arrivals::listed(&["5", "etag"]);
        drop(arrivals.change("10", Origin::Watch));
        assert_eq!(arrivals.of("shop"), "none");
    }

    #[test]
    fn k1_a_deletion_without_a_version_of_its_own_moves_nothing() {
        let arrivals = Arrivals::listed(&["5"]);
        let waits = arrivals.deletion("3");
        drop(arrivals.change("6", Origin::Watch));
        assert_eq!(arrivals.of("shop"), "5");
        drop(waits);
        assert_eq!(arrivals.of("shop"), "6");
        drop(arrivals.deletion("7"));
        assert_eq!(arrivals.of("shop"), "7");
    }
}
