//! The discovery documents, as far as they are needed. Servers may omit any field.

use serde::Deserialize;

/// The resources of one version of an API group.
pub(super) struct Served {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resources: Vec<Resource>,
    /// The API server behind this version did not answer: the resources are those of its last answer, or none.
    pub(super) is_stale: bool,
}

/// A resource. Its subresources are left out.
pub(super) struct Resource {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) verbs: Vec<String>,
}

/// An answer of `/api` or `/apis`.
pub(super) enum Document {
    /// Everything: the versions of each group in descending order of preference.
    Aggregated(Vec<Served>),
    /// The versions that must be asked one by one, in the same order.
    Versions(Vec<GroupVersion>),
}

/// A version of an API group; the core group has no name.
pub(super) struct GroupVersion {
    group: String,
    version: String,
}

impl GroupVersion {
    pub(super) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub(super) fn path(&self) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        format!("/{root}/{}", self.api_version())
    }

    pub(super) fn with(self, resources: Vec<Resource>) -> Served {
        Served { group: self.group, version: self.version, resources, is_stale: false }
    }
}

impl Served {
    pub(super) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

impl Document {
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        let Kind { kind } = serde_json::from_slice(json).ok()?;
        match kind.as_str() {
            "APIGroupDiscoveryList" => {
                let list: wire::GroupDiscoveryList = serde_json::from_slice(json).ok()?;
                Some(Self::Aggregated(
                    list.items.into_iter().flat_map(wire::GroupDiscovery::served).collect(),
                ))
            }
            "APIVersions" => {
                let wire::Versions { versions } = serde_json::from_slice(json).ok()?;
                let versions =
                    versions.into_iter().map(|version| GroupVersion { group: String::new(), version });
                Some(Self::Versions(versions.collect()))
            }
            "APIGroupList" => {
                let list: wire::GroupList = serde_json::from_slice(json).ok()?;
                Some(Self::Versions(list.groups.into_iter().flat_map(wire::Group::versions).collect()))
            }
            _ => None,
        }
    }
}

/// The resources of an `APIResourceList`.
pub(super) fn resources(json: &[u8]) -> Option<Vec<Resource>> {
    let list: wire::ResourceList = serde_json::from_slice(json).ok()?;
    let resources = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    Some(resources.map(wire::Resource::read).collect())
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// The documents as they are written.
mod wire {
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct GroupDiscoveryList {
        #[serde(default)]
        pub(super) items: Vec<GroupDiscovery>,
    }

    #[derive(Deserialize)]
    pub(super) struct GroupDiscovery {
        #[serde(default)]
        metadata: Metadata,
        #[serde(default)]
        versions: Vec<VersionDiscovery>,
    }

    #[derive(Deserialize, Default)]
    struct Metadata {
        #[serde(default)]
        name: String,
    }

    #[derive(Deserialize)]
    struct VersionDiscovery {
        version: String,
        #[serde(default)]
        resources: Vec<ResourceDiscovery>,
        #[serde(default)]
        freshness: String,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ResourceDiscovery {
        resource: String,
        response_kind: Option<ResponseKind>,
        #[serde(default)]
        scope: String,
        #[serde(default)]
        singular_resource: String,
        #[serde(default)]
        verbs: Vec<String>,
        #[serde(default)]
        short_names: Vec<String>,
        #[serde(default)]
        categories: Vec<String>,
    }

    #[derive(Deserialize)]
    struct ResponseKind {
        #[serde(default)]
        kind: String,
    }

    #[derive(Deserialize)]
    pub(super) struct Versions {
        #[serde(default)]
        pub(super) versions: Vec<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct GroupList {
        #[serde(default)]
        pub(super) groups: Vec<Group>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Group {
        name: String,
        #[serde(default)]
        versions: Vec<GroupVersion>,
        preferred_version: Option<GroupVersion>,
    }

    #[derive(Deserialize)]
    struct GroupVersion {
        version: String,
    }

    #[derive(Deserialize)]
    pub(super) struct ResourceList {
        #[serde(default)]
        pub(super) resources: Vec<Resource>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Resource {
        pub(super) name: String,
        #[serde(default)]
        singular_name: String,
        #[serde(default)]
        namespaced: bool,
        #[serde(default)]
        kind: String,
        #[serde(default)]
        verbs: Vec<String>,
        #[serde(default)]
        short_names: Vec<String>,
        #[serde(default)]
        categories: Vec<String>,
    }

    impl GroupDiscovery {
        pub(super) fn served(self) -> impl Iterator<Item = super::Served> {
            let group = self.metadata.name;
            self.versions.into_iter().map(move |version| super::Served {
                group: group.clone(),
                version: version.version,
                resources: version.resources.into_iter().filter_map(ResourceDiscovery::read).collect(),
                is_stale: version.freshness == "Stale",
            })
        }
    }

    impl ResourceDiscovery {
        /// Decodes a resource. One without a kind has only subresources that are served, and is left out.
        fn read(self) -> Option<super::Resource> {
            Some(super::Resource {
                plural: self.resource,
                singular: self.singular_resource,
                kind: self.response_kind?.kind,
                namespaced: self.scope == "Namespaced",
                short_names: self.short_names,
                categories: self.categories,
                verbs: self.verbs,
            })
        }
    }

    impl Group {
        pub(super) fn versions(self) -> impl Iterator<Item = super::GroupVersion> {
            let preferred = self.preferred_version.map(|preferred| preferred.version).unwrap_or_default();
            let mut versions: Vec<_> = self.versions.into_iter().map(|version| version.version).collect();
            // The sort is stable: the other versions stay in the server's order.
            versions.sort_by_key(|version| *version != preferred);
            let group = self.name;
            versions.into_iter().map(move |version| super::GroupVersion { group: group.clone(), version })
        }
    }

    impl Resource {
        pub(super) fn read(self) -> super::Resource {
            super::Resource {
                plural: self.name,
                singular: self.singular_name,
                kind: self.kind,
                namespaced: self.namespaced,
                short_names: self.short_names,
                categories: self.categories,
                verbs: self.verbs,
            }
        }
    }
}
