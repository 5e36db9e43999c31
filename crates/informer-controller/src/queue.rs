//! The work queue: which key a worker processes next.
//!
//! It has the semantics of client-go's work queue. An item that waits is not added twice. An item that is added while a worker
//! has it comes once more, after it is done. So two workers never have the same item. Items can be delayed, and failed ones
//! wait longer each time. Beyond client-go's queue, items have priorities that cannot starve.
//!
//! ```
//! use informer::ObjectKey;
//! use informer_controller::queue::WorkQueue;
//!
//! # async fn reconcile(_: &ObjectKey) -> Result<(), String> { Ok(()) }
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let queue = WorkQueue::<ObjectKey>::new();
//! queue.add("shop/cart".parse()?);
//!
//! let worker = tokio::spawn({
//!     let queue = queue.clone();
//!     async move {
//!         while let Some(item) = queue.get().await {
//!             match reconcile(&item).await {
//!                 Ok(()) => queue.forget(&item),
//!                 Err(_) => queue.add_rate_limited(item.clone()),
//!             }
//!             // The item is done when it is dropped here.
//!         }
//!     }
//! });
//! queue.shut_down_with_drain().await;
//! worker.await.unwrap();
//! # Ok::<(), informer::InvalidKey>(())
//! # }).unwrap();
//! ```
//!
//! | client-go, controller-runtime | here |
//! |---|---|
//! | `workqueue.NewTypedRateLimitingQueue` | [`WorkQueue::new`], [`WorkQueue::builder`] |
//! | `Get`, then `Done` | [`WorkQueue::get`], then drop the [`Taken`] |
//! | `AddWithOpts` of the priority queue | [`WorkQueue::add_with`] |
//! | `NumRequeues` | [`WorkQueue::retries`] |
//! | `handler.LowPriority` | [`LOW_PRIORITY`] |
//!
//! One difference matters to somebody who knows client-go: there, an item can wait to be taken and be delayed as well, so that
//! it comes twice. Here both adds become one, as in controller-runtime's priority queue, and it comes at the earlier time.
//!
//! There is no task in the background. The workers that wait in [`WorkQueue::get`] also wait for the time of the next delayed
//! item.

mod builder;
mod inner;
mod taken;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use informer_core::queue::Queue;
use tokio::task::coop::cooperative;

use crate::metrics::QueueMetrics;
use crate::sync::lock;
use inner::Inner;

pub use builder::WorkQueueBuilder;
pub use informer_core::Time;
pub use informer_core::queue::{
    Add, Config, Exponential, LOW_PRIORITY, RateLimiter, TokenBucket, default_rate_limiter,
};
pub use taken::Taken;

/// A work queue. A clone is another handle of the same queue.
///
/// The key of an item is a name that is cheap to clone, such as [`ObjectKey`](informer::ObjectKey). Keys are compared, hashed,
/// cloned and dropped under the queue's lock, where they must not call the queue. No other user code runs under that lock.
///
/// Adding, taking and finishing an item are O(1) in the number of items, and linear in the number of priorities that wait;
/// with a delay, O(log delayed items). A waiting item takes about 43 bytes if its key takes 16,
/// as an `ObjectKey` does. Nothing bounds the number of items but the number of different keys. When the last handle and the
/// last [`Taken`] are dropped, all items are.
pub struct WorkQueue<K>(Arc<Inner<K>>);

impl<K: Clone + Eq + Hash + Send + 'static> WorkQueue<K> {
    /// An empty queue with client-go's default rate limiter and without a name.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts with the defaults.
    pub fn builder() -> WorkQueueBuilder<K> {
        WorkQueueBuilder::default()
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    fn of(choices: WorkQueueBuilder<K>) -> Self {
        let WorkQueueBuilder { name, limiter, config } = choices;
        Self(Arc::new(Inner::new(name, Queue::new(&config), limiter)))
    }

    /// The name of the queue in metrics.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Adds an item. If it waits already, nothing changes. If a worker has it, it comes once more after it is done.
    ///
    /// A queue that was shut down ignores all adds.
    pub fn add(&self, key: K) {
        self.add_with(key, Add::default());
    }

    /// Adds an item with a priority, a delay or marks. If it waits already, both adds become one: with the earlier time, the
    /// higher priority and the marks of both. If it has waited so long that it comes sooner with the lower priority, it keeps
    /// that one.
    ///
    /// ```
    /// use informer_controller::queue::{Add, LOW_PRIORITY, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_with("shop/cart", Add { priority: LOW_PRIORITY, ..Add::default() });
    /// queue.add("shop/till");
    /// queue.add("shop/cart");
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let first = queue.get().await.unwrap();
    /// assert_eq!((*first, first.priority()), ("shop/till", 0));
    /// let second = queue.get().await.unwrap();
    /// assert_eq!((*second, second.priority()), ("shop/cart", 0));
    /// # });
    /// ```
    pub fn add_with(&self, key: K, add: Add) {
        self.0.add(key, add);
    }

    /// Adds an item that is not ready before the delay has passed. Of several delays the earliest counts; an add without a
    /// delay ends it. Delayed items are dropped when the queue is shut down.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(key, Add { after: Some(delay), ..Add::default() });
    }

    /// Counts a retry of the item, and adds it after the delay that the rate limiter asks for.
    ///
    /// A worker calls this for an item that failed, before the item is done, and [`forget`](Self::forget) for one that
    /// succeeded.
    pub fn add_rate_limited(&self, key: K) {
        self.add_rate_limited_with(key, Add::default());
    }

    /// The same with a priority or marks. A delay in `add` is the least one.
    pub fn add_rate_limited_with(&self, key: K, add: Add) {
        if !self.is_shut_down() {
            let delay = self.0.back_off(&key).max(add.after.unwrap_or_default());
            self.add_with(key, Add { after: Some(delay), ..add });
        }
    }

    /// Forgets the retries of an item: its next delay is the first one again. Call it for an item that succeeded, and for one
    /// that is not tried again, because the rate limiter remembers each item that failed.
    pub fn forget(&self, key: &K) {
        lock(&self.0.limiter).forget(key);
    }

    /// The number of retries of an item since it was last forgotten.
    pub fn retries(&self, key: &K) -> u32 {
        lock(&self.0.limiter).retries(key)
    }

    /// The number of items that are ready: without delayed ones, and without those in process that were added again. It may
    /// have changed when the call returns.
    pub fn len(&self) -> usize {
        self.0.change(|queue, now| {
            queue.advance(now);
            queue.len()
        })
    }

    /// Whether no item is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the next item. Returns `None` when the queue was shut down and no item is left; then the worker ends.
    ///
    /// The item is in process until the [`Taken`] is dropped. While items are delayed, this needs a tokio runtime with time.
    /// It returns to the runtime now and then even if there is always an item.
    ///
    /// Cancel safe: a future that is dropped takes no item, and one that was woken for an item wakes another worker for it.
    /// A future that is kept but not polled, beside other branches of a `select!`, keeps that item waiting until then or until the
    /// next change of the queue.
    pub async fn get(&self) -> Option<Taken<K>> {
        let taken = cooperative(self.0.take()).await?;
        Some(Taken::new(self.0.clone(), taken))
    }

    /// Shuts the queue down: adds are ignored from now on, and delayed items are dropped. Workers still get the items that are
    /// ready, and those in process that were added again before. This ends the wait of
    /// [`shut_down_with_drain`](Self::shut_down_with_drain).
    pub fn shut_down(&self) {
        self.0.change(|queue, now| queue.shut_down(now));
    }

    /// Shuts the queue down, and waits until workers have taken all items that are ready and are done with everything, items
    /// that were added again before included. Without workers this lasts until [`shut_down`](Self::shut_down).
    ///
    /// Cancel safe: the queue stays shut down.
    pub async fn shut_down_with_drain(&self) {
        self.0.change(|queue, now| queue.shut_down_with_drain(now));
        self.0.wait_for_drain().await;
    }

    /// Whether the queue was shut down.
    pub fn is_shut_down(&self) -> bool {
        self.0.is_shut_down()
    }

    /// The numbers of the queue, under the names of client-go ([`metrics`](crate::metrics)). O(items in process).
    pub fn metrics(&self) -> QueueMetrics {
        let numbers = self.0.change(|queue, now| {
            queue.advance(now);
            queue.metrics(now)
        });
        QueueMetrics::new(&self.0.name, numbers)
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("name", &self.0.name).finish_non_exhaustive()
    }
}
