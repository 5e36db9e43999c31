//! What can be read of the past.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubediff::Secrets;
use serde_json::{Value, json};

use super::past::Past;
use crate::queries::shop::Shop;
use crate::queries::world::World;

const KEY: [u8; 32] = [7; 32];
const TABLE: &str = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n";

fn names(list: &Value) -> Vec<String> {
    let name = |it: &Value| {
        let part = |name: &str| it["metadata"][name].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part("namespace"), part("name"))
    };
    list["items"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn objects_are_those_of_the_time() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:06:30");
    let list = past.get("/apis/apps/v1/deployments").json();
    assert_eq!((list["kind"].as_str(), names(&list)), (Some("DeploymentList"), vec!["shop/cart".to_owned()]));
    assert_eq!(list["items"][0]["spec"]["template"]["spec"]["containers"][0]["image"], "web:2");
    let own = list["items"][0]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    let all = list["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(own % 10 == 0 && all % 10 == 0 && own < all, "{own} {all}");
    let one = past.get("/apis/apps/v1/namespaces/shop/deployments/cart");
    assert_eq!(one.json()["kind"], "Deployment");
    assert_eq!(one.header("kubediff-record"), Some((all / 10).to_string().as_str()));
    let absent = past.get("/apis/apps/v1/namespaces/shop/deployments/cart2");
    assert_eq!((absent.status, absent.json()["reason"].as_str()), (404, Some("NotFound")));

    let earlier = Past::open(&shop.path, "14:04");
    let cart = earlier.get("/apis/apps/v1/namespaces/shop/deployments/cart").json();
    assert_eq!(cart["spec"]["template"]["spec"]["containers"][0]["image"], "web:1");
    // Deleted, and not yet made.
    let later = Past::open(&shop.path, "14:35");
    assert_eq!(names(&later.get("/api/v1/pods").json()), [""; 0]);
    assert_eq!(names(&later.get("/api/v1/secrets").json()), [""; 0]);
    let number = Past::open(&shop.path, &format!("#{}", own / 10));
    assert_eq!(
        number.get("/apis/apps/v1/deployments").json()["metadata"]["resourceVersion"],
        own.to_string()
    );
}

#[test]
fn tables_have_the_columns_and_the_ages_of_the_time() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:06:30");
    let table = past.ask("GET", "/api/v1/namespaces/shop/pods", TABLE, "").json();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..4], [json!("cart-a"), json!("0/1"), json!("CrashLoopBackOff"), json!("3")]);
    assert_eq!(cells[4], "5m30s");

    let later = Past::open(&shop.path, "14:25");
    let table = later.ask("GET", "/apis/example.com/v1/offers", TABLE, "").json();
    let columns =
        table["columnDefinitions"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert_eq!(columns.collect::<Vec<_>>(), ["Name", "Price", "Ready"]);
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap()[..2], [json!("sale"), json!(5)]);
}

#[test]
fn discovery_has_what_was_recorded() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:45");
    let core = past.get("/api/v1").json();
    let all = core["resources"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|it| it["name"].as_str().unwrap()).collect();
    for name in ["configmaps", "nodes", "pods", "pods/status", "secrets"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"services") && !names.contains(&"pods/log"), "{names:?}");
    let pods = all.iter().find(|it| it["name"] == "pods").unwrap();
    assert_eq!(pods["verbs"], json!(["get", "list", "watch"]));
    let groups = past.get("/apis").json();
    let groups: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(groups, ["apps", "apiextensions.k8s.io", "example.com"]);
    let index = past.get("/openapi/v3").json();
    assert!(index["paths"]["apis/example.com/v1"].is_object(), "{index}");
    assert_eq!(past.get("/healthz").text, "ok");
    assert_eq!(past.get("/version").status, 200);
}

#[test]
fn hidden_values_are_valid_base64() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:45");
    let secret = past.get("/api/v1/namespaces/shop/secrets/db").json();
    let value = BASE64_STANDARD.decode(secret["data"]["password"].as_str().unwrap()).unwrap();
    let value = String::from_utf8(value).unwrap();
    assert!(value.starts_with("<hmac:") && value.ends_with(" 14 bytes>"), "{value}");
    let list = past.get("/api/v1/secrets").text;
    assert!(!list.contains("aHVudGVyMmh1bnRlcjI=") && !list.contains("hunter"), "{list}");
}

/// Clients with types decode such fields, and fail on the whole list where one is no base64.
#[test]
fn hidden_values_are_base64_where_a_definition_has_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, KEY);
    let mut secrets = Secrets::with_key(KEY);
    for path in ["spec.csr", "spec.note", "spec.chain[*]", "spec.keys.a.key", "spec.keys.a.id"] {
        secrets.hide("Order.example.com".parse().unwrap(), path.parse().unwrap());
    }
    world.hides(secrets);
    let bytes = json!({"type": "string", "format": "byte"});
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {
        "csr": bytes, "note": text,
        "chain": {"type": "array", "items": bytes},
        "keys": {"type": "object", "additionalProperties": {"type": "object", "properties": {"key": bytes, "id": text}}},
    }});
    world.wrote(
        "12:00:00",
        "ann",
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "orders.example.com", "uid": "d"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "orders", "kind": "Order"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
            },
        }),
    );
    let order = json!({
        "apiVersion": "example.com/v1", "kind": "Order", "metadata": {"name": "o", "namespace": "shop", "uid": "o"},
        "spec": {"csr": "aGlkZGVuMQ==", "note": "hidden two", "chain": ["aGlkZGVuMw=="],
            "keys": {"a": {"key": "aGlkZGVuNA==", "id": "hidden five"}}},
    });
    world.wrote("12:01:00", "ann", order);
    drop(world);
    let past = Past::open(&path, "12:02");
    let order = past.get("/apis/example.com/v1/namespaces/shop/orders/o").json();
    assert_eq!(past.get("/apis/example.com/v1/orders").json()["items"][0]["spec"], order["spec"]);
    for (place, is_encoded) in
        [("/csr", true), ("/note", false), ("/chain/0", true), ("/keys/a/key", true), ("/keys/a/id", false)]
    {
        let text = order["spec"].pointer(place).unwrap().as_str().unwrap();
        let mark = match is_encoded {
            true => String::from_utf8(BASE64_STANDARD.decode(text).unwrap()).unwrap(),
            false => text.to_owned(),
        };
        assert!(mark.starts_with("<hmac:"), "{place}: {order}");
    }
}

#[test]
fn doubts_are_warnings() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:11:30");
    let inside = past.get("/api/v1/pods");
    let warnings = inside.headers("warning");
    assert!(
        warnings.iter().any(|it| it.starts_with("299 kubediff \"pods not watched from 2026-03-01 14:11:00")
            && it.contains("the server restarted")),
        "{warnings:?}"
    );
    // The state before the gap.
    assert_eq!(names(&inside.json()), ["shop/cart-a"]);
    let beside = past.get("/api/v1/configmaps");
    assert_eq!(beside.headers("warning"), [""; 0]);
    let nodes = past.get("/api/v1/nodes");
    assert!(nodes.headers("warning").iter().any(|it| it.contains("may be older")));
}

#[test]
fn pages_and_selectors_are_those_of_a_server() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:02");
    let first = past.get("/api/v1/configmaps?limit=1").json();
    assert_eq!(names(&first), ["blog/app"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = past.get(&format!("/api/v1/configmaps?limit=1&continue={token}")).json();
    assert_eq!(names(&second), ["shop/app"]);
    assert_eq!(names(&past.get("/apis/apps/v1/deployments?labelSelector=app%3Dcart").json()), ["shop/cart"]);
    assert_eq!(names(&past.get("/apis/apps/v1/deployments?labelSelector=app%3Dweb").json()), [""; 0]);
    assert_eq!(names(&past.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1").json()), ["shop/cart-a"]);
    assert_eq!(names(&past.get("/api/v1/namespaces/blog/configmaps").json()), ["blog/app"]);
}

#[test]
fn a_watch_of_a_time_goes_up_to_it() {
    let shop = Shop::open();
    let past = Past::open(&shop.path, "14:45");
    let newest = past.get("/apis/apps/v1/deployments").json()["metadata"]["resourceVersion"].clone();
    let begin = Past::open(&shop.path, "14:04").get("/apis/apps/v1/deployments").json();
    let begin = begin["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!(
        "/apis/apps/v1/deployments?watch=1&resourceVersion={begin}&allowWatchBookmarks=true&timeoutSeconds=3"
    );
    let told: Vec<String> = past
        .follow(&path)
        .map(|line| {
            let event: Value = serde_json::from_str(&line).unwrap();
            let object = &event["object"];
            format!("{} {} {}", event["type"], object["metadata"]["uid"], object["spec"]["replicas"])
        })
        .collect();
    let was = |kind: &str, uid: &str, replicas: u64| format!("{:?} {uid:?} {replicas}", kind);
    assert_eq!(told[..2], [was("MODIFIED", "cart-1", 1), was("MODIFIED", "cart-1", 3)]);
    // Another uid by the same name is a deletion and an addition.
    assert_eq!(told[2..4], [was("DELETED", "cart-1", 3), was("ADDED", "cart-2", 2)]);
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told[4].starts_with("\"BOOKMARK\""), "{told:?}");
    let resumed = format!(
        "/apis/apps/v1/deployments?watch=1&resourceVersion={}&timeoutSeconds=1",
        newest.as_str().unwrap()
    );
    assert_eq!(past.follow(&resumed).count(), 0);
}
