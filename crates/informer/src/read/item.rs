//! An object as a type `T`, with its identity beside it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use informer_core::store::Objects;
use informer_core::{DecodeError, Labels, Object, ObjectKey, ResourceVersion, Room, Uid, View};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde::Deserialize;

/// One version of an object: its value as a `T`, with its key, uid, resourceVersion and labels beside it.
///
/// Listers, indexes, snapshots, handlers and changes all return items. An item dereferences to `T`, so a `Pod`'s fields are
/// at hand. Its identity does not come from `T`: a struct of a few fields without metadata has a key too. A clone costs two
/// reference counts. [`Item::into_value`] returns the `Arc<T>` alone.
///
/// ```no_run
/// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::Error> {
/// use informer::{Informer, ResourceType};
/// use k8s_openapi::api::core::v1::Pod;
///
/// #[derive(serde::Deserialize)]
/// struct Phase {
///     status: Status,
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Status {
///     phase: String,
/// }
///
/// let phases: Informer<Phase> = factory.informer_of(ResourceType::of::<Pod>());
/// for pod in phases.lister().list() {
///     println!("{} is {}", pod.key(), pod.status.phase);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Item<T> {
    value: Arc<T>,
    object: Arc<Object>,
}

impl<T> Item<T> {
    pub(crate) fn new(value: Arc<T>, object: Arc<Object>) -> Self {
        Self { value, object }
    }

    /// The object's namespace and name.
    pub fn key(&self) -> &ObjectKey {
        self.object.key()
    }

    /// The incarnation: an object that was deleted and created again has the same key and another uid.
    pub fn uid(&self) -> &Uid {
        self.object.uid()
    }

    /// The version of this state.
    pub fn resource_version(&self) -> &ResourceVersion {
        self.object.resource_version()
    }

    /// The object's labels, without decoding it.
    pub fn labels(&self) -> &Labels {
        self.object.labels()
    }

    /// The object's `metadata.managedFields`: which manager owns which fields.
    ///
    /// Values leave them out, because they are half of the work of decoding
    /// ([`FactoryBuilder::decode_managed_fields`](crate::FactoryBuilder::decode_managed_fields) changes that); each call decodes
    /// them. A value may be written back without them: to the server, absent means unchanged. An empty list would reset them
    /// ([field management](https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields)); no value
    /// has one. Where [`Transform::drop_managed_fields`](crate::Transform::drop_managed_fields) has dropped them, there are none.
    ///
    /// ```no_run
    /// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::DecodeError> {
    /// for pod in pods.lister().list() {
    ///     for entry in pod.managed_fields()? {
    ///         println!("{}: {}", pod.key(), entry.manager.unwrap_or_default());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the object's bytes are not available from their storage, or its metadata does not decode.
    pub fn managed_fields(&self) -> Result<Vec<ManagedFieldsEntry>, DecodeError> {
        #[derive(Deserialize)]
        struct Managed {
            metadata: ObjectMeta,
        }
        let Managed { metadata } = self.object.decode_whole()?;
        Ok(metadata.managed_fields.unwrap_or_default())
    }

    /// The undecoded object, which decodes into any other type.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The value, shared with the cache and other consumers.
    pub fn value(&self) -> &Arc<T> {
        &self.value
    }

    /// The value without its identity.
    pub fn into_value(self) -> Arc<T> {
        self.value
    }
}

impl<T> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> AsRef<T> for Item<T> {
    fn as_ref(&self) -> &T {
        &self.value
    }
}

impl<T> From<Item<T>> for Arc<T> {
    fn from(item: Item<T>) -> Self {
        item.value
    }
}

impl<T> Clone for Item<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), object: self.object.clone() }
    }
}

impl<T> fmt::Debug for Item<T> {
    /// Names the version, as `namespace/name@resourceVersion`. The content is never printed, because it may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.object, f)
    }
}

/// Selected objects of a [`Snapshot`](crate::Snapshot), decoded one by one, in no particular order.
///
/// Objects that do not decode as a `T` are left out and reported ([`Report::Undecodable`](crate::Report::Undecodable)).
/// [`Items::strict`] returns them as errors instead.
///
/// ```no_run
/// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::DecodeError> {
/// let snapshot = pods.snapshot();
/// let readable = snapshot.iter().count();
/// let all: Vec<_> = snapshot.iter().strict().collect::<Result<_, _>>()?;
/// # let _ = (readable, all);
/// # Ok(())
/// # }
/// ```
#[must_use = "iterators are lazy: nothing is decoded before the first `next`"]
pub struct Items<'a, T> {
    decoder: &'a dyn Decoder<T>,
    objects: Objects<'a>,
}

/// Decodes objects as their informer does, and reports those that do not decode.
pub(crate) trait Decoder<T>: Send + Sync {
    fn item_in(&self, object: &Arc<Object>, room: Room) -> Result<Item<T>, DecodeError>;

    fn report(&self, error: &DecodeError);

    fn item(&self, object: &Arc<Object>) -> Result<Item<T>, DecodeError> {
        self.item_in(object, Room::Evict)
    }

    fn item_or_report(&self, object: &Arc<Object>, room: Room) -> Option<Item<T>> {
        self.item_in(object, room).inspect_err(|error| self.report(error)).ok()
    }
}

impl<'a, T: View> Items<'a, T> {
    pub(crate) fn new(decoder: &'a dyn Decoder<T>, objects: Objects<'a>) -> Self {
        Self { decoder, objects }
    }

    /// The same objects, with an error for each that does not decode as a `T`.
    pub fn strict(self) -> impl Iterator<Item = Result<Item<T>, DecodeError>> + use<'a, T> {
        let Self { decoder, objects } = self;
        objects.map(|object| decoder.item_in(object, Room::IfFree))
    }
}

impl<T: View> Iterator for Items<'_, T> {
    type Item = Item<T>;

    fn next(&mut self) -> Option<Item<T>> {
        self.objects.by_ref().find_map(|object| self.decoder.item_or_report(object, Room::IfFree))
    }
}

impl<T> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}
