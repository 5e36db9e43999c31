//! Writes: what they are about, and the turn in which they are done.

mod create;
mod delete;
mod duplicates;
mod effects;
mod fields;
mod input;
mod metadata;
mod names;
mod options;
mod patch;
mod request;
mod scale;
mod update;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use serve::{Object, Resource, Status};

use crate::clock;
use crate::core::{Core, group_resource};
use crate::definitions::Definition;
use crate::garbage;
use crate::schema::TypeRef;
use crate::store::{Objects, Order, Writer, decode, encode};

pub(crate) use delete::{DeleteOptions, Deleted, FOREGROUND, ORPHAN, Propagation};
pub(crate) use fields::schemas;
pub(crate) use metadata::{Meta, metadata_mut};
pub(crate) use options::WriteOptions;
pub use patch::Patch;
pub(crate) use request::handle;
pub(crate) use scale::{ScalePaths, set_pointer};

/// What a write is about: a collection, or an object that may not exist.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) definition: Option<Arc<Definition>>,
    pub(crate) objects: Objects,
    /// Empty for a resource of the cluster, and for a collection in all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// `status`, or nothing: other subresources are writes of their own.
    pub(crate) status: bool,
}

impl Target {
    /// `None` if no objects of the resource are kept.
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
        self.resource.subresources.iter().any(|subresource| &*subresource.name == "status")
    }

    /// The type of its objects, as far as it is known.
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
    /// What the client is to be told besides the answer.
    pub(crate) warnings: RefCell<Vec<String>>,
    pub(crate) garbage: RefCell<garbage::Work>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        // The time is taken in the turn, so that it never goes back from one revision to the next.
        let writer = core.store.writer();
        Self { core, writer, time: core.now(), warnings: RefCell::default(), garbage: RefCell::default() }
    }

    pub(crate) fn now(&self) -> String {
        clock::rfc3339(self.time)
    }

    /// Keeps a version of an object.
    fn put(&self, target: &Target, object: &mut Value) -> Arc<Object> {
        let object = Arc::new(encode(object, self.writer.next_revision(), target.order()));
        self.writer.put(&target.objects, Arc::clone(&object));
        object
    }

    /// Keeps a version of an object that the server itself has made, past the rules of writes.
    pub(crate) fn put_whole(&self, target: &Target, mut object: Value, options: &WriteOptions) {
        if !options.dry_run {
            self.put(target, &mut object);
        }
    }

    /// Removes an object whose last state is given.
    fn remove(&self, target: &Target, last: &mut Value) -> Arc<Object> {
        let last = Arc::new(encode(last, self.writer.next_revision(), target.order()));
        self.writer.remove(&target.objects, Arc::clone(&last));
        last
    }
}

/// An object's JSON with its kind and version.
pub(crate) fn typed(resource: &Resource, object: &Object) -> Value {
    let mut value = decode(object);
    set_type(resource, &mut value);
    value
}

pub(crate) fn set_type(resource: &Resource, object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("kind".into(), (&*resource.kind).into());
        members.insert("apiVersion".into(), resource.api_version().into());
    }
}
