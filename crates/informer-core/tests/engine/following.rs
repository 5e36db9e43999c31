//! F11: a resource that is not served any more is looked up, and what is known of a refusal is not asked for again.

use std::sync::Arc;
use std::time::Duration;

use informer_core::Scope;
use informer_core::engine::{Discovered, Input, Response, Start, StreamingRefusals};
use informer_core::reflector::{ReflectorConfig, StreamingList};

use crate::play::{Play, pods};

const ALL: Scope = Scope::All;

/// As lists have it, in any version of the resource.
fn item() -> String {
    r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"5"}}"#.to_owned()
}

/// A followed resource with one object.
fn following() -> Play {
    let mut play = Play::new();
    play.input(Input::Follow);
    play.input(Input::Start(Box::new(Start::new(pods(), [ALL]))));
    play.list(&ALL, 10, &[item()]);
    play.accept(&ALL);
    play
}

/// The server answers 404 to the watch that follows.
fn lost() -> Play {
    let mut play = following();
    play.respond(&ALL, Response::End);
    // The short watch is retried after its backoff.
    play.run(Duration::from_secs(5));
    play.take("");
    play.refuse(&ALL, 404, "NotFound");
    assert_eq!(play.take("Discover"), ["Discover"]);
    play
}

fn as_another(is_other: bool) -> Input<'static> {
    let (api_version, schema) = ("v2".to_owned(), String::new());
    let mut expected = pods();
    expected.api_version = "v2".to_owned();
    Input::Discovered(Discovered::As { expected, api_version, schema, is_other })
}

#[test]
fn f11_nothing_is_requested_before_discovery_knows_a_lost_resource_again() {
    let mut play = lost();
    play.input(Input::Discovered(Discovered::Unknown));
    play.run(Duration::from_secs(61));
    let sent = play.take("");
    assert!(sent.iter().all(|line| !line.starts_with("All")), "{sent:?}");
    assert_eq!(
        sent.iter().filter(|line| *line == "Discover").count(),
        1,
        "discovery is asked again: {sent:?}"
    );
    play.input(Input::Discovered(Discovered::Unchanged));
    assert_eq!(play.take("All"), [r#"All LIST rv="10""#], "at once");
}

/// A caller asks for a retry while discovery is asked. The request is not sent, so it is owed.
#[test]
fn f11_w14_a_wake_while_discovery_is_asked_takes_effect_when_it_finds_the_resource() {
    let mut play = lost();
    play.input(Input::Wake);
    assert_eq!(play.take("All"), [""; 0]);
    play.input(Input::Discovered(Discovered::Unchanged));
    assert_eq!(play.take("All").len(), 1);
}

#[test]
fn f11_a_resource_in_another_version_is_listed_at_once_and_compared_as_trees() {
    let mut play = lost();
    play.input(as_another(false));
    assert_eq!(play.take("All"), [r#"All LIST rv="10""#]);
    let hashed = play.engine.cache().get_str("shop/a").unwrap();
    play.list(&ALL, 12, &[item()]);
    let listed = play.engine.cache().get_str("shop/a").unwrap();
    assert!(!Arc::ptr_eq(&hashed, &listed), "an equal hash does not show the other version");
}

/// Each version of a resource writes the same objects in another form, so a second difference in a row is no reason for doubt.
#[test]
fn f11_l14_a_resource_that_is_served_as_another_version_twice_has_the_content_of_the_last_list_at_once() {
    let mut play = following();
    for form in ["one", "two", "three"] {
        play.take("");
        play.input(as_another(false));
        play.run(Duration::from_secs(31));
        assert_eq!(play.take("All"), [r#"All LIST rv="10""#]);
        let item = item().replace("metadata", &format!(r#"data":{{"form":"{form}"}},"metadata"#));
        play.list(&ALL, 10, &[item]);
        play.accept(&ALL);
        let object = play.engine.cache().get_str("shop/a").unwrap();
        assert!(std::str::from_utf8(&object.json().unwrap()).unwrap().contains(form), "{form}");
    }
}

#[test]
fn f11_a_version_that_follows_while_the_watch_runs_is_listed_too() {
    let mut play = following();
    play.input(Input::Schema("A"));
    play.input(Input::Schema("B"));
    assert_eq!(play.take("Discover"), ["Discover"]);
    play.input(as_another(false));
    play.run(Duration::from_secs(31));
    assert_eq!(play.take("All"), [r#"All LIST rv="10""#]);
}

#[test]
fn f11_a_discovery_that_fails_after_a_schema_changed_is_asked_for_again() {
    let mut play = following();
    play.input(Input::Schema("A"));
    play.input(Input::Schema("B"));
    assert_eq!(play.take("Discover"), ["Discover"]);
    play.input(Input::Discovered(Discovered::Unknown));
    assert_eq!(play.take("Discover"), [""; 0], "not at once");
    // The list for the new schema.
    play.run(Duration::from_secs(31));
    assert_eq!(play.take("Discover"), ["Discover"]);
    play.input(Input::Discovered(Discovered::Unchanged));
    play.list(&ALL, 12, &[item()]);
    assert_eq!(play.take("Discover"), [""; 0]);
}

#[test]
fn f11_a_schema_that_changes_during_a_discovery_needs_another_one() {
    let mut play = following();
    play.input(Input::Schema("A"));
    play.input(Input::Schema("B"));
    play.input(Input::Schema("C"));
    assert_eq!(play.take("Discover"), ["Discover"]);
    play.input(Input::Discovered(Discovered::Unchanged));
    assert_eq!(play.take("Discover"), ["Discover"]);
    play.input(Input::Discovered(Discovered::Unchanged));
    assert_eq!(play.take("Discover"), [""; 0]);
}

#[test]
fn f11_a_resource_with_another_scope_deletes_all_former_objects() {
    let mut play = lost();
    // Not while it waits for its retry, but while it watches.
    play.input(Input::Discovered(Discovered::Unchanged));
    play.run(Duration::from_secs(61));
    play.list(&ALL, 12, &[item()]);
    play.accept(&ALL);
    play.input(as_another(true));
    assert_eq!(play.engine.cache().len(), 0);
}

#[test]
fn w15_credentials_are_refreshed_although_a_request_was_not_sent_meanwhile() {
    let mut play = lost();
    play.input(Input::Discovered(Discovered::Unchanged));
    play.run(Duration::from_secs(61));
    play.refuse(&ALL, 401, "Unauthorized");
    assert_eq!(play.refreshes, 1);
}

#[test]
fn s7_a_streaming_list_that_one_engine_was_refused_is_not_asked_for_by_another_one() {
    let refusals = Arc::<StreamingRefusals>::default();
    let begin = |play: &mut Play| {
        let mut start = Start::new(pods(), [ALL]);
        start.reflector =
            ReflectorConfig { streaming_list: StreamingList::Preferred, ..ReflectorConfig::default() };
        start.streaming_refusals = refusals.clone();
        play.input(Input::Start(Box::new(start)));
        play.take("All").concat()
    };
    let mut first = Play::new();
    assert!(begin(&mut first).contains("WATCH"));
    first.refuse(&ALL, 422, "Invalid");
    let mut second = Play::new();
    assert_eq!(begin(&mut second), r#"All LIST rv="""#);
    assert_eq!(second.engine.counters().requests().streaming_lists, 0);
    let mut later = Play::new();
    later.pass(Duration::from_secs(3601));
    assert!(begin(&mut later).contains("WATCH"), "servers are upgraded");
}
