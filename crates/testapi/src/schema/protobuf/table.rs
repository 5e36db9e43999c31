//! The numbers of fields. `crates/xtask/src/protobuf.rs` writes the table and documents its format.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use crate::schema::{Object, Type, Types, table};

const TABLES: [&str; 2] =
    [include_str!("../../../schema/protobuf.txt"), include_str!("../../../schema/unpublished.txt")];

/// The fields of a message by their numbers.
pub(super) type Message = BTreeMap<u64, Field>;

pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    One,
    List,
    Map,
    /// In JSON its members are members of the object around it.
    Inline,
}

#[derive(Clone, Copy)]
pub(super) enum Of {
    String,
    Bytes,
    Integer,
    Number,
    Boolean,
    Message(&'static str),
}

pub(super) fn messages() -> &'static HashMap<&'static str, Message> {
    static MESSAGES: OnceLock<HashMap<&'static str, Message>> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        let mut messages: HashMap<_, Message> = HashMap::new();
        let mut current = "";
        for line in TABLES.into_iter().flat_map(str::lines).filter(|line| !line.starts_with('#')) {
            match line.strip_prefix(' ') {
                None => {
                    current = line;
                    messages.entry(current).or_default();
                }
                Some(line) => {
                    if let Some((number, field)) = field(line) {
                        messages.entry(current).or_default().insert(number, field);
                    }
                }
            }
        }
        messages
    })
}

fn field(line: &'static str) -> Option<(u64, Field)> {
    let mut words = line.split(' ');
    let (number, name, expression) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let (form, of) = match expression.as_bytes().first()? {
        b'[' => (Form::List, expression.trim_matches(['[', ']'])),
        b'{' => (Form::Map, expression.trim_matches(['{', '}'])),
        b'~' => (Form::Inline, expression.trim_start_matches('~')),
        _ => (Form::One, expression),
    };
    let of = match of {
        "string" => Of::String,
        "bytes" => Of::Bytes,
        "integer" => Of::Integer,
        "number" => Of::Number,
        "boolean" => Of::Boolean,
        name => Of::Message(name.strip_prefix('@')?),
    };
    Some((number, Field { name, form, of }))
}

/// Whether a message is a list in JSON. Such messages exist because the values of a protobuf map cannot be lists.
pub(super) fn is_list(name: &str, message: &Message) -> bool {
    message.len() == 1 && message.values().all(|field| field.name == "items") && structure(name).is_none()
}

/// The object type of a message in JSON, if it has fields.
pub(super) fn structure(message: &str) -> Option<&'static Object> {
    let types: &'static Types = table::builtin();
    match types.all.get(*types.names.get(message)?)? {
        Type::Object(object) if !object.fields.is_empty() => Some(object),
        _ => None,
    }
}

/// The name of a kind's message: by OpenAPI, or by the list below.
pub(super) fn message_of(api_version: &str, kind: &str) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<usize, &'static str>> = OnceLock::new();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let types = table::builtin();
    let name = match types.kind(group, version, kind) {
        Some(at) => {
            let names = || types.names.iter().map(|(name, at)| (*at, &**name)).collect();
            (*NAMES.get_or_init(names).get(&at)?).to_owned()
        }
        None => {
            let package = match (group, version, kind) {
                ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadata" | "PartialObjectMetadataList")
                // Two discovery documents do not have an apiVersion.
                | ("", "", "APIVersions" | "APIResourceList") => "io.k8s.apimachinery.pkg.apis.meta.v1",
                ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => "io.k8s.api.apidiscovery.v2",
                _ => return None,
            };
            format!("{package}.{kind}")
        }
    };
    messages().get_key_value(name.as_str()).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_a_field_names_is_known() {
        for (name, message) in messages() {
            for field in message.values() {
                let Of::Message(of) = field.of else { continue };
                assert!(messages().contains_key(of), "{name}: {of}");
            }
        }
    }
}
