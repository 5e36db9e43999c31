//! What follows from a write, in the same turn: what the controllers of a cluster do a moment later.

use serde_json::Value;

use super::{Meta, Target, Turn};
use crate::core::group_resource;
use crate::{definitions, garbage, namespaces};

impl Turn<'_> {
    /// An object is new or has changed.
    pub(super) fn after_change(&self, target: &Target, before: Option<&Value>, object: &Value) {
        let starts_ending =
            Meta(object).is_being_deleted() && !before.is_some_and(|then| Meta(then).is_being_deleted());
        if target.is("", "namespaces") && starts_ending {
            namespaces::empty(self, Meta(object).name());
        }
        if target.is("apiextensions.k8s.io", "customresourcedefinitions") {
            definitions::changed(self, target, object);
        }
        if starts_ending && self.core.options.garbage_collection {
            garbage::deletion_began(self, target, object);
        }
    }

    /// An object is gone.
    pub(super) fn after_removal(&self, target: &Target, object: &Value) {
        if target.is("apiextensions.k8s.io", "customresourcedefinitions") {
            definitions::removed(self, object);
        }
        if self.core.options.garbage_collection {
            garbage::removed(self, object);
        }
        if target.definition.is_some() {
            definitions::finish(self, &group_resource(&target.resource));
        }
        if !target.namespace.is_empty() {
            namespaces::finish(self, &target.namespace);
        }
    }
}
