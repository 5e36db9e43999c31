//! A gate, whose checks meet its close, its extension and its expiry.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

use std::time::Duration;

use super::bounded;
use crate::gate::{Gate, GateKeeper, Loss};
use crate::host::Host;
use informer_core::Time;

fn seconds(seconds: u64) -> Time {
    Time::from_start(Duration::from_secs(seconds))
}

/// A gate that is open until the tenth second, and its clock.
fn gate() -> (GateKeeper, Gate, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(0));
    let now = clock.clone();
    let host = Host::default().with_uptime(move || Duration::from_secs(now.load(Ordering::SeqCst)));
    let keeper = GateKeeper::open(&host, seconds(10));
    let gate = keeper.gate();
    (keeper, gate, clock)
}

#[test]
fn q8_no_check_passes_once_the_gate_was_closed() {
    bounded(3).check(|| {
        let (keeper, gate, _) = gate();
        let has_closed = Arc::new(AtomicBool::new(false));
        let closing = has_closed.clone();
        let closer = thread::spawn(move || {
            keeper.close(Loss::Taken);
            closing.store(true, Ordering::SeqCst);
            // The drop of the keeper is not to close it.
            keeper
        });
        let is_closed = has_closed.load(Ordering::SeqCst);
        let checked = gate.check();
        assert!(!is_closed || checked.is_err());
        let _keeper = closer.join().unwrap();
        assert_eq!(gate.check().unwrap_err().loss(), Loss::Taken);
    });
}

#[test]
fn q8_whoever_is_refused_is_so_for_good_although_the_gate_is_extended() {
    bounded(3).check(|| {
        let (keeper, gate, clock) = gate();
        let (checking, time) = (gate.clone(), clock.clone());
        let checker = thread::spawn(move || {
            time.store(10, Ordering::SeqCst);
            checking.check().is_ok()
        });
        let extended = keeper.extend(seconds(20)).is_ok();
        let passed = checker.join().unwrap();
        assert_eq!((passed, gate.is_open()), (extended, extended));
    });
}

#[test]
fn q8_an_extension_does_not_open_what_is_closed() {
    bounded(3).check(|| {
        let (keeper, gate, _) = gate();
        let keeper = Arc::new(keeper);
        let closing = keeper.clone();
        let closer = thread::spawn(move || closing.close(Loss::Deleted));
        let _ = keeper.extend(seconds(20));
        closer.join().unwrap();
        assert!(!gate.is_open());
        assert_eq!(keeper.extend(seconds(30)).unwrap_err().loss(), Loss::Deleted);
    });
}

#[test]
fn q8_all_who_are_refused_hear_the_same_reason() {
    bounded(3).check(|| {
        let (keeper, gate, clock) = gate();
        clock.store(10, Ordering::SeqCst);
        let checking = gate.clone();
        let checker = thread::spawn(move || checking.check().unwrap_err());
        keeper.close(Loss::Taken);
        let after = gate.check().unwrap_err();
        assert_eq!(checker.join().unwrap(), after);
    });
}
