//! Custom resources: what a CustomResourceDefinition adds to the server.

mod checks;
mod prepare;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serve::Resource;

use crate::refusal::FieldError;
use crate::schema::{self, TypeRef};
use crate::store::GroupResource;

pub(crate) use checks::errors;
pub(crate) use prepare::{CLEANUP, fill_in, prepare_create, terminate};

/// A custom resource that is served.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) id: GroupResource,
    /// One resource for each served version, the preferred version first.
    pub(crate) resources: Vec<Arc<Resource>>,
    versions: BTreeMap<Box<str>, Version>,
}

#[derive(Debug, Clone)]
struct Version {
    schema: TypeRef,
    /// The unchanged schema, for OpenAPI.
    given: Value,
    scale: Option<ScalePaths>,
}

/// Where objects of a kind keep the fields of their scale (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

impl Definition {
    pub(crate) fn schema(&self, version: &str) -> Option<TypeRef> {
        Some(self.versions.get(version)?.schema.clone())
    }

    pub(crate) fn given_schema(&self, version: &str) -> Option<&Value> {
        Some(&self.versions.get(version)?.given)
    }

    /// Everything in an object that its schema does not allow.
    pub(crate) fn object_errors(&self, version: &str, object: &Value) -> Vec<FieldError> {
        self.given_schema(version).map(|schema| validation::errors(schema, object)).unwrap_or_default()
    }

    pub(crate) fn scale(&self, version: &str) -> Option<&ScalePaths> {
        self.versions.get(version)?.scale.as_ref()
    }

    /// The storage version, or else the preferred version.
    pub(crate) fn stored(&self) -> Option<&Arc<Resource>> {
        let is_stored =
            |resource: &&Arc<Resource>| resource.stored_version.as_ref() == Some(&resource.version);
        self.resources.iter().find(is_stored).or_else(|| self.resources.first())
    }

    /// Whether both serve the same versions with the same schemas.
    pub(crate) fn reads_like(&self, other: &Self) -> bool {
        let schemas = |definition: &Self| {
            let versions = definition.versions.iter();
            versions.map(|(name, version)| (name.clone(), version.given.clone())).collect::<Vec<_>>()
        };
        schemas(self) == schemas(other)
    }

    /// Reads a CustomResourceDefinition.
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let served =
            spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
        let versions = served.map(|version| (text(&version["name"]).into(), Version::read(version)));
        Self {
            id: GroupResource::new(&group, &plural),
            versions: versions.collect(),
            resources: Resource::defined_by(object).into_iter().map(Arc::new).collect(),
        }
    }
}

impl Version {
    fn read(version: &Value) -> Self {
        let given = version["schema"]["openAPIV3Schema"].clone();
        let scale = &version["subresources"]["scale"];
        let pointer = |name: &str| Some(scale[name].as_str()?.replace('.', "/"));
        let scale = pointer("specReplicasPath").map(|spec| ScalePaths {
            spec,
            status: pointer("statusReplicasPath").unwrap_or_default(),
            selector: pointer("labelSelectorPath"),
        });
        Self { schema: schema::custom(&given), given, scale }
    }
}
