//! Items that failed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_controller::queue::{Add, Exponential, RateLimiter, Time, WorkQueue};
use tokio::time::Instant;

use super::ms;

#[tokio::test(start_paused = true)]
async fn q3_a_failed_item_waits_longer_each_time_until_it_is_forgotten() {
    let queue = WorkQueue::new();
    let mut waits = Vec::new();
    for retry in 0..6 {
        let start = Instant::now();
        queue.add_rate_limited("a");
        let item = queue.get().await.unwrap();
        waits.push(start.elapsed());
        if retry == 3 {
            assert_eq!(queue.retries(&item), 4);
            queue.forget(&item);
            assert_eq!(queue.retries(&item), 0);
        }
    }
    assert_eq!(waits, [5, 10, 20, 40, 5, 10].map(ms));
}

#[tokio::test(start_paused = true)]
async fn q3_after_a_burst_of_100_there_are_10_retries_per_second() {
    let queue = WorkQueue::new();
    for key in 0..120 {
        queue.add_rate_limited(key);
    }
    let by = |time| {
        let queue = &queue;
        async move {
            tokio::time::advance(time).await;
            queue.len()
        }
    };
    assert_eq!(by(ms(5)).await, 100);
    assert_eq!(by(ms(94)).await, 100);
    assert_eq!(by(ms(1)).await, 101);
    assert_eq!(by(ms(1_000)).await, 111);
    assert_eq!(by(ms(10_000)).await, 120);
}

#[tokio::test(start_paused = true)]
async fn q3_a_limiter_can_be_chosen_and_a_retry_keeps_its_priority() {
    let queue = WorkQueue::builder().rate_limiter(Exponential::new(ms(1), ms(30))).build();
    queue.add_rate_limited_with("a", Add { priority: 7, marks: 2, after: None });
    let start = Instant::now();
    let item = queue.get().await.unwrap();
    assert_eq!((start.elapsed(), item.priority(), item.marks()), (ms(1), 7, 2));
    drop(item);
    queue.add_rate_limited_with("a", Add { after: Some(ms(50)), ..Add::default() });
    let start = Instant::now();
    drop(queue.get().await);
    assert_eq!(start.elapsed(), ms(50), "the longer of both");
    (0..3).for_each(|_| queue.add_rate_limited("a"));
    drop(queue.get().await);
    queue.add_rate_limited_with("a", Add { after: Some(ms(10)), ..Add::default() });
    let start = Instant::now();
    drop(queue.get().await);
    assert_eq!(start.elapsed(), ms(30));
}

/// A limiter of a user, which uses the queue, and panics when it is told to.
struct Curious {
    queue: Arc<Mutex<Option<WorkQueue<&'static str>>>>,
}

impl RateLimiter<&'static str> for Curious {
    fn when(&mut self, _: Time, key: &&'static str) -> Duration {
        let queue = self.queue.lock().unwrap().clone().unwrap();
        queue.add("added by the limiter");
        assert!(!queue.is_empty());
        assert_ne!(*key, "panic", "as it was told");
        Duration::ZERO
    }

    fn forget(&mut self, _: &&'static str) {}

    fn retries(&self, _: &&'static str) -> u32 {
        7
    }
}

#[tokio::test(start_paused = true)]
async fn q3_a_limiter_may_use_the_queue_and_may_panic() {
    let place = Arc::new(Mutex::new(None));
    let queue = WorkQueue::builder().rate_limiter(Curious { queue: place.clone() }).build();
    *place.lock().unwrap() = Some(queue.clone());
    let task = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add_rate_limited("panic") }
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(queue.retries(&"a"), 7);
    queue.add_rate_limited("a");
    assert_eq!(super::process_all(&queue).await, ["added by the limiter", "a"]);
    place.lock().unwrap().take();
}
