//! Reads the cache.

use std::fmt;
use std::sync::Arc;

use informer_core::{DecodeError, InvalidSelector, Object, ObjectKey, Selector, View};

use crate::read::handle::Handle;
use crate::read::item::{Decoder, Item};
use crate::read::snapshot::Snapshot;

/// Reads an informer's cache, in all namespaces or in one.
///
/// ```no_run
/// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), Box<dyn std::error::Error>> {
/// let lister = pods.lister();
/// if let Some(cart) = lister.get("shop/cart")? {
///     println!("{} has uid {}", cart.key(), cart.uid());
/// }
/// let web = lister.namespace("shop").labels("app=web,tier!=cache")?.list();
/// let pinned = lister.filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_selector.is_some()));
/// # let _ = (web, pinned);
/// # Ok(())
/// # }
/// ```
///
/// # Objects that do not decode
///
/// An object may not fit the type `T`. Lists leave it out and report it ([`Report::Undecodable`](crate::Report::Undecodable)),
/// so that one bad object does not stop a consumer; [`Lister::try_list`] is the strict form. [`Lister::get`] returns an
/// error: a controller that took such an object for a missing one would clean up after a live object.
pub struct Lister<T> {
    handle: Handle<T>,
    namespace: Option<Arc<str>>,
    selector: Selector,
}

impl<T: View> Lister<T> {
    pub(crate) fn new(handle: Handle<T>) -> Self {
        Self { handle, namespace: None, selector: Selector::default() }
    }

    /// This lister, for one namespace only. The empty name stands for all namespaces.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Self {
        let namespace = (!namespace.is_empty()).then(|| namespace.into());
        Self { namespace, ..self.clone() }
    }

    /// This lister, narrowed to objects with matching labels: a text with kubectl's syntax, or a [`Selector`]. Calls narrow
    /// further, as those of [`SharedInformerFactory::with_labels`](crate::SharedInformerFactory::with_labels) do.
    ///
    /// ```no_run
    /// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::InvalidSelector> {
    /// use informer::Selector;
    ///
    /// let web = pods.lister().labels("app=web")?;
    /// let live = web.labels(Selector::EVERYTHING.not_equals("stage", "test")?)?;
    /// println!("{} of {} are live", live.list().len(), web.list().len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the selector is malformed.
    pub fn labels<S>(&self, selector: S) -> Result<Self, InvalidSelector>
    where
        S: TryInto<Selector, Error: Into<InvalidSelector>>,
    {
        let selector = selector.try_into().map_err(Into::into)?;
        let both = self.selector.requirements().iter().chain(selector.requirements()).cloned().collect();
        Ok(Self { selector: both, ..self.clone() })
    }

    /// The object of a key, or `None` if the cache has none that this lister selects. O(1).
    ///
    /// The key is `namespace/name`, or `name` for cluster-wide objects and on a lister of one [`namespace`](Lister::namespace).
    /// It may be an [`ObjectKey`] too.
    ///
    /// ```no_run
    /// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::DecodeError> {
    /// match pods.lister().namespace("shop").get("cart")? {
    ///     Some(pod) => println!("{} is at {}", pod.key(), pod.resource_version()),
    ///     None => println!("no such pod"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the object exists and does not decode as a `T`.
    pub fn get(&self, key: impl AsRef<str>) -> Result<Option<Item<T>>, DecodeError> {
        let key = key.as_ref();
        match &self.namespace {
            None => self.find(key),
            // No object has a malformed name.
            Some(namespace) => match ObjectKey::new(Some(namespace), key) {
                Ok(key) => self.find(key.as_str()),
                Err(_) => Ok(None),
            },
        }
    }

    fn find(&self, key: &str) -> Result<Option<Item<T>>, DecodeError> {
        let item =
            |object: &Arc<Object>| self.selector.matches(object.labels()).then(|| self.handle.item(object));
        self.handle.core().cache.with(key, item).flatten().transpose()
    }

    /// All matching objects at one moment, in no particular order. O(matching objects).
    ///
    /// Objects that do not decode as a `T` are left out and reported.
    pub fn list(&self) -> Vec<Item<T>> {
        self.snapshot().select(self.namespace.as_deref(), &self.selector).collect()
    }

    /// All matching objects, or the first error: the strict form of [`Lister::list`].
    ///
    /// # Errors
    ///
    /// When one of them does not decode as a `T`.
    pub fn try_list(&self) -> Result<Vec<Item<T>>, DecodeError> {
        self.snapshot().select(self.namespace.as_deref(), &self.selector).strict().collect()
    }

    /// All matching objects for which `predicate` is true. Decodes every matching object: an index is cheaper.
    ///
    /// Objects that do not decode as a `T` are left out and reported.
    pub fn filter(&self, mut predicate: impl FnMut(&Item<T>) -> bool) -> Vec<Item<T>> {
        let mut list = self.list();
        list.retain(|item| predicate(item));
        list
    }

    /// A snapshot of the whole cache, for pages and for several reads of one state.
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot::new(self.handle.clone())
    }
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            namespace: self.namespace.clone(),
            selector: self.selector.clone(),
        }
    }
}

impl<T> fmt::Debug for Lister<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister")
            .field("informer", &self.handle)
            .field("namespace", &self.namespace)
            .field("selector", &self.selector)
            .finish()
    }
}
