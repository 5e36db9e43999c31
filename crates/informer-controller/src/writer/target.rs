//! The object that a write is about.

use std::borrow::Cow;

use informer::kube::Resource;
use informer::{Item, ObjectKey, ObjectRef, ResourceType, ResourceVersion, Uid};

/// An object that exists, as a reconciler knows it: an `&Item<K>` of a cache; an `&ObjectRef<K>`, whose resourceVersion is that of
/// the controller's caches; or an object that was read from the server, as an `&K`, or as `(&ResourceType, &K)` for a type that is
/// known at run time, such as `DynamicObject`.
///
/// ```no_run
/// # use informer::kube::client::Api;
/// # use informer_controller::{Context, Failure};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use serde_json::json;
/// # async fn example(context: Context<ConfigMap>) -> Result<(), Failure> {
/// let maps: Api<ConfigMap> = Api::namespaced(context.unrecorded_client().clone(), "shop");
/// if let Some(map) = maps.get_opt("prices").await? {
///     context.writer().patch(&map, json!({ "data": { "tea": "4" } })).await?;
/// }
/// # Ok(())
/// # }
/// ```
pub trait Target<K> {
    /// Its resource.
    fn resource(&self) -> Cow<'_, ResourceType>;

    /// Its namespace and name. An object that the server has not named yet has none.
    fn key(&self) -> Option<ObjectKey>;

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
    fn new(uid: Uid, version: ResourceVersion) -> Self {
        Self {
            uid: Some(uid).filter(|uid| !uid.is_unset()),
            version: Some(version).filter(|version| !version.is_unset()),
        }
    }

    /// Whether this is known to be an older version.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        let versions = self.version.as_ref().zip(other.version.as_ref());
        versions.is_some_and(|(own, other)| own.is_older_than(other))
    }

    pub(crate) fn of<K>(item: &Item<K>) -> Self {
        Self::new(item.uid().clone(), item.resource_version().clone())
    }
}

impl<K: Resource<DynamicType = (), Scope: 'static>> Target<K> for &Item<K> {
    fn resource(&self) -> Cow<'_, ResourceType> {
        Cow::Owned(ResourceType::of::<K>())
    }

    fn key(&self) -> Option<ObjectKey> {
        Some(Item::key(self).clone())
    }

    fn seen(&self) -> Seen {
        Seen::of(self)
    }
}

impl<K> Target<K> for &ObjectRef<K> {
    fn resource(&self) -> Cow<'_, ResourceType> {
        Cow::Borrowed(ObjectRef::resource(self))
    }

    fn key(&self) -> Option<ObjectKey> {
        Some(ObjectRef::key(self).clone())
    }

    fn seen(&self) -> Seen {
        Seen { uid: self.uid().cloned(), version: None }
    }
}

impl<K: Resource<DynamicType = (), Scope: 'static>> Target<K> for &K {
    fn resource(&self) -> Cow<'_, ResourceType> {
        Cow::Owned(ResourceType::of::<K>())
    }

    fn key(&self) -> Option<ObjectKey> {
        key(*self)
    }

    fn seen(&self) -> Seen {
        seen(*self)
    }
}

impl<K: Resource> Target<K> for (&ResourceType, &K) {
    fn resource(&self) -> Cow<'_, ResourceType> {
        Cow::Borrowed(self.0)
    }

    fn key(&self) -> Option<ObjectKey> {
        key(self.1)
    }

    fn seen(&self) -> Seen {
        seen(self.1)
    }
}

fn key(object: &impl Resource) -> Option<ObjectKey> {
    let meta = object.meta();
    ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref()?).ok()
}

fn seen(object: &impl Resource) -> Seen {
    let meta = object.meta();
    let [uid, version] = [&meta.uid, &meta.resource_version].map(|text| text.as_deref().unwrap_or_default());
    Seen::new(Uid::new(uid), ResourceVersion::new(version))
}
