//! The fields of pods and workloads that are read to find the daemon. Code that decodes the whole types would be a twentieth of
//! the program.

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_client::Client;
use kube_client::api::{Api, ApiResource};
use kube_client::core::{NotUsed, Object};
use serde::Deserialize;
use serde::de::IgnoredAny;

pub(super) type Pod = Object<PodSpec, PodStatus>;
/// A Deployment or a StatefulSet.
pub(super) type Workload = Object<WorkloadSpec, NotUsed>;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct WorkloadSpec {
    pub(super) selector: LabelSelector,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PodSpec {
    pub(super) containers: Vec<Container>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub(super) phase: Option<String>,
    pub(super) conditions: Option<Vec<Condition>>,
    pub(super) container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    #[serde(default)]
    pub(super) state: Option<State>,
}

/// The state of a container: one field is set.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct State {
    pub(super) running: Option<IgnoredAny>,
    pub(super) waiting: Option<Waiting>,
    pub(super) terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Waiting {
    pub(super) reason: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Terminated {
    pub(super) reason: Option<String>,
    pub(super) exit_code: i32,
}

pub(super) fn pods(client: &Client, namespace: &str) -> Api<Pod> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<core::Pod>(&()))
}

/// The kinds of workloads, each by its name.
pub(super) fn workloads(client: &Client, namespace: &str) -> [(&'static str, Api<Workload>); 2] {
    [
        ("Deployment", ApiResource::erase::<apps::Deployment>(&())),
        ("StatefulSet", ApiResource::erase::<apps::StatefulSet>(&())),
    ]
    .map(|(kind, resource)| (kind, Api::namespaced_with(client.clone(), namespace, &resource)))
}
