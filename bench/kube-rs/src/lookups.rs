//! Reads of the store while the reflector runs.

use std::hint::black_box;
use std::time::Duration;

use kube::runtime::reflector::{ObjectRef, Store};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::mean::mean;
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
    let get = mean(limit, || drop(black_box(store.get(&keys[random.usize(..keys.len())]))));
    let snapshot = mean(limit, || drop(black_box(store.state())));
    Ok(json!({"event": "lookups", "nanoseconds": {"get": get, "snapshot": snapshot}}))
}
