//! Where the history is, and how much of it is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kubediff_history::{self as history, Location};
use serde::{Deserialize, Serialize};

use super::value::{Period, Secret, SecretError, Size, Text};

/// Why there is no place for the history.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The address cannot be read.
    #[error("history.postgres.url: {0}")]
    Secret(#[from] SecretError),
    /// The address is none.
    #[error("history.postgres.url: {0}")]
    Address(#[from] history::Error),
}

/// Where the history is, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HistorySettings {
    /// The file. It is made when it does not exist. With `postgres`, the key of the hashes is beside it, and nothing else.
    pub path: PathBuf,
    /// A database instead of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<PostgresSettings>,
    /// How much is kept.
    pub retention: Retention,
    /// The Events of the cluster. They are no changes: `kubediff log --events` shows them, and no sink gets them.
    pub events: Events,
}

/// A history in PostgreSQL, beside those of other clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PostgresSettings {
    /// Its address: `postgres://USER@HOST/DATABASE`. `passwordfile=FILE` in it names a file with the password alone, which is read at each connection.
    pub url: Secret,
}

/// Which Events are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Events {
    /// Whether any are.
    pub keep: bool,
    /// The age up to which they are kept: `3d`. At least `1h`.
    pub age: Text<Period>,
    /// The part of `retention.size` that they may take.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub share: f64,
}

impl Default for Events {
    fn default() -> Self {
        Self { keep: true, age: Text(Period(Duration::from_secs(3 * 24 * 60 * 60))), share: 0.2 }
    }
}

/// How much of the history is kept. The first limit that is reached counts. The newest version of an object that exists is
/// always kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Retention {
    /// Changes younger than this: `30d`. At least `1h`; `null` for no limit.
    pub age: Option<Text<Period>>,
    /// About so much of the file: `8GiB`. At least `64MiB`; `null` for no limit.
    pub size: Option<Text<Size>>,
    /// The number of latest changes to keep. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub changes: Option<u64>,
    /// Up to so many changes are kept although they are to go, because a sink has not taken them.
    pub unsent: u64,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self {
            path: PathBuf::from("/var/lib/kubediff/history.db"),
            postgres: None,
            retention: Retention::default(),
            events: Events::default(),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            age: Some(Text(Period(Duration::from_secs(30 * 24 * 60 * 60)))),
            size: Some(Text(Size(8 << 30))),
            changes: None,
            unsent: 1_000_000,
        }
    }
}

impl HistorySettings {
    /// Where the history is. Paths begin in this folder.
    ///
    /// # Errors
    ///
    /// When the address cannot be read, or is none.
    pub fn location(&self, folder: &Path) -> Result<Location, PlaceError> {
        match &self.postgres {
            None => Ok(Location::File(folder.join(&self.path))),
            Some(postgres) => Ok(Location::Database(history::Address::parse(&postgres.url.reveal(folder)?)?)),
        }
    }

    /// The limits, for the history.
    pub fn limits(&self) -> history::Retention {
        let Retention { age, size, changes, unsent } = &self.retention;
        let bytes = size.as_ref().map(|size| size.0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of some GiB, to about a byte"
        )]
        let share = |bytes: u64| (bytes as f64 * self.events.share) as u64;
        history::Retention {
            age: age.as_ref().map(|age| age.0.0),
            count: *changes,
            bytes,
            for_sinks: *unsent,
            event_age: Some(self.events.age.0.0),
            event_bytes: bytes.map(share),
        }
    }
}
