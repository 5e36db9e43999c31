//! The columns of the tables in which objects stand.

use std::sync::Arc;

use jiff::Timestamp;
use kube_table::{Columns, Resource, builtin};
use kubediff_history::{Gvk, Reader};

use super::error::AskError;
use super::names::definition;

/// The resource whose columns a kind has: a built-in one, or as its definition declared it at that time.
pub(crate) fn resource(
    reader: &mut Reader,
    gvk: &Gvk,
    plural: &str,
    at: Option<Timestamp>,
) -> Result<Arc<Resource>, AskError> {
    let is_it = |resource: &Resource| *resource.group == *gvk.group && *resource.plural == *plural;
    if let Some(found) = builtin::resources().into_iter().find(|resource| is_it(resource)) {
        return Ok(found);
    }
    let declared = match definition(reader, gvk, plural, at)? {
        Some(definition) => Resource::defined_by(&definition),
        None => Vec::new(),
    };
    let of_version = declared.into_iter().find(|resource| *resource.version == *gvk.version);
    Ok(Arc::new(of_version.unwrap_or_else(|| Resource {
        group: gvk.group.as_str().into(),
        version: gvk.version.as_str().into(),
        plural: plural.into(),
        singular: gvk.kind.to_lowercase().into(),
        kind: gvk.kind.as_str().into(),
        list_kind: format!("{}List", gvk.kind).into(),
        namespaced: true,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        selectable: Vec::new(),
        columns: Columns::BuiltIn,
        typed_items: true,
        stored_version: None,
    })))
}
