//! The commands of kubectl that work on the past, and the clients that read it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use futures_util::StreamExt as _;
use http::Request;
use informer::SharedInformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, DynamicObject, ListParams, WatchParams};
use kube_client::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::equality::{METADATA, ask, leveled};
use super::{Town, kubectl_is_missing, output};
use crate::session::PATIENCE;

/// A line of kubectl, and what it prints; `!` before a line that is refused.
const LINES: &[(&str, &[&str])] = &[
    ("get pods -A", &["NAMESPACE", "past-commands", "web-1", "0/1", "Pending"]),
    ("get pods -n past-commands -o wide", &["NOMINATED NODE"]),
    ("get pods -n past-commands -o yaml --show-managed-fields=true", &["managedFields", "kind: List"]),
    ("get pods -n past-commands -o json", &["\"kind\": \"List\""]),
    ("get pods -n past-commands -o name", &["pod/web-1", "pod/web-2"]),
    ("get pods -n past-commands -o jsonpath={.items[*].metadata.name}", &["web-1 web-2"]),
    ("get pods -n past-commands -o custom-columns=N:.metadata.name", &["web-1"]),
    ("get pods -n past-commands --sort-by=.metadata.name", &["web-1"]),
    ("get pods -n past-commands --chunk-size=1", &["web-1", "web-2"]),
    ("get pods -n past-commands -l app=web", &["web-1", "web-2"]),
    ("get pods -n past-commands --field-selector metadata.name=web-2", &["web-2"]),
    ("get pod web-1 -n past-commands", &["web-1"]),
    ("get cm,deploy,svc -n past-commands", &["configmap/settings", "deployment.apps/web", "service/web"]),
    ("get secret db -n past-commands -o yaml", &["password: PGhtYWM6"]),
    ("get --raw /api/v1/namespaces/past-commands/configmaps/settings", &["\"color\":\"red\""]),
    ("get events -n past-commands", &["Scheduled", "assigned"]),
    ("events -n past-commands", &["assigned"]),
    ("describe pod web-1 -n past-commands", &["Name:", "web:1", "Scheduled"]),
    ("describe deploy web -n past-commands", &["Replicas:", "web:1"]),
    ("describe cm settings -n past-commands", &["color:", "red"]),
    ("describe secret db -n past-commands", &["password:"]),
    ("describe svc web -n past-commands", &["Port:", "80/TCP"]),
    ("describe ns past-commands", &["Active"]),
    ("get events.v1.events.k8s.io -n past-commands", &["LAST SEEN", "pod/web-1", "assigned to a node"]),
    ("api-resources", &["configmaps", "deployments", "deploy", "events.k8s.io/v1"]),
    ("api-versions", &["apps/v1", "v1"]),
    ("version", &["Server Version"]),
    ("explain configmaps", &["KIND:", "ConfigMap", "ConfigMap holds configuration data", "immutable"]),
    ("explain deployments.spec.strategy.rollingUpdate.maxSurge", &["GROUP:", "apps", "IntOrString"]),
    ("auth can-i list pods -n past-commands", &["yes"]),
    ("auth can-i --list -n past-commands", &["pods"]),
    ("rollout history deploy/web -n past-commands", &["REVISION"]),
    ("wait --for=jsonpath={.data.color}=red cm/settings -n past-commands --timeout=10s", &["condition met"]),
    ("!delete pod web-1 -n past-commands", &["nothing can be changed in the past"]),
    ("!label cm settings -n past-commands a=b", &["nothing can be changed in the past"]),
    ("!create cm other -n past-commands", &["nothing can be changed in the past"]),
    ("!scale deploy/web -n past-commands --replicas=3", &["past"]),
    ("!logs web-1 -n past-commands", &["logs are not in the history"]),
    ("!exec web-1 -n past-commands -- true", &["past"]),
    ("!top pods -n past-commands", &["Metrics API not available"]),
    ("!auth can-i delete pods -n past-commands", &["no"]),
    ("!get pod web-9 -n past-commands", &["pods \"web-9\" not found"]),
    ("!get mutatingadmissionpolicies.nothing.example.com", &["the server doesn't have a resource type"]),
];

pub(super) async fn furnished(town: &Town<'_>) {
    let root = format!("/api/v1/namespaces/{}", town.namespace);
    let apps = format!("/apis/apps/v1/namespaces/{}", town.namespace);
    let labels = json!({"app": "web"});
    let spec = json!({"containers": [{"name": "web", "image": "web:1"}]});
    town.post(
        &format!("{root}/configmaps"),
        json!({"metadata": {"name": "settings"}, "data": {"color": "red"}}),
    )
    .await;
    town.post(
        &format!("{root}/secrets"),
        json!({"metadata": {"name": "db"}, "stringData": {"password": "hunter2hunter2"}}),
    )
    .await;
    town.post(
        &format!("{root}/services"),
        json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": labels}}),
    )
    .await;
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    });
    let deployment = town.post(&format!("{apps}/deployments"), deployment).await;
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": true,
        "uid": deployment["metadata"]["uid"],
    }]);
    let set = json!({
        "metadata": {"name": "web-5", "labels": labels, "ownerReferences": owner, "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    });
    town.post(&format!("{apps}/replicasets"), set).await;
    let mut pods = Vec::new();
    for name in ["web-1", "web-2"] {
        let pod = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        pods.push(town.post(&format!("{root}/pods"), pod).await);
    }
    let event = json!({
        "metadata": {"name": "web-1.1"}, "reason": "Scheduled", "message": "assigned to a node", "type": "Normal", "count": 1,
        "involvedObject": {
            "kind": "Pod", "name": "web-1", "namespace": town.namespace, "uid": pods[0]["metadata"]["uid"], "apiVersion": "v1",
        },
        "firstTimestamp": pods[0]["metadata"]["creationTimestamp"], "lastTimestamp": pods[0]["metadata"]["creationTimestamp"],
    });
    town.post(&format!("{root}/events"), event).await;
}

pub(super) fn lists(town: &Town<'_>) -> Vec<String> {
    let of = |root: &str, kind: &str| format!("{root}/namespaces/{}/{kind}", town.namespace);
    let core = ["configmaps", "secrets", "services", "pods", "events"].map(|kind| of("/api/v1", kind));
    core.into_iter().chain(["deployments", "replicasets"].map(|kind| of("/apis/apps/v1", kind))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_the_past_and_is_refused_in_words() {
    let name = "kubectl_reads_the_past_and_is_refused_in_words";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    if kubectl_is_missing() {
        return;
    }
    let mut town = Town::open(server, "past-commands").await;
    town.record().await;
    furnished(&town).await;
    let time = town.recorded(&lists(&town)).await.to_string();
    let pod = format!("/api/v1/namespaces/{}/pods/web-1", town.namespace);
    let now = json!({"gracePeriodSeconds": 0});
    crate::viewers::send(&town.admin, "DELETE", &pod, now).await;
    town.recorded(&lists(&town)).await;
    // Events are in two groups, with other names for their members.
    let past = town.server_of(&time);
    let client = past.client().await;
    for query in ["", "?fieldSelector=regarding.name%3Dweb-1", "?fieldSelector=regarding.name%3Dweb-2"] {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events{query}", town.namespace);
        for accept in ["application/json", METADATA] {
            let expected = leveled(ask(&town.admin, &path, accept).await, &path);
            assert_eq!(leveled(ask(&client, &path, accept).await, &path), expected, "{path} {accept}");
        }
    }
    // What the server says about itself.
    town.documented("apis/apps/v1").await;
    assert_eq!(
        ask(&client, "/version", "application/json").await,
        ask(&town.admin, "/version", "application/json").await
    );
    for path in ["/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"] {
        let mut schemas = Vec::new();
        for client in [&client, &town.admin] {
            schemas.push(ask(client, path, "application/json").await["components"]["schemas"].take());
        }
        assert!(schemas[0] == schemas[1] && schemas[0].as_object().unwrap().len() > 20, "{path}");
    }
    let mut wrong = Vec::new();
    for (line, expected) in LINES {
        let (line, is_refused) = line.strip_prefix('!').map_or((*line, false), |line| (line, true));
        let command: Vec<&str> = std::iter::once("kubectl").chain(line.split(' ')).collect();
        let output = town.at(&time, &command).output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let has_all = expected.iter().all(|text| said.contains(text));
        if output.status.success() == is_refused || !has_all {
            wrong.push(format!("kubectl {line}: {:?}\n{said}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The pod is gone now.
    let later = output(town.at("now", &["kubectl", "get", "pods", "-n", "past-commands", "-o", "name"]));
    assert_eq!(later, "pod/web-2\n");

    let mut watch = town.at("now", &["kubectl", "get", "cm", "-n", "past-commands", "-w", "-o", "name"]);
    let mut child = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "configmap/settings");
    let maps = format!("/api/v1/namespaces/{}/configmaps", town.namespace);
    town.post(&maps, json!({"metadata": {"name": "later"}})).await;
    let told = tokio::task::spawn_blocking(move || lines.next().unwrap()).await.unwrap();
    assert_eq!(told, "configmap/later");
    // The command goes with the program.
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert!(!child.wait().unwrap().success());
    town.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_of_clients_are_filled_from_the_past_and_follow_now() {
    let name = "caches_of_clients_are_filled_from_the_past_and_follow_now";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let mut town = Town::open(server, "past-caches").await;
    town.record().await;
    furnished(&town).await;
    let time = town.recorded(&lists(&town)).await.to_string();
    let maps = format!("/api/v1/namespaces/{}/configmaps", town.namespace);

    // A list and a watch by kube-rs, of then and of now.
    let (served, now) = (town.server_of(&time), town.server_of("now"));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let api = |client| Api::<DynamicObject>::namespaced_with(client, &town.namespace, &resource);
    let then = api(served.client().await);
    let listed = then.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = listed.items.iter().map(|it| it.metadata.name.clone().unwrap()).collect();
    assert!(names.contains(&"settings".to_owned()), "{names:?}");

    // Informers of both.
    let mut factories = Vec::new();
    for past in [&served, &now] {
        let factory = SharedInformerFactory::new(past.config().await).unwrap();
        let maps = factory.informer::<ConfigMap>();
        factory.start();
        factory.wait_for_sync(PATIENCE).await.unwrap();
        assert!(maps.lister().namespace(&town.namespace).get("settings").is_ok_and(|it| it.is_some()));
        factories.push((factory, maps));
    }

    let following = api(now.client().await);
    let begin = following.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = following.watch(&WatchParams::default().timeout(60), &begin).await.unwrap().boxed();
    town.post(&maps, json!({"metadata": {"name": "later"}, "data": {"color": "blue"}})).await;
    let request = Request::patch(format!("{maps}/later"))
        .header("content-type", "application/merge-patch+json")
        .body(json!({"data": {"color": "green"}}).to_string().into_bytes())
        .unwrap();
    let _: Value = town.admin.request(request).await.unwrap();
    crate::viewers::send(&town.admin, "DELETE", &format!("{maps}/later"), json!({})).await;
    let mut told = Vec::new();
    while told.len() < 3 {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.unwrap().unwrap().unwrap();
        let (kind, object) = match event {
            kube_client::core::WatchEvent::Added(object) => ("added", object),
            kube_client::core::WatchEvent::Modified(object) => ("modified", object),
            kube_client::core::WatchEvent::Deleted(object) => ("deleted", object),
            other => panic!("{other:?}"),
        };
        told.push((kind, object.data["data"]["color"].as_str().unwrap().to_owned()));
    }
    let expected = [("added", "blue"), ("modified", "green"), ("deleted", "green")];
    assert_eq!(told, expected.map(|(kind, color)| (kind, color.to_owned())));
    town.post(&maps, json!({"metadata": {"name": "last"}})).await;
    let known = |at: usize| {
        factories[at].1.lister().namespace(&town.namespace).get("last").is_ok_and(|it| it.is_some())
    };
    let arrived = async {
        while !known(1) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, arrived).await.expect("the informer of now has it");
    assert!(!known(0));
    for (factory, _) in factories {
        factory.shutdown().await;
    }
    town.close().await;
}
