//! Finds the daemon: its pod, and the container in it.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_client::Client;
use kube_client::api::{Api, ListParams};
use kube_client::core::{NamespaceResourceScope, Resource, ResourceExt, Selector};
use serde::de::DeserializeOwned;

use super::error::Why;
use super::place::Place;
use super::server::{Server, Step};
use crate::query::args::DaemonName;

/// The container's name in the chart.
const CONTAINER: &str = "kubediff";
/// So many names help; more of them do not.
const FEW: usize = 10;

/// Finds the pod of this name, or a pod of the Deployment or StatefulSet of this name.
pub(super) async fn place(
    client: &Client,
    name: &DaemonName,
    container: Option<&str>,
    server: &Server,
) -> Result<Place, Why> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &name.namespace);
    let pod = match server.ask(Step::Pods, pods.get_opt(&name.name)).await? {
        Some(pod) => pod,
        None => {
            let selector = selector(client, name, server).await?;
            let params = ListParams::default().labels_from(&selector);
            let listed = server.ask(Step::Pods, pods.list(&params)).await?;
            best(listed.items, container).ok_or_else(|| Why::NoPod(name.clone()))?
        }
    };
    within(&pod, name, container)
}

/// The container in this pod. It has to run.
fn within(pod: &Pod, name: &DaemonName, container: Option<&str>) -> Result<Place, Why> {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let wanted = container.unwrap_or(CONTAINER);
    let chosen = match (containers.iter().find(|it| it.name == wanted), containers) {
        (Some(chosen), _) => chosen,
        (None, [only]) if container.is_none() => only,
        (None, _) => {
            let names: Vec<&str> = containers.iter().map(|it| it.name.as_str()).collect();
            return Err(Why::NoContainer {
                pod: format!("{}/{}", name.namespace, pod.name_any()),
                wanted: wanted.to_owned(),
                known: names.join(", "),
            });
        }
    };
    let place = Place {
        namespace: name.namespace.clone(),
        pod: pod.name_any(),
        container: chosen.name.clone(),
        image: chosen.image.clone().unwrap_or_default(),
    };
    match standing(pod, &chosen.name) {
        Ok(()) => Ok(place),
        Err(state) => Err(Why::NotRunning { place: Box::new(place), state }),
    }
}

/// The pods of the Deployment or StatefulSet of this name.
async fn selector(client: &Client, name: &DaemonName, server: &Server) -> Result<Selector, Why> {
    let DaemonName { namespace, name: workload } = name;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = server.ask(Step::Workloads, deployments.get_opt(workload)).await?;
    let mut labels = deployment.map(|it| it.spec.selector);
    if labels.is_none() {
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), namespace);
        let set = server.ask(Step::Workloads, sets.get_opt(workload)).await?;
        labels = set.map(|it| it.spec.selector);
    }
    let labels: LabelSelector = match labels {
        Some(labels) => labels,
        None => return Err(Why::NotFound { name: name.clone(), known: known(client, namespace).await }),
    };
    labels.try_into().map_err(|_| Why::NoPod(name.clone()))
}

/// Which workloads the namespace has, as far as the server says it.
async fn known(client: &Client, namespace: &str) -> String {
    let mut found = names::<Deployment>(client, namespace).await;
    found.extend(names::<StatefulSet>(client, namespace).await);
    let more = if found.len() > FEW { " and others" } else { "" };
    found.truncate(FEW);
    if found.is_empty() { "no workload that you may list".to_owned() } else { found.join(", ") + more }
}

/// Some names of a kind; none where they may not be listed.
async fn names<K>(client: &Client, namespace: &str) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let listed = api.list_metadata(&ListParams::default().limit(100)).await;
    let kind = K::kind(&()).into_owned();
    listed
        .map(|list| list.items.iter().map(|it| format!("{kind} {}", it.name_any())).collect())
        .unwrap_or_default()
}

/// The pod to ask: a ready one rather than one that only runs, and the newest of those.
fn best(pods: Vec<Pod>, container: Option<&str>) -> Option<Pod> {
    let rank = |pod: &Pod| {
        let container = container.unwrap_or(CONTAINER);
        let lives = pod.metadata.deletion_timestamp.is_none();
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (lives, is_ready(pod), standing(pod, container).is_ok(), created)
    };
    pods.into_iter().max_by_key(rank)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True")
}

/// Whether the container runs; else what it does instead.
fn standing(pod: &Pod, container: &str) -> Result<(), String> {
    let Some(status) = &pod.status else { return Err("it has no state yet".to_owned()) };
    let phase = status.phase.clone().unwrap_or_else(|| "Unknown".to_owned());
    let known = status.container_statuses.as_deref().unwrap_or_default();
    match known.iter().find(|it| it.name == container) {
        Some(ContainerStatus { state: Some(ContainerState { running: Some(_), .. }), .. }) => Ok(()),
        Some(ContainerStatus { state: Some(ContainerState { waiting: Some(waiting), .. }), .. }) => {
            Err(waiting.reason.clone().unwrap_or_else(|| "Waiting".to_owned()))
        }
        Some(ContainerStatus { state: Some(ContainerState { terminated: Some(ended), .. }), .. }) => {
            Err(ended
                .reason
                .clone()
                .unwrap_or_else(|| format!("it ended with exit code {}", ended.exit_code)))
        }
        _ if phase == "Running" => Ok(()),
        _ => Err(phase),
    }
}
