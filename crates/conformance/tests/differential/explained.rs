//! Differences that are known and meant. Each has a row in `docs/TESTAPI.md`, by its name.

use serde_json::Value;

use crate::request::{Answer, Body, Request};

/// A difference, and how it is taken out of both answers.
struct Explained {
    /// The first cell of its row.
    name: &'static str,
    /// Takes out of both what differs, where it does.
    strip: fn(&Request, &mut Answer, &mut Answer),
}

const EXPLAINED: [Explained; 4] = [
    Explained { name: "Descriptions of columns", strip: descriptions_of_columns },
    Explained { name: "Objects in messages", strip: objects_in_messages },
    Explained { name: "Build information", strip: how_it_was_built },
    Explained { name: "Missing groups and versions", strip: groups_that_are_not_served },
];

/// The two answers without what is explained.
pub(crate) fn strip(request: &Request, truth: &Answer, ours: &Answer) -> (Answer, Answer) {
    let (mut truth, mut ours) = (truth.clone(), ours.clone());
    for explained in &EXPLAINED {
        (explained.strip)(request, &mut truth, &mut ours);
    }
    (truth, ours)
}

/// Of built-in columns: those of a definition are its own words.
fn descriptions_of_columns(_: &Request, truth: &mut Answer, ours: &mut Answer) {
    for (truth, ours) in tables(&mut truth.body).into_iter().zip(tables(&mut ours.body)) {
        let (Some(truth), Some(ours)) = (columns(truth), columns(ours)) else { continue };
        for (truth, ours) in truth.iter_mut().zip(ours) {
            if ours["description"] == "" {
                truth["description"] = "".into();
            }
        }
    }
}

/// A strict patch that is refused shows the patched object.
fn objects_in_messages(_: &Request, truth: &mut Answer, ours: &mut Answer) {
    const BEFORE: &str = "Invalid value: \"{";
    const AFTER: &str = "}\": strict decoding error";
    let cut = |text: &mut Value| {
        let Some(said) = text.as_str() else { return };
        if let (Some(start), Some(end)) = (said.find(BEFORE), said.find(AFTER)) {
            *text = format!("{}{}", &said[..start + BEFORE.len()], &said[end..]).into();
        }
    };
    for answer in [truth, ours] {
        let Body::Json(json) = &mut answer.body else { continue };
        for pointer in ["/message", "/details/causes/0/message"] {
            json.pointer_mut(pointer).into_iter().for_each(cut);
        }
    }
}

/// In `/version`.
fn how_it_was_built(request: &Request, truth: &mut Answer, ours: &mut Answer) {
    if request.path != "/version" {
        return;
    }
    for answer in [truth, ours] {
        if let Body::Json(Value::Object(version)) = &mut answer.body {
            for name in ["buildDate", "compiler", "gitCommit", "goVersion", "platform"] {
                version.remove(name);
            }
        }
    }
}

/// In the list of all groups, which has those of other scripts too.
fn groups_that_are_not_served(request: &Request, truth: &mut Answer, ours: &mut Answer) {
    if request.path != "/apis" {
        return;
    }
    for answer in [truth, ours] {
        let Body::Json(list) = &mut answer.body else { continue };
        let is_served = |group: &Value| {
            let name = group.pointer("/metadata/name").or_else(|| group.get("name")).and_then(Value::as_str);
            name.is_some_and(|name| {
                !NOT_SERVED.contains(&name) && (name == WIDGETS || !name.ends_with(".example.com"))
            })
        };
        for name in ["groups", "items"] {
            if let Some(groups) = list.get_mut(name).and_then(Value::as_array_mut) {
                groups.retain(is_served);
                groups.iter_mut().for_each(only_served_versions);
            }
        }
    }
}

fn only_served_versions(group: &mut Value) {
    let is_autoscaling = group.pointer("/metadata/name").or_else(|| group.get("name"));
    if is_autoscaling.is_some_and(|name| name == "autoscaling")
        && let Some(versions) = group.get_mut("versions").and_then(Value::as_array_mut)
    {
        versions.retain(|version| version["version"] != "v1");
    }
}

/// The groups of the real server that ours has not.
const NOT_SERVED: [&str; 2] = ["apiregistration.k8s.io", "events.k8s.io"];

/// The group of the definitions in all scripts.
const WIDGETS: &str = "diff.example.com";

fn columns(table: &mut Value) -> Option<&mut Vec<Value>> {
    table.get_mut("columnDefinitions")?.as_array_mut()
}

/// The tables in an answer: itself, or those of its events.
fn tables(body: &mut Body) -> Vec<&mut Value> {
    let documents: Vec<&mut Value> = match body {
        Body::Json(json) => vec![json],
        Body::Events(events) => events.iter_mut().filter_map(|event| event.get_mut("object")).collect(),
        Body::Text(_) => Vec::new(),
    };
    documents.into_iter().filter(|document| document["kind"] == "Table").collect()
}

#[cfg(test)]
mod tests {
    use super::EXPLAINED;

    #[test]
    fn each_difference_has_a_row_and_each_row_a_difference() {
        let manual = include_str!("../../../../docs/TESTAPI.md");
        let (_, section) = manual.split_once("## Differences from the real server").expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| What "));
        let rows: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
        let names: Vec<&str> = EXPLAINED.iter().map(|explained| explained.name).collect();
        assert_eq!(rows, names);
    }
}
