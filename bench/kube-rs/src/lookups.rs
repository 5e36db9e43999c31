//! Reads of the store while the reflector runs, and the clock for these and other reads.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kube::runtime::reflector::{ObjectRef, Store};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct Lookups {
    seconds: f64,
}

pub(crate) fn run<K: View>(
    store: &Store<K>,
    dynamic_type: &K::DynamicType,
    wish: Lookups,
) -> Result<Value, Failure> {
    let keys: Vec<_> =
        store.state().iter().map(|it| ObjectRef::from_obj_with(&**it, dynamic_type.clone())).collect();
    if keys.is_empty() {
        return Err("there is no object to look up".into());
    }
    let limit = Duration::try_from_secs_f64(wish.seconds)?;
    let mut random = fastrand::Rng::with_seed(1);
    let get = mean_of(limit, || drop(black_box(store.get(&keys[random.usize(..keys.len())]))));
    let snapshot = mean_of(limit, || drop(black_box(store.state())));
    Ok(json!({"event": "lookups", "nanoseconds": {"get": get, "snapshot": snapshot}}))
}

/// Repeats an operation for that long, at least 10 times, and returns the mean time in nanoseconds.
pub(crate) fn mean_of(limit: Duration, mut operation: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut batch = 10;
    let mut done = 0.0;
    loop {
        for _ in 0..batch {
            operation();
        }
        done += f64::from(batch);
        let elapsed = begin.elapsed().max(Duration::from_nanos(1));
        if elapsed >= limit {
            return elapsed.as_secs_f64() * 1e9 / done;
        }
        // It reads the clock after a batch that takes about 1 % of the time, so that the clock costs next to nothing.
        batch = (done * limit.as_secs_f64() / 100.0 / elapsed.as_secs_f64()).max(1.0) as u32;
    }
}
