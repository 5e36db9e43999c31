//! A turn to write, and the target of a write.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use serve::{Object, Resource, Status};

use crate::clock;
use crate::core::{Core, group_resource};
use crate::definitions::Definition;
use crate::schema::TypeRef;
use crate::store::{GroupResource, Objects, Order, Writer, encode};

/// The target of a write: a collection, or an object that may not exist.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) definition: Option<Arc<Definition>>,
    pub(crate) objects: Objects,
    /// Empty for a resource of the cluster, and for a collection in all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Whether the write is to the subresource `status`.
    pub(crate) status: bool,
}

impl Target {
    /// `None` if objects of the resource are not stored.
    pub(crate) fn new(core: &Core, resource: &Arc<Resource>, namespace: &str, name: &str) -> Option<Self> {
        let id = group_resource(resource);
        Some(Self {
            definition: core.definition(&id),
            objects: core.store.objects(&id)?,
            resource: Arc::clone(resource),
            namespace: namespace.into(),
            name: name.into(),
            status: false,
        })
    }

    /// Whether it is this built-in resource.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        *self.resource.group == *group && *self.resource.plural == *plural
    }

    pub(crate) fn order(&self) -> Order {
        if self.definition.is_some() { Order::Sorted } else { Order::Declared }
    }

    /// Whether status is written by a subresource of its own.
    pub(crate) fn has_status(&self) -> bool {
        self.has_subresource("status")
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.resource.subresources.iter().any(|subresource| *subresource.name == *name)
    }

    /// The type of its objects, if it is known.
    pub(crate) fn schema(&self) -> Option<TypeRef> {
        match &self.definition {
            Some(definition) => definition.schema(&self.resource.version),
            None => crate::schema::builtin(&self.resource.group, &self.resource.version, &self.resource.kind),
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<Object>> {
        self.objects.current(&self.namespace, &self.name)
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.resource.group, &self.resource.plural, &self.name)
    }
}

/// A turn to write: everything in it happens before anybody else writes.
pub(crate) struct Turn<'a> {
    pub(crate) core: &'a Core,
    pub(crate) writer: Writer<'a>,
    pub(crate) time: SystemTime,
    /// Warnings that the client gets beside the response.
    pub(crate) warnings: RefCell<Vec<String>>,
    /// The work of the controllers before the turn ends.
    effects: RefCell<VecDeque<Effect>>,
}

/// The effect of a write on the controllers.
pub(crate) enum Effect {
    /// A namespace of this name is being deleted.
    NamespaceEnds(String),
    /// An object of this namespace was removed.
    NamespaceShrank(String),
    /// A CustomResourceDefinition is new or has changed.
    DefinitionChanged(Target, Value),
    DefinitionRemoved(Value),
    /// An object of this custom resource was removed.
    CustomObjectRemoved(GroupResource),
    /// An object with finalizers is being deleted; only with garbage collection.
    DeletionBegan(Target, Value),
    /// An object was removed; only with garbage collection.
    Removed(Value),
}

impl<'a> Turn<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        // The time is taken in the turn, so that it never goes back from one revision to the next.
        let writer = core.store.writer();
        Self { core, writer, time: core.now(), warnings: RefCell::default(), effects: RefCell::default() }
    }

    pub(crate) fn now(&self) -> String {
        clock::rfc3339(self.time)
    }

    pub(crate) fn add_effect(&self, effect: Effect) {
        self.effects.borrow_mut().push_back(effect);
    }

    pub(crate) fn next_effect(&self) -> Option<Effect> {
        self.effects.borrow_mut().pop_front()
    }

    /// Stores a version of an object.
    pub(crate) fn put(&self, target: &Target, object: &mut Value) -> Arc<Object> {
        let object = Arc::new(encode(object, self.writer.next_revision(), target.order()));
        self.writer.put(&target.objects, Arc::clone(&object));
        object
    }

    /// Removes an object whose last state is given.
    pub(crate) fn remove(&self, target: &Target, last: &mut Value) -> Arc<Object> {
        let last = Arc::new(encode(last, self.writer.next_revision(), target.order()));
        self.writer.remove(&target.objects, Arc::clone(&last));
        last
    }
}
