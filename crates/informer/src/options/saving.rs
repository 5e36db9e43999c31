//! How a factory's informers are saved.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::resource::ResourceType;

/// Where a factory's informers are saved, when, and which.
#[derive(Debug, Clone)]
pub(crate) struct Saving {
    pub(crate) directory: PathBuf,
    /// Zero: saves happen only at the stop.
    pub(crate) period: Duration,
    /// Whether Secrets are saved, too.
    pub(crate) secrets: bool,
}

impl Saving {
    /// Whether this resource is saved. The metadata of Secrets is left out too, because it often repeats their content:
    /// `kubectl apply` writes the whole object into an annotation.
    pub(crate) fn takes(&self, resource: &ResourceType) -> bool {
        self.secrets || (resource.group.as_str(), resource.plural.as_str()) != ("", "secrets")
    }
}
