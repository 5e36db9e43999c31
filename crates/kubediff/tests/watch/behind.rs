//! Issue 12: changes come faster than the daemon takes them, or it stands still for a time. Nothing is lost without a word:
//! there is a gap, and in the end the history has what the server has.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kubediff_history::{Gap, Page, Reader, Scope};
use serde_json::json;
use testapi::{Gvr, Patch, TestApi};

use crate::session::Session;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);
const OBJECTS: usize = 50;

struct Set {
    folder: tempfile::TempDir,
    server: TestApi,
}

impl Set {
    /// A server that remembers so many events of a resource, with config maps, and a daemon that watches them.
    async fn start(events: usize) -> (Self, Session) {
        let server = TestApi::builder().history(events).start().await.unwrap();
        let set = Self { folder: tempfile::tempdir().unwrap(), server };
        for index in 0..OBJECTS {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": "default", "name": format!("c-{index}")}, "data": {"k": "0"}});
            set.server.api().create(&config_maps(), object).unwrap();
        }
        std::fs::write(set.folder.path().join("kubeconfig"), set.server.kubeconfig()).unwrap();
        let config = set.folder.path().join("kubediff.yaml");
        std::fs::write(
            &config,
            "history: {path: history.db}\nlisten: 127.0.0.1:0\nwatch: {resources: [cm]}\n\
             sinks:\n  log: {file: {path: changes.log}}\n",
        )
        .unwrap();
        let kubeconfig = set.folder.path().join("kubeconfig");
        let started = tokio::task::spawn_blocking(move || {
            let mut session = Session::serve(&kubeconfig, &config);
            session.note("watching 1 resource");
            session
        });
        let session = started.await.unwrap();
        set.is_recorded().await;
        (set, session)
    }

    fn history(&self) -> Reader {
        Reader::open(self.folder.path().join("history.db")).unwrap()
    }

    fn patch(&self, index: usize, data: &str) {
        let patch = Patch::Merge(json!({"data": {"k": data}}));
        self.server.api().patch(&config_maps(), "default", &format!("c-{index}"), &patch).unwrap();
    }

    fn gaps(&self) -> Vec<Gap> {
        self.history().gaps(&Scope::default(), None, None, &Page::oldest(1_000)).unwrap()
    }

    /// Waits until the history has each object as the server has it.
    async fn is_recorded(&self) {
        let versions = |objects: Vec<(String, String)>| objects.into_iter().collect::<BTreeMap<_, _>>();
        let text =
            |object: &serde_json::Value, name: &str| object["metadata"][name].as_str().unwrap().to_owned();
        let wanted = self.server.api().list(&config_maps(), Some("default")).unwrap();
        let wanted =
            versions(wanted.iter().map(|it| (text(it, "name"), text(it, "resourceVersion"))).collect());
        let scope = Scope { namespaces: vec!["default".to_owned()], ..Scope::default() };
        let begin = Instant::now();
        loop {
            // The file may not be there yet.
            let state = self.folder.path().join("history.db").exists().then(|| {
                let state = self.history().state(&scope, None).unwrap();
                versions(state.into_iter().map(|it| (it.object.name, it.rv)).collect())
            });
            if state.as_ref() == Some(&wanted) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{state:#?}, the server {wanted:#?}");
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the history has so many gaps.
    async fn has_gaps(&self, count: usize) -> Vec<Gap> {
        let begin = Instant::now();
        loop {
            let gaps = self.gaps();
            if gaps.len() >= count {
                return gaps;
            }
            assert!(begin.elapsed() < PATIENCE, "{gaps:#?}");
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the sink has every record.
    async fn is_told(&self) {
        let begin = Instant::now();
        loop {
            let mut history = self.history();
            let last = history.last().unwrap().map(|(number, _)| number);
            let sinks = history.sinks().unwrap();
            if Some(sinks[0].position) >= last {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{last:?} {sinks:#?}");
            tokio::task::yield_now().await;
        }
    }

    /// The records of the sink, as far as they are written.
    fn told(&self, is_it: impl Fn(&serde_json::Value) -> bool) -> usize {
        lines(&self.folder.path().join("changes.log")).iter().filter(|line| is_it(&line["change"])).count()
    }
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn config_maps() -> Gvr {
    Gvr::new("v1", "configmaps")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_daemon_missed_while_it_stood_still_is_a_gap() {
    let (set, session) = Set::start(1_000).await;
    set.patch(0, "before");
    set.is_recorded().await;
    assert_eq!(set.gaps().len(), 0);

    session.freeze();
    set.server.disconnect_all();
    while set.server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    for round in 0..3 {
        (0..OBJECTS / 2).for_each(|index| set.patch(index, &format!("missed {round}")));
    }
    // Requests for what came since get 410.
    set.server.compact();
    session.signal("-CONT");
    set.is_recorded().await;
    let gaps = set.gaps();
    let [gap] = &gaps[..] else { panic!("{gaps:#?}") };
    assert_eq!(gap.resource.as_deref().unwrap_or("configmaps"), "configmaps");
    assert!(gap.from < gap.to, "{gap:#?}");
    assert!(gap.reason.contains("missed changes that the server had forgotten"), "{gap:#?}");

    // The next change is seen again, and is no gap.
    set.patch(1, "after");
    set.is_recorded().await;
    assert_eq!(set.gaps().len(), 1);
    set.is_told().await;
    let ended = tokio::task::spawn_blocking(move || session.end_with("-TERM")).await.unwrap();
    assert!(ended.2.success(), "{ended:#?}");
    assert_eq!(set.told(|change| change["change"] == "gap"), 1);
    // One before, one for each object that changed meanwhile, one after.
    assert_eq!(set.told(|change| change["change"] == "updated"), OBJECTS / 2 + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn k1_the_gap_of_a_break_begins_at_the_last_event_although_the_reconnect_fails() {
    let (set, session) = Set::start(1_000).await;
    set.patch(0, "before");
    set.is_recorded().await;
    let recorded = Timestamp::now();

    // The connection breaks, as after a stall: the daemon notices it later, and its first attempt to reconnect fails.
    session.freeze();
    set.server.refuse_connections();
    set.server.disconnect_all();
    while set.server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    set.patch(1, "missed");
    set.patch(1, "after it");
    set.server.compact();
    session.signal("-CONT");
    let mut session = session;
    let noticed = tokio::task::spawn_blocking(move || {
        session.note("not watched: ");
        session
    });
    let session = noticed.await.unwrap();
    set.server.accept_connections().unwrap();
    set.is_recorded().await;
    // The daemon records an outage when it is over, which may be after the changes of that time.
    let gaps = set.has_gaps(2).await;
    let [of_break, of_outage] = &gaps[..] else { panic!("{gaps:#?}") };
    let (of_break, of_outage) =
        if of_break.from <= of_outage.from { (of_break, of_outage) } else { (of_outage, of_break) };
    assert!(of_break.from <= recorded, "{gaps:#?} after {recorded}");
    assert!(of_break.to >= of_outage.from, "{gaps:#?}");
    let ended = tokio::task::spawn_blocking(move || session.end_with("-TERM")).await.unwrap();
    assert!(ended.2.success(), "{ended:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_faster_than_the_watch_takes_them_are_a_gap_and_not_lost() {
    // The server remembers 10 events. While the daemon stands still, 25 MB are more than sockets hold: the server ends the watch.
    const ROUND: usize = 500;
    let (set, session) = Set::start(10).await;
    let (begin, mut made) = (Instant::now(), 0);
    while set.gaps().is_empty() {
        assert!(begin.elapsed() < PATIENCE, "no gap after {made} changes: the sockets held them all");
        session.freeze();
        let set = &set;
        tokio::task::block_in_place(|| {
            (made..made + ROUND)
                .for_each(|number| set.patch(number % OBJECTS, &format!("{number} {}", "x".repeat(50_000))));
        });
        made += ROUND;
        session.signal("-CONT");
        set.is_recorded().await;
    }
    set.patch(0, "the last");
    set.is_recorded().await;
    let last = set.history().last().unwrap().map_or(0, |(number, _)| number.0);
    let recorded = usize::try_from(last).unwrap() - OBJECTS - set.gaps().len();
    assert!(recorded > 1 && recorded < made, "{recorded} of {made} are recorded one by one");
    let ended = tokio::task::spawn_blocking(move || session.end_with("-TERM")).await.unwrap();
    assert!(ended.2.success(), "{ended:#?}");
}
