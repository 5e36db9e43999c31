//! Reads of the running informer.

use std::hint::black_box;
use std::time::Duration;

use informer::{Index, Informer};
use serde_json::{Value, json};

use crate::Failure;
use crate::mean::mean;
use crate::view::Measured;

/// The number of keys to look up.
const KEYS: usize = 1_000;

pub fn measure<T: Measured>(
    informer: &Informer<T>,
    by_ip: &Index<T, String>,
    time: Duration,
) -> Result<Value, Failure> {
    let (keys, addresses) = some(informer)?;
    let lister = informer.lister();
    let mut random = fastrand::Rng::with_seed(1);
    let get = mean(time, || {
        black_box(lister.get(&keys[random.usize(..keys.len())]).is_ok());
    });
    let index = mean(time, || {
        black_box(by_ip.get(&addresses[random.usize(..addresses.len())]).len());
    });
    let snapshot = mean(time, || {
        black_box(informer.snapshot().len());
    });
    let nanoseconds = json!({ "get": get, "index": index, "snapshot": snapshot });
    Ok(json!({ "event": "lookups", "nanoseconds": nanoseconds }))
}

/// Keys and pod IPs of some objects.
fn some<T: Measured>(informer: &Informer<T>) -> Result<(Vec<String>, Vec<String>), Failure> {
    let snapshot = informer.snapshot();
    let every = (snapshot.len() / KEYS).max(1);
    let keys: Vec<String> =
        snapshot.objects().step_by(every).take(KEYS).map(|object| object.key().to_string()).collect();
    let mut addresses = Vec::new();
    for key in &keys {
        let object = informer.lister().get(key)?.ok_or("an object went meanwhile")?;
        addresses.extend(object.ip().map(str::to_owned));
    }
    if addresses.is_empty() { Err("there are no pods with an address".into()) } else { Ok((keys, addresses)) }
}
