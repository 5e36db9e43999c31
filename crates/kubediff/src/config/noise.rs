//! The parts of the configuration that leave out noise and hide values.

use serde::{Deserialize, Serialize};

use super::resource::ResourceName;
use super::value::Text;
use crate::hide::noise::{InvalidNoise, Noise};
use crate::model::glob::Glob;
use crate::model::path::PathPattern;

/// Which differences are noise: they are counted, and neither stored nor told. `kubediff watch --list-noise` lists the
/// rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NoiseSettings {
    /// Rules to switch off: what they leave out is shown. `all` is every rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    /// Rules to switch on, such as `status`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// Paths that are noise as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<Ignore>,
}

/// Paths that are noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Ignore {
    /// The resource. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Text<ResourceName>>,
    /// In which namespaces; `*` stands for any characters. Default: everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Glob>,
    /// The paths: `spec.replicas`, `spec.template.spec.containers[web].image`.
    pub paths: Vec<Text<PathPattern>>,
}

/// Values that are shown, stored and sent as hashes, besides those of Secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Hide {
    /// The resource. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Text<ResourceName>>,
    /// Where the value is: `spec.token`.
    pub path: Text<PathPattern>,
}

impl NoiseSettings {
    /// The rules as they are to be.
    ///
    /// # Errors
    ///
    /// When there is no rule of a name.
    pub fn rules(&self) -> Result<Noise, InvalidNoise> {
        let mut noise = Noise::default();
        for (names, on) in [(&self.show, false), (&self.hide, true)] {
            for name in names {
                match name.as_str() {
                    "all" => noise.switch_all(on),
                    name => noise.switch(name, on)?,
                }
            }
        }
        for Ignore { resource, namespaces, paths } in &self.ignore {
            let scopes = scopes(resource.as_ref());
            for path in paths {
                noise.ignore_in(scopes.clone(), namespaces.clone(), path.0.clone());
            }
        }
        Ok(noise)
    }
}

impl Hide {
    /// The kinds that it is about.
    pub fn scopes(&self) -> Vec<crate::Scope> {
        scopes(self.resource.as_ref())
    }
}

fn scopes(resource: Option<&Text<ResourceName>>) -> Vec<crate::Scope> {
    resource.map_or_else(|| vec![crate::Scope::any()], |resource| resource.scopes().to_vec())
}
