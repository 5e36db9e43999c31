//! The promises of the bench about runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer_controller::{Context, Failure, Outcome, RunError};
use informer_controller_test::{Change, Disturbance, Env, Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{State, child, control, map, passes};

/// Each config map has a secret of its name.
async fn copies(env: Env) -> Result<(), RunError> {
    control(env, |_, context| async move {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        let mut secret = child(map, Some(map.key().name().to_owned()));
        secret.string_data = map.data.clone();
        context.writer().apply(&secret).await?;
        Ok(Outcome::Done)
    })
    .await
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "changed" } })).await;
    world.delete("ConfigMap", "shop/a").await;
    world.create(map("a")).await;
}

#[test]
fn a_correct_program_passes() {
    passes(Rehearsal::new(copies).objects([map("a")]).script(script));
}

#[test]
fn a_program_that_fails_without_disturbances_is_told_as_such() {
    let rule = Rule::after_each_change("no secrets", |change, _| match change.kind() {
        "Secret" => Err(change.key()),
        _ => Ok(()),
    });
    let outcome = Rehearsal::new(copies).objects([map("a")]).rule(rule).seeds(0..3).exactly().outcome();
    let failure = outcome.failure.expect("the rule is broken");
    assert_eq!(failure.seed, None);
    assert!(failure.story.contains("without disturbances"), "{failure}");
}

#[test]
fn a_thread_for_blocking_work_is_an_error() {
    let program = |_: Env| async {
        tokio::task::spawn_blocking(|| ()).await.expect("it does not panic");
        std::future::pending::<Result<(), RunError>>().await
    };
    let outcome = Rehearsal::new(program).seeds(0..1).exactly().outcome();
    let failure = outcome.failure.expect("the thread is noticed");
    assert!(failure.summary.contains("a thread for blocking work"), "{failure}");
}

#[test]
fn a_program_that_differs_from_run_to_run_is_an_error() {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    let program = |env: Env| async move {
        let start = STARTS.fetch_add(1, Ordering::Relaxed);
        env.external().make(&format!("start-{start}"), "nobody").await.expect("it answers");
        std::future::pending::<Result<(), RunError>>().await
    };
    let outcome = Rehearsal::new(program).seeds(0..1).exactly().outcome();
    let failure = outcome.failure.expect("the static is noticed");
    assert!(failure.summary.contains("two runs of the same seed differ"), "{failure}");
}

/// The memory of own writes is that of one process.
#[test]
fn a_second_instance_without_an_election_is_found() {
    async fn generated(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        if let Some(map) = context.object()
            && context.owned(&state.secrets).is_empty()
        {
            context.writer().create(&child(map, None)).await?;
        }
        Ok(Outcome::Done)
    }
    let rehearsal = Rehearsal::new(|env| control(env, generated))
        .objects([map("a")])
        .script(script)
        .rule(Rule::at_most_per_owner(1, "Secret"))
        .disturbances([Disturbance::SecondInstance])
        .seeds(0..300)
        .exactly();
    let failure = rehearsal.outcome().failure.expect("it is found");
    assert!(failure.story.contains("a second instance of the program starts"), "{failure}");
}

/// Two instances write without a lease: the rule is broken.
#[test]
fn a_write_without_the_lease_is_found() {
    let rule = Rule::only_the_leader_writes("shop/leader");
    let outcome = Rehearsal::new(copies).objects([map("a")]).rule(rule).seeds(0..1).exactly().outcome();
    let failure = outcome.failure.expect("nobody leads");
    assert!(failure.summary.contains("program-0-0 writes Secret shop/a while nobody leads"), "{failure}");
}

#[test]
fn deployments_roll_out_in_simulated_time() {
    let deployment = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": "shop", "name": "web" },
            "spec": {
                "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": image }] },
                },
            },
        })
    };
    let rule = Rule::over("the deployment becomes ready, and rolls out", |history| {
        let ready = |change: &&Change| {
            let status = &change.object()["status"];
            change.kind() == "Deployment" && status["readyReplicas"] == 2 && status["updatedReplicas"] == 2
        };
        let objects = history.objects();
        let mut sets: Vec<_> =
            objects.of_kind("ReplicaSet").map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect();
        sets.sort_unstable();
        match history.changes().find(ready) {
            Some(change) if change.at() >= Duration::from_secs(2) && sets == [0, 2] => Ok(()),
            first => Err(format!("{first:?}, {sets:?}")),
        }
    });
    let rehearsal = Rehearsal::new(copies)
        .objects([deployment("web:1")])
        .workloads(Duration::from_secs(1))
        .script(|world| async move {
            world.pass(Duration::from_secs(30)).await;
            let template = json!({ "spec": { "containers": [{ "name": "web", "image": "web:2" }] } });
            world.patch("Deployment", "shop/web", json!({ "spec": { "template": template } })).await;
        })
        .rule(rule);
    if let Some(failure) = rehearsal.seeds(0..3).exactly().outcome().failure {
        panic!("{failure}");
    }
}
