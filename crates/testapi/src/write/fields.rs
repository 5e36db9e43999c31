//! The types of fields and their owners.

use serde_json::Value;
use serve::Status;

use super::WriteOptions;
use crate::core::Core;
use crate::managed::{self, ApplyRequest, Ignored, Scaling, Writer};
use crate::object::set_type;
use crate::schema::{self, TypeRef};
use crate::turn::{Target, Turn};

/// The OpenAPI schemas of a group and version: those of the built-in kinds, or those of definitions.
pub(crate) fn schemas(core: &Core, group: &str, version: &str) -> Option<Value> {
    let definitions = core.definitions();
    let (common, metadata) = schema::common();
    let custom = definitions.values().flat_map(|definition| {
        let resources = definition.resources.iter();
        let of_it = resources.filter(|resource| *resource.group == *group && *resource.version == *version);
        of_it.filter_map(|resource| {
            let name = format!("{}.{version}.{}", reversed(group), resource.kind);
            let given = definition.given_schema(version)?;
            let mut schema = if given.is_object() { given.clone() } else { serde_json::json!({}) };
            schema["x-kubernetes-group-version-kind"] =
                serde_json::json!([{ "group": group, "version": version, "kind": &*resource.kind }]);
            if !schema["properties"].is_object() {
                schema["properties"] = Value::Object(serde_json::Map::new());
            }
            schema["properties"].as_object_mut()?.extend(common.clone());
            Some((name, schema))
        })
    });
    let mut custom: serde_json::Map<_, _> = custom.collect();
    if custom.is_empty() {
        return schema::openapi(group, version);
    }
    custom.extend(metadata);
    Some(Value::Object(custom))
}

/// `io.x` for `x.io`.
fn reversed(group: &str) -> String {
    group.rsplit('.').collect::<Vec<_>>().join(".")
}

impl Turn<'_> {
    /// Records in `managedFields` what a write has changed.
    pub(super) fn track(
        &self,
        target: &Target,
        before: Option<&Value>,
        after: &mut Value,
        options: &WriteOptions,
    ) {
        // An apply has done this already.
        if !options.applied {
            set_type(&target.resource, after);
            self.as_writer(target, options, |writer| managed::update(before, after, writer));
        }
    }

    /// Records in `managedFields` that a write of the scale has set the number of replicas, in this field.
    pub(super) fn scaled(
        &self,
        target: &Target,
        object: &mut Value,
        field: &str,
        scaling: Scaling,
        options: &WriteOptions,
    ) {
        self.as_writer(target, options, |writer| managed::scaled(object, field, scaling, writer));
    }

    /// The result of an apply.
    pub(super) fn applied(
        &self,
        target: &Target,
        live: Option<&Value>,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let kind = &target.resource.kind;
        self.as_writer(target, options, |writer| {
            managed::apply(ApplyRequest { live, config, kind, force: options.force, writer })
        })
    }

    fn as_writer<T>(&self, target: &Target, options: &WriteOptions, run: impl FnOnce(Writer<'_>) -> T) -> T {
        let resource = &target.resource;
        let subresource = options.subresource.as_deref().unwrap_or_default();
        let ignored = Ignored::of(&resource.group, &resource.plural, subresource, target.has_status());
        run(Writer {
            manager: &options.manager,
            subresource,
            api_version: &resource.api_version(),
            now: &self.now(),
            schema: &target.schema().unwrap_or_else(TypeRef::any),
            ignored: &ignored,
        })
    }
}
