//! Finds the values of a pattern in a value.

use serde_json::Value;

use super::{Segment, Step};

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

/// The values that `steps` lead to in `value`. A step into a document is taken for the text that may hold it.
pub(crate) fn reached<'v>(value: &'v Value, field: Option<&str>, steps: &[Step]) -> Vec<&'v Value> {
    let text = steps.iter().position(|step| *step == Step::Document);
    let steps = text.and_then(|end| steps.get(..end)).unwrap_or(steps);
    let mut reached = Vec::new();
    at(value, field, steps, Step::into_asked_element, &mut |value| reached.push(value));
    reached
}
