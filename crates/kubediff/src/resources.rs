//! What the server has to watch, and which of it an argument means.

use std::collections::BTreeSet;
use std::fmt;

use informer::ResourceType;
use kube_client::Client;
use kube_core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};

/// All resources that can be listed and watched, in the server's order of preference.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    served: Vec<Served>,
}

#[derive(Debug, Clone)]
struct Served {
    resource: ResourceType,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    /// Whether the server prefers this version of it.
    preferred: bool,
}

/// An argument that names no resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server has no resource `{name}` that can be watched{}", Suggestion(.similar))]
pub struct UnknownResource {
    name: String,
    similar: Vec<String>,
}

/// The server does not say what it has.
#[derive(Debug, thiserror::Error)]
#[error("the server does not say which resources it has")]
pub struct DiscoveryFailed(#[source] Box<kube_client::Error>);

struct Suggestion<'a>(&'a [String]);

impl Catalog {
    /// Asks the server (aggregated discovery, Kubernetes 1.26 and later).
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn discover(client: &Client) -> Result<Self, DiscoveryFailed> {
        let failed = |error| DiscoveryFailed(Box::new(error));
        let core = client.list_core_api_versions_aggregated().await.map_err(failed)?;
        let groups = client.list_api_groups_aggregated().await.map_err(failed)?;
        Ok(Self::from_discovery([core, groups]))
    }

    /// Reads discovery documents.
    pub fn from_discovery(documents: impl IntoIterator<Item = APIGroupDiscoveryList>) -> Self {
        let mut catalog = Self::default();
        for group in documents.into_iter().flat_map(|document| document.items) {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            let mut seen = BTreeSet::new();
            for version in group.versions {
                let Some(version_name) = version.version else { continue };
                for resource in version.resources {
                    let Some(served) = Served::new(&name, &version_name, resource, &mut seen) else {
                        continue;
                    };
                    catalog.served.push(served);
                }
            }
        }
        catalog
    }

    /// Everything, each in its preferred version; without resources that have no namespace, if they are not wanted.
    pub fn everything(&self, cluster_scoped: bool) -> Vec<ResourceType> {
        self.preferred()
            .map(|served| &served.resource)
            .filter(|resource| resource.namespaced || cluster_scoped)
            // The same objects under another name.
            .filter(|resource| {
                (resource.group.as_str(), resource.plural.as_str()) != ("events.k8s.io", "events")
            })
            .cloned()
            .collect()
    }

    /// What the arguments mean, in their order, each once.
    ///
    /// # Errors
    ///
    /// When one of them means nothing that can be watched.
    pub fn resolve(&self, arguments: &[String]) -> Result<Vec<ResourceType>, UnknownResource> {
        let mut resources: Vec<ResourceType> = Vec::new();
        for name in arguments.iter().flat_map(|argument| argument.split(',')).filter(|name| !name.is_empty())
        {
            for resource in self.named(name)? {
                if !resources.contains(&resource) {
                    resources.push(resource);
                }
            }
        }
        Ok(resources)
    }

    /// By category, by `group/version/plural`, by `name.version.group` or `name.group`, or by name alone: plural,
    /// singular, short name or kind, as kubectl does.
    fn named(&self, name: &str) -> Result<Vec<ResourceType>, UnknownResource> {
        let lower = name.to_lowercase();
        let category: Vec<_> = self
            .preferred()
            .filter(|served| served.categories.contains(&lower))
            .map(|served| served.resource.clone())
            .collect();
        if !category.is_empty() {
            return Ok(category);
        }
        let found = match lower.rsplit_once('/') {
            Some((api_version, plural)) => self
                .served
                .iter()
                .find(|served| served.resource.api_version() == api_version && served.is_called(plural)),
            None => self.by_dotted_name(&lower),
        };
        match found {
            Some(served) => Ok(vec![served.resource.clone()]),
            None => Err(UnknownResource { name: name.to_owned(), similar: self.similar(&lower) }),
        }
    }

    fn by_dotted_name(&self, name: &str) -> Option<&Served> {
        let Some((first, rest)) = name.split_once('.') else {
            return self.preferred().find(|served| served.is_called(name));
        };
        let with_version = rest.split_once('.').unwrap_or((rest, ""));
        let versioned = self.served.iter().find(|served| {
            served.is_called(first)
                && (served.resource.version.as_str(), served.resource.group.as_str()) == with_version
        });
        versioned.or_else(|| {
            self.preferred().find(|served| served.is_called(first) && served.resource.group == rest)
        })
    }

    fn preferred(&self) -> impl Iterator<Item = &Served> {
        self.served.iter().filter(|served| served.preferred)
    }

    /// Names that begin alike, or hold the asked one.
    fn similar(&self, name: &str) -> Vec<String> {
        let stem = name.split(['.', '/']).next_back().filter(|_| name.contains('/'));
        let stem = stem.unwrap_or_else(|| name.split('.').next().unwrap_or(name));
        let start: String = stem.chars().take(4).collect();
        let names = self.preferred().map(|served| short_name(&served.resource));
        names.filter(|candidate| candidate.starts_with(&start) || candidate.contains(stem)).take(4).collect()
    }
}

impl Served {
    fn new(
        group: &str,
        version: &str,
        discovered: APIResourceDiscovery,
        seen: &mut BTreeSet<String>,
    ) -> Option<Self> {
        let plural = discovered.resource?;
        let kind = discovered.response_kind?.kind?;
        let watchable =
            ["list", "watch"].iter().all(|verb| discovered.verbs.iter().any(|known| known == verb));
        if !watchable {
            return None;
        }
        let resource = ResourceType {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.clone(),
            kind,
            namespaced: discovered.scope.as_deref() == Some("Namespaced"),
        };
        Some(Self {
            resource,
            singular: discovered.singular_resource.unwrap_or_default(),
            short_names: discovered.short_names,
            categories: discovered.categories,
            // Versions come in descending order of preference.
            preferred: seen.insert(plural),
        })
    }

    fn is_called(&self, name: &str) -> bool {
        self.resource.plural == name
            || self.singular == name
            || self.short_names.iter().any(|short| short == name)
            || self.resource.kind.eq_ignore_ascii_case(name)
    }
}

/// `plural.group`, or `plural` in the core group: how kubectl prints it.
pub fn short_name(resource: &ResourceType) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(f, "; `kubectl api-resources` lists what it has"),
            similar => write!(f, "; did you mean {}?", similar.join(", ")),
        }
    }
}
