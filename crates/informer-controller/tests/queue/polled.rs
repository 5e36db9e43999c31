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
async fn q3_an_earlier_time_wakes_every_worker_that_waits_and_a_later_one_none() {
    let queue = WorkQueue::new();
    queue.add_after("a", ms(10));
    let mut workers = waiting!(queue, 8);
    queue.add_after("b", ms(30));
    assert_eq!(woken!(workers), 0);
    queue.add_after("c", ms(5));
    assert_eq!(woken!(workers), 8);
    for (worker, count) in &mut workers {
        assert!(poll_counted(worker, count).is_pending());
    }
    tokio::time::advance(ms(6)).await;
    let (worker, count) = &mut workers[0];
    assert_eq!(count.get(), 2);
    assert!(poll_counted(worker, count).is_ready(), "c");
    let (worker, count) = &mut workers[1];
    assert!(poll_counted(worker, count).is_pending());
    tokio::time::advance(ms(5)).await;
    assert!(poll_counted(worker, count).is_ready(), "a");
}

#[tokio::test(start_paused = true)]
async fn q3_a_worker_that_waited_before_any_delay_gets_the_item_although_another_stops_waiting() {
    let queue = WorkQueue::new();
    let mut workers = waiting!(queue, 2);
    queue.add_after("a", ms(10));
    drop(workers.remove(0));
    let (worker, count) = &mut workers[0];
    assert!(poll_counted(worker, count).is_pending());
    let before = count.get();
    tokio::time::advance(ms(11)).await;
    assert_eq!(count.get(), before + 1);
    assert!(poll_counted(worker, count).is_ready());
}

#[tokio::test(start_paused = true)]
async fn q3_a_delay_that_begins_while_an_item_is_ready_wakes_the_other_workers() {
    let queue = WorkQueue::new();
    let mut workers = waiting!(queue, 2);
    queue.add("now");
    queue.add_after("later", ms(10));
    let mut first = workers.remove(0);
    assert!(poll_counted(&mut first.0, &first.1).is_ready());
    let (worker, count) = &mut workers[0];
    assert!(poll_counted(worker, count).is_pending());
    tokio::time::advance(ms(11)).await;
    assert!(poll_counted(worker, count).is_ready());
}

#[tokio::test(start_paused = true)]
async fn q3_several_items_of_one_time_each_go_to_a_worker() {
    let queue = WorkQueue::new();
    for key in ["a", "b", "c"] {
        queue.add_after(key, ms(10));
    }
    let mut workers = waiting!(queue, 8);
    tokio::time::advance(ms(11)).await;
    let mut items = Vec::new();
    for (worker, count) in workers.iter_mut().filter(|(_, count)| count.get() > 0) {
        if let std::task::Poll::Ready(Some(item)) = poll_counted(worker, count) {
            items.push(item);
        }
    }
    assert_eq!(items.iter().map(|item| **item).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn q1_raising_a_priority_wakes_nobody() {
    let queue = WorkQueue::new();
    let workers = waiting!(queue, 2);
    queue.add("a");
    queue.add_with("a", Add { priority: 5, ..Add::default() });
    assert_eq!(woken!(workers), 1);
}
