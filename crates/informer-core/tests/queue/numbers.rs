//! The metrics of the queue.

use std::time::Duration;

use informer_core::queue::{Add, Queue};
use informer_core::{Histogram, Time};

use super::Desk;

fn micros(number: u64) -> Duration {
    Duration::from_micros(number)
}

/// I11, with the times of client-go's test.
#[test]
fn q4_adds_depth_and_durations_are_counted_as_client_go_does() {
    let mut desk = Desk::new();
    let wait = |desk: &mut Desk, time| desk.now = desk.now + time;
    let depth = |desk: &Desk| desk.queue.metrics(desk.now).depth.values().sum::<usize>();
    desk.add("foo");
    assert_eq!((desk.queue.metrics(desk.now).adds, depth(&desk)), (1, 1));
    wait(&mut desk, micros(50));
    desk.take();
    let taken = desk.queue.metrics(desk.now);
    assert_eq!((taken.queue_duration.count(), taken.queue_duration.sum()), (1, micros(50)));
    assert_eq!(depth(&desk), 0);
    for _ in 0..5 {
        desk.add("foo");
    }
    assert_eq!((desk.queue.metrics(desk.now).adds, depth(&desk)), (2, 1));
    wait(&mut desk, micros(25));
    desk.done("foo");
    let done = desk.queue.metrics(desk.now);
    assert_eq!((done.work_duration.count(), done.work_duration.sum()), (1, micros(25)));
    assert_eq!(depth(&desk), 1);
    desk.take();
    let taken = desk.queue.metrics(desk.now);
    assert_eq!((taken.queue_duration.count(), taken.queue_duration.sum()), (2, micros(75)));
    wait(&mut desk, micros(1_000));
    let running = desk.queue.metrics(desk.now);
    assert_eq!((running.unfinished_work, running.longest_running), (micros(1_000), micros(1_000)));
    desk.done("foo");
    let done = desk.queue.metrics(desk.now);
    assert_eq!((done.work_duration.count(), done.work_duration.sum()), (2, micros(1_025)));
    assert_eq!((done.unfinished_work, done.longest_running, done.in_process), (micros(0), micros(0), 0));
}

#[test]
fn q4_unfinished_work_is_the_sum_and_the_longest_of_all_in_process() {
    let mut desk = Desk::new();
    for key in ["a", "b"] {
        desk.add(key);
        desk.take();
        desk.wait(10);
    }
    let metrics = desk.queue.metrics(desk.now);
    let milliseconds = Duration::from_millis;
    assert_eq!((metrics.unfinished_work, metrics.longest_running), (milliseconds(30), milliseconds(20)));
    assert_eq!(metrics.in_process, 2);
}

#[test]
fn q4_delayed_items_are_retries_and_count_as_adds_when_their_time_comes() {
    let mut desk = Desk::new();
    desk.add_after("a", 10);
    desk.add_after("a", 20);
    desk.add_after("b", 0);
    let metrics = desk.queue.metrics(desk.now);
    assert_eq!((metrics.retries, metrics.adds, metrics.delayed), (3, 1, 1));
    assert_eq!(metrics.depth.into_iter().collect::<Vec<_>>(), [(0, 1)]);
    desk.wait(15);
    desk.queue.advance(desk.now);
    let metrics = desk.queue.metrics(desk.now);
    assert_eq!((metrics.retries, metrics.adds, metrics.delayed), (3, 2, 0));
    desk.take();
    desk.take();
    let waited = desk.queue.metrics(desk.now).queue_duration.sum();
    assert_eq!(waited, Duration::from_millis(15 + 5), "the delay is not part of it");
    // In process, with a delay that ends before the work does.
    desk.add_after("a", 10);
    desk.wait(30);
    assert_eq!(desk.queue.metrics(desk.now).depth.into_iter().collect::<Vec<_>>(), [(0, 1)]);
    desk.done("a");
    desk.take();
    let metrics = desk.queue.metrics(desk.now);
    assert_eq!((metrics.retries, metrics.adds), (4, 3));
    assert_eq!(metrics.queue_duration.sum() - waited, Duration::from_millis(20));
    desk.queue.shut_down(desk.now);
    desk.add_after("c", 10);
    assert_eq!(desk.queue.metrics(desk.now).retries, 4, "it was ignored");
}

#[test]
fn q4_the_depth_is_told_by_priority() {
    let mut queue = Queue::default();
    for (key, priority) in [("a", 7), ("b", -100), ("c", 7), ("b", 0)] {
        queue.add(Time::ZERO, key, Add { priority, ..Add::default() });
    }
    let depth = |queue: &Queue<_>| queue.metrics(Time::ZERO).depth.into_iter().collect::<Vec<_>>();
    assert_eq!(depth(&queue), [(0, 1), (7, 2)]);
    assert_eq!(queue.take(Time::ZERO).unwrap().key, "a");
    queue.add(Time::ZERO, "a", Add { priority: -3, ..Add::default() });
    assert_eq!(depth(&queue), [(-3, 1), (0, 1), (7, 1)]);
}

#[test]
fn q4_a_raised_item_has_waited_since_it_was_added() {
    let mut desk = Desk::new();
    desk.add("a");
    desk.wait(30);
    desk.add_at("a", 1);
    desk.wait(10);
    desk.take();
    let waited = desk.queue.metrics(desk.now).queue_duration.sum();
    // Kept in four bytes.
    assert!(waited.abs_diff(Duration::from_millis(40)) < micros(1), "{waited:?}");
}

#[test]
fn q4_a_duration_is_in_the_first_bucket_that_is_as_long() {
    let mut histogram = Histogram::default();
    for (bucket, bound) in Histogram::BOUNDS.into_iter().enumerate() {
        let before = histogram.counts()[bucket];
        histogram.observe(bound);
        histogram.observe(bound + Duration::from_nanos(1));
        assert_eq!(histogram.counts()[bucket], before + 1, "{bound:?}");
    }
    assert_eq!(histogram.counts(), [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    assert_eq!(histogram.count(), 20);
    histogram.observe(Duration::MAX);
    assert_eq!(histogram.sum(), Duration::MAX);
}
