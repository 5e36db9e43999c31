//! A reader that is limited to a sight: random histories against a filter of everything, and two tenants of one namespace.

use std::collections::BTreeSet;

use fastrand::Rng;
use kubediff_history::*;
use serde_json::json;

use crate::world::{at, change, changed, known, object, observation, open};

const SPACES: &[&str] = &["shop", "ops", "dev"];
const RESOURCES: &[&str] = &["pods", "deployments", "nodes"];

fn right(resource: &str, namespace: Option<&str>) -> Right {
    let group = if resource == "deployments" { "apps" } else { "" };
    Right {
        resource: KindName { group: Some(group.to_owned()), resource: resource.to_owned() },
        namespace: namespace.map(str::to_owned),
        since: None,
        name: None,
    }
}

fn namespace(name: &str, uid: &str) -> ObjectId {
    let gvk = Gvk { group: String::new(), version: "v1".to_owned(), kind: "Namespace".to_owned() };
    ObjectId { gvk, ..object("namespaces", None, name, uid) }
}

/// An object as the server made it at a time.
fn made(of: &ObjectId, rv: u64, seconds: i64) -> serde_json::Value {
    json!({"metadata": {"name": of.name, "uid": of.uid, "creationTimestamp": at(seconds), "generation": rv}})
}

struct Log {
    history: History,
    rv: u64,
    clock: i64,
}

impl Log {
    fn put(&mut self, of: &ObjectId, verb: Option<Verb>, created: i64) -> Number {
        self.rv += 1;
        let how = match verb {
            None => known(),
            Some(verb) => changed(change(verb, &["helm"], &["spec.replicas"])),
        };
        let mut batch = Batch::default();
        batch.observe(observation(of, self.rv, at(self.clock), &made(of, self.rv, created), how));
        self.history.commit(&batch).unwrap()
    }
}

/// A history of many objects in namespaces that it has seen.
fn random(log: &mut Log, random: &mut Rng) {
    for name in SPACES {
        log.put(&namespace(name, &format!("ns-{name}")), None, 0);
    }
    let mut alive: Vec<(ObjectId, i64)> = Vec::new();
    for step in 0..250 {
        log.clock += random.i64(0..5);
        if random.u8(..) < 20 {
            let mut batch = Batch::default();
            let resource = ["pods", "deployments.apps", "deployments.apps/shop", "nodes"][random.usize(..4)];
            batch.gap(at(log.clock), at(log.clock), Some(resource).filter(|_| random.bool()), "was lost");
            batch.reached(resource, "1");
            log.history.commit(&batch).unwrap();
        } else if alive.is_empty() || random.u8(..3) == 0 {
            let resource = RESOURCES[random.usize(..RESOURCES.len())];
            let space = (resource != "nodes").then(|| SPACES[random.usize(..SPACES.len())]);
            let of =
                object(resource, space, ["cart", "web", "db"][random.usize(..3)], &format!("uid-{step}"));
            log.put(&of, [None, Some(Verb::Added)][random.usize(..2)], log.clock);
            alive.push((of, log.clock));
        } else {
            let place = random.usize(..alive.len());
            let (of, created) = alive[place].clone();
            let verb = if random.u8(..3) == 0 { Verb::Deleted } else { Verb::Updated };
            log.put(&of, Some(verb), created);
            if verb == Verb::Deleted {
                alive.remove(place);
            }
        }
    }
}

fn sight(random: &mut Rng) -> Sight {
    let mut sight = Sight::default();
    for resource in RESOURCES {
        if random.u8(..4) == 0 {
            sight.rights.push(right(resource, None));
        } else if *resource != "nodes" {
            let spaces = SPACES.iter().filter(|_| random.bool());
            sight.rights.extend(spaces.map(|space| right(resource, Some(space))));
        }
    }
    sight
}

fn shows(sight: &Sight, object: &ObjectId) -> bool {
    sight.rights.iter().any(|right| {
        right.resource.resource == object.resource
            && (right.namespace.is_none() || right.namespace == object.namespace)
    })
}

/// Gaps and positions of a resource that somebody sees, in a namespace where they see it.
fn shows_target(sight: &Sight, target: &str) -> bool {
    let (resource, namespace) = target.split_once('/').map_or((target, None), |(of, at)| (of, Some(at)));
    sight.rights.iter().any(|right| {
        let sees_all = right.namespace.is_none() || namespace.is_none();
        right.resource.to_string() == resource && (sees_all || right.namespace.as_deref() == namespace)
    })
}

fn questions(random: &mut Rng) -> Filter {
    let kinds: &[&str] = [&[][..], &["pods"], &["pods", "deployments"], &["nodes"]][random.usize(..4)];
    let kinds = kinds.iter().map(|name| KindName { group: None, resource: (*name).to_owned() }).collect();
    let namespaces: &[&str] = [&[][..], &["shop"], &["ops", "dev"]][random.usize(..3)];
    let namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
    let name = (random.u8(..3) == 0).then(|| "cart".to_owned());
    let part = (random.u8(..4) == 0).then(|| "e".to_owned());
    Filter {
        scope: Scope { kinds, namespaces, name, part, uid: None },
        from: random.bool().then(|| at(random.i64(0..400))),
        to: random.bool().then(|| at(random.i64(200..600))),
        manager: (random.u8(..3) == 0).then(|| "h*".to_owned()),
        paths: if random.u8(..3) == 0 { vec!["spec".to_owned()] } else { Vec::new() },
        gaps: random.bool(),
        ..Filter::default()
    }
}

/// All records of a question, page by page.
fn all(reader: &mut Reader, filter: &Filter, limit: usize) -> Vec<Record> {
    let (mut found, mut page) = (Vec::new(), Page::newest(limit));
    loop {
        let records = reader.records(filter, &page).unwrap();
        found.extend(records.records);
        match found.last().filter(|_| records.more) {
            Some(last) => page = page.after(Record::number(last)),
            None => return found,
        }
    }
}

#[test]
fn k9_a_limited_reader_answers_as_if_there_were_nothing_else() {
    for seed in 0..4 {
        println!("seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        let mut random = Rng::with_seed(seed);
        let mut log = Log { history: open(&folder.path().join("history.db")), rv: 0, clock: 0 };
        self::random(&mut log, &mut random);
        let mut whole = log.history.reader().unwrap();
        let mut limited = log.history.reader().unwrap();
        for _ in 0..5 {
            let sight = sight(&mut random);
            limited.limit(Some(&sight)).unwrap();
            let last = whole.last().unwrap().unwrap().0;
            for number in 1..=last.0 {
                let number = Number(number);
                let version = whole.version_of(number).unwrap().filter(|it| shows(&sight, &it.object));
                assert_eq!(limited.version_of(number).unwrap(), version);
                let is_other = version.is_none() && whole.version_of(number).unwrap().is_some();
                assert_eq!(limited.sees([number]).unwrap(), !is_other);
                if version.is_some() {
                    assert_eq!(
                        limited.version_before(number).unwrap(),
                        whole.version_before(number).unwrap()
                    );
                } else {
                    assert_eq!(limited.version_before(number).unwrap(), None);
                }
            }
            for _ in 0..20 {
                let filter = questions(&mut random);
                let expected: Vec<Record> = all(&mut whole, &filter, 100)
                    .into_iter()
                    .filter(|record| match record {
                        Record::Change(change) => shows(&sight, &change.object),
                        Record::Gap(gap) => gap.resource.as_ref().is_none_or(|it| shows_target(&sight, it)),
                        _ => false,
                    })
                    .collect();
                let limit = random.usize(1..40);
                assert_eq!(all(&mut limited, &filter, limit), expected, "{filter:?} {sight:?}");
                let changes = expected.iter().filter(|record| matches!(record, Record::Change(_))).count();
                if let (Some(from), Some(to), true) = (filter.from, filter.to, filter.from < filter.to) {
                    let survey = limited.survey(&filter, &[from, to]).unwrap();
                    assert_eq!(survey.parts.iter().map(Counts::total).sum::<u64>(), changes as u64);
                    let spaces = |sight: &Sight, space: &str| {
                        sight
                            .rights
                            .iter()
                            .any(|it| it.namespace.is_none() || it.namespace.as_deref() == Some(space))
                    };
                    assert!(survey.namespaces.iter().all(|(name, _)| spaces(&sight, name)));
                }
                let of_sight = |all: Vec<Incarnation>| -> Vec<Incarnation> {
                    all.into_iter().filter(|it| shows(&sight, &it.object)).collect()
                };
                let expected = of_sight(whole.incarnations(&filter.scope).unwrap());
                assert_eq!(limited.incarnations(&filter.scope).unwrap(), expected);
                let when = random.bool().then(|| at(random.i64(0..600)));
                let mut expected = whole.state(&filter.scope, when).unwrap();
                expected.retain(|version| shows(&sight, &version.object));
                assert_eq!(limited.state(&filter.scope, when).unwrap(), expected, "{when:?} {filter:?}");
            }
            let kinds: BTreeSet<String> =
                limited.kinds().unwrap().into_iter().map(|(_, plural)| plural).collect();
            assert!(kinds.iter().all(|kind| sight.rights.iter().any(|it| it.resource.resource == *kind)));
            let mut expected = whole.positions().unwrap();
            expected.retain(|target, _| shows_target(&sight, target));
            assert_eq!(limited.positions().unwrap(), expected);
            assert_eq!(limited.sinks().unwrap(), []);
        }
        limited.limit(None).unwrap();
        let everything = Filter { gaps: true, ..Filter::default() };
        assert_eq!(all(&mut limited, &everything, 50), all(&mut whole, &everything, 50));
        assert_eq!(limited.words().unwrap(), whole.words().unwrap());
    }
}

/// The names of the pods that somebody with rights in the namespace sees, which was made at a time.
fn seen(reader: &mut Reader, since: i64) -> BTreeSet<String> {
    let right = Right { since: Some(at(since)), ..right("pods", Some("shop")) };
    reader.limit(Some(&Sight { rights: vec![right] })).unwrap();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let everything = Filter { gaps: true, ..Filter::default() };
    for record in all(reader, &everything, 3) {
        if let Record::Change(change) = record {
            names.insert(change.object.uid);
        }
    }
    let scope = Scope::default();
    let known: BTreeSet<String> =
        reader.incarnations(&scope).unwrap().into_iter().map(|it| it.object.uid).collect();
    assert!(names.is_subset(&known), "{names:?} {known:?}");
    for seconds in [0, 500, 1_500, 100_000] {
        for version in reader.state(&scope, Some(at(seconds))).unwrap() {
            assert!(known.contains(&version.object.uid));
        }
    }
    assert_eq!(reader.kinds().unwrap().is_empty(), known.is_empty());
    known
}

#[test]
fn k9_the_next_tenant_of_a_namespace_sees_nothing_of_the_former_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log { history: open(&folder.path().join("history.db")), rv: 0, clock: 5 };
    let pod = |uid: &str| object("pods", Some("shop"), uid, uid);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let mut reader = log.history.reader().unwrap();
    log.put(&pod("long gone"), Some(Verb::Added), 0);
    log.put(&pod("long gone"), Some(Verb::Deleted), 0);
    log.put(&pod("first"), None, 1);
    // A namespace without a former one has all of the history.
    assert_eq!(seen(&mut reader, -1), names(&["first", "long gone"]));
    assert_eq!(seen(&mut reader, 2), names(&[]));
    log.clock = 1_000;
    log.put(&pod("first"), Some(Verb::Deleted), 1);
    // Watches are apart: the new namespace's pod comes before one of the former namespace.
    log.put(&pod("early"), Some(Verb::Added), 1_001);
    log.put(&pod("late"), Some(Verb::Added), 998);
    log.put(&pod("late"), Some(Verb::Deleted), 998);
    // Times have seconds: of these, one may be of either.
    log.put(&pod("at once"), Some(Verb::Added), 1_000);
    log.put(&pod("gone at once"), Some(Verb::Added), 1_000);
    log.put(&pod("gone at once"), Some(Verb::Deleted), 1_000);
    assert_eq!(seen(&mut reader, 1_000), names(&["early", "at once"]));
    log.clock = 100_000;
    log.put(&pod("later"), Some(Verb::Added), 99_999);
    log.put(&pod("early"), Some(Verb::Deleted), 1_001);
    assert_eq!(seen(&mut reader, 1_000), names(&["early", "at once", "later"]));
    // An object by its name is bound to the namespace, too; a right to all namespaces is not.
    for (name, namespace, expected) in
        [("first", Some("shop"), false), ("later", Some("shop"), true), ("first", None, false)]
    {
        let right = Right { name: Some(name.to_owned()), since: Some(at(1_000)), ..right("pods", namespace) };
        reader.limit(Some(&Sight { rights: vec![right] })).unwrap();
        assert_eq!(
            reader.incarnations(&Scope::default()).unwrap().len() == 1,
            expected,
            "{name} {namespace:?}"
        );
    }
    reader.limit(Some(&Sight { rights: vec![right("pods", None)] })).unwrap();
    assert_eq!(reader.incarnations(&Scope::default()).unwrap().len(), 7);
}

#[test]
fn k9_a_recreated_object_says_nothing_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log { history: open(&folder.path().join("history.db")), rv: 0, clock: 10 };
    log.put(&object("pods", Some("shop"), "cart", "former"), None, 0);
    let present = object("pods", Some("shop"), "cart", "present");
    log.clock = 50;
    let number = log.put(&present, Some(Verb::Recreated), 45);
    let mut reader = log.history.reader().unwrap();
    let whole = reader.version_of(number).unwrap().unwrap().change.unwrap();
    assert!(!whole.paths.is_empty() && !whole.diff.is_null(), "{whole:?}");
    let right = Right { since: Some(at(40)), ..right("pods", Some("shop")) };
    reader.limit(Some(&Sight { rights: vec![right] })).unwrap();
    let limited = reader.version_of(number).unwrap().unwrap().change.unwrap();
    let nothing = serde_json::Value::Null;
    assert_eq!((&limited.diff, &*limited.summary, limited.paths.len()), (&nothing, "", 0));
    assert_eq!((limited.rv_before, limited.object), (None, present));
    let records = all(&mut reader, &Filter::default(), 10);
    assert!(matches!(&records[..], [Record::Change(change)] if change.diff.is_null()), "{records:?}");
    reader.limit(None).unwrap();
    assert_eq!(reader.version_of(number).unwrap().unwrap().change.unwrap(), whole);
}

#[test]
fn k9_a_clock_that_was_hours_ahead_shows_nothing_of_the_former_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log { history: open(&folder.path().join("history.db")), rv: 0, clock: 50_000 };
    let pod = |uid: &str| object("pods", Some("shop"), uid, uid);
    log.put(&pod("former"), Some(Verb::Added), 20);
    log.put(&pod("former"), Some(Verb::Deleted), 20);
    log.clock = 100;
    log.put(&pod("present"), Some(Verb::Added), 90);
    let mut reader = log.history.reader().unwrap();
    assert_eq!(seen(&mut reader, 60), ["present".to_owned()].into());
    assert_eq!(seen(&mut reader, 10), ["former".to_owned(), "present".to_owned()].into());
}
