//! Finds the values of a pattern in a value.

use serde_json::Value;

use super::{Segment, Step};
use crate::model::document;

/// How steps lead into an element.
pub(crate) type IntoElement = for<'a> fn(&'a [Step], Segment, Option<&str>, &Value) -> Option<&'a [Step]>;

/// Visits what `steps` lead to in `value`, which is in `field`.
pub(crate) fn at<'v>(
    value: &'v Value,
    field: Option<&str>,
    steps: &[Step],
    into: IntoElement,
    visit: &mut dyn FnMut(&'v Value),
) {
    let Some((step, rest)) = steps.split_first() else { return visit(value) };
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter().filter(|(name, _)| step.matches(&Segment::Field((*name).clone())))
            {
                at(value, Some(name), rest, into, visit);
            }
        }
        Value::Array(list) => {
            for (place, element) in list.iter().enumerate() {
                if let Some(rest) = into(steps, Segment::Index(place), field, element) {
                    at(element, field, rest, into, visit);
                }
            }
        }
        _ => {}
    }
}

/// The values that `steps` lead to in `value`, also in documents.
pub(crate) fn reached(value: &Value, field: Option<&str>, steps: &[Step]) -> Vec<Value> {
    let mut parts = steps.splitn(2, |step| *step == Step::Document);
    let (outer, inner) = (parts.next().unwrap_or_default(), parts.next());
    let mut reached = Vec::new();
    at(value, field, outer, Step::into_asked_element, &mut |value| match (inner, value.as_str()) {
        (None, _) => reached.push(value.clone()),
        (Some(steps), Some(text)) => {
            for document in document::all(text).unwrap_or_default() {
                at(&document, None, steps, Step::into_asked_element, &mut |value| {
                    reached.push(value.clone())
                });
            }
        }
        (Some(_), None) => {}
    });
    reached
}
