//! C9, H8, L10, P1, P2: config maps that came in protobuf and are packed with a dictionary, which a cache makes itself of
//! objects that resemble each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use conformance::{Needs, Rig, Told};
use informer::{Encoding, EncodingChoice, Informer, Item, Layout, Object, SharedInformerFactory, WhenFull};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{config_maps, json as value_of};
use crate::SERVER;

/// One is made when what objects take too much adds up to what it costs, which is so after some dozens.
const OBJECTS: usize = 300;

/// A text that many objects have, and no object twice: 300 letters drawn evenly, of which nothing makes less than 176 bytes but to
/// have them elsewhere.
fn paragraph(number: usize) -> String {
    let mut random = fastrand::Rng::with_seed(number as u64);
    (0..300).map(|_| random.lowercase()).collect()
}

const LEAST_OF_A_PARAGRAPH: usize = 176;

/// How many paragraphs an object has: it takes 1 to 4 KB.
fn paragraphs(number: usize) -> usize {
    4 + number % 9
}

fn name(number: usize) -> String {
    format!("large-{number:03}")
}

fn large(number: usize) -> ConfigMap {
    let parts = (0..paragraphs(number)).map(|part| (format!("part-{part}"), paragraph((number + part) % 16)));
    let mut data: BTreeMap<_, _> = parts.collect();
    data.insert("value".to_owned(), format!("\u{1f600} \"{number}\""));
    let tier = ["web", "cache", "db"][number % 3];
    let labels = json!({ "tier": tier, "parity": if number.is_multiple_of(2) { "even" } else { "odd" } });
    let object = json!({ "metadata": { "name": name(number), "labels": labels }, "data": data });
    serde_json::from_value(object).unwrap()
}

async fn fill(rig: &Rig) {
    rig.at_once((0..OBJECTS).map(|number| rig.create_with(large(number)))).await;
}

/// A factory with the default layout of built-in kinds, whatever else the binary chooses.
fn packed(rig: &Rig) -> SharedInformerFactory {
    rig.builder()
        .layout(Layout::Packed)
        .encoding(EncodingChoice::Auto)
        .build()
        .unwrap()
        .in_namespace(rig.namespace())
}

/// Without what is hot: that is within a bound of its own.
fn at_rest(informer: &Informer<Object>) -> usize {
    informer.held_bytes() - informer.metrics().hot_bytes
}

/// That objects are packed with a dictionary: most take less than half of what their texts alone do without.
fn assert_dictionary(informer: &Informer<Object>) {
    let snapshot = informer.snapshot();
    let (mut with, mut least) = (0, 0);
    for object in snapshot.objects() {
        assert!(matches!(object.encoding(), Encoding::Protobuf(_)), "{object:?}");
        let Some(number) = object.key().name().strip_prefix("large-") else { continue };
        let alone = paragraphs(number.parse().unwrap()) * LEAST_OF_A_PARAGRAPH;
        with += usize::from(object.held_bytes() < alone / 2);
        least += alone;
    }
    assert!(with * 2 > snapshot.len(), "{with} of {} with a dictionary", snapshot.len());
    assert!(at_rest(informer) < least, "{} bytes for what has {least}", at_rest(informer));
}

/// The JSON of each object, by name.
fn content(informer: &Informer<Object>) -> BTreeMap<String, Value> {
    let snapshot = informer.snapshot();
    snapshot.objects().map(|object| (object.key().name().to_owned(), value_of(object))).collect()
}

/// The answers of an informer.
#[derive(PartialEq)]
struct Answers {
    content: BTreeMap<String, Value>,
    /// In the order of the snapshot's pages.
    pages: Vec<Arc<ConfigMap>>,
    got: Vec<Option<Arc<ConfigMap>>>,
    by_tier: BTreeMap<String, Vec<Arc<ConfigMap>>>,
    selected: Vec<Arc<ConfigMap>>,
    filtered: Vec<Arc<ConfigMap>>,
}

impl Answers {
    fn of(rig: &Rig, informer: &Informer<Object>, typed: &Informer<ConfigMap>) -> Self {
        let sorted = |all: Vec<Item<ConfigMap>>| {
            let mut all: Vec<_> = all.into_iter().map(Item::into_value).collect();
            all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
            all
        };
        let tier = |map: &Item<ConfigMap>| map.metadata.labels.as_ref()?.get("tier").cloned();
        let index = typed.add_index(tier);
        let found = |tier: &str| sorted(index.get(tier));
        let lister = typed.lister().namespace(rig.namespace());
        Self {
            content: content(informer),
            pages: typed.snapshot().page(None, usize::MAX).into_iter().map(Item::into_value).collect(),
            // The last are not there.
            got: (0..2 * OBJECTS)
                .map(|number| lister.get(name(number)).unwrap().map(Item::into_value))
                .collect(),
            by_tier: ["web", "cache", "db", "none"].map(|tier| (tier.to_owned(), found(tier))).into(),
            selected: sorted(lister.labels("tier in (web, cache), parity!=odd").unwrap().list()),
            filtered: sorted(lister.filter(|map| is_news(map))),
        }
    }
}

fn is_news(map: &ConfigMap) -> bool {
    map.data.as_ref().and_then(|data| data.get("value")).is_some_and(|value| value == "news")
}

#[tokio::test]
async fn c9_with_a_dictionary_every_answer_is_that_of_the_other_layouts() {
    let Some(rig) = Rig::shared(SERVER, "c9_dictionary").await else { return };
    fill(&rig).await;
    let choices = [
        (Layout::Packed, EncodingChoice::Auto),
        (Layout::Packed, EncodingChoice::Json),
        (Layout::Bytes, EncodingChoice::Auto),
        (Layout::Bytes, EncodingChoice::Json),
        (Layout::Decoded, EncodingChoice::Auto),
    ];
    let mut views = Vec::new();
    for (layout, encoding) in choices {
        let factory =
            rig.builder().layout(layout).encoding(encoding).build().unwrap().in_namespace(rig.namespace());
        let typed: Informer<ConfigMap> = factory.informer();
        views.push((rig.synced(&factory).await, typed, factory));
    }
    assert_dictionary(&views[0].0);
    // Some come with the list, some with the watch.
    update(&rig, 0, 3).await;
    let version = rig.at_once((OBJECTS..OBJECTS + 50).map(|number| rig.create_with(large(number)))).await;

    let mut answers = Vec::new();
    for (informer, typed, _) in &views {
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        answers.push(Answers::of(&rig, informer, typed));
    }
    assert_dictionary(&views[0].0);
    let [first, others @ ..] = &answers[..] else { unreachable!("five were pushed") };
    let counts = [first.by_tier["web"].len(), first.selected.len(), first.filtered.len()];
    assert_eq!((counts, first.by_tier["none"].len()), ([117, 117, 100], 0));
    assert_eq!(first.got.iter().flatten().count(), OBJECTS + 50);
    for (other, choice) in others.iter().zip(&choices[1..]) {
        assert!(first == other, "{choice:?} answers otherwise");
    }
}

#[tokio::test]
async fn l10_h9_with_a_dictionary_a_list_without_news_touches_no_object() {
    let Some(rig) = Rig::shared(SERVER, "l10_dictionary").await else { return };
    fill(&rig).await;
    let factory = packed(&rig);
    let informer = rig.synced(&factory).await;
    assert_dictionary(&informer);
    let mut told = Told::every(&informer);
    told.first_content().await;
    let (before, held, earlier) = (informer.snapshot(), informer.held_bytes(), informer.metrics());

    rig.wire.expire_next_watch();
    rig.proxy.cut();
    rig.wire.until_listed(2).await;
    let version = rig.create("news").await;
    informer.at_least(&version, conformance::DEADLINE).await.unwrap();
    assert_eq!(told.next().await, ["added news"]);
    assert!(told.is_silent());
    // All of them did come again.
    let now = informer.metrics();
    assert_eq!(now.list_items - earlier.list_items, before.len() as u64);
    assert!(now.received_bytes - earlier.received_bytes > 2_000 * OBJECTS as u64);
    assert!(informer.held_bytes() <= held + 2_000, "{} bytes after {held}", informer.held_bytes());
    let after: BTreeMap<_, _> =
        informer.snapshot().objects().map(|object| (object.key().clone(), object.clone())).collect();
    assert_eq!(after.len(), before.len() + 1);
    assert!(before.objects().all(|object| Arc::ptr_eq(object, &after[object.key()])));
}

/// Gives each `step`-th object another text.
async fn update(rig: &Rig, first: usize, step: usize) {
    let changed = (first..OBJECTS).step_by(step);
    let part = |number: usize| json!({ "data": { "part-0": paragraph(number % 16), "value": "news" } });
    rig.at_once(changed.map(async |number| rig.patch(&name(number), part(number)).await)).await;
}

/// Changes objects while no process watches. Returns the names of the deleted, the updated, the re-created and the new objects.
async fn meanwhile(rig: &Rig) -> [Vec<String>; 4] {
    let every_tenth = |first: usize| (first..OBJECTS).step_by(10).map(name).collect::<Vec<_>>();
    let [deleted, updated, again] = [every_tenth(1), every_tenth(4), every_tenth(7)];
    for name in deleted.iter().chain(&again) {
        rig.delete(name).await;
    }
    update(rig, 4, 10).await;
    let new = (OBJECTS..OBJECTS + 20).chain((7..OBJECTS).step_by(10));
    rig.at_once(new.map(|number| rig.create_with(large(number)))).await;
    [deleted, updated, again, (OBJECTS..OBJECTS + 20).map(name).collect()]
}

/// The saved cache and the content of a process that has ended, and a new process that has loaded the cache.
struct Restarted {
    had: BTreeMap<String, Value>,
    /// The changes in between.
    changed: [Vec<String>; 4],
    factory: SharedInformerFactory,
    informer: Informer<Object>,
    told: Told,
}

impl Restarted {
    async fn new(rig: &Rig, forget: bool) -> Self {
        fill(rig).await;
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("config-maps");
        let factory = packed(rig);
        let informer = rig.synced(&factory).await;
        assert_dictionary(&informer);
        let had = content(&informer);
        assert_eq!(informer.save(&path).await.unwrap().objects, had.len());
        factory.shutdown().await;
        let changed = meanwhile(rig).await;
        if forget {
            rig.forget_history().await;
        }

        let factory = packed(rig);
        let informer = factory.informer_of(config_maps());
        let told = Told::every(&informer);
        assert_eq!(informer.load(&path).await.unwrap().objects, had.len());
        assert_dictionary(&informer);
        assert!(content(&informer) == had, "what was loaded is not what was saved");
        Self { had, changed, factory, informer, told }
    }

    /// Whether the cache is what a list in JSON is.
    async fn is_what_a_list_is(&self, rig: &Rig) {
        let plain = rig
            .builder()
            .layout(Layout::Bytes)
            .encoding(EncodingChoice::Json)
            .build()
            .unwrap()
            .in_namespace(rig.namespace());
        let plain = rig.synced(&plain).await;
        // A list's version is that of all resources; an event comes for this one.
        let last = rig.create("the-last").await;
        for informer in [&self.informer, &plain] {
            informer.at_least(&last, conformance::DEADLINE).await.unwrap();
        }
        assert!(content(&self.informer) == content(&plain), "the cache is not what the server has");
        assert_dictionary(&self.informer);
    }
}

fn all(what: &str, names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{what} {name}")).collect()
}

#[tokio::test]
async fn p1_p2_with_a_dictionary_a_restart_goes_on_where_the_last_process_was() {
    let Some(rig) = Rig::own(SERVER, "p2_dictionary", Needs::default()).await else { return };
    let mut restarted = Restarted::new(&rig, false).await;
    let lists = rig.wire.lists().len();
    rig.synced(&restarted.factory).await;
    let had: Vec<_> = restarted.had.keys().cloned().collect();
    assert_eq!(restarted.told.first_content().await, all("initial", &had));
    let [deleted, updated, again, new] = &restarted.changed;
    let mut expected = [
        all("deleted", deleted),
        all("updated", updated),
        all("deleted", again),
        all("added", again),
        all("added", new),
    ]
    .concat();
    expected.sort();
    let mut changes = restarted.told.summaries(expected.len()).await;
    changes.sort();
    assert_eq!(changes, expected);
    assert!(restarted.told.is_silent());
    // One object was asked for, to learn how new the server is.
    let asked = rig.wire.lists().split_off(lists);
    assert_eq!(asked.iter().map(|list| list.get("limit")).collect::<Vec<_>>(), [Some("1")]);
    restarted.is_what_a_list_is(&rig).await;
}

#[tokio::test]
async fn p2_with_a_dictionary_a_restart_with_an_expired_version_misses_nothing() {
    let Some(rig) = Rig::own(SERVER, "p2_expired_dictionary", Needs::default()).await else { return };
    let mut restarted = Restarted::new(&rig, true).await;
    rig.synced(&restarted.factory).await;
    let had: Vec<_> = restarted.had.keys().cloned().collect();
    let [deleted, updated, again, new] = &restarted.changed;
    // One net change of each, once.
    let mut expected = [
        all("initial", &had),
        all("missed", deleted),
        all("updated", updated),
        all("recreated", again),
        all("initial", new),
    ]
    .concat();
    expected.sort();
    assert_eq!(restarted.told.first_content().await, expected);
    assert!(restarted.told.is_silent());
    restarted.is_what_a_list_is(&rig).await;
}

#[tokio::test]
async fn h8_with_a_dictionary_a_reader_that_never_reads_holds_one_state_of_each_object() {
    const ROUNDS: usize = 8;
    const CHANGING: usize = OBJECTS / 3;
    let Some(rig) = Rig::shared(SERVER, "h8_dictionary").await else { return };
    fill(&rig).await;
    let factory = packed(&rig);
    let informer = rig.synced(&factory).await;
    assert_dictionary(&informer);
    let mut latest = Told::new(informer.changes().unwrap());
    latest.first_content().await;
    let unread = informer.changes().unwrap();
    let merged = informer.subscribe().every_change(50, WhenFull::Coalesce).changes().unwrap();
    let (objects, held) = (informer.len(), at_rest(&informer));

    // A third of them, again and again.
    let mut versions = BTreeMap::new();
    let mut see = || {
        let snapshot = informer.snapshot();
        versions.extend(snapshot.objects().map(|object| (Arc::as_ptr(object), Arc::downgrade(object))));
    };
    see();
    for round in 0..ROUNDS {
        let part = |number: usize| json!({ "data": { "part-0": paragraph((number + 7 * round + 5) % 16) } });
        let changed = (0..OBJECTS).step_by(3);
        let writes = changed.map(async |number| rig.patch(&name(number), part(number)).await);
        let version = rig.at_once(writes).await;
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        see();
    }
    assert_eq!(versions.len(), objects + ROUNDS * CHANGING, "versions in all");
    // The objects that existed when the readers joined, and one update of each object that has changed since.
    assert_eq!(unread.backlog(), objects + CHANGING);
    assert!(merged.backlog() <= objects + 50 + CHANGING, "{}", merged.backlog());
    // The versions in the cache, the versions that the readers have, and those that the reader of each change may hold.
    let alive: Vec<_> = versions.values().filter_map(std::sync::Weak::upgrade).collect();
    assert!(alive.len() <= objects + CHANGING + 50, "{} of {} are held", alive.len(), versions.len());
    // All of them packed.
    let bytes: usize = alive.iter().map(|object| object.held_bytes()).sum();
    assert!(bytes < held + held / 2, "{bytes} bytes of objects, {held} of the cache before");
    assert!(at_rest(&informer) < held + held / 5, "{} bytes after {held}", at_rest(&informer));

    let mut changes = latest.summaries(CHANGING).await;
    changes.sort();
    let changed: Vec<_> = (0..OBJECTS).step_by(3).map(name).collect();
    assert_eq!(changes, all("updated", &changed));
    assert!(latest.is_silent());
    // It has not missed what one needs to know.
    let mut late = Told::new(unread);
    assert_eq!(late.first_content().await.len(), objects);
    assert_eq!(late.summaries(CHANGING).await.len(), CHANGING);
    assert!(late.is_silent());
    assert_eq!(late.story().view(), latest.story().view());
}
