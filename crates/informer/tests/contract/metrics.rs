//! M1: every informer can be measured.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use informer::kube::PartialObjectMeta;
use informer::metrics::{EventCounts, FactoryMetrics, Format, HandlerMetrics, InformerMetrics};
use informer::{Handler, Item, Object, Status, StreamingListChoice};
use serde_json::json;

use super::server::Server;
use super::support::{
    LONG, Recorder, builder, caught_up, config_maps, factory, live, nodes, pods, settle, soon, started, until,
};

/// The value of a series, found by its name and a part of its labels.
fn value(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let wanted = |line: &&str| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    };
    let line = text.lines().find(wanted)?;
    Some(line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

fn text(metrics: &FactoryMetrics) -> String {
    metrics.to_text(Format::OpenMetrics)
}

fn label<'a>(metrics: &'a InformerMetrics, name: &str) -> &'a str {
    &metrics.labels.iter().find(|(label, _)| label == name).unwrap().1
}

fn relists(metrics: &InformerMetrics) -> BTreeMap<&'static str, u64> {
    metrics.relists.iter().filter(|(_, count)| **count > 0).map(|(cause, count)| (*cause, *count)).collect()
}

#[tokio::test(start_paused = true)]
async fn m1_content_requests_and_events_are_counted() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": "x".repeat(1_000) }));
    server.put("pods", "shop/b", json!({}));
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    let before = informer.metrics();
    assert_eq!((before.objects, before.is_synced, before.last_update_age), (0, false, None));
    assert_eq!((before.received_bytes, before.requests.lists), (0, 0));

    let informer_again = started(&factory).await;
    server.put("pods", "shop/c", json!({}));
    server.put("pods", "shop/c", json!({ "spec": 1 }));
    server.put("pods", "shop/c", json!({ "spec": 2 }));
    server.delete("pods", "shop/a");
    server.bookmark("pods");
    let reached = server.version().to_string();
    until("the bookmark is there", || informer.resource_version().to_string() == reached).await;

    let now = informer_again.metrics();
    assert_eq!((now.objects, now.held_bytes), (2, informer.held_bytes()));
    assert_eq!((now.is_synced, now.resource_version.to_string()), (true, reached));
    assert!(matches!(now.status, Status::Live { .. }));
    assert_eq!((now.requests.lists, now.requests.watches, now.list_items), (1, 1, 2));
    let EventCounts { added, modified, deleted, bookmarks, errors, .. } = now.events;
    assert_eq!((added, modified, deleted, bookmarks, errors), (1, 2, 1, 1, 0));
    assert!(now.received_bytes > 1_500, "{}", now.received_bytes);
    assert!(now.decode_time > before.decode_time);
    assert_eq!(now.unreadable, 0);
}

#[tokio::test(start_paused = true)]
async fn m1_relists_are_counted_by_cause_and_the_first_list_is_none() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    assert_eq!(relists(&informer.metrics()), BTreeMap::new());
    let listed = async |count| {
        until("it was listed again", || server.count("LIST") == count).await;
        until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
    };
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    server.expire("pods");
    listed(2).await;
    assert_eq!(relists(&informer.metrics()), BTreeMap::from([("version_unavailable", 1)]));
    assert_eq!(informer.metrics().events.errors, 1);

    let object = r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":7}}"#;
    server.send_line("pods", &format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"));
    settle().await;
    assert_eq!(informer.metrics().unreadable, 1);
    server.deny("pods", 403, "Forbidden");
    until("it is denied", || matches!(informer.status(), Status::Denied { .. })).await;
    server.allow("pods");
    listed(3).await;
    // The watch that was refused led to the list.
    assert_eq!(relists(&informer.metrics()), BTreeMap::from([("refused", 1), ("version_unavailable", 1)]));
    assert_eq!(informer.metrics().requests.lists, 3);
}

#[tokio::test(start_paused = true)]
async fn m1_pages_streaming_lists_and_probes_are_told_apart() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let factory = builder(&server)
        .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
        .build()
        .unwrap();
    let informer = started(&factory).await;
    let requests = informer.metrics().requests;
    assert_eq!((requests.streaming_lists, requests.lists, requests.watches), (1, 0, 0));
    assert_eq!(informer.metrics().events.added, 1);

    // Silence is found out by a list of one item, which is no re-list.
    tokio::time::advance(Duration::from_secs(131)).await;
    until("it watches again", || server.count("WATCH") == 2).await;
    let requests = informer.metrics().requests;
    assert_eq!((requests.probes, requests.lists, requests.watches), (1, 0, 1));
    assert_eq!(relists(&informer.metrics()), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn m1_the_age_of_the_cache_is_that_of_the_last_event_bookmark_or_list() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let age = || informer.metrics().last_update_age.unwrap().as_secs();
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(age(), 20);
    server.put("pods", "shop/b", json!({}));
    caught_up(&server, &informer).await;
    assert_eq!(age(), 0);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(age(), 30);
    server.bookmark("pods");
    settle().await;
    assert_eq!(age(), 0);
    tokio::time::advance(Duration::from_secs(40)).await;
    server.expire("pods");
    until("it was listed again", || age() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn m1_of_several_namespaces_the_one_that_is_silent_longest_gives_the_age() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "front/b", json!({}));
    let factory = factory(&server).in_namespaces(["front", "shop"]);
    let informer = started(&factory).await;
    until("both watches run", || server.open() == 2).await;
    tokio::time::advance(Duration::from_secs(20)).await;
    server.put("pods", "shop/c", json!({}));
    caught_up(&server, &informer).await;
    let age = || informer.metrics().last_update_age.unwrap().as_secs();
    assert_eq!(age(), 20, "front is as old as before");
    assert_eq!(label(&informer.metrics(), "namespace"), "several");
    assert!(informer.remove_namespace("front").await);
    assert_eq!(age(), 0, "what is not looked at has no age");
}

/// Takes three seconds for each object.
struct Slow;

impl Handler<Object> for Slow {
    async fn on_add(&mut self, _: Item<Object>, _: bool) {
        let never = std::future::pending::<()>();
        let _ = tokio::time::timeout(Duration::from_secs(3), never).await;
    }
}

fn handler<'a>(metrics: &'a InformerMetrics, name: &str) -> &'a HandlerMetrics {
    metrics.handlers.iter().find(|handler| handler.name == name).unwrap()
}

#[tokio::test(start_paused = true)]
async fn m1_each_handler_has_its_backlog_and_its_time() {
    let (_server, _factory, informer) = live(&["shop/a", "shop/b", "shop/c"]).await;
    let slow = informer.subscribe().named("slow").handler(Slow).unwrap();
    let (recorder, log) = Recorder::new();
    let quick = informer.add_handler(recorder).unwrap();
    log.until("synced").await;
    until("the first call is under way", || {
        handler(&informer.metrics(), "slow").call_under_way > Some(Duration::from_secs(1))
    })
    .await;
    let now = informer.metrics();
    let slow_now = handler(&now, "slow");
    assert_eq!((slow_now.backlog, slow_now.calls, slow_now.call_time), (2, 0, Duration::ZERO));
    // Three objects, and that they are all.
    assert_eq!(handler(&now, "1").calls, 4);
    assert_eq!((handler(&now, "1").backlog, handler(&now, "1").call_under_way), (0, None));

    assert!(soon(slow.synced()).await);
    let now = informer.metrics();
    let slow_now = handler(&now, "slow");
    assert_eq!((slow_now.backlog, slow_now.calls, slow_now.call_under_way), (0, 4, None));
    // A timer of tokio's has a millisecond's precision.
    assert_eq!(slow_now.call_time.as_secs(), 9, "{slow_now:?}");

    slow.remove().await;
    quick.remove().await;
    assert_eq!(informer.metrics().handlers, []);
}

#[tokio::test(start_paused = true)]
async fn m1_handlers_without_a_name_get_the_lowest_number_that_is_free() {
    let (_server, factory, informer) = live(&["shop/a"]).await;
    let first = informer.changes().unwrap();
    let second = informer.changes().unwrap();
    let named = informer.subscribe().named("audit").changes().unwrap();
    let third = informer.changes().unwrap();
    let names = || {
        let names = informer.metrics().handlers.into_iter().map(|handler| handler.name);
        names.collect::<HashSet<_>>()
    };
    assert_eq!(names(), HashSet::from(["1", "2", "3", "audit"].map(String::from)));
    drop(second);
    for _ in 0..100 {
        drop(informer.changes().unwrap());
    }
    let late = informer.changes().unwrap();
    assert_eq!(names(), HashSet::from(["1", "2", "3", "audit"].map(String::from)));

    // One series, though there are two of the name.
    let again = informer.subscribe().named("audit").changes().unwrap();
    let series = text(&factory.metrics());
    assert_eq!(value(&series, "informer_handler_backlog", &["handler=\"audit\""]), Some(2.0));
    assert_eq!(series.matches("informer_handler_backlog{").count(), 4);
    drop((first, third, named, late, again));
}

#[tokio::test(start_paused = true)]
async fn m1_a_text_for_prometheus_in_which_no_series_is_there_twice() {
    let server = Server::new();
    server.put("pods", "shop/a\"\\", json!({ "metadata": { "labels": { "app": "x" } } }));
    let factory = factory(&server);
    let informers = [
        factory.informer_of::<Object>(pods()),
        factory.with_labels("app=x").unwrap().informer_of::<Object>(pods()),
        factory.with_labels("app=y").unwrap().informer_of::<Object>(pods()),
        factory.with_fields("spec.nodeName=n").unwrap().informer_of::<Object>(pods()),
        factory.in_namespace("shop").informer_of::<Object>(pods()),
        factory.in_namespaces(["a", "b"]).informer_of::<Object>(pods()),
        factory.in_namespaces(["a", "c"]).informer_of::<Object>(pods()),
        factory.informer_of::<Object>(nodes()),
    ];
    let metadata = factory.informer_of::<PartialObjectMeta>(config_maps());
    let changes = informers[0].subscribe().named("odd \"name\"\nof \\ two lines").changes().unwrap();
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();

    let metrics = factory.metrics();
    assert_eq!(metrics.informers.len(), 9);
    for format in [Format::OpenMetrics, Format::Prometheus] {
        let text = metrics.to_text(format);
        let mut series = HashSet::new();
        let mut family = "";
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                family = declared.split(' ').next().unwrap();
                continue;
            }
            if line.starts_with("# HELP ") {
                continue;
            }
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(family) && name.ends_with('}'), "{line} in {family}");
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            assert!(series.insert(name), "twice: {name}");
        }
        assert_eq!(text.ends_with("# EOF\n"), format == Format::OpenMetrics);
        assert!(text.contains(r#"handler="odd \"name\"\nof \\ two lines""#));
        assert!(!text.contains("shop/a"), "the name of an object is no label");
    }
    let text = text(&metrics);
    assert!(text.contains("# TYPE informer_events counter\n"));
    assert!(metrics.to_text(Format::Prometheus).contains("# TYPE informer_events_total counter\n"));
    let all = ["resource=\"pods\"", "namespace=\"all\"", "selector=\"no\""];
    assert_eq!(value(&text, "informer_objects", &all), Some(1.0));
    assert_eq!(value(&text, "informer_resource_version", &all), Some(101.0));
    assert_eq!(value(&text, "informer_synced", &["resource=\"nodes\""]), Some(1.0));
    assert_eq!(value(&text, "informer_objects", &["metadata_only=\"yes\""]), Some(0.0));
    until("the watch runs", || matches!(informers[0].status(), Status::Live { .. })).await;
    let text = factory.metrics().to_text(Format::OpenMetrics);
    assert_eq!(value(&text, "informer_state", &[&all[..], &["state=\"live\""]].concat()), Some(1.0));
    assert_eq!(value(&text, "informer_state", &[&all[..], &["state=\"denied\""]].concat()), Some(0.0));
    // The three with a selector differ in a number only.
    let numbers: Vec<_> = ["1", "2", "3"].map(|number| format!("informer=\"{number}\"")).into();
    for number in numbers {
        assert!(value(&text, "informer_objects", &["selector=\"yes\"", &number]).is_some(), "{number}");
    }
    drop((changes, metadata));
}

#[tokio::test(start_paused = true)]
async fn m1_what_is_gone_is_not_in_the_metrics() {
    let (server, factory, informer) = live(&["shop/a"]).await;
    let nodes = factory.informer_of::<Object>(nodes());
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    assert_eq!(factory.metrics().informers.len(), 2);
    assert!(text(&factory.metrics()).contains("resource=\"nodes\""));
    drop(nodes);
    assert_eq!(factory.metrics().informers.len(), 1);
    assert!(!text(&factory.metrics()).contains("resource=\"nodes\""));
    informer.stop().await;
    assert_eq!(factory.metrics().informers[0].status, Status::Stopped);
    drop(informer);
    assert!(!text(&factory.metrics()).contains("resource="), "no series is left");
    until("no request is open", || server.open() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn m1_several_factories_are_told_apart_by_a_label() {
    let (_east_server, east, _pods) = live(&["shop/a"]).await;
    let (_west_server, west, _others) = live(&["shop/a", "shop/b"]).await;
    let both = east.metrics().labelled("cluster", "east").and(west.metrics().labelled("cluster", "west"));
    let text = text(&both);
    assert_eq!(value(&text, "informer_objects", &["cluster=\"east\""]), Some(1.0));
    assert_eq!(value(&text, "informer_objects", &["cluster=\"west\""]), Some(2.0));
    assert_eq!(text.matches("# TYPE informer_objects gauge").count(), 1);
}

/// The series of a text, each as its sorted labels, which have to be valid.
fn series(text: &str) -> Vec<Vec<String>> {
    let valid = |name: &str| {
        let mut characters = name.chars();
        let first = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        first
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
            && !name.starts_with("__")
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, labels) = line.rsplit_once("} ").unwrap().0.split_once('{').unwrap();
        // No value in these tests has a comma.
        let labels: BTreeMap<_, _> = labels.split(',').map(|label| label.split_once('=').unwrap()).collect();
        assert_eq!(labels.len(), line.matches("=\"").count(), "a label is there twice: {line}");
        assert!(labels.keys().all(|name| valid(name)), "{line}");
        let labels = labels.iter().filter(|(_, value)| **value != "\"\"");
        [name.to_owned()].into_iter().chain(labels.map(|(name, value)| format!("{name}={value}"))).collect()
    });
    series.collect()
}

#[tokio::test(start_paused = true)]
async fn m1_whatever_the_labels_of_factories_the_text_is_valid() {
    let (_east_server, east, pods) = live(&["shop/a"]).await;
    let (_west_server, west, others) = live(&["shop/a", "shop/b"]).await;
    let changes = (pods.changes().unwrap(), others.changes().unwrap());
    let (east, west) = (east.metrics(), west.metrics());

    let one = series(&text(&east)).len();
    for both in [
        // Without a label, or one that tells nobody apart.
        east.clone().and(west.clone()),
        east.clone().labelled("cluster", "x").and(west.clone().labelled("cluster", "x")),
        east.clone().labelled("cluster", "").and(west.clone()),
        east.clone().and(east.clone()),
    ] {
        let series = series(&text(&both));
        assert_eq!(series.len(), 2 * one);
        assert_eq!(series.iter().collect::<HashSet<_>>().len(), 2 * one);
    }
    let text_of_both = text(&east.clone().and(west));
    assert_eq!(value(&text_of_both, "informer_objects", &["informer=\"1\""]), Some(1.0));
    assert_eq!(value(&text_of_both, "informer_objects", &["informer=\"2\""]), Some(2.0));

    let used: HashSet<String> = series(&text(&east)).concat().into_iter().collect();
    let used = used.iter().filter_map(|label| Some(label.split_once('=')?.0));
    let names: BTreeSet<&str> = used.chain(["group", "", "1st", "__name__", "a b", "a-b", "é\"\n"]).collect();
    assert!(
        ["handler", "state", "cause", "request", "result", "type"].iter().all(|name| names.contains(name))
    );
    let all = names.iter().fold(east, |metrics, name| metrics.labelled(name, "x").labelled(name, "y"));
    assert_eq!(series(&text(&all)).len(), one);
    assert_eq!(all.informers[0].labels.iter().filter(|(_, value)| *value == "x").count(), names.len());
    drop(changes);
}
