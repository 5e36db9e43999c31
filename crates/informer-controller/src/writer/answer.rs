//! The server's answer to a write: the object as written, or a status after a deletion.

use std::sync::Arc;

use informer::kube::client;
use informer::share::{self, ShareBy};
use informer::{Labels, ObjectKey, ResourceVersion, Uid};
use informer_core::wire;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// An answer, read as far as every write needs it: of an object only the metadata before its managed fields.
pub(super) struct Answer {
    /// The whole answer, for the caller's type.
    json: Arc<str>,
    is_object: bool,
    name: Option<String>,
    uid: Option<Uid>,
    version: Option<ResourceVersion>,
    labels: Labels,
}

/// An answer that is no object.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    details: Details,
}

/// The object that a status is about.
#[derive(Default, Deserialize)]
struct Details {
    name: Option<String>,
    uid: Option<String>,
}

impl Answer {
    pub(super) fn read(json: String) -> Result<Self, client::Error> {
        if let Ok(object) = wire::scan_object(json.as_bytes()) {
            return Ok(Self {
                is_object: true,
                name: Some(object.name().to_owned()),
                uid: Some(object.uid()).filter(|uid| !uid.is_unset()),
                version: Some(object.resource_version()).filter(|version| !version.is_unset()),
                // Labels that are no strings select nothing.
                labels: object.labels().unwrap_or_default(),
                json: json.into(),
            });
        }
        // Only an object has a name in its metadata.
        let Status { kind, details } = serde_json::from_str(&json).map_err(client::Error::SerdeError)?;
        Ok(Self {
            is_object: kind != "Status",
            name: details.name,
            uid: details.uid.as_deref().map(Uid::new),
            version: None,
            labels: Labels::default(),
            json: json.into(),
        })
    }

    /// The whole answer.
    pub(super) fn decode<K: DeserializeOwned>(&self) -> Result<K, client::Error> {
        serde_json::from_str(&self.json).map_err(client::Error::SerdeError)
    }

    pub(super) fn json(&self) -> &Arc<str> {
        &self.json
    }

    /// Whether it is the object as written.
    pub(super) fn is_object(&self) -> bool {
        self.is_object
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }

    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        self.version.as_ref()
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// By which the object with this key belongs to a share.
    pub(super) fn hash(&self, by: ShareBy, key: &ObjectKey) -> Option<u64> {
        match by {
            ShareBy::Namespace => Some(share::hash(key.namespace().unwrap_or_default())),
            ShareBy::Uid => self.uid.as_ref().map(|uid| share::hash(&uid.to_string())),
            ShareBy::ControllerUid => {
                let uid = wire::controller_uid(self.json.as_bytes()).ok().flatten();
                uid.map(|uid| share::hash(&uid))
            }
        }
    }
}
