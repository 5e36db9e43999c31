//! `cargo xtask protobuf`: writes the field numbers of Kubernetes' protobuf messages for `testapi`, which accepts and
//! sends protobuf.
//!
//! The table has one line for each message, with the name of its type in OpenAPI. Below it is one line for each field,
//! indented by a space: `NUMBER NAME TYPE`. Types: `string` `bytes` `integer` `number` `boolean`, `@NAME` for a
//! message, `[T]` if it is repeated, `{T}` for a map with string keys, `~@NAME` for a message whose fields JSON has in
//! the object around it. Names are those of JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use tooling::{Error, process};

use crate::definitions::{self, MODULES, Many, Messages};
use crate::tree::Tree;

/// The file that `testapi` reads.
pub(crate) const TABLE: &str = "crates/testapi/schema/protobuf.txt";
/// The fields of the types in JSON, written by `cargo xtask schema`.
const TYPES: &str = "crates/testapi/schema/types.txt";

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let mut messages = Messages::new();
    for module in MODULES {
        let mut go = Command::new("go");
        go.current_dir(tree.root().join("control-plane")).args(["list", "-m", "-f", "{{.Dir}}", module]);
        let directory = PathBuf::from(process::output(&mut go)?.trim());
        for path in definitions::below(&directory)? {
            let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
            definitions::read(&text, &mut messages);
        }
    }
    let messages = messages.into_iter().map(|(name, fields)| (openapi_name(&name), fields)).collect();
    let types = tree.root().join(TYPES);
    let types = std::fs::read_to_string(&types).map_err(Error::io(&types))?;
    let types = fields_of_types(&types);
    let text = table(&messages, &types);
    let path = tree.root().join(TABLE);
    std::fs::write(&path, &text).map_err(Error::io(&path))?;
    println!("{TABLE}: {} KiB", text.len() / 1024);
    Ok(())
}

/// The type of a field in the table.
fn type_of(of: &str) -> String {
    match of {
        "string" | "bytes" => of.to_owned(),
        "int32" | "int64" => "integer".to_owned(),
        "bool" => "boolean".to_owned(),
        "double" => "number".to_owned(),
        message => format!("@{}", openapi_name(message)),
    }
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
            let (name, of) = (json_name(&field.name, known), type_of(&field.of));
            let message = of.strip_prefix('@').and_then(|name| messages.get_key_value(name));
            wanted.extend(message.map(|(name, _)| name.as_str()));
            let expression = match field.many {
                Many::One if !known.is_empty() && !known.contains(&name) && of.starts_with('@') => {
                    format!("~{of}")
                }
                Many::One => of,
                Many::List => format!("[{of}]"),
                Many::Map => format!("{{{of}}}"),
            };
            _ = writeln!(text, " {} {name} {expression}", field.number);
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
