//! Several clusters in one process: each is followed as by a daemon of its own, with a configuration of its own.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::check::Checks;
use super::place::FieldPath;
use super::{Config, Loaded, Sink};

/// The most clusters of a process.
const MOST: usize = 20;

/// A cluster by a context of the kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Member {
    /// The context.
    pub context: String,
    /// The name of the cluster in records, messages and the names of its files. Default: that of the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Member {
    fn name(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.context)
    }

    /// The file that this cluster has in place of another one.
    fn file(&self, file: &Path) -> PathBuf {
        let mut name = std::ffi::OsString::from(self.name());
        name.push(".");
        name.push(file.file_name().unwrap_or_default());
        file.with_file_name(name)
    }

    /// The configuration of a daemon for this cluster alone. All clusters have one key: equal values have equal hashes.
    fn config(&self, all: &Config) -> Config {
        let mut config = all.clone();
        config.clusters = None;
        config.cluster = Some(self.name().to_owned());
        config.key_file = Some(all.key_file());
        config.history.path = self.file(&all.history.path);
        for sink in config.sinks.values_mut() {
            if let Sink::File(file) = sink {
                file.path = self.file(&file.path);
            }
        }
        config
    }
}

impl Config {
    /// The configuration of each of `clusters`.
    pub(super) fn of_members(&self) -> Vec<Self> {
        self.clusters.iter().flatten().map(|member| member.config(self)).collect()
    }
}

impl Loaded {
    /// The configuration of each cluster, with its context: of the only one, without a context, where there are no `clusters`.
    pub(crate) fn members(&self) -> Vec<(Option<String>, Self)> {
        let Some(clusters) = &self.config.clusters else { return vec![(None, self.clone())] };
        let contexts = clusters.iter().map(|member| Some(member.context.clone()));
        let alone = |config| Self { config, ..self.clone() };
        contexts.zip(self.config.of_members().into_iter().map(alone)).collect()
    }

    /// The names of `clusters`; `None` for the only one where there are none.
    pub(crate) fn names(&self) -> Vec<Option<String>> {
        match &self.config.clusters {
            None => vec![None],
            Some(members) => members.iter().map(|member| Some(member.name().to_owned())).collect(),
        }
    }
}

impl Checks<'_> {
    pub(super) fn clusters(&mut self, config: &Config) {
        let root = FieldPath::default();
        let Some(clusters) = &config.clusters else { return };
        let all = root.field("clusters");
        if !(1..=MOST).contains(&clusters.len()) {
            let message = format!(
                "expected 1 to {MOST} clusters: a larger fleet has a daemon in each cluster, and one database"
            );
            self.wrong(&all, message);
        }
        if config.cluster.is_some() {
            self.wrong(&root.field("cluster"), "each of `clusters` has a name of its own: leave this out");
        }
        if config.web.is_some() {
            self.wrong(&root.field("web"), "the page is of one cluster, and there are `clusters`");
        }
        for (at, member) in clusters.iter().enumerate() {
            let (field, name) = (all.element(at), member.name());
            let before = clusters.iter().take(at);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || !name.chars().all(is_plain) {
                let field = if member.name.is_some() { field.field("name") } else { field };
                self.wrong(
                    &field,
                    "a cluster has a `name` of letters, digits, `-` and `_`, or such a context",
                );
            } else if before.clone().any(|other| other.name() == name) {
                self.wrong(&field, format!("another cluster has the name `{name}`: give each a `name`"));
            } else if before.clone().any(|other| other.context == member.context) {
                self.wrong(&field.field("context"), "another cluster has this context");
            }
        }
        for (name, sink) in &config.sinks {
            if let Sink::JetStream(stream) = sink
                && stream.stream.is_some()
            {
                let field = root.field("sinks").field(name).field("jetstream").field("stream");
                self.wrong(&field, "each of `clusters` has a stream, by its name: leave this out");
            }
        }
    }
}
