//! Shutting down.

use std::sync::Arc;

use informer_controller::queue::WorkQueue;

use super::{ms, now_or_never, process_all, take};

#[tokio::test(start_paused = true)]
async fn q2_workers_get_the_rest_and_then_the_end() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add("b");
    queue.add_after("c", ms(10));
    let taken = take(&queue).await.unwrap();
    queue.add("a");
    queue.shut_down();
    assert!(queue.is_shut_down());
    queue.add("d");
    queue.add_rate_limited("d");
    assert_eq!(queue.retries(&"d"), 0);
    assert_eq!(*queue.get().await.unwrap(), "b");
    assert!(queue.get().await.is_none(), "one is in process, and comes again after it is done");
    drop(taken);
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert!(queue.get().await.is_none());
    tokio::time::advance(ms(20)).await;
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn q2_a_shutdown_ends_every_worker_that_waits() {
    let queue = WorkQueue::<&str>::new();
    queue.add_after("later", ms(10));
    let get = |queue: WorkQueue<_>| async move { queue.get().await.is_none() };
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(get(queue.clone()))).collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn q2_a_drain_returns_when_everything_is_done_items_added_again_included() {
    let queue = WorkQueue::new();
    for key in ["a", "b"] {
        queue.add(key);
    }
    let taken = take(&queue).await.unwrap();
    queue.add("a");
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    tokio::task::yield_now().await;
    assert!(queue.is_shut_down());
    assert_eq!(process_all(&queue).await, ["b"]);
    tokio::task::yield_now().await;
    assert!(!drain.is_finished());
    drop(taken);
    tokio::task::yield_now().await;
    assert!(!drain.is_finished(), "it waits again");
    let again = take(&queue).await.unwrap();
    tokio::task::yield_now().await;
    assert!(!drain.is_finished());
    drop(again);
    drain.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn q2_a_plain_shutdown_frees_those_who_wait_for_a_drain() {
    let queue = WorkQueue::new();
    queue.add("a");
    let taken = take(&queue).await.unwrap();
    let drains: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.shut_down_with_drain().await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert!(drains.iter().all(|drain| !drain.is_finished()));
    queue.shut_down();
    for drain in drains {
        drain.await.unwrap();
    }
    drop(taken);
}

#[tokio::test(start_paused = true)]
async fn q2_a_drain_of_an_idle_queue_returns_at_once_and_a_dropped_one_changes_nothing() {
    let queue = WorkQueue::<&str>::new();
    assert!(now_or_never(queue.shut_down_with_drain()).await.is_some());
    let queue = WorkQueue::new();
    queue.add("a");
    assert!(now_or_never(queue.shut_down_with_drain()).await.is_none());
    assert!(queue.is_shut_down());
    assert_eq!(process_all(&queue).await, ["a"]);
    assert!(now_or_never(queue.shut_down_with_drain()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn q5_a_shutdown_frees_delayed_items() {
    let key = Arc::new(7);
    let queue = WorkQueue::new();
    queue.add_after(key.clone(), ms(10));
    queue.shut_down();
    assert_eq!(Arc::strong_count(&key), 1);
}
