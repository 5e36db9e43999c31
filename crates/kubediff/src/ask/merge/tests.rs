//! Random questions to the logs of several clusters in one PostgreSQL, beside a naive model: all records in a list, filtered and sorted.

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use kubediff_history::*;
use postgres_server::{Durability, Server};

use super::{Log, Merge};
use crate::ask::log::{Item, Question, Walk};
use crate::ask::names::Target;
use crate::ask::period::Period;

const SEEDS: [u64; 2] = [22, 4];
const QUESTIONS: usize = 40;
const CLUSTERS: [&str; 5] = ["east", "north", "quiet", "south", "west"];
const NAMESPACES: [&str; 3] = ["pay", "shop", "web"];
const KINDS: [(&str, &str, &str); 2] = [("", "Pod", "pods"), ("apps", "Deployment", "deployments")];
const MANAGERS: [&str; 3] = ["helm", "hpa", "kubelet"];

/// A record as the model has it.
#[derive(Debug, Clone)]
struct Known {
    cluster: usize,
    number: u64,
    at: i64,
    /// `None` for a gap.
    change: Option<(usize, usize, usize, Verb)>,
}

fn at(seconds: i64) -> Timestamp {
    "2026-11-23T14:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// Fills the log of a cluster.
fn fill(place: &Location, cluster: usize, random: &mut Rng, known: &mut Vec<Known>) {
    let of = Cluster { uid: format!("uid-{cluster}"), name: Some(CLUSTERS[cluster].to_owned()) };
    let mut history = History::at(place, &of, &Settings::default()).unwrap();
    // One of them has nothing.
    let records = if cluster == 2 { 0 } else { random.u64(20..120) };
    let (mut now, mut batch) = (random.i64(0..20), Batch::default());
    for number in 1..=records {
        // Many records are of one time, in several clusters.
        now += random.i64(0..3);
        if random.u8(..10) == 0 {
            // Each is an outage of its own.
            batch.gap(at(now - 1), at(now), Some("pods"), format!("cause {number}"));
            known.push(Known { cluster, number, at: now, change: None });
        } else {
            let (kind, namespace, manager) = (random.usize(..2), random.usize(..3), random.usize(..3));
            let verb = [Verb::Added, Verb::Updated][random.usize(..2)];
            let (group, kind_name, plural) = KINDS[kind];
            let record = ChangeRecord {
                object: ObjectId {
                    gvk: Gvk {
                        group: group.to_owned(),
                        version: "v1".to_owned(),
                        kind: kind_name.to_owned(),
                    },
                    resource: plural.to_owned(),
                    namespace: Some(NAMESPACES[namespace].to_owned()),
                    name: format!("o{number}"),
                    uid: format!("{cluster}-{number}"),
                },
                verb,
                rv: Some(number.to_string()),
                observed_at: at(now),
                managers: vec![Manager {
                    manager: MANAGERS[manager].to_owned(),
                    operation: "Update".to_owned(),
                    ..Manager::default()
                }],
                ..ChangeRecord::default()
            };
            batch.observe(Observation {
                record,
                body: Body::redacted("{}"),
                what: What::Change,
                replaces: None,
            });
            known.push(Known { cluster, number, at: now, change: Some((kind, namespace, manager, verb)) });
        }
        if random.u8(..8) == 0 || number == records {
            history.commit(&std::mem::take(&mut batch)).unwrap();
        }
    }
}

/// A random question, and whether it takes a record.
fn question(random: &mut Rng) -> (Question, impl Fn(&Known) -> bool + use<>) {
    let mut some = |most: usize| (random.u8(..3) == 0).then(|| random.usize(..most));
    let (kind, namespace, manager, verb) = (some(2), some(3), some(3), some(2));
    let (from, to) = (some(100), some(100));
    let (from, to) = match (from, to) {
        (Some(from), Some(to)) if from > to => (Some(to), Some(from)),
        other => other,
    };
    let verb = verb.map(|verb| [Verb::Added, Verb::Updated][verb]);
    let mut target = Target::default();
    target.scope.kinds.extend(
        kind.map(|kind| KindName {
            group: Some(KINDS[kind].0.to_owned()),
            resource: KINDS[kind].2.to_owned(),
        }),
    );
    target.scope.namespaces.extend(namespace.map(|namespace| NAMESPACES[namespace].to_owned()));
    let time = |seconds: Option<usize>| seconds.map(|seconds| at(i64::try_from(seconds).unwrap()));
    let question = Question {
        target,
        period: Period { from: time(from), to: time(to) },
        manager: manager.map(|manager| MANAGERS[manager].to_owned()),
        verbs: verb.into_iter().collect(),
        ..Question::default()
    };
    let is = |wanted: Option<usize>, is: usize| wanted.is_none_or(|wanted| wanted == is);
    let takes = move |it: &Known| {
        let second = usize::try_from(it.at).unwrap();
        match it.change {
            Some((of, place, by, change)) => {
                is(kind, of)
                    && is(namespace, place)
                    && is(manager, by)
                    && verb.is_none_or(|verb| verb == change)
                    && from.is_none_or(|from| second >= from)
                    && to.is_none_or(|to| second < to)
            }
            // It began a second before.
            None => {
                manager.is_none()
                    && verb.is_none()
                    && is(kind, 0)
                    && from.is_none_or(|from| second >= from)
                    && to.is_none_or(|to| second < to + 1)
            }
        }
    };
    (question, takes)
}

fn ask(place: &Location, clusters: &[usize], question: &Question, order: Order, random: &mut Rng) -> Merge {
    let names: Vec<String> = clusters.iter().map(|&cluster| CLUSTERS[cluster].to_owned()).collect();
    let mut logs = Vec::new();
    let size = random.usize(1..30);
    let growing = random.usize(1..60);
    for mut reader in Reader::several(place, &names).unwrap() {
        let cluster = reader.cluster().unwrap().shown().to_owned();
        let newest = reader.standing().unwrap().last.map(|(_, at)| at).filter(|_| random.bool());
        let walk = Walk::new(&mut reader, question, order, size).unwrap().growing(growing);
        logs.push((Log { cluster, reader, walk, stories: None }, newest));
    }
    Merge::new(logs, order)
}

#[test]
fn random_questions_have_the_answers_of_a_sorted_list() {
    let server = Server::start(Durability::None).unwrap();
    for seed in SEEDS {
        println!("seed {seed}");
        let place = Location::parse(&server.address(&server.create_database().unwrap())).unwrap();
        let Location::Database(address) = &place else { panic!("no address") };
        migrate_database(address).unwrap();
        let mut random = Rng::with_seed(seed);
        let mut known = Vec::new();
        (0..CLUSTERS.len()).for_each(|cluster| fill(&place, cluster, &mut random, &mut known));
        for asked in 0..QUESTIONS {
            let mut clusters: Vec<usize> = (0..CLUSTERS.len()).filter(|_| random.u8(..4) > 0).collect();
            if clusters.is_empty() {
                clusters = (0..CLUSTERS.len()).collect();
            }
            let (question, takes) = question(&mut random);
            let order = if random.bool() { Order::NewestFirst } else { Order::OldestFirst };
            let limit = if random.bool() { usize::MAX } else { random.usize(..60) };
            let mut expected: Vec<Known> =
                known.iter().filter(|it| clusters.contains(&it.cluster) && takes(it)).cloned().collect();
            expected.sort_by_key(|it| match order {
                Order::NewestFirst => (-it.at, it.cluster, -i64::try_from(it.number).unwrap()),
                Order::OldestFirst => (it.at, it.cluster, i64::try_from(it.number).unwrap()),
            });
            let expected: Vec<(&str, Timestamp, Option<u64>)> = expected
                .iter()
                .take(limit)
                .map(|it| (CLUSTERS[it.cluster], at(it.at), it.change.map(|_| it.number)))
                .collect();
            let mut merge = ask(&place, &clusters, &question, order, &mut random);
            let mut found = Vec::new();
            while found.len() < limit
                && let Some((log, item)) = merge.next().unwrap()
            {
                let cluster = CLUSTERS.into_iter().find(|name| *name == log.cluster).unwrap();
                found.push(match item {
                    Item::Record(record) => (cluster, record.at(), Some(record.number().0)),
                    Item::Gap(gap) => (cluster, gap.to.unwrap(), None),
                    Item::Story(_) => panic!("nothing is folded"),
                });
            }
            assert_eq!(found, expected, "seed {seed}, question {asked}: {question:?} {order:?} {limit}");
        }
    }
}
