//! A session with kubectl: what somebody types who has a cluster.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use conformance::{Foreign, Kind, Needs, Rig};

/// kubectl and where it connects to.
struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(line.split_whitespace()).env("KUBECONFIG", &self.kubeconfig);
        // No cache of discovery: the tests share a home directory.
        command.arg("--cache-dir").arg(self.kubeconfig.with_extension("cache"));
        command
    }

    /// Runs a line that succeeds, and returns what it prints.
    fn says(&self, line: &str) -> String {
        self.says_of(line, "")
    }

    /// The same with an input.
    fn says_of(&self, line: &str, input: &str) -> String {
        let output = self.run(line, input);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {line}: {stdout}{stderr}");
        // Nothing that a user would wonder at.
        assert!(!stderr.contains("Warning"), "kubectl {line}: {stderr}");
        stdout
    }

    /// Runs a line that fails, and returns why.
    fn refuses(&self, line: &str, input: &str) -> String {
        let output = self.run(line, input);
        assert!(!output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn run(&self, line: &str, input: &str) -> Output {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("a process");
        process.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("a reader");
        process.wait_with_output().expect("an output")
    }
}

async fn start(test: &str) -> Option<(Rig, Kubectl)> {
    let program = Foreign::Kubectl.build_or_skip(test)?;
    let rig = Rig::own(Kind::TestApi, test, Needs::default()).await?;
    let kubectl = Kubectl { program, kubeconfig: rig.kubeconfig() };
    Some((rig, kubectl))
}

/// Whether the words are in the text, in this order.
#[track_caller]
fn has(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let Some(at) = rest.find(word) else { panic!("no `{word}` (in this order) in:\n{text}") };
        rest = &rest[at + word.len()..];
    }
}

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: shop }
data: { color: red, size: small }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  selector: { app: web }
  ports: [{ name: http, port: 80, targetPort: 8080 }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
      - name: web
        image: nginx:1.27
        ports: [{ containerPort: 8080 }]
        env: [{ name: COLOR, value: red }]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_with_kubectl() {
    let Some((_rig, kubectl)) = start("kubectl_session").await else { return };

    has(&kubectl.says("version"), &["Client Version: v1.36", "Server Version: v1.3"]);
    has(
        &kubectl.says("api-resources"),
        &["pods", "po", "v1", "true", "Pod", "deployments", "deploy", "apps/v1"],
    );
    has(&kubectl.says("explain deployment.spec.replicas"), &["deployment", "FIELD: replicas"]);

    // Apply, in both ways.
    let created = kubectl.says_of("apply -f -", SHOP);
    has(&created, &["namespace/shop created", "configmap/settings created", "deployment.apps/web created"]);
    has(&kubectl.says_of("apply -f -", SHOP), &["settings unchanged", "web unchanged", "web unchanged"]);
    let changed = SHOP.replace("nginx:1.27", "nginx:1.28").replace(", size: small", "");
    assert_eq!(kubectl.says_of("diff -f -", SHOP), "");
    let diff = kubectl.run("diff -f -", &changed);
    has(
        &String::from_utf8_lossy(&diff.stdout),
        &["-  size: small", "-        image: nginx:1.27", "+        image: nginx:1.28"],
    );
    assert_eq!(diff.status.code(), Some(1));
    has(&kubectl.says_of("apply -f -", &changed), &["settings configured", "web configured"]);
    assert_eq!(kubectl.says("get cm settings -n shop -o jsonpath={.data}"), r#"{"color":"red"}"#);
    let unknown = SHOP.replace("replicas: 2", "replicsa: 2");
    has(&kubectl.refuses("apply -f -", &unknown), &["unknown field \"spec.replicsa\""]);

    let team = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: team, namespace: shop }, data: { lead: amina } }";
    let other = team.replace("amina", "jonas");
    has(&kubectl.says_of("apply --server-side -f -", team), &["configmap/team serverside-applied"]);
    let conflict = kubectl.refuses("apply --server-side --field-manager=other -f -", &other);
    has(&conflict, &["conflict", "\"kubectl\"", ".data.lead"]);
    kubectl.says_of("apply --server-side --field-manager=other --force-conflicts -f -", &other);
    let managers = kubectl
        .says("get cm team -n shop --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}");
    assert_eq!(managers, "other");

    // Look.
    has(
        &kubectl.says("get deploy -n shop"),
        &["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "web", "0/2"],
    );
    has(&kubectl.says("get deploy -A -o wide"), &["NAMESPACE", "IMAGES", "shop", "nginx:1.28", "app=web"]);
    has(&kubectl.says("get all -n shop"), &["service/web", "80/TCP", "deployment.apps/web"]);
    has(&kubectl.says("get ns"), &["default", "Active", "shop", "Active"]);
    has(&kubectl.says("get ns --field-selector metadata.name=shop -o name"), &["namespace/shop"]);
    has(
        &kubectl.refuses("get pod nobody -n shop", ""),
        &["Error from server (NotFound): pods \"nobody\" not found"],
    );
    has(&kubectl.refuses("get nothings", ""), &["the server doesn't have a resource type \"nothings\""]);
    let described = kubectl.says("describe deploy web -n shop");
    has(
        &described,
        &["Name:", "web", "Selector:", "app=web", "Replicas:", "2 desired", "Image:", "nginx:1.28"],
    );
    has(&kubectl.says("describe svc web -n shop"), &["Type:", "ClusterIP", "Port:", "http  80/TCP"]);

    // Change.
    has(&kubectl.says("scale deploy/web --replicas=5 -n shop"), &["deployment.apps/web scaled"]);
    assert_eq!(kubectl.says("get deploy web -n shop -o jsonpath={.spec.replicas}"), "5");
    has(&kubectl.says("set image deploy/web web=nginx:1.29 -n shop"), &["image updated"]);
    has(&kubectl.says("label cm settings team=a -n shop"), &["labeled"]);
    has(&kubectl.says("get cm -l team=a -n shop -o name"), &["configmap/settings"]);
    has(&kubectl.says("annotate cm settings note=b -n shop"), &["annotated"]);
    for (kind, patch) in [
        (
            "strategic",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"SIZE","value":"m"}]}]}}}}"#,
        ),
        ("merge", r#"{"spec":{"paused":true}}"#),
        ("json", r#"[{"op":"replace","path":"/spec/paused","value":false}]"#),
    ] {
        has(&kubectl.says(&format!("patch deploy web -n shop --type={kind} -p {patch}")), &["web patched"]);
    }
    let environment = "get deploy web -n shop -o jsonpath={.spec.template.spec.containers[0].env[*].name}";
    let mut names: Vec<_> = kubectl.says(environment).split(' ').map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["COLOR", "SIZE"]);
    has(&kubectl.says("rollout restart deploy/web -n shop"), &["restarted"]);
    has(&kubectl.says("create secret generic db -n shop --from-literal=password=x"), &["secret/db created"]);
    has(&kubectl.says("run once -n shop --image=busybox --restart=Never"), &["pod/once created"]);
    has(
        &kubectl.says("get pods -n shop"),
        &["NAME", "READY", "STATUS", "RESTARTS", "once", "0/1", "Pending"],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_watches_and_waits() {
    let Some((_rig, kubectl)) = start("kubectl_waits").await else { return };
    kubectl.says_of("apply -f -", SHOP);

    // Somebody looks on while it happens.
    let mut watching = kubectl.command("get cm -n shop -w");
    let mut watching = watching.stdout(Stdio::piped()).spawn().expect("a process");
    let mut lines =
        BufReader::new(watching.stdout.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
    has(&lines.next().unwrap(), &["NAME", "DATA", "AGE"]);
    has(&lines.next().unwrap(), &["settings", "2"]);
    kubectl.says("create cm more -n shop --from-literal=a=1");
    has(&lines.next().unwrap(), &["more", "1"]);
    watching.kill().expect("it runs");
    watching.wait().expect("it ends");

    // A rollout has an end when the controllers say so.
    let mut rollout = kubectl.command("rollout status deploy/web -n shop");
    let mut rollout = rollout.stdout(Stdio::piped()).spawn().expect("a process");
    let mut said =
        BufReader::new(rollout.stdout.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
    has(&said.next().unwrap(), &["Waiting for deployment"]);
    let generation = kubectl.says("get deploy web -n shop -o jsonpath={.metadata.generation}");
    let status = format!(
        r#"{{"status":{{"observedGeneration":{generation},"replicas":2,"updatedReplicas":2,"availableReplicas":2,"readyReplicas":2}}}}"#
    );
    kubectl.says(&format!("patch deploy web -n shop --subresource=status --type=merge -p {status}"));
    let last = said.last().expect("a last line");
    has(&last, &["successfully rolled out"]);
    assert!(rollout.wait().expect("it ends").success());
    has(&kubectl.says("get deploy web -n shop"), &["2/2"]);

    // Deletion is waited for.
    has(&kubectl.says("delete cm more -n shop"), &["configmap \"more\" deleted"]);
    has(&kubectl.says("delete ns shop"), &["namespace \"shop\" deleted"]);
    has(&kubectl.refuses("get ns shop", ""), &["not found"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_defines_a_resource_and_uses_it() {
    let Some((_rig, kubectl)) = start("kubectl_defines").await else { return };
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: boats.harbour.example.com }
spec:
  group: harbour.example.com
  scope: Namespaced
  names: { plural: boats, singular: boat, kind: Boat, shortNames: [bt] }
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{ name: Length, type: integer, jsonPath: .spec.length }]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: { length: { type: integer } }
";
    has(&kubectl.says_of("apply -f -", definition), &["customresourcedefinition", "created"]);
    kubectl.says("wait --for=condition=Established crd/boats.harbour.example.com");
    let boat =
        "{ apiVersion: harbour.example.com/v1, kind: Boat, metadata: { name: anna }, spec: { length: 12 } }";
    has(&kubectl.says_of("apply -f -", boat), &["boat.harbour.example.com/anna created"]);
    has(&kubectl.says("get bt"), &["NAME", "LENGTH", "anna", "12"]);
    has(&kubectl.says("explain boat.spec"), &["harbour.example.com", "length"]);
    let wrong = boat.replace("12", "long");
    has(&kubectl.refuses("apply -f -", &wrong), &["spec.length"]);
    kubectl.says("delete crd boats.harbour.example.com");
    has(&kubectl.refuses("get boats", ""), &["the server doesn't have a resource type \"boats\""]);
}
