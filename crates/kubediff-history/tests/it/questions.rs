//! Issue 12, blame and point in time from the history alone; retention with sinks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use expect_test::expect;
use kubediff_history::*;
use serde_json::{Value, json};

use crate::world::{
    at, body, change, changed, commit, known, noise, object, observation, open, retain, settled,
};

/// Every scalar is a field, and so is a list.
fn fields(value: &Value) -> Vec<Field> {
    fn walk(value: &Value, path: &str, pointer: &str, found: &mut Vec<Field>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map.iter().filter(|(name, _)| *name != "managedFields") {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(value, &path, &format!("{pointer}/{name}"), found);
                }
            }
            _ => found.push(Field {
                path: path.to_owned(),
                pointer: pointer.to_owned(),
                value: value.clone(),
                masked: false,
                is_asked: true,
            }),
        }
    }
    let mut found = Vec::new();
    walk(value, "", "", &mut found);
    found
}

fn blamed(reader: &mut Reader, name: &str) -> String {
    let scope = Scope { name: Some(name.to_owned()), ..Scope::default() };
    let mut text = String::new();
    for incarnation in reader.incarnations(&scope).unwrap() {
        let blame = reader.blame(&incarnation, None, &fields).unwrap();
        text += &format!(
            "{} ended {:?} middle {:?}\n",
            blame.object.uid, blame.ended_at, blame.starts_in_the_middle
        );
        for field in blame.fields {
            let names: Vec<_> = field.managers.iter().map(|it| it.manager.as_str()).collect();
            let since = if field.exact { "since" } else { "since or before" };
            let value = field.value.map_or("removed".to_owned(), |value| value.to_string());
            let before = field.before.map_or("-".to_owned(), |value| value.to_string());
            let number = field.number;
            text += &format!("  {} = {value} {since} #{number} by {names:?}, before {before}\n", field.path);
        }
    }
    text
}

#[test]
fn blame_names_the_managers_of_each_field() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let cart = object("deployments", Some("shop"), "cart", "1");
    let by = |verb, managers: &[&str]| changed(change(verb, managers, &["spec", "status"]));
    let owned = json!([
        {"manager": "hpa", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {"f:image": {}}}},
    ]);
    commit(
        &mut history,
        [
            observation(
                &cart,
                1,
                at(0),
                &json!({"spec": {"image": "a", "replicas": 1, "paused": true}}),
                by(Verb::Added, &["helm"]),
            ),
            observation(
                &cart,
                2,
                at(10),
                &json!({"spec": {"image": "a", "replicas": 2}}),
                by(Verb::Updated, &["kubectl-edit"]),
            ),
            // Two managers in one version: the managed fields tell which of them it was.
            observation(
                &cart,
                3,
                at(20),
                &json!({"metadata": {"managedFields": owned}, "spec": {"image": "b", "replicas": 3}}),
                by(Verb::Updated, &["hpa", "helm"]),
            ),
            observation(
                &cart,
                4,
                at(30),
                &json!({"spec": {"image": "b", "replicas": 3}}),
                by(Verb::Deleted, &[]),
            ),
        ],
    );
    // An older one of the same name, which the history saw in the middle of its life.
    let old = object("pods", Some("shop"), "cart", "0");
    commit(
        &mut history,
        [
            observation(
                &old,
                5,
                at(40),
                &json!({"status": {"phase": "Running"}, "spec": {"node": "n1"}}),
                known(),
            ),
            observation(
                &old,
                6,
                at(50),
                &json!({"status": {"phase": "Failed"}, "spec": {"node": "n1"}}),
                by(Verb::Updated, &["kubelet"]),
            ),
        ],
    );
    let mut reader = history.reader().unwrap();
    expect![[r#"
        1 ended Some(2026-11-23T14:00:30Z) middle None
          spec.image = "b" since #3 by ["helm"], before "a"
          spec.paused = removed since #2 by ["kubectl-edit"], before true
          spec.replicas = 3 since #3 by ["hpa"], before 2
        0 ended None middle Some(2026-11-23T14:00:40Z)
          spec.node = "n1" since or before #5 by [], before -
          status.phase = "Failed" since #6 by ["kubelet"], before "Running"
    "#]]
    .assert_eq(&blamed(&mut reader, "cart"));
}

#[test]
fn a_recreated_object_ends_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let old = object("pods", Some("shop"), "web", "1");
    let new = ObjectId { uid: "2".to_owned(), ..old.clone() };
    let again =
        observation(&new, 2, at(10), &json!({"spec": 2}), changed(change(Verb::Recreated, &["helm"], &[])));
    let again = Observation { replaces: Some("1".to_owned()), ..again };
    commit(
        &mut history,
        [
            observation(&old, 1, at(0), &json!({"spec": 1}), changed(change(Verb::Added, &["helm"], &[]))),
            again,
        ],
    );
    let mut reader = history.reader().unwrap();
    let uids = |reader: &mut Reader, at| -> Vec<String> {
        let state = reader.state(&Scope::default(), Some(at)).unwrap();
        state.into_iter().map(|it| it.object.uid).collect()
    };
    assert_eq!(uids(&mut reader, at(-1)), [""; 0]);
    assert_eq!(uids(&mut reader, at(5)), ["1"]);
    assert_eq!(uids(&mut reader, at(10)), ["2"]);
}

#[test]
fn noise_is_the_current_state_and_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let node = object("nodes", None, "n1", "1");
    let beat = |rv: u64| json!({"status": {"heartbeat": rv}});
    commit(&mut history, [observation(&node, 1, at(0), &beat(1), known())]);
    for rv in 2..100 {
        commit(&mut history, [observation(&node, rv, at(0), &beat(rv), noise())]);
    }
    drop(history);
    let mut reader = open(&path).reader().unwrap();
    assert!(reader.records(&Filter::default(), &Page::newest(10)).unwrap().records.is_empty());
    let state = reader.state(&Scope::default(), None).unwrap();
    let [current] = &state[..] else { panic!() };
    assert_eq!((current.rv.as_str(), current.body.value()), ("99", beat(99)));
    assert_eq!(reader.check().unwrap().versions, 1);
}

/// Details of many bytes take many times as many in memory.
#[test]
fn k5_a_page_of_large_changes_is_short_and_says_that_there_are_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let web = object("pods", Some("shop"), "web", "1");
    for rv in 1..=10 {
        let mut large = change(Verb::Updated, &["helm"], &["spec"]);
        large.diff = json!([{"path": "spec", "kind": "changed", "new": "x".repeat(500 << 10)}]);
        commit(&mut history, [observation(&web, rv, at(0), &json!({"spec": rv}), changed(large))]);
    }
    let mut batch = Batch::default();
    batch.gap(at(1), at(2), None, "a gap");
    history.commit(&batch).unwrap();
    let mut reader = history.reader().unwrap();
    let filter = Filter { gaps: true, ..Filter::default() };
    let (mut pages, mut seen) = (0, Vec::new());
    let mut page = Page::oldest(100);
    loop {
        let found = reader.records(&filter, &page).unwrap();
        pages += 1;
        assert!(found.records.len() <= 6, "{}", found.records.len());
        seen.extend(found.records.iter().map(|record| record.number().0));
        if !found.more {
            break;
        }
        page = page.after(Number(*seen.last().unwrap()));
    }
    assert_eq!((seen, pages), ((1..=11).collect(), 3));
}

#[test]
fn retention_keeps_what_a_sink_has_not_taken_up_to_a_limit_that_it_reports() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    history.add_sink("slack").unwrap();
    let web = object("pods", Some("shop"), "web", "1");
    for rv in 1..=100 {
        let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
        commit(&mut history, [observation(&web, rv, at(0), &json!({"spec": rv}), what)]);
    }
    // Age is measured from the last record.
    let late = observation(&web, 101, at(3_600), &json!({"spec": 101}), noise());
    commit(&mut history, [late]);
    let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
    commit(&mut history, [observation(&web, 102, at(3_600), &json!({"spec": 102}), what)]);
    history.settle_sink("slack", &settled(20)).unwrap();
    let kept = Retention { age: Some(Duration::from_secs(60)), for_sinks: 1_000, ..Retention::default() };
    let retained = retain(&mut history, &kept, at(7_200));
    assert_eq!((retained.complete_after, retained.versions, retained.lost.len()), (Number(20), 19, 0));
    let retained = retain(&mut history, &Retention { for_sinks: 31, ..kept }, at(7_200));
    let lost = Lost { sink: "slack".to_owned(), after: Number(20), up_to: Number(70), records: 50 };
    assert_eq!((retained.complete_after, retained.lost), (Number(70), vec![lost]));
    let mut reader = history.reader().unwrap();
    let pending = reader.pending("slack", 1_000).unwrap().records;
    let numbers: Vec<_> = pending.iter().map(|record| record.number().0).collect();
    assert_eq!(numbers, (71..=101).collect::<Vec<_>>());
    assert_eq!(reader.sinks().unwrap()[0].lost, 50);
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
}

/// Issue 21, 1: a time is a place in the log, whatever the clock does.
#[test]
fn k1_no_record_is_earlier_than_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let mut rv = 0;
    let mut write = |history: &mut History, name: &str, seconds: i64, verb| {
        rv += 1;
        let object = object("pods", Some("shop"), name, name);
        let what = changed(change(verb, &["helm"], &["spec"]));
        commit(history, [observation(&object, rv, at(seconds), &json!({"spec": rv}), what)]);
    };
    write(&mut history, "web", 100, Verb::Added);
    write(&mut history, "web", 110, Verb::Updated);
    // The clock is set back by 50 s, and goes on.
    write(&mut history, "db", 60, Verb::Added);
    write(&mut history, "db", 61, Verb::Updated);
    write(&mut history, "web", 120, Verb::Updated);
    // It had been an hour and 40 s ahead: from now on it is right.
    write(&mut history, "web", 3_720, Verb::Updated);
    write(&mut history, "db", 80, Verb::Updated);
    let mut reader = history.reader().unwrap();
    let filter = Filter { gaps: true, ..Filter::default() };
    let records = reader.records(&filter, &Page::oldest(100)).unwrap().records;
    let told: Vec<String> = records
        .iter()
        .map(|record| match record {
            Record::Change(change) => format!("{} {}", change.object.name, change.observed_at - at(0)),
            Record::Gap(gap) => format!("{} to {}: {}", gap.from - at(0), gap.to - at(0), gap.reason),
            Record::Scrubbed(_) | Record::Event(_) => unreachable!(),
        })
        .collect();
    let expected = expect![[r#"
        web PT100S
        web PT110S
        PT60S to PT110S: the clock was set back by 50 s
        db PT110S
        db PT110S
        web PT120S
        web PT3720S
        PT80S to PT3720S: the clock was set back by 3640 s
        db PT80S"#]];
    expected.assert_eq(&told.join("\n"));
    let mut state = |seconds: i64| -> Vec<String> {
        let state = reader.state(&Scope::default(), Some(at(seconds))).unwrap();
        state.iter().map(|version| format!("{} {}", version.object.name, version.rv)).collect()
    };
    assert_eq!(state(59), [""; 0]);
    assert_eq!(state(105), ["web 1"]);
    assert_eq!(state(110), ["db 4", "web 2"]);
    assert_eq!(state(4_000), ["db 7", "web 6"]);
}

/// Issue 19, attack 8: a clock that is ahead.
#[test]
fn k1_a_clock_that_jumps_removes_nothing_and_a_run_no_more_than_a_day() {
    const DAY: i64 = 24 * 60 * 60;
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let web = object("pods", Some("shop"), "web", "1");
    let mut rv = 0;
    let mut write = |history: &mut History, time: i64| {
        rv += 1;
        let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
        commit(history, [observation(&web, rv, at(time), &json!({"spec": rv}), what)]);
    };
    // Ten days with ten records each.
    for hour in 0..100 {
        write(&mut history, hour * DAY / 10);
    }
    let kept = Retention { age: Some(Duration::from_secs(30 * 24 * 60 * 60)), ..Retention::default() };
    assert_eq!(retain(&mut history, &kept, at(50 * DAY)).versions, 0, "the clock is 40 days ahead");
    // Even a record with that time removes no more than a day in one run.
    write(&mut history, 50 * DAY);
    let plan = history.reader().unwrap().plan(&kept, at(50 * DAY)).unwrap();
    assert!(plan.leaves_some());
    assert_eq!(retain(&mut history, &kept, at(50 * DAY)).complete_after, Number(10));
    // The clock is right again, so the last record is.
    write(&mut history, 10 * DAY);
    assert_eq!(retain(&mut history, &kept, at(10 * DAY)).complete_after, Number(10));
    // Records out of time stop no limit in number: each run goes on where the former one ended.
    let few = Retention { count: Some(1), ..Retention::default() };
    let ends: Vec<u64> = (0..12).map(|_| retain(&mut history, &few, at(10 * DAY)).complete_after.0).collect();
    assert_eq!(ends, [20, 30, 40, 50, 60, 70, 80, 90, 100, 102, 102, 102]);
    assert_eq!(history.reader().unwrap().check().unwrap().problems, [""; 0]);
}

#[test]
fn content_that_repeats_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let mut random = fastrand::Rng::with_seed(1);
    let certificate: String = (0..20_000).map(|_| random.alphanumeric()).collect();
    let mut batch = Batch::default();
    for number in 0..200 {
        let of = object("configmaps", Some(&format!("ns-{number}")), "root-ca", &format!("uid-{number}"));
        let body = json!({"metadata": {"namespace": number}, "data": {"ca.crt": certificate}});
        batch.observe(observation(&of, number, at(0), &body, known()));
    }
    history.commit(&batch).unwrap();
    drop(history);
    let size = crate::store::bytes(&path, "contents");
    assert!(size < 400 << 10, "{size} bytes for 200 times 20,000");
}

#[test]
fn errors_and_debug_output_have_no_content_of_objects() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let nobody = object("pods", None, "nobody", "");
    let mut batch = Batch::default();
    batch.observe(observation(&nobody, 1, at(0), &json!({"password": "hunter2"}), known()));
    let error = history.commit(&batch).unwrap_err();
    let texts = [format!("{error} {error:?}"), format!("{batch:?}"), format!("{history:?}")];
    assert!(texts.iter().all(|text| !text.contains("hunter2")), "{texts:?}");
}

#[test]
fn notes_and_dead_letters_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let cart = object("deployments", Some("shop"), "cart", "1");
    let mut batch = Batch::default();
    for rv in 1..=4 {
        let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
        batch.observe(observation(&cart, rv, at(0), &json!({"spec": rv}), what));
    }
    batch.note("watched-until", "2026-11-23T14:05:00Z");
    history.add_sink("slack").unwrap();
    history.commit(&batch).unwrap();
    let mut batch = Batch::default();
    batch.note("watched-until", "2026-11-23T14:06:00Z");
    assert!(!batch.is_empty());
    assert_eq!(history.commit(&batch).unwrap(), Number(4));

    let letter =
        |number| DeadLetter { number: Number(number), object: u64::MAX - number, reason: "400".to_owned() };
    let tail = || Some("a tail".to_owned());
    let two = Settled { dead: vec![letter(1), letter(3)], tail: tail(), ..settled(3) };
    history.settle_sink("slack", &two).unwrap();
    drop(history);

    let mut history = open(&path);
    let mut reader = history.reader().unwrap();
    assert_eq!(reader.notes().unwrap()["watched-until"], "2026-11-23T14:06:00Z");
    // A tail stays until there is another one.
    history.settle_sink("slack", &settled(3)).unwrap();
    assert_eq!(reader.sinks().unwrap()[0].tail, tail());
    assert_eq!(reader.dead_letters("slack", &Page::newest(10)).unwrap(), [letter(3), letter(1)]);
    assert_eq!(reader.dead_letters("slack", &Page::newest(1)).unwrap(), [letter(3)]);
    assert_eq!(reader.dead_letters("slack", &Page::oldest(1)).unwrap(), [letter(1)]);
    assert_eq!(reader.dead_letters("slack", &Page::oldest(10).after(Number(1))).unwrap(), [letter(3)]);
    assert_eq!(reader.sinks().unwrap()[0].dead, 2);

    history.settle_sink("slack", &Settled { resent: vec![Number(3)], ..settled(3) }).unwrap();
    assert_eq!(reader.dead_letters("slack", &Page::newest(10)).unwrap(), [letter(1)]);
    // All or nothing.
    let unknown = Settled { dead: vec![letter(2)], ..settled(4) };
    assert!(history.settle_sink("mail", &unknown).is_err());
    assert_eq!(reader.dead_letters("mail", &Page::newest(10)).unwrap(), []);
    history.remove_sink("slack").unwrap();
    assert_eq!(reader.dead_letters("slack", &Page::newest(10)).unwrap(), []);
}

#[test]
fn what_changed_in_a_time_is_found_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let [cart, shop] = ["cart", "shop"].map(|name| object("deployments", Some("web"), name, name));
    let node = object("nodes", None, "n1", "n1");
    let by = |verb| changed(change(verb, &["helm"], &["spec"]));
    let body = json!({"spec": 1});
    commit(
        &mut history,
        [
            observation(&node, 1, at(0), &body, known()),
            observation(&cart, 2, at(1), &body, by(Verb::Added)),
            observation(&shop, 3, at(2), &body, by(Verb::Added)),
            observation(&cart, 4, at(3), &body, by(Verb::Deleted)),
        ],
    );
    let mut batch = Batch::default();
    batch.gap(at(4), at(5), None, "test");
    history.commit(&batch).unwrap();
    // Noise leads to another state, too.
    commit(&mut history, [observation(&shop, 5, at(7), &json!({"spec": 2}), noise())]);
    let mut reader = history.reader().unwrap();
    let mut changed = |scope: &Scope, from, to| -> Vec<String> {
        let found = reader.changed(scope, from, to).unwrap();
        found.into_iter().map(|it| it.object.name).collect()
    };
    // An object that was there from the beginning did not change.
    assert_eq!(changed(&Scope::default(), None, None), ["shop", "cart"]);
    assert_eq!(changed(&Scope::default(), Some(at(2)), Some(at(3))), ["shop"]);
    assert_eq!(changed(&Scope::default(), Some(at(3)), Some(at(6))), ["cart"]);
    let only = |name: &str| Scope { name: Some(name.to_owned()), ..Scope::default() };
    assert_eq!(changed(&only("cart"), None, Some(at(3))), ["cart"]);
    assert_eq!(changed(&only("n1"), None, None), [""; 0]);

    assert_eq!(changed(&Scope::default(), Some(at(7)), Some(at(8))), ["shop"]);
    assert_eq!(changed(&only("cart"), Some(at(4)), None), [""; 0]);

    let size = reader.size().unwrap();
    assert!(size.bytes > 0);
    assert_eq!((size.changes, size.gaps, size.objects, size.existing), (3, 1, 3, 2));
    assert_eq!(reader.count_after(Number(2)).unwrap(), 3);
    assert_eq!(reader.complete_since().unwrap(), Some(at(0)));
    let version = reader.version_of(Number(3)).unwrap().unwrap();
    assert_eq!((version.object.name.as_str(), version.rv.as_str()), ("shop", "3"));
    assert_eq!((reader.version_of(Number(5)).unwrap(), reader.version_of(Number(9)).unwrap()), (None, None));
}

/// Each step is a transaction: recording waits for no more than one.
#[test]
fn k5_a_step_of_retention_is_a_few_versions() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let mut random = fastrand::Rng::with_seed(1);
    let cart = object("deployments", Some("shop"), "cart", "1");
    for rv in 1..=1_000 {
        let mut batch = Batch::default();
        let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
        batch.observe(observation(&cart, rv, at(0), &body(&mut random, &cart, rv), what));
        history.commit(&batch).unwrap();
    }
    let retention = Retention { count: Some(10), ..Retention::default() };
    let plan = history.reader().unwrap().plan(&retention, at(1)).unwrap();
    let (mut removed, mut steps) = (0, 0);
    loop {
        let step = history.retain(&plan).unwrap();
        if !step.more {
            break;
        }
        assert!(step.versions <= 64 && step.rebased <= 1, "{step:?}");
        (removed, steps) = (removed + step.versions, steps + 1);
    }
    assert!(removed >= 989 && steps >= 990 / 64, "{removed} versions in {steps} steps");
}

/// Of very many changes, the latest are counted one by one, and of the others at most the number is known.
#[test]
fn a_survey_counts_the_latest_changes_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("h.db"));
    let (parts, each) = (5, 5_000);
    for second in 0..parts {
        let mut batch = Batch::default();
        for one in 0..each {
            let name = format!("p-{second}-{one}");
            let object = object(if one % 2 == 0 { "pods" } else { "nodes" }, Some("shop"), &name, &name);
            let change = changed(change(Verb::Added, &["helm"], &[]));
            batch.observe(observation(&object, 1, at(second), &json!({"name": name}), change));
        }
        history.commit(&batch).unwrap();
    }
    let mut reader = history.reader().unwrap();
    let times: Vec<_> = (0..=parts).map(at).collect();
    let survey = reader.survey(&Filter::default(), &times).unwrap();
    let totals: Vec<u64> = survey.parts.iter().map(Counts::total).collect();
    assert_eq!(totals, [each; 5]);
    assert_eq!((survey.parts[0].others, survey.parts[1].others), (each, 0));
    assert_eq!(survey.counted_since, Some(at(1)));
    assert_eq!(survey.kinds.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [10_000, 10_000]);
    assert_eq!(survey.managers, [("helm".to_owned(), 20_000)]);

    // Of a part of them, nothing is said of the time before.
    let kind = KindName { group: None, resource: "pods".to_owned() };
    let scope = Scope { kinds: vec![kind], ..Scope::default() };
    let survey = reader.survey(&Filter { scope, ..Filter::default() }, &times).unwrap();
    assert_eq!((survey.counted_since, survey.parts[0].added), (None, each / 2));
}

#[test]
fn k5_a_question_ends_with_the_patience_and_the_reader_answers_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let web = object("pods", Some("shop"), "web", "1");
    let versions = (1..=5_000).map(|rv| {
        let replicas = change(Verb::Updated, &["helm"], &["spec.replicas"]);
        observation(&web, rv, at(0), &json!({"spec": rv}), changed(replicas))
    });
    commit(&mut history, versions);
    let mut reader = history.reader().unwrap();
    let incarnation = reader.incarnations(&Scope::default()).unwrap().remove(0);
    let mut asked = |deadline, is_over: bool| {
        reader.wait(&Patience { deadline, is_over: Arc::new(is_over.into()) }).unwrap();
        // The first works in SQLite, the others unpack.
        [
            reader.survey(&Filter::default(), &[at(0), at(1)]).map(drop),
            reader.records(&Filter::default(), &Page::newest(10)).map(drop),
            reader.blame(&incarnation, None, &fields).map(drop),
        ]
    };
    for (deadline, is_over) in [(Some(Instant::now()), false), (None, true)] {
        let late = asked(deadline, is_over);
        assert!(late.iter().all(|answer| matches!(answer, Err(Error::Late))), "{late:?}");
        let answered = asked(None, false);
        assert!(answered.iter().all(Result::is_ok), "{answered:?}");
    }
    let answered = asked(Some(Instant::now() + Duration::from_secs(3_600)), false);
    assert!(answered.iter().all(Result::is_ok), "{answered:?}");
}
