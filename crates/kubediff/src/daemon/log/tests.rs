//! Several sinks on one history.

use expect_test::expect;
use kubediff_history::{Batch, Body, Cluster, Folded, Observation, Settings, StoredStory, What};
use serde_json::json;

use super::*;
use crate::config::Config;
use crate::hide::noise::Tally;
use crate::route::Routes;
use crate::{Change, Gvk, Origin, Profile, Schemas, Secrets, Sighting, States};

/// A history of updates of config maps: one in each namespace.
struct World {
    _folder: tempfile::TempDir,
    history: SharedHistory,
    secrets: Secrets,
}

impl World {
    fn new(namespaces: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let path = folder.path().join("history.db");
        let history = SharedHistory::open(&path, &cluster, &Settings::default()).unwrap();
        let secrets = Secrets::with_key([7; 32]);
        let world = Self { _folder: folder, history, secrets };
        namespaces.iter().for_each(|namespace| world.record(namespace));
        world
    }

    fn record(&self, namespace: &str) {
        let state = |value: &str| {
            let uid = format!("uid-{namespace}");
            let metadata = serde_json::json!({"namespace": namespace, "name": "c", "uid": uid, "resourceVersion": value});
            let state = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": value}});
            state.to_string()
        };
        let sighting = Sighting {
            cluster: None,
            gvk: &Gvk::new("v1", "ConfigMap"),
            resource: "configmaps",
            observed_at: "2026-11-26T12:00:00Z".parse().unwrap(),
            origin: Origin::Watch,
        };
        let profile = Profile {
            noise: crate::Noise::default(),
            secrets: self.secrets.clone(),
            schemas: Schemas::default(),
        };
        let states = States::read(Some(state("1").as_bytes()), Some(state("2").as_bytes())).unwrap();
        let change = Change::between(&sighting, states, 1, &profile, &mut Tally::default()).change().unwrap();
        let mut batch = Batch::default();
        let record = change.to_record().unwrap();
        batch.observe(Observation {
            record,
            body: Body::redacted(state("2")),
            what: What::Change,
            replaces: None,
        });
        let number = self.history.lock().commit(&batch).unwrap();
        self.history.grown(number);
    }

    fn logs<const N: usize>(&self, sinks: [&str; N], config: &str) -> [SinkLog; N] {
        let config = Config::of_text(config, "kubediff.yaml").unwrap().config;
        let routes = Arc::new(Routes::new(&config).unwrap());
        let routed = Routed::new(&config, self.history.clone(), routes, self.secrets.clone()).unwrap();
        let routed = Arc::new(routed);
        sinks.map(|name| SinkLog::new(name, self.history.clone(), routed.clone(), CancellationToken::new()))
    }
}

impl World {
    /// A story of the first change in the namespace `a`, as the fold stores it.
    fn tells(&self, members: &[u64], milestones: serde_json::Value) {
        let last = Number(*members.last().unwrap());
        let content = json!({
            "id": members[0], "kind": "rollout", "verdict": "complete", "changes": members.len(), "events": 0, "last": last,
            "object": {"gvk": {"group": "apps", "version": "v1", "kind": "Deployment"}, "resource": "deployments",
                "namespace": "a", "name": "cart", "uid": "1"},
            "opened_at": "2026-11-26T12:00:00Z", "done_at": "2026-11-26T12:02:00Z", "last_at": "2026-11-26T12:02:00Z",
            "milestones": milestones,
        });
        let story = StoredStory { id: Number(members[0]), last, is_open: false, content };
        let members = members.iter().map(|number| (Number(*number), story.id)).collect();
        let folded = Folded { version: crate::story::VERSION, through: last, stories: vec![story], members };
        self.history.lock().fold(&folded).unwrap();
    }
}

fn config() -> &'static str {
    "history: {path: history.db}\n\
     sinks: {a: {file: {path: a}}, b: {file: {path: b}}, all: {file: {path: c}}}\n\
     routes:\n\
     - {match: {namespaces: [a]}, sinks: [a], continue: true}\n\
     - {match: {namespaces: [b]}, sinks: [b], severity: critical, continue: true}\n\
     - {sinks: [all]}\n"
}

fn numbers(page: &Page) -> Vec<u64> {
    page.records.iter().map(|record| record.entry.number).collect()
}

#[test]
fn each_sink_gets_its_records_and_the_history_is_read_once_for_all() {
    let world = World::new(&["a", "b", "a"]);
    let [a, b, all] = world.logs(["a", "b", "all"], config());
    let first = a.routed.page(0, false).unwrap();
    let pages = [&a, &b, &all].map(|log| log.page(0, 50, usize::MAX).unwrap());
    assert_eq!(pages.each_ref().map(numbers), [vec![1, 3], vec![2], vec![1, 2, 3]]);
    assert_eq!(pages.each_ref().map(|page| page.through), [3, 3, 3]);
    // Nothing was read again, not even by a sink that is in the middle of the page.
    assert!(Arc::ptr_eq(&first, &b.routed.page(1, false).unwrap()));
    let [of_b, of_all] =
        [&pages[1], &pages[2]].map(|page| String::from_utf8_lossy(&page.records[0].body).into_owned());
    assert!(
        of_b.contains(r#""severity":"critical""#) && of_all.contains(r#""severity":"info""#),
        "{of_b} {of_all}"
    );
}

#[test]
fn a_sink_takes_a_part_of_a_page_and_goes_on_from_there() {
    let world = World::new(&["a", "b", "a", "a"]);
    let [all] = world.logs(["all"], config());
    let page = all.page(0, 2, usize::MAX).unwrap();
    assert_eq!((numbers(&page), page.through), (vec![1, 2], 2));
    let page = all.page(2, 50, 1).unwrap();
    assert_eq!((numbers(&page), page.through), (vec![3], 3));
    // One record is given however large it is.
    let page = all.page(3, 1, 1).unwrap();
    assert_eq!((numbers(&page), page.through), (vec![4], 4));
}

#[test]
fn k3_records_are_read_again_when_there_is_more_to_hide_or_more_to_read() {
    let world = World::new(&["a"]);
    let [a] = world.logs(["a"], config());
    let first = a.routed.page(0, false).unwrap();
    world.record("a");
    // The page has its records still; the next one has the new record.
    assert_eq!(numbers(&a.page(1, 50, usize::MAX).unwrap()), [2]);
    assert_eq!(numbers(&a.page(0, 50, usize::MAX).unwrap()), [1, 2]);
    assert!(world.history.scrub_by(&world.secrets, &[], &|| false).unwrap());
    assert!(!Arc::ptr_eq(&first, &a.routed.page(0, false).unwrap()));
}

fn texts(page: &Page) -> Vec<String> {
    page.records.iter().map(|record| format!("{}: {}", record.entry.number, record.summary)).collect()
}

#[test]
fn k10_a_folded_route_tells_milestones_of_stories_and_alone_what_belongs_to_none() {
    let config = "history: {path: history.db}\n\
        sinks: {all: {file: {path: a}}, folded: {file: {path: b}}, ends: {file: {path: c}}, other: {file: {path: d}}}\n\
        routes:\n\
        - {sinks: [all], continue: true}\n\
        - {match: {resources: [deployments], namespaces: [a]}, sinks: [folded], fold: true, continue: true}\n\
        - {match: {namespaces: [b]}, sinks: [folded], fold: true, continue: true}\n\
        - {sinks: [ends], fold: [trouble, closed], severity: warning, continue: true}\n\
        - {match: {resources: [nodes]}, sinks: [other], fold: true}\n";
    let world = World::new(&["a", "b", "c", "a", "b", "d"]);
    let [all, folded, ends, other] = world.logs(["all", "folded", "ends", "other"], config);
    let read = |log: &SinkLog, after| log.page(after, 50, usize::MAX).unwrap();
    assert_eq!((numbers(&read(&all, 0)), read(&all, 0).through), (vec![1, 2, 3, 4, 5, 6], 6));
    // Nobody knows yet to which stories the records belong.
    assert_eq!((numbers(&read(&folded, 0)), read(&folded, 0).through), (vec![], 0));
    world.tells(&[1, 3, 4, 6], json!([{"number": 3, "tells": "opened"}, {"number": 6, "tells": "closed"}]));
    world.history.decide(Number(5));
    let page = read(&folded, 0);
    assert_eq!(page.through, 5);
    let [alone, opened, later] = &page.records[..] else { panic!("{:?}", texts(&page)) };
    // `c` has no route of its own: the story began in `a`.
    assert_eq!(
        [alone, opened, later].map(|record| (record.entry.number, record.story)),
        [(2, None), (3, Some(1)), (5, None)]
    );
    world.history.decide(Number(6));
    let last = &read(&folded, 5).records[0];
    assert_eq!(&*last.summary, "Deployment a/cart: data.k \"1\" -> \"2\"; rolled out in 2m");
    assert_eq!((&*last.subject, last.story), ("Deployment a/cart", Some(1)));
    assert!(last.details.contains("k"), "{}", last.details);
    let body: serde_json::Value = serde_json::from_slice(&last.body).unwrap();
    assert_eq!((&body["change"], &body["tells"]), (&json!("story"), &json!("closed")));
    assert_eq!((&body["story"]["id"], &body["began"]["number"]), (&json!(1), &json!(1)));
    // The order is that of the story's object.
    let order = |record: &Parcelled| (record.entry.object, record.entry.namespace);
    assert_eq!(order(opened), order(last));
    assert_eq!(numbers(&read(&ends, 0)), [2, 5, 6]);
    let body: serde_json::Value = serde_json::from_slice(&read(&ends, 5).records[0].body).unwrap();
    assert_eq!(body["severity"], "warning");
    assert_eq!((numbers(&read(&other, 0)), read(&other, 0).through), (vec![], 6));
    assert_eq!(numbers(&read(&all, 0)), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn the_gap_of_what_was_never_watched_goes_to_streams_alone() {
    let config = "history: {path: history.db}\n\
        sinks:\n\
        \x20 slack: {slack: {webhook: 'http://localhost/slack'}}\n\
        \x20 hook: {webhook: {url: 'http://localhost/hook'}}\n\
        \x20 file: {file: {path: a}}\n\
        \x20 events: {webhook: {url: 'http://localhost/events', format: cloudevents}}\n\
        \x20 otel: {webhook: {url: 'http://localhost/v1/logs', format: otlp}}\n\
        \x20 stream: {jetstream: {servers: ['nats://localhost']}}\n";
    let world = World::new(&["a"]);
    let mut batch = Batch::default();
    let time = "2026-11-26T12:00:00Z".parse().unwrap();
    batch.gap(time, time, Some("pods"), crate::history::notes::NEVER_BEFORE);
    batch.gap(time, time, Some("pods"), "the watch was lost");
    let number = world.history.lock().commit(&batch).unwrap();
    world.history.grown(number);
    let logs = world.logs(["slack", "hook", "file", "events", "otel", "stream"], config);
    let found = logs.map(|log| numbers(&log.page(0, 50, usize::MAX).unwrap()));
    let (people, stream) = (vec![1, 3], vec![1, 2, 3]);
    assert_eq!(found, [&people, &people, &people, &stream, &stream, &stream].map(Vec::clone));
}

#[test]
fn a_receiver_of_opentelemetry_gets_events_of_changes_stories_gaps_and_scrubs() {
    let config = "history: {path: history.db}\n\
        sinks: {otel: {webhook: {url: 'http://localhost/v1/logs', format: otlp}}}\n\
        routes:\n\
        - {match: {namespaces: [a]}, sinks: [otel], fold: true, severity: critical}\n\
        - {sinks: [otel]}\n";
    let world = World::new(&["a", "b", "a"]);
    let mut batch = Batch::default();
    let time = "2026-11-26T12:00:00Z".parse().unwrap();
    batch.gap(time, time, Some("configmaps"), "the watch was lost");
    let number = world.history.lock().commit(&batch).unwrap();
    world.history.grown(number);
    world.tells(&[1, 3], json!([{"number": 3, "tells": "closed"}]));
    assert!(world.history.scrub_by(&world.secrets, &[], &|| false).unwrap());
    world.history.decide(Number(number.0 + 1));
    let [otel] = world.logs(["otel"], config);
    let page = otel.page(0, 50, usize::MAX).unwrap();
    let mut said = String::new();
    for record in &page.records {
        said += &format!("{}: {}\n", record.entry.number, String::from_utf8_lossy(&record.body));
    }
    expect![[r#"
        2: {"attributes":{"k8s.namespace.name":"b","kubediff.change":"updated","kubediff.key":"9b35d16b","kubediff.managers":[],"kubediff.object.group":"","kubediff.object.kind":"ConfigMap","kubediff.object.name":"c","kubediff.object.previous_resource_version":"1","kubediff.object.resource":"configmaps","kubediff.object.resource_version":"2","kubediff.object.uid":"uid-b","kubediff.object.version":"v1","kubediff.paths":["data.k"],"kubediff.source":"watch"},"eventName":"io.kubediff.change.updated","severityNumber":9,"severityText":"info"}
        3: {"attributes":{"k8s.deployment.name":"cart","k8s.deployment.uid":"1","k8s.namespace.name":"a","kubediff.object.group":"apps","kubediff.object.kind":"Deployment","kubediff.object.name":"cart","kubediff.object.resource":"deployments","kubediff.object.uid":"1","kubediff.object.version":"v1","kubediff.story.id":1,"kubediff.story.kind":"rollout","kubediff.story.milestone":"closed","kubediff.story.verdict":"complete"},"eventName":"io.kubediff.story.closed","severityNumber":17,"severityText":"critical"}
        4: {"attributes":{"kubediff.gap.cause":"the watch was lost","kubediff.gap.from":"2026-11-26T12:00:00Z","kubediff.gap.resource":"configmaps","kubediff.gap.to":"2026-11-26T12:00:00Z"},"eventName":"io.kubediff.gap","severityNumber":13,"severityText":"warning"}
        5: {"attributes":{"kubediff.scrub.cause":"by `kubediff history scrub`","kubediff.scrub.from":1,"kubediff.scrub.masked":0,"kubediff.scrub.to":4},"eventName":"io.kubediff.scrubbed","severityNumber":13,"severityText":"warning"}
    "#]].assert_eq(&said);
}
