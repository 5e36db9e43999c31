//! The demo's first minute, folded.

use std::collections::BTreeMap;

use expect_test::expect;
use jiff::SignedDuration;
use kubediff::demo::{Plot, Verb};
use serde_json::Value;
use testapi::{Api, ApiOptions};

use crate::queries::run::run;
use crate::queries::world::{World, at};
use crate::support;

/// The minute and what it is a part of: what begins in it is told to its end.
const SECONDS: i64 = 60;

#[tokio::test]
async fn the_first_minute_of_the_demo_is_at_most_nine_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    let api = Api::new(ApiOptions::default());
    let mut plot = Plot::new(1);
    let begin = at("14:00:00");
    let mut now = begin;
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for act in plot.prologue() {
        support::perform(&api, &act).await;
        let name = act.body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let of = if act.path.ends_with("/binding") { None } else { Some(format!("{}/{name}", act.path)) };
        let of = of.filter(|_| act.verb == Verb::Create).unwrap_or_else(|| target(&act.path));
        if let Some(object) = support::object(&api, &of).await {
            names.insert(of, world.key_of(&object));
            world.known_at(now, object);
        }
    }
    loop {
        let step = plot.step();
        now += SignedDuration::try_from(step.pause).unwrap();
        if now > begin + SignedDuration::from_secs(SECONDS) {
            break;
        }
        for act in step.acts {
            support::perform(&api, &act).await;
            let name = act.body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let of = match act.verb {
                Verb::Create if !act.path.ends_with("/binding") => format!("{}/{name}", act.path),
                _ => target(&act.path),
            };
            match support::object(&api, &of).await {
                Some(object) => {
                    names.insert(of, world.key_of(&object));
                    world.wrote_at(now, act.manager, object);
                }
                None => world.deleted_key_at(now, &names[&of]),
            }
        }
    }
    drop(world);
    let told = run(&path, &["log", "--fold", "--reverse", "--oneline"]);
    assert!(told.lines().count() <= 9, "{told}");
    expect![[r#"
        2026-03-01 14:00:03  ~ configmaps shop/web-config  app.yaml#database.pool 10 -> 50, app.yaml#log.level info -> debug  (updated by kubectl-edit) #29
        2026-03-01 14:00:07  ▸ deployments.apps shop/web  image web 4.12.0 -> 4.12.1; rolled out in 6s, 3 pods replaced  (by argocd-controller, 25 changes) #30
        2026-03-01 14:00:18  ~ secrets shop/db  data.password <hmac:6f003a8fecd60bf1 13 bytes> -> <hmac:2796a9161658ce59 16 bytes>, +annotations  (updated by external-secrets) #55
        2026-03-01 14:00:20  ▸ deployments.apps shop/web  recovered after 4s, web-22s27wqnwr-nkmx8 ran out of memory (2 restarts)  (by kubelet, 3 changes) #56
        2026-03-01 14:00:29  + customresourcedefinitions.apiextensions.k8s.io backups.ops.example.com  group ops.example.com, scope Namespaced  (added by kubectl-create) #59
        2026-03-01 14:00:31  ▸ backups.ops.example.com shop/db-nightly  schedule 0 3 * * *; created  (by kubectl-create, 3 changes) #60
        2026-03-01 14:00:40  ▸ rolebindings.rbac.authorization.k8s.io shop/amina-edit  subjects 1; created, and deleted after 8s  (by kubectl-create, 2 changes) #63
        2026-03-01 14:00:52  ▸ deployments.apps shop/web  replicas 3 -> 5; scaled in 1s, 2 pods added  (by kube-controller-manager, 12 changes) #66
        2026-03-01 14:00:58  ▸ deployments.apps shop/web  replicas 5 -> 3; scaled in 1s, 2 pods removed  (by kube-controller-manager, 8 changes) #78
    "#]].assert_eq(&told);
    let single = run(&path, &["log", "--oneline"]);
    expect!["56"].assert_eq(&single.lines().count().to_string());
}

/// The object that a subresource is of.
fn target(path: &str) -> String {
    path.trim_end_matches("/status").trim_end_matches("/binding").to_owned()
}
