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

const EXPLAINED: [Explained; 1] =
    [Explained { name: "Descriptions of columns", strip: descriptions_of_columns }];

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
