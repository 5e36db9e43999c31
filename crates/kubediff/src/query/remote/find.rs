//! Finds the daemon: its pod, and the container in it.

use kube_client::Client;
use kube_client::api::ListParams;
use kube_client::core::{ResourceExt, Selector};

use super::error::Why;
use super::place::Place;
use super::server::{Server, Step};
use super::workload::{ContainerStatus, Pod, State, pods, workloads};
use crate::query::args::DaemonName;

/// The container's name in the chart.
const CONTAINER: &str = "kubediff";
/// The most names in a message; more of them do not help.
const FEW: usize = 10;

/// Finds the pod of this name, or a pod of the Deployment or StatefulSet of this name.
pub(super) async fn place(
    client: &Client,
    name: &DaemonName,
    container: Option<&str>,
    server: &Server,
) -> Result<Place, Why> {
    let pods = pods(client, &name.namespace);
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
    let containers = pod.spec.containers.as_slice();
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
    for (_, workloads) in workloads(client, namespace) {
        if let Some(found) = server.ask(Step::Workloads, workloads.get_opt(workload)).await? {
            return found.spec.selector.try_into().map_err(|_| Why::NoPod(name.clone()));
        }
    }
    Err(Why::NotFound { name: name.clone(), known: known(client, namespace).await })
}

/// Which workloads the namespace has, as far as the server says it.
async fn known(client: &Client, namespace: &str) -> String {
    let mut found = Vec::new();
    for (kind, workloads) in workloads(client, namespace) {
        let listed = workloads.list_metadata(&ListParams::default().limit(100)).await;
        let names = listed.iter().flat_map(|list| &list.items);
        found.extend(names.map(|it| format!("{kind} {}", it.name_any())));
    }
    let more = if found.len() > FEW { " and others" } else { "" };
    found.truncate(FEW);
    if found.is_empty() { "no workload that you may list".to_owned() } else { found.join(", ") + more }
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
    conditions.iter().any(|it| it.kind == "Ready" && it.status == "True")
}

/// Whether the container runs; else what it does instead.
fn standing(pod: &Pod, container: &str) -> Result<(), String> {
    let Some(status) = &pod.status else { return Err("it has no state yet".to_owned()) };
    let phase = status.phase.clone().unwrap_or_else(|| "Unknown".to_owned());
    let known = status.container_statuses.as_deref().unwrap_or_default();
    match known.iter().find(|it| it.name == container) {
        Some(ContainerStatus { state: Some(State { running: Some(_), .. }), .. }) => Ok(()),
        Some(ContainerStatus { state: Some(State { waiting: Some(waiting), .. }), .. }) => {
            Err(waiting.reason.clone().unwrap_or_else(|| "Waiting".to_owned()))
        }
        Some(ContainerStatus { state: Some(State { terminated: Some(ended), .. }), .. }) => Err(ended
            .reason
            .clone()
            .unwrap_or_else(|| format!("it ended with exit code {}", ended.exit_code))),
        _ if phase == "Running" => Ok(()),
        _ => Err(phase),
    }
}
