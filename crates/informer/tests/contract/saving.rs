//! P: a cache is saved, and another process begins with it.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use informer::kube::PartialObjectMeta;
use informer::{
    FactoryBuilder, Informer, Keep, Object, ObjectBytes, Report, ResourceType, SharedInformerFactory, Status,
    Storage, StorageError, Stored, StoredBytes, Transform, WhenFull,
};
use serde_json::json;
use tempfile::TempDir;
use tracing::Level;

use super::guests::{Gate, Opened};
use super::logs;
use super::server::Server;
use super::support::{
    LONG, Log, Recorder, builder, cached, content, next, pods, settle, short, soon, started, until,
    until_synced,
};

const MINUTE: Duration = Duration::from_secs(60);

fn named(server: &Server) -> FactoryBuilder {
    builder(server).server_name("test")
}

fn built(builder: FactoryBuilder) -> (SharedInformerFactory, Informer<Object>) {
    within(builder.build().unwrap())
}

fn within(factory: SharedInformerFactory) -> (SharedInformerFactory, Informer<Object>) {
    let informer = factory.informer_of::<Object>(pods());
    (factory, informer)
}

/// Saves what the server has now, as a process that ends then.
async fn saved(server: &Server, builder: FactoryBuilder) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let factory = builder.build().unwrap();
    let informer = started(&factory).await;
    assert_eq!(cached(&informer), content(server));
    informer.save(&path).await.unwrap();
    factory.shutdown().await;
    (directory, path)
}

fn with_pods(keys: &[&str]) -> Server {
    let server = Server::new();
    for key in keys {
        server.put("pods", key, json!({}));
    }
    server
}

async fn live(informer: &Informer<Object>) {
    until("it is live", || matches!(informer.status(), Status::Live { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn p1_p2_a_restart_goes_on_where_the_last_process_was() {
    let server = with_pods(&["shop/gone", "shop/new", "shop/same", "shop/twice"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    server.delete("pods", "shop/gone");
    server.put("pods", "shop/new", json!({ "spec": 2 }));
    server.put("pods", "shop/comes", json!({}));
    server.delete("pods", "shop/twice");
    server.put("pods", "shop/twice", json!({}));

    let (factory, informer) = built(named(&server));
    let every =
        |recorder| informer.subscribe().every_change(100, WhenFull::Coalesce).handler(recorder).unwrap();
    let (recorder, early) = Recorder::new();
    let _early = every(recorder);
    assert_eq!(informer.load(&path).await.unwrap().objects, 4);
    // As it was, at once; nobody has said yet that it is so.
    assert_eq!(cached(&informer), ["shop/gone@101", "shop/new@102", "shop/same@103", "shop/twice@104"]);
    assert_eq!(informer.resource_version().to_string(), "104");
    assert!(!informer.is_synced());
    let (recorder, late) = Recorder::new();
    let _late = every(recorder);
    early.until("add shop/twice@104 initial").await;
    assert!(!early.has("synced"));

    let lists = server.count("LIST");
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    for log in [early, late] {
        log.until("delete shop/twice@108").await;
        log.until("add shop/twice@109").await;
        let mut lines = log.lines();
        let told = lines.split_off(5);
        lines[..4].sort();
        let first = [
            "add shop/gone@101 initial",
            "add shop/new@102 initial",
            "add shop/same@103 initial",
            "add shop/twice@104 initial",
            "synced",
        ];
        assert_eq!(lines, first);
        let news = [
            "delete shop/gone@105",
            "update shop/new@102 -> shop/new@106",
            "add shop/comes@107",
            "delete shop/twice@108",
            "add shop/twice@109",
        ];
        assert_eq!(told, news);
    }
    assert_eq!(cached(&informer), content(&server));
    // One, to learn how new the server is; and no other.
    assert_eq!(server.count("LIST"), lists + 1);
    assert_eq!(server.count("LIST /api/v1/pods limit=1"), 1);
    assert_eq!(server.count("WATCH /api/v1/pods allowWatchBookmarks=true resourceVersion=104"), 2);
}

#[tokio::test(start_paused = true)]
async fn p2_after_the_saved_version_has_expired_a_list_tells_what_has_changed() {
    let server = with_pods(&["shop/gone", "shop/new", "shop/same", "shop/twice"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    server.delete("pods", "shop/gone");
    server.put("pods", "shop/new", json!({ "spec": 2 }));
    server.put("pods", "shop/comes", json!({}));
    server.delete("pods", "shop/twice");
    server.put("pods", "shop/twice", json!({}));
    server.expire("pods");

    let (factory, informer) = built(named(&server));
    // Nobody reads before everything is over: the deletion is told all the same.
    let mut changes = informer.changes().unwrap();
    informer.load(&path).await.unwrap();
    factory.start();
    live(&informer).await;
    assert_eq!(cached(&informer), content(&server));
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "synced") {
        let change = next(&mut changes).await;
        if let informer::Change::Deleted(deleted) = &change {
            assert!(deleted.is_missed() && deleted.is_certain());
        }
        told.push(short(&change));
    }
    told[..4].sort();
    assert_eq!(
        told,
        [
            "add shop/gone@101 initial",
            "add shop/new@102 initial",
            "add shop/same@103 initial",
            "add shop/twice@104 initial",
            "delete shop/gone@101 missed",
            "add shop/comes@107 initial",
            "update shop/new@102 -> shop/new@106",
            "update shop/twice@104 -> shop/twice@109",
            "synced",
        ]
    );
    server.put("pods", "shop/last", json!({}));
    assert_eq!(short(&next(&mut changes).await), "add shop/last@110");
}

#[tokio::test(start_paused = true)]
async fn p2_l12_a_server_that_is_behind_what_was_saved_is_followed() {
    let server = with_pods(&["shop/a", "shop/b", "shop/c"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    // A restored cluster, or another cluster of the same name.
    let restored = with_pods(&["shop/a"]);
    let (factory, informer) = built(named(&restored));
    let mut reports = informer.reports();
    informer.load(&path).await.unwrap();
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    assert_eq!(cached(&informer), content(&restored));
    assert!(matches!(reports.recv().await, Some(Report::ServerRestored { .. })));
}

#[tokio::test(start_paused = true)]
async fn p2_a_loaded_cache_stays_readable_while_the_server_is_away_and_is_not_synced() {
    let server = with_pods(&["shop/a"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    server.deny("pods", 503, "ServiceUnavailable");
    let (factory, informer) = built(named(&server));
    informer.load(&path).await.unwrap();
    factory.start();
    assert!(informer.wait_for_sync(MINUTE).await.is_err());
    assert_eq!(cached(&informer), ["shop/a@101"]);
    // It is saved again as it was: whatever comes in between is still told to the next one.
    let again = path.with_extension("again");
    informer.save(&again).await.unwrap();
    server.allow("pods");
    informer.wait_for_sync(LONG).await.unwrap();
    let (_, third) = built(named(&server));
    third.load(&again).await.unwrap();
    assert_eq!(third.resource_version().to_string(), "101");
}

#[tokio::test(start_paused = true)]
async fn p1_what_is_loaded_must_be_of_the_same() {
    let server = with_pods(&["shop/a"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    let of_another = async |factory: SharedInformerFactory| {
        let (factory, informer) = within(factory);
        let error = informer.load(&path).await.unwrap_err();
        assert!(error.is_of_another(), "{error}");
        assert!(informer.is_empty() && !informer.is_synced());
        // As if there were no file.
        factory.start();
        informer.wait_for_sync(LONG).await.unwrap();
        factory.shutdown().await;
        error.to_string()
    };
    let slim = Transform::drop_managed_fields();
    let marked = |name: &str| Transform::json(|_| Ok(Keep::Yes)).named(name);
    assert_eq!(
        of_another(builder(&server).server_name("other").build().unwrap()).await,
        "the saved cache is of another server: `test`, not `other`"
    );
    of_another(named(&server).build().unwrap().with_labels("app=shop").unwrap()).await;
    of_another(named(&server).build().unwrap().with_fields("spec.nodeName=a").unwrap()).await;
    of_another(named(&server).transform(slim.clone()).build().unwrap()).await;
    of_another(named(&server).transform(slim.then(marked("v2"))).build().unwrap()).await;

    let factory = named(&server).build().unwrap();
    assert!(factory.informer_of::<PartialObjectMeta>(pods()).load(&path).await.unwrap_err().is_of_another());
    let nodes = factory.informer_of::<Object>(super::support::nodes());
    assert!(nodes.load(&path).await.unwrap_err().is_of_another());

    // A transform of the same name is the same.
    let (_other, path) = saved(&server, named(&server).transform(marked("v1"))).await;
    let (_, informer) = built(named(&server).transform(marked("v1")));
    assert_eq!(informer.load(&path).await.unwrap().objects, 1);
}

#[tokio::test(start_paused = true)]
async fn p1_what_has_no_name_is_neither_saved_nor_loaded() {
    let server = with_pods(&["shop/a"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    let (_, informer) = built(builder(&server));
    assert!(informer.load(&path).await.unwrap_err().is_unnamed());
    assert!(informer.save(&path).await.unwrap_err().is_unnamed());
    let (_, informer) = built(named(&server).transform(Transform::json(|_| Ok(Keep::Yes))));
    assert!(informer.load(&path).await.unwrap_err().is_unnamed());
    assert!(informer.save(&path).await.unwrap_err().is_unnamed());
}

#[tokio::test(start_paused = true)]
async fn p1_loading_has_its_time() {
    let server = with_pods(&["shop/a"]);
    let (_directory, path) = saved(&server, named(&server)).await;
    let (factory, informer) = built(named(&server));
    assert!(informer.save(&path).await.unwrap_err().is_empty());
    assert!(informer.load(path.with_extension("none")).await.unwrap_err().is_not_found());
    informer.load(&path).await.unwrap();
    assert!(informer.load(&path).await.unwrap_err().is_already_started());
    assert!(informer.set_transform(Transform::drop_managed_fields()).unwrap_err().is_already_started());
    // Half objects are not shown to whoever wants whole ones.
    let metadata = named(&server).build().unwrap();
    let halves = metadata.informer_of::<PartialObjectMeta>(pods());
    metadata.start();
    halves.wait_for_sync(LONG).await.unwrap();
    halves.save(&path).await.unwrap();
    let again = named(&server).build().unwrap();
    let halves = again.informer_of::<PartialObjectMeta>(pods());
    halves.load(&path).await.unwrap();
    let whole = again.informer_of::<Object>(pods());
    assert!(whole.is_empty());
    factory.start();
    assert!(informer.load(&path).await.unwrap_err().is_already_started());
}

#[tokio::test(start_paused = true)]
async fn p1_namespaces_are_saved_each_by_itself() {
    let server = with_pods(&["a/x", "b/y", "c/z"]);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let (factory, informer) = within(named(&server).build().unwrap().in_namespaces(["a", "b"]));
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    informer.save(&path).await.unwrap();
    factory.shutdown().await;
    server.delete("pods", "b/y");
    server.put("pods", "b/new", json!({}));

    // A saved namespace, one that was not saved, and one that is no longer watched.
    let (factory, informer) = within(named(&server).build().unwrap().in_namespaces(["b", "c"]));
    let (recorder, log) = Recorder::new();
    let _registration = informer.add_handler(recorder).unwrap();
    informer.load(&path).await.unwrap();
    assert_eq!(cached(&informer), ["b/y@102"]);
    assert!(informer.resource_version().is_unset());
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    log.until("synced").await;
    // Whether the one resumes before the other is listed, and so before the whole is synced, is left to chance.
    let mut told: Vec<_> =
        log.lines().iter().map(|line| line.replace("b/new@105 initial", "b/new@105")).collect();
    told.sort();
    let all = ["add b/new@105", "add b/y@102 initial", "add c/z@103 initial", "delete b/y@104", "synced"];
    assert_eq!(told, all);
    assert_eq!(cached(&informer), ["b/new@105", "c/z@103"]);
    assert_eq!(server.count("LIST /api/v1/namespaces/b/pods"), 2, "{:?}", server.log());

    // A part of everything.
    let (_other, everything) = saved(&server, named(&server)).await;
    let (factory, informer) = within(named(&server).build().unwrap().in_namespace("c"));
    informer.load(&everything).await.unwrap();
    assert_eq!(cached(&informer), ["c/z@103"]);
    // Given up before it began.
    assert!(informer.remove_namespace("c").await);
    assert!(informer.is_empty());
    factory.start();
    settle().await;
    assert_eq!(server.open(), 2, "those of the other informer");
}

#[tokio::test(start_paused = true)]
async fn p2_objects_that_could_not_be_read_are_listed_by_the_next_process() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let (factory, informer) = built(named(&server));
    factory.start();
    live(&informer).await;
    server.send_line(
        "pods",
        concat!(
            r#"{"type":"MODIFIED","object":{"kind":"Other","metadata":{"name":"a","namespace":"shop","resourceVersion":"150"}}}"#,
            "\n"
        ),
    );
    until("it is in quarantine", || !informer.quarantined().is_empty()).await;
    server.bookmark("pods");
    informer.save(&path).await.unwrap();
    factory.shutdown().await;

    let lists = server.count("LIST");
    let (factory, informer) = built(named(&server));
    informer.load(&path).await.unwrap();
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    assert_eq!(server.count("LIST"), lists + 1);
    assert_eq!(server.count("LIST /api/v1/pods limit=1"), 0);
}

#[tokio::test(start_paused = true)]
async fn p2_w17_a_lost_event_is_made_up_for_by_a_list_before_anything_is_saved() {
    for line in [
        "{\"type\":\"SHRUNK\",\"object\":{}}\n",
        "{\"type\":\"MODIFIED\"}\n",
        "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{}}}\n",
    ] {
        let server = with_pods(&["shop/a"]);
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("pods");
        let (factory, informer) = built(named(&server));
        factory.start();
        live(&informer).await;
        let lists = server.count("LIST");
        server.send_line("pods", line);
        until("it is listed again", || server.count("LIST") > lists).await;
        live(&informer).await;
        informer.save(&path).await.unwrap();
        factory.shutdown().await;

        // The next process asks how new the server is, and watches.
        let (factory, informer) = built(named(&server));
        informer.load(&path).await.unwrap();
        factory.start();
        informer.wait_for_sync(LONG).await.unwrap();
        assert_eq!(cached(&informer), content(&server), "{line}");
        assert_eq!(server.count("LIST"), lists + 2, "{line}");
        assert_eq!(server.count("LIST /api/v1/pods limit=1"), 1, "{line}");
        factory.shutdown().await;
    }
}

/// The one file of a directory.
fn file(directory: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    file.clone()
}

async fn restarted(server: &Server, directory: &Path) -> (SharedInformerFactory, Informer<Object>, Log) {
    let (factory, informer) = built(named(server).saved_in(directory).save_every(MINUTE));
    let (recorder, log) = Recorder::new();
    // It lives as long as the informer.
    std::mem::forget(informer.add_handler(recorder).unwrap());
    factory.start();
    soon(informer.wait_for_sync(LONG)).await.unwrap();
    live(&informer).await;
    (factory, informer, log)
}

#[tokio::test(start_paused = true)]
async fn p1_p2_a_factory_saves_and_loads_by_itself() {
    let server = with_pods(&["shop/a", "shop/b"]);
    let directory = TempDir::new().unwrap();
    // It is made.
    let place = directory.path().join("some/where");
    let (factory, informer, _log) = restarted(&server, &place).await;
    factory.shutdown().await;
    assert_eq!(informer.metrics().saves, 1);
    let name = file(&place).file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("pods.v1-") && name.ends_with(".cache"), "{name}");

    server.delete("pods", "shop/a");
    server.expire("pods");
    let (factory, informer, log) = restarted(&server, &place).await;
    log.until("delete shop/a@101 missed").await;
    assert_eq!(cached(&informer), ["shop/b@102"]);
    factory.shutdown().await;

    // Nothing has changed: nothing is written.
    let written = fs::metadata(file(&place)).unwrap().modified().unwrap();
    let lists = server.count("LIST");
    let (factory, informer, log) = restarted(&server, &place).await;
    assert_eq!(log.lines(), ["add shop/b@102 initial", "synced"]);
    assert_eq!(server.count("LIST"), lists + 1, "to learn how new the server is");
    tokio::time::advance(5 * MINUTE).await;
    factory.shutdown().await;
    assert_eq!((informer.metrics().saves, informer.metrics().failed_saves), (0, 0));
    assert_eq!(fs::metadata(file(&place)).unwrap().modified().unwrap(), written);
}

#[tokio::test(start_paused = true)]
async fn p2_of_the_pending_changes_a_stop_loses_the_deletions_alone() {
    let (server, directory) = (with_pods(&["shop/a", "shop/b"]), TempDir::new().unwrap());
    let (factory, informer) = built(named(&server).saved_in(directory.path()));
    let mut changes = informer.changes().unwrap();
    factory.start();
    until_synced(&mut changes).await;
    live(&informer).await;
    server.delete("pods", "shop/a");
    server.put("pods", "shop/b", json!({"touched": true}));
    server.put("pods", "shop/c", json!({}));
    until("all is in the cache", || cached(&informer) == content(&server)).await;
    factory.shutdown().await;

    let (_factory, informer, log) = restarted(&server, directory.path()).await;
    log.until("synced").await;
    let mut told = log.lines();
    told[..2].sort();
    assert_eq!(told, ["add shop/b@104 initial", "add shop/c@105 initial", "synced"]);
    assert_eq!(cached(&informer), content(&server));
}

#[tokio::test(start_paused = true)]
async fn p1_a_factory_saves_from_time_to_time() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let (_factory, informer, _log) = restarted(&server, directory.path()).await;
    until("it is saved", || informer.metrics().saves == 1).await;
    server.put("pods", "shop/b", json!({}));
    until("it is saved", || informer.metrics().saves == 2).await;
    // Not stopped, as by a crash.
    let (_other, again) = built(named(&server));
    again.load(file(directory.path())).await.unwrap();
    assert_eq!(cached(&again), content(&server));
}

#[tokio::test(start_paused = true)]
async fn p1_a_file_that_is_damaged_or_foreign_is_as_good_as_none() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let (factory, ..) = restarted(&server, directory.path()).await;
    factory.shutdown().await;
    let path = file(directory.path());
    let good = fs::read(&path).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    for bad in [&damaged[..], &good[..good.len() - 1], b"", b"{}", &[0; 100]] {
        fs::write(&path, bad).unwrap();
        let (_, informer) = built(named(&server));
        let error = informer.load(&path).await.unwrap_err();
        assert!(error.is_damaged() || error.is_foreign(), "{error}");
        let (factory, informer, log) = restarted(&server, directory.path()).await;
        assert_eq!(log.lines(), ["add shop/a@101 initial", "synced"]);
        factory.shutdown().await;
        assert_eq!(informer.metrics().saves, 1);
        let (_, informer) = built(named(&server));
        informer.load(&path).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn p1_a_save_that_fails_stops_nothing() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    // No directory can be there.
    let place = directory.path().join("file/in/between");
    fs::write(directory.path().join("file"), "").unwrap();
    let (factory, informer, _log) = restarted(&server, &place).await;
    until("it was tried", || informer.metrics().failed_saves >= 2).await;
    server.put("pods", "shop/b", json!({}));
    until("it goes on", || informer.len() == 2).await;
    factory.shutdown().await;
    assert_eq!(informer.metrics().saves, 0);
    assert!(informer.save(&place).await.unwrap_err().to_string().starts_with("the file cannot be created"));
}

#[tokio::test(start_paused = true)]
async fn p1_without_names_a_factory_saves_nothing_and_lists() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let (factory, informer) = built(builder(&server).saved_in(directory.path()));
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    factory.shutdown().await;
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn p1_f5_a_dropped_informer_saves_and_ends() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let (factory, informer) = built(named(&server).saved_in(directory.path()));
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    drop(informer);
    drop(factory);
    until("everything has ended", || super::support::tasks() == 0).await;
    assert_eq!(server.open(), 0);
    let (_, again) = built(named(&server));
    again.load(file(directory.path())).await.unwrap();
    assert_eq!(again.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f7_p2_namespaces_may_change_while_the_file_is_read() {
    let server = with_pods(&["a/x", "b/y"]);
    let directory = TempDir::new().unwrap();
    let made =
        || within(named(&server).saved_in(directory.path()).build().unwrap().in_namespaces(["a", "b"]));
    let (factory, informer) = made();
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    factory.shutdown().await;
    let (factory, informer) = made();
    factory.start();
    assert!(informer.add_namespace("c"));
    assert!(informer.remove_namespace("a").await);
    informer.wait_for_sync(LONG).await.unwrap();
    assert_eq!(cached(&informer), ["b/y@102"]);
    until("both watch", || server.open() == 2).await;
    factory.shutdown().await;
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn p1_the_owner_alone_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let place = directory.path().join("made");
    let (factory, ..) = restarted(&server, &place).await;
    factory.shutdown().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(&file(&place))), (0o700, 0o600));
}

#[tokio::test]
async fn p1_saves_at_once_leave_one_of_them() {
    let server = with_pods(&["shop/a"]);
    let (directory, path) = saved(&server, named(&server)).await;
    let (factory, informer) = built(named(&server));
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    let informer = Arc::new(informer);
    let saves = (0..20).map(|_| {
        let (informer, path) = (informer.clone(), path.clone());
        async move { informer.save(path).await }
    });
    for saved in futures_util::future::join_all(saves).await {
        saved.unwrap();
    }
    assert_eq!(file(directory.path()), path);
    let (_, again) = built(named(&server));
    assert_eq!(again.load(&path).await.unwrap().objects, 1);
}

/// Every informer of a factory that saves was saved, Secrets in clear text included.
#[tokio::test(start_paused = true)]
async fn p3_secrets_are_not_saved_unless_asked_for() {
    let secrets = ResourceType::of::<k8s_openapi::api::core::v1::Secret>();
    let server = Server::new();
    server.put("secrets", "shop/key", json!({ "data": { "key": "c2VjcmV0" } }));
    server.put("pods", "shop/a", json!({}));
    for (asked, saved) in [(false, ["pods"].as_slice()), (true, ["pods", "secrets"].as_slice())] {
        let log = logs::Log::from(Level::INFO);
        let directory = tempfile::tempdir().unwrap();
        let builder = named(&server).saved_in(directory.path());
        let factory = if asked { builder.save_secrets() } else { builder }.build().unwrap();
        let informers = [pods(), secrets.clone()].map(|resource| factory.informer_of::<Object>(resource));
        let metadata =
            factory.with_labels("app=x").unwrap().informer_of::<PartialObjectMeta>(secrets.clone());
        factory.start();
        factory.wait_for_sync(LONG).await.unwrap();
        assert!(informers.iter().all(|informer| informer.len() == 1) && metadata.is_empty());
        factory.shutdown().await;
        let files = std::fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> = files
            .map(|file| file.unwrap().file_name().to_string_lossy().split('.').next().unwrap().to_owned())
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names, saved);
        // Of the objects and of the metadata, each with the remedy.
        let said: Vec<_> =
            log.take().into_iter().filter(|line| line.contains("the informer is not saved")).collect();
        assert_eq!(said.len(), if asked { 0 } else { 2 }, "{said:#?}");
        for line in &said {
            assert!(line.contains("resource=secrets.v1") && line.contains("`save_secrets`"), "{line}");
        }
    }
    // By its own name: whoever calls this means it.
    let (factory, informer) = {
        let factory = named(&server).build().unwrap();
        let informer = factory.informer_of::<Object>(secrets);
        (factory, informer)
    };
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(informer.save(directory.path().join("secrets")).await.unwrap().objects, 1);
}

/// Reads of its bytes wait at a gate, as those of a file on a server that does not answer.
struct Slow(Gate);

struct SlowBytes(Gate, ObjectBytes);

impl Storage for Slow {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        Stored::new(bytes.len(), SlowBytes(self.0.clone(), bytes.into_owned().into()))
    }
}

impl StoredBytes for SlowBytes {
    fn read(&self) -> Result<ObjectBytes, StorageError> {
        self.0.pass();
        Ok(self.1.clone())
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

#[tokio::test(start_paused = true)]
async fn f4_a_bounded_stop_does_not_wait_for_a_save_that_does_not_end() {
    let server = with_pods(&["shop/a"]);
    let directory = TempDir::new().unwrap();
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let slow = gate.clone();
    let stored = named(&server).storage(move |_| Arc::new(Slow(slow.clone())));
    let (factory, informer) = built(stored.saved_in(directory.path()));
    factory.start();
    live(&informer).await;
    let mut shutdown = Box::pin(factory.shutdown_within(Duration::from_secs(5)));
    let mut returned = None;
    until("the save waits", || {
        returned = returned.take().or_else(|| (&mut shutdown).now_or_never());
        gate.is_waited_at()
    })
    .await;
    let began = tokio::time::Instant::now();
    until("the stop returns", || {
        returned = returned.take().or_else(|| (&mut shutdown).now_or_never());
        returned.is_some()
    })
    .await;
    assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
    let not_ended = returned.unwrap().unwrap_err();
    let save = "not ended within 5 s: pods.v1 (all namespaces): the file of the cache (still runs)";
    assert_eq!(not_ended.to_string(), save);
}
