//! A counter that many threads add to.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// One counter per group of threads: the cache line of a single one would move between processors at each hit.
#[derive(Default)]
pub(super) struct Tally([Place; PLACES]);

#[derive(Default)]
#[repr(align(64))]
struct Place(AtomicU64);

const PLACES: usize = 8;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PLACE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % PLACES;
}

impl Tally {
    #[inline]
    pub(super) fn add(&self) {
        // A thread that is ending has no place of its own any more.
        let place = PLACE.try_with(|place| *place).unwrap_or_default();
        self.0[place].0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> u64 {
        self.0.iter().map(|place| place.0.load(Ordering::Relaxed)).sum()
    }
}
