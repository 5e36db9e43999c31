//! A stored state beside the object as it is. A value that was hidden when the state was stored may be shown now, and that is no change.

use std::borrow::Cow;

use serde_json::Value;

use super::marker::Marker;

/// Gives the stored state the texts of the object in places of marks that stand for them.
pub(super) fn align(marker: Marker<'_>, stored: &mut Value, now: &Value) {
    match (stored, now) {
        (Value::Object(stored), Value::Object(now)) => {
            for (name, value) in stored.iter_mut() {
                now.get(name).into_iter().for_each(|now| align(marker, value, now));
            }
        }
        (Value::Array(stored), Value::Array(now)) if stored.len() == now.len() => {
            stored.iter_mut().zip(now).for_each(|(value, now)| align(marker, value, now));
        }
        (stored @ Value::String(_), now)
            if stored.as_str().is_some_and(|text| stands_for(marker, text, now)) =>
        {
            *stored = now.clone();
        }
        _ => {}
    }
}

/// Whether a text with one mark stands for a value.
fn stands_for(marker: Marker<'_>, text: &str, value: &Value) -> bool {
    let Some((before, rest)) = text.split_once("<hmac:") else { return false };
    let Some((mark, after)) = rest.split_once('>') else { return false };
    let value = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
    let hidden = value.strip_prefix(before).and_then(|value| value.strip_suffix(after));
    hidden.is_some_and(|hidden| marker.is_of(mark, hidden))
}
