//! The script of a test: what happens in the cluster while the program runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;
use serve::{Reason, Resource, Status};
use testapi::{Api, Gvr, Patch};

use crate::cluster::Cluster;
use crate::history::{Author, What};

/// The cluster, for the script of a rehearsal: users, other programs, and time.
///
/// Each change is a step. Before it some simulated time passes, up to half a minute, which the seed chooses. When the bench
/// shrinks a failure, it leaves steps out. A step that the server refuses changes nothing; the text of a failure says so.
pub struct World {
    cluster: Arc<Cluster>,
    steps: Arc<AtomicUsize>,
}

impl World {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, steps: Arc::default() }
    }

    /// The number of steps so far.
    pub(crate) fn steps(&self) -> Arc<AtomicUsize> {
        self.steps.clone()
    }

    /// Creates an object, which needs `kind` and `apiVersion`, and its namespace if missing.
    pub async fn create(&self, object: Value) {
        let words = format!("create {} {}", text(&object["kind"]), crate::history::key(&object));
        self.step(words, |api| create(api, object)).await;
    }

    /// Changes an object by a merge patch. `key` is `namespace/name` or `name`.
    pub async fn patch(&self, kind: &str, key: &str, patch: Value) {
        let step = |api: &Api| {
            let (resource, namespace, name) = find(api, kind, key)?;
            api.patch(&resource, namespace, name, &Patch::Merge(patch)).map(drop)
        };
        self.step(format!("patch {kind} {key}"), step).await;
    }

    /// Changes the status of an object by a merge patch of it.
    pub async fn patch_status(&self, kind: &str, key: &str, status: Value) {
        let step = |api: &Api| {
            let (resource, namespace, name) = find(api, kind, key)?;
            let mut object = api.get(&resource, namespace, name)?;
            testapi::patch::merge(&mut object["status"], status);
            api.update_status(&resource, object).map(drop)
        };
        self.step(format!("patch the status of {kind} {key}"), step).await;
    }

    /// Deletes an object.
    pub async fn delete(&self, kind: &str, key: &str) {
        let step = |api: &Api| {
            let (resource, namespace, name) = find(api, kind, key)?;
            api.delete(&resource, namespace, name).map(drop)
        };
        self.step(format!("delete {kind} {key}"), step).await;
    }

    /// Lets simulated time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until something is so. It is looked at every 100 ms of simulated time.
    ///
    /// A run in which it is never so does not come to rest, and fails.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until an object is gone: an object with a finalizer stays for a while after [`delete`](Self::delete), and one
    /// of the same name is refused until then.
    pub async fn gone(&self, kind: &str, key: &str) {
        self.until(|world| world.get(kind, key).is_none()).await;
    }

    /// An object as it is now; `None` if it does not exist.
    pub fn get(&self, kind: &str, key: &str) -> Option<Value> {
        let (resource, namespace, name) = find(&self.cluster.api, kind, key).ok()?;
        self.cluster.api.get(&resource, namespace, name).ok()
    }

    /// All objects of a kind as they are now.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let Ok((resource, _, _)) = find(&self.cluster.api, kind, "") else { return Vec::new() };
        self.cluster.api.list(&resource, None).unwrap_or_default()
    }

    async fn step(&self, words: String, act: impl FnOnce(&Api) -> Result<(), Status>) {
        let number = self.steps.fetch_add(1, Ordering::Relaxed);
        let plan = &self.cluster.plan;
        if plan.left_out.contains(&number) {
            return;
        }
        tokio::time::sleep(pause(plan.seed, number)).await;
        self.cluster.drain(Author::Cluster);
        self.cluster.note(Author::World, What::Step(words.clone()));
        if let Err(status) = act(&self.cluster.api) {
            self.cluster.note(Author::World, What::Refused(format!("{words}: {status}")));
        }
        self.cluster.drain(Author::World);
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// The time before a step. Some steps follow at once, some when everything has come to rest.
fn pause(seed: u64, step: usize) -> Duration {
    let mut random = Rng::with_seed(seed.wrapping_add(step as u64 * 0x1_0001));
    let longest = [40, 2_000, 8_000, 30_000][random.usize(0..4)];
    Duration::from_millis(random.u64(0..=longest))
}

/// Creates an object whose `kind` and `apiVersion` name its resource.
pub(crate) fn create(api: &Api, object: Value) -> Result<(), Status> {
    let api_version = text(&object["apiVersion"]).to_owned();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resources = api.catalog().resources();
    let kind = text(&object["kind"]);
    let resource = resources.find_kind(group, version, kind).ok_or_else(|| unknown(kind))?;
    api.create(&gvr(resource), object).map(drop)
}

fn find<'a>(api: &Api, kind: &str, key: &'a str) -> Result<(Gvr, &'a str, &'a str), Status> {
    let resources = api.catalog().resources();
    let resource = resources.iter().find(|resource| *resource.kind == *kind).ok_or_else(|| unknown(kind))?;
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    Ok((gvr(resource), namespace, name))
}

pub(crate) fn gvr(resource: &Resource) -> Gvr {
    Gvr {
        group: resource.group.to_string(),
        version: resource.version.to_string(),
        plural: resource.plural.to_string(),
    }
}

fn unknown(kind: &str) -> Status {
    Status::new(Reason::NotFound, format!("no resource has the kind {kind:?}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
