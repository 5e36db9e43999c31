//! Random writes, compared with a naive model: a map, and a copy of it for each revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Value, json};
use serve::{Change, Collection, CollectionError, Listing, Object, Range};
use testapi::Gvr;

use crate::fixture::{Server, config_map};

type State = BTreeMap<(String, String), Value>;

/// The expected objects, at each revision since `start`.
struct Model {
    start: u64,
    states: Vec<State>,
}

impl Model {
    fn now(&self) -> &State {
        self.states.last().unwrap()
    }

    /// Another state for another revision; or the same as before, for a write elsewhere.
    fn push(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.now().clone();
        change(&mut state);
        self.states.push(state);
    }
}

const NAMESPACES: [&str; 3] = ["default", "shop", "shop-2"];

fn path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}

fn run(seed: u64, history: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let server = Server::with(|options| options.history = history);
    for namespace in ["shop", "shop-2"] {
        server.post("/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).expect(201);
    }
    let mut model = Model { start: server.api.revision(), states: vec![State::new()] };
    for step in 0..60 {
        let namespace = NAMESPACES[random.usize(..3)];
        let name = ["a", "b", "c", "d"][random.usize(..4)];
        let key = (namespace.to_owned(), name.to_owned());
        let known = model.now().get(&key).cloned();
        match random.u8(..10) {
            0..3 => {
                let answer =
                    server.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), config_map(name));
                assert_eq!(answer.code == 409, known.is_some(), "seed {seed}, step {step}");
                if answer.code == 201 {
                    model.push(|state| drop(state.insert(key, answer.body)));
                }
            }
            3..7 => {
                let value = random.u8(..3).to_string();
                let answer = server.merge(&path(namespace, name), json!({ "data": { "a": value } }));
                match known {
                    None => assert_eq!(answer.code, 404, "seed {seed}, step {step}"),
                    Some(known) if known["data"]["a"] == value.as_str() => {
                        assert_eq!(answer.body, known, "seed {seed}, step {step}");
                    }
                    Some(mut known) => {
                        let body = answer.expect(200);
                        known["data"]["a"] = value.into();
                        for name in ["resourceVersion", "managedFields"] {
                            known["metadata"][name] = body["metadata"][name].clone();
                        }
                        assert_eq!(body, known, "seed {seed}, step {step}");
                        model.push(|state| drop(state.insert(key, body)));
                    }
                }
            }
            7..9 => {
                let answer = server.delete(&path(namespace, name));
                assert_eq!(answer.code == 200, known.is_some(), "seed {seed}, step {step}");
                if known.is_some() {
                    model.push(|state| drop(state.remove(&key)));
                }
            }
            _ => {
                let elsewhere = json!({ "metadata": { "generateName": "s-" } });
                server.post(&format!("/api/v1/namespaces/{namespace}/secrets"), elsewhere).expect(201);
                model.push(|_| {});
            }
        }
        assert_eq!(
            server.api.revision(),
            model.start + model.states.len() as u64 - 1,
            "seed {seed}, step {step}"
        );
    }
    let maps = server.api.collection(&Gvr::new("v1", "configmaps")).unwrap();
    compare(&*maps, &model, seed);
}

/// Lists at each revision and events after each revision, where history goes back that far.
fn compare(maps: &dyn Collection, model: &Model, seed: u64) {
    let mut known = 0;
    for (revision, state) in (model.start..).zip(&model.states) {
        let list = maps.list(&Range::default(), Some(revision)).now_or_never().unwrap();
        let events = maps.events(revision);
        match (list, events) {
            (Ok(mut list), Ok(mut events)) => {
                known += 1;
                let mut seen: State = objects(&mut list).iter().map(|object| entry(object)).collect();
                assert_eq!(seen, *state, "seed {seed}: list at {revision}");
                for namespace in NAMESPACES {
                    list_of_namespace(maps, state, namespace, revision, seed);
                }
                let batch =
                    events.next().now_or_never().map(|batch| batch.unwrap().events).unwrap_or_default();
                for event in batch {
                    let (key, object) = entry(&event.object);
                    let before = match event.change {
                        Change::Deleted => seen.remove(&key),
                        _ => seen.insert(key, object),
                    };
                    let previous = event.previous.map(|object| entry(&object).1);
                    assert_eq!(previous, before, "seed {seed}: events after {revision}");
                }
                assert_eq!(seen, *model.now(), "seed {seed}: events after {revision}");
            }
            (Err(CollectionError::Expired { .. }), Err(CollectionError::Expired { oldest })) => {
                assert!(revision < oldest && known == 0, "seed {seed}: {revision} before {oldest}");
            }
            (list, _) => panic!("seed {seed}: a list and a watch of {revision} disagree: {list:?}"),
        }
    }
    assert!(known > 0, "seed {seed}");
}

/// What is in memory comes at once.
fn objects(list: &mut Listing) -> Vec<Arc<Object>> {
    let objects = list.objects.next().now_or_never().unwrap().unwrap();
    assert_eq!(list.count, objects.len());
    objects
}

fn list_of_namespace(maps: &dyn Collection, state: &State, namespace: &str, revision: u64, seed: u64) {
    let mut range = Range { namespace: Some(namespace.into()), after: None };
    let names = |range: &Range| -> Vec<String> {
        let mut list = maps.list(range, Some(revision)).now_or_never().unwrap().unwrap();
        objects(&mut list).iter().map(|object| object.name.to_string()).collect()
    };
    let mut expected: Vec<String> =
        state.keys().filter(|key| key.0 == namespace).map(|key| key.1.clone()).collect();
    assert_eq!(names(&range), expected, "seed {seed}: {namespace} at {revision}");
    range.after = Some((namespace.into(), "b".into()));
    expected.retain(|name| name.as_str() > "b");
    assert_eq!(names(&range), expected, "seed {seed}: {namespace} at {revision} after b");
}

fn entry(object: &serve::Object) -> ((String, String), Value) {
    let mut value: Value = serde_json::from_slice(&[b"{", &*object.body].concat()).unwrap();
    value["kind"] = "ConfigMap".into();
    value["apiVersion"] = "v1".into();
    ((object.namespace.to_string(), object.name.to_string()), value)
}

#[test]
fn every_revision_can_be_listed_and_watched_as_it_was() {
    for seed in 0..40 {
        run(seed, 1_000);
    }
}

#[test]
fn history_that_is_forgotten_is_refused_and_the_rest_is_right() {
    for seed in 0..40 {
        run(seed, 5);
    }
}

#[test]
fn objects_are_sorted_as_the_real_server_sorts_them() {
    let server = Server::new();
    for namespace in ["shop", "shop-2"] {
        server.post("/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).expect(201);
        server.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), config_map("a")).expect(201);
    }
    let list = server.get("/api/v1/configmaps").expect(200);
    let of: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["namespace"]).collect();
    assert_eq!(of, ["shop-2", "shop"], "by the bytes of `shop-2/a` and `shop/a`");
}
