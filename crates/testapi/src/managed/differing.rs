//! Reduces two objects to the parts that differ, so that the cost of comparing them depends on the change and not on
//! the object.

use serde_json::{Map, Value};

/// The members of both that differ, except the one at the path `skipped`. Lists are not cut.
pub(super) fn differing(before: &Value, after: &Value, skipped: &[&str]) -> (Value, Value) {
    let (next, skipped) = skipped.split_first().map_or(("", skipped), |(next, rest)| (*next, rest));
    let is_skipped = |name: &str| skipped.is_empty() && name == next;
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut cut = (Map::new(), Map::new());
            for (name, before) in before.iter().filter(|(name, _)| !is_skipped(name)) {
                match after.get(name) {
                    Some(after) if before == after => {}
                    Some(after) => {
                        let (before, after) =
                            differing(before, after, if name == next { skipped } else { &[] });
                        cut.0.insert(name.clone(), before);
                        cut.1.insert(name.clone(), after);
                    }
                    None => _ = cut.0.insert(name.clone(), before.clone()),
                }
            }
            for (name, after) in
                after.iter().filter(|(name, _)| !before.contains_key(*name) && !is_skipped(name))
            {
                cut.1.insert(name.clone(), after.clone());
            }
            (Value::Object(cut.0), Value::Object(cut.1))
        }
        _ => (before.clone(), after.clone()),
    }
}
