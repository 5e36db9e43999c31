//! The defaults that the server fills in for the commonest kinds.

use serde_json::{Value, json};

use crate::fixture::{CORE, Server};

#[track_caller]
fn becomes(path: &str, object: Value, expected: Value) {
    assert_eq!(Server::new().post(path, object).plain(), expected);
}

fn template() -> Value {
    json!({ "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "c", "image": "nginx", "ports": [{ "containerPort": 80 }] }] } })
}

fn filled_container() -> Value {
    json!({ "name": "c", "image": "nginx", "ports": [{ "containerPort": 80, "protocol": "TCP" }], "resources": {},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "Always" })
}

fn filled_template() -> Value {
    json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": {
            "containers": [filled_container()], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "default-scheduler",
        },
    })
}

#[test]
fn a_pod_gets_its_defaults() {
    let mut spec = filled_template()["spec"].clone();
    let toleration = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
    spec["tolerations"] =
        json!([toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")]);
    spec["priority"] = 0.into();
    spec["enableServiceLinks"] = true.into();
    spec["preemptionPolicy"] = "PreemptLowerPriority".into();
    becomes(
        &format!("{CORE}/pods"),
        json!({ "metadata": { "name": "k1" }, "spec": template()["spec"] }),
        json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "k1", "generation": 1 }, "spec": spec,
            "status": { "phase": "Pending", "qosClass": "BestEffort" },
        }),
    );
}

#[test]
fn workloads_get_their_defaults() {
    let path = |plural: &str| format!("/apis/apps/v1/namespaces/default/{plural}");
    let selector = json!({ "matchLabels": { "a": "b" } });
    let object =
        json!({ "metadata": { "name": "k1" }, "spec": { "selector": selector, "template": template() } });
    let metadata = json!({ "name": "k1", "generation": 1 });
    becomes(
        &path("deployments"),
        object.clone(),
        json!({
            "kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata,
            "spec": {
                "replicas": 1, "selector": selector, "template": filled_template(),
                "strategy": { "type": "RollingUpdate",
                    "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" } },
                "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            },
            "status": {},
        }),
    );
    becomes(
        &path("replicasets"),
        object.clone(),
        json!({
            "kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": metadata,
            "spec": { "replicas": 1, "selector": selector, "template": filled_template() }, "status": { "replicas": 0 },
        }),
    );
    becomes(
        &path("daemonsets"),
        object,
        json!({
            "kind": "DaemonSet", "apiVersion": "apps/v1",
            "metadata": { "name": "k1", "generation": 1,
                "annotations": { "deprecated.daemonset.template.generation": "1" } },
            "spec": {
                "selector": selector, "template": filled_template(), "revisionHistoryLimit": 10,
                "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } },
            },
            "status": { "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0,
                "numberReady": 0 },
        }),
    );
}

#[test]
fn a_service_gets_an_address_and_keeps_it() {
    let server = Server::new();
    let path = format!("{CORE}/services");
    let spec = json!({ "ports": [{ "port": 80 }], "selector": { "a": "b" } });
    let made = server.post(&path, json!({ "metadata": { "name": "s" }, "spec": spec })).plain();
    let address = made["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10.96."), "{address}");
    assert_eq!(
        made,
        json!({
            "kind": "Service", "apiVersion": "v1", "metadata": { "name": "s" },
            "spec": {
                "ports": [{ "protocol": "TCP", "port": 80, "targetPort": 80 }], "selector": { "a": "b" },
                "clusterIP": address, "clusterIPs": [address], "type": "ClusterIP", "sessionAffinity": "None",
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            },
            "status": { "loadBalancer": {} },
        })
    );
    let same = server.put(&format!("{path}/s"), json!({ "metadata": { "name": "s" }, "spec": spec })).plain();
    assert_eq!(same, made);
}

#[test]
fn a_question_is_answered_and_not_kept() {
    let server = Server::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let before = server.api.revision();
    let asked = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let answer = server.post(path, asked).expect(201);
    assert_eq!(
        (&answer["kind"], &answer["status"]),
        (&json!("SelfSubjectAccessReview"), &json!({ "allowed": true }))
    );
    assert_eq!(server.api.revision(), before);
}

#[test]
fn a_pod_asks_for_its_limits_and_a_template_does_not() {
    let server = Server::new();
    let spec =
        json!({ "containers": [{ "name": "c", "image": "x", "resources": { "limits": { "cpu": "1" } } }] });
    let pod = json!({ "metadata": { "name": "p" }, "spec": spec });
    let pod = server.post(&format!("{CORE}/pods"), pod).expect(201);
    assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({ "cpu": "1" }));
    let labels = json!({ "a": "b" });
    let deployment = json!({ "metadata": { "name": "d" }, "spec": { "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": spec } } });
    let deployment = server.post("/apis/apps/v1/namespaces/default/deployments", deployment).expect(201);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"], json!({ "limits": { "cpu": "1" } }));
}

#[test]
fn who_creates_an_event_does_not_own_what_it_does_not_say() {
    let server = Server::new();
    let event = json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" }, "reason": "Started",
        "reportingComponent": "", "involvedObject": { "name": "p", "namespace": "default" } });
    let event = server.post(&format!("{CORE}/events"), event).expect(201);
    assert_eq!((&event["reportingComponent"], &event["reportingInstance"]), (&json!(""), &json!("")));
    let owned = &event["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(owned["f:reason"].is_object(), "{owned}");
    for name in ["f:reportingComponent", "f:reportingInstance"] {
        assert!(owned[name].is_null(), "{name}: {owned}");
    }
}

#[test]
fn ephemeral_containers_come_and_resources_change_by_their_own_ways() {
    let server = Server::new();
    let pods = format!("{CORE}/pods");
    let spec = json!({ "containers": [{ "name": "c", "image": "x" }] });
    server.post(&pods, json!({ "metadata": { "name": "p" }, "spec": spec })).expect(201);
    let debug = json!({ "spec": { "ephemeralContainers": [{ "name": "debug", "image": "x" }] } });
    let resources = json!({ "spec": { "containers": [{ "name": "c", "image": "x",
        "resources": { "requests": { "cpu": "2" } } }] } });
    for (below, patch) in [("ephemeralcontainers", debug), ("resize", resources)] {
        assert_eq!(server.merge(&format!("{pods}/p"), patch.clone()).code, 422, "{below}");
        assert_eq!(server.merge(&format!("{pods}/p/{below}"), patch).code, 200, "{below}");
    }
}
