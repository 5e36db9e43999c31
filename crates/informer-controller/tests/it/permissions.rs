//! A controller checks its permissions when it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer::SharedInformerFactory;
use informer::kube::Client;
use informer_controller::permissions::{Access, Verb};
use informer_controller::{Context, Controller, Outcome, RunError};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use testapi::faults::{Fault, Refusal};

use crate::scripted::{self, Log};
use crate::support::{LONG, Stop, World, map};

fn controller(factory: &SharedInformerFactory) -> Controller<ConfigMap> {
    Controller::new("copier", &factory.informer::<ConfigMap>())
        .needs(Access::to::<Secret>([Verb::Create, Verb::Patch]).within("shop"))
        .needs(Access::events())
}

fn factory(client: &Client) -> SharedInformerFactory {
    SharedInformerFactory::builder_with_client(client.clone()).build().unwrap()
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
    let (client, log) = scripted::client(|asked| {
        let review = &asked.body["spec"]["resourceAttributes"];
        let denied = review["resource"] == "secrets" || review["verb"] == "watch";
        Some((201, answer(!denied)))
    });
    let controller = controller(&factory(&client));
    let error = run(controller, client).await.expect_err("permissions are missing");
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
        controller(&world.factory).rules().summary(),
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
        let running = tokio::spawn(controller(&world.factory).until(stopped).run(
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
    let running = tokio::spawn(run(controller(&world.factory).until(stopped), client));
    // The informer asks elsewhere.
    while asked.load(Ordering::SeqCst) < 4 {
        tokio::task::yield_now().await;
    }
    stop.and_wait(running).await.unwrap();
}

fn is_review(asked: &scripted::Asked) -> bool {
    asked.path.ends_with("/selfsubjectaccessreviews")
}

/// The permissions that the client asked for, in the order of the text.
fn reviews(log: &Log) -> Vec<Value> {
    let log = log.lock().unwrap();
    let reviews = log.iter().filter(|one| is_review(one));
    let mut all: Vec<_> = reviews.map(|one| one.body["spec"]["resourceAttributes"].clone()).collect();
    all.sort_by_cached_key(Value::to_string);
    all
}

/// The informer is another user, at another server, and may read the config map `prices` only. The writer may read nothing.
#[tokio::test]
async fn an_informer_asks_for_itself_as_it_reads() {
    let (readers, read) = scripted::client(|asked| {
        let review = &asked.body["spec"]["resourceAttributes"];
        let allowed = review["name"] == "prices" && review["resource"] == "configmaps";
        is_review(asked).then(|| (201, answer(allowed)))
    });
    let (writer, wrote) = scripted::client(|asked| {
        Some((201, answer(asked.body["spec"]["resourceAttributes"]["resource"] == "secrets")))
    });
    let selected = factory(&readers).with_fields("metadata.name=prices").unwrap().with_labels("a=b").unwrap();
    let controller = Controller::new("copier", &selected.informer::<ConfigMap>())
        .needs(Access::to::<Secret>([Verb::Create]).within("shop"));
    assert!(controller.rules().to_yaml().contains("  resourceNames: [\"prices\"]\n"));
    assert_eq!(
        controller.rules().summary(),
        "list configmaps named prices, watch configmaps named prices, create secrets in namespace shop"
    );
    let (stop, stopped) = Stop::pair();
    let running = tokio::spawn(run(controller.until(stopped), writer));
    let listing = async {
        while read.lock().unwrap().iter().all(is_review) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, listing).await.expect("the check is passed, and the informer lists");
    stop.and_wait(running).await.unwrap();
    let asked = reviews(&read);
    assert_eq!(asked.len(), 2);
    for (review, verb) in asked.iter().zip(["list", "watch"]) {
        assert_eq!((&review["verb"], &review["name"]), (&json!(verb), &json!("prices")));
        assert_eq!(review["fieldSelector"], json!({ "rawSelector": "metadata.name=prices" }));
        assert_eq!(review["labelSelector"], json!({ "rawSelector": "a=b" }));
    }
    assert_eq!(reviews(&wrote).len(), 1, "the writer is asked for its own");
}

#[tokio::test]
async fn without_the_check_nothing_is_asked() {
    let (client, log) = scripted::client(|asked| is_review(asked).then(|| (201, answer(false))));
    let (stop, stopped) = Stop::pair();
    let controller = controller(&factory(&client)).without_permission_check().until(stopped);
    let running = tokio::spawn(run(controller, client));
    let listing = async {
        while log.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, listing).await.unwrap();
    stop.and_wait(running).await.unwrap();
    assert!(reviews(&log).is_empty());
}
