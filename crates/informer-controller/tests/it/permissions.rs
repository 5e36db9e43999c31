//! A controller checks its permissions when it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer::kube::Client;
use informer_controller::permissions::{Access, Verb};
use informer_controller::{Context, Controller, Outcome, RunError};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use testapi::faults::{Fault, Refusal};

use crate::scripted;
use crate::support::{LONG, Stop, World, map};

fn controller(world: &World) -> Controller<ConfigMap> {
    Controller::new("copier", &world.factory.informer::<ConfigMap>())
        .needs(Access::to::<Secret>([Verb::Create, Verb::Patch]).within("shop"))
        .needs(Access::events())
}

async fn run(controller: Controller<ConfigMap>, client: Client) -> Result<(), RunError> {
    let run = controller.run(client, async |_: Context<ConfigMap>| Ok(Outcome::Done));
    tokio::time::timeout(LONG, run).await.expect("it ends")
}

fn answer(allowed: bool) -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
        "spec": {}, "status": { "allowed": allowed },
    })
}

#[tokio::test]
async fn one_error_names_everything_that_is_missing_with_the_rules_that_grant_it() {
    let world = World::new([]).await;
    let (client, log) = scripted::client(|asked| {
        let review = &asked.body["spec"]["resourceAttributes"];
        let denied = review["resource"] == "secrets" || review["verb"] == "watch";
        Some((201, answer(!denied)))
    });
    let error = run(controller(&world), client).await.expect_err("permissions are missing");
    assert_eq!(
        error.to_string(),
        r#"the controller lacks permissions: watch configmaps, create secrets in namespace shop, patch secrets in namespace shop. These rules grant them:
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "copier"
rules:
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: [watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "copier"
  namespace: "shop"
rules:
- apiGroups: [""]
  resources: ["secrets"]
  verbs: [create, patch]
"#
    );
    assert_eq!(error.missing_permissions().unwrap().to_objects().len(), 2);
    let asked = log.lock().unwrap();
    assert_eq!(asked.len(), 6, "one review for each permission");
    assert!(asked.iter().all(|one| one.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"));
    let of_secrets = asked.iter().find(|one| one.body["spec"]["resourceAttributes"]["resource"] == "secrets");
    let attributes = &of_secrets.unwrap().body["spec"]["resourceAttributes"];
    assert_eq!((&attributes["namespace"], &attributes["group"]), (&json!("shop"), &json!("")));
}

#[tokio::test]
async fn the_rules_have_the_informers_and_what_the_reconciler_needs() {
    let world = World::new([]).await;
    assert_eq!(
        controller(&world).rules().summary(),
        "list configmaps, watch configmaps, create events.events.k8s.io, patch events.events.k8s.io, \
         create secrets in namespace shop, patch secrets in namespace shop"
    );
}

#[tokio::test]
async fn an_informer_needs_its_namespaces_and_nothing_without_one() {
    let world = World::new([]).await;
    let rules = |namespaces: &[&str]| {
        let factory = world.factory.in_namespaces(namespaces.iter().copied());
        Controller::new("copier", &factory.informer::<ConfigMap>()).rules().summary()
    };
    assert_eq!(rules(&["shop"]), "list configmaps in namespace shop, watch configmaps in namespace shop");
    assert_eq!(rules(&[]), "");
}

#[tokio::test]
async fn a_controller_with_its_permissions_or_without_reviews_runs() {
    for refusal in [None, Some(Refusal::Forbidden), Some(Refusal::NotFound)] {
        let world = World::new([map("shop", "a")]).await;
        let reviews = testapi::Verb::Create.of("selfsubjectaccessreviews");
        if let Some(refusal) = refusal {
            world.server.faults().on(reviews.clone()).always(Fault::Refuse(refusal));
        }
        let (stop, stopped) = Stop::pair();
        let (reconciled, mut done) = tokio::sync::mpsc::unbounded_channel();
        let running = tokio::spawn(controller(&world).until(stopped).run(
            world.client.clone(),
            move |_: Context<ConfigMap>| {
                let _ = reconciled.send(());
                async { Ok(Outcome::Done) }
            },
        ));
        tokio::time::timeout(LONG, done.recv()).await.unwrap().unwrap();
        assert!(world.server.requests().count(&reviews) > 0);
        stop.and_wait(running).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_reviews_is_not_waited_for_after_the_stop() {
    let world = World::new([]).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let (client, _) = scripted::client(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        None
    });
    let (stop, stopped) = Stop::pair();
    let running = tokio::spawn(run(controller(&world).until(stopped), client));
    while asked.load(Ordering::SeqCst) < 6 {
        tokio::task::yield_now().await;
    }
    stop.and_wait(running).await.unwrap();
}
