//! One promise at a time.

use std::rc::Rc;
use std::time::Duration;

use informer_core::Time;
use informer_core::queue::{Add, Config, Queue};

use super::Desk;

/// I3.
#[test]
fn q1_an_item_that_waits_is_not_added_twice() {
    let mut desk = Desk::new();
    for key in ["a", "b", "a", "c", "b"] {
        desk.add(key);
    }
    assert_eq!(desk.queue.len(), 3);
    assert_eq!(desk.process_all(), ["a", "b", "c"]);
}

/// I2, I4.
#[test]
fn q1_an_item_that_is_added_in_process_comes_once_more_after_it_is_done() {
    let mut desk = Desk::new();
    desk.add("a");
    assert_eq!(desk.take(), "a");
    desk.add("a");
    desk.add("a");
    desk.add("b");
    assert_eq!(desk.queue.len(), 1, "it waits for its worker");
    assert_eq!(desk.take(), "b");
    assert_eq!(desk.take(), "", "one worker has it");
    desk.done("a");
    assert_eq!(desk.take(), "a");
    desk.done("a");
    assert_eq!(desk.take(), "");
}

#[test]
fn q1_first_in_is_first_out() {
    let mut desk = Desk::new();
    for key in ["b", "a", "c"] {
        desk.add(key);
    }
    assert_eq!(desk.take(), "b");
    desk.add("b");
    desk.add("d");
    desk.done("b");
    assert_eq!(desk.process_all(), ["a", "c", "d", "b"], "it joins when it is done");
}

#[test]
fn q1_done_without_take_does_nothing() {
    let mut desk = Desk::new();
    desk.done("a");
    desk.add("a");
    desk.done("a");
    assert_eq!(desk.process_all(), ["a"]);
}

#[test]
fn q1_what_is_taken_has_the_marks_of_all_its_adds() {
    let mut desk = Desk::new();
    desk.mark("a", 1);
    desk.mark("a", 4);
    desk.add_after("a", 50);
    assert_eq!(desk.queue.take(desk.now).unwrap().marks, 5);
    desk.mark("a", 2);
    desk.mark("a", 8);
    desk.done("a");
    desk.mark("a", 16);
    assert_eq!(desk.queue.take(desk.now).unwrap().marks, 26);
    desk.done("a");
    desk.add_after("a", 50);
    desk.mark("a", 32);
    assert_eq!(desk.queue.take(desk.now).unwrap().marks, 32);
}

/// I1, I6.
#[test]
fn q2_a_queue_that_was_shut_down_ignores_adds_and_hands_out_the_rest() {
    let mut desk = Desk::new();
    for key in ["a", "b", "c"] {
        desk.add(key);
    }
    assert_eq!(desk.take(), "a");
    desk.add("a");
    assert!(!desk.queue.is_shut_down() && !desk.queue.is_drained());
    desk.queue.shut_down(desk.now);
    assert!(desk.queue.is_shut_down() && desk.queue.is_drained(), "nothing waits for the workers");
    desk.add("d");
    assert_eq!(desk.process_all(), ["b", "c"]);
    desk.add("a");
    desk.done("a");
    assert_eq!(desk.process_all(), ["a"], "it was added before");
}

/// I5, I7.
#[test]
fn q2_a_drain_lasts_until_everything_is_done_items_added_again_included() {
    let mut desk = Desk::new();
    desk.add("a");
    desk.add("b");
    desk.take();
    desk.add("a");
    desk.queue.shut_down_with_drain(desk.now);
    assert_eq!(desk.take(), "b");
    assert_eq!(desk.take(), "");
    desk.done("b");
    assert!(!desk.queue.is_drained());
    desk.done("a");
    assert!(!desk.queue.is_drained(), "it waits again");
    assert_eq!(desk.take(), "a");
    desk.add("a");
    assert!(!desk.queue.is_drained());
    desk.done("a");
    assert!(desk.queue.is_drained());
    assert_eq!(desk.take(), "");
}

/// I6.
#[test]
fn q2_a_plain_shutdown_ends_a_drain() {
    let mut desk = Desk::new();
    desk.add("a");
    desk.take();
    desk.queue.shut_down_with_drain(desk.now);
    assert!(!desk.queue.is_drained());
    desk.queue.shut_down(desk.now);
    assert!(desk.queue.is_drained());
}

/// I9.
#[test]
fn q3_a_delayed_item_does_not_come_before_its_time() {
    let mut desk = Desk::new();
    desk.add_after("a", 50);
    assert_eq!(desk.queue.next_ready(desk.now), Some(Time::ZERO + Duration::from_millis(50)));
    desk.wait(49);
    assert_eq!((desk.take(), desk.queue.len()), ("", 0));
    desk.wait(1);
    desk.queue.advance(desk.now);
    assert_eq!((desk.queue.len(), desk.queue.next_ready(desk.now)), (1, Some(desk.now)));
    assert_eq!(desk.process_all(), ["a"]);
    assert_eq!(desk.queue.next_ready(desk.now), None);
    desk.wait(10_000);
    assert_eq!(desk.take(), "");
}

/// I9.
#[test]
fn q3_of_two_delays_the_earlier_counts() {
    for (first, second) in [(50, 70), (70, 50)] {
        let mut desk = Desk::new();
        desk.add_after("a", first);
        desk.add_after("a", second);
        desk.wait(49);
        assert_eq!(desk.take(), "");
        desk.wait(1);
        assert_eq!(desk.process_all(), ["a"]);
        desk.wait(50);
        assert_eq!(desk.take(), "", "it comes once");
    }
}

/// I9.
#[test]
fn q3_delayed_items_come_in_the_order_of_their_times() {
    let mut desk = Desk::new();
    for (key, after) in [("a", 1_000), ("b", 500), ("c", 250), ("d", 500)] {
        desk.add_after(key, after);
    }
    desk.wait(600);
    desk.add("e");
    desk.wait(1_000);
    assert_eq!(desk.process_all(), ["c", "b", "d", "e", "a"]);
}

/// I9.
#[test]
fn q3_a_delayed_item_that_is_added_without_a_delay_comes_at_once() {
    let mut desk = Desk::new();
    desk.add_after("a", 50);
    desk.add("a");
    assert_eq!(desk.process_all(), ["a"]);
    desk.wait(50);
    assert_eq!(desk.take(), "", "and only once");
    desk.add("a");
    desk.add_after("a", 50);
    assert_eq!(desk.process_all(), ["a"]);
    desk.wait(50);
    assert_eq!(desk.take(), "", "it waited already");
}

#[test]
fn q3_an_item_in_process_that_is_added_with_a_delay_comes_after_both() {
    for done_at in [10, 90] {
        let mut desk = Desk::new();
        desk.add("a");
        desk.take();
        desk.add_after("a", 50);
        desk.add_after("a", 70);
        desk.wait(done_at);
        desk.done("a");
        assert_eq!(desk.queue.len(), usize::from(done_at > 50), "{done_at}");
        desk.wait(50 - done_at.min(50));
        assert_eq!(desk.process_all(), ["a"], "{done_at}");
        desk.wait(50);
        assert_eq!(desk.take(), "", "{done_at}");
    }
}

#[test]
fn q3_a_shutdown_ends_the_wait_of_delayed_items() {
    let mut desk = Desk::new();
    desk.add("a");
    desk.take();
    desk.add_after("a", 50);
    desk.add_after("b", 50);
    desk.add_after("c", 10);
    desk.wait(10);
    desk.queue.shut_down_with_drain(desk.now);
    desk.wait(100);
    desk.done("a");
    assert_eq!(desk.process_all(), ["c"], "its time had come");
    assert_eq!(desk.queue.next_ready(desk.now), None);
    assert!(desk.queue.is_drained());
}

#[test]
fn q3_no_delay_overflows() {
    let mut desk = Desk::new();
    let after = Some(Duration::MAX);
    desk.queue.add(desk.now, "a", Add { after, ..Add::default() });
    desk.now = Time::from_start(Duration::from_secs(1 << 33));
    assert_eq!(desk.take(), "");
    let mut queue = Queue::new(&Config { handicap: Duration::MAX });
    for (key, priority) in [("low", i32::MIN), ("high", i32::MAX)] {
        queue.add(Time::ZERO, key, Add { priority, ..Add::default() });
    }
    assert_eq!(queue.take(Time::ZERO).unwrap().key, "high");
    assert_eq!(queue.take(Time::ZERO).unwrap().key, "low");
}

#[test]
fn q3_a_time_that_goes_back_counts_as_the_latest() {
    let mut desk = Desk::new();
    desk.wait(100);
    desk.add("a");
    desk.now = Time::ZERO;
    desk.add_after("b", 50);
    desk.now = Time::ZERO + Duration::from_millis(149);
    assert_eq!(desk.process_all(), ["a"]);
    desk.wait(1);
    assert_eq!(desk.process_all(), ["b"]);
}

/// I8.
#[test]
fn q5_items_that_left_the_queue_are_freed() {
    let key = Rc::new(7);
    for stop in [true, false] {
        let mut queue = Queue::default();
        queue.add(Time::ZERO, key.clone(), Add::default());
        queue.add(Time::ZERO, Rc::new(8), Add { after: Some(Duration::from_secs(1)), ..Add::default() });
        let taken = queue.take(Time::ZERO).unwrap();
        queue.add(Time::ZERO, key.clone(), Add { after: Some(Duration::from_secs(1)), ..Add::default() });
        assert_eq!(Rc::strong_count(&key), 3, "its worker and the queue have it");
        if stop {
            queue.shut_down(Time::ZERO);
        }
        queue.done(Time::ZERO, &taken.key);
        drop(taken);
        assert_eq!(Rc::strong_count(&key), if stop { 1 } else { 2 });
        drop(queue);
        assert_eq!(Rc::strong_count(&key), 1);
    }
}

#[test]
fn q5_a_shutdown_frees_delayed_items() {
    let key = Rc::new(7);
    let mut queue = Queue::default();
    queue.add(Time::ZERO, key.clone(), Add { after: Some(Duration::from_secs(1)), ..Add::default() });
    queue.shut_down(Time::ZERO);
    assert_eq!(Rc::strong_count(&key), 1);
}
