//! Removes from a value what a pattern names.

use serde_json::Value;

use crate::model::path::{Segment, Step};

/// Takes what `steps` lead to out of `value`, which `field` holds. Returns how many values that were.
pub(super) fn prune(value: &mut Value, field: Option<&str>, steps: &[Step]) -> u32 {
    let Some((step, rest)) = steps.split_first() else { return 0 };
    let mut taken = 0;
    match value {
        Value::Object(map) => map.retain(|name, value| {
            if !step.matches(&Segment::Field(name.clone())) {
                return true;
            }
            if rest.is_empty() {
                taken += 1;
                return false;
            }
            let inside = prune(value, Some(name), rest);
            taken += inside;
            inside == 0 || !is_empty(value)
        }),
        Value::Array(list) => {
            let mut at = 0;
            list.retain_mut(|element| {
                let place = Segment::Index(at);
                at += 1;
                let inside = match Step::into_element(steps, place, field, element) {
                    None => return true,
                    Some([]) => {
                        taken += 1;
                        return false;
                    }
                    Some(rest) => prune(element, field, rest),
                };
                taken += inside;
                inside == 0 || !is_empty(element)
            });
        }
        _ => {}
    }
    taken
}

/// Whether nothing is left in `value`.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
