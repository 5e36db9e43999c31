//! `cargo xtask protobuf`: writes the field numbers of Kubernetes' protobuf messages for `testapi`, which accepts and
//! sends protobuf.
//!
//! The table has one line for each message, with the name of its type in OpenAPI. Below it is one line for each field,
//! indented by a space: `NUMBER NAME TYPE`. Types: `string` `bytes` `integer` `number` `boolean`, `@NAME` for a
//! message, `[T]` if it is repeated, `{T}` for a map with string keys, `~@NAME` for a message whose fields JSON has in
//! the object around it. Names are those of JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::tree::Tree;

/// The file that `testapi` reads.
const TABLE: &str = "crates/testapi/schema/protobuf.txt";
/// The fields of the types in JSON, written by `cargo xtask schema`.
const TYPES: &str = "crates/testapi/schema/types.txt";
/// The Go modules with the types of a kube-apiserver.
const MODULES: [&str; 4] =
    ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let mut messages = BTreeMap::new();
    for module in MODULES {
        let mut go = Command::new("go");
        go.current_dir(tree.root().join("control-plane")).args(["list", "-m", "-f", "{{.Dir}}", module]);
        let directory = PathBuf::from(process::output(&mut go)?.trim());
        for definitions in definitions_below(&directory)? {
            let text = std::fs::read_to_string(&definitions).map_err(Error::io(&definitions))?;
            read(&text, &mut messages);
        }
    }
    let types = tree.root().join(TYPES);
    let types = std::fs::read_to_string(&types).map_err(Error::io(&types))?;
    let types = fields_of_types(&types);
    let text = table(&messages, &types);
    let path = tree.root().join(TABLE);
    std::fs::write(&path, &text).map_err(Error::io(&path))?;
    println!("{TABLE}: {} KiB", text.len() / 1024);
    Ok(())
}

/// A field of a message definition.
struct Field {
    number: String,
    name: String,
    form: Form,
    of: String,
}

#[derive(PartialEq, Eq)]
enum Form {
    One,
    List,
    Map,
}

type Messages = BTreeMap<String, Vec<Field>>;

fn definitions_below(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        if path.is_dir() {
            found.extend(definitions_below(&path)?);
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Kubernetes writes one definition on one line.
fn read(text: &str, messages: &mut Messages) {
    let mut package = "";
    let mut message = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';');
        } else if let Some(name) = line.strip_prefix("message ") {
            message = openapi_name(&format!("{package}.{}", name.trim_end_matches(" {")));
            messages.insert(message.clone(), Vec::new());
        } else if let (Some(field), Some(fields)) = (field(line, package), messages.get_mut(&message)) {
            fields.push(field);
        }
    }
}

fn field(line: &str, package: &str) -> Option<Field> {
    let (declared, number) = line.strip_suffix(';')?.split_once(" = ")?;
    let (form, rest) = if let Some(rest) = declared.strip_prefix("optional ") {
        (Form::One, rest)
    } else if let Some(rest) = declared.strip_prefix("repeated ") {
        (Form::List, rest)
    } else {
        (Form::Map, declared.strip_prefix("map<string, ")?)
    };
    let (of, name) = rest.split_once(' ')?;
    let of = match of.trim_end_matches('>') {
        "string" => "string".to_owned(),
        "bytes" => "bytes".to_owned(),
        "int32" | "int64" => "integer".to_owned(),
        "bool" => "boolean".to_owned(),
        "double" => "number".to_owned(),
        name => match name.strip_prefix('.') {
            Some(full) => format!("@{}", openapi_name(full)),
            None if name.starts_with("k8s.io.") => format!("@{}", openapi_name(name)),
            None => format!("@{}", openapi_name(&format!("{package}.{name}"))),
        },
    };
    Some(Field { number: number.to_owned(), name: name.to_owned(), form, of })
}

fn openapi_name(name: &str) -> String {
    name.replacen("k8s.io.", "io.k8s.", 1).replace('_', "-")
}

fn fields_of_types(table: &str) -> BTreeMap<String, Vec<&str>> {
    let mut types: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut current = String::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split_whitespace().next().unwrap_or_default();
        if line.starts_with(' ') {
            types.entry(current.clone()).or_default().push(name);
        } else {
            current = name.to_owned();
            types.entry(current.clone()).or_default();
        }
    }
    types
}

/// The messages of these types, and the messages that they refer to.
fn table(messages: &Messages, types: &BTreeMap<String, Vec<&str>>) -> String {
    let mut wanted: Vec<&str> =
        types.keys().filter(|name| messages.contains_key(*name)).map(String::as_str).collect();
    let mut written = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        let Some(fields) = messages.get(name).filter(|_| !written.contains_key(name)) else { continue };
        let known = types.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut text = format!("{name}\n");
        for field in fields {
            let (name, of) = (json_name(&field.name, known), &field.of);
            let expression = match field.form {
                Form::One if !known.is_empty() && !known.contains(&name) && of.starts_with('@') => {
                    format!("~{of}")
                }
                Form::One => of.clone(),
                Form::List => format!("[{of}]"),
                Form::Map => format!("{{{of}}}"),
            };
            _ = writeln!(text, " {} {name} {expression}", field.number);
            wanted.extend(of.strip_prefix('@'));
        }
        written.insert(name, text);
    }
    let head = "# The fields of Kubernetes' protobuf messages, by `cargo xtask protobuf`.\n".to_owned();
    written.into_values().fold(head, |all, one| all + &one)
}

/// Names in JSON may have characters that protobuf does not allow.
fn json_name<'a>(name: &'a str, known: &[&'a str]) -> &'a str {
    let letters =
        |name: &str| name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "").to_lowercase();
    if known.contains(&name) {
        return name;
    }
    // `schema` also stands for `$schema`.
    known.iter().find(|known| letters(known) == letters(name)).copied().unwrap_or(name)
}
