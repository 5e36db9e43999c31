//! Workers and the items that they get.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_controller::queue::{Add, LOW_PRIORITY, WorkQueue};
use tokio::time::Instant;

use super::{ms, process_all, take};

#[tokio::test(start_paused = true)]
async fn q1_an_item_that_waits_is_not_added_twice_and_first_in_is_first_out() {
    let queue = WorkQueue::new();
    for key in ["b", "a", "b", "c"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(process_all(&queue).await, ["b", "a", "c"]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn q1_an_item_that_is_added_in_process_comes_once_more_after_it_is_dropped() {
    let queue = WorkQueue::new();
    queue.add("a");
    let taken = take(&queue).await.unwrap();
    queue.add("a");
    queue.add("a");
    assert!(take(&queue).await.is_none());
    drop(taken);
    assert_eq!(process_all(&queue).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn q1_an_item_is_done_after_a_panic() {
    let queue = WorkQueue::new();
    queue.add("a");
    let taken = take(&queue).await.unwrap();
    queue.add("a");
    let worker = || {
        let _taken = taken;
        panic!("the reconcile function failed");
    };
    assert!(catch_unwind(AssertUnwindSafe(worker)).is_err());
    assert_eq!(process_all(&queue).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn q1_q5_what_is_taken_says_how_it_was_added() {
    let queue = WorkQueue::new();
    queue.add_with("a", Add { priority: LOW_PRIORITY, marks: 1, after: None });
    queue.add_with("b", Add { priority: LOW_PRIORITY, marks: 4, after: Some(ms(10)) });
    queue.add("c");
    queue.add_with("a", Add { priority: -3, marks: 2, after: None });
    tokio::time::advance(ms(10)).await;
    let mut taken = Vec::new();
    while let Some(item) = take(&queue).await {
        taken.push((*item, item.priority(), item.marks()));
    }
    assert_eq!(taken, [("c", 0, 0), ("a", -3, 3), ("b", LOW_PRIORITY, 4)]);
}

#[tokio::test(start_paused = true)]
async fn q5_a_low_priority_waits_no_longer_than_its_handicap() {
    let queue = WorkQueue::builder().handicap(ms(10)).build();
    queue.add_with("low", Add { priority: -2, ..Add::default() });
    tokio::time::advance(ms(19)).await;
    queue.add("soon after");
    tokio::time::advance(ms(2)).await;
    queue.add("later");
    assert_eq!(process_all(&queue).await, ["soon after", "low", "later"]);
}

#[tokio::test(start_paused = true)]
async fn q3_a_worker_that_waits_gets_a_delayed_item_at_its_time() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    queue.add_after("b", ms(70));
    queue.add_after("a", ms(50));
    queue.add_after("a", ms(90));
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert_eq!(start.elapsed(), ms(50));
    assert_eq!(*queue.get().await.unwrap(), "b");
    assert_eq!(start.elapsed(), ms(70));
    tokio::time::advance(ms(100)).await;
    assert!(take(&queue).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn q3_a_worker_that_waits_hears_of_an_earlier_time() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    queue.add_after("late", ms(1_000));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { *queue.get().await.unwrap() }
    });
    tokio::task::yield_now().await;
    queue.add_after("soon", ms(20));
    assert_eq!(worker.await.unwrap(), "soon");
    assert_eq!(start.elapsed(), ms(20));
}

#[tokio::test(start_paused = true)]
async fn q3_each_of_many_workers_gets_its_delayed_item_in_time() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    let work = |queue: WorkQueue<u64>| async move {
        let item = queue.get().await.unwrap();
        (*item, start.elapsed())
    };
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(work(queue.clone()))).collect();
    tokio::task::yield_now().await;
    for number in [30, 10, 80, 20, 50, 70, 40, 60] {
        queue.add_after(number, ms(number));
    }
    for worker in workers {
        let (number, at) = worker.await.unwrap();
        assert_eq!(at, ms(number));
    }
}

#[tokio::test(start_paused = true)]
async fn q3_a_delay_of_any_length_is_none_too_long() {
    let queue = WorkQueue::new();
    queue.add_after("a", std::time::Duration::MAX);
    let wait = tokio::time::timeout(ms(1_000), queue.get());
    assert!(wait.await.is_err());
    queue.add("a");
    assert_eq!(*queue.get().await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn q5_the_last_handle_frees_the_items() {
    let key = Arc::new(7);
    let queue = WorkQueue::new();
    queue.add(key.clone());
    queue.add_after(Arc::new(8), ms(10));
    let other = queue.clone();
    drop(queue);
    let taken = other.get().await.unwrap();
    other.add_rate_limited(key.clone());
    drop(other);
    assert!(Arc::strong_count(&key) > 1, "its worker has it");
    drop(taken);
    assert_eq!(Arc::strong_count(&key), 1);
}

#[tokio::test]
async fn a_worker_without_a_pause_lets_other_tasks_run() {
    let queue = WorkQueue::new();
    let other = tokio::spawn(async {});
    // Each item is added again while it is in process, so there is always one.
    queue.add("a");
    for _ in 0..10_000 {
        let item = queue.get().await.unwrap();
        queue.add(*item);
        if other.is_finished() {
            return;
        }
    }
    panic!("the other task did not run");
}
