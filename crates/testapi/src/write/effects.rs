//! The effect of a write on the controllers.

use serde_json::Value;

use crate::core::group_resource;
use crate::object::Meta;
use crate::turn::{Effect, Target, Turn};

impl Turn<'_> {
    /// An object is new or has changed.
    pub(super) fn after_change(&self, target: &Target, before: Option<&Value>, object: &Value) {
        let starts_ending =
            Meta(object).is_being_deleted() && !before.is_some_and(|then| Meta(then).is_being_deleted());
        if target.is("", "namespaces") && starts_ending {
            self.add_effect(Effect::NamespaceEnds(Meta(object).name().into()));
        }
        if target.is("apiextensions.k8s.io", "customresourcedefinitions") {
            self.add_effect(Effect::DefinitionChanged(target.clone(), object.clone()));
        }
        if starts_ending && self.core.options.garbage_collection {
            self.add_effect(Effect::DeletionBegan(target.clone(), object.clone()));
        }
    }

    /// An object was removed.
    pub(super) fn after_removal(&self, target: &Target, object: &Value) {
        if target.is("apiextensions.k8s.io", "customresourcedefinitions") {
            self.add_effect(Effect::DefinitionRemoved(object.clone()));
        }
        if self.core.options.garbage_collection {
            self.add_effect(Effect::Removed(object.clone()));
        }
        if target.definition.is_some() {
            self.add_effect(Effect::CustomObjectRemoved(group_resource(&target.resource)));
        }
        if !target.namespace.is_empty() {
            self.add_effect(Effect::NamespaceShrank(target.namespace.clone()));
        }
    }
}
