//! Steps that panic, and steps when the process ends.

use kubediff_history::{Batch, Body, Cluster, Observation, Settings, What};

use super::*;

fn history(folder: &tempfile::TempDir) -> SharedHistory {
    let cluster = Cluster { uid: "1".to_owned(), name: None };
    let history =
        SharedHistory::open(&folder.path().join("history.db"), &cluster, &Settings::default()).unwrap();
    history.wait_for_users();
    history
}

/// Records an update that is long past.
fn record(history: &SharedHistory) -> u64 {
    let rv = (*history.newest().borrow() + 1).to_string();
    let body = Body::redacted(format!(r#"{{"metadata":{{"uid":"1","resourceVersion":"{rv}"}}}}"#));
    let mut record = ChangeRecord { rv: Some(rv), ..ChangeRecord::default() };
    (record.object.uid, record.object.resource) = ("1".to_owned(), "configmaps".to_owned());
    let mut batch = Batch::default();
    batch.observe(Observation { record, body, what: What::Change, replaces: None });
    let number = history.lock().commit(&batch).unwrap();
    history.grown(number);
    number.0
}

#[tokio::test]
async fn sinks_go_on_after_a_step_that_panics() {
    let folder = tempfile::tempdir().unwrap();
    let history = history(&folder);
    let (sender, events) = mpsc::channel(1);
    let sources = Sources {
        events,
        keeps_addresses: true,
        counts: watch::Sender::default(),
        step: |naming, reads, history| {
            naming.counts.writes += 1;
            assert!(reads.is_empty(), "this step panics for a test");
            naming.step(reads, history)
        },
        _tail: None,
        _webhook: None,
    };
    let (stop, mut told, mut counts) = (CancellationToken::new(), history.told(), sources.counts());
    let running = tokio::spawn(run(Some(sources), history.clone(), stop.clone()));
    tokio::task::yield_now().await;
    for panics in [false, true, true, false] {
        let number = record(&history);
        if panics {
            sender.send(Read::default()).await.unwrap();
        }
        let said = told.wait_for(|told| *told >= number);
        assert!(tokio::time::timeout(Duration::from_secs(10), said).await.is_ok(), "{number} is not told");
    }
    // What was counted before a panic stays.
    let counted = counts.wait_for(|counts| counts.writes == 2);
    assert!(tokio::time::timeout(Duration::from_secs(10), counted).await.is_ok());
    stop.cancel();
    running.await.unwrap();
}

#[test]
fn a_step_ends_when_the_process_does_and_tells_nothing_that_it_has_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let history = history(&folder);
    let number = record(&history);
    let mut naming = Naming { through: Some(Number(0)), ..Naming::default() };
    naming.join.stop.cancel();
    naming.step(Vec::new(), &history).unwrap();
    assert_eq!((naming.through, *history.told().borrow()), (Some(Number(0)), 0));
    naming.join.stop = CancellationToken::new();
    naming.step(Vec::new(), &history).unwrap();
    assert_eq!((*history.told().borrow(), number), (1, 1));
}

/// A process that has just begun does not know the events of before: what only may be replaces nothing.
#[test]
fn a_restart_keeps_a_user_unless_another_one_is_sure() {
    let folder = tempfile::tempdir().unwrap();
    let history = history(&folder);
    let now = Timestamp::now();
    let user = |history: &SharedHistory| {
        let version = history.lock().reader().unwrap().version_of(Number(1)).unwrap().unwrap();
        let user = version.change.unwrap().user.unwrap();
        (user.name, user.probable)
    };
    let mut batch = Batch::default();
    for rv in ["2", "3"] {
        let body = Body::redacted(format!(r#"{{"metadata":{{"uid":"1","resourceVersion":"{rv}"}}}}"#));
        let mut record =
            ChangeRecord { rv: Some(rv.to_owned()), verb: Verb::Updated, ..ChangeRecord::default() };
        record.object.resource = "configmaps".to_owned();
        (record.object.name, record.object.namespace) = ("a".to_owned(), Some("shop".to_owned()));
        (record.object.uid, record.observed_at, record.paths) =
            ("1".to_owned(), now, vec!["data.a".to_owned()]);
        record.rv_before = Some((if rv == "2" { "1" } else { "2" }).to_owned());
        batch.observe(Observation { record, body, what: What::Change, replaces: None });
    }
    history.grown(history.lock().commit(&batch).unwrap());
    let alice = User { name: "alice".to_owned(), probable: true, ..User::default() };
    history.lock().attribute(&[(Number(1), alice)]).unwrap();
    let event = |id: &str, rv: &str| {
        let json = format!(
            r#"{{"auditID":"{id}","stage":"ResponseComplete","verb":"update","requestURI":"/x","user":{{"username":"bob"}},
            "objectRef":{{"resource":"configmaps","namespace":"shop","name":"a"{rv}}},"responseStatus":{{"code":200}},
            "requestReceivedTimestamp":"{now}","stageTimestamp":"{now}"}}"#
        );
        crate::audit::events(json.as_bytes()).unwrap()
    };
    let mut naming = Naming { through: Some(Number(0)), ..Naming::default() };
    naming.step(vec![event("1", "")], &history).unwrap();
    assert_eq!(user(&history), ("alice".to_owned(), true));
    let second = history.lock().reader().unwrap().version_of(Number(2)).unwrap().unwrap();
    assert_eq!(second.change.unwrap().user.map(|user| user.name), Some("bob".to_owned()));
    naming.step(vec![event("2", r#","resourceVersion":"1""#)], &history).unwrap();
    assert_eq!(user(&history), ("bob".to_owned(), false));
}
