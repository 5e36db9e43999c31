//! The schemas of custom resources, as their definitions had them at a time. A history has none of built-in kinds.

use std::collections::HashMap;

use kubediff_history::{Moment, Reader};
use serde_json::{Map, Value, json};

use super::resources::each_definition;
use crate::web::problem::Problem;

/// Schemas by group and version.
#[derive(Default)]
pub(super) struct Schemas(HashMap<(String, String), Map<String, Value>>);

/// The group of a path below `/openapi/v3`.
pub(super) fn group(path: &str) -> Option<&str> {
    path.strip_prefix("/openapi/v3/apis/")?.split('/').next()
}

impl Schemas {
    /// Those of a group; none without one, as in the index.
    pub(super) fn read(reader: &mut Reader, at: Moment, group: Option<&str>) -> Result<Self, Problem> {
        let mut schemas = Self::default();
        let Some(group) = group else { return Ok(schemas) };
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
