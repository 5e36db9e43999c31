//! Where the history is, and how much of it is kept.

use std::path::PathBuf;
use std::time::Duration;

use kubediff_history as history;
use serde::{Deserialize, Serialize};

use super::value::{Period, Size, Text};

/// Where the history is, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HistorySettings {
    /// The file. It is made when it does not exist.
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: PathBuf,
    /// How much is kept.
    pub retention: Retention,
}

/// How much of the history is kept. The first limit that is reached counts. The newest version of an object that exists is
/// always kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Retention {
    /// Changes younger than this: `30d`. At least `1h`; `null` for no limit.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub age: Option<Text<Period>>,
    /// About so much of the file: `8GiB`. At least `64MiB`; `null` for no limit.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
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
        Self { path: PathBuf::from("/var/lib/kubediff/history.db"), retention: Retention::default() }
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

impl Retention {
    /// The same for the history.
    pub fn limits(&self) -> history::Retention {
        history::Retention {
            age: self.age.as_ref().map(|age| age.0.0),
            count: self.changes,
            bytes: self.size.as_ref().map(|size| size.0.0),
            for_sinks: self.unsent,
        }
    }
}
