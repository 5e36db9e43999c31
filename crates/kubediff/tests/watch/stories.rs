//! Issue 21: the stories of a real cluster are what its people did. Deployments in many namespaces change at once; kube-controller-manager
//! does its part, and the test that of the scheduler and the kubelets.
//!
//! `cargo xtask soak stories` does this with 40 of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use control_plane::ControlPlane;
use fastrand::Rng;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kubediff::story::{Fold, Kind, Story, Verdict};
use kubediff_history::{ChangeRecord, Filter, Number, Page, Reader, Record};
use serde_json::{Value, json};

use crate::session::{PATIENCE, Session};

const WORKLOADS: usize = 6;
const ACTS: usize = 5;
/// How often the kubelets and the people look.
pub(crate) const OFTEN: Duration = Duration::from_millis(120);
/// Longer than a cause may come after its effect.
const QUIET: Duration = Duration::from_millis(3_500);
/// A fold waits so long for the cause of an effect.
const SOON: SignedDuration = SignedDuration::from_secs(3);

/// A client that sends JSON.
#[derive(Clone)]
pub(crate) struct Cluster(pub(crate) Client);

impl Cluster {
    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, kube_client::Error> {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        self.0.request(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null).await.unwrap()
    }

    pub(crate) async fn create(&self, path: &str, body: Value) {
        self.send(Method::POST, path, body).await.unwrap();
    }

    async fn patch(&self, path: &str, body: Value) {
        self.send(Method::PATCH, path, body).await.unwrap();
    }
}

/// Gives each pod a node, then starts it or lets it fail, as its image says, and ends it when it is deleted.
pub(crate) async fn kubelets(cluster: Cluster) {
    let mut often = tokio::time::interval(OFTEN);
    let mut addresses = 0..u32::from(u16::MAX);
    loop {
        often.tick().await;
        let pods = cluster.get("/api/v1/pods").await;
        for pod in pods["items"].as_array().unwrap() {
            let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
            let status = format!("{path}/status");
            // The pod may be gone meanwhile.
            let _ = if pod.pointer("/metadata/deletionTimestamp").is_some() {
                cluster.send(Method::DELETE, &path, json!({"gracePeriodSeconds": 0})).await
            } else if text("/spec/nodeName").is_empty() {
                let target = json!({"kind": "Node", "name": "n1"});
                let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
                cluster.send(Method::POST, &format!("{path}/binding"), binding).await
            } else if text("/status/phase") == "Pending" && pod.pointer("/status/containerStatuses").is_none()
            {
                let [.., high, low] = addresses.next().unwrap().to_be_bytes();
                let mut started = started(text("/spec/containers/0/image"));
                started["podIP"] = format!("10.9.{high}.{low}").into();
                started["podIPs"] = json!([{"ip": started["podIP"]}]);
                cluster.send(Method::PATCH, &status, json!({"status": started})).await
            } else {
                continue;
            };
        }
    }
}

fn started(image: &str) -> Value {
    let waits = |reason: &str, restarts: u32| {
        json!([{
            "name": "web", "image": image, "imageID": "", "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": reason}},
        }])
    };
    let ready = |is: &str| {
        json!([
            {"type": "Ready", "status": is}, {"type": "ContainersReady", "status": is},
            {"type": "PodScheduled", "status": "True"},
        ])
    };
    if image.contains("pull") {
        return json!({"conditions": ready("False"), "containerStatuses": waits("ImagePullBackOff", 0)});
    }
    if image.contains("crash") {
        let statuses = waits("CrashLoopBackOff", 1);
        return json!({"phase": "Running", "conditions": ready("False"), "containerStatuses": statuses});
    }
    let running = json!([{
        "name": "web", "image": image, "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }]);
    json!({"phase": "Running", "conditions": ready("True"), "containerStatuses": running})
}

/// The part of a person, with one deployment in a namespace of its own.
struct Person {
    cluster: Cluster,
    namespace: String,
    random: Rng,
    image: u32,
    /// The stories that are to be told of it.
    truth: Vec<(Kind, Verdict)>,
}

impl Person {
    fn path(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments/app", self.namespace)
    }

    async fn sets(&self, spec: Value) {
        self.cluster.patch(&self.path(), json!({"spec": spec})).await;
    }

    async fn sets_image(&self, image: &str) {
        let containers = json!([{"name": "web", "image": image}]);
        self.sets(json!({"template": {"spec": {"containers": containers}}})).await;
    }

    /// Waits for a state of the deployment and its pods.
    async fn until(&self, is_so: impl Fn(&Value, &[Value]) -> bool) {
        let begun = Instant::now();
        let mut often = tokio::time::interval(OFTEN);
        loop {
            often.tick().await;
            let deployment = self.cluster.get(&self.path()).await;
            let pods = self.cluster.get(&format!("/api/v1/namespaces/{}/pods", self.namespace)).await;
            if is_so(&deployment, pods["items"].as_array().unwrap()) {
                return;
            }
            assert!(begun.elapsed() < 2 * PATIENCE, "{}: {deployment}", self.namespace);
        }
    }

    async fn settles(&self) {
        self.until(|deployment, pods| {
            let status = |name: &str| deployment["status"][name].as_u64().unwrap_or_default();
            let wanted = deployment["spec"]["replicas"].as_u64().unwrap();
            let all = ["replicas", "updatedReplicas", "availableReplicas"];
            deployment["metadata"]["generation"] == deployment["status"]["observedGeneration"]
                && all.iter().all(|name| status(name) == wanted)
                && pods.len() as u64 == wanted
        })
        .await;
    }

    async fn lives(mut self) -> Self {
        self.cluster.create("/api/v1/namespaces", json!({"metadata": {"name": self.namespace}})).await;
        let deployment = json!({
            "metadata": {"name": "app"},
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "app"}},
                "template": {
                    "metadata": {"labels": {"app": "app"}}, "spec": {"containers": [{"name": "web", "image": "app:0"}]},
                },
            },
        });
        self.cluster
            .create(&format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace), deployment)
            .await;
        self.truth.push((Kind::Created, Verdict::Complete));
        let service = json!({"metadata": {"name": "app"}, "spec": {"selector": {"app": "app"}, "ports": [{"port": 80}]}});
        self.cluster.create(&format!("/api/v1/namespaces/{}/services", self.namespace), service).await;
        self.settles().await;
        for _ in 0..ACTS {
            self.acts().await;
            self.settles().await;
        }
        self
    }

    async fn acts(&mut self) {
        self.image += 1;
        match self.random.u32(..5) {
            0 => {
                self.sets_image(&format!("app:{}", self.image)).await;
                self.truth.push((Kind::Rollout, Verdict::Complete));
            }
            1 => {
                let before = self.cluster.get(&self.path()).await["spec"]["replicas"].as_u64().unwrap();
                let replicas = if before > 2 { 1 } else { before + 2 };
                self.sets(json!({"replicas": replicas})).await;
                self.truth.push((Kind::Scale, Verdict::Complete));
            }
            2 => {
                let before = self.cluster.get(&self.path()).await["spec"]["template"].clone();
                let trouble = if self.random.bool() { "pull" } else { "crash" };
                self.sets_image(&format!("{trouble}:{}", self.image)).await;
                self.until(|_, pods| pods.iter().any(|pod| pod.to_string().contains("BackOff"))).await;
                // Somebody else writes to it meanwhile.
                self.cluster.patch(&self.path(), json!({"metadata": {"labels": {"note": trouble}}})).await;
                self.sets(json!({"template": before})).await;
                self.truth.push((Kind::Rollout, Verdict::RolledBack));
                self.truth.push((Kind::Rollout, Verdict::Complete));
            }
            3 => {
                let now = json!({"kubectl.kubernetes.io/restartedAt": self.image.to_string()});
                self.sets(json!({"template": {"metadata": {"annotations": now}}})).await;
                self.truth.push((Kind::Rollout, Verdict::Complete));
            }
            _ => {
                let pods = format!("/api/v1/namespaces/{}/pods", self.namespace);
                let all = self.cluster.get(&pods).await;
                let name = all["items"][0]["metadata"]["name"].as_str().unwrap();
                // Another change within three seconds could be its cause.
                let quiet = |since: Instant| move |_: &Value, _: &[Value]| since.elapsed() > QUIET;
                self.until(quiet(Instant::now())).await;
                self.cluster.send(Method::DELETE, &format!("{pods}/{name}"), Value::Null).await.unwrap();
                self.truth.push((Kind::Deleted, Verdict::Complete));
                self.until(|_, pods| pods.iter().all(|pod| pod["metadata"]["name"] != *name)).await;
                self.settles().await;
                self.until(quiet(Instant::now())).await;
            }
        }
    }
}

/// All stories and members: those that the daemon has stored, and the rest.
fn told(reader: &mut Reader) -> (BTreeMap<Number, Story>, BTreeMap<Number, Number>) {
    let mut fold = Fold::of_history(reader).unwrap();
    let stored = fold.through();
    let (mut stories, mut members) = (BTreeMap::new(), reader.members(Number(0)..=stored).unwrap());
    while fold.advance(reader).unwrap() {}
    fold.tick(long_after(reader), reader).unwrap();
    let folded = fold.changes();
    let read = |content: Value| serde_json::from_value::<Story>(content).unwrap();
    stories.extend(folded.stories.into_iter().map(|story| (story.id, read(story.content))));
    members.extend(folded.members);
    for id in members.values() {
        if !stories.contains_key(id) {
            stories.insert(*id, read(reader.story(*id).unwrap().unwrap().content));
        }
    }
    (stories, members)
}

fn long_after(reader: &mut Reader) -> Timestamp {
    let (_, last) = reader.last().unwrap().unwrap();
    last + SignedDuration::from_hours(2)
}

fn changes(reader: &mut Reader) -> Vec<ChangeRecord> {
    let (mut page, mut all) = (Page::oldest(10_000), Vec::new());
    loop {
        let found = reader.records(&Filter::default(), &page).unwrap();
        for record in found.records {
            page = page.after(record.number());
            if let Record::Change(change) = record {
                all.push(*change);
            }
        }
        if !found.more {
            return all;
        }
    }
}

/// The records that a file sink has got.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map(|(whole, _)| whole).unwrap_or_default();
    whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["change"].clone()).collect()
}

/// The stories of workloads that were told to their end.
fn ends(file: &Path, lived: &[Person]) -> BTreeSet<u64> {
    let of_people = |line: &&Value| {
        let object = &line["story"]["object"];
        lived.iter().any(|person| object["namespace"] == *person.namespace)
            && ["Deployment", "Pod"].iter().any(|kind| object["gvk"]["kind"] == **kind)
    };
    let lines = lines(file);
    let ends = lines.iter().filter(of_people).filter(|line| line["tells"] == "closed");
    ends.map(|line| line["story"]["id"].as_u64().unwrap()).collect()
}

/// A folded route tells each change alone, or as a part of a story, and each milestone of a story once.
fn told_once(
    lines: &[Value],
    changes: &[ChangeRecord],
    members: &BTreeMap<Number, Number>,
    stories: &BTreeMap<Number, Story>,
) {
    let mut last = 0;
    let mut told: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut alone = BTreeSet::new();
    for line in lines {
        let number = line["number"].as_u64().unwrap();
        assert!(number > last, "#{number} after #{last}");
        last = number;
        match line["story"]["id"].as_u64() {
            Some(story) => told.entry(story).or_default().push(line["tells"].as_str().unwrap()),
            None => drop(alone.insert(Number(number))),
        }
    }
    for change in changes.iter().filter(|change| change.number.unwrap().0 <= last) {
        let number = change.number.unwrap();
        let of = members.get(&number);
        // The effects of a change may come so late that the change was told alone.
        assert!(
            alone.contains(&number) == of.is_none() || of == Some(&number),
            "#{number} {}",
            change.summary
        );
    }
    for (id, milestones) in &told {
        let expected: Vec<String> = stories[&Number(*id)]
            .milestones
            .iter()
            .map(|it| format!("{:?}", it.tells).to_lowercase())
            .collect();
        assert_eq!(*milestones, expected, "story {id}: {:?}", stories[&Number(*id)].milestones);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stories_are_what_happened() {
    let builder = ControlPlane::builder().controller_manager(true);
    let Some(server) = builder.start_or_skip("stories_are_what_happened") else { return };
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let cluster = Cluster(Client::try_from(config).unwrap());
    cluster.create("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubediff.yaml");
    let folded = folder.path().join("folded");
    let sinks = "sinks: {folded: {file: {path: folded}}}\nroutes: [{sinks: [folded], fold: true}]";
    std::fs::write(&file, format!("history: {{path: history.db}}\nlisten: null\n{sinks}\n")).unwrap();
    let server_at = server.kubeconfig().to_owned();
    let daemon = tokio::task::spawn_blocking(move || {
        let mut session = Session::serve(&server_at, &file);
        session.note("watching ");
        session
    });
    let daemon = daemon.await.unwrap();

    let kubelets = tokio::spawn(kubelets(cluster.clone()));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let count = std::env::var("INFORMER_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(WORKLOADS);
    let people = (0..count).map(|at| {
        let person = Person {
            cluster: cluster.clone(),
            namespace: format!("w-{at}"),
            random: Rng::with_seed(seed.wrapping_add(at as u64)),
            image: 0,
            truth: Vec::new(),
        };
        tokio::spawn(person.lives())
    });
    let mut lived = Vec::new();
    for person in people.collect::<Vec<_>>() {
        lived.push(person.await.unwrap());
    }
    // A change has its story when it is some seconds old.
    let expected: usize = lived.iter().map(|person| person.truth.len()).sum();
    let begun = Instant::now();
    let mut often = tokio::time::interval(OFTEN);
    while ends(&folded, &lived).len() < expected {
        often.tick().await;
        assert!(
            begun.elapsed() < 2 * PATIENCE,
            "{} of {expected} stories were told",
            ends(&folded, &lived).len()
        );
    }
    kubelets.abort();
    let ended = tokio::task::spawn_blocking(move || daemon.end_with("-TERM"));
    let (_, notes, status) = ended.await.unwrap();
    assert!(status.success(), "{status} {notes:?}");

    let mut reader = Reader::open(folder.path().join("history.db")).unwrap();
    let (stories, members) = told(&mut reader);
    let changes = changes(&mut reader);
    let mut fresh = Fold::default();
    while fresh.advance(&mut reader).unwrap() {}
    fresh.tick(long_after(&mut reader), &mut reader).unwrap();
    let anew: BTreeMap<Number, Number> = fresh.changes().members.into_iter().collect();
    assert_eq!(members, anew, "the daemon's stories are those of one look at the log");
    let lines = lines(&folded);
    println!("a folded route told {} changes in {} messages", changes.len(), lines.len());
    told_once(&lines, &changes, &members, &stories);
    let (mut all, mut alone, mut slices) = (0, 0, 0);
    for person in &lived {
        let of: Vec<&Story> = stories
            .values()
            .filter(|story| story.object.namespace.as_ref() == Some(&person.namespace))
            .collect();
        let workloads = ["Deployment", "Pod", "ReplicaSet", "EndpointSlice"];
        let own: Vec<&&Story> = of.iter().filter(|it| workloads.contains(&&*it.object.gvk.kind)).collect();
        let found: Vec<(Kind, Verdict)> = own.iter().map(|story| (story.kind, story.verdict)).collect();
        let lines: Vec<String> =
            own.iter().map(|it| format!("#{} {} {}", it.id, it.object.name, it.words(None))).collect();
        assert_eq!(found, person.truth, "{}: {lines:#?}", person.namespace);
        for change in changes.iter().filter(|it| it.object.namespace.as_ref() == Some(&person.namespace)) {
            if !workloads.contains(&&*change.object.gvk.kind) {
                continue;
            }
            let number = change.number.unwrap();
            let latest = own.iter().rposition(|story| story.id <= number);
            let Some(story) = members.get(&number) else {
                // An effect so long before its cause has no story.
                let first = changes.iter().find(|it| it.number == Some(own[0].id)).unwrap();
                assert!(
                    number > own[0].id || first.observed_at.duration_since(change.observed_at) > SOON,
                    "{}: #{number} {} {}, before #{}",
                    person.namespace,
                    change.object.gvk.kind,
                    change.summary,
                    own[0].id
                );
                let is_note = change.paths.iter().any(|path| path.starts_with("metadata.labels"));
                alone += usize::from(!is_note);
                all += usize::from(!is_note);
                if !is_note {
                    println!(
                        "alone: {} #{number} {} {}: {}",
                        person.namespace, change.object.gvk.kind, change.object.name, change.summary
                    );
                }
                continue;
            };
            all += 1;
            slices += usize::from(change.object.gvk.kind == "EndpointSlice");
            let place = own.iter().position(|it| it.id == *story);
            let is_of_service = of.iter().any(|it| it.id == *story && it.object.gvk.kind == "Service");
            assert!(place.is_some() || is_of_service, "{}: #{number} is in story #{story}", person.namespace);
            if is_of_service {
                continue;
            }
            let is_end = ["Pod", "EndpointSlice"].contains(&&*change.object.gvk.kind);
            let fits = place == latest
                // The end of a pod of the story before.
                || (is_end && place < latest)
                // An effect that was seen before its cause.
                || place > latest;
            assert!(
                fits,
                "{}: #{number} {} {} in #{story} of {lines:#?}",
                person.namespace, change.object.name, change.summary
            );
            assert!(!change.paths.iter().any(|path| path.starts_with("metadata.labels")), "#{number}");
        }
    }
    println!("{all} changes of workloads, {slices} of them of their endpoints, {alone} alone");
    assert!(slices > 0, "the server has no endpoints");
    assert!(alone * 100 <= all, "{alone} of {all} changes are in no story");
}
