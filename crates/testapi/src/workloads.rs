//! Scripted controllers of Deployments and ReplicaSets: as if pods were started and became ready, without pods.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use serve::Status;
use tokio::time::sleep;

use crate::api::{Api, Gvr};
use crate::object::{Meta, set_pointer};

/// The followed resources, all of `apps/v1`.
const FOLLOWED: [&str; 2] = ["deployments", "replicasets"];

impl Api {
    /// Plays the controllers of Deployments and ReplicaSets for as long as the future is polled. No pods are made.
    ///
    /// `delay` after a change, each Deployment has a ReplicaSet for its template and the status that follows from it, and
    /// the ReplicaSets of former templates are scaled to 0. `delay` after that, each ReplicaSet has as many ready replicas
    /// as its spec wants. A rollout is therefore seen in steps, as in a cluster. It has no failures, no limits to its
    /// surge, and no revision history.
    pub fn workloads(&self, delay: Duration) -> impl Future<Output = ()> + Send + 'static {
        let api = self.clone();
        async move {
            let followed = FOLLOWED.iter().filter_map(|plural| api.collection(&apps(plural)));
            let mut events: Vec<_> =
                followed.filter_map(|collection| collection.events(collection.revision()).ok()).collect();
            while !events.is_empty() {
                sleep(delay).await;
                // A write that is refused conflicts with a newer one, whose event comes next.
                let _ = api.play();
                let any = events.iter_mut().map(|events| events.next());
                if let (Err(_), _, _) = futures_util::future::select_all(any).await {
                    return;
                }
            }
        }
    }

    fn play(&self) -> Result<(), Status> {
        let sets = self.followed("replicasets")?;
        for deployment in self.followed("deployments")? {
            if !Meta(&deployment).is_being_deleted() {
                // A refused deployment does not keep others waiting.
                let _ = self.roll_out(&deployment, &sets);
            }
        }
        for set in sets {
            let replicas = replicas(&set);
            let status = json!({
                "replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": replicas,
                "availableReplicas": replicas, "observedGeneration": set["metadata"]["generation"],
            });
            if set["status"] != status && !Meta(&set).is_being_deleted() {
                let _ = self.set("replicasets", &set, "/status", status);
            }
        }
        Ok(())
    }

    fn followed(&self, plural: &str) -> Result<Vec<Arc<Value>>, Status> {
        let target = self.target(&apps(plural), "", "")?;
        Ok(target.objects.all(None).iter().map(|object| self.typed(&target.resource, object)).collect())
    }

    fn set(&self, plural: &str, object: &Value, pointer: &str, value: Value) -> Result<(), Status> {
        let mut object = object.clone();
        set_pointer(&mut object, pointer, value);
        self.replace(&apps(plural), object, pointer == "/status").map(drop)
    }

    fn roll_out(&self, deployment: &Value, sets: &[Arc<Value>]) -> Result<(), Status> {
        let name = format!("{}-{}", Meta(deployment).name(), hash(&deployment["spec"]["template"]));
        let wanted = replicas(deployment);
        let uid = Meta(deployment).uid();
        let owned = sets.iter().filter(|set| set["metadata"]["ownerReferences"][0]["uid"] == uid);
        let (current, former): (Vec<_>, Vec<_>) = owned.partition(|set| Meta(set).name() == name);
        match current.first() {
            None => drop(self.create(&apps("replicasets"), replica_set(deployment, &name, wanted))?),
            Some(set) => self.scale(set, wanted)?,
        }
        let ready = current.first().map_or(0, |set| number(&set["status"]["readyReplicas"]));
        if ready >= wanted {
            former.iter().try_for_each(|set| self.scale(set, 0))?;
        }
        let all: i64 = current.iter().chain(&former).map(|set| number(&set["status"]["replicas"])).sum();
        let all_ready: i64 =
            current.iter().chain(&former).map(|set| number(&set["status"]["readyReplicas"])).sum();
        let mut status = json!({ "observedGeneration": deployment["metadata"]["generation"] });
        let updated = current.first().map_or(0, |set| number(&set["status"]["replicas"]));
        let counts = [
            ("replicas", all),
            ("updatedReplicas", updated),
            ("readyReplicas", all_ready),
            ("availableReplicas", all_ready),
            ("unavailableReplicas", (wanted - all_ready).max(0)),
        ];
        // The API leaves zeros out.
        for (field, count) in counts.into_iter().filter(|(_, count)| *count != 0) {
            status[field] = count.into();
        }
        if deployment["status"] != status {
            self.set("deployments", deployment, "/status", status)?;
        }
        Ok(())
    }

    fn scale(&self, set: &Value, replicas_wanted: i64) -> Result<(), Status> {
        if replicas(set) == replicas_wanted || Meta(set).is_being_deleted() {
            return Ok(());
        }
        self.set("replicasets", set, "/spec/replicas", replicas_wanted.into())
    }
}

fn apps(plural: &str) -> Gvr {
    Gvr::new("apps/v1", plural)
}

fn replica_set(deployment: &Value, name: &str, replicas: i64) -> Value {
    let meta = Meta(deployment);
    let hash = name.rsplit('-').next().unwrap_or_default();
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"]["pod-template-hash"] = hash.into();
    json!({
        "metadata": {
            "namespace": meta.namespace(), "name": name, "labels": template["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": meta.name(), "uid": meta.uid(),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    })
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// FNV-1a of the template, as ten letters and digits.
fn hash(template: &Value) -> String {
    let hash = template.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{:010x}", hash & 0xff_ffff_ffff)
}
