//! L14: a schema that changes starts a list, because objects may read differently that nobody wrote.

use std::time::Duration;

use informer::{Cause, Informer, Object, Report, WhenFull};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::advance;

use super::server::Server;
use super::support::{LONG, Log, Recorder, builder, factory, live, pods, settle, soon, started, until};
use informer::ResourceType;

const MINUTE: Duration = Duration::from_secs(60);

fn recorded(informer: &Informer<Object>) -> (informer::Registration, Log) {
    let (recorder, log) = Recorder::new();
    let registration = informer.subscribe().every_change(100, WhenFull::Coalesce).handler(recorder).unwrap();
    (registration, log)
}

/// A server that tells the schemas of pods and of deployments, with a pod.
fn server() -> Server {
    let server = Server::new();
    server.set_schema("api/v1", "A");
    server.set_schema("apis/apps/v1", "A");
    server.put("pods", "shop/a", json!({ "spec": "as written" }));
    server
}

#[tokio::test(start_paused = true)]
async fn l14_a_schema_that_changes_while_an_informer_runs_starts_one_list() {
    let server = server();
    let factory = factory(&server);
    let informer = started(&factory).await;
    let (_registration, told) = recorded(&informer);
    told.until("synced").await;
    let mut reports = informer.reports();
    until("the schemas are known", || server.schema_questions() == 1).await;
    assert_eq!(server.count("LIST"), 1);

    server.convert("as written", "a default");
    server.set_schema("api/v1", "B");
    // As a server does with the watches of a definition that changes.
    advance(MINUTE).await;
    server.end_watches("pods");
    told.until("update shop/a@101 -> shop/a@101").await;
    assert_eq!(server.count("LIST"), 2);
    let causes = std::iter::from_fn(|| reports.try_recv()).filter_map(|report| match report {
        Report::Disconnected(cause) => Some(cause),
        _ => None,
    });
    assert_eq!(causes.last(), Some(Cause::SchemaChanged));

    // Once: nothing more follows, though the server is asked again.
    let questions = server.schema_questions();
    until("the server is asked again", || server.schema_questions() > questions).await;
    advance(MINUTE).await;
    settle().await;
    assert_eq!((server.count("LIST"), told.len()), (2, 3), "{:?}", told.lines());
}

#[tokio::test(start_paused = true)]
async fn l14_a_schema_that_changes_right_after_the_initial_list_starts_a_list() {
    let server = server();
    let factory = factory(&server);
    let _informer = started(&factory).await;
    server.set_schema("api/v1", "B");
    until("the list for it", || server.count("LIST") == 2).await;
}

#[tokio::test(start_paused = true)]
async fn l14_p2_a_restart_lists_if_the_list_for_a_schema_was_still_due() {
    let server = server();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let factory_one = builder(&server).server_name("test").build().unwrap();
    let informer = started(&factory_one).await;
    let questions = server.schema_questions();
    server.hold("pods");
    server.set_schema("api/v1", "B");
    until("the schema is known", || server.schema_questions() > questions).await;
    settle().await;
    assert_eq!(server.count("LIST"), 1, "the list is due, and not sent");
    informer.save(&path).await.unwrap();
    factory_one.shutdown().await;
    server.release("pods");
    let factory_two = builder(&server).server_name("test").build().unwrap();
    let informer = factory_two.informer_of::<Object>(pods());
    informer.load(&path).await.unwrap();
    factory_two.start();
    until("the list", || full_lists(&server, "") == 2).await;
}

#[tokio::test(start_paused = true)]
async fn l14_a_change_of_one_group_is_its_informers_business_and_an_upgrade_that_of_all() {
    let server = server();
    let factory = factory(&server);
    let deployments = factory.informer_of::<Object>(ResourceType::of::<Deployment>());
    let _pods = started(&factory).await;
    soon(deployments.wait_for_sync(LONG)).await.unwrap();
    let lists = || (full_lists(&server, "/api/v1/pods"), full_lists(&server, "/apis/apps/v1/deployments"));
    until("the schemas are known", || server.schema_questions() == 1).await;
    server.set_schema("apis/apps/v1", "B");
    // No watch ends; the server is asked all the same.
    until("deployments are listed", || lists() == (1, 2)).await;
    // The version of the server is in the document of the core group.
    server.set_schema("api/v1", "B");
    until("both are listed", || lists() == (2, 3)).await;
    advance(20 * MINUTE).await;
    settle().await;
    assert_eq!(lists(), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn l14_schemas_are_asked_for_once_by_all_and_at_most_at_the_pace() {
    let server = server();
    let pace = Duration::from_secs(10);
    let factory = builder(&server).reflector(|reflector| reflector.schema_pace = pace).build().unwrap();
    let mut informers: Vec<Informer<Object>> = (0..20)
        .map(|number| factory.with_labels(format!("number={number}")).unwrap().informer_of(pods()))
        .collect();
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    until("the schemas are known", || server.schema_questions() == 1).await;
    // The caller is gone, and somebody else asks.
    informers.truncate(1);
    let begin = tokio::time::Instant::now();
    while begin.elapsed() < 10 * MINUTE {
        server.end_watches("pods");
        advance(Duration::from_secs(3)).await;
        settle().await;
    }
    let most = begin.elapsed().div_duration_f64(pace);
    let questions = server.schema_questions() as f64;
    assert!((most * 0.8..=most + 2.0).contains(&questions), "{questions} in {} s", begin.elapsed().as_secs());
}

#[tokio::test(start_paused = true)]
async fn l14_w14_nobody_asks_for_schemas_in_an_outage() {
    let (server, _factory, _informer) = live(&["shop/a"]).await;
    server.go_away();
    until("it is noticed", || server.count("WATCH") + server.count("GET /version") > 3).await;
    let before = server.schema_questions();
    advance(20 * MINUTE).await;
    settle().await;
    assert_eq!(server.schema_questions(), before);
}

#[tokio::test(start_paused = true)]
async fn l14_p2_a_restart_lists_only_if_the_schema_has_changed_since_the_save() {
    let server = server();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let run = async |lists: usize| {
        let before = full_lists(&server, "");
        let factory = builder(&server).server_name("test").build().unwrap();
        let informer = factory.informer_of::<Object>(pods());
        let (_registration, told) = recorded(&informer);
        let _ = informer.load(&path).await;
        factory.start();
        soon(informer.wait_for_sync(LONG)).await.unwrap();
        until("as many lists", || full_lists(&server, "") - before == lists).await;
        advance(2 * MINUTE).await;
        settle().await;
        assert_eq!(full_lists(&server, "") - before, lists);
        informer.save(&path).await.unwrap();
        factory.shutdown().await;
        told.take()
    };
    assert_eq!(run(1).await, ["add shop/a@101 initial", "synced"]);
    assert_eq!(run(0).await, ["add shop/a@101 initial", "synced"]);
    server.convert("as written", "a default");
    server.set_schema("api/v1", "B");
    let update = "update shop/a@101 -> shop/a@101";
    assert_eq!(run(1).await, ["add shop/a@101 initial", "synced", update]);
    assert_eq!(run(0).await, ["add shop/a@101 initial", "synced"]);
}

/// The lists below a path; a probe of the version asks for one object.
fn full_lists(server: &Server, path: &str) -> usize {
    let log = server.log();
    let lists = log.iter().filter(|line| line.starts_with(&format!("LIST {path}")));
    lists.filter(|line| !line.contains("limit=1")).count()
}
