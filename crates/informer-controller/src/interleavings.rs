//! Tests of the workers of a queue, of a gate and of the inbox of a controller, with every order of their steps, under loom
//! (`cargo xtask loom`). A wake-up that is lost leaves all threads asleep, which loom reports.
//!
//! The clock is one of their own, which the tests set.

mod gate;
mod inbox;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use informer_core::Time;
use informer_core::queue::{Add, Queue};
use loom::future::block_on;
use loom::sync::Mutex;
use loom::thread;

use crate::queue::shared::{Found, Shared};

/// A queue and a clock.
#[derive(Clone)]
struct Desk {
    queue: Arc<Shared<&'static str>>,
    clock: Arc<Mutex<Clock>>,
}

struct Clock {
    now: Time,
    /// The timers of workers.
    timers: Vec<(Time, Waker)>,
}

fn seconds(seconds: u64) -> Time {
    Time::from_start(Duration::from_secs(seconds))
}

fn desk() -> Desk {
    let clock = Clock { now: Time::ZERO, timers: Vec::new() };
    Desk { queue: Arc::new(Shared::new(Queue::default())), clock: Arc::new(Mutex::new(clock)) }
}

fn add(desk: &Desk, key: &'static str) {
    desk.queue.change(|queue| queue.add(Time::ZERO, key, Add::default()));
}

fn add_later(desk: &Desk, key: &'static str, seconds: u64) {
    let after = Some(Duration::from_secs(seconds));
    desk.queue.change(|queue| queue.add(Time::ZERO, key, Add { after, ..Add::default() }));
}

fn done(desk: &Desk, key: &'static str) {
    desk.queue.change(|queue| queue.done(Time::ZERO, &key));
}

/// Sets the clock. Timers whose time has come fire.
fn set_clock(desk: &Desk, now: Time) {
    let mut clock = desk.clock.lock().unwrap();
    clock.now = now;
    let (due, rest) = clock.timers.drain(..).partition(|(at, _)| *at <= now);
    clock.timers = rest;
    drop(clock);
    let due: Vec<(Time, Waker)> = due;
    due.into_iter().for_each(|(_, waker)| waker.wake());
}

/// The next item, as a worker waits for it; `None` at the end.
fn get(desk: &Desk) -> Option<&'static str> {
    let mut ticket = None;
    block_on(poll_fn(|context| {
        loop {
            let now = desk.clock.lock().unwrap().now;
            let found = match desk.queue.find(&mut ticket, now) {
                Some(found) => Ok(found),
                None => desk.queue.find_or_sleep(&mut ticket, now, context.waker().clone()),
            };
            match found {
                Ok(Found::Item(taken)) => return Poll::Ready(Some(taken.key)),
                Ok(Found::End) => return Poll::Ready(None),
                Err(None) => return Poll::Pending,
                Err(Some(at)) => {
                    let mut clock = desk.clock.lock().unwrap();
                    if clock.now < at {
                        clock.timers.push((at, context.waker().clone()));
                        return Poll::Pending;
                    }
                }
            }
        }
    }))
}

/// A worker that asks once, and does not wait. If it gets an item, it adds it again.
fn ask_and_leave(desk: &Desk) {
    let mut ticket = None;
    match desk.queue.find_or_sleep(&mut ticket, Time::ZERO, Waker::noop().clone()) {
        Ok(Found::Item(taken)) => {
            add(desk, taken.key);
            done(desk, taken.key);
        }
        Ok(Found::End) => {}
        Err(_) => desk.queue.leave(ticket.unwrap()),
    }
}

fn spawn<R: 'static>(desk: &Desk, run: impl FnOnce(&Desk) -> R + 'static) -> thread::JoinHandle<R> {
    let desk = desk.clone();
    thread::spawn(move || run(&desk))
}

#[test]
fn q1_each_worker_gets_one_of_the_items() {
    bounded(3).check(|| {
        let desk = desk();
        let workers = [spawn(&desk, get), spawn(&desk, get)];
        add(&desk, "a");
        add(&desk, "b");
        let mut taken = workers.map(|worker| worker.join().unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [Some("a"), Some("b")]);
    });
}

#[test]
fn q1_an_item_that_is_added_in_process_wakes_the_next_worker_when_it_is_done() {
    bounded(3).check(|| {
        let desk = desk();
        add(&desk, "a");
        assert_eq!(get(&desk), Some("a"));
        let worker = spawn(&desk, get);
        let adder = spawn(&desk, |desk| add(desk, "a"));
        adder.join().unwrap();
        done(&desk, "a");
        assert_eq!(worker.join().unwrap(), Some("a"));
    });
}

#[test]
fn q1_a_worker_that_leaves_takes_no_wake_up_with_it() {
    bounded(3).check(|| {
        let desk = desk();
        let leaver = spawn(&desk, ask_and_leave);
        let worker = spawn(&desk, get);
        add(&desk, "a");
        assert_eq!(worker.join().unwrap(), Some("a"));
        leaver.join().unwrap();
    });
}

#[test]
fn q3_another_worker_keeps_the_time_when_one_has_its_item() {
    bounded(2).check(|| {
        let desk = desk();
        add_later(&desk, "first", 5);
        add_later(&desk, "second", 6);
        let workers = [spawn(&desk, get), spawn(&desk, get)];
        set_clock(&desk, seconds(5));
        set_clock(&desk, seconds(6));
        let mut taken = workers.map(|worker| worker.join().unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [Some("first"), Some("second")]);
    });
}

#[test]
fn q3_the_worker_that_keeps_the_time_hears_of_an_earlier_one() {
    bounded(3).check(|| {
        let desk = desk();
        add_later(&desk, "late", 100);
        let worker = spawn(&desk, get);
        add_later(&desk, "soon", 5);
        set_clock(&desk, seconds(5));
        assert_eq!(worker.join().unwrap(), Some("soon"));
    });
}

#[test]
fn q3_a_worker_whose_item_was_stolen_hears_of_an_earlier_time() {
    bounded(2).check(|| {
        let desk = desk();
        add_later(&desk, "late", 100);
        let work = |desk: &Desk| {
            let taken = get(desk);
            if taken == Some("soon") {
                desk.queue.change(|queue| queue.shut_down(Time::ZERO));
            }
            taken
        };
        let workers = [spawn(&desk, work), spawn(&desk, work)];
        add(&desk, "now");
        let stolen = desk.queue.find(&mut None, Time::ZERO).is_some();
        add_later(&desk, "soon", 5);
        set_clock(&desk, seconds(5));
        let taken = workers.map(|worker| worker.join().unwrap());
        assert!(taken.contains(&Some("soon")));
        assert_eq!(taken.contains(&Some("now")), !stolen);
    });
}

#[test]
fn q2_a_shutdown_ends_all_workers() {
    bounded(3).check(|| {
        let desk = desk();
        add_later(&desk, "later", 5);
        let workers = [spawn(&desk, get), spawn(&desk, get)];
        desk.queue.change(|queue| queue.shut_down(Time::ZERO));
        for worker in workers {
            assert_eq!(worker.join().unwrap(), None);
        }
    });
}

#[test]
fn q2_a_drain_ends_when_the_last_worker_is_done() {
    bounded(3).check(|| {
        let desk = desk();
        add(&desk, "a");
        add(&desk, "b");
        let worker = spawn(&desk, |desk| {
            let mut count = 0;
            while let Some(key) = get(desk) {
                done(desk, key);
                count += 1;
            }
            count
        });
        desk.queue.change(|queue| queue.shut_down_with_drain(Time::ZERO));
        let mut ticket = None;
        block_on(poll_fn(|context| {
            match desk.queue.drained_or_sleep(&mut ticket, context.waker().clone()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
        assert!(desk.queue.read(Queue::is_empty));
        assert_eq!(worker.join().unwrap(), 2);
    });
}

/// Limits the switches between threads that no lock causes: with all of them the tests would take hours.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}
