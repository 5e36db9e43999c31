//! The memory of a work queue; a burst leaves nothing behind.

use std::time::Duration;

use informer_core::queue::{Add, Queue};
use informer_core::{ObjectKey, Time};

use super::{ALLOCATOR, MIB, alone};

/// The ring and the table are nearly full then, as they are at 1,000,000 items.
const ITEMS: usize = 114_000;

fn keys(count: usize) -> Vec<ObjectKey> {
    let key = |number| format!("namespace-{}/name-of-a-pod-{number}", number % 300).parse().unwrap();
    (0..count).map(key).collect()
}

#[test]
fn q5_a_waiting_item_takes_43_bytes_and_is_freed() {
    let _turn = alone();
    let keys = keys(ITEMS);
    let before = ALLOCATOR.current_usage();
    let mut queue = Queue::default();
    for key in &keys {
        queue.add(Time::ZERO, key.clone(), Add::default());
    }
    let each = (ALLOCATOR.current_usage() - before) as f64 / ITEMS as f64;
    assert!(each < 45.0, "{each} bytes per item");
    for key in &keys {
        let taken = queue.take(Time::ZERO).unwrap();
        assert_eq!(taken.key, *key);
        queue.done(Time::ZERO, key);
    }
    let left = ALLOCATOR.current_usage() - before;
    assert!(left < MIB / 16, "{left} bytes are left of the burst");
}

#[test]
fn q5_a_burst_of_delays_or_priorities_leaves_nothing_behind() {
    let _turn = alone();
    let keys = keys(ITEMS / 3);
    let before = ALLOCATOR.current_usage();
    let mut queue = Queue::default();
    let mut now = Time::ZERO;
    for (number, key) in keys.iter().enumerate() {
        let number = u32::try_from(number).unwrap();
        let after = (number % 2 == 0).then(|| Duration::from_millis(u64::from(number)));
        let priority = i32::try_from(number % 50).unwrap();
        queue.add(now, key.clone(), Add { priority, after, marks: 0 });
    }
    assert!(ALLOCATOR.current_usage() - before > 2 * MIB);
    // All of them are in process at once.
    now = now + Duration::from_secs(3_600);
    let taken: Vec<_> = std::iter::from_fn(|| queue.take(now)).collect();
    assert_eq!(taken.len(), keys.len());
    for taken in taken {
        queue.done(now, &taken.key);
    }
    let left = ALLOCATOR.current_usage() - before;
    assert!(left < MIB / 8, "{left} bytes are left of the burst");
}
