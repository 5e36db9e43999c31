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
    let rehearsal = Rehearsal::new(copies).objects([map("a")]).script(script).rule(rule);
    let failure = rehearsal.seeds(0..3).exactly().outcome().failure.expect("the rule is broken");
    assert_eq!(failure.seed, None);
    assert!(failure.story.starts_with("The program fails without disturbances."), "{failure}");
    assert!(failure.story.contains("0 of 4 steps of the script"), "{failure}");
}

/// The number of starts depends on the disturbances by right.
#[test]
fn a_field_can_be_left_out_of_the_comparison() {
    let counting = || {
        let program = |env| {
            control(env, |state: Arc<State>, context: Context<ConfigMap>| async move {
                if let Some(map) = context.object()
                    && state.memory.lock().unwrap().insert(map.key().to_string(), String::new()).is_none()
                {
                    let starts =
                        map.metadata.annotations.iter().flatten().find(|(name, _)| *name == "starts");
                    let starts: Option<u32> = starts.and_then(|(_, starts)| starts.parse().ok());
                    let starts = (starts.unwrap_or(0) + 1).to_string();
                    context
                        .writer()
                        .patch(map, json!({ "metadata": { "annotations": { "starts": starts } } }))
                        .await?;
                }
                Ok(Outcome::Done)
            })
        };
        let rehearsal = Rehearsal::new(program).objects([map("a")]).seeds(0..20).exactly();
        rehearsal.disturbances([Disturbance::Crash])
    };
    let failure = counting().outcome().failure.expect("the ends differ");
    assert!(failure.summary.contains("/metadata/annotations/starts"), "{failure}");
    let outcome = counting().ignore("ConfigMap/metadata/annotations/starts").outcome();
    assert!(outcome.failure.is_none() && outcome.disturbances[&Disturbance::Crash] > 0, "{outcome:?}");
}

/// A reader of a story looks for an old cache where it has one.
#[test]
fn a_change_that_has_arrived_is_not_told_as_unseen() {
    let rule =
        Rule::after_each_change("b has no secret", |change, _| match (change.kind(), &*change.key()) {
            ("Secret", "shop/b") => Err("it has".to_owned()),
            _ => Ok(()),
        });
    let late = |world: World| async move {
        world.pass(Duration::from_secs(5)).await;
        world.create(map("b")).await;
    };
    let rehearsal = Rehearsal::new(copies).objects([map("a")]).script(late).rule(rule);
    let failure = rehearsal.seeds(0..1).exactly().outcome().failure.expect("the rule is broken");
    assert!(failure.story.contains("Its watches had shown it everything by then."), "{failure}");
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

/// A request that is refused stays refused for this process: its reconciliations fail for ever, and no object shows it.
#[test]
fn errors_without_end_are_found() {
    async fn offended(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        let is_offended =
            || state.memory.lock().map(|memory| memory.contains_key("offended")).unwrap_or(true);
        if is_offended() {
            return Err(std::io::Error::other("offended").into());
        }
        if map.labels().value("seen").is_none() {
            let seen = json!({ "metadata": { "labels": { "seen": "yes" } } });
            if let Err(error) = context.writer().patch(map, seen).await {
                state.memory.lock().unwrap().insert("offended".to_owned(), error.to_string());
                return Err(error.into());
            }
        }
        Ok(Outcome::Done)
    }
    let rehearsal = Rehearsal::new(|env| control(env, offended))
        .objects([map("a"), map("b")])
        .ignore("ConfigMap")
        .disturbances([Disturbance::LostAnswer])
        .seeds(0..100)
        .exactly();
    let failure = rehearsal.outcome().failure.expect("it is found");
    assert!(failure.summary.contains("by rehearsed fails again and again"), "{failure}");
    assert!(failure.story.contains("with the result \"failed\": offended"), "{failure}");
    assert!(failure.story.contains("The reconciliation to look at"), "{failure}");
}

#[test]
fn errors_without_end_may_be_forbidden() {
    let program = |env: Env| control(env, |_, _| async { Err(std::io::Error::other("never").into()) });
    let rehearsal = || Rehearsal::new(program).objects([map("a")]).seeds(0..3).exactly();
    assert!(rehearsal().outcome().failure.is_none());
    let failure = rehearsal().rule(Rule::no_endless_errors()).outcome().failure.expect("it is found");
    assert!(
        failure.summary.contains("the last reconciliation of shop/a by rehearsed failed: never"),
        "{failure}"
    );
}

#[test]
fn requests_and_reconciliations_are_in_the_history() {
    let rule = Rule::over("as told", |history| {
        let creations =
            history.requests().filter(|request| request.writes && request.line.contains("/secrets/a"));
        let statuses: Vec<_> = creations.map(|request| request.status).collect();
        let all = history.reconciliations();
        let first = all.first().and_then(|first| first.end.clone());
        match (statuses.first(), first) {
            (Some(Some(201)), Some(end)) if end.result == "done" && all[0].key == "shop/a" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    Rehearsal::new(copies).objects([map("a")]).disturbances([]).rule(rule).seeds(0..1).exactly().run();
}

#[test]
fn a_refused_step_of_the_script_is_told() {
    let rule = Rule::over("never", |_| Err("always".to_owned()));
    let rehearsal = Rehearsal::new(copies).objects([map("a")]).rule(rule).script(|world| async move {
        world.create(map("a")).await;
        world.delete("ConfigMap", "shop/a").await;
        world.gone("ConfigMap", "shop/a").await;
        world.create(map("a")).await;
    });
    let failure = rehearsal.outcome().failure.expect("the rule is broken");
    let told =
        failure.story.matches("The server refused a step of the script: create ConfigMap shop/a").count();
    assert_eq!(told, 1, "{failure}");
}

/// A reconciliation that waits for the cache's own write does not begin, which may be what a run lacks.
#[test]
fn a_reconciliation_that_is_put_off_is_told() {
    async fn made(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        if let Some(map) = context.object()
            && context.get(&state.secrets, map.key())?.is_none()
        {
            let secret = context.writer().create(&child(map, Some(map.key().name().to_owned()))).await?;
            let made = json!({ "metadata": { "annotations": { "made": secret.metadata.uid } } });
            context.writer().patch(map, made).await?;
        }
        Ok(Outcome::Done)
    }
    let rule = Rule::over("a secret is made again within 3 s", |history| {
        let mut gone = None;
        for change in history.changes().filter(|change| change.kind() == "Secret") {
            let late = gone.is_some_and(|gone| change.at() > gone + Duration::from_secs(3));
            if change.creates() && late {
                return Err(format!("{change:?} is late"));
            }
            gone = change.after().is_none().then(|| change.at());
        }
        Ok(())
    });
    let rehearsal = Rehearsal::new(|env| control(env, made))
        .objects([map("a")])
        .script(|world| async move {
            world.until(|world| world.get("Secret", "shop/a").is_some()).await;
            world.delete("Secret", "shop/a").await;
            world.until(|world| world.get("Secret", "shop/a").is_some()).await;
            world.delete("Secret", "shop/a").await;
        })
        .disturbances([Disturbance::Lag])
        .rule(rule);
    let told = "the program puts off the reconciliation of shop/a: waits until its cache has its write of configmaps shop/a";
    // In some the watch of secrets lags.
    let is_told = |seed| {
        let failure = rehearsal.clone().seeds(seed..seed + 1).exactly().outcome().failure;
        failure.is_some_and(|failure| failure.story.contains(told))
    };
    assert!((0..50).any(is_told));
}
