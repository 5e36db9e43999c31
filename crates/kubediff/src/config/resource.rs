//! Resources by the names that kubectl takes.

use std::fmt;
use std::str::FromStr;

use informer::{Catalog, ResourceType};

use crate::model::gvk::{Gvk, Scope};
use crate::model::targets::is_version;

/// Resources by a name that kubectl takes: `deployments`, `Deployment`, `deploy`, `deployments.apps`,
/// `apps/v1/deployments`. `*` is every resource, `*.example.com` every one of a group.
///
/// A name stands for the resource in all its versions. Short names and categories need the server
/// ([`resolve`](Self::resolve)).
#[derive(Debug, Clone)]
pub struct ResourceName {
    text: String,
    scopes: Vec<Scope>,
    /// `ingresses.networking.k8s.io`, as the server names what is meant.
    resources: Vec<String>,
}

/// A text that cannot be the name of a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be a resource: expected a name that kubectl takes, such as deployments.apps, Secret or apps/v1/deployments"
)]
pub struct InvalidResource(String);

impl ResourceName {
    /// Asks the server what the name stands for. Returns whether it knows it.
    pub fn resolve(&mut self, catalog: &Catalog) -> bool {
        if self.text.starts_with('*') {
            return true;
        }
        let Ok(resources) = catalog.named(&self.text) else { return false };
        self.scopes = resources.iter().map(|resource| scope(&resource.kind, &resource.group)).collect();
        self.resources = resources.iter().map(ResourceType::qualified_name).collect();
        true
    }

    /// Whether it stands for this kind.
    pub fn matches(&self, gvk: &Gvk) -> bool {
        self.scopes.iter().any(|scope| scope.matches(gvk))
    }

    /// Whether it stands for every object of this resource, which is named as `deployments.apps`.
    pub(crate) fn means(&self, resource: &str) -> bool {
        let is_named = self.resources.iter().any(|name| name == resource);
        is_named || self.text.starts_with('*') && self.has_group_of(resource)
    }

    /// Whether it may stand for this resource. A name that the server does not know yet may be any resource of its group.
    pub(crate) fn may_mean(&self, resource: &str) -> bool {
        self.means(resource) || self.resources.is_empty() && self.has_group_of(resource)
    }

    fn has_group_of(&self, resource: &str) -> bool {
        let group = resource.split_once('.').map_or("", |(_, group)| group);
        self.scopes.iter().any(|scope| scope.has_group(group))
    }

    /// The kinds that it stands for.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name without a version, if it has one: `ingresses.networking.k8s.io`.
    pub fn in_any_version(&self) -> Option<String> {
        let (group, name) = match *self.text.split('/').collect::<Vec<_>>() {
            [group, _, name] => (group, name),
            [_, name] => ("", name),
            _ => {
                let (name, rest) = self.text.split_once('.')?;
                let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
                if !is_version(version) {
                    return None;
                }
                (group, name)
            }
        };
        Some(if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") })
    }
}

/// By its text: its meaning comes from the server.
impl PartialEq for ResourceName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ResourceName {}

impl FromStr for ResourceName {
    type Err = InvalidResource;

    fn from_str(text: &str) -> Result<Self, InvalidResource> {
        let invalid = || InvalidResource(text.to_owned());
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-.*/_".contains(c);
        let parts: Vec<&str> = text.split('/').collect();
        if !text.chars().all(is_allowed) || parts.len() > 3 || parts.iter().any(|part| part.is_empty()) {
            return Err(invalid());
        }
        let mut name = Self { text: text.to_owned(), scopes: Vec::new(), resources: Vec::new() };
        let plain = name.in_any_version().unwrap_or_else(|| text.to_owned());
        name.scopes = vec![match plain.split_once('.') {
            Some((kind, group)) => scope(kind, group),
            // `v1/pods` is of the core group; `pods` is of any.
            None if plain != text => scope(&plain, ""),
            None => any_group(&plain),
        }];
        Ok(name)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn scope(kind: &str, group: &str) -> Scope {
    let Ok(scope) = format!("{kind}.{}", if group.is_empty() { "core" } else { group }).parse();
    scope
}

fn any_group(kind: &str) -> Scope {
    let Ok(scope) = kind.parse();
    scope
}

#[cfg(test)]
mod tests {
    use super::ResourceName;
    use crate::model::gvk::Gvk;

    #[test]
    fn a_name_stands_for_a_kind() {
        let ingress = Gvk::new("networking.k8s.io/v1", "Ingress");
        let pod = Gvk::new("v1", "Pod");
        for (name, gvk, expected) in [
            ("ingresses", &ingress, true),
            ("Ingress", &ingress, true),
            ("ingresses.networking.k8s.io", &ingress, true),
            ("ingresses.v1.networking.k8s.io", &ingress, true),
            ("networking.k8s.io/v1beta1/ingresses", &ingress, true),
            ("extensions/v1beta1/ingresses", &ingress, false),
            ("v1/ingresses", &ingress, false),
            ("*.networking.k8s.io", &ingress, true),
            ("*", &pod, true),
            ("v1/pods", &pod, true),
            ("Pod.core", &pod, true),
            ("pods", &pod, true),
            ("pod", &pod, true),
            ("po", &pod, false),
        ] {
            let name: ResourceName = name.parse().unwrap();
            assert_eq!(name.matches(gvk), expected, "{name} {gvk:?}");
        }
        for text in ["", "a b", "a/b/c/d", "apps//deployments", "deploy,cm"] {
            assert!(text.parse::<ResourceName>().is_err(), "{text}");
        }
    }
}
