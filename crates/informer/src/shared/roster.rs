//! The subscriptions of one informer by name, with the numbers of each.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use informer_core::engine::Subscriber;

use crate::counters::{CallMeter, HandlerMetrics, lowest_free};
use crate::lock::lock;

#[derive(Default)]
pub(super) struct Roster(Mutex<Vec<Arc<Subscription>>>);

/// One subscription, and what observers know of it.
pub(crate) struct Subscription {
    subscriber: Arc<Subscriber>,
    name: String,
    /// Its name, where none was given; else 0.
    number: usize,
    pub(crate) meter: CallMeter,
}

impl Roster {
    /// Notes a subscription. One without a name is called by a number.
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
