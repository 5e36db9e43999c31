//! Random histories, against a naive list of what there was: every instant, every range, every size of pages.

use std::collections::BTreeMap;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::page::browser::Page;
use crate::queries::world::{World, at};

/// As text, `a-b/x` is before `a/x`.
const SPACES: &[&str] = &["a", "a-b", "b"];
const NAMES: &[&str] = &["x", "y", "z-1", "z"];

/// Value and number of the last change, by `namespace/name`.
type State = BTreeMap<String, (u64, u64)>;

struct Play {
    random: Rng,
    world: World,
    now: Timestamp,
    state: State,
    /// The uids that objects have had.
    uids: u64,
    uid: BTreeMap<String, u64>,
    /// The state after each record.
    states: Vec<(u64, Timestamp, State)>,
}

impl Play {
    fn step(&mut self) {
        self.now = self.now.checked_add(SignedDuration::from_millis(self.random.i64(1..3_000))).unwrap();
        let (namespace, name) =
            (SPACES[self.random.usize(..SPACES.len())], NAMES[self.random.usize(..NAMES.len())]);
        let key = format!("{namespace}/{name}");
        let is_there = self.state.contains_key(&key);
        if is_there && self.random.u8(..4) == 0 {
            self.world.deleted_key_at(self.now, &format!("ConfigMap {key}"));
            self.state.remove(&key);
            self.note();
            return;
        }
        // Another uid: it was deleted and made again, and nobody saw the deletion.
        if !is_there || self.random.u8(..8) == 0 {
            self.uids += 1;
            self.uid.insert(key.clone(), self.uids);
        }
        let value = self.random.u64(..);
        let uid = format!("uid-{}", self.uid[&key]);
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": "2026-03-01T12:00:00Z",
                "labels": {"even": value.is_multiple_of(2).to_string()}},
            "data": {"value": value.to_string()},
        });
        self.world.became_at(self.now, object);
        let number = self.note();
        self.state.insert(key, (value, number));
        self.states.last_mut().unwrap().2 = self.state.clone();
    }

    fn note(&mut self) -> u64 {
        let (last, _) = self.world.history().reader().unwrap().last().unwrap().unwrap();
        self.states.push((last.0, self.now, self.state.clone()));
        last.0
    }
}

/// The list of the pages that a client would read.
fn pages(page: &Page, path: &str, query: &str, limit: usize) -> (Vec<Value>, String) {
    let (mut items, mut token) = (Vec::new(), String::new());
    loop {
        let answer = page.get(&format!("{path}?limit={limit}&continue={token}{query}"));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let list = answer.json();
        items.extend(list["items"].as_array().unwrap().iter().cloned());
        match list["metadata"]["continue"].as_str().unwrap_or_default() {
            "" => return (items, list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()),
            next => token = next.to_owned(),
        }
    }
}

fn shown(items: &[Value]) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shown = |it: &Value| {
        let meta = &it["metadata"];
        let key = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
        (key, text(&it["data"]["value"]), text(&meta["resourceVersion"]))
    };
    items.iter().map(shown).collect()
}

fn expected(state: &State, is_wanted: impl Fn(&str, u64) -> bool) -> Vec<(String, String, String)> {
    let wanted = state.iter().filter(|(key, (value, _))| is_wanted(key, *value));
    wanted.map(|(key, (value, number))| (key.clone(), value.to_string(), format!("{number}0"))).collect()
}

#[test]
fn every_instant_is_what_a_naive_list_says() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut play = Play {
            random: Rng::with_seed(seed),
            world: World::open(&path, [7; 32]),
            now: at("14:00:00"),
            state: State::new(),
            uids: 0,
            uid: BTreeMap::new(),
            states: Vec::new(),
        };
        for _ in 0..80 {
            play.step();
        }
        let end = play.now.checked_add(SignedDuration::from_secs(5)).unwrap();
        let page = Page::at(&path, &format!("{end}[UTC]"));
        for at in 0..play.states.len() {
            let (number, time, state) = &play.states[at];
            let address = match play.random.u8(..3) {
                0 => format!("/at/{number}"),
                1 => format!("/at/{time}"),
                // Between two records, it is the former one.
                _ => match play.states.get(at + 1) {
                    Some((_, next, _)) => {
                        format!("/at/{}", next.checked_sub(SignedDuration::from_micros(1)).unwrap())
                    }
                    None => "/at/now".to_owned(),
                },
            };
            let note = format!("seed {seed}, {address}, record {number}");
            let all = format!("{address}/api/v1/configmaps");
            let limit = play.random.usize(0..6);
            let (items, version) = pages(&page, &all, "", limit);
            assert_eq!(shown(&items), expected(state, |_, _| true), "{note}");
            assert_eq!(version, format!("{number}0"), "{note}");

            let namespace = SPACES[play.random.usize(..SPACES.len())];
            let inside = format!("{address}/api/v1/namespaces/{namespace}/configmaps");
            let selector = "&labelSelector=even%3Dtrue";
            let (items, _) = pages(&page, &inside, selector, limit);
            let prefix = format!("{namespace}/");
            assert_eq!(
                shown(&items),
                expected(state, |key, value| key.starts_with(&prefix) && value.is_multiple_of(2)),
                "{note}"
            );

            let name = NAMES[play.random.usize(..NAMES.len())];
            let one = page.get(&format!("{inside}/{name}"));
            match state.get(&format!("{prefix}{name}")) {
                Some((value, _)) => assert_eq!(one.json()["data"]["value"], value.to_string(), "{note}"),
                None => assert_eq!(one.status, 404, "{note}"),
            }
            // The same state, from now.
            let exact =
                format!("/at/now/api/v1/configmaps?resourceVersion={number}0&resourceVersionMatch=Exact");
            let items = page.get(&exact).json()["items"].as_array().unwrap().clone();
            assert_eq!(shown(&items), expected(state, |_, _| true), "{note}");
        }
        watches(&mut play, &page, seed);
    }
}

/// A list and the events after it lead to the last state, wherever a client begins.
fn watches(play: &mut Play, page: &Page, seed: u64) {
    let last = play.states.last().unwrap();
    let address = format!("/at/{}/api/v1/configmaps", last.0);
    for _ in 0..6 {
        let (from, _, state) = &play.states[play.random.usize(..play.states.len())];
        let mut known: BTreeMap<String, Value> =
            state.iter().map(|(key, (value, _))| (key.clone(), json!(value.to_string()))).collect();
        let path = format!("{address}?watch=1&resourceVersion={from}0&timeoutSeconds=1");
        let mut version = from * 10;
        for line in page.follow(&path).skip_while(|line| !line.is_empty()).skip(1) {
            let event: Value = serde_json::from_str(&line).unwrap();
            let object = &event["object"];
            let meta = &object["metadata"];
            let key = format!("{}/{}", meta["namespace"].as_str().unwrap(), meta["name"].as_str().unwrap());
            let own: u64 = meta["resourceVersion"].as_str().unwrap().parse().unwrap();
            assert!(own > version, "seed {seed}: {own} after {version}");
            version = own;
            let is_known = known.contains_key(&key);
            match event["type"].as_str().unwrap() {
                "ADDED" => assert!(!is_known, "seed {seed}: {key} twice"),
                _ => assert!(is_known, "seed {seed}: {key} from nowhere"),
            }
            if event["type"] == "DELETED" {
                known.remove(&key);
            } else {
                known.insert(key, object["data"]["value"].clone());
            }
        }
        let expected: BTreeMap<String, Value> =
            last.2.iter().map(|(key, (value, _))| (key.clone(), json!(value.to_string()))).collect();
        assert_eq!(known, expected, "seed {seed}: from record {from}");
    }
}
