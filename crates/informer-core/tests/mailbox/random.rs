//! Random stories: whatever a mailbox does to them, its reader must be able to believe it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use informer_core::mailbox::{Delivery, Mailbox, Mode, Notice, WhenFull};
use informer_core::{Change, Object};

use super::fixture::{LATEST, Reader, added, deleted, every, listed, object, split, updated};

const KEYS: usize = 6;

/// The cache and its changes: the changes reach the mailbox later than the cache, as they do for real.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Arc<Object>>,
    version: u64,
    revision: u64,
    on_the_way: VecDeque<(u64, Vec<Change>)>,
    /// Changes that were made, each counted once.
    made: u64,
}

impl World {
    fn publish(&mut self, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.revision += 1;
            self.made += changes.len() as u64;
            self.on_the_way.push_back((self.revision, changes));
        }
    }

    /// A new version of a key: of the same incarnation, another one, or none.
    fn touch(&mut self, random: &mut fastrand::Rng) -> Option<Change> {
        let name = format!("pod-{}", random.usize(..KEYS));
        self.version += 1;
        let before = self.objects.get(&name).cloned();
        let uid = match &before {
            Some(before) if random.u8(..8) > 0 => before.uid().to_string()[4..].parse().unwrap(),
            _ => self.version,
        };
        let new = object(&name, uid, self.version);
        match before {
            Some(before) if random.u8(..3) == 0 => {
                self.objects.remove(&name);
                Some(deleted(&before, &object(&name, uid, self.version)))
            }
            Some(before) => {
                self.objects.insert(name, new.clone());
                Some(updated(&before, &new))
            }
            None => {
                self.objects.insert(name, new.clone());
                Some(added(&new))
            }
        }
    }

    fn watch_event(&mut self, random: &mut fastrand::Rng) {
        let changes = self.touch(random).into_iter().collect();
        self.publish(changes);
    }

    /// Several keys in one step. Each key once: a list has no more.
    fn relist(&mut self, random: &mut fastrand::Rng) {
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..random.u8(..6) {
            let before = self.objects.clone();
            let Some(change) = self.touch(random) else { continue };
            if changes.iter().any(|other| other.key() == change.key()) {
                self.objects = before;
            } else {
                changes.push(listed(change));
            }
        }
        self.publish(changes);
    }
}

/// One run of random operations with one mailbox.
struct Run {
    random: fastrand::Rng,
    delivery: Delivery,
    world: World,
    mailbox: Mailbox,
    reader: Reader,
    /// Changes that were made before the mailbox joined.
    made_before: u64,
    present: usize,
    cache_synced: bool,
    first_content: BTreeMap<String, Arc<Object>>,
    context: String,
}

impl Run {
    fn new(seed: u64, delivery: Delivery) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::default();
        let cache_synced = random.bool();
        for _ in 0..random.u8(..20) {
            world.watch_event(&mut random);
        }
        // What was offered before the subscription began.
        for _ in 0..random.usize(..=world.on_the_way.len()) {
            world.on_the_way.pop_front();
        }
        let mut mailbox = Mailbox::new(delivery, cache_synced);
        // Between the subscription and the snapshot, and between the snapshot and the join.
        let mut between = |world: &mut World, random: &mut fastrand::Rng| {
            for _ in 0..random.u8(..5) {
                match (random.bool(), world.on_the_way.pop_front()) {
                    (true, Some((revision, changes))) => {
                        changes.iter().for_each(|change| mailbox.offer(revision, change));
                    }
                    (_, back) => {
                        back.into_iter().for_each(|back| world.on_the_way.push_front(back));
                        world.watch_event(random);
                    }
                }
            }
        };
        between(&mut world, &mut random);
        let snapshot: Vec<_> = world.objects.values().cloned().collect();
        let (revision, made_before) = (world.revision, world.made);
        let first_content = if cache_synced { world.objects.clone() } else { BTreeMap::new() };
        between(&mut world, &mut random);
        let present = snapshot.len();
        mailbox.join(snapshot, revision);
        Self {
            random,
            delivery,
            world,
            mailbox,
            reader: Reader::new(delivery),
            made_before,
            present,
            cache_synced,
            first_content,
            context: format!("seed {seed}, {delivery:?}"),
        }
    }

    fn step(&mut self) {
        match self.random.u8(..10) {
            0..=3 => self.world.watch_event(&mut self.random),
            4 => self.world.relist(&mut self.random),
            5..=6 => self.offer_one(),
            7 if !self.cache_synced => self.sync(),
            _ => {
                self.take_one();
            }
        }
        self.check_bound();
    }

    fn offer_one(&mut self) {
        if let Some((revision, changes)) = self.world.on_the_way.pop_front() {
            changes.iter().for_each(|change| self.mailbox.offer(revision, change));
        }
    }

    /// The first content is complete when everything that led to it was offered.
    fn sync(&mut self) {
        while !self.world.on_the_way.is_empty() {
            self.offer_one();
        }
        self.mailbox.cache_synced();
        self.cache_synced = true;
        self.first_content = self.world.objects.clone();
    }

    fn take_one(&mut self) -> bool {
        let Some(notice) = self.mailbox.take() else { return false };
        let synced = matches!(notice, Notice::Synced);
        if let Err(wrong) = self.reader.hear(notice) {
            panic!("{}: {wrong}", self.context);
        }
        if synced {
            assert!(self.cache_synced, "{}: synced before the cache", self.context);
            for (key, object) in &self.first_content {
                let unchanged = self.world.objects.get(key).is_some_and(|now| Arc::ptr_eq(now, object));
                let told = self.reader.believed.contains_key(key);
                assert!(told || !unchanged, "{}: synced before {object:?}", self.context);
            }
        }
        true
    }

    fn check_bound(&self) {
        let bound = match self.delivery.mode {
            Mode::Latest => KEYS,
            Mode::Every { capacity, .. } => KEYS + capacity,
        };
        let backlog = self.mailbox.backlog();
        assert!(backlog <= bound + self.present, "{}: a backlog of {backlog}", self.context);
    }

    fn finish(mut self) {
        if !self.cache_synced {
            self.sync();
        }
        while !self.world.on_the_way.is_empty() {
            self.offer_one();
        }
        while self.take_one() {}
        let Self { reader, world, context, .. } = self;
        assert!(reader.synced, "{context}: never synced");
        assert_eq!(self.mailbox.backlog(), 0, "{context}");
        assert_eq!(self.mailbox.revision(), world.revision, "{context}");
        let every_change = matches!(self.delivery.mode, Mode::Every { .. }) && !self.delivery.split_recreated;
        if matches!(self.delivery.mode, Mode::Every { when_full: WhenFull::Drop, .. }) && every_change {
            // First content before the cache was synced is merged; nothing else is lost uncounted.
            let made = world.made - self.made_before + self.present as u64;
            assert!(
                reader.changes + reader.lagged <= made,
                "{context}: {} and {}",
                reader.changes,
                reader.lagged
            );
        }
        if reader.lagged == 0 {
            let names = |objects: &BTreeMap<String, Arc<Object>>| format!("{:?}", objects.values());
            assert_eq!(names(&reader.believed), names(&world.objects), "{context}");
        }
    }
}

fn all_runs(delivery: Delivery) {
    for seed in 0..400 {
        let mut run = Run::new(seed, delivery);
        for _ in 0..run.random.u8(..120) {
            run.step();
        }
        run.finish();
    }
}

#[test]
fn h1_h2_h3_h4_h8_random_stories_with_one_pending_change_per_key() {
    all_runs(LATEST);
    all_runs(split(LATEST));
}

#[test]
fn h1_h2_h3_h4_h8_random_stories_of_every_change_merged_when_full() {
    for capacity in [1, 3, 10, 1_000] {
        all_runs(every(capacity, WhenFull::Coalesce));
        all_runs(split(every(capacity, WhenFull::Coalesce)));
    }
}

#[test]
fn h1_h2_h3_h4_h8_random_stories_of_every_change_dropped_when_full() {
    for capacity in [1, 3, 10, 1_000] {
        all_runs(every(capacity, WhenFull::Drop));
        all_runs(split(every(capacity, WhenFull::Drop)));
    }
}

/// With room for all of them, a synced mailbox hands out exactly what it was offered.
#[test]
fn h1_every_change_is_every_change() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::default();
        let mut mailbox = Mailbox::new(every(10_000, WhenFull::Drop), true);
        mailbox.join(Vec::new(), 0);
        let (mut offered, mut told) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            world.watch_event(&mut random);
            while let Some((revision, changes)) = world.on_the_way.pop_front() {
                changes.iter().for_each(|change| mailbox.offer(revision, change));
                offered.extend(changes.iter().map(|change| format!("{change:?}")));
            }
            for _ in 0..random.u8(..3) {
                told.extend(mailbox.take());
            }
        }
        told.extend(std::iter::from_fn(|| mailbox.take()));
        let told: Vec<_> = told
            .iter()
            .filter_map(|notice| match notice {
                Notice::Change { change, .. } => Some(format!("{change:?}")),
                _ => None,
            })
            .collect();
        assert_eq!(told, offered, "seed {seed}");
    }
}
