//! Changes pods. An annotation holds the time of the change, from which handlers compute their delay.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::digest;
use crate::load::Loaded;
use crate::server::{Failure, Server};

const SENTINEL: &str = "/api/v1/namespaces/bench/pods/sentinel";

/// Makes `count` changes, of the first `among` pods in turn.
pub async fn pods(server: &Server, loaded: &Loaded, count: usize, among: usize) -> Result<Value, Failure> {
    let paths = loaded.first(among)?;
    let start = Instant::now();
    if let Some(testapi) = server.in_process() {
        let api = testapi.api().clone();
        let paths: Vec<String> = paths.to_vec();
        let changed = tokio::task::spawn_blocking(move || in_process(&api, &paths, count));
        changed.await??;
    } else {
        server.for_each(0..count, |index| change(server, &paths[index % paths.len()])).await?;
    }
    Ok(json!({ "event": "changed", "count": count, "seconds": start.elapsed().as_secs_f64() }))
}

/// How changes are spread over time and pods.
pub struct Pace {
    pub per_second: f64,
    /// Nine of ten changes hit this number of the first pods.
    pub among: usize,
}

/// Makes `count` changes of random pods at an even pace, however long the server takes for each.
pub async fn paced(server: &Server, loaded: &Loaded, count: usize, pace: &Pace) -> Result<Value, Failure> {
    let (often, all) = (loaded.first(pace.among)?, loaded.first(0)?);
    let mut random = fastrand::Rng::with_seed(7);
    let mut draw = || {
        let among = if random.u8(..10) > 0 { often } else { all };
        &among[random.usize(..among.len())]
    };
    let start = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / pace.per_second));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut running = FuturesUnordered::new();
    for _ in 0..count {
        // Requests in flight make progress while the loop waits for the next tick.
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => break,
                Some(changed) = running.next() => changed?,
            }
        }
        running.push(change(server, draw()));
    }
    while let Some(changed) = running.next().await {
        changed?;
    }
    Ok(json!({ "event": "changed", "count": count, "seconds": start.elapsed().as_secs_f64() }))
}

/// Changes one object of each resource that has any, and reports the new versions by resource.
pub async fn one_of_each(server: &Server, resources: &[String]) -> Result<Value, Failure> {
    let mut versions = serde_json::Map::new();
    for resource in resources {
        let path = digest::path(resource).ok_or_else(|| format!("{resource:?} is no resource"))?;
        let list: Value = server.get(&format!("{path}?limit=1")).await?;
        let metadata = &list["items"][0]["metadata"];
        let Some(name) = metadata["name"].as_str() else { continue };
        let object = match metadata["namespace"].as_str() {
            Some(namespace) => {
                let (root, plural) = path.rsplit_once('/').unwrap_or_default();
                format!("{root}/namespaces/{namespace}/{plural}/{name}")
            }
            None => format!("{path}/{name}"),
        };
        // Some kinds refuse such a patch.
        if let Ok(changed) = server.merge_patch(&object, &patch()).await {
            versions.insert(resource.clone(), changed["metadata"]["resourceVersion"].clone());
        }
    }
    Ok(json!({ "event": "touched", "versions": versions }))
}

/// Changes the sentinel, and reports its new version.
pub async fn sentinel(server: &Server) -> Result<Value, Failure> {
    let object = server.merge_patch(SENTINEL, &patch()).await?;
    Ok(json!({
        "event": "changed",
        "key": "bench/sentinel",
        "resourceVersion": object["metadata"]["resourceVersion"],
    }))
}

async fn change(server: &Server, path: &str) -> Result<(), Failure> {
    server.merge_patch(path, &patch()).await.map(drop)
}

fn in_process(api: &testapi::Api, paths: &[String], count: usize) -> Result<(), Failure> {
    let pods = testapi::Gvr::new("v1", "pods");
    for path in paths.iter().cycle().take(count) {
        // "", api, v1, namespaces, NAMESPACE, pods, NAME
        let parts: Vec<&str> = path.split('/').collect();
        let [_, _, _, _, namespace, _, name] = parts[..] else { return Err("a path of a pod".into()) };
        api.patch(&pods, namespace, name, &testapi::Patch::Merge(patch()))?;
    }
    Ok(())
}

fn patch() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({ "metadata": { "annotations": { "bench/sent-at": now.as_micros().to_string() } } })
}
