//! A cache as bytes and back (contract P1), whatever the bytes are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod damage;
mod loading;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use informer_core::internals::scan_protobuf;
use informer_core::saved::{self, LoadError, Saved};
use informer_core::{
    Encoding, Object, ObjectBytes, PlainStorage, Scope, Snapshot, SourceId, Storage, StorageError, Store,
    Stored, StoredBytes,
};
use informer_protobuf::Kind;

const LONGEST: usize = 1 << 20;

fn description() -> [(&'static str, String); 2] {
    [("server", "https://one:6443".to_owned()), ("resource", "pods.v1".to_owned())]
}

fn object(key: &str, version: u64, content: &str) -> Arc<Object> {
    let (namespace, name) = key.split_once('/').unwrap();
    let json = format!(
        r#"{{"kind":"Pod","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"u-{name}","resourceVersion":"{version}","labels":{{"app":"{name}"}}}},"spec":"{content}"}}"#
    );
    Arc::new(Object::from_json(json.as_bytes()).unwrap())
}

/// A store with a source per scope, synced at a version.
fn store(sources: &[(Scope, u64)], objects: &[Arc<Object>]) -> Store {
    let mut store = Store::new();
    let ids: Vec<_> = sources.iter().map(|(scope, _)| store.add_source(scope.clone())).collect();
    for (source, (_, version)) in ids.into_iter().zip(sources) {
        let mut list = store.begin_replace(source);
        objects.iter().for_each(|object| list.stage(object.clone()));
        store.commit(list, version.to_string().as_str().into()).unwrap();
    }
    store
}

fn bytes(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    saved::save(&mut bytes, &description(), &store.checkpoint()).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<Saved, LoadError> {
    saved::load(bytes, &description(), LONGEST, &PlainStorage)
}

/// All that is in a snapshot.
fn content(snapshot: &Snapshot) -> BTreeMap<String, (String, String, Vec<u8>)> {
    let all = snapshot.iter().map(|object| {
        let versions = (object.uid().to_string(), object.resource_version().to_string());
        (object.key().to_string(), (versions.0, versions.1, object.bytes().unwrap().into_vec()))
    });
    all.collect()
}

/// The cache that a saved one becomes.
fn loaded(saved: Saved) -> (Store, Vec<SourceId>) {
    let mut store = Store::new();
    let sources = store.load(saved.sources, saved.objects);
    store.validate();
    (store, sources)
}

#[test]
fn p1_random_caches_come_back_as_they_were() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let namespaces = ["a", "b", "c"];
        let sources = match random.bool() {
            true => vec![(Scope::All, 1000)],
            false => namespaces
                .iter()
                .map(|name| (Scope::Namespace((*name).into()), random.u64(900..1000)))
                .collect(),
        };
        let objects: Vec<_> = (0..random.usize(0..60))
            .map(|number| {
                let key = format!("{}/p{number}", namespaces[random.usize(..3)]);
                let length = if random.u8(..20) == 0 { random.usize(..300_000) } else { random.usize(..400) };
                let content: String = (0..length).map(|_| random.alphanumeric()).collect();
                object(&key, random.u64(1..900), &content)
            })
            .collect();
        let store = store(&sources, &objects);
        let bytes = bytes(&store);
        let saved = load(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(saved.sources, store.checkpoint().sources, "seed {seed}");
        let (mut again, ids) = loaded(saved);
        let cache = again.cache();
        assert_eq!(content(&cache.snapshot()), content(&store.cache().snapshot()), "seed {seed}");
        assert_eq!(cache.resource_version(), store.resource_version(), "seed {seed}");
        let everything: informer_core::Selector = "app".parse().unwrap();
        assert_eq!(cache.snapshot().select(&everything).count(), objects.len(), "seed {seed}");
        // Content that a server has confirmed can be saved again.
        ids.into_iter().for_each(|source| again.confirm(source));
        let twice = load(&self::bytes(&again)).unwrap();
        assert_eq!(twice.sources, store.checkpoint().sources, "seed {seed}");
        assert_eq!(twice.objects.len(), objects.len(), "seed {seed}");
    }
}

#[test]
fn p1_an_empty_cache_is_a_cache() {
    let saved = load(&bytes(&store(&[(Scope::All, 7)], &[]))).unwrap();
    assert!(saved.objects.is_empty());
    assert_eq!(saved.sources[0].resource_version.to_string(), "7");
}

#[test]
fn p1_what_is_not_synced_is_not_saved() {
    let mut store = store(&[(Scope::Namespace("a".into()), 9)], &[object("a/x", 3, "")]);
    store.add_source(Scope::Namespace("b".into()));
    let saved = load(&bytes(&store)).unwrap();
    assert_eq!(saved.sources.len(), 1);
    assert_eq!(saved.objects.len(), 1);
}

#[test]
fn p1_what_was_unread_is_known_to_have_been() {
    let mut checkpoint = store(&[(Scope::All, 7)], &[]).checkpoint();
    checkpoint.sources[0].has_unread = true;
    let mut bytes = Vec::new();
    saved::save(&mut bytes, &description(), &checkpoint).unwrap();
    assert!(load(&bytes).unwrap().sources[0].has_unread);
}

#[test]
fn p1_a_file_of_something_else_is_refused_by_name() {
    let bytes = bytes(&store(&[(Scope::All, 7)], &[]));
    let other = [("server", "https://two:6443".to_owned()), ("resource", "pods.v1".to_owned())];
    let error = saved::load(&bytes[..], &other, LONGEST, &PlainStorage).unwrap_err();
    assert!(error.is_of_another() && !error.is_damaged());
    let said = "the saved cache is of another server: `https://one:6443`, not `https://two:6443`";
    assert_eq!(error.to_string(), said);
}

#[test]
fn p1_a_cache_is_small_on_disk() {
    let spec = "containers: main, image: registry/shop/cart, resources, probes, environment".repeat(50);
    let objects: Vec<_> =
        (0..500_u64).map(|number| object(&format!("a/pod-{number}"), number + 1, &spec)).collect();
    let store = store(&[(Scope::All, 1000)], &objects);
    let plain: usize = objects.iter().map(|object| object.bytes().unwrap().len()).sum();
    let bytes = bytes(&store).len();
    assert!(bytes * 50 < plain, "{bytes} of {plain}");
}

/// A Pod as Kubernetes' protobuf: its metadata (1) with name (1), namespace (3) and resourceVersion (6).
fn message() -> Vec<u8> {
    let mut metadata = Vec::new();
    for (tag, text) in [(0x0a, "cart"), (0x1a, "shop"), (0x32, "7")] {
        metadata.extend([tag, text.len() as u8]);
        metadata.extend(text.as_bytes());
    }
    let mut message = vec![0x0a, metadata.len() as u8];
    message.extend(metadata);
    message
}

#[test]
fn p1_protobuf_stays_protobuf() {
    let (pod, message) = (Kind::of("v1", "Pod").unwrap(), message());
    let cart = scan_protobuf(&message).unwrap().into_object(pod, &message, &PlainStorage).unwrap();
    let json = cart.json().unwrap().into_vec();
    let objects = [Arc::new(cart), object("a/x", 3, "as JSON")];
    let saved = load(&bytes(&store(&[(Scope::All, 9)], &objects))).unwrap();
    let loaded = saved.objects.iter().find(|object| object.key().as_str() == "shop/cart").unwrap();
    assert_eq!(loaded.encoding(), Encoding::Protobuf(pod));
    assert_eq!((&*loaded.bytes().unwrap(), &*loaded.json().unwrap()), (&message[..], &json[..]));
    assert_eq!(loaded.resource_version().to_string(), "7");
}

#[test]
fn loaded_objects_share_equal_labels() {
    let of_one = |name: &str| {
        let json =
            format!(r#"{{"metadata":{{"name":"{name}","labels":{{"app.kubernetes.io/name":"cart"}}}}}}"#);
        Arc::new(Object::from_json(json.as_bytes()).unwrap())
    };
    let single = of_one("a");
    let saved =
        load(&bytes(&store(&[(Scope::All, 9)], &[single.clone(), of_one("b"), of_one("c")]))).unwrap();
    // One of them accounts for the labels.
    let held: Vec<_> = saved.objects.iter().map(|object| object.held_bytes()).collect();
    assert_eq!(held[0], single.held_bytes());
    assert!(held[1..].iter().all(|held| *held < single.held_bytes()), "{held:?}");
}

/// Keeps nothing.
#[derive(Debug)]
struct Lossy;

impl Storage for Lossy {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        Stored::new(bytes.len(), Self)
    }
}

impl StoredBytes for Lossy {
    fn read(&self) -> Result<ObjectBytes, StorageError> {
        Err(StorageError::new("it keeps nothing", Some(std::io::Error::other("as it says").into())))
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

#[test]
fn bytes_that_cannot_be_had_are_an_error_with_its_cause() {
    let lost = Object::from_json(br#"{"metadata":{"name":"a"}}"#).unwrap().kept_in(&Lossy).unwrap();
    let store = store(&[(Scope::All, 9)], &[Arc::new(lost)]);
    let failed = saved::save(Vec::new(), &description(), &store.checkpoint()).unwrap_err();
    let storage = failed.source().unwrap();
    assert_eq!(storage.to_string(), "it keeps nothing");
    assert_eq!(storage.source().unwrap().to_string(), "as it says");
}

#[test]
fn p1_an_object_as_long_as_the_limit_of_answers_is_loaded_again() {
    // A list's item lacks its kind, which the cache adds.
    let item = object("a/x", 3, "").json().unwrap().len() - r#""kind":"Pod","#.len();
    let longest = object("a/x", 3, &"x".repeat(LONGEST - item));
    let json = longest.json().unwrap().into_vec();
    let in_list = String::from_utf8(json).unwrap().replace(r#""kind":"Pod","#, "");
    assert_eq!(in_list.len(), LONGEST);
    let scanned = informer_core::wire::scan_object(in_list.as_bytes()).unwrap();
    let kept = Arc::new(scanned.into_object_of(in_list.as_bytes(), "v1", "Pod").unwrap());
    assert!(kept.size() > LONGEST);
    let saved = load(&bytes(&store(&[(Scope::All, 7)], &[kept]))).unwrap();
    assert_eq!(saved.objects[0].size(), LONGEST + r#""kind":"Pod","apiVersion":"v1","#.len());
}
