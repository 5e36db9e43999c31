//! Noise that is left out, and counted.

use expect_test::{Expect, expect};
use kubediff::{Noise, Profile, Tally};
use serde_json::{Value, json};

use crate::support::{change_with, deployment, edited, plain, profile, renderer};

#[track_caller]
fn check_with(profile: &Profile, old: &Value, new: &Value, expected: &Expect) {
    let mut tally = Tally::default();
    let change = change_with(profile, Some(old), Some(new), &mut tally);
    let mut text = change.map_or_else(|| "nothing\n".to_owned(), |change| plain(&renderer().text(&change)));
    text += &serde_json::to_string(&tally).unwrap();
    text += "\n";
    expected.assert_eq(&text);
}

#[track_caller]
fn check(old: &Value, new: &Value, expected: &Expect) {
    check_with(&profile(), old, new, expected);
}

#[test]
fn a_write_that_changes_nothing() {
    let old = deployment();
    let new = edited(&old, |it| {
        it["metadata"]["generation"] = 4.into();
        it["metadata"]["managedFields"][0]["time"] = "2026-03-01T14:00:00Z".into();
    });
    check(
        &old,
        &new,
        &expect![[r#"
        nothing
        {"differences":{"generation":1,"managed-fields":1,"resource-version":1},"changes":{"generation":1},"unchanged":0}
    "#]],
    );
    check(
        &old,
        &old,
        &expect![[r#"
        nothing
        {"differences":{},"changes":{},"unchanged":1}
    "#]],
    );
}

#[test]
fn a_lease_renewed_and_a_lease_taken() {
    let old = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kcm", "namespace": "kube-system", "resourceVersion": "1"},
        "spec": {"holderIdentity": "a", "renewTime": "2026-03-01T14:00:00.000000Z", "acquireTime": "2026-03-01T10:00:00.000000Z"}});
    let renewed = edited(&old, |it| it["spec"]["renewTime"] = "2026-03-01T14:00:02.000000Z".into());
    check(
        &old,
        &renewed,
        &expect![[r#"
        nothing
        {"differences":{"lease-renewal":1,"resource-version":1},"changes":{"lease-renewal":1},"unchanged":0}
    "#]],
    );
    let taken = edited(&old, |it| {
        it["spec"]["renewTime"] = "2026-03-01T14:00:02.000000Z".into();
        it["spec"]["acquireTime"] = "2026-03-01T14:00:02.000000Z".into();
        it["spec"]["holderIdentity"] = "b".into();
    });
    check(
        &old,
        &taken,
        &expect![[r#"
        14:03:22  ~ leases.coordination.k8s.io kube-system/kcm  (updated)
            ~ spec.holderIdentity: a → b
        {"differences":{"lease-renewal":2,"resource-version":1},"changes":{},"unchanged":0}
    "#]],
    );
}

#[test]
fn a_node_that_says_it_lives() {
    let condition = |kind: &str, status: &str, time: &str| json!({"type": kind, "status": status, "lastHeartbeatTime": time, "lastTransitionTime": time});
    let node = |version: &str, conditions: Value| {
        json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node-1", "resourceVersion": version}, "status": {"conditions": conditions}})
    };
    let old = node("1", json!([condition("Ready", "True", "t1"), condition("DiskPressure", "False", "t1")]));
    let heartbeat =
        node("2", json!([condition("DiskPressure", "False", "t2"), condition("Ready", "True", "t2")]));
    check(
        &old,
        &heartbeat,
        &expect![[r#"
        nothing
        {"differences":{"condition-times":2,"node-heartbeat":2,"order":1,"resource-version":1},"changes":{"node-heartbeat":1},"unchanged":0}
    "#]],
    );
    let down =
        node("2", json!([condition("Ready", "Unknown", "t2"), condition("DiskPressure", "False", "t2")]));
    check(
        &old,
        &down,
        &expect![[r#"
        14:03:22  ~ nodes node-1  (updated)
            ~ status.conditions[Ready].status: True → Unknown
        {"differences":{"condition-times":2,"node-heartbeat":2,"resource-version":1},"changes":{},"unchanged":0}
    "#]],
    );
}

#[test]
fn events_are_no_changes() {
    let old = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "cart.1", "namespace": "shop", "resourceVersion": "1"}, "count": 1});
    let new = edited(&old, |it| it["count"] = 2.into());
    check(
        &old,
        &new,
        &expect![[r#"
        nothing
        {"differences":{},"changes":{"events":1},"unchanged":0}
    "#]],
    );
    let mut profile = profile();
    profile.noise.adjust("-events").unwrap();
    check_with(
        &profile,
        &old,
        &new,
        &expect![[r#"
        nothing
        {"differences":{"event-counts":1,"resource-version":1},"changes":{"event-counts":1},"unchanged":0}
    "#]],
    );
}

#[test]
fn noise_inside_what_came_as_a_whole() {
    let old = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "cart", "namespace": "shop", "resourceVersion": "1"}});
    let trigger = "endpoints.kubernetes.io/last-change-trigger-time";
    let noise_only = edited(&old, |it| it["metadata"]["annotations"] = json!({trigger: "t"}));
    check(
        &old,
        &noise_only,
        &expect![[r#"
        nothing
        {"differences":{"endpoints-trigger":1,"resource-version":1},"changes":{"endpoints-trigger":1},"unchanged":0}
    "#]],
    );
    let more = edited(&old, |it| {
        it["metadata"]["annotations"] = json!({trigger: "t", "team": "shop"});
        it["status"] = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "t"}]});
    });
    check(
        &old,
        &more,
        &expect![[r#"
        14:03:22  ~ endpointslices.discovery.k8s.io shop/cart  (updated)
            + metadata.annotations: {team: shop}
            + status:               {conditions: [{status: True, type: Ready}]}
        {"differences":{"condition-times":1,"endpoints-trigger":1,"generation":1,"resource-version":1},"changes":{},"unchanged":0}
    "#]],
    );
}

#[test]
fn rules_are_switched_and_added() {
    let old = deployment();
    let new = edited(&old, |it| {
        it["status"]["replicas"] = 3.into();
        it["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:1.28".into();
    });
    let mut profile = profile();
    profile.noise.adjust("status").unwrap();
    check_with(
        &profile,
        &old,
        &new,
        &expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated)
            ~ spec.template.spec.containers[web].image: nginx:1.27 → nginx:1.28
        {"differences":{"resource-version":1,"status":1},"changes":{},"unchanged":0}
    "#]],
    );
    profile
        .noise
        .ignore("deployment.apps".parse().unwrap(), "spec.template.spec.containers[web].image")
        .unwrap();
    check_with(
        &profile,
        &old,
        &new,
        &expect![[r#"
        nothing
        {"differences":{"resource-version":1,"spec.template.spec.containers[web].image":1,"status":1},"changes":{"spec.template.spec.containers[web].image":1},"unchanged":0}
    "#]],
    );
    profile.noise = Noise::none();
    check_with(
        &profile,
        &old,
        &new,
        &expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated)
            ~ metadata.resourceVersion:                 "1001" → "1002"
            ~ spec.template.spec.containers[web].image: nginx:1.27 → nginx:1.28
            ~ status.replicas:                          2 → 3
        {"differences":{},"changes":{},"unchanged":0}
    "#]],
    );
}

#[test]
fn an_order_that_means_nothing() {
    let old = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": ["a", "b"]},
        "spec": {"volumes": [{"name": "a"}, {"name": "b"}]}});
    let new = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": ["b", "a"]},
        "spec": {"volumes": [{"name": "b"}, {"name": "a"}]}});
    check(
        &old,
        &new,
        &expect![[r#"
        nothing
        {"differences":{"order":2},"changes":{"order":1},"unchanged":0}
    "#]],
    );
}

#[test]
fn mistakes_are_explained() {
    let mut noise = Noise::default();
    let text = format!(
        "{}\n{}\n{}\n{}\n",
        noise.adjust("statsu").unwrap_err(),
        noise.ignore("Pod".parse().unwrap(), "spec..x").unwrap_err(),
        noise.ignore("Pod".parse().unwrap(), "spec.containers[web.image").unwrap_err(),
        noise.ignore("Pod".parse().unwrap(), "").unwrap_err(),
    );
    expect![[r#"
        there is no noise rule `statsu` (there are: status, events, event-counts, lease-renewal, leader-election, node-heartbeat, node-images, endpoints, endpoints-trigger, last-applied, condition-times, order, identity, generation, managed-fields, resource-version)
        `spec..x` is not a path: expected a name at character 6 (expected for example `spec.containers[*].image`)
        `spec.containers[web.image` is not a path: the bracket does not end at character 16 (expected for example `spec.containers[*].image`)
        `` is not a path: it is empty at character 1 (expected for example `spec.containers[*].image`)
    "#]].assert_eq(&text);
}

#[test]
fn the_rules() {
    let text: String = Noise::default()
        .rules()
        .map(|rule| {
            format!("{} {:18} {}\n", if rule.is_on() { "on " } else { "off" }, rule.name(), rule.about())
        })
        .collect();
    expect![[r#"
        off status             the whole status
        on  events             Event objects: they report changes, and are none
        on  event-counts       how often an Event was seen, and when last
        on  lease-renewal      a Lease that its holder renewed
        on  leader-election    leader election by annotation
        on  node-heartbeat     conditions that a node's kubelet confirmed
        on  node-images        the images that a node has pulled
        on  endpoints          Endpoints objects: EndpointSlices say the same
        on  endpoints-trigger  when something last made endpoints change
        on  last-applied       the annotation of kubectl apply; it repeats the change itself
        on  condition-times    when conditions were last probed, updated or in transition
        on  order              elements that changed places in a list where places mean nothing
        on  identity           uid and creation time of an object that was deleted and created again
        on  generation         metadata.generation, and which one a controller has seen
        on  managed-fields     which manager owns which field
        on  resource-version   metadata.resourceVersion, which every write changes
    "#]]
    .assert_eq(&text);
}
