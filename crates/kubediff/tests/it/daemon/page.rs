//! `kubediff ui --daemon`: the page of a daemon, through exec into its pod.

use serde_json::json;

use super::exec::{Container, forms};
use super::server::{Cluster, program};
use crate::at::past::Past;
use crate::page::browser::Page;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_daemon_is_that_of_its_file() {
    const NOW: &str = "2026-03-01T16:00:00+01:00[Europe/Berlin]";
    let cluster = Cluster::open().await;
    let mut command = program(&[]);
    command.args(["ui", "--daemon", "monitoring/kubediff"]).env("KUBECONFIG", cluster.kubeconfig());
    let file = cluster.shop.path.clone();
    let pages = tokio::task::spawn_blocking(move || {
        let of_daemon = Page::of(command).entered();
        // The clock of a daemon's page goes on, so that both are asked for a time.
        let of_file = Page::with(&file, &["--now", NOW]);
        // Until a page has folded what there is, answers with stories have no tags.
        assert_eq!([&of_daemon, &of_file].map(|page| page.get("/v1/stories/7").status), [200, 200]);
        for path in [
            "/v1/changes?since=2026-03-01T14:00:00Z&until=2026-03-01T15:00:00Z&fold=1",
            "/v1/changes/9?objects=1",
            "/v1/state?kind=pods&at=15:06",
            "/change/9",
            "/o/deployments.apps/shop/cart?at=2026-03-01T14:06:00Z",
            "/at/2026-03-01T14:06:00Z/?kind=pods",
            "/diff?from=2026-03-01T14:02:00Z&to=2026-03-01T14:08:00Z",
            "/static/style.css",
            "/nothing",
            "/v1/changes?since=soon",
        ] {
            let path = path.replace("at=15:06", "at=2026-03-01T14:06:00Z");
            let (daemon, file) = (of_daemon.get(&path), of_file.get(&path));
            let text = |answer: &crate::page::browser::Answer| {
                // The time of the question stands below each page.
                answer
                    .text
                    .lines()
                    .filter(|line| !line.contains("as of <time>"))
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            assert_eq!((daemon.status, text(&daemon)), (file.status, text(&file)), "{path}");
            assert_eq!(daemon.header("content-type"), file.header("content-type"), "{path}");
            assert_eq!(
                daemon.header("content-security-policy"),
                file.header("content-security-policy"),
                "{path}"
            );
            // The daemon's page sends no answer again that the client has, either. A tag is one of the page that gave it.
            assert_eq!(daemon.header("etag").is_some(), file.header("etag").is_some(), "{path}");
            assert_eq!(daemon.header("cache-control"), file.header("cache-control"), "{path}");
            if let (Some(tag), Some(other)) = (daemon.header("etag"), file.header("etag")) {
                let status = |method, tags: &str| of_daemon.unless(method, &path, tags).status;
                let several = format!("{other}, {tag}");
                let is_screen = !path.starts_with("/v1/");
                // The clock of a daemon's page goes on, and a screen has its minute.
                let is_same = |status| status == 304 || (is_screen && status == 200);
                assert!(is_same(status("GET", tag)) && is_same(status("HEAD", &several)), "{path}");
                assert_eq!(status("GET", other), 200, "{path}");
            }
            for form in forms("hunter2hunter2") {
                assert!(!daemon.text.contains(&form), "{path}");
            }
        }
        // Requests share the connection: a stream that waits holds up none.
        let mut live = of_daemon.follow("/live");
        assert!(live.by_ref().any(|line| line.is_empty()));
        assert_eq!(of_daemon.get("/v1/status").status, 200);
        of_daemon
    });
    let page = pages.await.unwrap();
    let asked = cluster.asked();
    assert_eq!(asked.command[..4], ["kubediff", "ui", "--stdio", "--of-this-daemon"]);
    assert!(asked.has_input && asked.command.iter().all(|word| !word.contains("sesame")), "{asked:?}");
    // The browser's cookie stays on this side, and so does the link.
    cluster.container(Container::Is("killed\n", 137));
    drop(page);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_of_a_daemon_is_that_of_its_file() {
    let cluster = Cluster::open().await;
    let mut command = program(&[]);
    command.args(["at", "2026-03-01T14:45:00Z", "--daemon", "monitoring/kubediff"]);
    command.env("KUBECONFIG", cluster.kubeconfig());
    let file = cluster.shop.path.clone();
    let read = move || {
        let (of_daemon, of_file) = (Past::of(command), Past::open(&file, "2026-03-01T14:45:00Z"));
        let table = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n";
        let json = "Content-Type: application/json\r\n";
        let attributes = json!({"verb": "list", "resource": "pods"});
        let review = json!({"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
        let review = review.to_string();
        for (method, path, headers, body) in [
            ("GET", "/apis", "", ""),
            ("GET", "/api/v1/secrets", "", ""),
            ("GET", "/apis/apps/v1/namespaces/shop/deployments/cart", "", ""),
            ("GET", "/apis/apps/v1/deployments?watch=1&resourceVersion=60&timeoutSeconds=1", "", ""),
            ("GET", "/api/v1/configmaps", table, ""),
            ("GET", "/api/v1/nothing", "", ""),
            ("DELETE", "/api/v1/namespaces/shop/secrets/db", "", ""),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json, &review),
        ] {
            let [daemon, file] = [&of_daemon, &of_file].map(|past| past.ask(method, path, headers, body));
            assert_eq!((daemon.status, &daemon.text), (file.status, &file.text), "{method} {path}");
            assert_eq!(daemon.headers("warning"), file.headers("warning"), "{method} {path}");
            for form in forms("hunter2hunter2") {
                assert!(!daemon.text.contains(&form), "{path}");
            }
        }
    };
    tokio::task::spawn_blocking(read).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_the_page_is_named_with_its_version() {
    let cluster = Cluster::open().await;
    let ui = ["ui", "--daemon", "monitoring/kubediff"];
    cluster.container(Container::Is("error: unrecognized subcommand 'ui'\n", 2));
    let (said, code) = cluster.refusal(&ui).await;
    assert!(said.contains("is of another version than this one"), "{said}");
    assert_eq!(code, 3);
    cluster.container(Container::Is("kubediff: the history cannot be read\n", 1));
    let (said, code) = cluster.refusal(&ui).await;
    assert!(said.contains("ended with exit code 1"), "{said}");
    assert_eq!(code, 3);
    cluster.container(Container::Says(json!({
        "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": "exec: \"kubediff\": executable file not found in $PATH: unknown",
    })));
    let (said, code) = cluster.refusal(&ui).await;
    assert!(said.contains("has no program kubediff"), "{said}");
    assert_eq!(code, 3);
    cluster.refuse(
        "/exec",
        403,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 403}),
    );
    let (said, code) = cluster.refusal(&ui).await;
    assert!(said.contains("pods/exec") && said.contains("get and create"), "{said}");
    assert_eq!(code, 3);
}
