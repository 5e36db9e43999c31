//! Situations in clusters, and the texts that people read of them.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::cast::{CONTROLLER, Cast, deployment, metadata, node, pod, replica_set, running, slice};
use crate::queries::run::run;
use crate::queries::world::World;

/// The folded log of what happens, the oldest first.
fn told(happens: impl FnOnce(&mut Cast), expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut cast = Cast::new(World::open(&path, [7; 32]));
    happens(&mut cast);
    drop(cast);
    expected.assert_eq(&run(&path, &["log", "--fold", "--reverse", "--oneline"]));
}

/// The new pod of a rollout is ready and an old one goes.
fn replaces(cast: &mut Cast, of: &str, hash: &str, [new, old]: [&str; 2]) {
    cast.passes(0.2);
    cast.starts(of, hash, new);
    cast.passes(0.1);
    cast.ends(old);
}

/// A deployment with two pods goes to another image.
fn rolls_out(cast: &mut Cast) {
    cast.rolls_out("cart", "argocd", "cart:2");
    cast.passes(0.1);
    cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
    cast.reports("cart", [3, 1, 2]);
    replaces(cast, "cart", "new", ["cart-new-a", "cart-old-a"]);
    cast.reports("cart", [2, 1, 2]);
    replaces(cast, "cart", "new", ["cart-new-b", "cart-old-b"]);
    cast.patches(CONTROLLER, "ReplicaSet shop/cart-old", &[("/spec/replicas", json!(0))]);
    cast.passes(0.1);
    cast.reports("cart", [2, 2, 2]);
}

fn has_cart(cast: &mut Cast) {
    cast.has_deployment("cart", "cart:1", &["cart-old-a", "cart-old-b"]);
    cast.passes(60.0);
}

#[test]
fn a_rollout_is_one_line() {
    told(
        |cast| {
            has_cart(cast);
            rolls_out(cast);
            // Long after it, something else happens.
            cast.passes(600.0);
            cast.scales("cart", "kubectl-scale", 2);
            cast.patches(
                "kubectl-edit",
                "Deployment shop/cart",
                &[("/metadata/labels", json!({"team": "a"}))],
            );
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolled out in 4s, 2 pods replaced  (by argocd, 16 changes) #5
            2026-03-01 14:11:04  ~ deployments.apps shop/cart  +labels  (updated by kubectl-edit) #21
        "#]],
    );
}

#[test]
fn watches_deliver_cause_and_effect_in_any_order() {
    told(
        |cast| {
            has_cart(cast);
            // The replica set, its pod and an Event of it are seen before their cause.
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.passes(0.2);
            cast.writes(CONTROLLER, pod("cart", "new", "cart-new-a"));
            cast.event("scheduled", "Pod shop/cart-new-a", "Scheduled");
            cast.passes(0.2);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.passes(1.0);
            let ready = running(cast.get("Pod shop/cart-new-a").clone(), 0);
            cast.writes("kubelet/status", ready);
            cast.ends("cart-old-a");
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 2 updated, 1 pod replaced  (by argocd, 6 changes, 1 Event) #8
        "#]],
    );
}

#[test]
fn a_rollout_of_an_image_that_crashes_names_the_pod() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.writes(CONTROLLER, pod("cart", "new", "cart-new-a"));
            for restarts in 1..4 {
                cast.passes(20.0);
                cast.crashes("cart-new-a", restarts, "Error", "CrashLoopBackOff");
            }
            cast.reports("cart", [3, 1, 2]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; failing, 1 of 2 updated, cart-new-a crash-looped (3 restarts)  (by argocd, 7 changes) #5
        "#]],
    );
}

#[test]
fn a_rollout_that_is_rolled_back_says_to_which_revision() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.writes(CONTROLLER, pod("cart", "new", "cart-new-a"));
            cast.passes(1.0);
            let waits = json!([{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
            cast.patches("kubelet/status", "Pod shop/cart-new-a", &[("/status/containerStatuses", waits)]);
            cast.passes(60.0);
            cast.rolls_out("cart", "kubectl-rollout", "cart:1");
            let revision = ("/metadata/annotations/deployment.kubernetes.io~1revision", json!("3"));
            cast.patches(CONTROLLER, "ReplicaSet shop/cart-old", &[revision]);
            cast.ends("cart-new-a");
            cast.reports("cart", [2, 2, 2]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolled back to revision 1 by #9, cart-new-a could not pull an image  (by argocd, 4 changes) #5
            2026-03-01 14:02:01  ▸ deployments.apps shop/cart  image web 2 -> 1; rolling out, 0 of 2 updated  (by kubectl-rollout, 4 changes) #9
        "#]],
    );
}

#[test]
fn a_rollout_that_another_one_follows_is_superseded() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.passes(5.0);
            cast.rolls_out("cart", "argocd", "cart:3");
            cast.writes(CONTROLLER, replica_set("cart", "newer", "cart:3", 1, 3));
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; superseded by #7  (by argocd, 2 changes) #5
            2026-03-01 14:01:05  ▸ deployments.apps shop/cart  image web 2 -> 3; rolling out, 0 of 2 updated  (by argocd, 2 changes) #7
        "#]],
    );
}

#[test]
fn a_change_by_somebody_else_stays_alone_in_the_middle_of_a_rollout() {
    told(
        |cast| {
            has_cart(cast);
            cast.known(config());
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.patches("kubectl-edit", "ConfigMap shop/cart-config", &[("/data/level", json!("debug"))]);
            cast.patches(
                "kubectl-label",
                "Deployment shop/cart",
                &[("/metadata/labels", json!({"team": "a"}))],
            );
            // An old pod that fails by itself, and a new pod of the old template.
            cast.crashes("cart-old-a", 1, "Error", "CrashLoopBackOff");
            cast.starts("cart", "old", "cart-old-c");
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 2 updated  (by argocd, 2 changes) #6
            2026-03-01 14:01:00  ~ configmaps shop/cart-config  data.level info -> debug  (updated by kubectl-edit) #8
            2026-03-01 14:01:00  ~ deployments.apps shop/cart  +labels  (updated by kubectl-label) #9
            2026-03-01 14:01:00  ~ pods shop/cart-old-a  Ready True -> False, +containerStatuses[web].lastState, containerStatuses[web].ready true -> false, containerStatuses[web].restartCount 0 -> 1, 2 more  (updated by kubelet/status) #10
            2026-03-01 14:01:00  + pods shop/cart-old-c  image web: web:1, phase Pending  (added by kube-controller-manager) #11
            2026-03-01 14:01:00  ~ pods shop/cart-old-c  +nodeName n1  (updated by kube-scheduler) #12
            2026-03-01 14:01:01  ~ pods shop/cart-old-c  phase Pending -> Running, +conditions, +containerStatuses  (updated by kubelet/status) #13
        "#]],
    );
}

fn config() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("cart-config", "c", None),
        "data": {"level": "info"},
    })
}

#[test]
fn scaling_has_its_pods_and_its_autoscaler() {
    told(
        |cast| {
            has_cart(cast);
            cast.known(json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata("cart", "h", None),
                "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "cart"}, "maxReplicas": 9},
                "status": {"currentReplicas": 2, "desiredReplicas": 2},
            }));
            cast.known(slice("cart", &[("cart-old-a", true), ("cart-old-b", true)]));
            let scaler = "HorizontalPodAutoscaler shop/cart";
            cast.patches(CONTROLLER, scaler, &[("/status/desiredReplicas", json!(3))]);
            cast.passes(0.1);
            cast.scales("cart", CONTROLLER, 3);
            cast.patches(CONTROLLER, "ReplicaSet shop/cart-old", &[("/spec/replicas", json!(3))]);
            cast.starts("cart", "old", "cart-old-c");
            let pods = [("cart-old-a", true), ("cart-old-b", true), ("cart-old-c", true)];
            cast.writes(CONTROLLER, slice("cart", &pods));
            cast.reports("cart", [3, 3, 3]);
            cast.patches(CONTROLLER, scaler, &[("/status/currentReplicas", json!(3))]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  replicas 2 -> 3; scaled in 1s, 1 pod added  (by kube-controller-manager, 9 changes) #8
        "#]],
    );
}

#[test]
fn a_workload_comes_and_goes_with_all_that_is_made_for_it() {
    told(
        |cast| {
            let mut new = deployment("cart", "cart:1", 1);
            new["status"] = json!({});
            cast.writes("helm", new);
            cast.writes(CONTROLLER, replica_set("cart", "one", "cart:1", 1, 1));
            cast.starts("cart", "one", "cart-one-a");
            cast.reports("cart", [1, 1, 1]);
            cast.passes(300.0);
            // The pod is seen to go before its deployment.
            cast.ends("cart-one-a");
            cast.passes(0.1);
            cast.deletes("Deployment shop/cart");
            cast.deletes("ReplicaSet shop/cart-one");
        },
        &expect![[r#"
            2026-03-01 14:00:00  ▸ deployments.apps shop/cart  image web: cart:1, replicas 1; created, ready after 1s, 1 pod  (by helm, 6 changes) #1
            2026-03-01 14:05:01  ▸ deployments.apps shop/cart  deleted, 1 pod removed  (4 changes) #9
        "#]],
    );
}

#[test]
fn pods_that_fail_by_themselves_are_trouble_until_they_recover() {
    told(
        |cast| {
            has_cart(cast);
            cast.crashes("cart-old-a", 5, "OOMKilled", "CrashLoopBackOff");
            cast.passes(30.0);
            cast.crashes("cart-old-a", 6, "OOMKilled", "CrashLoopBackOff");
            cast.reports("cart", [2, 2, 1]);
            cast.passes(60.0);
            let ready = running(cast.get("Pod shop/cart-old-a").clone(), 7);
            cast.writes("kubelet/status", ready);
            cast.reports("cart", [2, 2, 2]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  recovered after 1m 30s, cart-old-a ran out of memory (3 restarts)  (by kubelet/status, 5 changes) #5
        "#]],
    );
}

#[test]
fn a_pod_that_somebody_deletes_is_replaced() {
    told(
        |cast| {
            has_cart(cast);
            cast.ends("cart-old-a");
            cast.starts("cart", "old", "cart-old-c");
            cast.passes(100.0);
            cast.writes("kubectl", config());
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ pods shop/cart-old-a  deleted in 1s, 1 pod added, 1 pod removed  (by kube-controller-manager, 5 changes) #5
            2026-03-01 14:02:41  + configmaps shop/cart-config  data level (4 bytes)  (added by kubectl) #10
        "#]],
    );
}

#[test]
fn a_node_is_drained_and_comes_back() {
    told(
        |cast| {
            has_cart(cast);
            cast.known(node("n1"));
            cast.cordons("n1");
            cast.evicts("cart-old-a");
            cast.starts("cart", "old", "cart-old-c");
            cast.reports("cart", [2, 2, 2]);
            cast.passes(300.0);
            cast.patches("kubectl-uncordon", "Node n1", &[("/spec/unschedulable", json!(null))]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ nodes n1  +unschedulable true; back in service after 5m 3s, 1 pod evicted  (by kubectl-cordon, 8 changes) #6
        "#]],
    );
}

#[test]
fn a_pod_that_a_person_deletes_on_a_node_out_of_service_is_not_evicted() {
    told(
        |cast| {
            has_cart(cast);
            cast.known(node("n1"));
            cast.cordons("n1");
            cast.ends("cart-old-a");
            cast.passes(10.0);
            cast.writes("kubectl", config());
        },
        &expect![[r#"
            2026-03-01 14:01:00  ~ nodes n1  +unschedulable true  (updated by kubectl-cordon) #6
            2026-03-01 14:01:02  ▸ pods shop/cart-old-a  deleted, 1 pod removed  (by kube-controller-manager, 2 changes) #7
            2026-03-01 14:01:12  + configmaps shop/cart-config  data level (4 bytes)  (added by kubectl) #9
        "#]],
    );
}

#[test]
fn a_change_of_replicas_in_the_middle_of_a_rollout_is_a_part_of_it() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.passes(2.0);
            cast.scales("cart", "kube-controller-manager", 3);
            replaces(cast, "cart", "new", ["cart-new-a", "cart-old-a"]);
            replaces(cast, "cart", "new", ["cart-new-b", "cart-old-b"]);
            cast.starts("cart", "new", "cart-new-c");
            cast.reports("cart", [3, 3, 3]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolled out in 6s, 2 pods replaced  (by argocd, 17 changes) #5
        "#]],
    );
}

#[test]
fn a_pod_that_fails_after_its_rollout_is_another_story() {
    told(
        |cast| {
            has_cart(cast);
            rolls_out(cast);
            cast.passes(8.0);
            cast.crashes("cart-new-a", 1, "Error", "CrashLoopBackOff");
            cast.reports("cart", [2, 2, 1]);
            cast.passes(10.0);
            cast.reports("cart", [2, 2, 2]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolled out in 4s, 2 pods replaced  (by argocd, 16 changes) #5
            2026-03-01 14:01:12  ▸ deployments.apps shop/cart  failing, 2 of 2 ready, cart-new-a crash-looped (1 restart)  (by kubelet/status, 3 changes) #21
        "#]],
    );
}

#[test]
fn what_a_person_writes_to_parts_of_a_workload_stays_alone() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.starts("cart", "new", "cart-new-a");
            let note = |text: &str| ("/metadata/annotations/note", json!(text));
            cast.patches("mallory", "ReplicaSet shop/cart-new", &[note("a")]);
            cast.patches("mallory", "Pod shop/cart-new-a", &[note("b")]);
            cast.patches("mallory", "ReplicaSet shop/cart-old", &[("/spec/minReadySeconds", json!(5))]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 2 updated, 1 pod replaced  (by argocd, 5 changes) #5
            2026-03-01 14:01:01  ~ replicasets.apps shop/cart-new  +annotation note: a  (updated by mallory) #10
            2026-03-01 14:01:01  ~ pods shop/cart-new-a  +annotations  (updated by mallory) #11
            2026-03-01 14:01:01  ~ replicasets.apps shop/cart-old  +minReadySeconds 5  (updated by mallory) #12
        "#]],
    );
}

#[test]
fn a_pod_is_seen_before_the_replica_set_that_made_it() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, pod("cart", "new", "cart-new-a"));
            cast.passes(0.1);
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            let ready = running(cast.get("Pod shop/cart-new-a").clone(), 0);
            cast.writes("kubelet/status", ready);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 2 updated, 1 pod replaced  (by argocd, 4 changes) #5
        "#]],
    );
}

#[test]
fn a_forged_reference_from_another_namespace_joins_nothing() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.starts("cart", "new", "cart-new-a");
            let mut forged = pod("cart", "new", "forged");
            forged["metadata"]["namespace"] = "evil".into();
            cast.writes("mallory", forged);
            let mut endpoints = slice("cart", &[("cart-new-a", true)]);
            endpoints["metadata"]["namespace"] = "evil".into();
            cast.writes("mallory", endpoints);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 2 updated, 1 pod replaced  (by argocd, 5 changes) #5
            2026-03-01 14:01:01  + pods evil/forged  image web: web:1, phase Pending  (added by mallory) #10
            2026-03-01 14:01:01  + endpointslices.discovery.k8s.io evil/cart-x  endpoints 1  (added by mallory) #11
        "#]],
    );
}

#[test]
fn a_failed_job_stays_failed_when_it_is_removed() {
    told(
        |cast| {
            let mut job = json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("bill", "j", None),
                "spec": {"completions": 1}, "status": {},
            });
            cast.writes("kubectl-create", job.clone());
            let mut pod = pod("bill", "x", "bill-a");
            pod["metadata"]["ownerReferences"] =
                json!([{"kind": "Job", "name": "bill", "uid": "j", "controller": true}]);
            cast.writes(CONTROLLER, pod.clone());
            cast.passes(5.0);
            let ended = json!({"terminated": {"reason": "Error", "exitCode": 1}});
            pod["status"] = json!({"phase": "Failed", "containerStatuses": [{"name": "web", "restartCount": 0, "state": ended}]});
            cast.writes("kubelet/status", pod);
            job["status"] = json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]});
            cast.writes(CONTROLLER, job);
            cast.passes(10.0);
            cast.ends("bill-a");
            cast.deletes("Job shop/bill");
        },
        &expect![[r#"
            2026-03-01 14:00:00  ▸ jobs.batch shop/bill  completions 1; failed after 5s, 1 pod, bill-a failed  (by kubectl-create, 7 changes) #1
        "#]],
    );
}

#[test]
fn a_tick_of_a_cron_job_is_one_line() {
    told(
        |cast| {
            let mut cron = json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata("bill", "cj", None),
                "spec": {"schedule": "0 3 * * *"}, "status": {},
            });
            cast.known(cron.clone());
            let owner = Some(("CronJob", "cj"));
            let mut job = json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("bill-1", "j", owner),
                "spec": {"completions": 1}, "status": {},
            });
            cast.writes(CONTROLLER, job.clone());
            cron["status"] = json!({"active": [{"name": "bill-1"}]});
            cast.writes(CONTROLLER, cron.clone());
            let mut pod = pod("bill", "x", "bill-1-a");
            pod["metadata"]["ownerReferences"] =
                json!([{"kind": "Job", "name": "bill-1", "uid": "j", "controller": true}]);
            cast.writes(CONTROLLER, pod.clone());
            cast.passes(5.0);
            pod["status"] = json!({"phase": "Succeeded"});
            cast.writes("kubelet/status", pod);
            job["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
            cast.writes(CONTROLLER, job);
            cron["status"] = json!({"lastSuccessfulTime": "2026-03-01T14:00:05Z"});
            cast.writes(CONTROLLER, cron);
        },
        &expect![[r#"
            2026-03-01 14:00:00  ▸ jobs.batch shop/bill-1  completions 1; completed in 5s, 1 pod  (by kube-controller-manager, 6 changes) #2
        "#]],
    );
}

#[test]
fn a_custom_resource_comes_with_its_status_and_what_it_makes() {
    told(
        |cast| {
            let mut backup = json!({
                "apiVersion": "ops.example.com/v1", "kind": "Backup", "metadata": metadata("nightly", "b", None),
                "spec": {"keep": 7},
            });
            cast.writes("kubectl-create", backup.clone());
            cast.passes(1.0);
            let mut made = config();
            made["metadata"]["ownerReferences"] = json!([{"uid": "b", "controller": true}]);
            cast.writes("operator", made);
            backup["status"] = json!({"phase": "Running"});
            cast.writes("operator/status", backup.clone());
            cast.passes(60.0);
            // Long after it, its status says something else.
            backup["status"] = json!({"phase": "Completed"});
            cast.writes("operator/status", backup);
        },
        &expect![[r#"
            2026-03-01 14:00:00  ▸ backups.ops.example.com shop/nightly  keep 7; created  (by kubectl-create, 3 changes) #1
            2026-03-01 14:01:01  ~ backups.ops.example.com shop/nightly  phase Running -> Completed  (updated by operator/status) #4
        "#]],
    );
}

#[test]
fn a_story_with_a_gap_says_so() {
    told(
        |cast| {
            has_cart(cast);
            cast.rolls_out("cart", "argocd", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "new", "cart:2", 1, 2));
            cast.passes(10.0);
            cast.world.gap("14:01:01", "14:01:08", None, "kubediff did not run");
            cast.starts("cart", "new", "cart-new-a");
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 2 updated, 1 pod replaced, partly unseen  (by argocd, 5 changes) #5
            2026-03-01 14:01:08  ! not watched from 14:01:01 to 14:01:08 (7s): everything  (kubediff did not run)
        "#]],
    );
}

#[test]
fn one_story_is_shown_with_its_records_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut cast = Cast::new(World::open(&path, [7; 32]));
    has_cart(&mut cast);
    cast.scales("cart", "kubectl-scale", 3);
    cast.patches(CONTROLLER, "ReplicaSet shop/cart-old", &[("/spec/replicas", json!(3))]);
    cast.event("scaled", "Deployment shop/cart", "ScalingReplicaSet");
    drop(cast);
    for (question, expected) in [
        (
            &["log", "--story=5"][..],
            expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  (by kubectl-scale, 2 changes, 1 Event) #5
                replicas 2 -> 3; scaling, 2 of 3 ready
            2026-03-01 14:01:00  * Deployment shop/cart  ScalingReplicaSet  (Normal) #7
                ScalingReplicaSet
            2026-03-01 14:01:00  ~ replicasets.apps shop/cart-old  (updated by kube-controller-manager) #6
                replicas 2 -> 3
            2026-03-01 14:01:00  ~ deployments.apps shop/cart  (updated by kubectl-scale) #5
                replicas 2 -> 3
        "#]],
        ),
        (
            &["log", "--story=6"],
            expect![[r#"
            kubediff: there is no story 6: `kubediff log --fold` shows the numbers of stories
            exit 1
        "#]],
        ),
        (
            &["log", "--fold", "-o", "json"],
            expect![[r#"
                {"story":{"id":5,"kind":"scale","object":{"gvk":{"group":"apps","version":"v1","kind":"Deployment"},"resource":"deployments","namespace":"shop","name":"cart","uid":"d-cart"},"verdict":"ongoing","opened_at":"2026-03-01T14:01:00Z","last_at":"2026-03-01T14:01:00Z","last":7,"changes":2,"events":1,"ready":[2,3],"milestones":[{"number":6,"tells":"opened"}]}}
            "#]],
        ),
        (
            &["log", "--fold=never", "--oneline"],
            expect![[r#"
            2026-03-01 14:01:00  ~ replicasets.apps shop/cart-old  replicas 2 -> 3  (updated by kube-controller-manager) #6
            2026-03-01 14:01:00  ~ deployments.apps shop/cart  replicas 2 -> 3  (updated by kubectl-scale) #5
        "#]],
        ),
        (
            &["log", "rs", "--fold", "--oneline"],
            expect![[r#"
            2026-03-01 14:01:00  ▸ deployments.apps shop/cart  replicas 2 -> 3; scaling, 2 of 3 ready  (by kubectl-scale, 2 changes, 1 Event) #5
        "#]],
        ),
    ] {
        expected.assert_eq(&run(&path, question));
    }
}

#[test]
fn a_stateful_set_rolls_out_pod_by_pod() {
    told(
        |cast| {
            let mut set = deployment("db", "db:1", 1);
            set["kind"] = "StatefulSet".into();
            cast.known(set);
            let pod = |uid: &str, hash: &str| {
                let mut pod = pod("db", hash, "db-0");
                pod["metadata"]["uid"] = uid.into();
                pod["metadata"]["labels"] = json!({"controller-revision-hash": format!("db-{hash}")});
                pod["metadata"]["ownerReferences"] =
                    json!([{"kind": "StatefulSet", "uid": "d-db", "controller": true}]);
                pod
            };
            cast.known(running(pod("p1", "one"), 0));
            cast.passes(60.0);
            let image = ("/spec/template/spec/containers/0/image", json!("db:2"));
            cast.patches("argocd", "StatefulSet shop/db", &[("/metadata/generation", json!(2)), image]);
            cast.writes(CONTROLLER, json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision",
                "metadata": {
                    "name": "db-two", "namespace": "shop", "uid": "cr", "labels": {"controller.kubernetes.io/hash": "two"},
                    "ownerReferences": [{"kind": "StatefulSet", "uid": "d-db", "controller": true}],
                },
            }));
            cast.ends("db-0");
            cast.writes(CONTROLLER, pod("p2", "two"));
            cast.passes(2.0);
            let waits = json!([{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
            cast.patches("kubelet/status", "Pod shop/db-0", &[("/status/containerStatuses", waits)]);
        },
        &expect![[r#"
            2026-03-01 14:01:00  ▸ statefulsets.apps shop/db  image web 1 -> 2; failing, 0 of 1 updated, db-0 could not pull an image  (by argocd, 6 changes) #3
        "#]],
    );
}

#[test]
fn the_workloads_of_a_custom_resource_have_rollouts_of_their_own() {
    told(
        |cast| {
            let shop = json!({
                "apiVersion": "ops.example.com/v1", "kind": "Shop", "metadata": metadata("all", "cr", None), "spec": {"n": 1},
            });
            cast.writes("kubectl-create", shop);
            let mut new = deployment("cart", "cart:1", 1);
            new["metadata"]["ownerReferences"] = json!([{"kind": "Shop", "uid": "cr", "controller": true}]);
            cast.writes("operator", new);
            cast.writes(CONTROLLER, replica_set("cart", "one", "cart:1", 1, 1));
            cast.starts("cart", "one", "cart-one-a");
            cast.reports("cart", [1, 1, 1]);
            cast.passes(6.0);
            cast.rolls_out("cart", "operator", "cart:2");
            cast.writes(CONTROLLER, replica_set("cart", "two", "cart:2", 1, 2));
            cast.starts("cart", "two", "cart-two-a");
            cast.patches(CONTROLLER, "ReplicaSet shop/cart-one", &[("/spec/replicas", json!(0))]);
            cast.ends("cart-one-a");
            cast.reports("cart", [1, 1, 1]);
        },
        &expect![[r#"
            2026-03-01 14:00:00  ▸ shops.ops.example.com shop/all  n 1; created, ready after 1s, 1 pod  (by kubectl-create, 6 changes) #1
            2026-03-01 14:00:07  ▸ deployments.apps shop/cart  image web 1 -> 2; rolling out, 0 of 1 updated, 1 pod replaced  (by operator, 8 changes) #7
        "#]],
    );
}

#[test]
fn a_namespace_goes_with_all_in_it_however_new_it_is() {
    told(
        |cast| {
            let namespace = |phase: &str, deleted: Value| {
                json!({
                    "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "ns", "deletionTimestamp": deleted},
                    "status": {"phase": phase},
                })
            };
            cast.writes("kubectl", namespace("Active", Value::Null));
            cast.writes("kubectl", config());
            cast.passes(10.0);
            cast.writes("kubectl", namespace("Terminating", json!("2026-03-01T14:00:10Z")));
            cast.passes(5.0);
            cast.deletes("ConfigMap shop/cart-config");
            cast.deletes("Namespace shop");
        },
        &expect![[r#"
            2026-03-01 14:00:00  + namespaces shop  phase Active  (added by kubectl) #1
            2026-03-01 14:00:00  + configmaps shop/cart-config  data level (4 bytes)  (added by kubectl) #2
            2026-03-01 14:00:10  ▸ namespaces shop  deleted in 5s  (by kubectl, 3 changes) #3
        "#]],
    );
}
