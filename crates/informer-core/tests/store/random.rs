//! Random operations, compared with the model after each step.

use std::sync::Arc;

use informer_core::store::{Replace, Snapshot, SourceId};
use informer_core::{Cache, Change, Delta, Index, Object, ObjectKey, Scope, Store};

use crate::fixture::{Pod, short, tags, version};
use crate::model::{Model, ModelList, TAGS, number};

struct Run {
    random: fastrand::Rng,
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
    /// Each change in order: what the cache has to be made of.
    followed: Vec<Arc<Object>>,
}

impl Run {
    fn new(seed: u64, keys: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = (0..keys).map(|at| {
            let namespace = ["n0/", "n1/", "n2/", "n3/", ""][random.usize(0..5)];
            format!("{namespace}o{at}").parse().unwrap()
        });
        let keys = keys.collect();
        let store = Store::new();
        let cache = store.cache();
        Self {
            random,
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
        let random = &mut self.random;
        let key = &self.keys[random.usize(0..self.keys.len())];
        let known = self.model.get(key).map(|object| number(object));
        let at = match (random.u32(0..10), known) {
            (0, Some(known)) => known,
            (1, Some(known)) => known.saturating_sub(random.u64(1..20)).max(1),
            (2, _) => random.u64(1..=self.now),
            _ => {
                self.now += 1;
                self.now
            }
        };
        let values = ["1", "2", "3"];
        let labels: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .filter_map(|label| Some((label, *values.get(random.usize(0..6))?)))
            .collect();
        let count = random.usize(0..4);
        // The last two tags make the index function fail.
        let choices = if random.u8(0..8) == 0 { 8 } else { 6 };
        let tags: Vec<_> = (0..count).map(|_| TAGS[random.usize(0..choices)]).collect();
        let uid = ["u1", "u2"][random.usize(0..2)];
        Pod { key: key.as_str(), version: &at.to_string(), uid, labels: &labels, tags: &tags }.object()
    }

    fn source(&mut self) -> Option<SourceId> {
        self.random.choice(&self.model.sources).map(|source| source.id)
    }

    fn step(&mut self) {
        let (ours, expected): (Vec<Change>, Vec<Change>) = match self.random.u32(0..100) {
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
                let at = self.random.u64(1..=self.now);
                self.store.bookmark(source, &version(at));
                self.model.advance(source, at);
                Default::default()
            }
            60..63 => {
                let (Some(source), true) = (self.source(), self.lists.len() < 3) else { return };
                if self.lists.iter().any(|list| list.source() == source) {
                    return;
                }
                let is_restored = self.random.u8(0..5) == 0;
                self.lists.push(match is_restored {
                    true => self.store.begin_restored_replace(source),
                    false => self.store.begin_replace(source),
                });
                self.model_lists.push(ModelList::new(source, is_restored));
                Default::default()
            }
            63..85 => {
                if !self.lists.is_empty() {
                    (0..self.random.usize(0..self.keys.len() / 4)).for_each(|_| self.list_something());
                }
                Default::default()
            }
            85..90 => {
                let Some(at) = self.random.choice(0..self.lists.len()) else { return };
                let (list, model_list) = (self.lists.remove(at), self.model_lists.remove(at));
                if self.random.u8(0..5) == 0 {
                    return drop(list);
                }
                let at = self.random.u64(self.now.saturating_sub(self.now / 4)..=self.now);
                let ours = self.store.commit(list, version(at));
                let expected = self.model.commit(model_list, at, &mut self.model_lists);
                assert_eq!(ours.is_ok(), expected.is_some());
                (ours.unwrap_or_default(), expected.unwrap_or_default())
            }
            90..92 => {
                let scopes = [None, Some("n0"), Some("n1"), Some("n2"), Some("n3")];
                let scope = match scopes[self.random.usize(0..scopes.len())] {
                    None => Scope::All,
                    Some(namespace) => Scope::Namespace(namespace.into()),
                };
                if self.model.sources.len() < 4 {
                    let id = self.store.add_source(scope.clone());
                    self.model.sources.push(crate::model::ModelSource {
                        id,
                        scope,
                        is_synced: false,
                        reached: 0,
                    });
                }
                Default::default()
            }
            92 => {
                let Some(source) = self.source() else { return };
                let ours = self.store.remove_source(source);
                (ours, self.model.remove_source(source, &mut self.model_lists))
            }
            93..95 => {
                self.index = match self.index.take() {
                    None => Some(self.cache.add_index(tags)),
                    Some(_) => None,
                };
                Default::default()
            }
            _ => {
                let at = self.random.usize(0..5);
                self.earlier.truncate(4);
                self.earlier.insert(at.min(self.earlier.len()), (self.cache.snapshot(), self.model.clone()));
                Default::default()
            }
        };
        self.compare(ours, expected);
    }

    /// One thing that a list, or the first part of a streaming list, says.
    fn list_something(&mut self) {
        let at = self.random.usize(0..self.lists.len());
        let object = self.object();
        let (list, model_list) = (&mut self.lists[at], &mut self.model_lists[at]);
        let key = object.key();
        match self.random.u32(0..10) {
            0..5 => {
                let known = self.model.get(key).map_or(version(1), |known| known.resource_version().clone());
                let is_kept = list.keep_unchanged(key.as_str(), &known);
                assert_eq!(is_kept, model_list.keep(key, Some(&known), &self.model));
            }
            5 => assert_eq!(list.keep(key.as_str()), model_list.keep(key, None, &self.model)),
            6 => {
                list.delete(object.clone());
                model_list.delete(object, &self.model);
            }
            7 => {
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
        assert_eq!(self.store.resource_version(), self.model.resource_version());
        self.model.check(&self.cache.snapshot(), &self.keys, self.index.as_ref());
        if let Some((snapshot, model)) = self.random.choice(&self.earlier) {
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

fn run(seed: u64, keys: usize, steps: usize, check_every: usize) {
    println!("seed {seed}");
    let mut run = Run::new(seed, keys);
    if seed.is_multiple_of(2) {
        run.cache.index_labels();
    }
    for step in 0..steps {
        run.step();
        if step % check_every == 0 {
            run.check();
        }
    }
    run.check();
}

/// Index functions of these tests panic on purpose; their messages would drown a real one.
pub(crate) fn hush_expected_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"a tag asks for it") {
            usual(panic);
        }
    }));
}

#[test]
fn c8_random_operations_agree_with_a_naive_model() {
    hush_expected_panics();
    for (seed, keys) in (0..20).zip([12, 20, 28, 36, 44].into_iter().cycle()) {
        run(seed, keys, 300, 1);
    }
}

#[test]
fn c8_random_operations_on_more_objects_agree_with_a_naive_model() {
    for seed in 100..102 {
        run(seed, 1_500, 4_000, 1_000);
    }
}
