//! Many producers and workers on several threads (I1 of client-go's tests).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_controller::queue::{Add, WorkQueue};

const PRODUCERS: u32 = 50;
const WORKERS: usize = 10;
const ROUNDS: u32 = 40;
const KEYS: u32 = 30;

/// For each key: whether a worker has it, the last number that a producer wrote for it, and the last that a worker saw.
type Ledger = Arc<Mutex<BTreeMap<u32, (bool, u32, u32)>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn q1_q2_no_two_workers_have_one_item_and_each_sees_the_last_write() {
    let queue = WorkQueue::new();
    let ledger: Ledger = Arc::default();
    let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(work(queue.clone(), ledger.clone()))).collect();
    let producers: Vec<_> =
        (0..PRODUCERS).map(|seed| tokio::spawn(produce(queue.clone(), ledger.clone(), seed))).collect();
    for producer in producers {
        producer.await.unwrap();
    }
    // Items that are delayed by up to a millisecond come before the end.
    queue.add_after(u32::MAX, Duration::from_millis(2));
    while ledger.lock().unwrap().get(&u32::MAX).is_none() {
        tokio::task::yield_now().await;
    }
    queue.shut_down_with_drain().await;
    queue.add(0);
    for worker in workers {
        worker.await.unwrap();
    }
    for (key, (is_taken, written, seen)) in &*ledger.lock().unwrap() {
        assert!(!is_taken);
        assert_eq!(written, seen, "of {key}");
    }
}

async fn produce(queue: WorkQueue<u32>, ledger: Ledger, seed: u32) {
    let mut random = fastrand::Rng::with_seed(seed.into());
    for _ in 0..ROUNDS {
        let key = random.u32(0..KEYS);
        ledger.lock().unwrap().entry(key).or_default().1 += 1;
        let after = random.bool().then(|| Duration::from_micros(random.u64(0..1_000)));
        queue.add_with(key, Add { priority: random.i32(-2..3), after, marks: 0 });
        tokio::task::yield_now().await;
    }
}

async fn work(queue: WorkQueue<u32>, ledger: Ledger) {
    while let Some(key) = queue.get().await {
        let written = {
            let mut ledger = ledger.lock().unwrap();
            let (is_taken, written, _) = ledger.entry(*key).or_default();
            assert!(!*is_taken, "two workers have {}", *key);
            *is_taken = true;
            *written
        };
        tokio::task::yield_now().await;
        let mut ledger = ledger.lock().unwrap();
        let (is_taken, _, seen) = ledger.entry(*key).or_default();
        (*is_taken, *seen) = (false, written);
    }
}
