//! The store: any operations, compared with a naive model after each of them.

mod model;
mod packed;
pub mod pods;

use std::sync::{Arc, Once, Weak};

use informer_core::store::{Replace, Snapshot, SourceId};
use informer_core::{Cache, Change, Delta, Index, Object, ObjectKey, Scope, Storage, Store};

use crate::Choices;
use model::{Model, ModelList, ModelSource, TAGS, number};
use pods::{Pod, short, tags, version};

/// Any bytes are operations. Looks at everything after each of them, or, to get further, after a few.
pub fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let keys = 8 + choices.below(40);
    let check_every = 1 + choices.below(16);
    run_on(choices, keys, check_every);
}

/// The same on that many keys, at least four, with a full check after each `check_every` operations.
pub fn run_on(choices: Choices<'_>, keys: usize, check_every: usize) {
    run_kept(choices, keys, check_every, None);
}

/// The same with objects as large as in clusters, which are kept in this storage: all that can be asked of a cache has the
/// same answer wherever its objects' bytes are (contract C9).
pub fn run_kept_in(storage: &dyn Storage, choices: Choices<'_>, keys: usize, check_every: usize) {
    run_kept(choices, keys, check_every, Some(storage));
}

/// Any bytes are operations, on objects that are packed with a dictionary from the first on (design D2).
pub fn run_packed(input: &[u8]) {
    let mut choices = Choices::new(input);
    let keys = 8 + choices.below(40);
    let check_every = 1 + choices.below(16);
    run_kept_in(&packed::storage(), choices, keys, check_every);
}

fn run_kept(mut choices: Choices<'_>, keys: usize, check_every: usize, storage: Option<&dyn Storage>) {
    hush_expected_panics();
    let indexes_labels = choices.coin();
    let mut run = Run::new(choices, keys, storage);
    if indexes_labels {
        run.cache.index_labels();
    }
    for step in 0.. {
        if run.choices.are_spent() {
            break;
        }
        run.step();
        if step % check_every == 0 {
            run.check();
        }
    }
    run.check();
}

/// Index functions panic here on purpose; their messages would drown a real one, and fuzzers take any panic for real.
pub fn hush_expected_panics() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&"a tag asks for it") {
                usual(panic);
            }
        }));
    });
}

/// A few KB: much of it as other keys have it, some as this key's other versions, and with time all of it other than it was.
fn filler(key: &ObjectKey, now: u64, at: u64) -> String {
    let words = |seed: u64, count: usize| {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| format!("{:x} ", random.u32(..))).collect::<String>()
    };
    let shape = key.as_str().bytes().map(u64::from).sum::<u64>() % 7;
    words(shape + now / 700 * 7, 30 + 70 * shape as usize) + &words(1_000 + at, 6)
}

struct Run<'c> {
    choices: Choices<'c>,
    storage: Option<&'c dyn Storage>,
    /// The objects that were put into the storage.
    kept: Vec<(Weak<Object>, String)>,
    keys: Vec<ObjectKey>,
    /// The server's clock.
    now: u64,
    store: Store,
    cache: Cache,
    model: Model,
    lists: Vec<Replace>,
    model_lists: Vec<ModelList>,
    index: Option<Index<String>>,
    earlier: Vec<(Snapshot, Model)>,
    /// Each change in order: the cache must follow from them.
    followed: Vec<Arc<Object>>,
}

impl<'c> Run<'c> {
    fn new(mut choices: Choices<'c>, keys: usize, storage: Option<&'c dyn Storage>) -> Self {
        let keys = (0..keys).map(|at| {
            let namespace = ["n0/", "n1/", "n2/", "n3/", ""][choices.below(5)];
            format!("{namespace}o{at}").parse().unwrap()
        });
        let keys = keys.collect();
        let store = Store::new();
        let cache = store.cache();
        Self {
            choices,
            storage,
            kept: Vec::new(),
            keys,
            now: 100,
            store,
            cache,
            model: Model::default(),
            lists: Vec::new(),
            model_lists: Vec::new(),
            index: None,
            earlier: Vec::new(),
            followed: Vec::new(),
        }
    }

    fn object(&mut self) -> Arc<Object> {
        let choices = &mut self.choices;
        let key = &self.keys[choices.below(self.keys.len())];
        let known = self.model.get(key).map(|object| number(object));
        let at = match (choices.below(10), known) {
            (0, Some(known)) => known,
            (1, Some(known)) => known.saturating_sub(choices.number(1..20)).max(1),
            (2, _) => choices.number(1..self.now + 1),
            _ => {
                self.now += 1;
                self.now
            }
        };
        let values = ["1", "2", "3"];
        let labels: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .filter_map(|label| Some((label, *values.get(choices.below(6))?)))
            .collect();
        let count = choices.below(4);
        // The last two tags make the index function fail.
        let kinds = if choices.below(8) == 7 { 8 } else { 6 };
        let tags: Vec<_> = (0..count).map(|_| TAGS[choices.below(kinds)]).collect();
        let uid = ["u1", "u2"][choices.below(2)];
        let version = at.to_string();
        let pod = Pod { key: key.as_str(), version: &version, uid, labels: &labels, tags: &tags, filler: "" };
        let Some(storage) = self.storage else { return pod.object() };
        let filler = filler(key, self.now, at);
        let json = Pod { filler: &filler, ..pod }.json();
        let object = Object::from_json(json.as_bytes()).unwrap().kept_in(storage).unwrap();
        let object = Arc::new(object);
        self.kept.push((Arc::downgrade(&object), json));
        object
    }

    fn source(&mut self) -> Option<SourceId> {
        self.choices.pick(&self.model.sources).map(|source| source.id)
    }

    fn step(&mut self) {
        let (ours, expected): (Vec<Change>, Vec<Change>) = match self.choices.below(100) {
            0..40 => {
                let (Some(source), object) = (self.source(), self.object()) else { return };
                let ours = self.store.upsert(source, object.clone());
                (ours.into_iter().collect(), self.model.upsert(source, object).into_iter().collect())
            }
            40..55 => {
                let (Some(source), object) = (self.source(), self.object()) else { return };
                let ours = self.store.delete(source, object.clone());
                let expected = self.model.delete(source, object, &mut self.model_lists);
                (ours.into_iter().collect(), expected.into_iter().collect())
            }
            55..60 => {
                let Some(source) = self.source() else { return };
                let at = self.choices.number(1..self.now + 1);
                self.store.bookmark(source, &version(at));
                self.model.advance(source, at);
                Default::default()
            }
            60..63 => {
                let (Some(source), true) = (self.source(), self.lists.len() < 3) else { return };
                if self.lists.iter().any(|list| list.source() == source) {
                    return;
                }
                let is_restored = self.choices.below(5) == 4;
                self.lists.push(match is_restored {
                    true => self.store.begin_restored_replace(source),
                    false => self.store.begin_replace(source),
                });
                self.model_lists.push(ModelList::new(source, is_restored));
                Default::default()
            }
            63..85 => {
                if !self.lists.is_empty() {
                    (0..self.choices.below(self.keys.len() / 4)).for_each(|_| self.list_something());
                }
                Default::default()
            }
            85..90 => {
                if self.lists.is_empty() {
                    return;
                }
                let at = self.choices.below(self.lists.len());
                let (list, model_list) = (self.lists.remove(at), self.model_lists.remove(at));
                if self.choices.below(5) == 4 {
                    return drop(list);
                }
                let at = self.choices.number(self.now - self.now / 4..self.now + 1);
                let ours = self.store.commit(list, version(at)).map(Vec::from_iter);
                let expected = self.model.commit(model_list, at, &mut self.model_lists);
                assert_eq!(ours.is_ok(), expected.is_some());
                (ours.unwrap_or_default(), expected.unwrap_or_default())
            }
            90..92 => {
                let scopes = [None, Some("n0"), Some("n1"), Some("n2"), Some("n3")];
                let scope = match scopes[self.choices.below(scopes.len())] {
                    None => Scope::All,
                    Some(namespace) => Scope::Namespace(namespace.into()),
                };
                if self.model.sources.len() < 4 {
                    let id = self.store.add_source(scope.clone());
                    self.model.sources.push(ModelSource { id, scope, is_synced: false, reached: 0 });
                }
                Default::default()
            }
            92 => {
                let Some(source) = self.source() else { return };
                let ours = self.store.remove_source(source).collect();
                (ours, self.model.remove_source(source, &mut self.model_lists))
            }
            93..95 => {
                self.index = match self.index.take() {
                    None => Some(self.cache.add_index(|object: &Arc<Object>| tags(object))),
                    Some(_) => None,
                };
                Default::default()
            }
            _ => {
                let at = self.choices.below(5);
                self.earlier.truncate(4);
                self.earlier.insert(at.min(self.earlier.len()), (self.cache.snapshot(), self.model.clone()));
                Default::default()
            }
        };
        self.compare(ours, expected);
    }

    /// One thing that a list, or the first part of a streaming list, says.
    fn list_something(&mut self) {
        let at = self.choices.below(self.lists.len());
        let object = self.object();
        let (list, model_list) = (&mut self.lists[at], &mut self.model_lists[at]);
        let key = object.key();
        match self.choices.below(10) {
            6 => {
                list.delete(object.clone());
                model_list.delete(object, &self.model);
            }
            0..6 | 7 => {
                let again = self.model.get(key).cloned().unwrap_or(object);
                list.stage(again.clone());
                model_list.stage(again, &self.model);
            }
            _ => {
                list.stage(object.clone());
                model_list.stage(object, &self.model);
            }
        }
    }

    fn compare(&mut self, ours: Vec<Change>, expected: Vec<Change>) {
        let is_deletion = |change: &Change| matches!(change.delta, Delta::Deleted { .. });
        assert!(ours.is_sorted_by_key(|change| !is_deletion(change)), "deletions come first (D7)");
        let told = |changes: &[Change]| {
            let (mut gone, written): (Vec<_>, Vec<_>) =
                changes.iter().partition(|change| is_deletion(change));
            gone.sort_by_key(|change| change.key().clone());
            gone.into_iter().chain(written).map(short).collect::<Vec<_>>()
        };
        assert_eq!(told(&ours), told(&expected));
        for change in ours {
            let place = self.followed.iter().position(|object| object.key() == change.key());
            match change.delta {
                Delta::Added(new) => {
                    assert_eq!(place, None);
                    self.followed.push(new);
                }
                Delta::Updated { old, new } => {
                    assert!(Arc::ptr_eq(&self.followed[place.unwrap()], &old));
                    self.followed[place.unwrap()] = new;
                }
                Delta::Deleted { old, .. } => {
                    assert!(Arc::ptr_eq(&self.followed.swap_remove(place.unwrap()), &old));
                }
            }
        }
    }

    fn check(&mut self) {
        self.store.validate();
        self.kept.retain(|(object, json)| {
            let object = object.upgrade();
            assert!(object.as_ref().is_none_or(|object| *object.bytes().unwrap() == *json.as_bytes()));
            object.is_some()
        });
        assert_eq!(self.store.resource_version(), self.model.resource_version());
        self.model.check(&self.cache.snapshot(), &self.keys, self.index.as_ref());
        if let Some((snapshot, model)) = self.choices.pick(&self.earlier) {
            model.check(snapshot, &self.keys, self.index.as_ref());
        }
        for object in self.model.objects.iter().take(3) {
            assert!(self.cache.is_unchanged(object.key().as_str(), object.resource_version()));
        }
        let mut followed: Vec<_> = self.followed.iter().map(Arc::as_ptr).collect();
        let mut expected: Vec<_> = self.model.objects.iter().map(Arc::as_ptr).collect();
        followed.sort();
        expected.sort();
        assert_eq!(followed, expected, "the changes add up to the content");
    }
}
