//! Marks of different keys: their hashes say nothing about each other, the lengths beside them do.

use serde_json::Value;

use super::marker::{MARK, length, places};
use crate::model::diff::Edit;

/// Takes the hashes out of the marks in a state: `<hmac:? 18 bytes>`. Returns whether there was any.
pub(crate) fn take_hashes(state: &mut Value) -> bool {
    match state {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => without_hashes(text).map(|without| *text = without).is_some(),
        Value::Array(list) => list.iter_mut().fold(false, |any, part| take_hashes(part) | any),
        Value::Object(map) => {
            let mut any = map.values_mut().fold(false, |any, value| take_hashes(value) | any);
            let renamed: Vec<_> =
                map.keys().filter_map(|name| Some((name.clone(), without_hashes(name)?))).collect();
            for (name, without) in renamed {
                any = true;
                // Two names of the same length cannot be told apart, and both are there.
                if !map.contains_key(&without)
                    && let Some(value) = map.remove(&name)
                {
                    map.insert(without, value);
                }
            }
            any
        }
    }
}

fn without_hashes(text: &str) -> Option<String> {
    let (mut without, mut rest) = (String::new(), 0);
    for place in places(text) {
        let inside = text.get(place.start + 1 + MARK.len()..place.end - 1)?;
        let (mark, form) = inside.split_once(", ").map_or((inside, None), |(mark, form)| (mark, Some(form)));
        without.push_str(text.get(rest..place.start)?);
        without.push_str(&format!("<{MARK}? {}", mark.split_once(' ')?.1));
        without.extend(form.and_then(|form| form.rsplit_once(' ')).map(|(form, _)| format!(", {form} ?")));
        without.push('>');
        rest = place.end;
    }
    (rest > 0).then(|| without + text.get(rest..).unwrap_or_default())
}

/// Whether a difference may be none: a value is hidden on one side alone, and the other side may be that value.
pub(crate) fn may_be_none(edit: &Edit) -> bool {
    let Edit::Changed { old, new } = edit else { return false };
    let may_be = |marked: &Value, other: &Value| match (marked, other) {
        (Value::String(marked), Value::String(other)) => may_be(marked, other),
        // Of a map that is hidden as a whole, it is the length of some text.
        (Value::String(marked), _) => length(marked).is_some(),
        _ => false,
    };
    may_be(old, new) || may_be(new, old)
}

/// Whether a text with marks may stand for another one, which has none.
fn may_be(marked: &str, other: &str) -> bool {
    let marks = places(marked);
    if marks.is_empty() || !places(other).is_empty() {
        return false;
    }
    let (mut at, mut rest) = (0, other);
    for mark in marks {
        let before = marked.get(at..mark.start).unwrap_or_default();
        let Some(hidden) = rest.strip_prefix(before) else { return false };
        // How long a value is in another form, nobody knows.
        let Some(bytes) = marked.get(mark.clone()).and_then(length) else { return true };
        let Some(after) = hidden.get(bytes..) else { return false };
        (at, rest) = (mark.end, after);
    }
    marked.get(at..) == Some(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_lose_their_hashes_and_nothing_else() {
        let mut state = json!({
            "a": "x <hmac:1f3a9c2055d1e0b7 18 bytes> y <hmac:1f3a9c2055d1e0b7 18 bytes, base64 5bd20c11e7a84f06>",
            "<hmac:1f3a9c2055d1e0b7 3 bytes>": ["<hmac:short 3 bytes>", 1],
        });
        assert!(take_hashes(&mut state));
        let expected = json!({
            "a": "x <hmac:? 18 bytes> y <hmac:? 18 bytes, base64 ?>",
            "<hmac:? 3 bytes>": ["<hmac:short 3 bytes>", 1],
        });
        assert_eq!(state, expected);
        assert!(!take_hashes(&mut json!({"a": ["plain", 1, null]})));
    }

    #[test]
    fn a_hidden_value_may_be_one_of_its_length() {
        let mark = "<hmac:? 7 bytes>";
        let in_url = &*format!("postgres://u:{mark}@db");
        for (marked, other, expected) in [
            (mark, "hunter2", true),
            (mark, "hunter22", false),
            (mark, "h", false),
            (mark, "", false),
            (in_url, "postgres://u:hunter2@db", true),
            (in_url, "postgres://v:hunter2@db", false),
            (in_url, "postgres://u:hunter2@other", false),
            ("<hmac:? 7 bytes, base64 ?>", "aHVudGVyMg==", true),
            ("hunter2", "hunter2", false),
            (mark, "<hmac:? 7 bytes>", false),
        ] {
            assert_eq!(may_be(marked, other), expected, "{marked} {other}");
        }
    }
}
