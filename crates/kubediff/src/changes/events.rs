//! The texts of Events: they report what happens to other objects.

use serde_json::Value;

/// Reason, message and object of an Event (of either group), with labels; `None` for another kind of object.
pub(crate) fn event(object: &Value) -> Option<[(&'static str, String); 3]> {
    if object.get("kind").is_none_or(|kind| kind != "Event") {
        return None;
    }
    let text = |names: &[&str]| {
        let value = names.iter().find_map(|name| object.get(name)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    let about = object.get("involvedObject").or(object.get("regarding"));
    let part = |name: &str| about.and_then(|about| about.get(name)?.as_str()).unwrap_or_default();
    let about = match (part("kind"), part("name")) {
        ("", name) => name.to_owned(),
        (kind, name) => format!("{kind}/{name}"),
    };
    Some([("reason", text(&["reason"])), ("object", about), ("message", text(&["message", "note"]))])
}
