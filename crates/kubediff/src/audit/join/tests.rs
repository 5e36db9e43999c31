//! Events as an API server writes them, and changes as they are recorded: in words, and at random.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use fastrand::Rng;
use serde_json::json;

use super::*;
use crate::audit::event::events;

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
}

/// A history that knows labels and who began a deletion.
#[derive(Default)]
struct Known {
    labels: Vec<(String, String)>,
    deleter: Option<User>,
    /// How often it was asked.
    looks: usize,
}

impl Look for Known {
    fn labels(&mut self, _: Number) -> Vec<(String, String)> {
        self.looks += 1;
        self.labels.clone()
    }

    fn deleter(&mut self, _: &Seen) -> Option<User> {
        self.deleter.clone()
    }
}

/// A script: its writes and changes, and what came of them.
#[derive(Default)]
struct Play {
    join: Join,
    known: Known,
    number: u64,
    said: String,
}

impl Play {
    /// `USER VERB RESOURCE/NAME[/SUBRESOURCE] [@VERSION] [MANAGER] [NUMBER]`, carried out from one time to another. The event's id is all of it.
    fn write(&mut self, text: &str, from: i64, to: i64) -> &mut Self {
        let words: Vec<&str> = text.split(' ').collect();
        let (version, words): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| word.starts_with('@'));
        let mut of = words[2].split('/');
        let (resource, name, sub) =
            (of.next().unwrap(), of.next().unwrap_or_default(), of.next().unwrap_or_default());
        let manager = words.get(3).copied().unwrap_or_default();
        let event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": format!("{text} {from}"), "stage": "ResponseComplete", "verb": words[1],
            "requestURI": format!("/api/v1/namespaces/shop/{resource}?fieldManager={manager}&labelSelector=app%3Dcart"),
            "user": {"username": words[0], "groups": ["system:authenticated"]},
            "sourceIPs": ["10.0.0.7"], "userAgent": "kubectl/v1.34",
            "objectRef": {"resource": resource, "namespace": "shop", "name": name, "apiVersion": "v1", "subresource": sub,
                          "resourceVersion": version.first().map_or("", |version| &version[1..])},
            "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": time(from).to_string(), "stageTimestamp": time(to).to_string(),
        });
        let read = events(event.to_string().as_bytes()).unwrap();
        assert_eq!(read.malformed, 0, "{event}");
        read.writes.into_iter().for_each(|write| self.join.write(write, time(to)));
        self
    }

    /// `VERB RESOURCE/NAME [@VERSION BEFORE] [PATH]... [by MANAGER]`, seen at a time.
    fn change(&mut self, text: &str, at: i64) -> &mut Self {
        self.number += 1;
        let (what, manager) =
            text.split_once(" by ").map_or((text, None), |(what, by)| (what, Some(by.to_owned())));
        let words: Vec<&str> = what.split(' ').collect();
        let (resource, name) = words[1].split_once('/').unwrap();
        let paths: Vec<&&str> = words[2..].iter().filter(|word| !word.starts_with('@')).collect();
        let version = words.iter().find_map(|word| word.strip_prefix('@'));
        self.join.change(
            Seen {
                number: Number(self.number),
                resource: resource.to_owned(),
                namespace: Some("shop".to_owned()),
                name: name.to_owned(),
                uid: name.to_owned(),
                verb: match words[0] {
                    "added" => Verb::Added,
                    "updated" => Verb::Updated,
                    _ => Verb::Deleted,
                },
                rv_before: version.map(str::to_owned),
                at: time(at),
                is_merged: false,
                managers: manager.into_iter().collect(),
                in_status: paths.iter().any(|path| path.starts_with("status")),
                elsewhere: paths.iter().any(|path| !path.starts_with("status")),
                begins_to_end: paths.iter().any(|path| **path == "metadata.deletionTimestamp"),
                was_ending: words[0] == "ended",
            },
            time(at),
        );
        self
    }

    /// What becomes known now.
    fn decide(&mut self, at: i64) -> &mut Self {
        for (number, user) in self.join.decide(time(at), &mut self.known) {
            let probably = if user.probable { "probably " } else { "" };
            writeln!(self.said, "{number}: {probably}{}", user.name).unwrap();
        }
        self
    }

    fn is(&self, expected: Expect) {
        expected.assert_eq(&self.said);
    }
}

#[test]
fn a_write_that_names_the_version_before_made_the_change() {
    let mut play = Play::default();
    play.write("jane update deployments/cart @7", 0, 10).write("joe update deployments/cart @9", 5, 12);
    play.change("updated deployments/cart @9 spec.replicas", 20)
        .change("updated deployments/cart @7 spec.replicas", 25);
    play.decide(30).is(expect![[r#"
        1: joe
        2: jane
    "#]]);
}

#[test]
fn the_only_write_in_its_time_made_the_change_and_two_are_in_doubt() {
    let mut play = Play::default();
    play.write("jane patch deployments/cart", 0, 10)
        .change("updated deployments/cart @7 spec.replicas", 50)
        .decide(100);
    // One of the two changed nothing, or its change is not seen yet.
    play.write("joe patch deployments/cart", 20_000, 20_010).write(
        "ann patch deployments/cart",
        20_400,
        20_410,
    );
    play.change("updated deployments/cart @8 spec.replicas", 20_450).decide(20_500);
    // The other one is seen: each has its own.
    play.change("updated deployments/cart @9 spec.replicas", 20_900).decide(21_000);
    // Nobody wrote for long.
    play.change("updated deployments/cart @10 spec.replicas", 45_000).decide(46_000);
    play.is(expect![[r#"
        1: jane
        2: probably ann
        2: joe
        3: ann
    "#]]);
}

#[test]
fn managers_and_the_status_tell_writes_at_the_same_time_apart() {
    let mut play = Play::default();
    play.write("jane patch deployments/cart kubectl-edit", 0, 30).write(
        "joe patch deployments/cart helm",
        0,
        30,
    );
    play.write("controller patch deployments/cart/status", 0, 30);
    play.change("updated deployments/cart @7 spec.replicas by helm", 40);
    play.change("updated deployments/cart @8 status.replicas", 45);
    play.change("updated deployments/cart @9 spec.replicas by kubectl-edit", 50);
    play.decide(60).is(expect![[r#"
        1: joe
        2: controller
        3: jane
    "#]]);
    // Without managers, nobody knows whose of two at the same time was first.
    let mut play = Play::default();
    play.write("jane patch deployments/cart", 0, 30).write("joe patch deployments/cart", 0, 30);
    play.change("updated deployments/cart @7 spec.replicas", 40)
        .change("updated deployments/cart @8 spec.replicas", 41);
    play.decide(60).is(expect![[r#"
        1: probably joe
        2: probably joe
    "#]]);
}

#[test]
fn whoever_asked_for_a_deletion_deleted_and_not_whoever_let_it_go() {
    let mut play = Play::default();
    play.write("jane delete pods/cart", 0, 10)
        .change("updated pods/cart @7 metadata.deletionTimestamp", 20)
        .decide(30);
    play.write("kubelet delete pods/cart", 30_000, 30_010)
        .change("ended pods/cart @8", 30_020)
        .decide(30_030);
    // An eviction, and a finalizer.
    play.write("drain create pods/db/eviction", 0, 10)
        .change("updated pods/db @7 metadata.deletionTimestamp", 20);
    play.write("cleaner patch pods/db", 500, 510).change("ended pods/db @8", 520).decide(30_030);
    // A bare object: one request removes it.
    play.write("joe delete configmaps/flags", 0, 10).change("deleted configmaps/flags @3", 20).decide(30_030);
    // The beginning was before this process: the history knows.
    play.known.deleter = Some(User { name: "ann".to_owned(), ..User::default() });
    play.write("kubelet delete pods/old", 30_000, 30_010).change("ended pods/old @8", 30_020).decide(30_030);
    play.is(expect![[r#"
        1: jane
        2: jane
        3: drain
        4: drain
        5: joe
        6: ann
    "#]]);
}

#[test]
fn objects_without_a_name_in_the_request() {
    let mut play = Play::default();
    play.write("controller create pods", 0, 10).write("controller create pods", 2, 12);
    play.change("added pods/cart-x by kubectl", 15).change("added pods/cart-y by kubectl", 16);
    play.decide(20);
    play.write("other create pods", 1, 11).decide(30);
    // A deletion of many is of those that its selector takes, and somebody else may have deleted one of these.
    play.known.labels = vec![("app".to_owned(), "cart".to_owned())];
    play.write("cleaner deletecollection configmaps", 1_000, 1_010);
    play.change("deleted configmaps/flags @3", 1_020).decide(1_030);
    play.known.labels = vec![("app".to_owned(), "db".to_owned())];
    play.change("deleted configmaps/other @3", 1_020).decide(1_030);
    play.is(expect![[r#"
        1: controller
        2: controller
        1: probably controller
        2: probably controller
        3: probably cleaner
    "#]]);
}

#[test]
fn late_and_doubled_events_say_the_same() {
    let mut play = Play::default();
    play.change("updated deployments/cart @7 spec.replicas", 0).decide(1_000);
    for at in [30_000, 31_000] {
        play.write("jane patch deployments/cart", -20, -10).decide(at);
    }
    play.is(expect![[r#"
        1: jane
    "#]]);
}

#[test]
fn a_flood_is_bounded_and_counted() {
    let mut join = Join::default();
    let mut play = Play::default();
    for count in 0..OF_AN_OBJECT + 50 {
        play.write(&format!("user{count} patch deployments/cart"), 0, 10);
    }
    assert_eq!(play.join.passed_over(), 50);
    let write = play.join.waits.values().next().unwrap().writes[0].clone();
    for count in 0..MOST + 10 {
        let of = Write { name: Some(count.to_string()), id: count.to_string(), ..write.clone() };
        join.write(of, time(0));
    }
    assert_eq!((join.passed_over(), join.waits.len(), join.arrivals.len()), (10, MOST, MOST));
    join.decide(time(120_000), &mut Known::default());
    assert!(join.waits.is_empty() && join.arrivals.is_empty());
}

#[test]
fn writes_without_a_name_cost_one_look_for_all_of_them() {
    let mut play = Play::default();
    for count in 0..500 {
        play.write(&format!("jane update pods/written-{count}"), 0, 10);
        play.change(&format!("deleted pods/gone-{count} @3"), 20);
    }
    play.decide(30);
    for count in 0..300 {
        play.write("cleaner deletecollection pods", count - 300, 40).write("jane create pods", count, 40);
    }
    // They are noted once, and not with all objects that they may be of.
    assert_eq!(play.join.news.len(), 1);
    assert_eq!(play.join.concerned().len(), 501);
    play.write("cleaner deletecollection pods", 30, 40).decide(50);
    assert_eq!((play.known.looks, play.join.is_waiting()), (500, false));
    // Nobody waits for the end of it when the process ends.
    play.join.stop.cancel();
    play.write("cleaner deletecollection pods", 31, 41).decide(60);
    assert_eq!(play.known.looks, 500);
}

#[test]
fn no_time_of_an_event_is_too_far_away() {
    let mut play = Play::default();
    play.write("jane patch deployments/cart", 0, 10);
    let write = play.join.waits.values().next().unwrap().writes[0].clone();
    // Many old ones take no places of others.
    let times = [Timestamp::MAX].into_iter().chain([Timestamp::MIN; OF_AN_OBJECT]);
    for (count, at) in times.enumerate() {
        let user = User { name: "mallory".to_owned(), ..User::default() };
        let of = Write { id: count.to_string(), user, from: at.min(write.from), to: at, ..write.clone() };
        play.join.write(of, time(10));
    }
    play.change("updated deployments/cart @7 spec.replicas", 20).decide(30);
    play.is(expect![[r#"
        1: probably jane
    "#]]);
}

#[test]
fn an_event_without_a_user_or_with_times_that_no_clock_shows_is_malformed() {
    let event = |user: &str, impersonated: Option<&str>, code: u16, from: &str, to: &str| {
        let event = json!({
            "auditID": "1", "stage": "ResponseComplete", "verb": "update", "requestURI": "/x",
            "user": {"username": user}, "impersonatedUser": impersonated.map(|name| json!({"username": name})),
            "objectRef": {"resource": "pods", "name": "a"}, "responseStatus": {"code": code},
            "requestReceivedTimestamp": from, "stageTimestamp": to,
        });
        let read = events(event.to_string().as_bytes()).unwrap();
        (read.writes.len(), read.malformed)
    };
    let then = "2023-11-14T22:13:20.5Z";
    assert_eq!(event("jane", None, 200, then, then), (1, 0));
    assert_eq!(event("jane", Some("joe"), 200, then, then), (1, 0));
    // A request without a known user is refused (401): an event, and no write.
    assert_eq!(event("", None, 401, then, then), (0, 0));
    let (late, early) = ("9999-12-30T22:00:00.9Z", "-009999-01-02T01:59:59Z");
    for (user, impersonated, from, to) in [
        ("", None, then, then),
        ("jane", Some(""), then, then),
        ("", Some("joe"), then, then),
        ("jane", None, late, late),
        ("jane", None, then, late),
        ("jane", None, late, then),
        ("jane", None, early, then),
    ] {
        assert_eq!(event(user, impersonated, 200, from, to), (0, 1), "{user} {impersonated:?} {from} {to}");
    }
    // An old audit log has old events.
    assert_eq!(event("jane", None, 200, early, early), (1, 0));
}

/// Users write to a few objects at once; some writes change nothing. All events arrive, late and in any order: whoever is told for sure is
/// the one who did it.
#[test]
fn what_is_said_for_sure_is_so() {
    let first =
        std::env::var("SEED").map_or_else(|_| fastrand::u64(..u64::MAX / 2), |seed| seed.parse().unwrap());
    let (mut sure, mut all) = (0, 0);
    let seeds: u64 = std::env::var("SEEDS").map_or(60, |seeds| seeds.parse().unwrap());
    for seed in first..first + seeds {
        let (of_this, count) = random(seed);
        (sure, all) = (sure + of_this, all + count);
    }
    println!("SEED={first}: {sure} of {all} for sure");
    assert!(sure * 2 > all);
}

fn random(seed: u64) -> (usize, usize) {
    let mut random = Rng::with_seed(seed);
    let mut play = Play::default();
    let (mut truth, mut later) = (Vec::new(), Vec::new());
    let mut versions = [1_u64; 3];
    let mut at = 0;
    for number in 0..60 {
        at += random.i64(0..400);
        let (which, user) = (random.usize(..3), format!("user{}", random.u8(..5)));
        // It is carried out at some time within.
        let (from, to) = (at - random.i64(0..200), at + random.i64(0..200));
        let manager = if random.bool() { "helm" } else { "edit" };
        let has_version = random.u8(..3) == 0;
        let version = if has_version { format!(" @{}", versions[which]) } else { String::new() };
        later.push((format!("{user} patch deployments/o{which}{version} {manager} {number}"), from, to));
        if random.u8(..6) > 0 {
            let by = if random.bool() { format!(" by {manager}") } else { String::new() };
            let change = format!("updated deployments/o{which} @{} spec.replicas{by}", versions[which]);
            versions[which] += 1;
            play.change(&change, at + random.i64(0..300));
            truth.push(user);
        }
    }
    random.shuffle(&mut later);
    for (write, from, to) in later {
        play.write(&write, from, to);
    }
    let found = play.join.decide(time(at + 500), &mut play.known);
    let mut sure = 0;
    for (number, user) in &found {
        if !user.probable {
            sure += 1;
            let who = &truth[usize::try_from(number.0).unwrap() - 1];
            assert_eq!(&user.name, who, "SEED={seed}: {number}");
        }
    }
    (sure, truth.len())
}
