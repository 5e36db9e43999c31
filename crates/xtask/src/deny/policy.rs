//! The part of `deny.toml` that xtask itself reads.

use std::str::FromStr;

use serde::Deserialize;

use tooling::Error;

#[derive(Deserialize)]
pub(super) struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that only one crate may have.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
    /// The crates that may depend on it nevertheless.
    #[serde(default)]
    wrappers: Vec<String>,
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::format("deny.toml", error))
    }
}

impl Policy {
    /// Whether the policy allows the crate to have this licence.
    pub(super) fn allows(&self, name: &str, licence: &str) -> bool {
        let Licenses { allow, exceptions } = &self.licenses;
        let own = exceptions.iter().filter(|exception| exception.name == name).flat_map(|it| &it.allow);
        allow.iter().chain(own).any(|id| id == licence)
    }

    /// Why the crate is banned, if it is; `users` are the crates that depend on it.
    pub(super) fn ban(&self, name: &str, users: &[&str]) -> Option<&str> {
        let ban = self.bans.deny.iter().find(|ban| ban.name == name)?;
        let is_wrapper = |user: &&str| ban.wrappers.iter().any(|wrapper| wrapper == user);
        let is_wrapped = !ban.wrappers.is_empty() && users.iter().all(is_wrapper);
        (!is_wrapped).then_some(ban.reason.as_str())
    }
}
