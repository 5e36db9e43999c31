//! The net difference, on random histories.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::run::outputs;
use super::world::{World, at};
use crate::{random, support};

/// How many seconds a history lasts; in each of them, something happens.
const SECONDS: i64 = 60;

/// How many objects there are from the beginning: one is seen each second.
const KNOWN: i64 = 3;

fn time(second: i64) -> Timestamp {
    at("14:00:00") + SignedDuration::from_secs(second)
}

/// Objects that come, change, go, and come again. Some are there from the beginning.
fn write(path: &Path, rng: &mut fastrand::Rng) {
    let mut world = World::open(path, [7; 32]);
    let mut uids: BTreeMap<String, usize> = BTreeMap::new();
    for second in 0..SECONDS {
        let is_known = second < KNOWN;
        let name = if is_known { format!("thing-{second}") } else { format!("thing-{}", rng.u8(..5)) };
        let uid = uids.entry(name.clone()).or_default();
        match rng.u8(..8) {
            0 if world.has("Thing", &name) => {
                world.deleted_at(time(second), "Thing", &name);
                *uid += 1;
                continue;
            }
            // Deleted and created again, unseen.
            1 => *uid += 1,
            _ => {}
        }
        let (content, other) = random::pair(rng);
        // Small ones come back.
        let spec = if rng.bool() { json!({"size": rng.u8(..3)}) } else { json!({"a": content, "b": other}) };
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("{name}-{uid}")},
            "spec": spec,
        });
        match is_known {
            true => world.known_at(time(second), object),
            false => world.wrote_at(time(second), "writer", object),
        }
    }
}

fn things(path: &Path, second: i64) -> BTreeMap<String, Value> {
    let get = |format| {
        let at = time(second).to_string();
        let arguments = ["get", "things", "--show-managed-fields", "-o", format, "--at", &at];
        let (out, err, code) = outputs(path, &arguments);
        assert_eq!(code, 0, "{err}");
        out
    };
    let list: Value = serde_json::from_str(&get("json")).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&get("yaml")).unwrap(), list);
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
}

#[test]
fn the_net_difference_leads_from_one_state_to_the_other() {
    let mut rng = support::seeded("net difference");
    let mut differences = 0;
    for _ in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        write(&path, &mut rng);
        for _ in 0..8 {
            let from = rng.i64(KNOWN..SECONDS);
            let to = rng.i64(from..SECONDS);
            let mut state = things(&path, from);
            let (begin, end) = (time(from).to_string(), time(to).to_string());
            let arguments = ["diff", "things", "--show", "all", "-o", "json", "--from", &begin, "--to", &end];
            let (out, err, code) = outputs(&path, &arguments);
            assert_eq!(code, 0, "{err}");
            for line in out.lines() {
                let net: Value = serde_json::from_str(line).unwrap();
                let name = net["name"].as_str().unwrap().to_owned();
                differences += 1;
                match net["change"].as_str().unwrap() {
                    "added" => assert_eq!(state.insert(name, net["new"].clone()), None),
                    "deleted" => assert_eq!(state.remove(&name), Some(net["old"].clone())),
                    _ => {
                        let old = state.get_mut(&name).unwrap();
                        let patch: json_patch::Patch = serde_json::from_value(net["patch"].clone()).unwrap();
                        json_patch::patch(old, &patch).unwrap();
                    }
                }
            }
            assert_eq!(state, things(&path, to), "from {from} to {to}");
        }
    }
    assert!(differences > 50, "only {differences} differences");
}
