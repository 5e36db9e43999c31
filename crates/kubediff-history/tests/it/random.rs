//! Issue 12, history store: random operations against a naive model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use kubediff_history::*;
use serde_json::json;

use crate::model::Model;
use crate::world::{Replaced, at, body, change, known, noise, object, open, retain, settled};

const NAMES: &[&str] = &["cart", "web", "db"];
const SPACES: &[&str] = &["shop", "ops"];
const MANAGERS: &[&str] = &["kubectl-edit", "helm", "kubelet"];
const PATHS: &[&str] = &["spec.replicas", "spec.image", "status.phase", "metadata.labels"];
/// In contents, paths, summaries and differences, and in reasons of gaps.
const MASKED: &[&str] = &["web:2", "VARIABLE_7", "image", "spec.replicas", "was lost"];

pub(crate) struct Play {
    random: Rng,
    pub(crate) model: Model,
    pub(crate) clock: i64,
    rv: u64,
    uids: u64,
    /// Whether the clock is hours ahead at times.
    is_wrong: bool,
}

#[test]
fn the_store_does_what_a_naive_one_does() {
    for seed in 0..crate::store::SEEDS {
        println!("seed {seed}");
        play(seed);
    }
}

fn play(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let mut reader = history.reader().unwrap();
    let mut play = Play::new(seed, seed % 2 == 1);
    for step in 0..150 {
        match play.random.u8(..100) {
            0..75 => {
                let batch = play.batch();
                let last = history.commit(&batch).unwrap();
                assert_eq!(last.0, play.model.last, "seed {seed}, step {step}");
            }
            75..80 => {
                // A batch with a fault leaves nothing behind.
                let kept = play.model.clone();
                let mut batch = play.batch();
                play.model = kept;
                let nobody = object("pods", None, "nobody", "");
                batch.observe(play.observation(&nobody, known()));
                assert!(matches!(history.commit(&batch), Err(Error::Invalid(_))));
                play.model.reopened();
            }
            80..85 => {
                let name = format!("sink {}", play.random.u8(..3));
                history.add_sink(&name).unwrap();
                play.model.sinks.entry(name).or_insert((play.model.last, 0));
            }
            85..90 => {
                let to = play.random.u64(..=play.model.last);
                let name = format!("sink {}", play.random.u8(..3));
                let found = play.model.sinks.get_mut(&name);
                assert_eq!(history.settle_sink(&name, &settled(to)).is_ok(), found.is_some());
                if let Some((position, _)) = found {
                    *position = to.max(*position);
                }
            }
            90..92 => {
                let masked = Replaced(MASKED[play.random.usize(..MASKED.len())]);
                let mut scrub = history.scrub_of_all();
                while history.scrub(&mut scrub, &masked).unwrap() {}
                play.model.mask(&masked);
            }
            92..96 => {
                let (retention, now) = play.retention();
                retain(&mut history, &retention, now);
                play.model.retain(&retention, now);
            }
            _ => {
                drop(history);
                history = open(&path);
                play.model.reopened();
            }
        }
        play.compare(&mut reader, &format!("seed {seed}, step {step}"));
        if step % 25 == 0 {
            assert_eq!(reader.check().unwrap().problems, [""; 0], "seed {seed}, step {step}");
        }
    }
    let checked = reader.check().unwrap();
    assert_eq!(checked.problems, [""; 0], "seed {seed}");
    let versions: usize = play.model.objects.values().map(|it| it.rows.len()).sum();
    assert_eq!(checked.versions, versions as u64, "seed {seed}");
    if !crate::store::IS_FILE {
        return;
    }
    let copy = folder.path().join("copy.db");
    reader.back_up(&copy).unwrap();
    let mut copy = Reader::open(&copy).unwrap();
    play.compare(&mut copy, &format!("seed {seed}, in the backup"));
    assert_eq!(copy.check().unwrap(), checked, "seed {seed}");
}

impl Play {
    pub(crate) fn new(seed: u64, is_wrong: bool) -> Self {
        Self { random: Rng::with_seed(seed), model: Model::default(), clock: 0, rv: 0, uids: 0, is_wrong }
    }

    fn time(&mut self) -> Timestamp {
        self.clock += self.random.i64(0..5);
        // Clocks are set back at times.
        at(self.clock
            + match self.random.u16(..200) {
                0..4 => -20,
                4 if self.is_wrong => 9_000,
                _ => 0,
            })
    }

    pub(crate) fn batch(&mut self) -> Batch {
        let mut batch = Batch::default();
        let before = self.model.last;
        for _ in 0..self.random.usize(1..25) {
            if self.random.u8(..40) == 0 {
                let (from, to) = (at(self.clock), self.time());
                batch.gap(from, to, None, "the watch was lost");
                self.model.gap(before, from, to, "the watch was lost");
                continue;
            }
            let observation = self.next();
            self.model.observe(&observation);
            batch.observe(observation);
        }
        let resource = ["pods", "deployments.apps"][self.random.usize(..2)];
        batch.reached(resource, self.rv.to_string());
        self.model.positions.insert(resource.to_owned(), self.rv.to_string());
        batch
    }

    fn next(&mut self) -> Observation {
        let all: Vec<_> = self.model.objects.values().collect();
        let one = (!all.is_empty()).then(|| all[self.random.usize(..all.len())].clone());
        let pick = |random: &mut Rng, list: &[&'static str]| list[random.usize(..list.len())];
        let (managers, paths) = (pick(&mut self.random, MANAGERS), pick(&mut self.random, PATHS));
        // An Event stays one.
        let was_event =
            one.as_ref().is_some_and(|it| it.rows[0].observation.record.object.resource == "events");
        let some = |verb| match was_event {
            true => ChangeRecord { verb, ..ChangeRecord::default() },
            false => change(verb, &[managers, managers, "kubelet"], &[paths, "spec.replicas"]),
        };
        let changed = |change| (if was_event { What::Event } else { What::Change }, change);
        let create = |play: &mut Self| {
            play.uids += 1;
            let resource = pick(&mut play.random, &["pods", "deployments", "nodes"]);
            let namespace = (resource != "nodes").then(|| pick(&mut play.random, SPACES));
            let name = pick(&mut play.random, NAMES);
            object(resource, namespace, name, &format!("uid-{}", play.uids))
        };
        match (self.random.u8(..100), one) {
            (0..10, _) | (_, None) => {
                let added = change(Verb::Added, &[managers], &[paths]);
                let what = if self.random.bool() { known() } else { (What::Change, added) };
                let object = create(self);
                self.observation(&object, what)
            }
            (33..43, Some(known)) => {
                self.uids += 1;
                let about = known.rows[0].observation.record.object.uid.clone();
                let (name, uid) = (format!("{about}.{}", self.uids), format!("uid-{}", self.uids));
                let event = object("events", Some(pick(&mut self.random, SPACES)), &name, &uid);
                let added = ChangeRecord { verb: Verb::Added, ..ChangeRecord::default() };
                self.observation(&event, (What::Event, added))
            }
            (10..20, Some(known)) => {
                let object = known.rows[0].observation.record.object.clone();
                self.observation(&object, noise())
            }
            (20..28, Some(known)) => {
                let object = known.rows[0].observation.record.object.clone();
                self.observation(&object, changed(some(Verb::Deleted)))
            }
            (28..33, Some(known)) => {
                let before = known.rows[0].observation.record.object.clone();
                let object = ObjectId { uid: create(self).uid, ..before.clone() };
                let replaces = Some(before.uid);
                Observation { replaces, ..self.observation(&object, changed(some(Verb::Recreated))) }
            }
            (_, Some(known)) => {
                let object = known.rows[0].observation.record.object.clone();
                let rv_before = known.rows.last().and_then(|row| row.observation.record.rv.clone());
                self.observation(&object, changed(ChangeRecord { rv_before, ..some(Verb::Updated) }))
            }
        }
    }

    fn observation(&mut self, object: &ObjectId, (what, change): (What, ChangeRecord)) -> Observation {
        self.rv += 1;
        let body = match self.random.u8(..40) {
            // An Event is about the same object all the time.
            _ if object.resource == "events" => {
                let about = object.name.split('.').next();
                Body::redacted(json!({"involvedObject": {"uid": about}, "count": self.rv}).to_string())
            }
            0 => Body::redacted(""),
            1 => Body::redacted(
                (0..self.random.usize(..6_000)).map(|_| self.random.u8(..)).collect::<Vec<_>>(),
            ),
            2 => Body::redacted(json!({"spec": {"same": "x".repeat(2_000)}}).to_string()),
            _ => Body::redacted(body(&mut self.random, object, self.rv).to_string()),
        };
        let origin = [Origin::Watch, Origin::List, Origin::Restart][self.random.usize(..3)];
        let observed_at = self.time();
        let (object, rv) = (object.clone(), Some(self.rv.to_string()));
        let record = ChangeRecord { object, rv, observed_at, origin, ..change };
        Observation { record, body, what, replaces: None }
    }

    fn retention(&mut self) -> (Retention, Timestamp) {
        let age = self.random.bool().then(|| Duration::from_secs(self.random.u64(..2_000)));
        let count = self.random.bool().then(|| self.random.u64(..1_500));
        let for_sinks = if self.random.bool() { self.random.u64(..1_000) } else { 0 };
        let event_age =
            (!self.is_wrong && self.random.bool()).then(|| Duration::from_secs(self.random.u64(..500)));
        (Retention { age, count, bytes: None, for_sinks, event_age, event_bytes: None }, at(self.clock))
    }

    fn scope(&mut self) -> Scope {
        let pick = |random: &mut Rng, list: &[&str]| {
            (random.u8(..3) == 0).then(|| list[random.usize(..list.len())].to_owned())
        };
        let some = |random: &mut Rng, list: &[&str]| -> Vec<String> {
            let count = if random.bool() { 0 } else { random.usize(1..3) };
            (0..count).map(|_| list[random.usize(..list.len())].to_owned()).collect()
        };
        let resources = some(&mut self.random, &["pods", "deployments", "nodes", "events", "none"]);
        let groups = &["", "apps"];
        let named = |resource| KindName { group: pick(&mut self.random, groups), resource };
        Scope {
            kinds: resources.into_iter().map(named).collect(),
            namespaces: some(&mut self.random, &["shop", "ops", "", "none"]),
            name: pick(&mut self.random, NAMES),
            part: (self.random.u8(..6) == 0)
                .then(|| self.random.choice(["A", "web", "b", "none"]).unwrap().to_owned()),
            uid: (self.random.u8(..8) == 0).then(|| format!("uid-{}", self.random.u64(..=self.uids))),
        }
    }

    pub(crate) fn compare(&mut self, reader: &mut Reader, place: &str) {
        self.compare_records(reader, place);
        self.compare_states(reader, place);
        self.compare_versions(reader, place);
        assert_eq!(reader.positions().unwrap(), self.model.positions, "{place}");
        let sinks = reader.sinks().unwrap();
        let sinks: Vec<_> = sinks.iter().map(|it| (it.name.as_str(), (it.position.0, it.lost))).collect();
        let model: Vec<_> = self.model.sinks.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        assert_eq!(sinks, model, "{place}");
        for (name, (position, _)) in &self.model.sinks {
            let filter = Filter { gaps: true, ..Filter::default() };
            let page = Page::oldest(7).after(Number(*position));
            let pending = reader.pending(name, 7).unwrap();
            assert_eq!((pending.records, pending.more), self.model.records(&filter, &page), "{place}");
        }
    }

    fn compare_records(&mut self, reader: &mut Reader, place: &str) {
        for _ in 0..4 {
            let scope = self.scope();
            let time = |random: &mut Rng, clock| (random.u8(..4) == 0).then(|| at(random.i64(0..=clock)));
            let pick = |random: &mut Rng, list: &[&str]| {
                (random.u8(..4) == 0).then(|| list[random.usize(..list.len())].to_owned())
            };
            let filter = Filter {
                gaps: scope == Scope::default(),
                scope,
                from: time(&mut self.random, self.clock),
                to: time(&mut self.random, self.clock),
                manager: pick(&mut self.random, &["kubectl-edit", "helm", "kube*", "*e*", "k[u]*", "none*"]),
                paths: (0..self.random.usize(..3))
                    .filter_map(|_| pick(&mut self.random, &["spec", "spec.replicas", "status", "none"]))
                    .collect(),
                user: None,
                events: self.random.bool(),
                in_words: self.random.bool(),
                verbs: if self.random.u8(..4) == 0 { vec![Verb::Deleted, Verb::Added] } else { Vec::new() },
            };
            let limit = self.random.usize(1..60);
            let mut page = if self.random.bool() { Page::newest(limit) } else { Page::oldest(limit) };
            if self.random.u8(..4) == 0 {
                page = page.until(Number(self.random.u64(..=self.model.last + 1)));
            }
            self.compare_survey(reader, &filter, place);
            loop {
                let found = reader.records(&filter, &page).unwrap();
                let model = self.model.records(&filter, &page);
                assert_eq!((&found.records, found.more), (&model.0, model.1), "{place}: {filter:?} {page:?}");
                match found.records.last() {
                    Some(last) if found.more && self.random.bool() => page = page.after(last.number()),
                    _ => break,
                }
            }
        }
    }

    /// Counts of a few parts of all time, and of what they are of.
    fn compare_survey(&mut self, reader: &mut Reader, filter: &Filter, place: &str) {
        let mut times: Vec<Timestamp> = (0..4).map(|_| at(self.random.i64(0..=self.clock))).collect();
        times.sort_unstable();
        times.dedup();
        // Where a clock was set back, a number is no time.
        if self.is_wrong {
            return;
        }
        let survey = reader.survey(filter, &times).unwrap();
        assert_eq!(survey.counted_since, None, "{place}");
        assert_eq!(survey.parts.len() + 1, times.len(), "{place}");
        let mut managers: BTreeMap<String, u64> = BTreeMap::new();
        let mut all = 0;
        for (part, ends) in survey.parts.iter().zip(times.windows(2)) {
            let within = Filter {
                from: Some(ends[0]),
                to: Some(ends[1]),
                gaps: false,
                events: false,
                ..filter.clone()
            };
            let (records, _) = self.model.records(&within, &Page::oldest(usize::MAX));
            let of = |verbs: &[Verb]| {
                let is_of = |it: &&Record| matches!(it, Record::Change(it) if verbs.contains(&it.verb));
                records.iter().filter(is_of).count() as u64
            };
            let counts = (of(&[Verb::Added]), of(&[Verb::Updated, Verb::Recreated]), of(&[Verb::Deleted]));
            assert_eq!((part.added, part.updated, part.deleted), counts, "{place}: {filter:?} {ends:?}");
            all += part.total();
            for record in &records {
                let Record::Change(change) = record else { continue };
                let names: BTreeSet<&String> = change.managers.iter().map(|it| &it.manager).collect();
                names.into_iter().for_each(|name| *managers.entry(name.clone()).or_default() += 1);
            }
        }
        let found: BTreeMap<String, u64> = survey.managers.iter().cloned().collect();
        assert_eq!(found, managers, "{place}: {filter:?}");
        for counts in [
            survey.kinds.iter().map(|(_, count)| count).sum::<u64>(),
            survey.namespaces.iter().map(|(_, count)| count).sum(),
        ] {
            assert_eq!(counts, all, "{place}: {filter:?}");
        }
    }

    fn compare_states(&mut self, reader: &mut Reader, place: &str) {
        // Of a time that came twice, an answer is one of two.
        let then = Some(at(self.random.i64(0..=self.clock)));
        for at in [None, then.filter(|_| !self.is_wrong)] {
            let scope = self.scope();
            let some = self.random.usize(1..30);
            let present = reader.present(&scope, at).unwrap();
            let mut found = Vec::new();
            for start in (0..present.len()).step_by(some) {
                let states = reader.states(&present, start..present.len().min(start + some)).unwrap();
                found.extend(
                    states
                        .into_iter()
                        .map(|it| (it.object.resource, it.object.uid, it.rv, it.body.bytes().to_vec())),
                );
            }
            // An object is present where it has a state.
            assert_eq!(present.len(), found.len(), "{place}: {scope:?} at {at:?}");
            found.sort();
            let model = self.model.state(&scope, at);
            let ids = |state: &[(String, String, String, Vec<u8>)]| -> Vec<String> {
                state
                    .iter()
                    .map(|(resource, uid, rv, body)| format!("{resource} {uid} {rv} {}", body.len()))
                    .collect()
            };
            assert_eq!(ids(&found), ids(&model), "{place}: {scope:?} at {at:?}");
            assert!(found == model, "{place}: {scope:?} at {at:?}");
            if let Some(at) = at {
                self.compare_keys(reader, &scope, at, &found, &format!("{place}: {scope:?} at {at}"));
            }
        }
    }

    /// The keys of a moment have the same objects, in the order of API servers.
    fn compare_keys(
        &mut self,
        reader: &mut Reader,
        scope: &Scope,
        at: Timestamp,
        found: &[(String, String, String, Vec<u8>)],
        place: &str,
    ) {
        let Some(moment) = reader.moment(at).unwrap() else { return assert!(found.is_empty(), "{place}") };
        assert_eq!(moment.time, at, "{place}: {moment:?}");
        let keys = reader.keys(scope, moment).unwrap();
        let all = reader.states(keys.present(), keys.within(None)).unwrap();
        let texts: Vec<String> = all
            .iter()
            .map(|it| format!("{}/{}", it.object.namespace.as_deref().unwrap_or_default(), it.object.name))
            .collect();
        assert!(texts.is_sorted(), "{place}: {texts:?}");
        let mut states: Vec<_> = all
            .into_iter()
            .map(|it| (it.object.resource, it.object.uid, it.rv, it.body.bytes().to_vec()))
            .collect();
        states.sort();
        assert!(states == found, "{place}");
        for space in SPACES {
            let within = texts.iter().filter(|text| text.starts_with(&format!("{space}/"))).count();
            assert_eq!(keys.within(Some(space)).len(), within, "{place}: {space}");
        }
        let name = NAMES[self.random.usize(..NAMES.len())];
        let after = texts.iter().filter(|text| **text <= format!("shop/{name}")).count();
        assert_eq!(keys.after("shop", name), after, "{place}");
    }

    /// Every version of one incarnation, one after another and each by itself.
    fn compare_versions(&mut self, reader: &mut Reader, place: &str) {
        if self.model.objects.is_empty() {
            return;
        }
        let at = self.random.usize(..self.model.objects.len());
        let (_, model) = self.model.objects.iter().nth(at).unwrap();
        let of = &model.rows[0].observation.record.object;
        let scope = Scope { uid: Some(of.uid.clone()), ..Scope::default() };
        let incarnations = reader.incarnations(&scope).unwrap();
        let [incarnation] = &incarnations[..] else { panic!("{place}: {incarnations:?}") };
        assert_eq!(incarnation.ended_at, model.ended.map(|(_, at)| at), "{place}");
        let mut found = Vec::new();
        reader
            .versions(incarnation, |version| {
                found.push(version);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(found.len(), model.rows.len(), "{place}");
        let mut former = None;
        for (version, row) in found.iter().zip(&model.rows) {
            assert_eq!(version.number.0, row.number, "{place}");
            assert!(version.body == row.observation.body, "{place}: version {}", row.number);
            if row.observation.what != What::Event {
                assert_eq!(version.change.clone().map(Record::Change), row.record(), "{place}");
            }
            let again = reader.version(incarnation, &At::Number(version.number)).unwrap();
            assert!(again.as_ref() == Some(version), "{place}: version {}", row.number);
            let before = reader.version(incarnation, &At::Before(version.number)).unwrap();
            assert!(before == former, "{place}: before version {}", row.number);
            former = again;
            let again =
                reader.version(incarnation, &At::Rv(row.observation.record.rv.clone().unwrap())).unwrap();
            assert!(again.as_ref() == Some(version), "{place}: version {}", row.number);
        }
    }
}
