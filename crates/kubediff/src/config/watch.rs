//! The part of the configuration that selects objects to watch.

use informer::{FieldSelector, ResourceType, Selector};
use serde::{Deserialize, Serialize};

use super::resource::ResourceName;
use super::value::Text;
use crate::model::glob::Glob;
use crate::model::gvk::Gvk;

/// The objects to watch. By default everything that the server lets kubediff list and watch, custom resources included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Watch {
    /// Resources, as kubectl names them: `deploy`, `deployments.apps`, `apps/v1/deployments`; an object as
    /// `deploy/cart`. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Objects that are not watched, although the other fields select them.
    #[serde(skip_serializing_if = "Exclude::is_empty")]
    pub exclude: Exclude,
    /// Namespaces by name. Default: all, and resources that have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Only objects with these labels, as `kubectl -l` has it: `app=cart,tier in (web,db)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Text<Selector>>,
    /// Only objects with these fields, as `kubectl --field-selector` has it. Not every resource takes every field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Text<FieldSelector>>,
}

/// Objects that are not watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Exclude {
    /// Resources, as kubectl names them: `secrets`, `*.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Text<ResourceName>>,
    /// Namespaces; `*` stands for any characters: `kube-*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Glob>,
}

impl Watch {
    /// Whether this resource is excluded.
    pub fn excludes(&self, resource: &ResourceType) -> bool {
        let gvk = Gvk::new(&resource.api_version(), &resource.kind);
        self.exclude.resources.iter().any(|name| name.matches(&gvk))
    }

    /// Whether this namespace is excluded.
    pub fn excludes_namespace(&self, namespace: &str) -> bool {
        self.exclude.namespaces.iter().any(|glob| glob.matches(namespace))
    }
}

impl Exclude {
    fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.namespaces.is_empty()
    }
}
