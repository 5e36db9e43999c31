//! Seeds in the place of a fuzzer, so that a run is the same on every machine.

use std::ops::Range;

/// The bytes that a seed stands for.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Calls `run` for each seed, and says which one it was when that panics.
pub fn each(seeds: Range<u64>, mut run: impl FnMut(u64)) {
    for seed in seeds {
        let _named = Named(seed);
        run(seed);
    }
}

struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}
