//! Identities of objects that have the types of kube and k8s-openapi. Together with
//! [`ResourceType::of`](crate::ResourceType::of) that is everything that the typed API needs of those types.

use informer_core::{ObjectKey, ResourceVersion, Uid};
use kube_core::Resource;

use crate::options::resource::ResourceType;
use crate::read::object_ref::ObjectRef;

/// Reads an identity from an object with Kubernetes metadata: a `Pod`, a `DynamicObject`, a `PartialObjectMeta`, a custom
/// resource.
///
/// The result is `None` if the object lacks the field because the server has not set it yet. Before an object is created it
/// has no uid and no resourceVersion, and with `generateName` no name either.
///
/// ```
/// use informer::{FromObject, ObjectKey, ResourceVersion, Uid};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut pod = Pod::default();
/// assert_eq!(ObjectKey::of(&pod), None);
/// pod.metadata.name = Some("cart".to_owned());
/// pod.metadata.namespace = Some("shop".to_owned());
/// assert_eq!(ObjectKey::of(&pod), Some("shop/cart".parse()?));
/// assert_eq!(Uid::of(&pod), None);
/// assert_eq!(ResourceVersion::of(&pod), None);
/// # Ok::<(), informer::InvalidKey>(())
/// ```
///
/// The version that a write returns is what [`Informer::at_least`](crate::Informer::at_least) waits for.
pub trait FromObject<T>: Sized {
    /// The identity that the object's metadata holds, if any.
    fn of(object: &T) -> Option<Self>;
}

impl<T: Resource> FromObject<T> for ObjectKey {
    fn of(object: &T) -> Option<Self> {
        let metadata = object.meta();
        Self::new(metadata.namespace.as_deref(), metadata.name.as_deref()?).ok()
    }
}

impl<T: Resource> FromObject<T> for ResourceVersion {
    fn of(object: &T) -> Option<Self> {
        Some(Self::new(object.meta().resource_version.as_deref()?)).filter(|version| !version.is_unset())
    }
}

impl<T: Resource> FromObject<T> for Uid {
    fn of(object: &T) -> Option<Self> {
        Some(Self::new(object.meta().uid.as_deref()?)).filter(|uid| !uid.is_unset())
    }
}

impl<T: Resource<DynamicType = (), Scope: 'static>> ObjectRef<T> {
    /// Refers to an object with Kubernetes metadata, and to its incarnation if it has a uid. Returns `None` for an object
    /// without a name.
    ///
    /// ```
    /// use informer::ObjectRef;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let mut pod = Pod::default();
    /// pod.metadata.name = Some("cart".to_owned());
    /// pod.metadata.namespace = Some("shop".to_owned());
    /// let cart = ObjectRef::of(&pod).ok_or("it has a name")?;
    /// assert_eq!(cart.to_string(), "pods.v1 shop/cart");
    /// # Ok::<(), &str>(())
    /// ```
    pub fn of(object: &T) -> Option<Self> {
        let reference = Self::new(ResourceType::of::<T>(), ObjectKey::of(object)?);
        Some(match Uid::of(object) {
            Some(uid) => reference.with_uid(uid),
            None => reference,
        })
    }
}
