//! Mailboxes: whatever one does to any story, its reader must be able to believe it.

pub mod reader;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use informer_core::mailbox::{Delivery, Mailbox, Mode, Notice, WhenFull};
use informer_core::{Change, Delta, Object};

use crate::Choices;
use reader::{LATEST, Reader, added, deleted, every, keeping, listed, object, split, updated};

const KEYS: usize = 6;

/// Any bytes are a kind of mailbox and a story for it.
pub fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let capacity = [1, 3, 10, 1_000][choices.below(4)];
    let delivery =
        [LATEST, every(capacity, WhenFull::Coalesce), every(capacity, WhenFull::Drop)][choices.below(3)];
    let delivery = if choices.coin() { split(delivery) } else { delivery };
    let delivery = if choices.coin() { keeping(delivery) } else { delivery };
    run_with(choices, delivery);
}

/// A story for this kind of mailbox.
pub fn run_with(choices: Choices<'_>, delivery: Delivery) {
    let mut run = Run::new(choices, delivery);
    while !run.choices.are_spent() {
        run.step();
    }
    run.finish();
}

/// With room for all of them, a synced mailbox returns exactly the changes that it was offered.
pub fn run_with_room(mut choices: Choices<'_>) {
    let mut world = World::default();
    let mut mailbox = Mailbox::new(every(usize::MAX, WhenFull::Drop), true);
    mailbox.join(Vec::new(), 0);
    let (mut offered, mut told) = (Vec::new(), Vec::new());
    while !choices.are_spent() {
        world.watch_event(&mut choices);
        while let Some((revision, changes)) = world.on_the_way.pop_front() {
            changes.iter().for_each(|change| mailbox.offer(revision, change));
            offered.extend(changes.iter().map(|change| format!("{change:?}")));
        }
        for _ in 0..choices.below(3) {
            told.extend(mailbox.take());
        }
    }
    told.extend(std::iter::from_fn(|| mailbox.take()));
    let changes = told.iter().filter_map(|notice| match notice {
        Notice::Change { change, .. } => Some(format!("{change:?}")),
        _ => None,
    });
    assert_eq!(changes.collect::<Vec<_>>(), offered);
}

/// The cache and its changes: the changes reach the mailbox later than the cache, as they do for real.
#[derive(Debug, Default)]
struct World {
    objects: BTreeMap<String, Arc<Object>>,
    version: u64,
    revision: u64,
    on_the_way: VecDeque<(u64, Vec<Change>)>,
    /// Changes that were made, each counted once.
    made: u64,
    /// How many of them become two where re-creations are split.
    recreated: u64,
}

impl World {
    fn publish(&mut self, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.revision += 1;
            self.made += changes.len() as u64;
            let is_recreated = |change: &&Change| matches!(&change.delta, Delta::Updated { old, new } if old.uid() != new.uid());
            self.recreated += changes.iter().filter(is_recreated).count() as u64;
            self.on_the_way.push_back((self.revision, changes));
        }
    }

    /// The number of changes that this makes for each reader.
    fn made_for(&self, delivery: Delivery) -> u64 {
        self.made + if delivery.split_recreated { self.recreated } else { 0 }
    }

    /// A new version of a key: of the same incarnation, another one, or none.
    fn touch(&mut self, choices: &mut Choices<'_>) -> Option<Change> {
        let name = format!("pod-{}", choices.below(KEYS));
        self.version += 1;
        let before = self.objects.get(&name).cloned();
        let uid = match &before {
            Some(before) if choices.below(8) < 7 => before.uid().to_string()[4..].parse().unwrap(),
            _ => self.version,
        };
        let new = object(&name, uid, self.version);
        match before {
            Some(before) if choices.below(3) == 2 => {
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

    fn watch_event(&mut self, choices: &mut Choices<'_>) {
        let changes = self.touch(choices).into_iter().collect();
        self.publish(changes);
    }

    /// Several keys in one step. Each key once: a list has no more.
    fn relist(&mut self, choices: &mut Choices<'_>) {
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..choices.below(6) {
            let before = self.objects.clone();
            let Some(change) = self.touch(choices) else { continue };
            if changes.iter().any(|other| other.key() == change.key()) {
                self.objects = before;
            } else {
                changes.push(listed(change));
            }
        }
        self.publish(changes);
    }
}

/// One story with one mailbox.
struct Run<'c> {
    choices: Choices<'c>,
    delivery: Delivery,
    world: World,
    mailbox: Mailbox,
    reader: Reader,
    /// Changes from before the mailbox joined, or the cache was synced: they may be part of the initial list.
    made_before: u64,
    present: usize,
    cache_synced: bool,
    first_content: BTreeMap<String, Arc<Object>>,
    /// The revision of the snapshot that the mailbox joined.
    joined: u64,
    /// The keys that changed since the reader last heard of them.
    unheard: BTreeSet<String>,
}

impl<'c> Run<'c> {
    fn new(mut choices: Choices<'c>, delivery: Delivery) -> Self {
        let mut world = World::default();
        let cache_synced = choices.coin();
        for _ in 0..choices.below(20) {
            world.watch_event(&mut choices);
        }
        // Changes that were offered before the subscription began.
        for _ in 0..choices.below(world.on_the_way.len() + 1) {
            world.on_the_way.pop_front();
        }
        let mut mailbox = Mailbox::new(delivery, cache_synced);
        // Between the subscription and the snapshot, and between the snapshot and the join.
        let mut between = |world: &mut World, choices: &mut Choices<'_>| {
            for _ in 0..choices.below(5) {
                match (choices.coin(), world.on_the_way.pop_front()) {
                    (true, Some((revision, changes))) => {
                        changes.iter().for_each(|change| mailbox.offer(revision, change));
                    }
                    (_, back) => {
                        back.into_iter().for_each(|back| world.on_the_way.push_front(back));
                        world.watch_event(choices);
                    }
                }
            }
        };
        between(&mut world, &mut choices);
        let snapshot: Vec<_> = world.objects.values().cloned().collect();
        let (revision, made_before) = (world.revision, world.made_for(delivery));
        let first_content = if cache_synced { world.objects.clone() } else { BTreeMap::new() };
        between(&mut world, &mut choices);
        let present = snapshot.len();
        mailbox.join(snapshot, revision);
        Self {
            choices,
            delivery,
            world,
            mailbox,
            reader: Reader::new(delivery),
            made_before,
            present,
            cache_synced,
            first_content,
            joined: revision,
            unheard: BTreeSet::new(),
        }
    }

    fn step(&mut self) {
        match self.choices.below(10) {
            0..=3 => self.world.watch_event(&mut self.choices),
            4 => self.world.relist(&mut self.choices),
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
            for change in changes {
                self.mailbox.offer(revision, &change);
                if revision > self.joined {
                    self.unheard.insert(change.key().to_string());
                }
            }
        }
    }

    /// The initial list is complete when everything before it was offered.
    fn sync(&mut self) {
        while !self.world.on_the_way.is_empty() {
            self.offer_one();
        }
        self.mailbox.cache_synced();
        self.cache_synced = true;
        self.made_before = self.world.made_for(self.delivery);
        self.first_content = self.world.objects.clone();
    }

    fn take_one(&mut self) -> bool {
        let Some(notice) = self.mailbox.take() else { return false };
        let synced = matches!(notice, Notice::Synced);
        if let Notice::Change { change, .. } = &notice {
            self.unheard.remove(change.key().as_str());
        }
        if let Err(wrong) = self.reader.hear(notice) {
            panic!("{:?}: {wrong}", self.delivery);
        }
        if synced {
            assert!(self.cache_synced, "{:?}: synced before the cache", self.delivery);
            for (key, object) in &self.first_content {
                let unchanged = self.world.objects.get(key).is_some_and(|now| Arc::ptr_eq(now, object));
                let told = self.reader.believed.contains_key(key);
                assert!(told || !unchanged, "{:?}: synced before {object:?}", self.delivery);
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
        assert!(backlog <= bound + self.present, "{:?}: a backlog of {backlog}", self.delivery);
    }

    fn finish(mut self) {
        if !self.cache_synced {
            self.sync();
        }
        while !self.world.on_the_way.is_empty() {
            self.offer_one();
        }
        while self.take_one() {}
        let Self { reader, world, delivery, mailbox, made_before, unheard, .. } = self;
        let is_told = unheard.is_empty() || reader.lagged > 0 || !delivery.keep_cancelled;
        assert!(is_told, "{delivery:?}: {unheard:?} changed, and the reader did not hear of it");
        assert!(reader.synced, "{delivery:?}: never synced");
        assert_eq!(mailbox.backlog(), 0, "{delivery:?}");
        assert_eq!(mailbox.revision(), world.revision, "{delivery:?}");
        if matches!(delivery.mode, Mode::Every { when_full: WhenFull::Drop, .. }) {
            // After the initial list nothing is coalesced: undelivered changes are counted.
            let made = world.made_for(delivery) - made_before;
            let (told, lagged) = (reader.later, reader.lagged);
            assert_eq!(told + lagged, made, "{delivery:?}: {told} told, {lagged} dropped");
        }
        let keys = reader.believed.keys().chain(world.objects.keys());
        for key in keys.filter(|key| reader.is_sure_of(key)) {
            let (believed, there) = (reader.believed.get(key), world.objects.get(key));
            assert_eq!(format!("{believed:?}"), format!("{there:?}"), "{delivery:?}: {key}");
        }
    }
}
