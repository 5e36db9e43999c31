//! Which object controls another one, as its metadata says.

use informer::{Object, ObjectKey, ResourceType, Uid};

/// The part of an object that says to whom it belongs: its owners, and what its deletion waits for.
#[derive(serde::Deserialize)]
pub(crate) struct Owned {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, serde::Deserialize)]
struct Metadata {
    #[serde(default, rename = "ownerReferences")]
    owners: Vec<Reference>,
    #[serde(default, rename = "deletionTimestamp")]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    finalizers: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Reference {
    uid: String,
    #[serde(default)]
    controller: bool,
}

impl Owned {
    /// The uid of the owner that controls the object.
    pub(crate) fn controller(&self) -> Option<Uid> {
        let controller = self.metadata.owners.iter().find(|owner| owner.controller);
        controller.map(|owner| Uid::new(&owner.uid))
    }

    /// Whether the object is being deleted.
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The finalizers that hold the object when it is deleted.
    pub(crate) fn finalizers(&self) -> &[String] {
        &self.metadata.finalizers
    }
}

/// The key of the object of resource `owner` that controls `object`. `None` if something else does, or if the object
/// cannot be decoded, which its informer reports.
///
/// The version of the reference may differ from the resource's: an owner has one kind in one group, whatever version its
/// writer used.
pub(crate) fn controlling(owner: &ResourceType, object: &Object) -> Option<ObjectKey> {
    let reference = object.controller().ok()??;
    let group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if reference.kind != owner.kind || group != owner.group {
        return None;
    }
    // A namespaced owner is in the namespace of what it owns.
    let namespace = object.key().namespace();
    if owner.namespaced && namespace.is_none() {
        return None;
    }
    let namespace = namespace.filter(|_| owner.namespaced);
    ObjectKey::new(namespace, &reference.name).ok()
}
