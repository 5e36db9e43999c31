//! Work queues without a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use informer::ObjectKey;
use informer_controller::queue::WorkQueue;
use serde_json::{Value, json};

use crate::Failure;

/// Keys, and a queue that was filled with them.
#[derive(Default)]
pub struct QueueBench {
    keys: Vec<ObjectKey>,
    /// The queue of `queue-fill`, which must not be freed before it is measured.
    filled: Option<WorkQueue<ObjectKey>>,
}

impl QueueBench {
    pub fn new(items: usize) -> Result<Self, Failure> {
        let key = |i| format!("namespace-{}/name-of-a-pod-{i}", i % 300).parse();
        Ok(Self { keys: (0..items).map(key).collect::<Result<_, _>>()?, filled: None })
    }

    /// Adds all keys to a new queue, which stays.
    pub fn fill(&mut self) -> usize {
        self.filled.insert(self.full()).len()
    }

    fn full(&self) -> WorkQueue<ObjectKey> {
        let queue = WorkQueue::new();
        self.keys.iter().for_each(|key| queue.add(key.clone()));
        queue
    }

    /// Adds all keys to a new queue, then lets workers get and finish all of them. It does so twice, with one worker and with
    /// eight, and returns the mean times of an item.
    pub fn measure(&self) -> Result<Value, Failure> {
        let per_item = |time: Duration| time.as_nanos() as f64 / self.keys.len() as f64;
        let mut times = json!({});
        for (name, workers) in [("getOne", 1), ("getEight", 8)] {
            let begin = Instant::now();
            let queue = self.full();
            times["add"] = json!(per_item(begin.elapsed()));
            if queue.len() != self.keys.len() {
                return Err(format!("{} of {} items wait", queue.len(), self.keys.len()).into());
            }
            times[name] = json!(per_item(self.work(&queue, workers)?));
        }
        Ok(times)
    }

    /// Lets workers process all items. They stop when each item was processed once. They run on threads of their own, as many
    /// as there are cores, like goroutines.
    fn work(&self, queue: &WorkQueue<ObjectKey>, workers: usize) -> Result<Duration, Failure> {
        let (items, length) = (self.keys.len(), Arc::new(AtomicUsize::new(0)));
        let taken = Arc::new(AtomicUsize::new(0));
        let worker = || {
            let (queue, length, taken) = (queue.clone(), length.clone(), taken.clone());
            async move {
                while taken.fetch_add(1, Ordering::Relaxed) < items {
                    let Some(key) = queue.get().await else { return };
                    length.fetch_add(key.as_str().len(), Ordering::Relaxed);
                }
            }
        };
        // The caller is in a runtime of its own, where it must not wait.
        let time = std::thread::scope(|scope| {
            let run = scope.spawn(|| -> Result<Duration, Failure> {
                let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
                let begin = Instant::now();
                runtime.block_on(async {
                    let tasks: Vec<_> = (0..workers).map(|_| tokio::spawn(worker())).collect();
                    for task in tasks {
                        task.await?;
                    }
                    Ok(begin.elapsed())
                })
            });
            run.join().map_err(|_| "a worker panicked")?
        })?;
        let expected: usize = self.keys.iter().map(|key| key.as_str().len()).sum();
        match (length.load(Ordering::Relaxed), queue.len()) {
            (processed, 0) if processed == expected => Ok(time),
            (processed, left) => Err(format!(
                "keys of {processed} bytes were processed, not {expected}; {left} items are left"
            )
            .into()),
        }
    }
}
