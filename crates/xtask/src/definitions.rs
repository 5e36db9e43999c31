//! `generated.proto`: Kubernetes' protobuf messages, with the numbers and types of their fields.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tooling::Error;

/// The Go modules with the types of a kube-apiserver.
pub(crate) const MODULES: [&str; 4] =
    ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];

/// The fields of messages, by the messages' full names: `k8s.io.api.core.v1.Pod`.
pub(crate) type Messages = BTreeMap<String, Vec<Field>>;

pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) many: Many,
    /// A scalar type, or the full name of a message.
    pub(crate) of: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Many {
    One,
    List,
    Map,
}

/// The files of definitions in a directory and below it.
pub(crate) fn below(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        if path.is_dir() {
            found.extend(below(&path)?);
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Adds the messages of a file. Kubernetes writes one definition on one line.
pub(crate) fn read(text: &str, messages: &mut Messages) {
    let mut package = "";
    let mut message = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';');
        } else if let Some(name) = line.strip_prefix("message ") {
            message = format!("{package}.{}", name.trim_end_matches(" {"));
            messages.insert(message.clone(), Vec::new());
        } else if let (Some(field), Some(fields)) = (field(line, package), messages.get_mut(&message)) {
            fields.push(field);
        }
    }
}

fn field(line: &str, package: &str) -> Option<Field> {
    let (declared, number) = line.strip_suffix(';')?.split_once(" = ")?;
    let (many, rest) = if let Some(rest) = declared.strip_prefix("optional ") {
        (Many::One, rest)
    } else if let Some(rest) = declared.strip_prefix("repeated ") {
        (Many::List, rest)
    } else {
        (Many::Map, declared.strip_prefix("map<string, ")?)
    };
    let (of, name) = rest.split_once(' ')?;
    let of = of.trim_end_matches('>');
    let of = match of.strip_prefix('.').unwrap_or(of) {
        scalar @ ("string" | "bytes" | "int32" | "int64" | "bool" | "double") => scalar.to_owned(),
        full if full.starts_with("k8s.io.") => full.to_owned(),
        name => format!("{package}.{name}"),
    };
    Some(Field { number: number.parse().ok()?, name: name.to_owned(), many, of })
}
