//! An accepted input is an obligation until its effect, also while user code does not return.

use std::time::Duration;

use informer_core::Scope;
use informer_core::engine::{Input, Response, Start};

use crate::play::{Play, namespace, pod, pods};

/// User code holds the writer, the queue is full, and the responses were dropped.
fn stuck(scopes: &[Scope]) -> Play {
    let mut play = Play::with_user_code(scopes.iter().cloned());
    for scope in scopes {
        play.list(scope, 10, &[]);
        play.accept(scope);
    }
    play.holds = true;
    let first = &scopes[0];
    play.event(first, &pod("shop", "a", 11));
    play.event(first, &pod("shop", "b", 12));
    play
}

#[test]
fn l14_a_schema_that_changes_while_user_code_is_stuck_starts_a_list_when_it_returns() {
    let mut play = stuck(&[Scope::All]);
    play.pass(Duration::from_secs(11));
    assert_eq!(play.take("SourceStatus").last().map(String::as_str), Some("SourceStatus(All, Stalled)"));
    play.input(Input::Schema("B"));
    play.user_code_returns();
    assert_eq!(play.take("All"), [r#"All WATCH rv="12""#]);
    play.accept(&Scope::All);
    play.run(Duration::from_secs(31));
    assert_eq!(play.take("All"), [r#"All LIST rv="12""#]);
}

#[test]
fn w14_a_wake_while_user_code_is_stuck_takes_effect_when_it_returns() {
    let (shop, bank) = (namespace("shop"), namespace("bank"));
    let mut play = stuck(&[shop.clone(), bank.clone()]);
    play.respond(&bank, Response::Broken("reset".to_owned()));
    play.respond(&bank, Response::Unreachable("refused".to_owned()));
    play.pass(Duration::from_secs(11));
    play.input(Input::Wake);
    play.take("");
    play.user_code_returns();
    let sent = play.take("Namespace(\"bank\")");
    assert_eq!(sent, [r#"Namespace("bank") WATCH rv="10""#]);
}

/// The schema of what would be saved now.
fn saved_schema(play: &Play) -> String {
    play.engine.content_schema().to_owned()
}

#[test]
fn l14_the_cache_has_the_schema_of_its_last_complete_list() {
    let mut play = Play::new();
    play.input(Input::Schema("A"));
    play.input(Input::Start(Box::new(Start::new(pods(), [Scope::All]))));
    assert_eq!(saved_schema(&play), "");
    play.list(&Scope::All, 10, &[]);
    play.accept(&Scope::All);
    assert_eq!(saved_schema(&play), "A");
    play.input(Input::Schema("B"));
    assert_eq!(saved_schema(&play), "A", "the list is due");
    play.run(Duration::from_secs(31));
    assert_eq!(saved_schema(&play), "A", "the list runs");
    play.respond(&Scope::All, Response::Broken("reset".to_owned()));
    assert_eq!(saved_schema(&play), "A", "the list has failed");
    play.run(Duration::from_secs(5));
    play.accept(&Scope::All);
    play.run(Duration::from_secs(31));
    play.list(&Scope::All, 12, &[]);
    assert_eq!(saved_schema(&play), "B");
}

#[test]
fn l14_a_removed_scope_that_the_cache_still_has_keeps_its_schema() {
    let (shop, bank) = (namespace("shop"), namespace("bank"));
    let mut play = Play::new();
    play.input(Input::Schema("A"));
    play.start_with_user_code([shop.clone(), bank.clone()]);
    for scope in [&shop, &bank] {
        play.list(scope, 10, &[]);
        play.accept(scope);
    }
    play.input(Input::Schema("B"));
    play.run(Duration::from_secs(31));
    play.list(&bank, 12, &[]);
    play.accept(&bank);
    play.holds = true;
    play.event(&bank, &pod("bank", "c", 13));
    play.input(Input::RemoveScope(shop.clone()));
    play.input(Input::Stop);
    play.user_code_returns();
    let checkpoint = play.engine.checkpoint().expect("the writer is back");
    assert!(checkpoint.sources.iter().any(|source| source.scope == shop), "the stop dropped the removal");
    assert_eq!(saved_schema(&play), "", "one scope was listed with A, the other with B");
}

#[test]
fn f9_events_that_were_received_fill_the_queue_when_user_code_runs_again() {
    let mut play = Play::with_user_code([Scope::All]);
    play.list(&Scope::All, 10, &[]);
    play.accept(&Scope::All);
    play.holds = true;
    let undecodable = pod("shop", "b", 12).replace(r#""12""#, "12");
    let objects = [pod("shop", "a", 11), undecodable, pod("shop", "c", 13), pod("shop", "d", 14)];
    let events = objects.map(|object| format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")).concat();
    play.respond(&Scope::All, Response::Bytes(events.as_bytes()));
    assert!(!play.engine.takes_bytes(), "b waits for the user code that has a");
    play.user_code_returns_once();
    assert!(!play.engine.takes_bytes(), "b needs no user code, c is with it, and d waits");
}
