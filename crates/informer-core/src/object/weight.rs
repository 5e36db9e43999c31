//! Estimates the heap bytes of a decoded value. Each value is weighed while it is decoded: protobuf by its deserializer, JSON
//! by this module.

mod counting;

use std::any::Any;
use std::cell::Cell;

use informer_protobuf::weight::of_map;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::memory::allocated;

/// The heap bytes of a value whose type can be walked through.
pub(super) fn exact<T: 'static>(value: &T) -> Option<usize> {
    (value as &dyn Any).downcast_ref().map(of_value)
}

/// Decodes JSON. Also returns about how many bytes of the heap the value refers to.
pub(super) fn from_json<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<(T, usize)> {
    let heap = Cell::new(0);
    let mut from = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(counting::Counting::new(&mut from, &heap))?;
    from.end()?;
    Ok((value, heap.get()))
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => of_text(text),
        Value::Array(values) => {
            allocated(values.capacity() * size_of::<Value>()) + values.iter().map(of_value).sum::<usize>()
        }
        Value::Object(members) => {
            let own = of_map(members.len(), size_of::<String>() + size_of::<Value>());
            own + members.iter().map(|(name, value)| of_text(name) + of_value(value)).sum::<usize>()
        }
    }
}

fn of_text(text: &str) -> usize {
    if text.is_empty() { 0 } else { allocated(text.len()) }
}
