//! Issue 12, first item 2: a slow reader loses nothing without a word. The backlog is bounded in bytes, and beyond the
//! bound merged per object.

use kubediff::backlog::{Backlog, Item};

use crate::support::seeded;

/// Some of the changes of an object, the first and the last by number; or a notice about none.
#[derive(Debug, Clone, PartialEq)]
struct Changes {
    object: Option<u8>,
    first: u32,
    last: u32,
    count: u32,
    bytes: usize,
}

impl Item for Changes {
    type Key = u8;

    fn key(&self) -> Option<u8> {
        self.object
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn merge(&mut self, next: Self) {
        assert_eq!(self.object, next.object);
        assert!(self.last < next.first, "in order");
        self.last = next.last;
        self.count += next.count;
        self.bytes = self.bytes.max(next.bytes);
    }
}

fn change(object: u8, number: u32, bytes: usize) -> Changes {
    Changes { object: Some(object), first: number, last: number, count: 1, bytes }
}

#[test]
fn within_the_bound_everything_waits_as_it_came() {
    let mut backlog = Backlog::new(1_000);
    let all: Vec<Changes> = (0..100).map(|number| change((number % 3) as u8, number, 10)).collect();
    all.iter().cloned().for_each(|change| backlog.push(change));
    assert_eq!((backlog.len(), backlog.bytes(), backlog.merged()), (100, 1_000, 0));
    let popped: Vec<Changes> = std::iter::from_fn(|| backlog.pop()).collect();
    assert_eq!(popped, all);
    assert_eq!((backlog.bytes(), backlog.is_empty()), (0, true));
}

#[test]
fn beyond_the_bound_objects_take_turns_in_being_merged() {
    let mut backlog = Backlog::new(50);
    for number in 0..9 {
        backlog.push(change((number % 3) as u8, number, 10));
    }
    let popped: Vec<_> =
        std::iter::from_fn(|| backlog.pop()).map(|it| (it.object, it.first, it.last, it.count)).collect();
    assert_eq!(
        popped,
        [(Some(0), 0, 6, 3), (Some(1), 1, 4, 2), (Some(2), 2, 5, 2), (Some(1), 7, 7, 1), (Some(2), 8, 8, 1)]
    );
}

#[test]
fn what_belongs_to_no_object_stays() {
    let mut backlog = Backlog::new(0);
    for number in 0..6 {
        let notice = Changes { object: None, ..change(0, number, 10) };
        backlog.push(notice);
    }
    assert_eq!((backlog.len(), backlog.merged()), (6, 0));
}

/// Random pushes and pops against what must hold for any backlog: every change reaches the reader, alone or in a merged one;
/// per object in order and without a hole; nothing is merged while there is room; more than the bound waits only when each
/// object has one item.
#[test]
fn random_backlogs_lose_nothing() {
    let mut random = seeded("random_backlogs_lose_nothing");
    for _ in 0..2_000 {
        let bound = random.usize(0..400);
        let objects = random.u8(1..12);
        let mut backlog = Backlog::new(bound);
        // The next change of each object that the reader expects, and the next to happen.
        let (mut read, mut written) = (vec![0; usize::from(objects)], vec![0; usize::from(objects)]);
        let mut notices = (0, 0);
        let mut all_bytes = 0;
        for step in 0..random.usize(1..200) {
            let reads = random.bool() && step % 3 == 0;
            if !reads {
                let object = random.u8(0..objects);
                let bytes = random.usize(1..40);
                let merged = backlog.merged();
                let before = backlog.bytes();
                if random.u8(0..10) == 0 {
                    backlog.push(Changes { object: None, first: notices.0, last: 0, count: 0, bytes });
                    notices.0 += 1;
                } else {
                    let number = &mut written[usize::from(object)];
                    backlog.push(change(object, *number, bytes));
                    *number += 1;
                }
                assert!(before + bytes > bound || backlog.merged() == merged, "there was room");
                all_bytes += bytes;
            } else if let Some(item) = backlog.pop() {
                all_bytes = backlog.bytes();
                take(&item, &mut read, &mut notices.1);
            }
            assert!(backlog.bytes() <= all_bytes);
            let pending = written.iter().zip(&read).filter(|(written, read)| written > read).count();
            let least = pending + usize::try_from(notices.0 - notices.1).unwrap();
            assert!(backlog.bytes() <= bound || backlog.len() == least, "merged as far as possible");
        }
        while let Some(item) = backlog.pop() {
            take(&item, &mut read, &mut notices.1);
        }
        assert_eq!((read, notices.1, backlog.bytes()), (written, notices.0, 0));
    }
}

fn take(item: &Changes, read: &mut [u32], notices: &mut u32) {
    match item.object {
        None => {
            assert_eq!(item.first, *notices);
            *notices += 1;
        }
        Some(object) => {
            let next = &mut read[usize::from(object)];
            assert_eq!((item.first, item.last + 1), (*next, *next + item.count));
            *next += item.count;
        }
    }
}
