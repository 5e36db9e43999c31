//! Changing pods, with the time in an annotation, so that who is told knows how long that took.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::load::Loaded;
use crate::server::{Failure, Server};

const SENTINEL: &str = "/api/v1/namespaces/bench/pods/sentinel";

/// So many changes, of the first pods in turn.
pub async fn pods(server: &Server, loaded: &Loaded, count: usize, among: usize) -> Result<Value, Failure> {
    let paths = loaded.paths();
    let among = if among == 0 { paths.len() } else { among.min(paths.len()) };
    if among == 0 {
        return Err("nothing is loaded".into());
    }
    let start = Instant::now();
    if let Some(testapi) = server.in_process() {
        let api = testapi.api().clone();
        let paths: Vec<String> = paths[..among].to_vec();
        let changed = tokio::task::spawn_blocking(move || in_process(&api, &paths, count));
        changed.await??;
    } else {
        server.for_each(0..count, |index| change(server, &paths[index % among])).await?;
    }
    Ok(json!({ "event": "changed", "count": count, "seconds": start.elapsed().as_secs_f64() }))
}

/// One more change, and the version that it made.
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
