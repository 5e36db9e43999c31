//! Writes without an answer, as caches reflect them.

use std::sync::Arc;
use std::time::Duration;

use informer_core::control::{CacheStates, Control, End, Found, OwnWrite, Step, Work};
use informer_core::queue::{LOW_PRIORITY, Queue};
use informer_core::{Object, ObjectKey, ResourceVersion, Time};

/// A cache of at most one object.
struct One(Option<u64>, u64);

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&number.to_string())
}

fn key() -> ObjectKey {
    ObjectKey::new(Some("shop"), "cart").unwrap()
}

impl CacheStates for One {
    fn object(&self, _: usize, _: &ObjectKey) -> Option<Arc<Object>> {
        let json = |version| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"cart","namespace":"shop","uid":"u{version}","resourceVersion":"{version}"}}}}"#
            )
        };
        self.0.map(|version| Arc::new(Object::from_json(json(version).as_bytes()).unwrap()))
    }

    fn version(&self, _: usize) -> ResourceVersion {
        version(self.1)
    }
}

fn uncertain() -> OwnWrite {
    OwnWrite::Uncertain { cache: 0, namespace: Some("shop".to_owned()), name: Some("cart".to_owned()) }
}

/// The controller wrote an incarnation that the cache has not seen, and somebody deleted it.
#[test]
fn q7_an_object_that_the_server_does_not_have_is_not_read_in_a_state_before_that() {
    let writes = uncertain().resolve(&[], &version(10));
    let [write] = writes.as_slice() else { panic!("{writes:?}") };
    assert!(!write.is_reflected(&One(Some(3), 3)));
    assert!(!write.is_reflected(&One(Some(8), 8)), "another incarnation, created before the write");
    assert!(write.is_reflected(&One(None, 9)), "as the server has it");
    assert!(write.is_reflected(&One(Some(12), 9)), "created after the answer");
    assert!(write.is_reflected(&One(Some(8), 10)), "the cache has all until the answer");
}

#[test]
fn q7_an_absent_object_that_the_cache_keeps_for_good_blocks_nothing() {
    let write = uncertain().resolve(&[], &version(10)).remove(0);
    let kept = One(Some(3), 9);
    assert!(!write.is_moot(&version(12), &[], &kept), "its deletion may arrive");
    let next = |number| [Found { key: key(), version: version(number) }];
    assert!(!write.is_moot(&version(12), &next(11), &kept));
    assert!(write.is_moot(&version(9), &next(2), &kept), "a restored server has it again");
}

/// A standby's queue holds what exists. A failover was measured as the longest wait of all.
#[test]
fn q8_what_a_standby_holds_counts_from_the_beginning_of_its_term() {
    let mut control = Control::new(Queue::default());
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    control.changed(at(1), ObjectKey::new(None, "a").unwrap(), 1, 0);
    control.resume(at(56));
    let Some(Step::Reconcile(_)) = control.next(at(58), &One(None, 1)) else { panic!("nothing is ready") };
    let waited = control.queue().metrics(at(58)).queue_duration;
    assert_eq!((waited.count(), waited.sum()), (1, Duration::from_secs(2)));
}

/// Issue 20: 1,000 keys that waited for their writes held up all others for nine seconds.
#[test]
fn q7_keys_that_wait_for_their_writes_hold_up_no_others() {
    let mut control = Control::new(Queue::default());
    control.resume(Time::ZERO);
    let now = Time::ZERO;
    let of = |at: usize| ObjectKey::new(None, &format!("waits-{at}")).unwrap();
    let mut caches = One(None, 1);
    for at in 0..3_000 {
        control.changed(now, of(at), 1, 0);
        let Some(Step::Reconcile(work)) = control.next(now, &caches) else { panic!("{at}") };
        let write = OwnWrite::Written { cache: 0, key: of(at), version: version(9) };
        control.finished(now, &work, End::Settled, vec![write]);
    }
    (0..3_000).for_each(|at| control.changed(now, of(at), 1, 0));
    let waits_for_nothing = ObjectKey::new(None, "waits-for-nothing").unwrap();
    control.changed(now, waits_for_nothing.clone(), 1, LOW_PRIORITY);
    let mut waiting = Vec::new();
    let work = loop {
        match control.next(now, &caches).expect("a key waits for nothing") {
            Step::AwaitWrites(key, _) => waiting.push(key),
            Step::Reconcile(work) => break work,
        }
    };
    assert_eq!(work.key, waits_for_nothing);
    control.finished(now, &work, End::Settled, Vec::new());
    assert!(control.next(now, &caches).is_none());
    assert!(control.wake(now).is_some_and(|at| at > now), "it looks again, and not at once");

    // Once the caches have the writes, each key comes, those that look again too.
    caches.1 = 9;
    waiting.iter().for_each(|key| control.written(key));
    let (mut reconciled, mut now) = (0, now);
    while let Some(at) = control.wake(now) {
        now = at;
        while let Some(step) = control.next(now, &caches) {
            let Step::Reconcile(work) = step else { panic!("{step:?}") };
            control.finished(now, &work, End::Settled, Vec::new());
            reconciled += 1;
        }
    }
    assert_eq!(reconciled, 3_000);
}

/// A key whose wait is over waits again if another one has written meanwhile, and no second key waits beside it.
#[test]
fn q7_by_option_a_key_waits_for_what_others_wrote_while_it_waited() {
    let (now, cache) = (Time::ZERO, One(None, 3));
    let mut control = Control::new(Queue::default());
    control.wait_for_all();
    control.set_workers(3);
    control.resume(Time::ZERO);
    let one = |name: &str| ObjectKey::new(Some("shop"), name).unwrap();
    for name in ["a", "b", "c", "d"] {
        control.changed(now, one(name), 1, 0);
    }
    let reconciles = |step: Option<Step>| -> Work {
        let Some(Step::Reconcile(work)) = step else { panic!("{step:?}") };
        work
    };
    let (a, b) = (reconciles(control.next(now, &cache)), reconciles(control.next(now, &cache)));
    let wrote = |number| OwnWrite::Written { cache: 0, key: key(), version: version(number) };
    control.finished(now, &a, End::Settled, vec![wrote(4)]);
    assert_eq!(control.next(now, &cache), Some(Step::AwaitWrites(one("c"), vec![wrote(4)])));
    assert_eq!(control.next(now, &cache), None, "d waits in the queue");
    control.finished(now, &b, End::Settled, vec![uncertain()]);
    control.written(&one("c"));
    let c = control.next(now, &cache);
    assert_eq!(c, Some(Step::AwaitWrites(one("c"), vec![uncertain()])), "what it waited for is done with");
    control.written(&one("c"));
    assert_eq!(reconciles(control.next(now, &cache)).key, one("c"));
    assert_eq!(reconciles(control.next(now, &cache)).key, one("d"));
}
