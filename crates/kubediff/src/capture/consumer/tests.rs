//! Issue 12: positions of the history are low watermarks. A process that dies after any commit has recorded everything that its watches
//! delivered up to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use fastrand::Rng;
use informer::{Object, ObjectKey, ResourceType};
use jiff::Timestamp;
use kubediff_history::{Cluster, Filter, Page, Reader, Record, Scope, Settings, Verb};
use serde_json::{Value, json};

use super::*;
use crate::follow::{Kind, Synced, Watches, Within};
use crate::history::shared::SharedHistory;
use crate::history::writer::NOT_RUNNING;
use crate::model::targets::Target;
use crate::{Gvk, Noise, Origin, Schemas, Secrets};

/// Longer than a test.
const LONG: Duration = Duration::from_secs(3_600);
const NAMESPACES: [&str; 2] = ["dev", "shop"];
/// A noise rule leaves out Events.
const RESOURCES: [(&str, &str); 2] = [("configmaps", "ConfigMap"), ("events", "Event")];

/// Resource, namespace and name. A name is never used again.
type Place = (&'static str, &'static str, String);

/// The server, the caches of the informers, and the process that records.
struct World {
    file: PathBuf,
    random: Rng,
    /// The bound of the inbox in bytes.
    bound: usize,
    namespaces: Option<Vec<String>>,
    version: u64,
    objects: BTreeMap<Place, Arc<Object>>,
    /// What the watches have delivered.
    cached: BTreeMap<Place, Arc<Object>>,
    /// Each version that an object ever had; that of a deletion is the last.
    all: Vec<(Place, u64)>,
    /// The watches that are interrupted, and whose last delivery is of a list.
    lost: BTreeSet<(&'static str, &'static str)>,
    relisted: BTreeSet<String>,
    /// The resource whose first list is under way.
    listing: Option<&'static str>,
    process: Option<Process>,
}

struct Process {
    inbox: Inbox,
    consumer: Consumer,
    watches: HashMap<&'static str, (Arc<Kind>, Watches)>,
}

impl World {
    fn new(file: PathBuf, random: Rng, bound: usize, namespaces: Option<&[&str]>) -> Self {
        let namespaces = namespaces.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let (objects, cached, all) = Default::default();
        let (lost, relisted) = Default::default();
        Self {
            file,
            random,
            bound,
            namespaces,
            version: 0,
            objects,
            cached,
            all,
            lost,
            relisted,
            listing: None,
            process: None,
        }
    }

    fn start(&mut self) {
        self.process = None;
        self.lost.clear();
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let history = SharedHistory::open(&self.file, &cluster, &Settings::default()).unwrap();
        let secrets = Secrets::with_key([7; 32]);
        secrets.watches();
        let profile =
            Profile { noise: Noise::default(), secrets: secrets.clone(), schemas: Schemas::default() };
        let within = Within { namespaces: self.namespaces.clone(), ..Within::default() };
        let writer = HistoryWriter::new(history, None, secrets, within, Timestamp::now(), NOT_RUNNING);
        let consumer = Consumer {
            screen: None,
            recorder: Some(writer.unwrap()),
            session: Arc::default(),
            profile,
            cluster: None,
            unrecorded: Vec::new(),
            held: Held::new(LONG),
        };
        let watches = RESOURCES.map(|(plural, kind)| {
            let resource = ResourceType {
                group: String::new(),
                version: "v1".to_owned(),
                plural: plural.to_owned(),
                kind: kind.to_owned(),
                namespaced: true,
            };
            let target = Target { resource: resource.clone(), name: None };
            let kind = Kind { gvk: Gvk::new("v1", kind), resource };
            (plural, (Arc::new(kind), Watches::new(&target, self.namespaces.as_deref())))
        });
        self.process =
            Some(Process { inbox: Inbox::new(self.bound), consumer, watches: watches.into_iter().collect() });
    }

    /// All objects arrive as the first list of their resource.
    fn list_first(&mut self, mut between: impl FnMut(&mut Self)) {
        for (resource, _) in RESOURCES {
            self.cached.retain(|place, _| place.0 != resource);
            self.listing = Some(resource);
            let mut places: Vec<Place> =
                self.objects.keys().filter(|place| place.0 == resource).cloned().collect();
            self.random.shuffle(&mut places);
            for place in places {
                // It may be gone by now, or have been written.
                if let Some(object) = self.objects.get(&place).cloned()
                    && !self.cached.contains_key(&place)
                {
                    self.first(&place, object);
                }
                between(self);
            }
            self.relisted.retain(|name| !name.starts_with(resource));
            let process = self.process.as_mut().unwrap();
            let (kind, watches) = &process.watches[resource];
            let (kind, watermarks) = (kind.clone(), watches.synced());
            let synced = Synced {
                kind,
                name: None,
                at: Timestamp::now(),
                watermarks,
                is_new: false,
                continues: false,
            };
            process.inbox.push(InboxItem::Synced(synced));
            self.listing = None;
            between(self);
        }
    }

    fn first(&mut self, place: &Place, object: Arc<Object>) {
        self.cached.insert(place.clone(), object.clone());
        let raw = self.raw(place, Origin::List, None, Some(object));
        let process = self.process.as_mut().unwrap();
        process.inbox.push(InboxItem::First(raw.listed(&process.watches[place.0].1)));
    }

    fn raw(
        &self,
        place: &Place,
        origin: Origin,
        old: Option<Arc<Object>>,
        new: Option<Arc<Object>>,
    ) -> RawChange {
        let key = ObjectKey::new(Some(place.1), &place.2).unwrap();
        let (kind, _) = &self.process.as_ref().unwrap().watches[place.0];
        RawChange::seen(kind, key, origin, [old, new])
    }

    /// The object has another state, or is gone without one. The watch delivers it, unless it is interrupted.
    fn write(&mut self, place: &Place, data: Option<&Value>) {
        self.version += self.random.u64(1..4);
        self.all.push((place.clone(), self.version));
        let last = self.objects.get(place).map(|object| serde_json::from_slice(&object.json().unwrap()));
        let mut object = last.unwrap_or_else(|| Ok(json!({"metadata": {}}))).unwrap();
        let (resource, namespace, name) = place;
        object["kind"] = json!(RESOURCES.iter().find(|(plural, _)| plural == resource).unwrap().1);
        object["apiVersion"] = json!("v1");
        object["metadata"] = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": self.version.to_string()});
        if let Some(data) = data.filter(|data| !data.is_null()) {
            object["data"] = data.clone();
        }
        let object = Arc::new(Object::from_json(object.to_string().as_bytes()).unwrap());
        match data {
            Some(_) => self.objects.insert(place.clone(), object.clone()),
            None => self.objects.remove(place),
        };
        if !self.lost.contains(&(place.0, place.1)) {
            self.deliver(place, Origin::Watch, data.map(|_| object.clone()), Some(object));
        }
    }

    fn deliver(
        &mut self,
        place: &Place,
        origin: Origin,
        new: Option<Arc<Object>>,
        last: Option<Arc<Object>>,
    ) {
        if self.listing == Some(place.0)
            && let Some(new) = new.as_ref().filter(|_| !self.cached.contains_key(place))
        {
            return self.first(place, new.clone());
        }
        let old = match &new {
            Some(new) => self.cached.insert(place.clone(), new.clone()),
            None => self.cached.remove(place),
        };
        if new.is_none() && old.is_none() {
            return;
        }
        let raw = match new {
            Some(new) => self.raw(place, origin, old, Some(new)),
            None => self.raw(place, origin, old.clone(), None).of_last(last.or(old)),
        };
        match origin {
            Origin::Watch => self.relisted.remove(&self.watch(place)),
            _ => self.relisted.insert(self.watch(place)),
        };
        let process = self.process.as_mut().unwrap();
        let raw = raw.holding(&process.watches[place.0].1).unwrap();
        process.inbox.push(InboxItem::Change(raw));
    }

    /// The name of the position of a place.
    fn watch(&self, place: &Place) -> String {
        format!("{}@{}", place.0, self.namespaces.as_ref().map_or("*", |_| place.1))
    }

    /// The watch is interrupted, in all namespaces if it is one of all.
    fn lose(&mut self, resource: &'static str, namespace: &'static str) {
        match self.namespaces {
            Some(_) => self.lost.extend([(resource, namespace)]),
            None => self.lost.extend(NAMESPACES.map(|namespace| (resource, namespace))),
        }
    }

    /// The watches that were interrupted list again: what has changed comes in no order.
    fn relist(&mut self, mut between: impl FnMut(&mut Self)) {
        for (resource, namespace) in std::mem::take(&mut self.lost) {
            let version = |objects: &BTreeMap<Place, Arc<Object>>, place: &Place| {
                objects.get(place).map(|object| object.resource_version().clone())
            };
            let both = self.cached.keys().chain(self.objects.keys());
            let both: BTreeSet<&Place> =
                both.filter(|place| (place.0, place.1) == (resource, namespace)).collect();
            let differ =
                both.into_iter().filter(|it| version(&self.cached, it) != version(&self.objects, it));
            let mut differ: Vec<Place> = differ.cloned().collect();
            self.random.shuffle(&mut differ);
            for place in differ {
                self.deliver(&place, Origin::List, self.objects.get(&place).cloned(), None);
                between(self);
            }
        }
    }

    /// Takes one entry of the inbox, if there is one.
    fn take(&mut self) -> bool {
        let Process { inbox, consumer, .. } = self.process.as_mut().unwrap();
        let Next::Entry(entry) = inbox.next(Some(Duration::ZERO)) else { return false };
        consumer.arrived(entry, inbox).unwrap();
        self.pass(Duration::ZERO);
        true
    }

    /// Time passes for what is held.
    fn pass(&mut self, time: Duration) {
        let Process { inbox, consumer, .. } = self.process.as_mut().unwrap();
        while let Some(due) = consumer.held.pop(Instant::now() + time) {
            consumer.go_on(due, inbox).unwrap();
        }
    }

    /// Commits what was taken. The positions that a process which dies now leaves behind.
    fn commit(&mut self) -> BTreeMap<String, String> {
        let Process { inbox, consumer, .. } = self.process.as_mut().unwrap();
        consumer.recorder.as_mut().unwrap().commit(inbox).unwrap();
        Reader::open(&self.file).unwrap().positions().unwrap()
    }
}

/// By place, the greatest version that a history has; those of an object that is gone have all been.
fn stored(file: &std::path::Path) -> BTreeMap<(String, String), u64> {
    let mut reader = Reader::open(file).unwrap();
    let number = |rv: &str| rv.parse::<u64>().unwrap();
    let mut stored = BTreeMap::new();
    for state in reader.state(&Scope::default(), None).unwrap() {
        stored.insert((state.object.namespace.unwrap(), state.object.name), number(&state.rv));
    }
    for record in reader.records(&Filter::default(), &Page::oldest(100_000)).unwrap().records {
        let Record::Change(change) = record else { continue };
        if change.verb == Verb::Deleted {
            stored.insert((change.object.namespace.unwrap(), change.object.name), u64::MAX);
        }
    }
    stored
}

fn config_map(name: &str) -> Place {
    ("configmaps", "shop", name.to_owned())
}

#[test]
fn k1_a_position_does_not_pass_a_change_that_waits_behind_a_merged_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path().join("history.db"), Rng::with_seed(1), 1_400, None);
    world.start();
    let [a, b] = ["a", "b"].map(config_map);
    world.write(&a, Some(&json!({"k": "0"})));
    world.list_first(|_| {});
    while world.take() {}
    let listed = world.commit()["configmaps@*"].clone();
    assert_eq!(listed, world.version.to_string());

    let mut versions = Vec::new();
    for (place, data) in [(&a, "1"), (&b, "1"), (&a, "2")] {
        world.write(place, Some(&json!({"k": data})));
        versions.push(world.version.to_string());
    }
    assert_eq!(world.process.as_ref().unwrap().inbox.merged(), 1);
    world.take();
    assert_eq!(world.commit()["configmaps@*"], versions[0], "b waits, and the second version of a is stored");
    world.take();
    assert_eq!(world.commit()["configmaps@*"], versions[2]);
}

#[test]
fn k1_a_position_does_not_pass_a_change_that_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path().join("history.db"), Rng::with_seed(1), usize::MAX, None);
    world.start();
    world.list_first(|_| {});
    world.write(&config_map("a"), Some(&json!({"k": "1"})));
    let before = world.version.to_string();
    world.write(&config_map("b"), Some(&json!({"k": "tK9wQ2mZ7xP4vR8sL1nB"})));
    while world.take() {}
    assert_eq!(world.commit()["configmaps@*"], before);
    world.pass(2 * LONG);
    assert_eq!(world.commit()["configmaps@*"], world.version.to_string());
}

#[test]
fn k1_everything_up_to_a_position_is_in_the_history_whenever_the_process_dies() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let (first, rounds) = seed.map_or_else(|| (fastrand::u64(..u64::MAX / 2), 40), |seed| (seed, 1));
    println!("SEED={first} and the next ones");
    let (mut merged, mut passed) = (0, 0);
    for seed in first..first + rounds {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Rng::with_seed(seed);
        let (bound, namespaces) = (random.usize(1_000..6_000), random.bool().then_some(&NAMESPACES[..]));
        let mut world = World::new(folder.path().join("history.db"), random, bound, namespaces);
        let mut check = Check { seed, names: 0, deletable: Vec::new(), passed: 0 };
        world.start();
        world.list_first(|world| check.step(world));
        for _ in 0..400 {
            check.step(&mut world);
            match world.random.u8(..100) {
                0 => {
                    check.commit(&mut world);
                    world.start();
                    world.list_first(|world| check.step(world));
                }
                1..4 => {
                    let resource = RESOURCES[world.random.usize(..2)].0;
                    let namespace = NAMESPACES[world.random.usize(..2)];
                    world.lose(resource, namespace);
                }
                4..8 => world.relist(|world| check.record(world)),
                _ => {}
            }
        }
        merged += world.process.as_ref().unwrap().inbox.merged();
        check.end(&mut world);
        passed += check.passed;
    }
    assert!(
        merged > rounds && passed as u64 > 100 * rounds,
        "{merged} merged, {passed} versions at or below a position"
    );
}

/// The naive model: each version of each object, and what the file has.
struct Check {
    seed: u64,
    names: u32,
    /// The objects that are stored: one that comes and goes while it waits leaves nothing behind.
    deletable: Vec<Place>,
    /// How many versions were at or below a position.
    passed: usize,
}

impl Check {
    fn step(&mut self, world: &mut World) {
        match world.random.u8(..10) {
            0..5 => self.write(world),
            _ => self.record(world),
        }
    }

    /// The process does something, or nothing.
    fn record(&mut self, world: &mut World) {
        match world.random.u8(5..10) {
            5..8 => drop(world.take()),
            8 if world.random.u8(..3) == 0 => world.pass(2 * LONG),
            9 if world.random.u8(..3) == 0 => self.commit(world),
            _ => {}
        }
    }

    fn write(&mut self, world: &mut World) {
        let places: Vec<Place> = world.objects.keys().cloned().collect();
        let choice = world.random.u8(..10);
        if choice == 0 || places.is_empty() {
            self.names += 1;
            let resource = RESOURCES[world.random.usize(..2)].0;
            let namespace = NAMESPACES[world.random.usize(..2)];
            world.write(&(resource, namespace, format!("o{}", self.names)), Some(&json!({"n": "0"})));
        } else if choice == 1 && !self.deletable.is_empty() {
            let at = world.random.usize(..self.deletable.len());
            let place = self.deletable.swap_remove(at);
            world.write(&place, None);
        } else {
            let place = &places[world.random.usize(..places.len())];
            let data = match choice {
                // Noise.
                2 | 3 => Value::Null,
                // Held.
                4 => {
                    json!({"n": std::iter::repeat_with(|| world.random.alphanumeric()).take(20).collect::<String>()})
                }
                _ => json!({"n": world.version.to_string()}),
            };
            world.write(place, Some(&data));
        }
    }

    fn commit(&mut self, world: &mut World) {
        let positions = world.commit();
        let stored = stored(&world.file);
        for (place, version) in &world.all {
            let position = positions.get(&world.watch(place)).map_or(0, |rv| rv.parse().unwrap());
            let (resource, namespace, name) = place;
            let has = stored.get(&((*namespace).to_owned(), name.clone())).copied().unwrap_or_default();
            if *resource == "configmaps" && *version <= position {
                self.passed += 1;
                assert!(
                    *version <= has,
                    "SEED={}: {place:?} {version}, position {position}, stored {has}",
                    self.seed
                );
            }
        }
        let is_stored = |place: &&Place| {
            place.0 == "configmaps" && stored.contains_key(&(place.1.to_owned(), place.2.clone()))
        };
        self.deletable = world.objects.keys().filter(is_stored).cloned().collect();
    }

    /// When everything is taken, each watch is recorded as far as it has delivered.
    fn end(&mut self, world: &mut World) {
        world.relist(|_| {});
        while world.take() {}
        world.pass(2 * LONG);
        // Each watch delivers something after its last list.
        for (resource, _) in RESOURCES {
            for namespace in NAMESPACES {
                world.write(&(resource, namespace, format!("last-{namespace}")), Some(&json!({"n": "1"})));
                let place = (resource, namespace, String::new());
                assert!(!world.relisted.contains(&world.watch(&place)));
            }
        }
        while world.take() {}
        let process = world.process.as_mut().unwrap();
        process.inbox.push(InboxItem::Alive(Timestamp::now()));
        world.take();
        self.commit(world);
        let positions = world.commit();
        let mut greatest: BTreeMap<String, u64> = BTreeMap::new();
        for (place, version) in &world.all {
            greatest.insert(world.watch(place), *version);
        }
        for (watch, version) in greatest {
            assert_eq!(positions[&watch], version.to_string(), "SEED={}: {watch}", self.seed);
        }
    }
}
