//! A system outside of the cluster: buckets, load balancers, DNS names.

use std::fmt;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::history::{Author, ExternalChange, What};
use crate::plan::Disturbance;
use crate::process::Process;

/// A stand-in for a system outside of the cluster, such as a cloud. It keeps named things, each with the object that it
/// belongs to, and survives crashes of the program. Its state belongs to the end state that is compared.
///
/// Its calls are writes like those to the server: they take time, and crashes, failures and lost answers happen to them.
pub struct External {
    cluster: Arc<Cluster>,
    process: Arc<Process>,
}

/// A call of the [external system](External) failed, or its answer was lost.
#[derive(Debug, thiserror::Error)]
#[error("the external system did not answer")]
pub struct ExternalError(());

impl External {
    pub(crate) fn new(cluster: Arc<Cluster>, process: Arc<Process>) -> Self {
        Self { cluster, process }
    }

    /// Makes a thing that belongs to the object `owner` (`namespace/name`). One that exists stays.
    ///
    /// # Errors
    ///
    /// When the system does not answer: the thing may exist all the same.
    pub async fn make(&self, name: &str, owner: &str) -> Result<(), ExternalError> {
        self.change(name, owner, true).await
    }

    /// Removes a thing, if it exists.
    ///
    /// # Errors
    ///
    /// As [`External::make`].
    pub async fn remove(&self, name: &str) -> Result<(), ExternalError> {
        self.change(name, "", false).await
    }

    /// Whether a thing exists.
    pub async fn has(&self, name: &str) -> bool {
        self.way().await;
        let has = self.cluster.things(|things| things.contains_key(name));
        self.way().await;
        has
    }

    async fn way(&self) {
        self.cluster.latency().await;
        self.process.lives().await;
    }

    async fn change(&self, name: &str, owner: &str, exists: bool) -> Result<(), ExternalError> {
        self.way().await;
        let words = format!("{} external {name}", if exists { "make" } else { "remove" });
        let planned = self.cluster.next_write();
        let kind = planned.as_ref().map(|planned| planned.kind);
        if kind == Some(Disturbance::Failure) {
            self.cluster.happened(Disturbance::Failure, format!("the external system fails: {words}"));
            self.way().await;
            return Err(ExternalError(()));
        }
        let former = self.cluster.things(|things| match exists {
            true => things.insert(name.to_owned(), owner.to_owned()),
            false => things.remove(name),
        });
        if former.is_some() != exists {
            let owner = former.unwrap_or_else(|| owner.to_owned());
            let change = ExternalChange { at: self.cluster.now(), owner, name: name.to_owned(), exists };
            let what = What::External(change);
            self.cluster.note(Author::Program(self.process.instance), what);
        }
        match (kind, planned.map(|planned| planned.lasting)) {
            (Some(Disturbance::Crash), Some(down)) => {
                self.cluster
                    .happened(Disturbance::Crash, format!("the program crashes right after: {words}"));
                self.cluster.kill(&self.process, down, "crashed");
            }
            (Some(Disturbance::LostAnswer), Some(wait)) => {
                self.cluster.happened(Disturbance::LostAnswer, format!("the answer is lost: {words}"));
                tokio::time::sleep(wait).await;
                return Err(ExternalError(()));
            }
            _ => {}
        }
        self.way().await;
        Ok(())
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External").finish_non_exhaustive()
    }
}
