//! Other requests of controllers than reading and writing objects: events, which testapi does not serve under that group, and
//! reviews of permissions, which it answers with yes.

use std::time::Duration;

use conformance::{Rig, impatient, within};
use informer::ObjectRef;
use informer_controller::permissions::{Access, Verb};
use informer_controller::recorder::{Event, Recorder, Stats};
use informer_controller::{Context, Controller, Outcome, RunError};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event as Stored;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube_client::{Api, Client};
use serde_json::json;

use crate::SERVER;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn events_and_their_series_are_accepted() {
    let Some(rig) = Rig::shared(SERVER, "events_of_controllers").await else { return };
    rig.create("a").await;
    let map = Api::<ConfigMap>::namespaced(rig.client(), rig.namespace()).get("a").await.unwrap();
    let namespace = Api::<Namespace>::all(rig.client()).get(rig.namespace()).await.unwrap();
    let recorder = Recorder::start(rig.client(), "shop.example.com/copier");
    let (about, related) = (ObjectRef::of(&map).unwrap(), ObjectRef::of(&namespace).unwrap());
    let event = Event::warning("Late", "Copy", "ä".repeat(2000)).related(&related);
    for _ in 0..3 {
        recorder.record(&about, event.clone());
        // Each flush writes what is new: first the event, then its count.
        assert!(recorder.flush(LIMIT).await);
    }
    recorder.record(&related, Event::normal("Seen", "Look", "seen"));
    assert!(recorder.flush(LIMIT).await);
    assert_eq!(recorder.stats(), Stats { written: 4, ..Stats::default() });

    let events =
        Api::<Stored>::namespaced(rig.client(), rig.namespace()).list(&Default::default()).await.unwrap();
    let [one] = &events.items[..] else { panic!("{} events", events.items.len()) };
    let series = one.series.as_ref().unwrap();
    assert_eq!(
        (series.count, one.type_.as_deref(), one.reason.as_deref()),
        (3, Some("Warning"), Some("Late"))
    );
    assert_eq!(one.regarding.as_ref().unwrap().uid, map.metadata.uid);
    assert_eq!(one.related.as_ref().unwrap().name.as_deref(), Some(rig.namespace()));
    assert_eq!(one.reporting_controller.as_deref(), Some("shop.example.com/copier"));
    assert_eq!(one.note.as_ref().unwrap().len(), 1024);

    // An event about an object of the cluster.
    let events = Api::<Stored>::namespaced(rig.client(), "default").list(&Default::default()).await.unwrap();
    assert!(events.items.iter().any(|event| {
        event.regarding.as_ref().is_some_and(|object| object.uid == namespace.metadata.uid)
    }));
}

/// Starts a controller, which ends with its first reconciliation.
async fn run(rig: &Rig) -> Result<(), RunError> {
    let config = rig.nobodys_config();
    let client = Client::try_from(config.clone()).unwrap();
    let factory = impatient(rig.builder_of(config)).build().unwrap().in_namespace(rig.namespace());
    let (reconciled, done) = tokio::sync::watch::channel(false);
    let mut stop = done.clone();
    let controller = Controller::new("copier", &factory.informer::<ConfigMap>())
        .needs(Access::to::<Secret>([Verb::Create, Verb::Patch]).within(rig.namespace()))
        .until(async move { drop(stop.wait_for(|done| *done).await) });
    let reconcile = move |_: Context<ConfigMap>| {
        reconciled.send_replace(true);
        async { Ok(Outcome::Done) }
    };
    controller.run(client, reconcile).await
}

#[tokio::test]
async fn the_rules_in_the_error_of_missing_permissions_grant_them() {
    let Some(rig) = Rig::shared(SERVER, "permissions_of_controllers").await else { return };
    rig.create("a").await;
    let error = run(&rig).await.unwrap_err();
    let missing = error.missing_permissions().expect("it may do nothing");
    let of = format!("in namespace {}", rig.namespace());
    assert_eq!(
        missing.summary(),
        format!("list configmaps {of}, watch configmaps {of}, create secrets {of}, patch secrets {of}")
    );

    let objects = missing.to_objects();
    let [role] = &objects[..] else { panic!("{objects:?}") };
    let role: Role = serde_json::from_value(role.clone()).unwrap();
    Api::namespaced(rig.client(), rig.namespace()).create(&Default::default(), &role).await.unwrap();
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "copier" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "copier" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "w15-nobody" }],
    }))
    .unwrap();
    Api::namespaced(rig.client(), rig.namespace()).create(&Default::default(), &binding).await.unwrap();
    // The server's own informers must see the binding.
    within("the permissions", async {
        while let Err(error) = run(&rig).await {
            assert!(error.missing_permissions().is_some(), "{error}");
        }
    })
    .await;
}
