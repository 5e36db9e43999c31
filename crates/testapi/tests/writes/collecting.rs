//! Garbage collection.

use serde_json::{Value, json};

use crate::fixture::{CORE, Server, config_map, with};

/// A server with `owner`, `child` that it owns, and `grandchild` of the child; returns the owner's path.
fn family(collects: bool) -> (Server, String) {
    let server = Server::with(|options| options.garbage_collection = collects);
    let maps = format!("{CORE}/configmaps");
    let mut owner = server.post(&maps, config_map("owner")).expect(201);
    for name in ["child", "grandchild"] {
        owner = server
            .post(&maps, with(config_map(name), "ownerReferences", json!([reference(&owner)])))
            .expect(201);
    }
    (server, format!("{maps}/owner"))
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

fn names(server: &Server) -> Vec<String> {
    let list = server.get(&format!("{CORE}/configmaps")).expect(200);
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn dependents_stay_where_nobody_collects() {
    let (server, owner) = family(false);
    server.delete(&owner).expect(200);
    assert_eq!(names(&server), ["child", "grandchild"]);
}

#[test]
fn dependents_go_after_their_owner() {
    let (server, owner) = family(true);
    let before = server.api.revision();
    server.delete_with(&owner, json!({ "propagationPolicy": "Background" })).expect(200);
    assert_eq!(names(&server), [""; 0]);
    let order: Vec<_> = server.events("v1", "configmaps", before).into_iter().map(|event| event.1).collect();
    assert_eq!(order, ["owner", "child", "grandchild"]);
}

#[test]
fn dependents_go_before_their_owner_in_the_foreground() {
    let (server, owner) = family(true);
    let before = server.api.revision();
    server.delete_with(&owner, json!({ "propagationPolicy": "Foreground" })).expect(200);
    assert_eq!(names(&server), [""; 0]);
    let gone = server.events("v1", "configmaps", before).into_iter().filter(|event| event.0 == "Deleted");
    assert_eq!(gone.map(|event| event.1).collect::<Vec<_>>(), ["grandchild", "child", "owner"]);
}

#[test]
fn orphans_lose_their_owner_and_stay() {
    let (server, owner) = family(true);
    server.delete_with(&owner, json!({ "propagationPolicy": "Orphan" })).expect(200);
    assert_eq!(names(&server), ["child", "grandchild"]);
    let child = server.get(&format!("{CORE}/configmaps/child")).expect(200);
    assert!(child["metadata"].get("ownerReferences").is_none(), "{child}");
}

#[test]
fn who_has_another_owner_stays() {
    let (server, owner) = family(true);
    let maps = format!("{CORE}/configmaps");
    let other = server.post(&maps, config_map("other")).expect(201);
    let first = server.get(&owner).expect(200);
    let owners = json!([reference(&first), reference(&other)]);
    server.merge(&format!("{maps}/child"), json!({ "metadata": { "ownerReferences": owners } })).expect(200);
    server.delete(&owner).expect(200);
    assert_eq!(names(&server), ["child", "grandchild", "other"]);
    let child = server.get(&format!("{maps}/child")).expect(200);
    assert_eq!(child["metadata"]["ownerReferences"], json!([reference(&other)]));
}

/// A server with `links` objects, each owned by the one before; returns the first one's path.
fn chain(links: usize) -> (Server, String) {
    let server = Server::with(|options| options.garbage_collection = true);
    let maps = format!("{CORE}/configmaps");
    let mut owner = server.post(&maps, config_map("m0")).expect(201);
    for link in 1..links {
        let object = with(config_map(&format!("m{link}")), "ownerReferences", json!([reference(&owner)]));
        owner = server.post(&maps, object).expect(201);
    }
    (server, format!("{maps}/m0"))
}

#[test]
fn a_chain_of_owners_that_is_longer_than_a_stack_is_deep_goes() {
    for policy in ["Background", "Foreground"] {
        let collect = move || {
            let (server, first) = chain(1_000);
            server.delete_with(&first, json!({ "propagationPolicy": policy })).expect(200);
            assert_eq!(names(&server), [""; 0], "{policy}");
        };
        // A small stack does for a deep one: the collector goes through all objects for each.
        std::thread::Builder::new().stack_size(512 << 10).spawn(collect).unwrap().join().unwrap();
    }
}
