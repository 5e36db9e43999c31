//! Answers as long as an assistant reads them.

use serde::Serialize;
use serde_json::Value;

use crate::show::render::json;

/// The bytes of a text, and the entries of a list or an object, that are left; fewer and fewer.
const LEVELS: [(usize, usize); 6] = [(4_096, 512), (1_024, 128), (256, 32), (128, 16), (64, 8), (32, 4)];

/// The bytes of this as JSON.
pub(super) fn size(value: &impl Serialize) -> usize {
    json(value).map_or(usize::MAX, |json| json.len())
}

/// Cuts texts and lists until the value has room; whether it had to.
pub(super) fn fit(value: &mut Value, room: usize) -> bool {
    if size(value) <= room {
        return false;
    }
    for (bytes, entries) in LEVELS {
        shorten(value, bytes, entries);
        if size(value) <= room {
            return true;
        }
    }
    *value = Value::String("… (left out: too long)".to_owned());
    true
}

/// Keeps as many entries as there is room for, at least one of those that there are; whether the one had to be cut.
pub(super) fn keep(entries: &mut Vec<Value>, room: usize) -> bool {
    let mut left = room;
    let fitting = entries.iter().take_while(|entry| {
        let size = size(entry) + 1;
        let has_room = size <= left;
        left = left.saturating_sub(size);
        has_room
    });
    let fitting = fitting.count();
    entries.truncate(fitting.max(1));
    fitting == 0 && entries.first_mut().is_some_and(|entry| fit(entry, room))
}

fn shorten(value: &mut Value, bytes: usize, entries: usize) {
    match value {
        Value::String(text) if text.len() > bytes => {
            let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            let left = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("… ({left} bytes left out)"));
        }
        Value::Array(list) => {
            let left = list.len().saturating_sub(entries);
            list.truncate(entries);
            list.iter_mut().for_each(|entry| shorten(entry, bytes, entries));
            if left > 0 {
                list.push(format!("… ({left} entries left out)").into());
            }
        }
        Value::Object(map) => {
            let left = map.len().saturating_sub(entries);
            let beyond: Vec<String> = map.keys().skip(entries).cloned().collect();
            beyond.iter().for_each(|name| drop(map.remove(name)));
            map.values_mut().for_each(|entry| shorten(entry, bytes, entries));
            if left > 0 {
                map.insert("…".to_owned(), format!("{left} entries left out").into());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_is_too_long_gets_room_and_says_so() {
        let mut short = json!({"a": "b"});
        assert!(!fit(&mut short, 100));
        assert_eq!(short, json!({"a": "b"}));
        let long = "ä".repeat(10_000);
        let wide: serde_json::Map<String, Value> =
            (0..5_000).map(|n| (format!("k{n:04}"), json!(n))).collect();
        let mut nested = json!(1);
        for _ in 0..12 {
            nested = json!([nested, nested.clone(), nested]);
            nested.as_array_mut().unwrap().truncate(2);
        }
        for value in [json!(long), json!([long, long]), json!({"data": {"x": long}}), wide.into(), nested] {
            for room in [200, 2_000, 8_000] {
                let mut cut = value.clone();
                assert!(fit(&mut cut, room));
                assert!(size(&cut) <= room, "{room}: {}", size(&cut));
                assert!(cut.to_string().contains("left out"), "{cut}");
            }
        }
    }

    #[test]
    fn entries_are_kept_from_the_first_one_on() {
        let entries: Vec<Value> = (0..10).map(|n| json!({"n": n, "text": "x".repeat(80)})).collect();
        let mut kept = entries.clone();
        assert!(!keep(&mut kept, 350));
        assert_eq!(kept, entries[..3]);
        assert!(keep(&mut kept, 60));
        assert!(kept.len() == 1 && size(&kept[0]) <= 60, "{kept:?}");
        assert!(!keep(&mut Vec::new(), 0));
    }
}
