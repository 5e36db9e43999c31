//! The subscriptions of one informer, with their names and numbers.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use informer_core::engine::Subscriber;

use crate::inner::counters::{CallMeter, HandlerMetrics, lowest_free};
use crate::lock::lock;

#[derive(Default)]
pub(super) struct Roster(Mutex<Vec<Arc<Subscription>>>);

/// One subscription, with its name and its metrics.
pub(crate) struct Subscription {
    subscriber: Arc<Subscriber>,
    name: String,
    /// The number that is its name, or 0 if the program gave a name.
    number: usize,
    pub(crate) meter: CallMeter,
}

impl Roster {
    /// Adds a subscription. One without a name gets a number as its name.
    pub(super) fn add(&self, subscriber: Arc<Subscriber>, name: Option<String>) -> Arc<Subscription> {
        let mut subscriptions = lock(&self.0);
        let others = subscriptions.iter().map(|other| other.number);
        let number = if name.is_some() { 0 } else { lowest_free(others) };
        let subscription = Arc::new(Subscription {
            subscriber,
            name: name.unwrap_or_else(|| number.to_string()),
            number,
            meter: CallMeter::default(),
        });
        subscriptions.push(subscription.clone());
        subscription
    }

    pub(super) fn remove(&self, subscription: &Arc<Subscription>) {
        lock(&self.0).retain(|candidate| !Arc::ptr_eq(candidate, subscription));
    }

    pub(super) fn metrics(&self) -> Vec<HandlerMetrics> {
        lock(&self.0).iter().map(|subscription| subscription.metrics()).collect()
    }
}

impl Subscription {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn subscriber(&self) -> &Arc<Subscriber> {
        &self.subscriber
    }

    fn metrics(&self) -> HandlerMetrics {
        HandlerMetrics {
            name: self.name.clone(),
            backlog: self.backlog(),
            calls: self.meter.calls(),
            call_time: self.meter.time(),
            call_under_way: self.meter.under_way(),
        }
    }
}

impl Deref for Subscription {
    type Target = Subscriber;

    fn deref(&self) -> &Subscriber {
        &self.subscriber
    }
}
