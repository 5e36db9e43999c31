//! Objects for whole controllers: ConfigMaps, each of which is to own a Secret of its name with the same `value`.

use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::digest::fnv1a;
use crate::load::text;
use crate::server::{Event, Failure, Server};

const NAMESPACES: usize = 20;
const OWNERS: &str = "/api/v1/configmaps";
const CHILDREN: &str = "/api/v1/secrets";
const PAGE: usize = 2_000;
/// The length of the owner's other field.
const SETTINGS: usize = 1_000;
/// A change fails when nothing has happened for this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The loaded owners.
#[derive(Default)]
pub struct Owners {
    count: usize,
    /// The value of the last change; each change has another one.
    value: u64,
}

#[derive(Deserialize)]
struct List<T> {
    metadata: ListMetadata,
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    token: String,
    resource_version: String,
}

/// An owner or a child.
#[derive(Clone, Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    data: HashMap<String, String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    owner_references: Vec<Reference>,
}

#[derive(Clone, Deserialize)]
struct Reference {
    uid: String,
    #[serde(default)]
    controller: bool,
}

/// A change whose child is not up to date, or was not acknowledged yet.
struct Pending {
    value: String,
    acknowledged: Option<Instant>,
    seen: Option<Instant>,
}

impl Owners {
    /// Creates owners until there are so many.
    pub async fn load(&mut self, server: &Server, count: usize) -> Result<Value, Failure> {
        for index in 0..NAMESPACES {
            let name = format!("owners-{index}");
            server.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
        }
        let mut random = fastrand::Rng::with_seed(1);
        let owners: Vec<Value> = (self.count..count)
            .map(|index| {
                json!({
                    "metadata": {
                        "name": name(index),
                        "labels": { "app": format!("app-{}", index % 40), "team": "platform" },
                    },
                    "data": { "value": "0", "settings.yaml": text(&mut random, SETTINGS) },
                })
            })
            .collect();
        let before = self.count;
        server
            .for_each(0..owners.len(), |index| {
                let (path, owner) = (collection(before + index), &owners[index]);
                async move { server.post(&path, owner).await }
            })
            .await?;
        self.count = count.max(before);
        Ok(json!({ "event": "loaded", "owners": self.count }))
    }

    /// Deletes all children.
    pub async fn clear(&self, server: &Server) -> Result<Value, Failure> {
        let children: Vec<Object> = all(server, CHILDREN).await?;
        let own: Vec<Metadata> = children.into_iter().map(|child| child.metadata).filter(is_ours).collect();
        let path = |it: &Metadata| format!("/api/v1/namespaces/{}/secrets/{}", it.namespace, it.name);
        server.for_each(0..own.len(), |index| server.delete(path(&own[index]))).await?;
        Ok(json!({ "event": "cleared", "children": own.len() }))
    }

    /// Changes `count` different owners at an even pace, and waits for their children. A delay is the time from the server's
    /// answer to the change until a watch has the child's update.
    pub async fn change(&mut self, server: &Server, count: usize, per_second: f64) -> Result<Value, Failure> {
        let list: List<Object> = server.get(&format!("{CHILDREN}?limit=1")).await?;
        let watch = format!("{CHILDREN}?watch=1&resourceVersion={}", list.metadata.resource_version);
        let mut events = pin!(server.watch::<Object>(&watch).await?);
        let mut order: Vec<usize> = (0..self.count).collect();
        fastrand::Rng::with_seed(self.value).shuffle(&mut order);
        let mut next = order.into_iter().take(count);
        let mut left = count.min(self.count);
        let mut ticks = interval(Duration::from_secs_f64(1.0 / per_second));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut pending, mut running) = (HashMap::<String, Pending>::new(), FuturesUnordered::new());
        let mut delays = Vec::with_capacity(left);
        let mut deadline = Instant::now() + PATIENCE;
        while left > 0 || !pending.is_empty() {
            let touched = tokio::select! {
                biased;
                event = events.try_next() => match event?.ok_or("the watch of the children has ended")? {
                    Event::Added(child) | Event::Modified(child) => {
                        let (key, value) = (key(&child.metadata), value_of_child(&child));
                        let waits = pending.get_mut(&key).filter(|it| value.as_ref() == Some(&it.value));
                        waits.map(|it| it.seen.get_or_insert_with(Instant::now));
                        key
                    }
                    _ => continue,
                },
                Some(changed) = running.next() => {
                    let (index, at) = changed?;
                    let key = key_of(index);
                    pending.get_mut(&key).map(|it| it.acknowledged.insert(at));
                    key
                }
                _ = ticks.tick(), if left > 0 => {
                    let Some(index) = next.next() else { break };
                    left -= 1;
                    self.value += 1;
                    let value = self.value.to_string();
                    let key = key_of(index);
                    running.push(change(server, index, value.clone()));
                    pending.insert(key.clone(), Pending { value, acknowledged: None, seen: None });
                    key
                }
                () = sleep_until(deadline) => {
                    return Err(format!("{} children were not brought into step", pending.len()).into());
                }
            };
            deadline = Instant::now() + PATIENCE;
            if let Some(Pending { acknowledged: Some(at), seen: Some(seen), .. }) = pending.get(&touched) {
                delays.push(seen.saturating_duration_since(*at).as_secs_f64());
                pending.remove(&touched);
            }
        }
        delays.sort_by(f64::total_cmp);
        let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
        let at = |share: usize| delays.get(delays.len().saturating_sub(1) * share / 100).copied();
        Ok(json!({
            "event": "changed",
            "count": delays.len(),
            "delayMeanSeconds": mean,
            "delayP99Seconds": at(99),
            "delayMaxSeconds": at(100),
        }))
    }

    /// Changes random owners at an even pace, and does not wait for their children.
    pub async fn pace(&mut self, server: &Server, seconds: f64, per_second: f64) -> Result<Value, Failure> {
        let mut left = (seconds * per_second) as usize;
        let mut random = fastrand::Rng::with_seed(self.value);
        let mut ticks = interval(Duration::from_secs_f64(1.0 / per_second));
        let mut running = FuturesUnordered::new();
        let mut count = 0;
        while left > 0 || !running.is_empty() {
            tokio::select! {
                Some(changed) = running.next() => drop(changed?),
                _ = ticks.tick(), if left > 0 => {
                    (left, count, self.value) = (left - 1, count + 1, self.value + 1);
                    running.push(change(server, random.usize(..self.count), self.value.to_string()));
                }
            }
        }
        Ok(json!({ "event": "changed", "count": count }))
    }

    /// The number of requests until now that are a controller's: for owners and children, without the changes of owners.
    pub async fn requests(&self, server: &Server) -> Result<Value, Failure> {
        let of_controller = |verb: &str, resource: &str| match resource {
            "configmaps" => verb != "patch",
            "secrets" => true,
            _ => false,
        };
        server.requests(of_controller).await
    }

    /// Changes the first `count` owners so many times, all once before one of them again, as fast as the server takes it.
    pub async fn storm(&mut self, server: &Server, count: usize, rounds: usize) -> Result<Value, Failure> {
        let (count, first) = (count.min(self.count), self.value + 1);
        let changes = count * rounds;
        self.value += changes as u64;
        let start = Instant::now();
        server
            .for_each(0..changes, |number| {
                let changed = change(server, number % count, (first + number as u64).to_string());
                async move { changed.await.map(drop) }
            })
            .await?;
        Ok(json!({ "event": "changed", "count": changes, "seconds": start.elapsed().as_secs_f64() }))
    }

    /// Counts the owners, and the owners with one child that is in step.
    pub async fn check(&self, server: &Server) -> Result<Value, Failure> {
        let mut owners: Vec<Object> = all(server, OWNERS).await?;
        owners.retain(|owner| is_ours(&owner.metadata));
        let children: Vec<Object> = all(server, CHILDREN).await?;
        let mut by_owner: HashMap<&str, Vec<&Object>> = HashMap::new();
        for child in &children {
            if let Some(owner) = child.metadata.owner_references.iter().find(|owner| owner.controller) {
                by_owner.entry(&owner.uid).or_default().push(child);
            }
        }
        let (mut versions, mut checksum, mut in_step) = (0_u64, 0_u64, 0);
        for owner in &owners {
            versions += owner.metadata.resource_version.parse::<u64>()?;
            let text = format!("{}\n{}", key(&owner.metadata), owner.metadata.resource_version);
            checksum = checksum.wrapping_add(fnv1a(text.as_bytes()));
            let own = by_owner.get(owner.metadata.uid.as_str()).map(Vec::as_slice);
            let same = |child: &Object| {
                key(&child.metadata) == key(&owner.metadata)
                    && value_of_child(child).as_ref() == owner.data.get("value")
            };
            in_step += usize::from(matches!(own, Some([child]) if same(child)));
        }
        Ok(json!({
            "event": "owners",
            "objects": owners.len(),
            "checksum": format!("{checksum:016x}"),
            "versions": versions.to_string(),
            "children": by_owner.values().map(Vec::len).sum::<usize>(),
            "inStep": in_step,
        }))
    }
}

fn name(index: usize) -> String {
    format!("owner-{index}")
}

fn key_of(index: usize) -> String {
    format!("owners-{}/{}", index % NAMESPACES, name(index))
}

fn collection(index: usize) -> String {
    format!("/api/v1/namespaces/owners-{}/configmaps", index % NAMESPACES)
}

fn key(metadata: &Metadata) -> String {
    format!("{}/{}", metadata.namespace, metadata.name)
}

/// Other objects are the server's own.
fn is_ours(metadata: &Metadata) -> bool {
    metadata.namespace.starts_with("owners-") && metadata.name.starts_with("owner-")
}

fn value_of_child(child: &Object) -> Option<String> {
    String::from_utf8(STANDARD.decode(child.data.get("value")?).ok()?).ok()
}

/// Changes an owner. Returns when the server answered.
async fn change(server: &Server, index: usize, value: String) -> Result<(usize, Instant), Failure> {
    let path = format!("{}/{}", collection(index), name(index));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let annotations = json!({ "bench/sent-at": now.as_micros().to_string() });
    let patch = json!({ "metadata": { "annotations": annotations }, "data": { "value": value } });
    server.merge_patch(&path, &patch).await?;
    Ok((index, Instant::now()))
}

/// All objects of a resource, from a list in pages.
async fn all<T: DeserializeOwned>(server: &Server, path: &str) -> Result<Vec<T>, Failure> {
    let (mut objects, mut token) = (Vec::new(), String::new());
    loop {
        let list: List<T> = server.get(&format!("{path}?limit={PAGE}&continue={token}")).await?;
        objects.extend(list.items);
        token = list.metadata.token;
        if token.is_empty() {
            return Ok(objects);
        }
    }
}
