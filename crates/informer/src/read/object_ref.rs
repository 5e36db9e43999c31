//! References to objects.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{ObjectKey, Uid};

use crate::options::resource::ResourceType;

/// Refers to one object: its resource, its key and, if one incarnation is meant, its uid.
///
/// A reference is small, cheap to clone and holds no content, so it can be the key of a map or of a queue. `T` is the type
/// as which the object is read: references to pods and to nodes do not mix. Two references are equal if resource, key and
/// uid are equal. Use [`ObjectRef::without_uid`] where incarnations do not matter.
///
/// ```
/// use informer::{ObjectRef, ResourceType, Uid};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let cart = ObjectRef::<Pod>::new(ResourceType::of::<Pod>(), "shop/cart".parse()?);
/// assert_eq!(cart.key().name(), "cart");
/// assert_eq!(cart.resource().kind, "Pod");
/// let first = cart.clone().with_uid(Uid::new("2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11"));
/// assert_ne!(cart, first);
/// assert_eq!(cart, first.without_uid());
/// # Ok::<(), informer::InvalidKey>(())
/// ```
///
/// [`ObjectRef::of`] makes a reference from an object. [`Informer::object_ref`](crate::Informer::object_ref) makes one from
/// an item, also if the resource is known only at run time.
pub struct ObjectRef<T> {
    resource: Arc<ResourceType>,
    key: ObjectKey,
    uid: Option<Uid>,
    view: PhantomData<fn() -> T>,
}

impl<T> ObjectRef<T> {
    /// Refers to the object that has the key, whatever its uid.
    pub fn new(resource: impl Into<Arc<ResourceType>>, key: ObjectKey) -> Self {
        Self { resource: resource.into(), key, uid: None, view: PhantomData }
    }

    /// Refers to this incarnation only.
    #[must_use]
    pub fn with_uid(self, uid: Uid) -> Self {
        Self { uid: Some(uid), ..self }
    }

    /// Refers to the object that has the key, whatever its uid.
    #[must_use]
    pub fn without_uid(self) -> Self {
        Self { uid: None, ..self }
    }

    /// The resource of the object.
    pub fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// The key of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The incarnation, if one is meant.
    pub fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }
}

impl<T> Clone for ObjectRef<T> {
    fn clone(&self) -> Self {
        let Self { resource, key, uid, .. } = self;
        Self { resource: resource.clone(), key: key.clone(), uid: uid.clone(), view: PhantomData }
    }
}

impl<T> PartialEq for ObjectRef<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.uid == other.uid && self.resource == other.resource
    }
}

impl<T> Eq for ObjectRef<T> {}

impl<T> Hash for ObjectRef<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.resource, &self.key, &self.uid).hash(state);
    }
}

impl<T> fmt::Display for ObjectRef<T> {
    /// `plural.version.group namespace/name`, as in `deployments.v1.apps shop/cart`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.key)
    }
}

impl<T> fmt::Debug for ObjectRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.uid {
            Some(uid) => write!(f, "ObjectRef({self}, uid {uid})"),
            None => write!(f, "ObjectRef({self})"),
        }
    }
}
