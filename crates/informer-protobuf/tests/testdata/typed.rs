//! Types of k8s-openapi, which know nothing of protobuf.

use std::fmt::Debug;

use informer_protobuf::from_slice;
use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;

use crate::files::{self, Pair};

fn same<T: DeserializeOwned + PartialEq + Debug + k8s_openapi::Resource>(pairs: &[Pair]) {
    let is_it = |pair: &&Pair| {
        let envelope = pair.envelope();
        (envelope.api_version, envelope.kind) == (T::API_VERSION, T::KIND)
    };
    let pair = pairs.iter().find(is_it).unwrap_or_else(|| panic!("no {} {}", T::API_VERSION, T::KIND));
    let expected: T =
        serde_json::from_slice(&pair.json).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
    let ours: T = from_slice(pair.kind().unwrap(), pair.envelope().raw)
        .unwrap_or_else(|error| panic!("{}: {error}", pair.name));
    assert_eq!(ours, expected, "{}", pair.name);
}

macro_rules! same {
    ($pairs:expr, $($kind:ty),* $(,)?) => {
        $(same::<$kind>($pairs);)*
    };
}

#[test]
fn types_are_read_as_from_json() {
    let Some(pairs) = files::head_or_skip("types_are_read_as_from_json") else { return };
    same!(
        &pairs,
        api::admissionregistration::v1::MutatingWebhookConfiguration,
        api::admissionregistration::v1::ValidatingAdmissionPolicy,
        api::admissionregistration::v1::ValidatingWebhookConfiguration,
        api::apps::v1::ControllerRevision,
        api::apps::v1::DaemonSet,
        api::apps::v1::Deployment,
        api::apps::v1::ReplicaSet,
        api::apps::v1::StatefulSet,
        api::authentication::v1::TokenReview,
        api::authorization::v1::SubjectAccessReview,
        api::autoscaling::v1::HorizontalPodAutoscaler,
        api::autoscaling::v2::HorizontalPodAutoscaler,
        api::batch::v1::CronJob,
        api::batch::v1::Job,
        api::certificates::v1::CertificateSigningRequest,
        api::coordination::v1::Lease,
        api::core::v1::ConfigMap,
        api::core::v1::Endpoints,
        api::core::v1::Event,
        api::core::v1::LimitRange,
        api::core::v1::Namespace,
        api::core::v1::Node,
        api::core::v1::PersistentVolume,
        api::core::v1::PersistentVolumeClaim,
        api::core::v1::Pod,
        api::core::v1::PodTemplate,
        api::core::v1::ReplicationController,
        api::core::v1::ResourceQuota,
        api::core::v1::Secret,
        api::core::v1::Service,
        api::core::v1::ServiceAccount,
        api::discovery::v1::EndpointSlice,
        api::events::v1::Event,
        api::flowcontrol::v1::FlowSchema,
        api::flowcontrol::v1::PriorityLevelConfiguration,
        api::networking::v1::Ingress,
        api::networking::v1::IngressClass,
        api::networking::v1::NetworkPolicy,
        api::node::v1::RuntimeClass,
        api::rbac::v1::ClusterRole,
        api::rbac::v1::RoleBinding,
        api::resource::v1::DeviceClass,
        api::resource::v1::ResourceClaim,
        api::resource::v1::ResourceSlice,
        api::scheduling::v1::PriorityClass,
        api::storage::v1::CSIDriver,
        api::storage::v1::CSINode,
        api::storage::v1::StorageClass,
        api::storage::v1::VolumeAttachment,
        CustomResourceDefinition,
    );
}
