//! Parts that the controllers of the tests share: config maps that want secrets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use informer::Informer;
use informer::kube::client::Api;
use informer::kube::{Client, Resource, client};
use informer_controller::{Context, Controller, Failure, Outcome, RunError, with};
use informer_controller_test::{Disturbance, Env, External, Rehearsal, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "shop";

/// The state of every reconciler here.
pub(crate) struct State {
    pub(crate) secrets: Informer<Secret>,
    pub(crate) client: Client,
    pub(crate) external: External,
    /// The memory of a process until it crashes.
    pub(crate) memory: Mutex<BTreeMap<String, String>>,
}

/// Runs a controller of config maps, which owns secrets.
pub(crate) async fn control<F, R>(env: Env, reconcile: F) -> Result<(), RunError>
where
    F: Fn(Arc<State>, Context<ConfigMap>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Failure>> + Send + 'static,
{
    let factory = env.factory().build().expect("the options are valid");
    let maps = factory.informer::<ConfigMap>();
    let secrets = factory.informer::<Secret>();
    let client = env.client();
    let state = State {
        secrets: secrets.clone(),
        client: client.clone(),
        external: env.external(),
        memory: Mutex::default(),
    };
    Controller::new("rehearsed", &maps)
        .owns(&secrets)
        .host(env.host())
        .run(client, with(state, reconcile))
        .await
}

pub(crate) fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": name }, "data": { "of": name },
    })
}

/// A secret that a config map owns.
pub(crate) fn child(of: &ConfigMap, name: Option<String>) -> Secret {
    let metadata = ObjectMeta {
        namespace: of.metadata.namespace.clone(),
        generate_name: name.is_none().then(|| "child-".to_owned()),
        name,
        owner_references: of.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Secret { metadata, ..Secret::default() }
}

/// The actions of the user of a script, in this order: the verb, the config map's name, the body.
pub(crate) async fn act(world: World, actions: Vec<(&'static str, &'static str, Value)>) {
    for (verb, name, body) in actions {
        let key = format!("{NAMESPACE}/{name}");
        match verb {
            "create" => world.create(body).await,
            "patch" => world.patch("ConfigMap", &key, body).await,
            _ => world.delete("ConfigMap", &key).await,
        }
    }
}

/// Whether the server has this incarnation of a map, and it is not being deleted.
pub(crate) async fn lives(state: &State, map: &ConfigMap) -> Result<bool, client::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(state.client.clone(), NAMESPACE);
    let now = maps.get_opt(map.metadata.name.as_deref().unwrap_or_default()).await?;
    Ok(now
        .is_some_and(|now| now.metadata.uid == map.metadata.uid && now.metadata.deletion_timestamp.is_none()))
}

/// The faulty one is found within 1,000 seeds; the rule or the sentence that it breaks contains `expected`.
#[track_caller]
pub(crate) fn finds(rehearsal: Rehearsal, expected: &str) {
    let begun = Instant::now();
    let outcome = rehearsal.seeds(0..1_000).exactly().outcome();
    let failure = outcome.failure.expect("the fault is found");
    println!("found after {:?} in {} runs\n{failure}", begun.elapsed(), outcome.seeds);
    assert!(failure.seed.is_some(), "{failure}");
    assert!(failure.summary.contains(expected), "{failure}");
    let points = ["The write to look at: the program", "The reconciliation to look at"];
    assert!(points.iter().any(|sentence| failure.story.contains(sentence)), "{failure}");
}

/// The corrected one passes, in the suite with 300 seeds: `REHEARSAL_SEEDS=1000` takes minutes.
pub(crate) fn passes(rehearsal: Rehearsal) {
    let disturbances = passes_seeds(rehearsal, 300);
    assert!(disturbances.len() >= 5 || disturbances.values().sum::<u64>() < 50, "{disturbances:?}");
}

/// The same for a twin that has little to go wrong.
pub(crate) fn passes_few(rehearsal: Rehearsal) {
    passes_seeds(rehearsal, 60);
}

fn passes_seeds(rehearsal: Rehearsal, seeds: u64) -> BTreeMap<Disturbance, u64> {
    let begun = Instant::now();
    let outcome = rehearsal.seeds(0..seeds).outcome();
    println!("{:?} for {} seeds: {:?}", begun.elapsed(), outcome.seeds, outcome.disturbances);
    if let Some(failure) = outcome.failure {
        panic!("{failure}");
    }
    outcome.disturbances
}
