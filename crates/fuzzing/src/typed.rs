//! Objects in protobuf, decoded by generated code and through serde.

use std::fmt::Debug;

use informer_protobuf::{Kind, from_slice_weighed, without_managed_fields};
use k8s_openapi::Resource;
use k8s_openapi::api::{
    apps, autoscaling, batch, coordination, core, discovery, events, networking, policy, rbac,
};
use serde::de::DeserializeOwned;

/// Any bytes, as an object of one of the kinds that the first byte chooses.
pub fn run(input: &[u8]) {
    let Some((head, raw)) = input.split_first() else { return };
    let kinds = kinds();
    check(kinds[usize::from(*head) % kinds.len()], raw);
}

/// A pod.
pub fn example(seed: u64) -> Vec<u8> {
    let mut input = vec![0];
    input.extend(crate::protobuf::objects::pod(&mut fastrand::Rng::with_seed(seed)));
    input
}

macro_rules! typed {
    ($($type:ty),* $(,)?) => {
        /// The kinds with generated code.
        pub fn kinds() -> Vec<Kind> {
            vec![$(kind_of::<$type>()),*]
        }

        /// Checks that the generated code decodes the same value as serde, with the same weight. Returns whether the generated
        /// code decoded it.
        pub fn check(kind: Kind, raw: &[u8]) -> bool {
            $(if kind == kind_of::<$type>() {
                return same::<$type>(kind, raw);
            })*
            panic!("{kind:?} has no generated code")
        }
    };
}

typed!(
    core::v1::Pod,
    core::v1::Node,
    core::v1::Service,
    core::v1::ConfigMap,
    core::v1::Secret,
    core::v1::Event,
    core::v1::Namespace,
    core::v1::ServiceAccount,
    core::v1::PersistentVolumeClaim,
    core::v1::PersistentVolume,
    apps::v1::ReplicaSet,
    apps::v1::Deployment,
    apps::v1::StatefulSet,
    apps::v1::DaemonSet,
    batch::v1::Job,
    batch::v1::CronJob,
    autoscaling::v1::HorizontalPodAutoscaler,
    autoscaling::v2::HorizontalPodAutoscaler,
    coordination::v1::Lease,
    discovery::v1::EndpointSlice,
    events::v1::Event,
    networking::v1::Ingress,
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::Role,
    rbac::v1::RoleBinding,
);

fn kind_of<T: Resource>() -> Kind {
    Kind::of(T::API_VERSION, T::KIND).expect("it is built in")
}

fn same<T: DeserializeOwned + Debug + PartialEq + 'static>(kind: Kind, raw: &[u8]) -> bool {
    let without = without_managed_fields(raw);
    for (skips, alike) in [(false, raw), (true, &without)] {
        let Some((ours, heap)) = informer_k8s_openapi::decode::<T>(kind, raw, skips) else { continue };
        let (theirs, weighed) = from_slice_weighed::<T>(kind, alike)
            .unwrap_or_else(|error| panic!("{kind:?}, {skips}: decoded, but not by serde: {error}"));
        assert!(ours == theirs, "{kind:?}, {skips}: {}", difference(&ours, &theirs));
        assert_eq!(heap, weighed, "{kind:?}, {skips}");
    }
    informer_k8s_openapi::decode::<T>(kind, raw, false).is_some()
}

/// The text around the first difference: objects are long.
fn difference<T: Debug>(ours: &T, theirs: &T) -> String {
    let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
    let same = ours.chars().zip(theirs.chars()).take_while(|(one, other)| one == other).count();
    let shown = |text: &str| text.chars().skip(same.saturating_sub(80)).take(200).collect::<String>();
    format!("\n{}\n{}", shown(&ours), shown(&theirs))
}
