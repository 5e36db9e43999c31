//! Lists in pages.

use std::sync::Arc;

use serde_json::json;

use crate::client::{PODS, get, serve};
use crate::model::World;

fn five() -> Arc<World> {
    let world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        let label = if name < "c" { "low" } else { "high" };
        world.put("pods", &format!("shop/{name}"), &[("is", label)], json!({}));
    }
    world
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment_whatever_happens_meanwhile() {
    let world = five();
    let serve = serve(&world);
    let first = get(&serve, &format!("{PODS}?limit=2")).await;
    assert_eq!(first.names(), ["shop/a", "shop/b"]);
    let meta = &first.json()["metadata"];
    assert_eq!((&meta["resourceVersion"], &meta["remainingItemCount"]), (&json!("105"), &json!(3)));
    // The bytes of the real server's token for the same page.
    assert_eq!(meta["continue"], "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTA1LCJzdGFydCI6Ii9iXHUwMDAwIn0");

    world.delete("pods", "shop/c");
    world.put("pods", "shop/bb", &[], json!({}));
    let token = meta["continue"].as_str().unwrap();
    let second = get(&serve, &format!("{PODS}?limit=2&continue={token}")).await;
    assert_eq!(second.names(), ["shop/c", "shop/d"]);
    let meta = &second.json()["metadata"];
    assert_eq!((&meta["resourceVersion"], &meta["remainingItemCount"]), (&json!("105"), &json!(1)));

    let token = meta["continue"].as_str().unwrap();
    let rest = get(&serve, &format!("{PODS}?continue={token}&resourceVersion=0")).await;
    assert_eq!(rest.names(), ["shop/e"]);
    assert_eq!(rest.json()["metadata"], json!({ "resourceVersion": "105" }));
}

#[tokio::test(start_paused = true)]
async fn pages_cross_namespaces() {
    let world = World::new();
    for key in ["a/x", "a-b/x", "b/x", "b/y"] {
        world.put("pods", key, &[], json!({}));
    }
    let serve = serve(&world);
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let page = get(&serve, &format!("/api/v1/pods?limit=1&continue={token}")).await;
        names.extend(page.names());
        match page.json()["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_string(),
            None => break,
        }
    }
    // In the real server's order: by the text of namespace and name together.
    assert_eq!(names, ["a-b/x", "a/x", "b/x", "b/y"]);
}

#[tokio::test(start_paused = true)]
async fn what_remains_is_not_counted_through_a_selector() {
    let serve = serve(&five());
    let page = get(&serve, &format!("{PODS}?limit=2&labelSelector=is%3Dlow")).await;
    assert_eq!(page.names(), ["shop/a", "shop/b"]);
    let meta = &page.json()["metadata"];
    assert!(meta.get("remainingItemCount").is_none());
    // Objects are left, but none that is selected: the last page is empty.
    let token = meta["continue"].as_str().unwrap();
    let rest = get(&serve, &format!("{PODS}?limit=2&labelSelector=is%3Dlow&continue={token}")).await;
    assert_eq!((rest.names().len(), rest.json()["metadata"].get("continue")), (0, None));
}

#[tokio::test(start_paused = true)]
async fn any_version_comes_whole() {
    let serve = serve(&five());
    let list = get(&serve, &format!("{PODS}?limit=2&resourceVersion=0")).await;
    assert_eq!(list.names().len(), 5);
    assert!(list.json()["metadata"].get("continue").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_page_comes_with_a_token_for_the_rest() {
    let world = five();
    let serve = serve(&world);
    let first = get(&serve, &format!("{PODS}?limit=2")).await.json();
    let token = first["metadata"]["continue"].as_str().unwrap();
    world.delete("pods", "shop/c");
    world.put("pods", "shop/bb", &[], json!({}));
    world.compact(107);

    let expired = get(&serve, &format!("{PODS}?limit=2&continue={token}")).await;
    assert_eq!(expired.code, 410);
    assert_eq!(expired.json()["reason"], "Expired");
    assert_eq!(
        expired.message(),
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list."
    );
    let token = expired.json()["metadata"]["continue"].as_str().unwrap().to_string();
    let rest = get(&serve, &format!("{PODS}?limit=2&continue={token}")).await;
    assert_eq!(rest.names(), ["shop/bb", "shop/d"]);
    assert_eq!(rest.json()["metadata"]["resourceVersion"], "107");
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_none_are_refused() {
    let serve = serve(&five());
    // v1 tokens: rv 0, no start, a start that leaves the collection.
    let token = |text: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };
    for (token, message) in [
        ("x".to_string(), "continue key is not valid: illegal base64 data at input byte 0"),
        ("zz".to_string(), "continue key is not valid: invalid character 'Ï' looking for beginning of value"),
        ("e30".to_string(), "continue key is not valid: server does not recognize this encoded version "),
        (
            token(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            token(r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#),
            "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
        ),
        (token(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"/../x"}"#), "continue key is not valid: /../x"),
    ] {
        let refused = get(&serve, &format!("{PODS}?continue={token}")).await;
        assert_eq!((refused.code, refused.message()), (400, format!("invalid continue token: {message}")));
    }
    let first = get(&serve, &format!("{PODS}?limit=2")).await.json();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let refused = get(&serve, &format!("{PODS}?continue={token}&resourceVersion=100")).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (400, "specifying resource version is not allowed when using continue")
    );
}
