//! The demo: what happens in it can happen, and is shown.

use bytes::Bytes;
use http::{Method, Request};
use kubediff::demo::{Act, Plot, Verb};
use testapi::{Api, ApiOptions};

use crate::session::Session;

/// Does one thing, as the demo's stage does; the server's refusal, if it has one.
async fn perform(api: &Api, act: &Act) -> Result<(), String> {
    let (method, content_type) = match act.verb {
        Verb::Create => (Method::POST, "application/json"),
        Verb::Patch => (Method::PATCH, "application/merge-patch+json"),
        Verb::Delete => (Method::DELETE, "application/json"),
    };
    let body = if act.body.is_null() { Bytes::new() } else { act.body.to_string().into() };
    let request = Request::builder().method(method).uri(&act.path).header("content-type", content_type);
    let answer = api.handle(request.body(body).unwrap()).await;
    if answer.status().is_success() { Ok(()) } else { Err(format!("{}: {act:?}", answer.status())) }
}

#[tokio::test]
async fn whatever_the_seed_the_server_takes_the_whole_story() {
    for seed in 0..20 {
        let mut options = ApiOptions::default();
        options.seed = seed;
        let api = Api::new(options);
        let mut story = Plot::new(seed);
        for act in story.prologue() {
            perform(&api, &act).await.unwrap_or_else(|refused| panic!("seed {seed}: {refused}"));
        }
        for step in 0..300 {
            for act in story.step().acts {
                perform(&api, &act)
                    .await
                    .unwrap_or_else(|refused| panic!("seed {seed}, step {step}: {refused}"));
            }
        }
    }
}

#[test]
fn a_seed_is_a_story() {
    let play = |seed| {
        let mut story = Plot::new(seed);
        let prologue = story.prologue();
        (prologue, std::iter::repeat_with(|| story.step()).take(200).collect::<Vec<_>>())
    };
    assert_eq!(play(7), play(7));
    assert_ne!(play(7), play(8));
}

#[tokio::test]
async fn a_spectator_who_deletes_the_shop_does_not_end_the_demo() {
    let session = tokio::task::spawn_blocking(|| {
        let mut session = Session::demo(&["--seed", "3", "--speed", "20", "--color", "never"]);
        let kubeconfig = session.note("export KUBECONFIG=");
        session.note("watching");
        (session, kubeconfig)
    });
    let (mut session, kubeconfig) = session.await.unwrap();
    let (_, path) = kubeconfig.split_once('=').unwrap();
    let kubeconfig = kube_client::config::Kubeconfig::read_from(path).unwrap();
    let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let client = kube_client::Client::try_from(config).unwrap();
    let namespaces = kube_client::Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
    namespaces.delete("shop", &Default::default()).await.unwrap();

    // The nodes are another place, where the story goes on.
    let session = tokio::task::spawn_blocking(move || {
        session.line(&["- namespaces shop", "deleted"]);
        session.line(&["~ nodes node-", "updated"]);
        session
    });
    let (_, notes, status) = session.await.unwrap().interrupt();
    assert!(status.success(), "{status} {notes:?}");
}

#[test]
fn the_demo_shows_a_day_in_a_shop() {
    let mut session = Session::demo(&["--seed", "7", "--speed", "20", "--color", "never"]);
    session.note("export KUBECONFIG=");
    session.note("watching");
    // On a busy machine the changes of many objects come at once, in another order than the story's.
    let mut missing = vec![
        ["~ configmaps shop/", "updated by kubectl-edit"],
        ["~ data[\"app.yaml\"]#database.pool:", "10 → 50"],
        ["~ deployments.apps shop/", "updated"],
        ["+ replicasets.apps shop/", "added by kube-controller-manager"],
        ["+ pods shop/", "added by kube-controller-manager"],
        ["- pods shop/", "deleted"],
        ["~ secrets shop/db", "updated"],
        ["~ data.password:", "<hmac:"],
        ["reason:", "CrashLoopBackOff"],
        ["+ customresourcedefinitions", "backups.ops.example.com"],
        ["+ backups.ops.example.com shop/db-nightly", "kubectl-create"],
        ["+ rolebindings", "shop/amina-edit"],
        ["~ horizontalpodautoscalers.autoscaling shop/web", "updated"],
        ["+ jobs.batch shop/invoices-", "added"],
        ["~ nodes node-", "updated"],
    ];
    while !missing.is_empty() {
        let line = session.line(&[]);
        missing.retain(|texts| !texts.iter().all(|text| line.contains(text)));
    }
    let (rest, _, status) = session.interrupt();
    assert!(status.success(), "{status}");
    let text = rest.join("\n");
    assert!(text.contains("changes of ") && text.contains("lease-renewal"), "{text}");
    // Passwords are nobody's business.
    assert!(!text.contains("correct-horse"), "{text}");
}
