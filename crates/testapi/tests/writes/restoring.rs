//! History, compaction, backups and restarts.

use futures_util::FutureExt;
use serde_json::json;
use serve::CollectionError;
use testapi::Gvr;

use crate::fixture::{CORE, Server, config_map};

#[test]
fn a_watch_that_falls_out_of_history_expires() {
    let server = Server::with(|options| options.history = 3);
    let maps = server.api.collection(&Gvr::new("v1", "configmaps")).unwrap();
    let start = server.api.revision();
    let mut slow = maps.events(start).unwrap();
    for name in ["a", "b", "c"] {
        server.post(&format!("{CORE}/configmaps"), config_map(name)).expect(201);
    }
    let mut other = maps.events(start).unwrap();
    assert_eq!(other.next().now_or_never().unwrap().unwrap().events.len(), 3);
    server.post(&format!("{CORE}/configmaps"), config_map("d")).expect(201);
    let expired = slow.next().now_or_never().unwrap().unwrap_err();
    assert!(matches!(expired, CollectionError::Expired { oldest } if oldest == start + 1), "{expired:?}");
    assert_eq!(other.next().now_or_never().unwrap().unwrap().events.len(), 1);
}

#[test]
fn compaction_forgets_what_was() {
    let server = Server::new();
    let maps = server.api.collection(&Gvr::new("v1", "configmaps")).unwrap();
    let start = server.api.revision();
    server.post(&format!("{CORE}/configmaps"), config_map("a")).expect(201);
    let list = maps.list(&serve::Range::default(), Some(start)).now_or_never().unwrap().unwrap();
    assert_eq!((list.revision, list.count), (start, 0));
    server.api.compact();
    let expired = maps.list(&serve::Range::default(), Some(start)).now_or_never().unwrap().unwrap_err();
    assert!(matches!(expired, CollectionError::Expired { oldest } if oldest == start + 1), "{expired:?}");
    assert!(maps.events(start).is_err());
    assert!(maps.events(start + 1).is_ok());
}

#[test]
fn a_restored_server_is_as_it_was_and_its_revision_goes_back() {
    let server = Server::new();
    let path = format!("{CORE}/configmaps");
    let a = server.post(&path, config_map("a")).expect(201);
    let backup = server.api.backup();
    let then = server.api.revision();
    server.delete(&format!("{path}/a")).expect(200);
    server.post(&path, config_map("b")).expect(201);
    let definition = json!({
        "metadata": { "name": "foos.x.io" },
        "spec": {
            "group": "x.io", "scope": "Cluster", "names": { "plural": "foos", "kind": "Foo" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).expect(201);
    let mut events =
        server.api.collection(&Gvr::new("v1", "configmaps")).unwrap().events(server.api.revision()).unwrap();

    server.api.restore(&backup);
    assert_eq!(server.api.revision(), then);
    assert_eq!(server.get(&format!("{path}/a")).expect(200), a);
    assert_eq!(server.get(&format!("{path}/b")).code, 404);
    assert_eq!(server.get("/apis/x.io/v1/foos").code, 404, "its definition came later");
    let ended = events.next().now_or_never().unwrap();
    assert!(matches!(ended, Err(CollectionError::Gone)), "{ended:?}");
    let again = server.post(&path, config_map("c"));
    assert_eq!(again.version(), then + 1);
}

#[test]
fn a_restart_ends_watches_and_keeps_objects() {
    let server = Server::new();
    let maps = server.api.collection(&Gvr::new("v1", "configmaps")).unwrap();
    let start = server.api.revision();
    server.post(&format!("{CORE}/configmaps"), config_map("a")).expect(201);
    let mut events = maps.events(server.api.revision()).unwrap();
    server.api.restart(true);
    assert!(matches!(events.next().now_or_never().unwrap(), Err(CollectionError::Gone)));
    assert!(maps.events(start).is_ok(), "its history was kept");
    server.api.restart(false);
    assert!(matches!(maps.events(start), Err(CollectionError::Expired { .. })));
    server.get(&format!("{CORE}/configmaps/a")).expect(200);
}

#[test]
fn a_bookmark_follows_what_happens_elsewhere() {
    let server = Server::new();
    let maps = server.api.collection(&Gvr::new("v1", "configmaps")).unwrap();
    let mut events = maps.events(server.api.revision()).unwrap();
    assert!(events.next().now_or_never().is_none());
    server.post(&format!("{CORE}/secrets"), json!({ "metadata": { "name": "s" } })).expect(201);
    assert!(events.next().now_or_never().is_none());
    assert_eq!(events.revision(), server.api.revision());
    server.post(&format!("{CORE}/configmaps"), config_map("a")).expect(201);
    assert_eq!(events.revision(), server.api.revision() - 1, "the new one has not been read");
}
