//! A log leads to the same stories whatever the batches are, and whenever the process ends.
//!
//! `cargo xtask soak stories` does this with 100 seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fastrand::Rng;
use kubediff::story::{Fold, MilestoneKind, Story};
use kubediff_history::{
    Cluster, Filter, Folded, History, Number, Page, Reader, Record, Settings, StoredStory,
};
use serde_json::json;

use super::cast::{CONTROLLER, Cast, node, replica_set, running};
use crate::queries::world::World;
use crate::support;

const APPS: [&str; 3] = ["cart", "pay", "web"];

/// Plays random steps in a cluster with a few workloads.
pub(crate) fn plays(cast: &mut Cast, random: &mut Rng, steps: u32) {
    let mut pods: Vec<(usize, String)> = Vec::new();
    let mut hashes = [0; APPS.len()];
    for (at, app) in APPS.iter().enumerate() {
        let names: Vec<String> = (0..2).map(|number| format!("{app}-{number}")).collect();
        cast.has_deployment(app, "image:0", &names.iter().map(String::as_str).collect::<Vec<_>>());
        pods.extend(names.into_iter().map(|name| (at, name)));
    }
    cast.known(node("n1"));
    for step in 0..steps {
        let pause = [0.0, 0.1, 0.4, 1.0, 2.9, 3.1, 8.0, 29.0, 31.0, 700.0, 4_000.0];
        cast.passes(pause[random.usize(..pause.len()) * usize::from(random.bool())]);
        let at = random.usize(..APPS.len());
        let app = APPS[at];
        let hash = |number: u32| if number == 0 { "old".to_owned() } else { format!("h{number}") };
        match random.u32(..13) {
            0 => cast.rolls_out(app, "argocd", &format!("image:{}", random.u32(..3))),
            1 => {
                hashes[at] += 1;
                cast.writes(
                    CONTROLLER,
                    replica_set(app, &hash(hashes[at]), "image", 1, u64::from(hashes[at])),
                );
            }
            2 => cast.scales(app, "kubectl-scale", random.u64(1..5)),
            3 | 4 => {
                let name = format!("{app}-s{step}");
                cast.starts(app, &hash(random.u32(..=hashes[at])), &name);
                pods.push((at, name));
            }
            5 | 6 if !pods.is_empty() => {
                let (_, name) = pods.swap_remove(random.usize(..pods.len()));
                cast.ends(&name);
            }
            7 if !pods.is_empty() => {
                let (_, name) = &pods[random.usize(..pods.len())];
                cast.crashes(name, u64::from(step), "Error", "CrashLoopBackOff");
            }
            8 if !pods.is_empty() => {
                let key = format!("Pod shop/{}", pods[random.usize(..pods.len())].1);
                let ready = running(cast.get(&key).clone(), u64::from(step));
                cast.writes("kubelet/status", ready);
            }
            9 => {
                let wanted =
                    cast.get(&format!("Deployment shop/{app}"))["spec"]["replicas"].as_u64().unwrap();
                cast.reports(app, [wanted, random.u64(..=wanted), random.u64(..=wanted)]);
            }
            10 => {
                let out = json!(random.bool());
                cast.patches("kubectl-cordon", "Node n1", &[("/spec/unschedulable", out)]);
            }
            11 => {
                let from = cast.now;
                cast.passes(random.f64() * 2.0);
                cast.world.gap_at(from, cast.now, None, "kubediff did not run");
            }
            _ => cast.event(&format!("e{step}"), &format!("Deployment shop/{app}"), "Scaled"),
        }
    }
}

type Stories = (BTreeMap<Number, Number>, BTreeMap<Number, StoredStory>);

/// The stories that a fold finds when it reads the log at once.
fn at_once(path: &Path) -> Stories {
    let mut reader = Reader::open(path).unwrap();
    let mut fold = Fold::default();
    while fold.advance(&mut reader).unwrap() {}
    let Folded { members, stories, .. } = fold.changes();
    (members.into_iter().collect(), stories.into_iter().map(|story| (story.id, story)).collect())
}

/// The stories that folds leave in a history when they end at any time, some of them before they store their findings.
fn with_ends(path: &Path, random: &mut Rng) -> Stories {
    let cluster = Cluster { uid: "1f3a".to_owned(), name: Some("prod".to_owned()) };
    let mut history = History::open(path, &cluster, &Settings::default()).unwrap();
    let mut reader = history.reader().unwrap();
    let filter = Filter { events: true, gaps: true, ..Filter::default() };
    loop {
        let mut fold = Fold::of_history(&mut reader).unwrap();
        for _ in 0..random.u32(1..6) {
            let page = Page::oldest(random.usize(1..40)).after(fold.through());
            let found = reader.records(&filter, &page).unwrap();
            for record in &found.records {
                fold.push(record, &mut reader).unwrap();
            }
            if random.u32(..4) > 0 || !found.more {
                history.fold(&fold.changes()).unwrap();
            }
            if !found.more {
                return stored(&mut reader);
            }
        }
    }
}

/// Reads the log record by record. No record gets a story after it was said to be decided, but for the beginning of a story whose
/// effects come late. Each milestone of a story is a record's own, and that record is no Event.
fn decides_once(path: &Path, seed: u64) {
    let mut reader = Reader::open(path).unwrap();
    let (mut fold, mut stories) = (Fold::default(), BTreeMap::new());
    let filter = Filter { events: true, gaps: true, ..Filter::default() };
    let (mut decided, mut events) = (Number(0), BTreeSet::new());
    loop {
        let found = reader.records(&filter, &Page::oldest(1).after(fold.through())).unwrap();
        let Some(record) = found.records.first() else { break };
        if matches!(record, Record::Event(_)) {
            events.insert(record.number());
        }
        fold.push(record, &mut reader).unwrap();
        let folded = fold.changes();
        for (number, story) in &folded.members {
            assert!(
                *number > decided || number == story,
                "seed {seed}: #{number} of {story} after {decided}"
            );
        }
        stories.extend(folded.stories.into_iter().map(|story| (story.id, story.content)));
        assert!(fold.decided() >= decided || decided == Number(0), "seed {seed}: {decided}");
        decided = fold.decided();
    }
    let mut told = BTreeMap::new();
    for (id, content) in stories {
        let story: Story = serde_json::from_value(content).unwrap();
        for milestone in &story.milestones {
            assert!(!events.contains(&milestone.number), "seed {seed}: {milestone:?}");
            if let Some(other) = told.insert(milestone.number, id) {
                // The first record of a story may be the end of another.
                assert!(
                    other == milestone.number || id == milestone.number,
                    "seed {seed}: {milestone:?} of {id} and {other}"
                );
            }
        }
        let milestones: Vec<MilestoneKind> =
            story.milestones.iter().map(|milestone| milestone.tells).collect();
        assert!(milestones.len() <= 4, "seed {seed}: {milestones:?}");
    }
}

fn stored(reader: &mut Reader) -> Stories {
    let members = reader.members(Number(0)..=Number(1_000_000)).unwrap();
    let ids: BTreeSet<Number> = members.values().copied().collect();
    let stories = ids.into_iter().map(|id| (id, reader.story(id).unwrap().unwrap())).collect();
    (members, stories)
}

#[test]
fn batches_and_ends_of_the_process_change_no_story() {
    // With 74, a fold goes on after a gap.
    for seed in (0..support::times(12)).chain([74]) {
        let mut random = Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut cast = Cast::new(World::open(&path, [7; 32]));
        plays(&mut cast, &mut random, 120);
        drop(cast);
        let (members, stories) = at_once(&path);
        assert!(members.len() > 30, "seed {seed}: only {} records belong to stories", members.len());
        let (members_then, stories_then) = with_ends(&path, &mut random);
        let differ: Vec<_> = members
            .keys()
            .chain(members_then.keys())
            .filter(|number| members.get(number) != members_then.get(number))
            .map(|number| (number, members.get(number), members_then.get(number)))
            .collect();
        assert!(differ.is_empty(), "seed {seed}: {differ:?}");
        decides_once(&path, seed);
        // Of a story with one record nobody is told.
        let stories: BTreeMap<_, _> =
            stories.into_iter().filter(|(id, _)| members.contains_key(id)).collect();
        for (id, story) in &stories {
            assert_eq!(Some(story), stories_then.get(id), "seed {seed}");
        }
        assert_eq!(stories.len(), stories_then.len(), "seed {seed}");
        // Each story has what it counts, and its first record.
        for (id, story) in &stories {
            let counted =
                story.content["changes"].as_u64().unwrap() + story.content["events"].as_u64().unwrap();
            let own = members.values().filter(|it| *it == id).count() as u64;
            assert_eq!((own, members.get(id)), (counted, Some(id)), "seed {seed}, story {id}");
        }
        let checked = Reader::open(&path).unwrap().check().unwrap();
        assert!(checked.problems.is_empty(), "seed {seed}: {:?}", checked.problems);
    }
}
