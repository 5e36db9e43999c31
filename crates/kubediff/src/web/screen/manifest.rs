//! An object as YAML, line by line, each with the author of its field.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff_history::{Field, FieldBlame};
use serde_json::{Value, json};

use crate::changes::facts::duration;
use crate::model::managers;
use crate::text::clock::date_and_time;
use crate::web::address;
use crate::web::row::{clipped, text};

/// Lines of a manifest that are shown.
const LINES: usize = 5_000;

/// A line of YAML, and what it shows (RFC 6901).
#[derive(Debug, PartialEq, Eq)]
struct Line {
    text: String,
    pointer: String,
}

/// A manifest without authors.
pub(super) fn plain(title: &str, object: &Value) -> Value {
    let lines = lines(object);
    let more = lines.len().saturating_sub(LINES);
    let shown = lines
        .into_iter()
        .take(LINES)
        .map(|line| json!({ "text": clipped(line.text), "blame": null, "first": false }));
    json!({ "title": title, "lines": shown.collect::<Vec<_>>(), "more": more })
}

/// The authors of the fields of a manifest.
pub(super) struct Gutter<'a> {
    pub(super) fields: &'a [Field],
    pub(super) blame: &'a [FieldBlame],
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
}

/// A manifest with the author of each field. With `only`, of some fields alone.
pub(super) fn blamed(
    title: &str,
    object: &Value,
    gutter: &Gutter<'_>,
    only: Option<&dyn Fn(&str) -> bool>,
) -> Value {
    let by_path: HashMap<&str, &FieldBlame> =
        gutter.blame.iter().filter(|it| it.value.is_some()).map(|it| (it.path.as_str(), it)).collect();
    // All fields of a document in a string are at its place: the latest of them.
    let mut by_pointer: HashMap<&str, &FieldBlame> = HashMap::new();
    for field in gutter.fields {
        let Some(blame) = by_path.get(field.path.as_str()) else { continue };
        if only.is_some_and(|only| !only(&field.path)) {
            continue;
        }
        let known = by_pointer.entry(&field.pointer).or_insert(blame);
        if known.number < blame.number {
            *known = blame;
        }
    }
    let lines = lines(object);
    // The value before may be long: its words are made once for all lines of a field.
    let (mut shown, mut last, mut mark): (_, Option<&FieldBlame>, _) = (Vec::new(), None, Value::Null);
    let mut count = 0;
    for line in &lines {
        let blame = of(&by_pointer, &line.pointer);
        if only.is_some() && blame.is_none() {
            continue;
        }
        count += 1;
        if shown.len() < LINES {
            let is_same = match (blame, last) {
                (Some(now), Some(last)) => std::ptr::eq(now, last),
                (now, last) => now.is_none() && last.is_none(),
            };
            let kept = |it: &FieldBlame| (it.number, it.exact);
            let is_first = blame.is_some_and(|now| last.is_none_or(|last| kept(last) != kept(now)));
            if !is_same {
                mark = blame.map_or(Value::Null, |it| gutter.mark(it));
            }
            last = blame;
            shown.push(json!({ "text": clipped(line.text.clone()), "first": is_first, "blame": mark }));
        }
    }
    json!({ "title": title, "more": count - shown.len(), "lines": shown })
}

/// The field that a line is of, or is in.
fn of<'a>(by_pointer: &HashMap<&str, &'a FieldBlame>, pointer: &str) -> Option<&'a FieldBlame> {
    let mut pointer = pointer;
    loop {
        if let Some(blame) = by_pointer.get(pointer) {
            return Some(blame);
        }
        pointer = &pointer[..pointer.rfind('/')?];
    }
}

impl Gutter<'_> {
    fn mark(&self, blame: &FieldBlame) -> Value {
        let by = names(blame);
        let exact = if blame.exact { "" } else { " or before" };
        let before =
            blame.before.as_ref().map(|before| format!("; before: {}", short(before))).unwrap_or_default();
        let unknown = if by.is_empty() { "unknown" } else { &by };
        json!({
            "age": age(blame.since, self.now), "shade": shade(blame.since, self.now), "by": by, "number": blame.number,
            "href": address::change(blame.number), "exact": blame.exact,
            "title": format!("since {}{exact} by {unknown} (#{}){before}", date_and_time(blame.since, self.zone), blame.number),
        })
    }

    /// The fields that were removed.
    pub(super) fn removed(&self) -> Vec<Value> {
        let gone = self.blame.iter().filter(|it| it.value.is_none());
        let row = |blame: &FieldBlame| {
            json!({
                "path": blame.path, "value_before": blame.before.as_ref().map(short), "age": age(blame.since, self.now),
                "by": names(blame), "number": blame.number, "href": address::change(blame.number),
            })
        };
        gone.map(row).collect()
    }
}

fn names(blame: &FieldBlame) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in blame.managers.iter().map(managers::name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

fn short(value: &Value) -> String {
    crate::text::terminal::cut(&text(value), 200)
}

/// `7m`.
fn age(since: Timestamp, now: Timestamp) -> String {
    duration(now.as_second().saturating_sub(since.as_second()).max(0))
}

fn shade(since: Timestamp, now: Timestamp) -> u8 {
    match now.as_second().saturating_sub(since.as_second()) / 3_600 {
        ..1 => 0,
        1..24 => 1,
        24..168 => 2,
        168..720 => 3,
        _ => 4,
    }
}

/// The object as kubectl writes YAML.
fn lines(object: &Value) -> Vec<Line> {
    let mut out = Vec::new();
    match object {
        Value::Object(map) if !map.is_empty() => inside(object, 0, "", &mut out),
        Value::Array(list) if !list.is_empty() => inside(object, 0, "", &mut out),
        value => out.push(Line { text: scalar(value), pointer: String::new() }),
    }
    out
}

/// The members of a map or list that has some.
fn inside(value: &Value, indent: usize, pointer: &str, out: &mut Vec<Line>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let token = name.replace('~', "~0").replace('/', "~1");
                let key = scalar(&Value::String(name.clone()));
                member(&format!("{key}:"), value, indent, &format!("{pointer}/{token}"), out);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                element(value, indent, &format!("{pointer}/{at}"), out);
            }
        }
        _ => {}
    }
}

fn member(head: &str, value: &Value, indent: usize, pointer: &str, out: &mut Vec<Line>) {
    let line =
        |text: String| Line { text: format!("{}{text}", " ".repeat(indent)), pointer: pointer.to_owned() };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push(line(head.to_owned()));
            inside(value, indent + 2, pointer, out);
        }
        // As kubectl does: no deeper than the key.
        Value::Array(list) if !list.is_empty() => {
            out.push(line(head.to_owned()));
            inside(value, indent, pointer, out);
        }
        Value::String(text) if is_block(text) => {
            let keep = if text.ends_with("\n\n") || text == "\n" {
                "+"
            } else if text.ends_with('\n') {
                ""
            } else {
                "-"
            };
            out.push(line(format!("{head} |{keep}")));
            for inner in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                let text = if inner.is_empty() { String::new() } else { format!("  {inner}") };
                out.push(line(text));
            }
        }
        value => out.push(line(format!("{head} {}", scalar(value)))),
    }
}

/// An element of a list. The first line of what is in it stands behind the hyphen.
fn element(value: &Value, indent: usize, pointer: &str, out: &mut Vec<Line>) {
    let start = out.len();
    match value {
        Value::Object(map) if !map.is_empty() => inside(value, indent + 2, pointer, out),
        Value::Array(list) if !list.is_empty() => inside(value, indent + 2, pointer, out),
        value => return member("-", value, indent, pointer, out),
    }
    if let Some(first) = out.get_mut(start) {
        first.text = format!("{}- {}", " ".repeat(indent), first.text.trim_start());
    }
}

/// Whether a text is written line by line.
fn is_block(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || !crate::text::terminal::is_unsafe(c);
    text.contains('\n') && text.chars().all(is_plain) && !text.starts_with([' ', '\n'])
}

/// A value on one line.
fn scalar(value: &Value) -> String {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    match value {
        Value::Object(map) if map.is_empty() => return "{}".to_owned(),
        Value::Array(list) if list.is_empty() => return "[]".to_owned(),
        // JSON is YAML, too.
        Value::String(text) if text.contains('\n') => return value.to_string(),
        _ => {}
    }
    match serde_saphyr::to_string_with_options(value, options) {
        Ok(text) if !text.trim_end().contains('\n') => text.trim_end().to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_yaml_and_know_their_fields() {
        let object = json!({
            "apiVersion": "v1", "data": {"app.yaml": "log:\n  level: info\n", "a/b": "true", "empty": "", "end": "x\ny"},
            "spec": {"containers": [{"name": "web", "args": ["a", "b: c"], "ports": []}], "n": 2, "none": {}},
        });
        let lines = lines(&object);
        let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let text = text.join("\n") + "\n";
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, object, "{text}");
        for line in lines.iter().filter(|line| !line.pointer.is_empty()) {
            assert!(object.pointer(&line.pointer).is_some(), "{line:?}");
        }
        let web = lines.iter().find(|line| line.text.contains("- args:")).unwrap();
        assert_eq!(web.pointer, "/spec/containers/0/args");
    }

    #[test]
    fn any_object_is_the_same_after_it_was_read() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let object = json!({ "x": value(&mut random, 4) });
            let text: String = lines(&object).iter().map(|line| format!("{}\n", line.text)).collect();
            let read: Result<Value, _> = serde_saphyr::from_str(&text);
            assert_eq!(read.ok().as_ref(), Some(&object), "{text}");
        }
    }

    fn value(random: &mut fastrand::Rng, depth: usize) -> Value {
        const TEXTS: &[&str] = &[
            "",
            "a",
            "true",
            "null",
            "1",
            "1.5",
            "a: b",
            "- a",
            "#a",
            "a\nb",
            "a\n",
            "a\n\n",
            "\n",
            " a",
            "a ",
            "{",
            "\"",
            "'",
            "a\n b\n\nc\n",
            "~",
            "yes",
            "0x1",
            "é",
            "a\n\n\n",
            "\ta",
            "a\tb",
            "\n\na",
            "on",
            "2026-11-23",
            "a #b",
            "|",
            ">",
        ];
        match random.usize(..if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(random.i32(..)),
            2 | 3 => json!(TEXTS[random.usize(..TEXTS.len())]),
            4 => (0..random.usize(..3)).map(|_| value(random, depth - 1)).collect(),
            _ => {
                let name = |random: &mut fastrand::Rng| TEXTS[random.usize(..TEXTS.len())].replace('\n', "_");
                let map = (0..random.usize(..3)).map(|_| (name(random), value(random, depth - 1)));
                Value::Object(map.collect::<Vec<_>>().into_iter().collect())
            }
        }
    }
}
