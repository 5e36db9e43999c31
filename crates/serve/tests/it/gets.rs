//! One object.

use http::Method;
use serde_json::json;
use tokio::time::{Duration, Instant};

use crate::client::{PODS, WIDGETS, accepting, answer, get, send, serve};
use crate::model::World;

#[tokio::test(start_paused = true)]
async fn an_object_says_its_kind_and_version() {
    let world = World::new();
    world.put("pods", "shop/a", &[], json!({ "spec": { "nodeName": "n1" } }));
    let found = get(&serve(&world), &format!("{PODS}/a?pretty=true&watch=true")).await;
    assert_eq!((found.code, found.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    let text = String::from_utf8(found.body.to_vec()).unwrap();
    assert!(text.starts_with(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"#), "{text}");
    assert!(text.ends_with("\"spec\":{\"nodeName\":\"n1\"}}\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() {
    let world = World::new();
    world.put("pods", "shop/a", &[], json!({}));
    let serve = serve(&world);
    let pod = get(&serve, &format!("{PODS}/b")).await;
    assert_eq!(pod.code, 404);
    assert_eq!(
        pod.json(),
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "pods \"b\" not found", "reason": "NotFound",
            "details": { "name": "b", "kind": "pods" }, "code": 404 })
    );
    for below in ["/nothing", "/nothing/more"] {
        let widget = get(&serve, &format!("{WIDGETS}/b{below}")).await;
        assert_eq!(widget.message(), "widgets.example.com \"b\" not found", "{below}");
    }
    let widget = get(&serve, &format!("{WIDGETS}/b/status")).await;
    assert_eq!(widget.json()["message"], "widgets.example.com \"b\" not found");
    assert_eq!(widget.json()["details"], json!({ "name": "b", "group": "example.com", "kind": "widgets" }));
    assert_eq!(get(&serve, "/api/v1/namespaces/other/pods/a").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_not_older_than_asked() {
    let world = World::new();
    let version = world.put("pods", "shop/a", &[], json!({}));
    let serve = serve(&world);
    for at in ["", "0", "1", &version.to_string()] {
        assert_eq!(get(&serve, &format!("{PODS}/a?resourceVersion={at}")).await.code, 200, "{at}");
    }
    let begun = Instant::now();
    let late = get(&serve, &format!("{PODS}/a?resourceVersion=999")).await;
    assert_eq!(late.code, 504);
    assert_eq!(late.headers["retry-after"], "1");
    assert_eq!(late.message(), "Timeout: Too large resource version: 999, current: 101");
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());

    // A request that is slightly ahead of the server waits.
    let uri = format!("{PODS}/a?resourceVersion=105");
    let (found, _) = tokio::join!(get(&serve, &uri), async {
        tokio::task::yield_now().await;
        world.pass(4)
    });
    assert_eq!(found.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_none_is_called_the_servers_own_fault() {
    let world = World::new();
    let refused = get(&serve(&world), &format!("{PODS}/a?resourceVersion=x")).await;
    assert_eq!(refused.code, 500);
    assert_eq!(
        refused.message(),
        "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax"
    );
    assert!(refused.json().get("reason").is_none());
}

#[tokio::test(start_paused = true)]
async fn paths_that_lead_nowhere_are_said_as_the_group_says_it() {
    let world = World::new();
    world.put("pods", "shop/a", &[], json!({}));
    let serve = serve(&world);
    for path in [
        "/api/v1/foo",
        "/api/v2/pods",
        "/api/v1/pods/a",
        "/api/v1/namespaces/shop/nodes",
        "/api/v1/watch/pods/a",
        "/api/v1/namespaces/shop/pods/a/ephemeral",
        "/api/v1/bindings",
        "/api/v1/namespaces/shop/bindings/a",
    ] {
        let refused = get(&serve, path).await;
        for method in [Method::OPTIONS, Method::TRACE] {
            assert_eq!(answer(send(&serve, method, path, &[]).await).await.code, 404, "{path}");
        }
        assert_eq!(accepting(&serve, path, "text/plain").await.code, 404, "{path}");
        assert_eq!(refused.code, 404, "{path}");
        assert_eq!(refused.message(), "the server could not find the requested resource", "{path}");
        assert_eq!(refused.json()["details"], json!({}), "{path}");
    }
    for path in ["/apis/nope/v1/foo", "/apis/example.com/v2/widgets", "/apis/example.com/v1/widgets/w"] {
        let refused = get(&serve, path).await;
        assert_eq!((refused.code, &*refused.body), (404, &b"404 page not found\n"[..]), "{path}");
        assert_eq!(refused.headers["content-type"], "text/plain; charset=utf-8", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_methods_are_not_allowed_where_they_do_not_write() {
    let world = World::new();
    world.put("widgets", "shop/w", &[], json!({}));
    let serve = serve(&world);
    for method in [Method::HEAD, Method::OPTIONS, Method::TRACE] {
        let refused = answer(send(&serve, method.clone(), PODS, &[]).await).await;
        assert_eq!(
            (refused.code, refused.message().as_str()),
            (405, "the server does not allow this method on the requested resource"),
            "{method}"
        );
        assert_eq!(refused.json()["details"], json!({}), "{method}");
    }
    assert_eq!(get(&serve, "/api/v1/namespaces/shop/bindings").await.code, 405);
    // Custom resources have another handler, which treats this differently.
    assert_eq!(answer(send(&serve, Method::HEAD, WIDGETS, &[]).await).await.code, 200);
    let everywhere = send(&serve, Method::OPTIONS, "/apis/example.com/v1/widgets", &[]).await;
    assert_eq!(answer(everywhere).await.body, "404 page not found\n");
    let watch = "/apis/example.com/v1/watch/widgets?timeoutSeconds=1";
    assert_eq!(answer(send(&serve, Method::OPTIONS, watch, &[]).await).await.code, 200);
    let refused = answer(send(&serve, Method::OPTIONS, WIDGETS, &[]).await).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (405, " is not supported on resources of kind \"widgets.example.com\"")
    );
    assert_eq!(refused.json()["details"], json!({ "group": "example.com", "kind": "widgets" }));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_an_object_and_a_place() {
    use serve::{Route, route};
    let about = |path: &str| match route(&path.parse().unwrap()) {
        Route::Resource(request) => {
            let part = |part: &Option<String>| part.clone().unwrap_or("-".to_string());
            let watch = if request.watch { " watch" } else { "" };
            format!(
                "{} {} {} {}{watch}",
                request.plural,
                part(&request.namespace),
                part(&request.name),
                part(&request.subresource)
            )
        }
        other => format!("{other:?}"),
    };
    for (path, expected) in [
        ("/api/v1/namespaces", "namespaces - - -"),
        ("/api/v1/namespaces/shop", "namespaces - shop -"),
        ("/api/v1/namespaces/shop/", "namespaces - shop -"),
        ("/api/v1/namespaces/shop/status", "namespaces - shop status"),
        ("/api/v1/namespaces/shop/finalize", "namespaces - shop finalize"),
        ("/api/v1/namespaces/shop/pods", "pods shop - -"),
        ("/api/v1/namespaces/shop/pods/a%2Fb", "pods shop a/b -"),
        ("/apis/apps/v1/namespaces/shop/deployments/cart/scale", "deployments shop cart scale"),
        ("/api/v1/watch/namespaces/shop/pods/a", "pods shop a - watch"),
        ("/api/v1/watch/namespaces/shop", "namespaces - shop - watch"),
        ("/api/v1/watch/pods", "pods - - - watch"),
        ("/api/v1", "Discovery(\"/api/v1\")"),
        ("/apis/apps/v1", "Discovery(\"/apis/apps/v1\")"),
        ("/openapi/v3/apis/apps/v1", "OpenApi(\"/openapi/v3/apis/apps/v1\")"),
        ("/version", "Version"),
        ("/readyz/ping", "Health"),
        ("/metrics", "Unknown"),
        ("/api/v1/namespaces//pods", "pods - - -"),
        ("/api/v1/namespaces/shop//a", "Unknown"),
        ("/api/v1/namespaces/shop/pods/a/log/b", "pods shop a log/b"),
    ] {
        assert_eq!(about(path), expected, "{path}");
    }
}
