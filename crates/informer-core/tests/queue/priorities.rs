//! Priorities.

use std::time::Duration;

use fuzzing::seeds;
use informer_core::Time;
use informer_core::queue::{Add, Config, LOW_PRIORITY, Queue};

use super::{Desk, milliseconds};

#[test]
fn q1_q5_higher_priorities_come_first_and_first_in_is_first_out_within_one() {
    let mut desk = Desk::new();
    for (key, priority) in [("a", LOW_PRIORITY), ("b", 0), ("c", 7), ("d", 0), ("e", 7)] {
        desk.add_at(key, priority);
        desk.wait(10);
    }
    assert_eq!(desk.process_all(), ["c", "e", "b", "d", "a"]);
}

#[test]
fn q5_a_waiting_item_that_is_added_with_a_higher_priority_moves_up() {
    let mut desk = Desk::new();
    for (key, priority) in [("a", LOW_PRIORITY), ("b", LOW_PRIORITY), ("c", 0), ("b", 0), ("c", LOW_PRIORITY)]
    {
        desk.add_at(key, priority);
    }
    assert_eq!(desk.queue.len(), 3);
    let taken = desk.queue.take(desk.now).unwrap();
    assert_eq!((taken.key, taken.priority), ("c", 0), "it does not move down");
    assert_eq!(desk.process_all(), ["b", "a"]);
}

#[test]
fn q5_a_higher_priority_never_lets_an_item_wait_longer() {
    for (waited, expected) in [(3_000, ["newer", "old"]), (101_000, ["old", "newer"])] {
        let mut desk = Desk::new();
        desk.add_at("old", LOW_PRIORITY);
        desk.wait(waited);
        desk.add("newer");
        desk.wait(10);
        desk.add("old");
        assert_eq!(desk.process_all(), expected, "after {waited} ms");
    }
}

#[test]
fn q5_the_highest_priority_of_the_adds_counts_while_delayed_and_in_process() {
    let mut desk = Desk::new();
    desk.add_at("a", 3);
    desk.take();
    desk.add_at("a", -1);
    desk.add_at("a", -2);
    desk.done("a");
    let taken = desk.queue.take(desk.now).unwrap();
    assert_eq!((taken.key, taken.priority), ("a", -1), "the adds before it was taken do not count");
    desk.done("a");
    desk.add_after("b", 10);
    let after = Some(Duration::from_millis(20));
    desk.queue.add(desk.now, "b", Add { priority: 5, after, marks: 0 });
    desk.wait(10);
    assert_eq!(desk.queue.take(desk.now).unwrap().priority, 5);
}

#[test]
fn q5_an_item_of_low_priority_waits_a_bounded_time_for_higher_ones() {
    let mut desk = Desk::new();
    desk.add_at("low", LOW_PRIORITY);
    // There is always an item of priority 0, added just now.
    let mut waited = 0;
    loop {
        desk.add("high");
        if desk.take() == "low" {
            break;
        }
        desk.done("high");
        desk.wait(1_000);
        waited += 1;
    }
    assert_eq!(waited, 101, "100 steps of one second, and the tie");
}

/// Random queues. A check of each gets, for each item that is taken, the handicap and the items that still wait.
fn each_take(check: impl Fn(u64, &Waiting, &[Waiting])) {
    seeds::each(0..300, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let handicap = Duration::from_millis(random.u64(0..40));
        let mut queue = Queue::new(&Config { handicap });
        let (mut now, mut waiting) = (0, Vec::<Waiting>::new());
        for key in 0..400_u32 {
            now += random.u64(0..12);
            let time = Time::from_start(Duration::from_millis(now));
            let priority = random.i32(-3..4);
            queue.add(time, key, Add { priority, ..Add::default() });
            waiting.push(Waiting { key, priority, joined: now });
            if random.u8(0..10) < 9 {
                let key = queue.take(time).unwrap().key;
                queue.done(time, &key);
                let at = waiting.iter().position(|item| item.key == key).unwrap();
                let taken = waiting.remove(at);
                check(milliseconds(handicap), &taken, &waiting);
            }
        }
    });
}

/// An item as a test expects it; times are in milliseconds.
#[derive(Debug, Clone)]
struct Waiting {
    key: u32,
    priority: i32,
    joined: u64,
}

/// The rule of `Config::handicap`: how much earlier an item may have joined than it did.
fn rank(item: &Waiting, handicap: u64) -> i64 {
    item.joined as i64 - handicap as i64 * i64::from(item.priority)
}

#[test]
fn q5_no_item_is_passed_by_one_that_came_more_than_the_handicap_later() {
    let check = |handicap, taken: &Waiting, waiting: &[Waiting]| {
        for other in waiting {
            assert!(rank(taken, handicap) <= rank(other, handicap), "{taken:?} passed {other:?}");
            let came_first = (other.joined, other.key) < (taken.joined, taken.key);
            assert!(taken.priority != other.priority || !came_first, "{taken:?} passed {other:?}");
        }
    };
    each_take(check);
}
