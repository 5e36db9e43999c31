//! Reading the cache.

use std::sync::Arc;

use informer_core::{DecodeError, InvalidKey, Object, ObjectKey, Selector, View};

use crate::Error;
use crate::informer::Informer;
use crate::snapshot::Snapshot;

/// Reads an informer's cache, in all namespaces or in one.
///
/// ```no_run
/// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::Error> {
/// let lister = pods.lister();
/// let cart = lister.get("shop/cart")?;
/// let web = lister.namespace("shop").labels("app=web,tier!=cache")?.list()?;
/// let ready = lister.filter(|pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")))?;
/// # let _ = (cart, web, ready);
/// # Ok(())
/// # }
/// ```
pub struct Lister<T> {
    informer: Informer<T>,
    namespace: Option<Arc<str>>,
    selector: Selector,
}

impl<T: View> Lister<T> {
    pub(crate) fn new(informer: Informer<T>) -> Self {
        Self { informer, namespace: None, selector: Selector::default() }
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self.clone() }
    }

    /// Only objects with matching labels; a selector as kubectl takes it.
    ///
    /// # Errors
    ///
    /// When the selector is malformed.
    pub fn labels(&self, selector: &str) -> Result<Self, Error> {
        let parsed = selector.parse().map_err(|error| Error::invalid("a label selector", selector, error))?;
        Ok(self.selector(parsed))
    }

    /// Only objects with matching labels.
    #[must_use]
    pub fn selector(&self, selector: Selector) -> Self {
        Self { selector, ..self.clone() }
    }

    /// One object, by `namespace/name` or `name`; within a namespace by its name. O(1).
    ///
    /// # Errors
    ///
    /// When there is none ([`Error::is_not_found`]), or it cannot be read as a `T` ([`Error::is_decode`]).
    pub fn get(&self, key: &str) -> Result<Arc<T>, Error> {
        let Some(namespace) = &self.namespace else {
            return match self.find(key) {
                Some(found) => Ok(found?),
                // A text that the cache has is a key for sure: only what was not found has to be looked at.
                None => Err(self.missing(key, key.parse())),
            };
        };
        let full = ObjectKey::new(Some(namespace), key);
        match full.as_ref().ok().and_then(|key| self.find(key.as_str())) {
            Some(found) => Ok(found?),
            None => Err(self.missing(key, full)),
        }
    }

    fn find(&self, key: &str) -> Option<Result<Arc<T>, DecodeError>> {
        let view =
            |object: &Arc<Object>| self.selector.matches(object.labels()).then(|| self.informer.view(object));
        self.informer.core().cache.with(key, view)?
    }

    #[cold]
    fn missing(&self, asked: &str, key: Result<ObjectKey, InvalidKey>) -> Error {
        match key {
            Ok(key) => Error::not_in_cache(self.informer.resource(), &key),
            Err(error) => Error::invalid("a key", asked, error),
        }
    }

    /// All objects that match, in no order, of one moment. O(matching objects).
    ///
    /// # Errors
    ///
    /// When one of them cannot be read as a `T` ([`Error::is_decode`]); [`Lister::list_readable`] goes on without it.
    pub fn list(&self) -> Result<Vec<Arc<T>>, Error> {
        let snapshot = self.informer.snapshot();
        let list: Result<Vec<_>, DecodeError> =
            snapshot.select(self.namespace.as_deref(), &self.selector).collect();
        Ok(list?)
    }

    /// All objects that match and can be read, and the errors of those that cannot.
    pub fn list_readable(&self) -> (Vec<Arc<T>>, Vec<DecodeError>) {
        let snapshot = self.informer.snapshot();
        let mut readable = Vec::new();
        let mut unreadable = Vec::new();
        for object in snapshot.select(self.namespace.as_deref(), &self.selector) {
            match object {
                Ok(object) => readable.push(object),
                Err(error) => unreadable.push(error),
            }
        }
        (readable, unreadable)
    }

    /// All objects that match and for which `predicate` is true. Decodes every matching object: an index is cheaper.
    ///
    /// # Errors
    ///
    /// As [`Lister::list`].
    pub fn filter(&self, mut predicate: impl FnMut(&T) -> bool) -> Result<Vec<Arc<T>>, Error> {
        let mut list = self.list()?;
        list.retain(|object| predicate(object));
        Ok(list)
    }

    /// The cache as it is now: for pages, and for several looks at one state.
    pub fn snapshot(&self) -> Snapshot<T> {
        self.informer.snapshot()
    }
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self {
            informer: self.informer.clone(),
            namespace: self.namespace.clone(),
            selector: self.selector.clone(),
        }
    }
}
