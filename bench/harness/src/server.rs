//! The server of a run and what is done to it: the real control plane, or the embedded one as a program of its own.

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
use crate::error::Error;

/// Servers that this program has started.
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
    /// Before `real`, so that it ends before the server does.
    cluster: Program,
    /// `None`: the cluster's program is the server.
    real: Option<ControlPlane>,
    kubeconfig: PathBuf,
    version: String,
}

/// Changes that are made evenly in time.
pub(crate) struct Pace {
    pub(crate) count: usize,
    pub(crate) per_second: usize,
    /// Nine of ten are of so many pods; 0: of all.
    pub(crate) among: usize,
}

/// A version of one object, by which to know how far somebody is.
pub(crate) struct Sentinel {
    key: String,
    resource_version: String,
}

/// What a server has, or a cache.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    objects: Option<u64>,
    checksum: String,
    /// `None` for who has no content to be summed up.
    content: Option<String>,
    /// On how many nodes pods are; said by the server.
    nodes: Option<u64>,
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
                // There may be several at a time.
                let number = STARTED.fetch_add(1, Ordering::Relaxed);
                let kubeconfig = scratch.join(format!("testapi-{number}.kubeconfig"));
                command.arg("--testapi").arg(&kubeconfig);
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

    /// Of the server and what belongs to it.
    pub(crate) fn cpu(&self) -> Result<Duration, Error> {
        let pid = self.real.as_ref().map_or(self.cluster.pid(), ControlPlane::pid);
        Meter::new(pid).cpu_of_all()
    }

    /// Pods, up to so many.
    pub(crate) fn load(&mut self, pods: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("load {}", json!({ "pods": pods }))).map(drop)
    }

    /// Pods in ReplicaSets of so many, and the nodes that they are on.
    pub(crate) fn load_sets(&mut self, pods: usize, per_set: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("load {}", json!({ "pods": pods, "perSet": per_set }))).map(drop)
    }

    /// Objects of other kinds.
    pub(crate) fn fill(&mut self, objects: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("fill {}", json!({ "objects": objects }))).map(drop)
    }

    /// Changes pods, so many times, in turn `among` of them.
    pub(crate) fn change(&mut self, count: usize, among: usize) -> Result<(), Error> {
        self.cluster.ask(&format!("change {}", json!({ "count": count, "among": among }))).map(drop)
    }

    /// Changes random pods, evenly in time.
    pub(crate) fn change_paced(&mut self, pace: &Pace) -> Result<(), Error> {
        let Pace { count, per_second, among } = pace;
        let change = json!({ "count": count, "perSecond": per_second, "among": among });
        self.cluster.ask(&format!("change {change}")).map(drop)
    }

    /// Changes one object of each resource that has any: the versions that this made, by resource.
    pub(crate) fn touch(&mut self, resources: &[String]) -> Result<Value, Error> {
        let mut touched = self.cluster.ask(&format!("touch {}", json!({ "resources": resources })))?;
        Ok(touched["versions"].take())
    }

    /// Lists and watches that it was asked for until now.
    pub(crate) fn requests(&mut self) -> Result<f64, Error> {
        Ok(number(&self.cluster.ask("requests")?, "count"))
    }

    /// Changes the one object that nothing else changes.
    pub(crate) fn sentinel(&mut self) -> Result<Sentinel, Error> {
        let changed = self.cluster.ask("sentinel")?;
        let text = |name: &str| changed[name].as_str().unwrap_or_default().to_owned();
        Ok(Sentinel { key: text("key"), resource_version: text("resourceVersion") })
    }

    /// Ends all watches; who wants to resume one is told that its version is gone.
    pub(crate) fn expire(&mut self) -> Result<(), Error> {
        match &self.real {
            Some(server) => {
                server.compact()?;
                // Its watch cache begins anew, with no history before now.
                server.kill_restart()?;
                Ok(())
            }
            None => self.cluster.ask("expire").map(drop),
        }
    }

    /// Everything that can be listed and watched.
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
    /// The question whether somebody was told of it.
    pub(crate) fn until(&self) -> String {
        format!("until {}", json!({ "key": self.key, "resourceVersion": self.resource_version }))
    }
}

impl From<&Value> for Digest {
    fn from(answer: &Value) -> Self {
        Self {
            objects: answer["objects"].as_u64(),
            nodes: answer["nodes"].as_u64(),
            checksum: answer["checksum"].as_str().unwrap_or_default().to_owned(),
            content: answer["content"].as_str().map(str::to_owned),
        }
    }
}

impl Digest {
    pub(crate) fn nodes(&self) -> Option<u64> {
        self.nodes
    }

    /// Whether a cache has what the server has, of metadata or of whole objects.
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
