//! Where the audit log of the API server comes from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::listen::Listen;
use super::value::{Secret, Text};
use super::web::TlsFiles;

/// The audit log of the API server: changes have the users whose requests made them. At least one of `log` and `webhook`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AuditSettings {
    /// The file that the API server writes (`--audit-log-path`), in JSON. It is followed when it rotates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// A listener to which the API server sends its events (`--audit-webhook-config-file`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<AuditWebhook>,
    /// Whether the history keeps the addresses from which requests came. Default: true.
    #[serde(default = "yes")]
    pub addresses: bool,
}

/// A listener for the audit events of the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AuditWebhook {
    /// Where it is: `:9443`, `127.0.0.1:9443`.
    pub listen: Text<Listen>,
    /// The certificate. Without TLS, an API server sends no token.
    pub tls: TlsFiles,
    /// What the API server has to send as a bearer token. It is read at the start.
    pub token: Secret,
}

fn yes() -> bool {
    true
}
