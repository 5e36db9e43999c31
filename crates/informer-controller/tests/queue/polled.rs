//! Which workers are woken, and what becomes of those that stop waiting.

use std::sync::Arc;

use informer_controller::queue::{Add, WorkQueue};

use super::{Count, ms, poll_counted};

/// Workers that wait, each with a count of its wake-ups.
macro_rules! waiting {
    ($queue:expr, $count:expr) => {{
        let mut workers: Vec<_> =
            (0..$count).map(|_| (Box::pin($queue.get()), Arc::new(Count::default()))).collect();
        for (worker, count) in &mut workers {
            assert!(poll_counted(worker, count).is_pending());
        }
        workers
    }};
}

macro_rules! woken {
    ($workers:expr) => {
        $workers.iter().map(|(_, count)| count.get()).sum::<usize>()
    };
}

#[tokio::test(start_paused = true)]
async fn q1_as_many_workers_are_woken_as_there_are_items() {
    let queue = WorkQueue::new();
    let mut workers = waiting!(queue, 8);
    queue.add("a");
    queue.add("a");
    assert_eq!(woken!(workers), 1);
    queue.add("b");
    queue.add("c");
    assert_eq!(woken!(workers), 3);
    let mut taken = Vec::new();
    for (worker, count) in &mut workers {
        if count.get() > 0 {
            let std::task::Poll::Ready(Some(item)) = poll_counted(worker, count) else { panic!("nothing") };
            taken.push(item);
        }
    }
    assert_eq!(taken.iter().map(|item| **item).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(woken!(workers), 3);
    queue.add("a");
    assert_eq!(woken!(workers), 3, "it is in process");
    drop(taken.remove(0));
    assert_eq!(woken!(workers), 4);
}

#[tokio::test(start_paused = true)]
async fn q1_a_worker_that_was_woken_and_stops_waiting_wakes_another() {
    let queue = WorkQueue::new();
    let mut workers = waiting!(queue, 3);
    queue.add("a");
    for left in [2, 1] {
        let woken = workers.iter().position(|(_, count)| count.get() > 0).unwrap();
        drop(workers.remove(woken));
        assert_eq!((workers.len(), woken!(workers)), (left, 1));
    }
    let (worker, count) = &mut workers[0];
    assert!(poll_counted(worker, count).is_ready());
}

#[tokio::test(start_paused = true)]
async fn q1_a_worker_whose_item_another_took_waits_on() {
    let queue = WorkQueue::new();
    let mut workers = waiting!(queue, 1);
    queue.add("a");
    let stolen = queue.get().await.unwrap();
    let (worker, count) = &mut workers[0];
    assert!(poll_counted(worker, count).is_pending());
    queue.add("b");
    assert_eq!(count.get(), 2);
    assert!(poll_counted(worker, count).is_ready());
    drop(stolen);
}

#[tokio::test(start_paused = true)]
async fn q3_one_worker_is_woken_at_the_time_of_a_delayed_item() {
    let queue = WorkQueue::new();
    queue.add_after("a", ms(10));
    let mut workers = waiting!(queue, 8);
    queue.add_after("b", ms(30));
    assert_eq!(woken!(workers), 0);
    queue.add_after("c", ms(5));
    assert_eq!(woken!(workers), 1, "the one that keeps the time");
    let keeper = workers.iter().position(|(_, count)| count.get() > 0).unwrap();
    let (worker, count) = &mut workers[keeper];
    assert!(poll_counted(worker, count).is_pending());
    tokio::time::advance(ms(6)).await;
    assert_eq!(woken!(workers), 2);
    let (worker, count) = &mut workers[keeper];
    assert!(poll_counted(worker, count).is_ready(), "c");
    assert_eq!(woken!(workers), 3, "another one keeps the time");
}

#[tokio::test(start_paused = true)]
async fn q3_another_worker_keeps_the_time_when_one_stops_waiting() {
    let queue = WorkQueue::new();
    queue.add_after("a", ms(10));
    let mut workers = waiting!(queue, 2);
    drop(workers.remove(0));
    let (worker, count) = &mut workers[0];
    assert_eq!(count.get(), 1);
    assert!(poll_counted(worker, count).is_pending());
    tokio::time::advance(ms(11)).await;
    assert_eq!(count.get(), 2);
    assert!(poll_counted(worker, count).is_ready());
}

#[tokio::test(start_paused = true)]
async fn q3_several_items_of_one_time_wake_several_workers() {
    let queue = WorkQueue::new();
    for key in ["a", "b", "c"] {
        queue.add_after(key, ms(10));
    }
    let mut workers = waiting!(queue, 8);
    tokio::time::advance(ms(11)).await;
    assert_eq!(woken!(workers), 1, "the one that keeps the time");
    let keeper = workers.iter().position(|(_, count)| count.get() > 0).unwrap();
    let (worker, count) = &mut workers[keeper];
    assert!(poll_counted(worker, count).is_ready());
    assert_eq!(woken!(workers), 3, "and one for each of the others");
}

#[tokio::test(start_paused = true)]
async fn q1_raising_a_priority_wakes_nobody() {
    let queue = WorkQueue::new();
    let workers = waiting!(queue, 2);
    queue.add("a");
    queue.add_with("a", Add { priority: 5, ..Add::default() });
    assert_eq!(woken!(workers), 1);
}
