//! The queue as lists that are searched from the front, which is slow and obviously correct.

use informer_core::queue::Add;

use super::milliseconds;

pub(crate) type Key = u32;

/// Times are in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Model {
    handicap: u64,
    /// In the order in which they became ready.
    pub(crate) ready: Vec<Item>,
    /// In the order in which they were added last.
    pub(crate) delayed: Vec<Item>,
    pub(crate) in_process: Vec<Running>,
    closed: bool,
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    /// The sum of the times that items waited to be taken, and the sum of the times of work.
    pub(crate) waited: u64,
    pub(crate) worked: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) priority: i32,
    pub(crate) marks: u32,
    /// When it became ready or will be.
    at: u64,
    /// Since when it waits to be taken; earlier than `at` if it was in process, or had a lower priority.
    since: u64,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) key: Key,
    began: u64,
    again: Option<(Item, bool)>,
}

impl Model {
    pub(crate) fn new(handicap: u64) -> Self {
        Self { handicap, ..Self::default() }
    }

    pub(crate) fn add(&mut self, now: u64, key: Key, add: Add) {
        self.advance(now);
        if self.closed {
            return;
        }
        self.retries += u64::from(add.after.is_some());
        let at = now + add.after.map_or(0, milliseconds);
        let mut item = Item { key, priority: add.priority, marks: add.marks, at, since: at };
        if let Some(running) = self.in_process.iter_mut().find(|running| running.key == key) {
            let (again, counted) = match running.again.take() {
                None => (item, false),
                Some((again, counted)) => (merged(again, item), counted),
            };
            self.adds += u64::from(again.at <= now && !counted);
            let counted = counted || again.at <= now;
            running.again = Some((again, counted));
        } else if let Some(position) = self.ready.iter().position(|ready| ready.key == key) {
            self.ready[position].marks |= item.marks;
            let rank = |at: u64, priority: i32| at as i64 - self.handicap as i64 * i64::from(priority);
            let (waiting, priority) = (&self.ready[position], item.priority);
            if priority > waiting.priority && rank(now, priority) <= rank(waiting.at, waiting.priority) {
                let before = self.ready.remove(position);
                self.join(Item { priority: item.priority, at: now, ..before });
            }
        } else {
            if let Some(position) = self.delayed.iter().position(|delayed| delayed.key == key) {
                item = merged(self.delayed.remove(position), item);
            }
            self.wait(now, item, false);
        }
    }

    pub(crate) fn take(&mut self, now: u64) -> Option<Item> {
        self.advance(now);
        // Of the oldest item of each priority the one that joined first, higher priorities counted as longer waits.
        let rank =
            |item: &&Item| (item.at as i64 - self.handicap as i64 * i64::from(item.priority), -item.priority);
        let priority = self.ready.iter().min_by_key(rank)?.priority;
        let position = self.ready.iter().position(|item| item.priority == priority)?;
        let item = self.ready.remove(position);
        self.waited += now - item.since;
        self.in_process.push(Running { key: item.key, began: now, again: None });
        Some(item)
    }

    pub(crate) fn forget(&mut self, now: u64, key: Key) {
        self.advance(now);
        self.ready.retain(|item| item.key != key);
        self.delayed.retain(|item| item.key != key);
    }

    pub(crate) fn done(&mut self, now: u64, key: Key) {
        self.advance(now);
        let Some(position) = self.in_process.iter().position(|running| running.key == key) else { return };
        let running = self.in_process.remove(position);
        self.worked += now - running.began;
        if let Some((item, counted)) = running.again {
            self.wait(now, item, counted);
        }
    }

    pub(crate) fn shut_down(&mut self, now: u64) {
        self.advance(now);
        self.closed = true;
        self.delayed.clear();
        for running in &mut self.in_process {
            running.again = running.again.take().filter(|(again, _)| again.at <= now);
        }
    }

    pub(crate) fn next_ready(&self, now: u64) -> Option<u64> {
        let delayed = self.delayed.iter().map(|item| item.at).min();
        if self.ready.is_empty() { delayed } else { Some(now) }
    }

    /// The number of items of this priority that wait to be taken.
    pub(crate) fn depth(&self, now: u64, priority: i32) -> usize {
        let again = self.in_process.iter().filter_map(|running| Some(&running.again.as_ref()?.0));
        let again = again.filter(|item| item.at <= now);
        self.ready.iter().chain(again).filter(|item| item.priority == priority).count()
    }

    fn wait(&mut self, now: u64, item: Item, counted: bool) {
        if item.at <= now {
            self.adds += u64::from(!counted);
            self.join(Item { at: now, ..item });
        } else {
            self.delayed.push(item);
        }
    }

    fn join(&mut self, item: Item) {
        self.ready.push(item);
    }

    pub(crate) fn advance(&mut self, now: u64) {
        loop {
            let due = self.delayed.iter().filter(|item| item.at <= now).map(|item| item.at).min();
            let Some(due) = due else { return };
            let position = self.delayed.iter().position(|item| item.at == due).unwrap();
            let item = self.delayed.remove(position);
            self.adds += 1;
            self.join(item);
        }
    }
}

fn merged(one: Item, other: Item) -> Item {
    Item {
        key: one.key,
        priority: one.priority.max(other.priority),
        marks: one.marks | other.marks,
        at: one.at.min(other.at),
        since: one.since.min(other.since),
    }
}
