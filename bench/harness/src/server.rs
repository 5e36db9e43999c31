//! The server of a run: a real control plane, or testapi in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use control_plane::ControlPlane;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::meter::Meter;
use super::program::Program;
use super::run::number;
use tooling::Error;

/// The kinds of server that the harness starts.
static STARTED: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    /// etcd and kube-apiserver
    Real,
    /// The embedded server
    Testapi,
}

pub(crate) struct Server {
    /// Declared before `real`, so that it is dropped before the server.
    cluster: Program,
    /// `None` if `bench-cluster` is the server itself.
    real: Option<ControlPlane>,
    kubeconfig: PathBuf,
    version: String,
}

/// Changes spread evenly over time.
pub(crate) struct Pace {
    pub(crate) count: usize,
    pub(crate) per_second: usize,
    /// Nine of ten changes hit this number of pods; 0 means all pods.
    pub(crate) among: usize,
}

/// Changes of a cluster of many kinds.
pub(crate) struct Churned {
    pub(crate) changes: f64,
    /// Heartbeats, which nobody wants to know of.
    pub(crate) noise: f64,
    pub(crate) seconds: f64,
}

/// The objects of whole controllers, and those that they own.
#[derive(Debug)]
pub(crate) struct Owners {
    pub(crate) objects: f64,
    pub(crate) children: f64,
    /// How many have one child, which is in step.
    pub(crate) in_step: f64,
    /// The sum of the versions of the owners.
    pub(crate) versions: String,
    pub(crate) digest: Digest,
}

/// A version of one object. A client that has it has also seen everything before it.
pub(crate) struct Sentinel {
    key: String,
    resource_version: String,
}

/// A summary of the objects in a server or a cache, for comparing the two.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    objects: Option<u64>,
    checksum: String,
    /// `None` for views without content.
    content: Option<String>,
}

impl Server {
    pub(crate) fn start(kind: Kind, program: &Path, scratch: &Path) -> Result<Self, Error> {
        let mut command = Command::new(program);
        let (real, kubeconfig) = match kind {
            Kind::Real => {
                let server = ControlPlane::builder().start()?;
                let kubeconfig = server.kubeconfig().to_owned();
                command.arg("--kubeconfig").arg(&kubeconfig);
                (Some(server), kubeconfig)
            }
            Kind::Testapi => {
                // Several servers may run at a time.
                let number = STARTED.fetch_add(1, Ordering::Relaxed);
                let kubeconfig = scratch.join(format!("testapi-{number}.kubeconfig"));
                command.arg("--testapi").arg(&kubeconfig).args(["--seed", &number.to_string()]);
                (None, kubeconfig)
            }
        };
        let (cluster, started) = Program::start(&mut command)?;
        let version = started["version"].as_str().unwrap_or_default().to_owned();
        Ok(Self { cluster, real, kubeconfig, version })
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The CPU time of the server and its child processes.
    pub(crate) fn cpu(&self) -> Result<Duration, Error> {
        let pid = self.real.as_ref().map_or(self.cluster.pid(), ControlPlane::pid);
        Meter::new(pid).cpu_of_all()
    }

    /// Loads pods until there are this many.
    pub(crate) fn load(&mut self, pods: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("load {}", json!({ "pods": pods }))).map(drop)
    }

    /// Loads pods in ReplicaSets of this size, and their nodes.
    pub(crate) fn load_sets(&mut self, pods: usize, per_set: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("load {}", json!({ "pods": pods, "perSet": per_set }))).map(drop)
    }

    /// Loads objects of other kinds.
    pub(crate) fn fill(&mut self, objects: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("fill {}", json!({ "objects": objects }))).map(drop)
    }

    /// Loads so many objects of several kinds, mostly pods. Returns the kinds.
    pub(crate) fn mix(&mut self, objects: usize) -> Result<Vec<String>, Error> {
        let loaded = self.cluster.ask(&format!("mix {}", json!({ "objects": objects })))?;
        let names = loaded["resources"].as_array().into_iter().flatten();
        Ok(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    /// Changes them at an even pace.
    pub(crate) fn churn(&mut self, seconds: f64, per_second: usize) -> Result<Churned, Error> {
        let wish = json!({ "seconds": seconds, "perSecond": per_second });
        let made = self.cluster.ask(&format!("churn {wish}"))?;
        Ok(Churned {
            changes: number(&made, "changes"),
            noise: number(&made, "noise"),
            seconds: number(&made, "seconds"),
        })
    }

    /// Loads objects for whole controllers.
    pub(crate) fn load_owners(&mut self, objects: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("owners {}", json!({ "objects": objects }))).map(drop)
    }

    /// Deletes what controllers have made.
    pub(crate) fn clear_children(&mut self) -> Result<(), Error> {
        self.cluster.ask("owners-clear").map(drop)
    }

    /// Changes different owners at an even pace. Returns the delays until their children follow.
    pub(crate) fn change_owners(&mut self, count: usize, per_second: usize) -> Result<Value, Error> {
        self.cluster.ask(&format!("owners-change {}", json!({ "count": count, "perSecond": per_second })))
    }

    /// Changes random owners at an even pace, and does not wait for their children.
    pub(crate) fn pace_owners(&mut self, time: Duration, per_second: usize) -> Result<(), Error> {
        let wish = json!({ "seconds": time.as_secs_f64(), "perSecond": per_second });
        self.cluster.ask(&format!("owners-pace {wish}")).map(drop)
    }

    /// The number of requests of controllers that the server has got until now.
    pub(crate) fn requests_of_controllers(&mut self) -> Result<f64, Error> {
        Ok(number(&self.cluster.ask("owners-requests")?, "count"))
    }

    /// Changes each of the first owners so many times, as fast as the server takes it.
    pub(crate) fn storm_owners(&mut self, count: usize, rounds: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("owners-storm {}", json!({ "count": count, "rounds": rounds }))).map(drop)
    }

    /// The owners and children as they are now.
    pub(crate) fn owners(&mut self) -> Result<Owners, Error> {
        let answer = self.cluster.ask("owners-check")?;
        Ok(Owners {
            objects: number(&answer, "objects"),
            children: number(&answer, "children"),
            in_step: number(&answer, "inStep"),
            versions: answer["versions"].as_str().unwrap_or_default().to_owned(),
            digest: Digest::from(&answer),
        })
    }

    /// Makes `count` changes, of the first `among` pods in turn.
    pub(crate) fn change(&mut self, count: usize, among: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("change {}", json!({ "count": count, "among": among }))).map(drop)
    }

    /// Changes random pods at an even pace.
    pub(crate) fn change_paced(&mut self, pace: &Pace) -> Result<(), Error> {
        let Pace { count, per_second, among } = pace;
        let change = json!({ "count": count, "perSecond": per_second, "among": among });
        self.cluster.ask(&format!("change {change}")).map(drop)
    }

    /// Changes one object of each resource that has any. Returns the new versions by resource.
    pub(crate) fn touch(&mut self, resources: &[String]) -> Result<Value, Error> {
        let mut touched = self.cluster.ask(&format!("touch {}", json!({ "resources": resources })))?;
        Ok(touched["versions"].take())
    }

    /// The number of list and watch requests that the server has got until now.
    pub(crate) fn requests(&mut self) -> Result<f64, Error> {
        Ok(number(&self.cluster.ask("requests")?, "count"))
    }

    /// Changes the one object that nothing else changes.
    pub(crate) fn sentinel(&mut self) -> Result<Sentinel, Error> {
        let changed = self.cluster.ask("sentinel")?;
        let text = |name: &str| changed[name].as_str().unwrap_or_default().to_owned();
        Ok(Sentinel { key: text("key"), resource_version: text("resourceVersion") })
    }

    /// Ends all watches and discards their history: a client that resumes gets 410 Gone.
    pub(crate) fn expire(&mut self) -> Result<(), Error> {
        match &self.real {
            Some(server) => {
                server.compact()?;
                // A restarted kube-apiserver has no history in its watch cache.
                server.kill_restart()?;
                Ok(())
            }
            None => self.cluster.ask("expire").map(drop),
        }
    }

    /// All resources that can be listed and watched.
    pub(crate) fn resources(&mut self) -> Result<Vec<String>, Error> {
        let answer = self.cluster.ask("resources")?;
        let names = answer["resources"].as_array().into_iter().flatten();
        Ok(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    pub(crate) fn digest(&mut self, resources: &[String]) -> Result<Digest, Error> {
        let line = match resources {
            [] => "digest".to_owned(),
            some => format!("digest {}", json!({ "resources": some })),
        };
        self.cluster.ask(&line).map(|answer| Digest::from(&answer))
    }
}

impl Sentinel {
    pub(crate) fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The `until` command for this version.
    pub(crate) fn until(&self) -> String {
        format!("until {}", json!({ "key": self.key, "resourceVersion": self.resource_version }))
    }
}

impl From<&Value> for Digest {
    fn from(answer: &Value) -> Self {
        Self {
            objects: answer["objects"].as_u64(),
            checksum: answer["checksum"].as_str().unwrap_or_default().to_owned(),
            content: answer["content"].as_str().map(str::to_owned),
        }
    }
}

impl Digest {
    /// Of metadata alone.
    pub(crate) fn of_metadata(objects: u64, checksum: u64) -> Self {
        Self { objects: Some(objects), checksum: format!("{checksum:016x}"), content: None }
    }

    /// Whether a cache holds what the server holds: metadata, or whole objects.
    pub(crate) fn agrees_with(&self, server: &Self, has_content: bool) -> bool {
        let same_content = self.content == server.content.clone().filter(|_| has_content);
        self.objects == server.objects && self.checksum == server.checksum && same_content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_agrees_only_with_the_same() {
        let digest = |text: &str| Digest::from(&serde_json::from_str::<Value>(text).unwrap());
        let server = digest(r#"{"objects":2,"checksum":"aa","content":"bb"}"#);
        let whole = |text: &str| digest(text).agrees_with(&server, true);
        assert!(whole(r#"{"objects":2,"checksum":"aa","content":"bb"}"#));
        assert!(!whole(r#"{"objects":2,"checksum":"aa","content":"cc"}"#));
        assert!(!whole(r#"{"objects":2,"checksum":"aa"}"#));
        assert!(!whole(r#"{"objects":1,"checksum":"aa","content":"bb"}"#));
        let metadata = |text: &str| digest(text).agrees_with(&server, false);
        assert!(metadata(r#"{"objects":2,"checksum":"aa"}"#));
        assert!(!metadata(r#"{"objects":2,"checksum":"aa","content":"bb"}"#));
        assert!(!metadata(r#"{"objects":2,"checksum":"ab"}"#));
        assert!(!metadata(r#"{"objects":1,"checksum":"aa"}"#));
    }
}
