//! Compares the decoded trees of two objects, whatever their encodings.

use serde_json::{Map, Value};

/// Whether two values are equal, with nulls and empty values ignored: servers of two releases, and two encodings, do not
/// agree on whether to write those.
pub(super) fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => has_all(ours, theirs) && has_all(theirs, ours),
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours, theirs))
        }
        _ => ours == theirs || is_nothing(ours) && is_nothing(theirs),
    }
}

fn has_all(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> bool {
    theirs.iter().all(|(name, theirs)| match ours.get(name) {
        Some(ours) => is_same(ours, theirs),
        None => is_nothing(theirs),
    })
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn l14_nulls_and_empties_are_no_difference() {
        let bare = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}});
        let full = json!({
            "metadata": {"name": "a", "creationTimestamp": null, "labels": {}},
            "spec": {"ports": [{"port": 1, "name": ""}], "rules": []},
            "status": {"loadBalancer": {}},
        });
        assert!(is_same(&bare, &full) && is_same(&full, &bare));
        assert!(is_same(&json!({"a": null}), &json!({"a": {"b": []}})));
    }

    #[test]
    fn l14_anything_else_is_a_difference() {
        let pairs = [
            (json!({"a": 1}), json!({"a": 2})),
            (json!({"a": 1}), json!({})),
            (json!({"a": false}), json!({})),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]})),
            (json!({"a": [""]}), json!({"a": []})),
            (json!({"metadata": {"managedFields": [{"manager": "a"}]}}), json!({"metadata": {}})),
        ];
        for (ours, theirs) in pairs {
            assert!(!is_same(&ours, &theirs) && !is_same(&theirs, &ours), "{ours} {theirs}");
        }
    }
}
