//! The correlator, driven by hand.

use std::time::Duration;

use informer::{ObjectKey, ResourceType};
use informer_core::Time;
use jiff::Timestamp;

use super::correlator::{Correlator, Ended, Observed, Write};
use super::event::{Event, Reference, Subject};

const MINUTE: u64 = 60;

fn at(seconds: u64) -> Time {
    Time::from_start(Duration::from_secs(seconds))
}

fn wall(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

fn subject(name: &str, note: &str) -> Subject {
    let resource = ResourceType {
        group: String::new(),
        version: "v1".into(),
        plural: "configmaps".into(),
        kind: "ConfigMap".into(),
        namespaced: true,
    };
    let key = ObjectKey::new(Some("shop"), name).unwrap();
    Subject { regarding: Reference::new(&resource, &key, None), event: Event::normal("A", "B", note) }
}

fn observe(correlator: &mut Correlator, seconds: u64, name: &str, note: &str) -> Observed {
    correlator.observe(at(seconds), wall(seconds), subject(name, note))
}

/// Sends what waits, successfully.
fn send(correlator: &mut Correlator, seconds: u64) -> Vec<Write> {
    let mut writes = Vec::new();
    while let Some(write) = correlator.next_write() {
        correlator.ended(at(seconds), &write, Ended::Done);
        writes.push(write);
    }
    writes
}

fn counts(writes: &[Write]) -> Vec<(bool, u32)> {
    writes.iter().map(|write| (write.update, write.series.map_or(1, |series| series.count))).collect()
}

#[test]
fn equal_events_within_six_minutes_are_one_event_whose_count_is_written_at_the_second_one_and_at_the_end() {
    let mut events = Correlator::new();
    assert_eq!(observe(&mut events, 0, "a", "x"), Observed::Waits);
    assert_eq!(counts(&send(&mut events, 0)), [(false, 1)]);
    for second in 1..=5 {
        assert_eq!(observe(&mut events, second * MINUTE, "a", "x"), Observed::Counts);
        let expected: &[_] = if second == 1 { &[(true, 2)] } else { &[] };
        assert_eq!(counts(&send(&mut events, second * MINUTE)), expected);
    }
    // Due at the latest when the series ends; looking earlier writes nothing.
    events.tick(at(11 * MINUTE - 1));
    assert!(send(&mut events, 11 * MINUTE - 1).is_empty());
    assert!(events.due().is_some_and(|due| due <= at(11 * MINUTE)));
    events.tick(at(11 * MINUTE));
    let last = send(&mut events, 11 * MINUTE);
    assert_eq!(counts(&last), [(true, 6)]);
    assert_eq!(last[0].series.unwrap().last_observed_time, wall(5 * MINUTE));
    events.tick(at(11 * MINUTE));
    assert_eq!(events.due(), None, "nothing is remembered");

    assert_eq!(observe(&mut events, 12 * MINUTE, "a", "x"), Observed::Waits);
    let new = send(&mut events, 12 * MINUTE);
    assert_eq!(counts(&new), [(false, 1)]);
    assert_ne!(new[0].name, last[0].name);
}

#[test]
fn events_that_differ_in_note_or_object_are_not_a_series() {
    let mut events = Correlator::new();
    for (name, note) in [("a", "x"), ("a", "y"), ("b", "x")] {
        assert_eq!(observe(&mut events, 0, name, note), Observed::Waits);
    }
    let writes = send(&mut events, 0);
    assert_eq!(counts(&writes), [(false, 1); 3]);
    // At one instant of the clock too, each event has a name of its own.
    assert_ne!(writes[0].name, writes[1].name);
}

#[test]
fn a_series_that_goes_on_is_written_every_thirty_minutes() {
    let mut events = Correlator::new();
    let mut written = Vec::new();
    for minute in 0..=61 {
        observe(&mut events, minute * MINUTE, "a", "x");
        events.tick(at(minute * MINUTE));
        written.extend(
            counts(&send(&mut events, minute * MINUTE)).into_iter().map(|(_, count)| (minute, count)),
        );
    }
    assert_eq!(written, [(0, 1), (1, 2), (31, 32), (61, 62)]);
}

#[test]
fn what_is_observed_while_a_request_waits_or_is_on_its_way_is_in_the_next_one() {
    let mut events = Correlator::new();
    observe(&mut events, 0, "a", "x");
    observe(&mut events, 0, "a", "x");
    let create = events.next_write().unwrap();
    assert_eq!(counts(std::slice::from_ref(&create)), [(false, 2)]);
    events.ended(at(0), &create, Ended::Done);
    assert!(events.next_write().is_none());

    observe(&mut events, 0, "b", "x");
    let create = events.next_write().unwrap();
    observe(&mut events, 0, "b", "x");
    assert!(events.next_write().is_none(), "one request of a series at a time");
    events.ended(at(0), &create, Ended::Done);
    assert_eq!(counts(&send(&mut events, 0)), [(true, 2)]);
}

#[test]
fn an_event_that_has_expired_on_the_server_is_created_again_with_its_count() {
    let mut events = Correlator::new();
    observe(&mut events, 0, "a", "x");
    send(&mut events, 0);
    observe(&mut events, 1, "a", "x");
    let update = events.next_write().unwrap();
    events.ended(at(1), &update, Ended::Missing);
    assert_eq!(counts(&send(&mut events, 1)), [(false, 2)]);
}

#[test]
fn an_event_that_failed_is_forgotten() {
    let mut events = Correlator::new();
    observe(&mut events, 0, "a", "x");
    let create = events.next_write().unwrap();
    events.ended(at(0), &create, Ended::Failed);
    assert_eq!(observe(&mut events, 1, "a", "x"), Observed::Waits);
}

#[test]
fn an_object_has_25_events_at_once_and_then_one_every_five_minutes() {
    let mut events = Correlator::new();
    let passed = |events: &mut Correlator, seconds, from: u32, to| {
        (from..to).filter(|n| observe(events, seconds, "a", &n.to_string()) == Observed::Waits).count()
    };
    assert_eq!(passed(&mut events, 0, 0, 100), 25);
    assert_eq!(passed(&mut events, 299, 100, 110), 0);
    assert_eq!(passed(&mut events, 300, 110, 120), 1);
    assert_eq!(passed(&mut events, 900, 120, 130), 2);
    assert_eq!(observe(&mut events, 900, "b", "x"), Observed::Waits, "another object");
    // A series that exists goes on.
    send(&mut events, 900);
    observe(&mut events, 900, "b", "x");
    // A long time fills no more than 25.
    assert_eq!(passed(&mut events, 1_000_000, 200, 300), 25);
}

#[test]
fn a_thousand_events_wait_and_more_are_lost() {
    let mut events = Correlator::new();
    for n in 0..1000 {
        assert_eq!(observe(&mut events, 0, &format!("a{n}"), "x"), Observed::Waits);
    }
    assert_eq!(observe(&mut events, 0, "b", "x"), Observed::Lost);
    assert_eq!(observe(&mut events, 0, "a0", "x"), Observed::Counts, "counting is free");
    assert_eq!(send(&mut events, 0).len(), 1000);
    assert_eq!(observe(&mut events, 0, "b", "x"), Observed::Waits);
}

#[test]
fn five_thousand_objects_are_remembered_within_a_bound() {
    let mut events = Correlator::new();
    for n in 0..5_000 {
        assert_eq!(observe(&mut events, 0, &format!("a{n}"), "x"), Observed::Waits, "{n}");
        assert_eq!(send(&mut events, 0).len(), 1);
    }
    assert!(events.remembered() <= 4096);
}

#[test]
fn finishing_writes_the_counts_that_the_server_does_not_have() {
    let mut events = Correlator::new();
    for _ in 0..3 {
        observe(&mut events, 0, "a", "x");
        send(&mut events, 0);
    }
    observe(&mut events, 0, "b", "x");
    send(&mut events, 0);
    events.finish();
    assert_eq!(counts(&send(&mut events, 0)), [(true, 3)]);
}
