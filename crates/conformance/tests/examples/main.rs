//! The examples of `informer` and `informer-controller` run against a real server, and say what they are there to show.

#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

use conformance::{Kind, Needs, Rig, custom_resource, within};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

/// The folder of the examples. Cargo tells only the tests of their own package where they are.
static EXAMPLES: LazyLock<PathBuf> = LazyLock::new(|| {
    conformance::build_examples(&[
        "seven_steps",
        "pods_by_ip",
        "several_kinds",
        "dynamic",
        "raw_watch",
        "restart",
        "cost",
        "http_versions",
        "sample_controller",
        "copy_secrets",
        "sharded",
    ])
});

/// An example that runs.
struct Example {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn run(rig: &Rig, name: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(EXAMPLES.join(name))
            .args(arguments)
            .env("KUBECONFIG", rig.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Self { process, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("a line")
    }

    /// Reads on to a line with this text.
    fn says(&mut self, text: &str) -> String {
        let mut said = Vec::new();
        for line in &mut self.lines {
            said.push(line.expect("a line"));
            if let Some(line) = said.last().filter(|line| line.contains(text)) {
                return line.clone();
            }
        }
        panic!("it did not say {text:?}, but: {said:#?}");
    }

    /// Reads on to the end.
    fn output(mut self) -> Vec<String> {
        let lines = (&mut self.lines).map(|line| line.expect("a line")).collect();
        assert!(self.process.wait().expect("an end").success(), "{lines:#?}");
        lines
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn typed<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object of that type")
}

fn pod(name: &str) -> Pod {
    typed(json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn seven_steps() {
    let Some(rig) = Rig::shared(Kind::Real, "seven_steps").await else { return };
    let pods = Api::<Pod>::namespaced(rig.client(), "default");
    for name in ["step-a", "step-b"] {
        pods.create(&Default::default(), &pod(name)).await.unwrap();
    }
    let output = Example::run(&rig, "seven_steps", &[]).output();
    assert!(output.contains(&"added step-a (from the start)".to_owned()), "{output:#?}");
    assert_eq!(output.last().unwrap(), "2 pods in default: step-a, step-b");
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_by_ip() {
    let Some(rig) = Rig::shared(Kind::Real, "pods_by_ip").await else { return };
    let pods = Api::<Pod>::namespaced(rig.client(), rig.namespace());
    for (name, ip) in [("host-a", "10.1.0.1"), ("host-b", "10.1.0.1"), ("own", "10.2.0.7"), ("none", "")] {
        pods.create(&Default::default(), &pod(name)).await.unwrap();
        if !ip.is_empty() {
            let status = json!({ "status": { "podIP": ip, "podIPs": [{ "ip": ip }] } });
            pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        }
    }
    let output = Example::run(&rig, "pods_by_ip", &["10.1.0.1", "10.2.0.7", "10.2.0.8"]).output();
    let expected =
        ["10.1.0.1: pods-by-ip/host-a, pods-by-ip/host-b", "10.2.0.7: pods-by-ip/own", "10.2.0.8: nobody"];
    assert_eq!(output[1..], expected);
    assert!(output[0].ends_with("pods use 2 IPs"), "{output:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_kinds() {
    let Some(rig) = Rig::shared(Kind::Real, "several_kinds").await else { return };
    let labels = json!({ "app": "web" });
    let set: ReplicaSet = typed(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    }));
    let service: Service = typed(json!({
        "metadata": { "name": "web" },
        "spec": { "selector": labels, "clusterIP": "None", "ports": [{ "port": 80 }] },
    }));
    let default = Default::default();
    Api::namespaced(rig.client(), rig.namespace()).create(&default, &pod("web")).await.unwrap();
    Api::namespaced(rig.client(), rig.namespace()).create(&default, &set).await.unwrap();
    Api::namespaced(rig.client(), rig.namespace()).create(&default, &service).await.unwrap();
    let output = Example::run(&rig, "several_kinds", &["several-kinds/web"]).output();
    let expected = [
        r#"pod several-kinds/web: Some("Pending")"#,
        "replica set several-kinds/web: Some(3) replicas",
        r#"service several-kinds/web: Some("None")"#,
    ];
    assert_eq!(output, expected);
    let output = Example::run(&rig, "several_kinds", &["several-kinds/none"]).output();
    assert_eq!(output[0], "pod several-kinds/none: not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamic() {
    let Some(rig) = Rig::shared(Kind::Real, "dynamic").await else { return };
    rig.add_namespace("dynamic-elsewhere").await;
    let (definition, resource) = custom_resource("dynamic.example.com", "Widget");
    let definitions = Api::<CustomResourceDefinition>::all(rig.client());
    definitions.create(&Default::default(), &definition).await.unwrap();
    let arguments = ["widgets.v1.dynamic.example.com", "Widget", rig.namespace()];
    let mut example = Example::run(&rig, "dynamic", &arguments);
    // By then, if not before, the resource is served.
    example.says("live since");

    let api_resource = ApiResource {
        group: resource.group.clone(),
        version: resource.version.clone(),
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
    };
    let patch = Patch::Merge(json!({ "spec": { "size": 2 } }));
    let widget = DynamicObject::new("w", &api_resource).data(json!({ "spec": { "size": 1 } }));
    let elsewhere = Api::<DynamicObject>::namespaced_with(rig.client(), "dynamic-elsewhere", &api_resource);
    elsewhere.create(&Default::default(), &widget).await.unwrap();
    elsewhere.delete("w", &Default::default()).await.unwrap();
    // Each is told before the next happens: what happens at once may be told at once.
    let widgets = Api::<DynamicObject>::namespaced_with(rig.client(), rig.namespace(), &api_resource);
    widgets.create(&Default::default(), &widget).await.unwrap();
    assert_eq!(example.line(), r#"added w: {"size":1}"#);
    widgets.patch("w", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(example.line(), r#"updated w: {"size":1} -> {"size":2}"#);
    widgets.delete("w", &Default::default()).await.unwrap();
    assert_eq!(example.line(), "deleted w");
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_watch() {
    for (name, forgets, how) in [("raw-watch", false, "deleted"), ("forgotten", true, "deleted, but unseen")]
    {
        let Some(rig) = Rig::own(Kind::Real, name, Needs::default()).await else { return };
        let mut example = Example::run(&rig, "raw_watch", &[rig.namespace()]);
        example.says("Press Enter to reconnect");
        if forgets {
            rig.forget_history().await;
        }
        let mut stdin = example.process.stdin.take().expect("a pipe");
        writeln!(stdin).expect("a reader");
        let expected = [
            "The raw watch knows `present` as there and `new` as not there.".to_owned(),
            "The informer knows `present` as not there and `new` as there.".to_owned(),
            format!("It reported: `present` is {how}."),
        ];
        assert_eq!(example.output(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restart() {
    let Some(rig) = Rig::shared(Kind::Real, "restart").await else { return };
    let directory = tempfile::TempDir::new().unwrap();
    let seen = directory.path().to_str().unwrap();
    let run = || Example::run(&rig, "restart", &[rig.namespace(), seen]).output();
    let ours = |output: Vec<String>| -> Vec<_> {
        output.into_iter().filter(|line| !line.ends_with("kube-root-ca.crt")).collect()
    };
    rig.create("goes").await;
    rig.create("stays").await;
    let mut first = ours(run());
    first.sort();
    assert_eq!(first, ["known goes", "known stays"]);
    rig.delete("goes").await;
    rig.update("stays", "new").await;
    rig.create("comes").await;
    let mut second = ours(run());
    second[..2].sort();
    assert_eq!(second, ["known goes", "known stays", "deleted goes", "changed stays", "added comes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cost() {
    let Some(rig) = Rig::shared(Kind::Real, "cost").await else { return };
    for number in 0..20 {
        rig.create(&format!("map-{number}")).await;
    }
    let output = Example::run(&rig, "cost", &["configmaps", "leases"]).output();
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(columns(&output[0])[..2], ["RESOURCE", "OBJECTS"]);
    // Others may make and delete some of theirs meanwhile.
    let maps = output.iter().map(|line| columns(line)).find(|line| line[0] == "configmaps.v1").unwrap();
    assert!(maps[1].parse::<usize>().unwrap() >= 20, "{output:#?}");
    let peers: Vec<_> = output.iter().filter(|line| line.contains("would take about")).collect();
    assert_eq!(peers.len(), 3, "{output:#?}");
    assert!(!output.iter().any(|line| line.contains("not listed")), "{output:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_versions() {
    let Some(rig) = Rig::shared(Kind::Real, "http_versions").await else { return };
    let run = |version| Example::run(&rig, "http_versions", &[version, "watches", "8"]).output();
    let [first] = &run("1")[..] else { panic!("a line") };
    assert!(first.starts_with("0 objects, 8 watches: "), "{first}");
    let [second] = &run("2")[..] else { panic!("a line") };
    assert!(second.ends_with(", 1 connections"), "{second}");
}

/// With Kubernetes' own controllers: a Deployment gets its pods, and goes with its owner. The test is the kubelet.
#[tokio::test(flavor = "multi_thread")]
async fn sample_controller() {
    let needs = Needs { controllers: true, ..Needs::default() };
    let Some(rig) = Rig::own(Kind::Real, "sample-controller", needs).await else { return };
    let definition = Example::run(&rig, "sample_controller", &["--definition"]).output().concat();
    rig.define(&serde_json::from_str(&definition).expect("a definition")).await;
    let _running = Example::run(&rig, "sample_controller", &[]);

    let resource = ApiResource {
        group: "samplecontroller.k8s.io".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "samplecontroller.k8s.io/v1alpha1".to_owned(),
        kind: "Foo".to_owned(),
        plural: "foos".to_owned(),
    };
    let foos = Api::<DynamicObject>::namespaced_with(rig.client(), rig.namespace(), &resource);
    let pods = Api::<Pod>::namespaced(rig.client(), rig.namespace());
    let spec = json!({ "spec": { "deploymentName": "web", "replicas": 2 } });
    let foo = DynamicObject::new("one", &resource).data(spec);
    foos.create(&Default::default(), &foo).await.unwrap();

    let names = async || {
        let list = pods.list(&Default::default()).await.unwrap();
        list.into_iter().filter_map(|pod| pod.metadata.name).collect::<Vec<_>>()
    };
    let made = within("two pods", until(async || Some(names().await).filter(|names| names.len() == 2))).await;
    for name in made {
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let patch = Patch::Merge(json!({ "status": ready }));
        pods.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    }
    let available = async || {
        let foo = foos.get("one").await.unwrap();
        (foo.data["status"]["availableReplicas"] == 2).then_some(())
    };
    within("a status with two replicas", until(available)).await;

    let events = Api::<Event>::namespaced(rig.client(), rig.namespace());
    let synced = async || {
        let events = events.list(&Default::default()).await.unwrap();
        events.into_iter().find(|event| event.reason.as_deref() == Some("Synced"))
    };
    let synced = within("an event", until(synced)).await;
    assert_eq!(synced.regarding.and_then(|foo| foo.name).as_deref(), Some("one"));

    foos.delete("one", &Default::default()).await.unwrap();
    within("no pods", until(async || names().await.is_empty().then_some(()))).await;
}

/// Copies follow the labels of namespaces, and what somebody else made stays.
#[tokio::test(flavor = "multi_thread")]
async fn copy_secrets() {
    const TO: &str = "copy-secrets.example.com/namespaces";
    let Some(rig) = Rig::shared(Kind::Real, "copy-secrets").await else { return };
    let namespaces = Api::<Namespace>::all(rig.client());
    let label = async |namespace: &str, team: Option<&str>| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "copy-secrets": team } } }));
        namespaces.patch(namespace, &PatchParams::default(), &patch).await.unwrap();
    };
    let [one, two, three] = ["copy-secrets-one", "copy-secrets-two", "copy-secrets-three"];
    for namespace in [one, two, three] {
        rig.add_namespace(namespace).await;
    }
    label(one, Some("shop")).await;
    label(three, Some("shop")).await;
    let secrets = |namespace: &str| Api::<Secret>::namespaced(rig.client(), namespace);
    let secret = |data: &str, metadata: Value| -> Secret {
        let mut secret = json!({ "metadata": metadata, "stringData": { "price": data } });
        secret["metadata"]["name"] = json!("prices");
        typed(secret)
    };
    let foreign = secret("mine", json!({}));
    let foreign = secrets(three).create(&Default::default(), &foreign).await.unwrap();
    let source = json!({
        "labels": { "copy-secrets.example.com/source": "true" }, "annotations": { TO: "copy-secrets=shop" },
    });
    secrets(rig.namespace()).create(&Default::default(), &secret("7", source)).await.unwrap();

    let price = async |namespace: &str| {
        let found = secrets(namespace).get_opt("prices").await.unwrap();
        found.map(|found| String::from_utf8(found.data.unwrap()["price"].0.clone()).unwrap())
    };
    let costs = async |namespace: &str, wanted: Option<&str>| {
        let as_wanted = async || (price(namespace).await.as_deref() == wanted).then_some(());
        within(&format!("{wanted:?} in {namespace}"), until(as_wanted)).await;
    };
    let running = Example::run(&rig, "copy_secrets", &[]);
    costs(one, Some("7")).await;
    assert_eq!(price(two).await, None);
    label(two, Some("shop")).await;
    costs(two, Some("7")).await;
    label(one, None).await;
    costs(one, None).await;
    let dearer = Patch::Merge(json!({ "stringData": { "price": "8" } }));
    secrets(rig.namespace()).patch("prices", &PatchParams::default(), &dearer).await.unwrap();
    costs(two, Some("8")).await;

    // It is killed, and what it copied loses its source meanwhile.
    drop(running);
    secrets(rig.namespace()).delete("prices", &Default::default()).await.unwrap();
    assert_eq!(price(two).await.as_deref(), Some("8"));
    let _running = Example::run(&rig, "copy_secrets", &[]);
    costs(two, None).await;
    assert_eq!(secrets(three).get("prices").await.unwrap(), foreign);
}

/// Two processes divide the config maps; when one is killed, the other one has all of them after the lease's duration.
#[tokio::test(flavor = "multi_thread")]
async fn sharded() {
    let Some(rig) = Rig::shared(Kind::Real, "sharded").await else { return };
    let mut stays = Example::run(&rig, "sharded", &[]);
    stays.says("100 % of 1 members");
    let mut goes = Example::run(&rig, "sharded", &[]);
    goes.says("% of 2 members");
    let secrets = Api::<Secret>::namespaced(rig.client(), rig.namespace());
    let all_have_secrets = async |names: &[&str]| {
        for name in names {
            let made: ConfigMap =
                typed(json!({ "metadata": { "name": name, "labels": { "secret": "yes" } } }));
            rig.create_with(made).await;
        }
        for name in names {
            let owner = async || secrets.get_opt(name).await.unwrap()?.metadata.owner_references?.pop();
            assert_eq!(within(name, until(owner)).await.name, *name);
        }
    };
    all_have_secrets(&["a", "b", "c", "d", "e", "f"]).await;
    drop(goes);
    all_have_secrets(&["g", "h", "i", "j", "k", "l"]).await;
}

/// Asks the server until there is an answer.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}
