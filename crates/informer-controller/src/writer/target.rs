//! The object that a write is about.

use std::borrow::Cow;

use informer::kube::Resource;
use informer::{Item, ObjectKey, ObjectRef, ResourceType, ResourceVersion, Uid};

/// An object that exists, as a reconciler knows it: an `&Item<K>` of a cache, or an `&ObjectRef<K>`, whose resourceVersion is
/// that of the controller's caches.
pub trait Target<K> {
    /// Its resource.
    fn resource(&self) -> Cow<'_, ResourceType>;

    /// Its namespace and name.
    fn key(&self) -> ObjectKey;

    /// Its incarnation and version, for preconditions.
    fn seen(&self) -> Seen;
}

/// The incarnation and version of an object, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The incarnation.
    pub uid: Option<Uid>,
    /// The version.
    pub version: Option<ResourceVersion>,
}

impl Seen {
    pub(crate) fn of<K>(item: &Item<K>) -> Self {
        Self {
            uid: Some(item.uid().clone()).filter(|uid| !uid.is_unset()),
            version: Some(item.resource_version().clone()).filter(|version| !version.is_unset()),
        }
    }
}

impl<K: Resource<DynamicType = (), Scope: 'static>> Target<K> for &Item<K> {
    fn resource(&self) -> Cow<'_, ResourceType> {
        Cow::Owned(ResourceType::of::<K>())
    }

    fn key(&self) -> ObjectKey {
        Item::key(self).clone()
    }

    fn seen(&self) -> Seen {
        Seen::of(self)
    }
}

impl<K> Target<K> for &ObjectRef<K> {
    fn resource(&self) -> Cow<'_, ResourceType> {
        Cow::Borrowed(ObjectRef::resource(self))
    }

    fn key(&self) -> ObjectKey {
        ObjectRef::key(self).clone()
    }

    fn seen(&self) -> Seen {
        Seen { uid: self.uid().cloned(), version: None }
    }
}
