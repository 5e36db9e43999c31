//! All resources of a server, and the resolution of names.

use super::DiscoveryError;
use super::documents::{Resource, Served};
use crate::options::resource::ResourceType;

/// All resources of a server that could be listed and watched when the server was asked.
///
/// ```no_run
/// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::DiscoveryError> {
/// let catalog = factory.catalog().await?;
/// let deployments = catalog.resource("deploy")?;
/// assert_eq!(deployments.to_string(), "deployments.v1.apps");
/// for resource in catalog.resources() {
///     println!("{resource}: {}", resource.kind);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    entries: Vec<Entry>,
    unavailable: Vec<String>,
}

#[derive(Debug, Clone)]
struct Entry {
    resource: ResourceType,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    /// Whether the server prefers this version of the resource.
    is_preferred: bool,
}

impl Catalog {
    /// Each resource once, in the version that the server prefers, in the server's order.
    pub fn resources(&self) -> impl Iterator<Item = &ResourceType> {
        self.preferred().map(|entry| &entry.resource)
    }

    /// Versions of API groups, as `group/version`, whose resources are unknown because the server did not report them. One
    /// reason is an aggregated API server that is down.
    pub fn unavailable(&self) -> &[String] {
        &self.unavailable
    }

    /// Resolves a name as kubectl does: a plural, singular, short name or kind, alone, with its group, or with version and
    /// group.
    ///
    /// | name | means |
    /// |---|---|
    /// | `deploy`, `deployment`, `deployments`, `Deployment` | the first group that has one, the core group before others |
    /// | `deployments.apps` | that of this group, in the version that the server prefers |
    /// | `deployments.v1.apps`, `apps/v1/deployments`, `v1/pods` | this version, preferred or not |
    ///
    /// # Errors
    ///
    /// When no resource has the name. The error names similar ones.
    pub fn resource(&self, name: &str) -> Result<&ResourceType, DiscoveryError> {
        let lower = name.to_lowercase();
        let found = match lower.rsplit_once('/') {
            Some((api_version, name)) => self
                .entries
                .iter()
                .find(|entry| entry.resource.api_version() == api_version && entry.is_called(name)),
            None => self.by_dotted_name(&lower),
        };
        let unknown = || DiscoveryError::unknown(name, self.similar(&lower), self.unavailable.clone());
        found.map(|entry| &entry.resource).ok_or_else(unknown)
    }

    /// The resources of a category, such as `all`, in the versions that the server prefers. Empty if the category has no
    /// resources.
    pub fn category(&self, name: &str) -> impl Iterator<Item = &ResourceType> {
        let entries = self.preferred().filter(move |entry| entry.categories.iter().any(|of| of == name));
        entries.map(|entry| &entry.resource)
    }

    /// Resolves a list of names as kubectl does. The names are separated by commas; each one is a category or a resource
    /// ([`Catalog::resource`]). The result has the order of the names, and each resource once.
    ///
    /// # Errors
    ///
    /// When a name is neither a category nor a resource.
    pub fn named(&self, names: &str) -> Result<Vec<ResourceType>, DiscoveryError> {
        let mut resources: Vec<ResourceType> = Vec::new();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let mut meant: Vec<_> = self.category(&name.to_lowercase()).cloned().collect();
            if meant.is_empty() {
                meant.push(self.resource(name)?.clone());
            }
            meant.retain(|resource| !resources.contains(resource));
            resources.append(&mut meant);
        }
        Ok(resources)
    }

    /// Adds the resources of one version of a group. The versions of a group are added in descending order of preference.
    pub(super) fn add(&mut self, served: Served) {
        if served.is_stale {
            self.leave_out(served.api_version());
        }
        let Served { group, version, resources, .. } = served;
        for resource in resources.into_iter().filter(Resource::is_watchable) {
            let of_group = self.entries.iter().rev().take_while(|entry| entry.resource.group == group);
            let is_preferred =
                !of_group.map(|entry| &entry.resource.plural).any(|known| *known == resource.plural);
            self.entries.push(Entry {
                resource: ResourceType {
                    group: group.clone(),
                    version: version.clone(),
                    plural: resource.plural,
                    kind: resource.kind,
                    namespaced: resource.namespaced,
                },
                singular: resource.singular,
                short_names: resource.short_names,
                categories: resource.categories,
                is_preferred,
            });
        }
    }

    pub(super) fn leave_out(&mut self, api_version: String) {
        self.unavailable.push(api_version);
    }

    fn by_dotted_name(&self, name: &str) -> Option<&Entry> {
        let Some((first, rest)) = name.split_once('.') else {
            return self.preferred().find(|entry| entry.is_called(name));
        };
        let with_version = rest.split_once('.').unwrap_or((rest, ""));
        let versioned = self.entries.iter().find(|entry| {
            entry.is_called(first)
                && (entry.resource.version.as_str(), entry.resource.group.as_str()) == with_version
        });
        let in_group = |entry: &&Entry| entry.is_called(first) && entry.resource.group == rest;
        versioned.or_else(|| self.preferred().find(in_group))
    }

    fn preferred(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_preferred)
    }

    /// The names of resources that begin like a name, or contain it.
    fn similar(&self, name: &str) -> Vec<String> {
        let stem = match name.rsplit_once('/') {
            Some((_, name)) => name,
            None => name.split('.').next().unwrap_or(name),
        };
        let start: String = stem.chars().take(4).collect();
        let is_similar = |entry: &&Entry| {
            let plural = &entry.resource.plural;
            plural.starts_with(&start) || (!stem.is_empty() && plural.contains(stem))
        };
        let similar = self.preferred().filter(is_similar).take(MOST_SIMILAR);
        similar.map(|entry| entry.resource.qualified_name()).collect()
    }
}

const MOST_SIMILAR: usize = 4;

impl Entry {
    fn is_called(&self, name: &str) -> bool {
        self.resource.plural == name
            || self.singular == name
            || self.short_names.iter().any(|short| short == name)
            || self.resource.kind.eq_ignore_ascii_case(name)
    }
}

impl Resource {
    fn is_watchable(&self) -> bool {
        ["list", "watch"].iter().all(|verb| self.verbs.iter().any(|known| known == verb))
    }
}
