//! A queue and the workers that wait for it, under one lock.
//!
//! No user code runs under the lock, except what a key does when it is compared, hashed, cloned or dropped. Wakers are cloned, woken and
//! dropped outside of it.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::task::Waker;

use informer_core::Time;
use informer_core::queue::{Queue, Taken};

use super::waiters::{Ticket, Waiters, Work};
use crate::sync::{Mutex, MutexGuard, lock};

pub(crate) struct Shared<K>(Mutex<State<K>>);

struct State<K> {
    queue: Queue<K>,
    waiters: Waiters,
    /// Those that wait for the drain, by numbers.
    drains: BTreeMap<u64, Waker>,
    next_drain: u64,
}

/// What a worker gets.
pub(crate) enum Found<K> {
    Item(Taken<K>),
    /// The queue was shut down, and nothing is left to take.
    End,
}

impl<K: Clone + Eq + Hash> Shared<K> {
    pub(crate) fn new(queue: Queue<K>) -> Self {
        let (waiters, drains) = (Waiters::default(), BTreeMap::new());
        Self(Mutex::new(State { queue, waiters, drains, next_drain: 0 }))
    }

    /// Changes the queue, and wakes whoever waits for that.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Queue<K>) -> R) -> R {
        let mut state = lock(&self.0);
        let result = change(&mut state.queue);
        self.wake(state);
        result
    }

    /// Looks at the queue.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Queue<K>) -> R) -> R {
        read(&lock(&self.0).queue)
    }

    /// Takes an item for a worker, which waits no longer then.
    pub(crate) fn find(&self, ticket: &mut Option<Ticket>, now: Time) -> Option<Found<K>> {
        let mut state = lock(&self.0);
        let found = state.find(now)?;
        let own = ticket.take().and_then(|ticket| state.waiters.awake(ticket));
        self.wake(state);
        drop(own);
        Some(found)
    }

    /// Takes an item for a worker, or lets it sleep until `waker` is woken. If that returns a time, the worker looks again at
    /// that time by itself.
    pub(crate) fn find_or_sleep(
        &self,
        ticket: &mut Option<Ticket>,
        now: Time,
        waker: Waker,
    ) -> Result<Found<K>, Option<Time>> {
        let mut state = lock(&self.0);
        let before = ticket.and_then(|ticket| state.waiters.awake(ticket));
        let result = match state.find(now) {
            Some(found) => {
                *ticket = None;
                self.wake(state);
                Ok(found)
            }
            None => {
                let next = state.queue.next_ready(now);
                let keeps = state.waiters.sleep(ticket, waker, next);
                drop(state);
                Err(keeps)
            }
        };
        drop(before);
        result
    }

    /// A worker does not wait any more.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let mut state = lock(&self.0);
        let own = state.waiters.awake(ticket);
        self.wake(state);
        drop(own);
    }

    /// Whether the wait for a drain is over. Otherwise `waker` is woken when it is.
    pub(crate) fn drained_or_sleep(&self, ticket: &mut Option<u64>, waker: Waker) -> bool {
        let mut state = lock(&self.0);
        if state.queue.is_drained() {
            return true;
        }
        let next = state.next_drain;
        let number = *ticket.get_or_insert(next);
        state.next_drain += u64::from(number == next);
        let before = state.drains.insert(number, waker);
        drop(state);
        drop(before);
        false
    }

    /// Somebody does not wait for the drain any more.
    pub(crate) fn leave_drain(&self, ticket: u64) {
        let own = lock(&self.0).drains.remove(&ticket);
        drop(own);
    }

    /// Wakes one after the other, each without the lock.
    fn wake<'a>(&'a self, mut state: MutexGuard<'a, State<K>>) {
        while let Some(waker) = state.wake_next() {
            drop(state);
            waker.wake();
            state = lock(&self.0);
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn find(&mut self, now: Time) -> Option<Found<K>> {
        match self.queue.take(now) {
            Some(taken) => Some(Found::Item(taken)),
            None => self.queue.is_shut_down().then_some(Found::End),
        }
    }

    fn wake_next(&mut self) -> Option<Waker> {
        if !self.drains.is_empty() && self.queue.is_drained() {
            return self.drains.pop_first().map(|(_, waker)| waker);
        }
        if self.waiters.are_none() {
            return None;
        }
        let work = Work {
            ready: self.queue.len(),
            // Without items that are ready, this is the time of the next delayed one, however late.
            next: self.queue.next_ready(Time::ZERO),
            is_over: self.queue.is_shut_down() && self.queue.is_empty(),
        };
        self.waiters.wake_next(&work)
    }
}
