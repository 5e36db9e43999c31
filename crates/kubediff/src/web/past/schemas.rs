//! Schemas as they were at a time: those of custom resources by their definitions, and others as the server had them.

use std::collections::HashMap;

use kubediff_history::{Moment, Reader};
use serde_json::{Map, Value, json};

use super::resources::each_definition;
use crate::history::documents;
use crate::web::problem::Problem;

/// Schemas by group and version.
#[derive(Default)]
pub(super) struct Schemas(HashMap<(String, String), Map<String, Value>>);

/// The path of a group and version in one below `/openapi/v3`; `None` in that of the index.
pub(super) fn path(path: &str) -> Option<&str> {
    path.strip_prefix("/openapi/v3/").filter(|path| !path.is_empty())
}

impl Schemas {
    /// Those of the group and version with this path; none without one, as in the index.
    pub(super) fn read(reader: &mut Reader, at: Moment, path: Option<&str>) -> Result<Self, Problem> {
        let mut schemas = Self::default();
        let Some(path) = path else { return Ok(schemas) };
        let (group, version) = match path.strip_prefix("apis/") {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => ("", path.strip_prefix("api/").unwrap_or_default()),
        };
        if let Some(document) = reader.document(&documents::schemas(path), at.number)? {
            // The daemon stores JSON alone.
            let of = serde_json::from_slice(&document).unwrap_or_default();
            schemas.0.insert((group.to_owned(), version.to_owned()), of);
        }
        each_definition(reader, at, |definition| {
            let spec = &definition["spec"];
            if spec["group"] == group {
                schemas.add(group, spec);
            }
        })?;
        Ok(schemas)
    }

    fn add(&mut self, group: &str, spec: &Value) {
        let kind = spec["names"]["kind"].as_str().unwrap_or_default();
        for version in spec["versions"].as_array().into_iter().flatten() {
            let name = version["name"].as_str().unwrap_or_default();
            let mut schema = version["schema"]["openAPIV3Schema"].clone();
            let Some(members) = schema.as_object_mut() else { continue };
            let gvk = json!([{ "group": group, "version": name, "kind": kind }]);
            members.insert("x-kubernetes-group-version-kind".to_owned(), gvk);
            let domain: Vec<&str> = group.split('.').rev().collect();
            let of = self.0.entry((group.to_owned(), name.to_owned())).or_default();
            of.insert(format!("{}.{name}.{kind}", domain.join(".")), schema);
        }
    }

    pub(super) fn of(&self, group: &str, version: &str) -> Option<Value> {
        self.0.get(&(group.to_owned(), version.to_owned())).cloned().map(Value::Object)
    }
}
