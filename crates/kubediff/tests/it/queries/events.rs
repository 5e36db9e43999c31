//! Issue 21: `log --events`.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::run::run;
use super::world::World;

fn object(kind: &str, name: &str, uid: &str, owner: Option<&str>) -> Value {
    let group = if kind == "Pod" { "v1" } else { "apps/v1" };
    let mut metadata = json!({
        "name": name, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-03-01T13:00:00Z",
    });
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([{"uid": owner, "controller": true}]);
    }
    json!({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": {}})
}

fn event(name: &str, about: (&str, &str, &str), reason: &str, message: &str, count: u32) -> Value {
    let (kind, of, uid) = about;
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("e-{name}")},
        "involvedObject": {"kind": kind, "namespace": "shop", "name": of, "uid": uid},
        "reason": reason, "message": message, "count": count,
        "type": if reason == "Scheduled" { "Normal" } else { "Warning" },
        "source": {"component": if reason == "Scheduled" { "default-scheduler" } else { "kubelet" }},
    })
}

#[test]
fn events_are_in_the_log_of_their_object_and_of_what_controls_it_when_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    world.keeps_events();
    world.known("13:59:00", object("Deployment", "cart", "d", None));
    world.known("13:59:00", object("ReplicaSet", "cart-1", "r", Some("d")));
    world.wrote("14:00:00", "kube-controller-manager", object("Pod", "cart-1-a", "p", Some("r")));
    let pod = ("Pod", "cart-1-a", "p");
    world.became("14:00:01", event("a", pod, "Scheduled", "Successfully assigned shop/cart-1-a to n1", 1));
    let failed = "Back-off restarting failed container\nweb \u{1b}[31min pod cart-1-a";
    world.became("14:00:30", event("b", pod, "BackOff", failed, 1));
    world.became("14:05:00", event("b", pod, "BackOff", failed, 7));
    world.wrote("14:06:00", "kubectl-create", object("Pod", "other", "o", None));
    drop(world);
    let questions: &[(&[&str], Expect)] = &[
        (
            &["log", "deploy/cart", "--events"],
            expect![[r#"
            2026-03-01 14:00:30  * Pod shop/cart-1-a  BackOff  (Warning by kubelet, 7 times) #5
                Back-off restarting failed container
                web \e[31min pod cart-1-a
            2026-03-01 14:00:01  * Pod shop/cart-1-a  Scheduled  (Normal by default-scheduler) #4
                Successfully assigned shop/cart-1-a to n1
        "#]],
        ),
        (
            &["log", "deploy/cart", "--events", "--oneline", "--reverse"],
            expect![[r#"
            2026-03-01 14:00:01  * Pod shop/cart-1-a  Scheduled: Successfully assigned shop/cart-1-a to n1  (Normal by default-scheduler) #4
            2026-03-01 14:00:30  * Pod shop/cart-1-a  BackOff: Back-off restarting failed container\nweb \e[31min pod cart-1-a  (Warning by kubelet, 7 times) #5
        "#]],
        ),
        (
            &["log", "events", "-n", "shop", "--since", "2026-03-01 14:00:10", "-o", "json"],
            expect![[r#"
            {"event":{"number":5,"observed_at":"2026-03-01T14:00:30Z","object":{"apiVersion":"v1","count":7,"involvedObject":{"kind":"Pod","name":"cart-1-a","namespace":"shop","uid":"p"},"kind":"Event","message":"Back-off restarting failed container\nweb \u001b[31min pod cart-1-a","metadata":{"name":"b","namespace":"shop","resourceVersion":"1006","uid":"e-b"},"reason":"BackOff","source":{"component":"kubelet"},"type":"Warning"}}}
        "#]],
        ),
        (
            &["log", "--oneline"],
            expect![[r#"
            2026-03-01 14:06:00  + pods shop/other  (added by kubectl-create) #6
            2026-03-01 14:00:00  + pods shop/cart-1-a  (added by kube-controller-manager) #3
        "#]],
        ),
        (
            &["get", "ev", "-n", "shop", "--at", "2026-03-01 14:00:20"],
            expect![[r#"
            LAST SEEN   TYPE     REASON      OBJECT         MESSAGE
            <unknown>   Normal   Scheduled   pod/cart-1-a   Successfully assigned shop/cart-1-a to n1
        "#]],
        ),
    ];
    for (arguments, expected) in questions {
        expected.assert_eq(&run(&path, arguments));
    }
}
