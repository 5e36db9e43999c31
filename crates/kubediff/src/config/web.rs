//! The page of the daemon, for a team.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::listen::Listen;
use super::value::Text;

/// A page for users of the cluster: they enter with a token, and see what the cluster lets them list and get.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WebSettings {
    /// Where the page is: `:8443`, `127.0.0.1:8443`.
    pub listen: Text<Listen>,
    /// The certificate. It may be left out where only this machine reaches the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
}

/// A certificate and its key, in PEM. The files are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TlsFiles {
    /// The file of the certificate, and of those between it and its authority.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
}
