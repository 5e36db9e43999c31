//! The packages of the workspace and their dependencies, as cargo reports them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use tooling::{Error, process};

/// The part of `cargo metadata` that xtask uses.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
    resolve: Option<Resolve>,
}

/// The packages that are built with the enabled features.
#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    /// Ids of packages.
    dependencies: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) manifest_path: PathBuf,
    /// The registry or git URL; `None` for a path in this repository.
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    /// The registries that it may be published to; `None` for all.
    #[serde(default)]
    pub(crate) publish: Option<Vec<String>>,
    /// `package.metadata`: settings of other tools.
    pub(crate) metadata: Option<Settings>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Settings {
    docs: Option<Docs>,
}

#[derive(Debug, Default, Deserialize)]
struct Docs {
    rs: DocsRs,
}

/// The settings of docs.rs.
#[derive(Debug, Default, Deserialize)]
struct DocsRs {
    #[serde(default)]
    features: Vec<String>,
}

/// One line of a `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` or `build`; `None` for a normal dependency.
    pub(crate) kind: Option<String>,
    /// Whether only a feature enables it.
    #[serde(default)]
    pub(crate) optional: bool,
}

impl Package {
    /// The name of its folder, which for some crates is shorter than the package's name.
    pub(crate) fn folder(&self) -> &str {
        let folder = self.manifest_path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        folder.unwrap_or(&self.name)
    }

    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    /// The name of its archive, without extension, and of the folder in it.
    pub(crate) fn file_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// The features with which docs.rs builds its page.
    pub(crate) fn docs_rs_features(&self) -> &[String] {
        let docs = self.metadata.as_ref().and_then(|settings| settings.docs.as_ref());
        docs.map_or(&[], |docs| &docs.rs.features)
    }
}

impl Metadata {
    /// The workspace's own packages. Needs no network.
    pub(crate) fn workspace(root: &Path) -> Result<Self, Error> {
        Self::ask(root, &["--no-deps", "--offline"])
    }

    /// All packages that any target of the workspace is built from.
    pub(crate) fn all(root: &Path) -> Result<Self, Error> {
        Self::ask(root, &["--all-features"])
    }

    /// The names of the packages that depend on each, by its id.
    pub(crate) fn users(&self) -> HashMap<&str, Vec<&str>> {
        let names: HashMap<&str, &str> =
            self.packages.iter().map(|package| (package.id.as_str(), package.name.as_str())).collect();
        let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
        for node in self.resolve.iter().flat_map(|resolve| &resolve.nodes) {
            let Some(user) = names.get(node.id.as_str()) else { continue };
            for dependency in &node.dependencies {
                users.entry(dependency).or_default().push(user);
            }
        }
        users
    }

    fn ask(root: &Path, options: &[&str]) -> Result<Self, Error> {
        let mut command = process::cargo(root);
        command.args(["metadata", "--format-version", "1"]).args(options);
        let json = process::output(&mut command)?;
        serde_json::from_str(&json).map_err(|error| Error::format("cargo metadata", error))
    }
}
