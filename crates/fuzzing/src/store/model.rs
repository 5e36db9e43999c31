//! The naive model: a vector of objects with linear scans, and the rules of the contract written down once more.

use std::sync::Arc;

use informer_core::store::{Snapshot, SourceId};
use informer_core::{Change, Delta, Index, Object, ObjectKey, Origin, ResourceVersion, Scope, Selector};

use super::pods::{names, tags, version};

#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) sources: Vec<ModelSource>,
    reached: u64,
    /// All sources that there were at the time were synced once.
    has_begun: bool,
}

#[derive(Clone)]
pub(super) struct ModelSource {
    pub(super) id: SourceId,
    pub(super) scope: Scope,
    pub(super) is_synced: bool,
    pub(super) reached: u64,
}

/// The state of a key in the last list.
#[derive(Clone)]
pub(super) enum Said {
    Keep,
    Stage(Arc<Object>),
    Delete(Arc<Object>),
}

#[derive(Clone)]
pub(super) struct ModelList {
    pub(super) source: SourceId,
    pub(super) is_restored: bool,
    said: Vec<(ObjectKey, Said)>,
}

pub(super) fn number(object: &Object) -> u64 {
    object.resource_version().to_string().parse().unwrap()
}

impl Model {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.iter().find(|object| object.key() == key)
    }

    pub(super) fn source(&mut self, id: SourceId) -> Option<&mut ModelSource> {
        self.sources.iter_mut().find(|source| source.id == id)
    }

    fn put(&mut self, new: Arc<Object>, origin: Origin) -> Change {
        let delta = match self.objects.iter_mut().find(|object| object.key() == new.key()) {
            Some(place) => Delta::Updated { old: std::mem::replace(place, new.clone()), new },
            None => {
                self.objects.push(new.clone());
                Delta::Added(new)
            }
        };
        Change { delta, origin }
    }

    /// A list that kept the key's object must forget it: should the key come back, it is another object.
    fn take(&mut self, last: Arc<Object>, origin: Origin, lists: &mut [ModelList]) -> Change {
        let at = self.objects.iter().position(|object| object.key() == last.key()).unwrap();
        let old = self.objects.remove(at);
        // Another incarnation was never seen.
        let last = if last.uid() == old.uid() { last } else { old.clone() };
        for list in lists {
            list.said.retain(|(key, said)| key != old.key() || !matches!(said, Said::Keep));
        }
        Change { delta: Delta::Deleted { old, last }, origin }
    }

    pub(super) fn upsert(&mut self, id: SourceId, object: Arc<Object>) -> Option<Change> {
        let source = self.source(id).filter(|source| source.scope.contains(object.key()))?;
        let is_ahead = source.reached > 0 && number(&object) > source.reached;
        if source.reached > 0 {
            self.advance(id, number(&object));
        }
        match self.get(object.key()) {
            Some(known) if number(known) > number(&object) => None,
            Some(known) if number(known) == number(&object) && (!is_ahead || known.same_content(&object)) => {
                None
            }
            _ => Some(self.put(object, Origin::Watch)),
        }
    }

    pub(super) fn delete(
        &mut self,
        id: SourceId,
        object: Arc<Object>,
        lists: &mut [ModelList],
    ) -> Option<Change> {
        self.source(id).filter(|source| source.scope.contains(object.key()))?;
        self.advance(id, number(&object));
        let known = self.get(object.key())?;
        (number(known) <= number(&object)).then(|| self.take(object, Origin::Watch, lists))
    }

    pub(super) fn advance(&mut self, id: SourceId, to: u64) {
        if let Some(source) = self.source(id) {
            source.reached = source.reached.max(to);
        }
        self.update();
    }

    fn update(&mut self) {
        let synced = self.sources.iter().filter(|source| source.is_synced).map(|source| source.reached);
        self.has_begun |= self.is_synced();
        if self.has_begun
            && let Some(slowest) = synced.min()
        {
            self.reached = self.reached.max(slowest);
        }
    }

    pub(super) fn is_synced(&self) -> bool {
        !self.sources.is_empty() && self.sources.iter().all(|source| source.is_synced)
    }

    pub(super) fn resource_version(&self) -> ResourceVersion {
        if self.reached == 0 { ResourceVersion::UNSET } else { version(self.reached) }
    }

    pub(super) fn remove_source(&mut self, id: SourceId, lists: &mut [ModelList]) -> Vec<Change> {
        let at = self.sources.iter().position(|source| source.id == id).unwrap();
        self.sources.remove(at);
        if !self.sources.iter().any(|source| source.is_synced) {
            self.reached = 0;
        }
        self.update();
        let gone = self.objects.clone().into_iter();
        let gone =
            gone.filter(|object| !self.sources.iter().any(|source| source.scope.contains(object.key())));
        gone.collect::<Vec<_>>().into_iter().map(|object| self.take(object, Origin::Scope, lists)).collect()
    }

    /// `None`: refused.
    pub(super) fn commit(
        &mut self,
        list: ModelList,
        at: u64,
        lists: &mut [ModelList],
    ) -> Option<Vec<Change>> {
        let source = self.source(list.source)?;
        if !list.is_restored && at < source.reached {
            return None;
        }
        (source.is_synced, source.reached) = (true, at);
        let scope = source.scope.clone();
        if list.is_restored {
            self.reached = 0;
        }
        self.update();
        let mut gone = Vec::new();
        let mut writes = Vec::new();
        for known in self.objects.iter().filter(|object| scope.contains(object.key())) {
            match list.said.iter().find(|(key, _)| key == known.key()).map(|(_, said)| said) {
                Some(Said::Keep | Said::Stage(_)) => {}
                Some(Said::Delete(last)) if list.is_restored || number(last) >= number(known) => {
                    gone.push(last.clone())
                }
                _ if list.is_restored || number(known) <= at => gone.push(known.clone()),
                _ => {}
            }
        }
        for (key, said) in &list.said {
            if let Said::Stage(object) = said
                && scope.contains(key)
                && self.get(key).is_none_or(|known| {
                    // The list is as new as what is known, and has it older: the server went back.
                    let goes_back = number(object) < number(known) && number(known) <= at;
                    list.is_change(object, known) || goes_back
                })
            {
                writes.push(object.clone());
            }
        }
        let gone: Vec<_> = gone.into_iter().map(|last| self.take(last, Origin::List, lists)).collect();
        let writes: Vec<_> = writes.into_iter().map(|object| self.put(object, Origin::List)).collect();
        Some(gone.into_iter().chain(writes).collect())
    }

    /// Compares everything that can be asked.
    pub(super) fn check(&self, snapshot: &Snapshot, keys: &[ObjectKey], index: Option<&Index<String>>) {
        assert_eq!(snapshot.resource_version(), &self.resource_version());
        assert_eq!((snapshot.len(), snapshot.is_synced()), (self.objects.len(), self.is_synced()));
        assert_eq!(
            snapshot.held_bytes(),
            self.objects.iter().map(|object| object.held_bytes()).sum::<usize>()
        );
        for key in keys {
            let (ours, expected) = (snapshot.get(key), self.get(key));
            assert!(
                ours.zip(expected).is_some_and(|(a, b)| Arc::ptr_eq(a, b)) || (ours.or(expected)).is_none()
            );
        }
        let expected =
            |wanted: &dyn Fn(&Object) -> bool| names(self.objects.iter().filter(|object| wanted(object)));
        assert_eq!(names(snapshot), expected(&|_| true));
        let mut namespaces: Vec<_> =
            snapshot.namespaces().map(|(name, count)| (name.to_owned(), count)).collect();
        namespaces.sort();
        assert!(namespaces.iter().map(|(_, count)| count).sum::<usize>() <= self.objects.len());
        for namespace in ["n0", "n1", "n2", "n3", "absent"] {
            let in_namespace = expected(&|object| object.key().namespace() == Some(namespace));
            assert_eq!(names(snapshot.namespace(namespace)), in_namespace);
            let count = namespaces.iter().find(|(name, _)| name == namespace).map_or(0, |(_, count)| *count);
            assert_eq!(count, in_namespace.len());
        }
        for text in SELECTORS {
            let selector: Selector = text.parse().unwrap();
            for namespace in [None, Some("n1")] {
                let hits = expected(&|object| {
                    selector.matches(object.labels())
                        && (namespace.is_none() || object.key().namespace() == namespace)
                });
                assert_eq!(names(snapshot.select_in(namespace, &selector)), hits, "{text}");
            }
        }
        let mut sorted = self.objects.clone();
        sorted.sort_by(|a, b| a.key().cmp(b.key()));
        let mut after = None;
        for page in sorted.chunks(7) {
            assert!(snapshot.page(after, 7).map(Arc::as_ptr).eq(page.iter().map(Arc::as_ptr)));
            after = page.last().map(|object| object.key());
        }
        assert_eq!(snapshot.page(after, 7).len(), 0);
        let Some(index) = index else { return };
        for tag in TAGS {
            let hits = expected(&|object| tags_of(object).iter().any(|other| other == tag));
            assert_eq!(names(index.lookup(snapshot, tag)), hits, "{tag}");
            assert_eq!(index.count(snapshot, tag), hits.len());
        }
        let mut values: Vec<String> = index.values(snapshot).iter().map(|value| (**value).clone()).collect();
        values.sort();
        let mut expected: Vec<String> = self.objects.iter().flat_map(|object| tags_of(object)).collect();
        expected.sort();
        expected.dedup();
        assert_eq!(values, expected);
    }
}

pub(super) const TAGS: [&str; 8] = ["t0", "t1", "t2", "t3", "t4", "t5", "fail", "panic"];
const SELECTORS: [&str; 10] = [
    "",
    "a",
    "!a",
    "a=1",
    "a!=1",
    "a in (1,2),b",
    "b notin (1,3),!c",
    "c>1",
    "c<3,a notin (2)",
    "a=1,b=1,c=1",
];

fn tags_of(object: &Object) -> Vec<String> {
    let panics = object.json().is_ok_and(|json| json.windows(7).any(|part| part == b"\"panic\""));
    if panics { Vec::new() } else { tags(object).unwrap_or_default() }
}

impl ModelList {
    pub(super) fn new(source: SourceId, is_restored: bool) -> Self {
        Self { source, is_restored, said: Vec::new() }
    }

    fn said(&mut self, key: &ObjectKey) -> Option<&mut (ObjectKey, Said)> {
        self.said.iter_mut().find(|(other, _)| other == key)
    }

    fn is_change(&self, listed: &Object, known: &Object) -> bool {
        match self.is_restored {
            true => number(listed) != number(known) || !listed.same_content(known),
            false => number(listed) > number(known),
        }
    }

    fn say(&mut self, key: &ObjectKey, said: Said) {
        self.said.retain(|(other, _)| other != key);
        self.said.push((key.clone(), said));
    }

    pub(super) fn stage(&mut self, object: Arc<Object>, model: &Model) {
        let key = object.key().clone();
        match self.said(&key) {
            Some((_, Said::Stage(other))) if number(other) <= number(&object) => *other = object,
            Some((_, Said::Delete(other))) if number(other) <= number(&object) => {
                self.say(&key, Said::Stage(object))
            }
            Some((_, Said::Stage(_) | Said::Delete(_))) => {}
            Some((_, Said::Keep)) if model.get(&key).is_some_and(|known| number(&object) < number(known)) => {
            }
            None | Some((_, Said::Keep)) => {
                let is_known = model
                    .get(&key)
                    .is_some_and(|known| !self.is_change(&object, known) && number(&object) >= number(known));
                self.say(&key, if is_known { Said::Keep } else { Said::Stage(object) });
            }
        }
    }

    pub(super) fn delete(&mut self, object: Arc<Object>, model: &Model) {
        let key = object.key().clone();
        match self.said(&key) {
            Some((_, said @ (Said::Stage(_) | Said::Delete(_)))) => {
                let (Said::Stage(other) | Said::Delete(other)) = said else { unreachable!() };
                if number(other) <= number(&object) {
                    *said = Said::Delete(object);
                }
            }
            Some((_, Said::Keep)) if model.get(&key).is_some_and(|known| number(&object) < number(known)) => {
            }
            None | Some((_, Said::Keep)) => {
                if model.get(&key).is_some_and(|known| self.is_restored || number(known) <= number(&object)) {
                    self.say(&key, Said::Delete(object));
                }
            }
        }
    }
}
