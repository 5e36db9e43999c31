//! Random histories: every list and every watch must agree with the model.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::client::{Watch, get, name, serve};
use crate::model::World;

const SEEDS: u64 = 80;

/// A few dozen changes of a few objects in a few namespaces, with gaps between them.
fn act(world: &World, random: &mut Rng) {
    for step in 0..random.usize(5..40) {
        let key = format!(
            "{}/{}",
            random.choice(["a", "a-b", "b"]).unwrap(),
            random.choice(["x", "y", "z"]).unwrap()
        );
        let present = world.at("pods", u64::MAX).contains_key(&key);
        match random.u8(0..10) {
            0 => drop(world.pass(random.u64(1..4))),
            1 => drop(world.put("configmaps", &key, &[], json!({}))),
            2..=4 if present => drop(world.delete("pods", &key)),
            _ => {
                let label = ["web", "db"][random.usize(0..2)];
                world.put(
                    "pods",
                    &key,
                    &[("app", label)],
                    json!({ "spec": { "nodeName": format!("n{step}") } }),
                );
            }
        }
    }
}

/// The copy of a client with a selector: version and content by name.
type View = BTreeMap<String, Value>;

fn whole(object: &Value) -> Value {
    let mut object = object.clone();
    for member in ["kind", "apiVersion"] {
        object.as_object_mut().unwrap().remove(member);
    }
    object
}

fn model(world: &World, revision: u64, namespace: Option<&str>, label: Option<&str>) -> View {
    let objects = world.at("pods", revision).into_iter();
    let selected = objects.filter(|(_, object)| {
        namespace.is_none_or(|namespace| *object.namespace == *namespace)
            && label.is_none_or(|label| object.labels.get("app") == Some(label))
    });
    selected
        .map(|(key, object)| (key, serde_json::from_slice(&[b"{", &object.body[..]].concat()).unwrap()))
        .collect()
}

fn uri(namespace: Option<&str>, label: Option<&str>, query: &str) -> String {
    let path = namespace
        .map_or("/api/v1/pods".to_string(), |namespace| format!("/api/v1/namespaces/{namespace}/pods"));
    let label = label.map_or(String::new(), |label| format!("&labelSelector=app%3D{label}"));
    format!("{path}?{query}{label}")
}

fn selections() -> impl Iterator<Item = (Option<&'static str>, Option<&'static str>)> {
    [None, Some("a"), Some("b")]
        .into_iter()
        .flat_map(|namespace| [(namespace, None), (namespace, Some("web"))])
}

#[tokio::test(start_paused = true)]
async fn a_list_at_any_version_shows_that_version() {
    for seed in 0..SEEDS {
        let mut random = Rng::with_seed(seed);
        let world = World::new();
        act(&world, &mut random);
        let serve = serve(&world);
        for revision in 100..=world.revision() {
            for (namespace, label) in selections() {
                let query = format!("resourceVersion={revision}&resourceVersionMatch=Exact");
                let list = get(&serve, &uri(namespace, label, &query)).await.json();
                let listed: View =
                    list["items"].as_array().unwrap().iter().map(|item| (name(item), whole(item))).collect();
                assert_eq!(
                    listed,
                    model(&world, revision, namespace, label),
                    "seed {seed}, version {revision}"
                );
                assert_eq!(list["metadata"]["resourceVersion"], revision.to_string(), "seed {seed}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_any_size_make_the_list_of_their_version() {
    for seed in 0..SEEDS {
        let mut random = Rng::with_seed(seed);
        let world = World::new();
        act(&world, &mut random);
        let serve = serve(&world);
        let revision = world.revision();
        for (namespace, label) in selections() {
            let limit = random.usize(1..5);
            let (mut listed, mut token) = (View::new(), String::new());
            loop {
                let query = format!("limit={limit}&continue={token}");
                let page = get(&serve, &uri(namespace, label, &query)).await.json();
                let items = page["items"].as_array().unwrap();
                assert!(items.len() <= limit, "seed {seed}");
                for item in items {
                    assert!(listed.insert(name(item), whole(item)).is_none(), "seed {seed}: twice");
                }
                assert_eq!(page["metadata"]["resourceVersion"], revision.to_string(), "seed {seed}");
                // The world goes on; the pages do not change.
                world.pass(1);
                let key = format!("a/{}", random.choice(["v", "x", "zz"]).unwrap());
                world.put("pods", &key, &[("app", "web")], json!({}));
                match page["metadata"]["continue"].as_str() {
                    Some(next) => token = next.to_string(),
                    None => break,
                }
            }
            assert_eq!(listed, model(&world, revision, namespace, label), "seed {seed}");
            // All selections begin with the same world.
            if world.revision() > revision {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_any_version_leads_from_that_version_to_now() {
    for seed in 0..SEEDS {
        let mut random = Rng::with_seed(seed);
        let world = World::new();
        act(&world, &mut random);
        let serve = serve(&world);
        let newest = world.revision();
        for begin in 100..=newest {
            for (namespace, label) in selections() {
                let query = format!("watch=1&timeoutSeconds=1&resourceVersion={begin}");
                let watch = Watch::open(&serve, &uri(namespace, label, &query)).await;
                let mut view = model(&world, begin, namespace, label);
                follow(watch, &mut view, begin, seed).await;
                assert_eq!(view, model(&world, newest, namespace, label), "seed {seed}, from {begin}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_and_what_happens_after_it_lead_to_now() {
    for seed in 0..SEEDS {
        let mut random = Rng::with_seed(seed);
        let world = World::new();
        act(&world, &mut random);
        let serve = serve(&world);
        let begin = world.revision();
        let list = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1";
        let mut watches = Vec::new();
        // Each ends after those that are read before it.
        for (at, (namespace, label)) in selections().enumerate() {
            let uri = uri(namespace, label, &format!("{list}&timeoutSeconds={}", at + 1));
            watches.push((namespace, label, Watch::open(&serve, &uri).await));
        }
        act(&world, &mut random);
        for (namespace, label, mut watch) in watches {
            let mut view = View::new();
            loop {
                let event = watch.next().await.unwrap();
                if event["type"] == "BOOKMARK" {
                    assert_eq!(
                        event["object"]["metadata"]["resourceVersion"],
                        begin.to_string(),
                        "seed {seed}"
                    );
                    break;
                }
                assert_eq!(event["type"], "ADDED", "seed {seed}");
                view.insert(name(&event["object"]), whole(&event["object"]));
            }
            assert_eq!(view, model(&world, begin, namespace, label), "seed {seed}");
            follow(watch, &mut view, begin, seed).await;
            assert_eq!(view, model(&world, world.revision(), namespace, label), "seed {seed}");
        }
    }
}

/// Applies events. Each must be legal in its place and newer than the one before.
async fn follow(mut watch: Watch, view: &mut View, begin: u64, seed: u64) {
    let mut last = begin;
    while let Some(event) = watch.next().await {
        let object = &event["object"];
        let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        if event["type"] == "BOOKMARK" {
            assert!(version >= last, "seed {seed}: {version} after {last}");
            continue;
        }
        assert!(version > last, "seed {seed}: {version} after {last}");
        last = version;
        let key = name(object);
        let legal = match event["type"].as_str().unwrap() {
            "ADDED" => view.insert(key, whole(object)).is_none(),
            "MODIFIED" => view.insert(key, whole(object)).is_some(),
            "DELETED" => match view.remove(&key) {
                // A deletion carries the last state that was sent, except for the version.
                Some(seen) => {
                    let mut shown = whole(object);
                    shown["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"].clone();
                    shown == seen
                }
                None => false,
            },
            other => panic!("seed {seed}: {other}"),
        };
        assert!(legal, "seed {seed}: {event}");
    }
}
