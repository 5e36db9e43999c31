//! The sort key of objects in a collection.

use std::borrow::Borrow;

use serve::Object;

/// Namespace and name as one string, `shop/cart`, compared by bytes as the keys in etcd are: so the objects of
/// `shop-2` come before those of `shop`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(Box<str>);

impl Key {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() { Self(name.into()) } else { Self(format!("{namespace}/{name}").into()) }
    }

    pub(super) fn of(object: &Object) -> Self {
        Self::new(&object.namespace, &object.name)
    }

    /// The range of a namespace's keys: the first is included, the second is excluded.
    pub(super) fn of_namespace(namespace: &str) -> (Self, Self) {
        (Self(format!("{namespace}/").into()), Self(format!("{namespace}0").into()))
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}
