//! Issue 23: the users whose requests made changes.

use std::time::Duration;

use kubediff_history::*;
use serde_json::json;

use crate::world::{at, change, changed, object, observation, open, retain};

fn user(name: &str, probable: bool) -> User {
    let groups = vec!["system:authenticated".to_owned()];
    User {
        name: name.to_owned(),
        groups,
        agent: Some("kubectl/v1.34".to_owned()),
        probable,
        ..User::default()
    }
}

/// A pod with six changes, one in each hour.
fn six_changes(history: &mut History) {
    let pod = object("pods", Some("shop"), "cart", "p");
    for hour in 1..=6 {
        let verb = if hour == 1 { Verb::Added } else { Verb::Updated };
        let mut batch = Batch::default();
        let of = (changed(change(verb, &["kubelet"], &["status.phase"])), json!({"hour": hour}));
        batch.observe(observation(&pod, hour, at(3_600 * i64::try_from(hour).unwrap()), &of.1, of.0));
        history.commit(&batch).unwrap();
    }
}

/// The changes of a question, with their users.
fn asked(history: &History, filter: &Filter) -> Vec<(u64, Option<User>)> {
    let found = history.reader().unwrap().records(filter, &Page::oldest(100)).unwrap().records;
    let of = |record| match record {
        Record::Change(change) => (change.number.unwrap().0, change.user),
        other => panic!("{other:?}"),
    };
    found.into_iter().map(of).collect()
}

fn by(pattern: &str) -> Filter {
    Filter { user: Some(pattern.to_owned()), ..Filter::default() }
}

#[test]
fn changes_have_the_users_that_were_stored_last() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    six_changes(&mut history);
    let (jane, argo) = (user("jane@example.com", false), user("system:serviceaccount:argocd:argocd", false));
    history
        .attribute(&[(Number(2), argo.clone()), (Number(3), jane.clone()), (Number(99), jane.clone())])
        .unwrap();
    let probably = user("jane@example.com", true);
    history.attribute(&[(Number(2), probably.clone()), (Number(5), argo.clone())]).unwrap();
    let of = |number, user: Option<&User>| (number, user.cloned());
    let all = [
        of(1, None),
        of(2, Some(&probably)),
        of(3, Some(&jane)),
        of(4, None),
        of(5, Some(&argo)),
        of(6, None),
    ];
    assert_eq!(asked(&history, &Filter::default()), all);
    assert_eq!(asked(&history, &by("jane@example.com")), [all[1].clone(), all[2].clone()]);
    assert_eq!(asked(&history, &by("system:*:argocd")), [all[4].clone()]);
    assert_eq!(asked(&history, &by("nobody")), []);
    // With another condition, and for one object.
    let both = Filter { paths: vec!["status".to_owned()], ..by("jane*") };
    assert_eq!(asked(&history, &both).len(), 2);
    let scope = Scope { uid: Some("p".to_owned()), ..Scope::default() };
    assert_eq!(asked(&history, &Filter { scope, ..by("jane*") }).len(), 2);
    let mut reader = history.reader().unwrap();
    let version = reader.version_of(Number(3)).unwrap().unwrap();
    assert_eq!(version.change.unwrap().user, Some(jane.clone()));
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    // As JSON, only what is known.
    let json = serde_json::to_value(&jane).unwrap();
    assert_eq!(
        json,
        json!({"name": "jane@example.com", "groups": ["system:authenticated"], "agent": "kubectl/v1.34"})
    );
}

#[test]
fn users_go_with_their_changes() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    six_changes(&mut history);
    history
        .attribute(&(1..=6).map(|number| (Number(number), user("jane", false))).collect::<Vec<_>>())
        .unwrap();
    let kept = Retention { age: Some(Duration::from_secs(2 * 3_600 + 60)), ..Retention::default() };
    retain(&mut history, &kept, at(21_600));
    let left: Vec<u64> = asked(&history, &by("jane")).into_iter().map(|(number, _)| number).collect();
    assert_eq!(left, [4, 5, 6]);
    assert_eq!(history.reader().unwrap().check().unwrap().problems, [""; 0]);
}
