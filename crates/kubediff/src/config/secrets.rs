//! The part of the configuration that is about values of Secrets in other objects.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value::{Period, Text};

/// How values of Secrets are found in other objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SecretsSettings {
    /// How long a change with a text that looks like a secret waits for the Secret that has it, and all changes after it: `1s`. Others
    /// are recorded at once.
    pub wait: Text<Period>,
}

impl Default for SecretsSettings {
    fn default() -> Self {
        Self { wait: Text(Period(Duration::from_secs(1))) }
    }
}
