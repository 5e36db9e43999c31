//! Predicates: which changes matter ([`Watched::when`](crate::Watched::when)).
//!
//! Each passes additions and deletions, and decides about updates; [`version`] stops resyncs too, which the others pass. An
//! object that was deleted and created again between two notifications is an update whose states have different uids: it
//! always passes. So does a `deletionTimestamp` that appears, with any predicate of a [`Watched`](crate::Watched): looking
//! for it decodes the metadata of each object whose change does not pass.
//!
//! ```no_run
//! # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
//! use informer_controller::{Watched, changed};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! let phases = Watched::of(&pods)
//!     .when(changed::field(|pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone())));
//! # }
//! ```

use informer::kube::Resource;
use informer::{Change, View};

/// The generation has changed: somebody wrote the spec. Updates of the status, labels and annotations do not pass. (Annotations
/// of Deployments do: the server counts them as spec.)
///
/// The server counts generations for custom resources and most built-in ones. An object without a generation always
/// passes. ([API conventions](https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata))
pub fn generation<U: View + Resource>(change: &Change<U>) -> bool {
    differs(change, |object| object.meta().generation, |generation| generation.is_none())
}

/// The resourceVersion has changed: somebody wrote the object. Resyncs do not pass, nor does a version that the server shows
/// in another form, as after its upgrade. This is controller-runtime's `ResourceVersionChangedPredicate`. Costs no decoding.
///
/// Of several controllers on one informer with a resync period, those with this predicate are not woken by it.
pub fn version<U: View>(change: &Change<U>) -> bool {
    match change {
        Change::Updated { old, new, .. } => old.resource_version() != new.resource_version(),
        Change::Resynced(_) => false,
        _ => true,
    }
}

/// The labels have changed. Costs no decoding.
pub fn labels<U: View>(change: &Change<U>) -> bool {
    match change {
        Change::Updated { old, new, .. } => {
            old.uid() != new.uid() || old.object().labels() != new.object().labels()
        }
        _ => true,
    }
}

/// The result of `read` has changed.
pub fn field<U: View, F: PartialEq>(
    read: impl Fn(&U) -> F + Send + Sync + 'static,
) -> impl Fn(&Change<U>) -> bool + Send + Sync + 'static {
    move |change| differs(change, &read, |_| false)
}

/// One of two predicates passes.
pub fn either<U>(
    one: impl Fn(&Change<U>) -> bool + Send + Sync + 'static,
    other: impl Fn(&Change<U>) -> bool + Send + Sync + 'static,
) -> impl Fn(&Change<U>) -> bool + Send + Sync + 'static {
    move |change| one(change) || other(change)
}

/// Whether `read` returns something else for the two states of an update, or for both something that says nothing.
fn differs<U: View, F: PartialEq>(
    change: &Change<U>,
    read: impl Fn(&U) -> F,
    says_nothing: impl Fn(&F) -> bool,
) -> bool {
    let Change::Updated { old, new, .. } = change else { return true };
    if old.uid() != new.uid() {
        return true;
    }
    // A state that was notified of decodes.
    let Ok(old) = old.get() else { return true };
    let (before, after) = (read(&old), read(new));
    before != after || says_nothing(&after)
}
