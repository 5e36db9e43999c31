//! Recording goes on where what is stored is damaged.

use kubediff_history::*;
use serde_json::{Value, json};

use crate::store;
use crate::world::{at, change, changed, commit, known, noise, object, observation, open};

#[test]
fn objects_whose_newest_version_is_damaged_have_whole_versions_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let pods = ["a", "b", "c", "d"].map(|name| object("pods", Some("shop"), name, name));
    let seen = |which: usize, rv: u64, what| {
        let time = at(i64::try_from(rv).unwrap());
        observation(&pods[which], rv, time, &json!({"status": {"restarts": rv}}), what)
    };
    let did = |verb| changed(change(verb, &["kubelet"], &["status.restarts"]));
    commit(&mut history, [seen(0, 1, known()), seen(1, 1, known()), seen(2, 1, known())]);
    assert!(history.passed_over().is_ok());
    store::damage(&path);
    history.give_up_caches().unwrap();

    let several = [seen(3, 2, known()), seen(0, 2, did(Verb::Updated)), seen(1, 2, noise())];
    commit(&mut history, several.into_iter().chain([seen(2, 2, did(Verb::Deleted))]));
    assert!(matches!(history.passed_over(), Err(Error::Damaged { .. })));
    commit(
        &mut history,
        [seen(0, 3, noise()), seen(1, 3, did(Verb::Updated)), seen(3, 3, did(Verb::Deleted))],
    );
    assert!(history.passed_over().is_ok());

    let mut reader = store::read(&path);
    let present = reader.present(&Scope::default(), None).unwrap();
    let states = reader.states(&present, 0..present.len()).unwrap();
    let states: Vec<(String, Value)> =
        states.iter().map(|it| (it.object.name.clone(), it.body.value())).collect();
    let state = |name: &str, rv: u64| (name.to_owned(), json!({"status": {"restarts": rv}}));
    assert_eq!(states, [state("a", 3), state("b", 3)]);
    let problems = reader.check().unwrap().problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
}
