//! The configuration of `kubediff serve`, in YAML.
//!
//! [`Config::read`] reads a file, or the file `config.yaml` of a folder. Mistakes come with file, line, column and field, all
//! of them at once; unwise settings come as [`Warning`]s. The file of arriqaaq/kubediff is read
//! as it is.
//!
//! ```
//! use kubediff::config::Config;
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("kubediff.yaml");
//! std::fs::write(&file, "watch:\n  resource: [deploy]\n")?;
//! let error = Config::read(&file).expect_err("there is no such field").to_string();
//! assert!(error.ends_with("kubediff.yaml:2:3: watch.resource: there is no such field; did you mean `resources`?"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use informer::Catalog;
use kubediff_history::Cluster;
use serde::{Deserialize, Serialize};

pub use args::{CheckArgs, ConfigArgs, ConfigCommand, ConvertArgs};
pub use audit::{AuditSettings, AuditWebhook};
pub use clusters::Member;
pub use connect::{Connection, NotConnected};
pub use error::{ConfigError, Problem};
pub use history::{Events, HistorySettings, PlaceError, PostgresSettings, Retention};
pub use listen::{InvalidListen, Listen};
pub use noise::{Hide, Ignore, NoiseSettings};
pub use place::Place;
pub use resource::{InvalidResource, ResourceName};
pub use route::{Match, Milestones, Route, Severity};
pub use run::SCHEMA;
pub use secrets::SecretsSettings;
pub use sink::{
    FileSettings, Format, JetStreamSettings, Method, Sink, SlackSettings, StdoutSettings, WebhookSettings,
};
pub use value::{InvalidMode, InvalidPeriod, InvalidSize, Mode, Period, Secret, SecretError, Size, Text};
pub use warning::{Note, Warning};
pub use watch::{Exclude, Watch};
pub use web::{TlsFiles, WebSettings};

use crate::HashKey;
use crate::model::targets::Target;
use place::FieldPath;
use tree::Node;

mod args;
mod arriqaaq;
mod audit;
mod check;
mod clusters;
mod connect;
mod decode;
mod error;
mod files;
mod history;
mod listen;
mod noise;
mod place;
mod resource;
mod route;
pub(crate) mod run;
#[cfg(test)]
mod schema;
mod secrets;
mod sink;
mod targets;
mod tree;
mod value;
mod warning;
mod watch;
mod web;

/// The configuration of `kubediff serve`. Every field has a default: an empty file watches everything, and keeps the
/// history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The name of the cluster in records and messages. Default: its name in the kubeconfig, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Several clusters for this process, by contexts of the kubeconfig. Default: one, as the command line says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<Member>>,
    /// The objects to watch.
    pub watch: Watch,
    /// Where the history is, and how much of it is kept.
    pub history: HistorySettings,
    /// Which differences are noise.
    pub noise: NoiseSettings,
    /// Values that are shown, stored and sent as hashes, besides those of Secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<Hide>,
    /// How values of Secrets are found in other objects.
    pub secrets: SecretsSettings,
    /// The key of these hashes. Default: beside the history, as `kubediff.key`. It is made when it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Where changes are sent, by a name of your choice.
    pub sinks: BTreeMap<String, Sink>,
    /// Which changes go where. Default: every change to every sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Route>>,
    /// Where `/healthz`, `/readyz` and `/metrics` are: `:8080`, `127.0.0.1:8080`; `null` for nowhere.
    pub listen: Option<Text<Listen>>,
    /// A request for `/status` or `/metrics` has to send this as a bearer token. Default: none has to. It is read at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_token: Option<Secret>,
    /// The page for users of the cluster. Default: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<WebSettings>,
    /// The audit log of the API server, for the users of changes. Default: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditSettings>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster: None,
            clusters: None,
            watch: Watch::default(),
            history: HistorySettings::default(),
            noise: NoiseSettings::default(),
            hide: Vec::new(),
            secrets: SecretsSettings::default(),
            key_file: None,
            sinks: BTreeMap::new(),
            routes: None,
            listen: Some(Text(Listen::default())),
            listen_token: None,
            web: None,
            audit: None,
        }
    }
}

/// A configuration that was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Valid settings that are unwise.
    pub warnings: Vec<Warning>,
    /// The file. Relative paths in it begin where it is.
    pub file: Arc<PathBuf>,
    /// Whether it is a file of arriqaaq/kubediff.
    pub is_arriqaaq: bool,
    tree: Node,
}

/// The file in a folder, as arriqaaq/kubediff has it.
const FILE: &str = "config.yaml";

impl Config {
    /// Reads a file, or the file `config.yaml` of a folder.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or when something is wrong in it.
    pub fn read(path: &Path) -> Result<Loaded, ConfigError> {
        let file = file_in(path);
        let text = std::fs::read_to_string(&file)
            .map_err(|source| ConfigError::Unreadable { file: file.clone(), source })?;
        Self::of_text(&text, file)
    }

    /// Reads a text as the content of a file.
    ///
    /// # Errors
    ///
    /// When something is wrong in it.
    pub fn of_text(text: &str, file: impl Into<PathBuf>) -> Result<Loaded, ConfigError> {
        let file = Arc::new(file.into());
        let tree = Node::read(text)
            .map_err(|malformed| ConfigError::Invalid(vec![Problem::syntax(&file, malformed)]))?;
        let is_arriqaaq = arriqaaq::is_arriqaaq(&tree);
        let read = if is_arriqaaq { arriqaaq::read(&tree) } else { check::read(&tree) };
        let at = |(field, mark, message)| Problem::new(&file, field, mark, message);
        let (config, notes) =
            read.map_err(|faults| ConfigError::Invalid(faults.into_iter().map(at).collect()))?;
        let members = config.of_members();
        let shared = std::iter::once(&config).chain(&members).map(|config| files::shared(config, &file));
        let shared = shared.into_iter().find(|shared| !shared.is_empty()).unwrap_or_default().into_iter();
        let shared: Vec<_> =
            shared.map(|(field, message)| at((field.clone(), tree.mark_of(&field), message))).collect();
        if !shared.is_empty() {
            return Err(ConfigError::Invalid(shared));
        }
        let warn = |(field, note)| Warning::new(place_of(&tree, &file, &field), note);
        let warnings = notes.into_iter().map(warn).collect();
        Ok(Loaded { config, warnings, file, is_arriqaaq, tree })
    }

    /// Where the key of the hashes is.
    pub fn key_file(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| HashKey::file_of_daemon(&self.history.path))
    }

    /// Asks the server what the names of resources stand for. Until then, short names and categories stand for nothing in
    /// `exclude`, `noise`, `hide` and `routes`.
    pub fn resolve(&mut self, catalog: &Catalog) {
        for name in self.names_mut() {
            name.resolve(catalog);
        }
    }

    /// The configured resources among those of the server.
    pub fn targets(&self, catalog: &Catalog) -> Vec<Target> {
        targets::of(&self.watch, catalog)
    }

    fn names_mut(&mut self) -> impl Iterator<Item = &mut ResourceName> {
        let excluded = self.watch.exclude.resources.iter_mut();
        let ignored = self.noise.ignore.iter_mut().filter_map(|ignore| ignore.resource.as_mut());
        let hidden = self.hide.iter_mut().filter_map(|hide| hide.resource.as_mut());
        let routed = self.routes.iter_mut().flatten().flat_map(|route| route.matches.resources.iter_mut());
        excluded.chain(ignored).chain(hidden).chain(routed).map(|name| &mut name.0)
    }
}

impl Loaded {
    /// The folder where relative paths begin.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// The files that it depends on: its own, and those with the secrets of sinks.
    pub fn files(&self) -> Vec<PathBuf> {
        let sinks = self.config.sinks.values();
        let secrets = sinks.flat_map(|sink| sink.files()).map(|file| self.folder().join(file));
        std::iter::once(self.file.as_ref().clone()).chain(secrets).collect()
    }

    /// Whether all sinks can be set up, now that their secrets are read. Nothing is sent.
    ///
    /// # Errors
    ///
    /// When one of them cannot.
    pub(crate) fn test(&self) -> Result<(), NotConnected> {
        let cluster = Cluster { uid: String::new(), name: None };
        self.config.sinks.iter().try_for_each(|(name, sink)| self.connect(name, sink, &cluster).map(drop))
    }

    /// The resources of the configuration that the server does not have.
    pub fn unserved(&self, catalog: &Catalog) -> Vec<Warning> {
        let of = |(field, note)| Warning::new(place_of(&self.tree, &self.file, &field), note);
        targets::unserved(&self.config, self.is_arriqaaq, catalog).into_iter().map(of).collect()
    }
}

/// The file that is meant: in a folder, the one that arriqaaq/kubediff has there.
pub(crate) fn file_in(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE) } else { path.to_owned() }
}

fn place_of(tree: &Node, file: &Arc<PathBuf>, field: &FieldPath) -> Place {
    let mark = tree.mark_of(field);
    Place { file: file.clone(), line: mark.line, column: mark.column, field: field.to_string() }
}
