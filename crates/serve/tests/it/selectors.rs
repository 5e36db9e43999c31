//! Which objects a selector selects.

use std::sync::Arc;

use serde_json::json;

use crate::client::{PODS, WIDGETS, get, serve};
use crate::model::World;

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn labelled() -> Arc<World> {
    let world = World::new();
    world.put("pods", "shop/a", &[("app", "web"), ("tier", "1")], json!({}));
    world.put("pods", "shop/b", &[("app", "db"), ("tier", "20")], json!({}));
    world.put("pods", "shop/c", &[("app", ""), ("example.com/in", "in")], json!({}));
    world.put("pods", "shop/d", &[], json!({}));
    world
}

#[tokio::test(start_paused = true)]
async fn labels_select_as_the_server_selects() {
    let serve = serve(&labelled());
    for (selector, expected) in [
        ("", "abcd"),
        ("app=web", "a"),
        ("app==web", "a"),
        ("app!=web", "bcd"),
        ("app", "abc"),
        ("!app", "d"),
        ("app in (web,db)", "ab"),
        ("app in (web, )", "ac"),
        ("app in ()", "c"),
        ("app notin (web,db)", "cd"),
        ("app=", "c"),
        ("app=,tier", ""),
        ("tier>1", "b"),
        ("tier<5,app", "a"),
        ("app>1", ""),
        ("example.com/in=in", "c"),
        ("example.com/in in (in)", "c"),
        (" app = web , tier ", "a"),
        ("app,!tier", "c"),
    ] {
        let list = get(&serve, &format!("{PODS}?labelSelector={}", encoded(selector))).await;
        assert_eq!(list.code, 200, "{selector}: {}", list.message());
        let names: String = list.names().iter().map(|name| name.replace("shop/", "")).collect();
        assert_eq!(names, expected, "{selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_select_by_what_objects_have_or_lack() {
    let world = World::new();
    world.put(
        "pods",
        "shop/a",
        &[],
        json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Running" } }),
    );
    world.put("pods", "shop/b", &[], json!({ "spec": { "nodeName": "n,2" } }));
    world.put("pods", "other/a", &[], json!({ "spec": {} }));
    world.put("nodes", "/n1", &[], json!({ "spec": { "unschedulable": true } }));
    world.put("nodes", "/n2", &[], json!({ "spec": {} }));
    world.put("widgets", "shop/w", &[], json!({ "spec": { "color": "re\"d" } }));
    let serve = serve(&world);
    for (uri, selector, expected) in [
        ("/api/v1/pods", "metadata.name=a", "other/a shop/a"),
        ("/api/v1/pods", "metadata.name==a,metadata.namespace=shop", "shop/a"),
        ("/api/v1/pods", "metadata.name!=a", "shop/b"),
        ("/api/v1/pods", "spec.nodeName=n1", "shop/a"),
        ("/api/v1/pods", "spec.nodeName=n\\,2", "shop/b"),
        ("/api/v1/pods", "spec.nodeName=", "other/a"),
        ("/api/v1/pods", "spec.nodeName!=,status.phase!=Running", "shop/b"),
        ("/api/v1/pods", ",", "other/a shop/a shop/b"),
        ("/api/v1/nodes", "spec.unschedulable=true", "/n1"),
        ("/api/v1/nodes", "spec.unschedulable=false", "/n2"),
        (WIDGETS, "spec.color=re\"d", "shop/w"),
        (WIDGETS, "metadata.namespace=shop", "shop/w"),
    ] {
        let list = get(&serve, &format!("{uri}?fieldSelector={}", encoded(selector))).await;
        assert_eq!(list.code, 200, "{selector}: {}", list.message());
        assert_eq!(list.names().join(" "), expected, "{selector}");
    }
}
