//! Labels that a program adds, sanitized: an invalid name, or a duplicate series, makes the whole text invalid.

use std::collections::{BTreeSet, HashSet};

/// Labels that only the series of some families have.
const OF_SERIES: [&str; 8] = ["state", "request", "cause", "type", "handler", "result", "priority", "le"];

/// Puts a label in front, under a valid and free name.
pub fn add(labels: &mut Vec<(String, String)>, name: &str, value: &str) {
    let mut name = valid(name);
    while OF_SERIES.contains(&name.as_str()) || labels.iter().any(|(taken, _)| *taken == name) {
        name.push('_');
    }
    labels.insert(0, (name, value.to_owned()));
}

/// Letters, digits and `_`, at least one that is no `_`, and no leading digit. Names with two leading `_` are reserved
/// for the monitoring system.
fn valid(name: &str) -> String {
    let or_underscore = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let mut name: String = name.chars().map(or_underscore).collect();
    while name.starts_with("__") {
        name.remove(0);
    }
    match name.chars().next() {
        Some('0'..='9') => format!("_{name}"),
        Some(_) if name != "_" => name,
        _ => "label".to_owned(),
    }
}

/// Gives series with duplicate labels the lowest free number, in the label `numbered`.
pub fn tell_apart<'a>(series: impl Iterator<Item = &'a mut Vec<(String, String)>>, numbered: &str) {
    let mut taken = HashSet::new();
    for labels in series {
        let mut number = 0;
        while !taken.insert(identity(labels)) {
            number += 1;
            labels.retain(|(name, _)| name != numbered);
            labels.push((numbered.to_owned(), number.to_string()));
        }
    }
}

/// The identity of a series in a monitoring system: an empty label counts as none.
fn identity(labels: &[(String, String)]) -> BTreeSet<(String, String)> {
    labels.iter().filter(|(_, value)| !value.is_empty()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_labels_become_valid_and_valid_ones_stay() {
        for (name, valid) in [
            ("cluster", "cluster"),
            ("_a1", "_a1"),
            ("a__b", "a__b"),
            ("my-cluster.é", "my_cluster__"),
            ("1st", "_1st"),
            ("__name__", "_name__"),
            ("\"\n", "label"),
            ("", "label"),
        ] {
            assert_eq!(super::valid(name), valid, "{name:?}");
        }
    }

    #[test]
    fn a_taken_name_gets_another_underscore() {
        let mut labels = Vec::new();
        for name in ["a", "a", "a_", "state"] {
            add(&mut labels, name, "x");
        }
        let names: Vec<_> = labels.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["state_", "a__", "a_", "a"]);
    }
}
