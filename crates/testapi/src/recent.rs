//! The objects that were read or written last, as trees: writes, controllers and observers read the same few again and again.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use serve::{Object, Resource};

use crate::object::typed;

/// How many are kept, and how long their texts are at most: a tree takes several times the room.
const KEPT: usize = 32;
const LONGEST: usize = 16 << 10;

#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<(Arc<Object>, Arc<Value>)>>);

impl Recent {
    /// An object's JSON with its kind and version.
    pub(crate) fn typed(&self, resource: &Resource, object: &Arc<Object>) -> Arc<Value> {
        let is_it = |(of, tree): &&(Arc<Object>, Arc<Value>)| {
            Arc::ptr_eq(of, object) && tree["apiVersion"] == resource.api_version()
        };
        if let Some((_, tree)) = self.0.lock().iter().find(is_it) {
            return Arc::clone(tree);
        }
        self.keep(object, typed(resource, object))
    }

    /// Keeps the tree that an object was written from, or that it was read as.
    pub(crate) fn keep(&self, object: &Arc<Object>, tree: Value) -> Arc<Value> {
        let tree = Arc::new(tree);
        // A fraction is not always read as it was written.
        if object.body.len() <= LONGEST && !has_fractions(&tree) {
            let mut kept = self.0.lock();
            kept.truncate(KEPT - 1);
            kept.push_front((Arc::clone(object), Arc::clone(&tree)));
        }
        tree
    }
}

fn has_fractions(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fractions),
        Value::Object(members) => members.values().any(has_fractions),
        _ => false,
    }
}
