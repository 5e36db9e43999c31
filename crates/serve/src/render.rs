//! Objects as JSON text, in the representation that the client wants.

use std::time::SystemTime;

use kube_table::{Columns, Printer};
use serde_json::{Value, json};

use crate::representation::{Include, Representation};
use crate::{Object, Resource, json};

/// Writes objects of one resource in one representation.
pub(crate) struct Renderer {
    representation: Representation,
    /// `{"kind":"Pod","apiVersion":"v1",`: the members that a body lacks.
    head: String,
    /// The same for an object that is an item of a list.
    item_head: String,
    list_kind: String,
    api_version: String,
    typed_items: bool,
    printer: Option<Printer>,
    /// Whether a column may be of any field. Built-in ones are of none that [`row`](Self::row) leaves out.
    has_any_field: bool,
    pub(crate) now: SystemTime,
}

/// The metadata that a list carries besides its items.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
    pub(crate) shard: Option<String>,
}

impl Renderer {
    /// `now` is for ages in tables.
    pub(crate) fn new(resource: &Resource, representation: Representation, now: SystemTime) -> Self {
        let api_version = resource.api_version();
        let head = format!("{{\"kind\":{},\"apiVersion\":{},", json!(*resource.kind), json!(api_version));
        Self {
            item_head: if resource.typed_items { head.clone() } else { "{".to_string() },
            head,
            list_kind: resource.list_kind.to_string(),
            api_version,
            typed_items: resource.typed_items,
            printer: matches!(representation, Representation::Table { .. }).then(|| Printer::of(resource)),
            has_any_field: matches!(resource.columns, Columns::Declared(_)),
            representation,
            now,
        }
    }

    /// An object by itself.
    pub(crate) fn object(&self, object: &Object, out: &mut Vec<u8>) {
        self.embedded(&object.body, object.revision, true, out);
    }

    /// An object in an event of a watch. A table has its columns in the first event only.
    pub(crate) fn embedded(&self, body: &[u8], revision: u64, columns: bool, out: &mut Vec<u8>) {
        match &self.representation {
            Representation::Whole => {
                out.extend_from_slice(self.head.as_bytes());
                out.extend_from_slice(body);
            }
            Representation::Metadata { version, .. } => metadata(version, body, out),
            Representation::Table { version, .. } => {
                let meta = ListMeta { revision, ..ListMeta::default() };
                self.table_head(version, &meta, columns, out);
                out.push(b'[');
                self.row(body, out);
                out.extend_from_slice(b"]}");
            }
        }
    }

    /// One of the items of a list.
    pub(crate) fn item(&self, object: &Object, out: &mut Vec<u8>) {
        match &self.representation {
            Representation::Whole => {
                out.extend_from_slice(self.item_head.as_bytes());
                out.extend_from_slice(&object.body);
            }
            Representation::Metadata { version, .. } => metadata(version, &object.body, out),
            Representation::Table { .. } => self.row(&object.body, out),
        }
    }

    /// The text that replaces the items of an empty list, brackets included: the real server writes `null` for an empty list of
    /// metadata, and for a table of a kind without columns of its own.
    pub(crate) fn no_items(&self) -> &'static str {
        let plain = self.printer.as_ref().is_some_and(Printer::is_plain);
        if plain || matches!(self.representation, Representation::Metadata { .. }) { "null" } else { "[]" }
    }

    /// Writes the text before the items of a list and their brackets. `}` follows them.
    pub(crate) fn list_head(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        match &self.representation {
            Representation::Whole => {
                let text = format!(
                    "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":",
                    json!(self.list_kind),
                    json!(self.api_version),
                    meta.text(self.typed_items)
                );
                out.extend_from_slice(text.as_bytes());
            }
            Representation::Metadata { version, .. } => {
                let text = format!(
                    "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/{version}\",\
                     \"metadata\":{},\"items\":",
                    meta.text(false)
                );
                out.extend_from_slice(text.as_bytes());
            }
            Representation::Table { version, .. } => self.table_head(version, meta, true, out),
        }
    }

    fn table_head(&self, version: &str, meta: &ListMeta, columns: bool, out: &mut Vec<u8>) {
        let columns = match &self.printer {
            Some(printer) if columns => Value::Array(printer.columns()),
            _ => Value::Null,
        };
        let text = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{},\
             \"columnDefinitions\":{columns},\"rows\":",
            meta.text(false)
        );
        out.extend_from_slice(text.as_bytes());
    }

    fn row(&self, body: &[u8], out: &mut Vec<u8>) {
        let Representation::Table { version, include } = &self.representation else { return };
        let mut text = self.head.clone().into_bytes();
        // To read managed fields would be half of the work.
        let managed = json::path(body, ["metadata", "managedFields"]).filter(|_| !self.has_any_field);
        let read = managed.map_or([body, b"", b""], |it| [&body[..it.start], b"null", &body[it.end..]]);
        read.into_iter().for_each(|part| text.extend_from_slice(part));
        // A body that is no JSON was not written by an API server; its row is empty.
        let object: Value = serde_json::from_slice(&text).unwrap_or_default();
        let cells = self.printer.as_ref().map(|printer| printer.cells(&object, self.now)).unwrap_or_default();
        out.extend_from_slice(format!("{{\"cells\":{},", Value::Array(cells)).as_bytes());
        let conditions = self.printer.as_ref().map(|printer| printer.conditions(&object)).unwrap_or_default();
        if !conditions.is_empty() {
            out.extend_from_slice(format!("\"conditions\":{},", Value::Array(conditions)).as_bytes());
        }
        out.extend_from_slice(b"\"object\":");
        match include {
            Include::None => out.extend_from_slice(b"null"),
            Include::Metadata => metadata(version, body, out),
            Include::Object => {
                out.extend_from_slice(self.head.as_bytes());
                out.extend_from_slice(body);
            }
        }
        out.push(b'}');
    }
}

impl ListMeta {
    /// The list's metadata as the server writes it; lists of custom resources always have a `continue`.
    fn text(&self, always_continue: bool) -> String {
        let mut text = format!("{{\"resourceVersion\":\"{}\"", self.revision);
        match &self.continue_token {
            Some(token) => text.push_str(&format!(",\"continue\":{}", json!(token))),
            None if always_continue => text.push_str(",\"continue\":\"\""),
            None => {}
        }
        if let Some(remaining) = self.remaining {
            text.push_str(&format!(",\"remainingItemCount\":{remaining}"));
        }
        if let Some(shard) = &self.shard {
            text.push_str(&format!(",\"shardInfo\":{}", json!({ "selector": shard })));
        }
        text.push('}');
        text
    }
}

/// A `PartialObjectMetadata`.
fn metadata(version: &str, body: &[u8], out: &mut Vec<u8>) {
    let head = format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":"
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(json::member(body, "metadata").map_or(b"{}", |range| &body[range]));
    out.push(b'}');
}
