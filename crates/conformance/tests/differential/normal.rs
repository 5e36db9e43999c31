//! Takes out of answers what no two servers have in common: uids, times, the distances of resourceVersions.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::request::{Answer, Body};

/// The answers to a script, comparable with those of another server.
///
/// Uids become the order in which they were first seen, resourceVersions of objects their rank among all of them, and
/// those of lists, which move on as anything in the cluster changes, are left out.
pub(crate) fn normal(namespace: &str, mut answers: Vec<Answer>) -> Vec<Answer> {
    let mut normal = Normal { namespace, uids: Vec::new(), versions: BTreeSet::new() };
    for answer in &mut answers {
        normal.answer(answer, Pass::Look);
    }
    for answer in &mut answers {
        normal.answer(answer, Pass::Replace);
    }
    answers
}

struct Normal<'a> {
    namespace: &'a str,
    uids: Vec<String>,
    versions: BTreeSet<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Look,
    Replace,
}

impl Normal<'_> {
    fn answer(&mut self, answer: &mut Answer, pass: Pass) {
        match &mut answer.body {
            Body::Json(json) => self.document(json, pass),
            Body::Events(events) => {
                // When a bookmark comes is up to the server; that one ends the first content is not.
                events.retain(|event| event["type"] != "BOOKMARK" || is_end_of_initial(event));
                for event in events {
                    if event["type"] == "BOOKMARK" {
                        event["object"]["metadata"]["resourceVersion"] = "<list>".into();
                    }
                    self.document(&mut event["object"], pass);
                }
            }
            Body::Text(text) => self.text(text, pass),
        }
    }

    fn document(&mut self, json: &mut Value, pass: Pass) {
        let is_list = json.get("items").is_some() || json["kind"] == "Table";
        if is_list && let Some(metadata) = json.get_mut("metadata") {
            let rows = json_len(metadata, "continue");
            if rows > 0 {
                metadata["continue"] = "<token>".into();
            }
            if metadata.get("resourceVersion").is_some() {
                metadata["resourceVersion"] = "<list>".into();
            }
        }
        if json["kind"] == "Table" {
            hide_ages(json);
        }
        self.value("", json, pass);
    }

    fn value(&mut self, name: &str, value: &mut Value, pass: Pass) {
        match value {
            Value::Array(entries) if name == "managedFields" && are_in_order(entries) => {
                entries.iter_mut().for_each(|entry| self.value("", entry, pass));
                // The order is one by time, in seconds, and what came in one second another server did in two.
                if pass == Pass::Replace {
                    entries.sort_by_key(|entry| order(entry, false));
                }
            }
            Value::Array(causes) if name == "causes" && causes.iter().all(is_conflict) => {
                causes.iter_mut().for_each(|cause| self.value("", cause, pass));
                // The real server has them in the order of a map of Go, which is any.
                causes.sort_by_key(Value::to_string);
            }
            Value::Object(members) => {
                members.iter_mut().for_each(|(name, value)| self.value(name, value, pass));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value("", item, pass)),
            Value::String(text) => self.string(name, text, pass),
            _ => {}
        }
    }

    fn string(&mut self, name: &str, text: &mut String, pass: Pass) {
        match name {
            "resourceVersion" => match (text.parse(), pass) {
                (Ok(version), Pass::Look) => drop(self.versions.insert(version)),
                (Ok(version), Pass::Replace) => *text = self.rank(version),
                (Err(_), _) => {}
            },
            // The name of the program that the control plane for tests is.
            "manager" if text == "control-plane" && pass == Pass::Replace => {
                *text = "kube-apiserver".to_owned()
            }
            "serverAddress" => *text = "<address>".to_owned(),
            // Entries in order by time were compared before.
            _ if is_time(text) => {
                if pass == Pass::Replace {
                    *text = "<time>".to_owned();
                }
            }
            _ => self.text(text, pass),
        }
    }

    fn rank(&self, version: u64) -> String {
        format!("<version {}>", self.versions.range(..version).count())
    }

    fn text(&mut self, text: &mut String, pass: Pass) {
        for before in VERSION_FOLLOWS {
            let Some(start) = text.find(before).map(|at| at + before.len()) else { continue };
            let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
            let Ok(version) = text[start..start + digits].parse() else { continue };
            match pass {
                Pass::Look => drop(self.versions.insert(version)),
                Pass::Replace => text.replace_range(start..start + digits, &self.rank(version)),
            }
        }
        *text = text.replace(self.namespace, "{ns}");
        while let Some(at) = find_uid(text) {
            let uid = text[at..at + UID].to_owned();
            let number = self.uids.iter().position(|known| *known == uid).unwrap_or_else(|| {
                self.uids.push(uid);
                self.uids.len() - 1
            });
            text.replace_range(at..at + UID, &format!("<uid {number}>"));
        }
        // `made-07-` and five letters that the server chose.
        for (at, _) in text.clone().match_indices("made-") {
            if text.is_char_boundary(at + MADE) {
                text.replace_range(at + MADE - 5..at + MADE, "?????");
            }
        }
    }
}

/// The texts that precede an object's resourceVersion in messages.
const VERSION_FOLLOWS: [&str; 1] = ["does not match the ResourceVersion in record ("];

fn is_conflict(cause: &Value) -> bool {
    cause["reason"] == "FieldManagerConflict"
}

fn are_in_order(entries: &[Value]) -> bool {
    entries.is_sorted_by_key(|entry| order(entry, true))
}

/// The sort key of an entry of `managedFields`.
fn order(entry: &Value, by_time: bool) -> [String; 5] {
    let names = ["operation", if by_time { "time" } else { "" }, "manager", "apiVersion", "subresource"];
    names.map(|name| entry[name].as_str().unwrap_or_default().to_owned())
}

fn json_len(metadata: &Value, name: &str) -> usize {
    metadata.get(name).and_then(Value::as_str).map_or(0, str::len)
}

fn is_end_of_initial(event: &Value) -> bool {
    event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some()
}

/// Cells of columns with an age: what it is depends on when one looks.
fn hide_ages(table: &mut Value) {
    let is_age =
        |column: &Value| matches!(column["name"].as_str(), Some("Age" | "Last Schedule" | "Duration"));
    let ages: Vec<usize> = table["columnDefinitions"]
        .as_array()
        .map(|columns| {
            columns.iter().enumerate().filter(|(_, column)| is_age(column)).map(|(at, _)| at).collect()
        })
        .unwrap_or_default();
    // Events of a watch have no columns but in the first: an age is known by its form there.
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for (at, cell) in row["cells"].as_array_mut().into_iter().flatten().enumerate() {
            if ages.contains(&at) || cell.as_str().is_some_and(is_age_text) {
                *cell = "<age>".into();
            }
        }
    }
}

fn is_age_text(text: &str) -> bool {
    text.strip_suffix('s')
        .is_some_and(|seconds| seconds.len() <= 3 && seconds.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && bytes.ends_with(b"Z")
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        // A script wrote this one.
        && !text.starts_with("2001-")
}

/// The length of a generated name.
const MADE: usize = "made-07-abcde".len();

/// The length of a uid.
const UID: usize = 36;

fn find_uid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..(bytes.len() + 1).saturating_sub(UID)).find(|&at| {
        let candidate = &bytes[at..at + UID];
        candidate.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        }) && candidate != b"00000000-0000-0000-0000-000000000000"
    })
}
