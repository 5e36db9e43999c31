//! Limits across restarts, with clocks that the test sets.

use jiff::SignedDuration;
use kubediff_history::{Cluster, Filter, Page, Settings};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A history, a clock that may be wrong, and one that is not.
struct World {
    _folder: tempfile::TempDir,
    history: SharedHistory,
    clock: Timestamp,
    at: Instant,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let path = folder.path().join("history.db");
        let history = SharedHistory::open(&path, &cluster, &Settings::default()).unwrap();
        let clock = "2026-11-25T12:00:00Z".parse().unwrap();
        Self { _folder: folder, history, clock, at: Instant::now() }
    }

    fn pass(&mut self, time: Duration) {
        self.clock += time;
        self.at += time;
    }

    /// Records something now.
    fn record(&self) {
        let mut batch = Batch::default();
        batch.gap(self.clock, self.clock, None, "a record");
        self.history.lock().commit(&batch).unwrap();
    }

    /// A daemon that starts now.
    fn start(&self, age: Option<Duration>, count: Option<u64>) -> Keeper {
        let retention = Retention { age, count, ..Retention::default() };
        Keeper::new(self.history.clone(), retention, CancellationToken::new())
    }

    /// How many records there are when it has looked.
    fn left(&self, keeper: &mut Keeper) -> usize {
        keeper.look(self.clock, self.at);
        assert_eq!(keeper.failed, None);
        let mut reader = self.history.lock().reader().unwrap();
        let filter = Filter { gaps: true, ..Filter::default() };
        reader.records(&filter, &Page::oldest(1_000)).unwrap().records.len()
    }
}

#[test]
fn k5_the_number_of_changes_is_kept_from_each_start_on() {
    let mut world = World::new();
    for _ in 0..3 {
        (0..100).for_each(|_| world.record());
        assert_eq!(world.left(&mut world.start(None, Some(10))), 10);
        world.pass(MINUTE);
    }
}

#[test]
fn k5_old_records_go_however_often_the_daemon_starts() {
    let mut world = World::new();
    world.record();
    let age = Some(DAY);
    assert_eq!(world.left(&mut world.start(age, None)), 1);
    world.pass(DAY + MINUTE);
    world.record();
    // The clock may have jumped in between: records that were young at the last run are young.
    let mut left = vec![world.left(&mut world.start(age, None))];
    for _ in 0..3 {
        world.pass(4 * MINUTE);
        left.push(world.left(&mut world.start(age, None)));
    }
    assert_eq!(left, [2, 2, 2, 1], "after 12 minutes");
}

#[test]
fn k1_a_clock_that_is_ahead_at_a_start_or_jumps_twice_removes_nothing() {
    let mut world = World::new();
    world.record();
    let age = Some(30 * DAY);
    assert_eq!(world.left(&mut world.start(age, None)), 1);
    for start in 0..3 {
        world.pass(11 * MINUTE);
        let right = world.clock;
        let mut keeper = world.start(age, None);
        for _ in 0..3 {
            // A record of the wrong time is there before the first look.
            world.clock += SignedDuration::from_hours(40 * 24);
            world.record();
            world.left(&mut keeper);
            world.at += MINUTE;
        }
        assert_eq!(world.left(&mut keeper), 1 + 3 * (start + 1), "start {start}");
        world.clock = right + 4 * MINUTE;
        assert_eq!(world.left(&mut world.start(age, None)), 1 + 3 * (start + 1), "and it is right again");
    }
}
