//! Whether an object is in the share that a reader keeps, before the object is stored.

use std::borrow::Cow;

use super::{ResponseReader, Unreadable};
use crate::share::{Share, ShareBy, hash};
use crate::wire::{ScanError, ScannedMessage, ScannedObject, controller_uid};
use crate::{ObjectKey, ResourceVersion};

/// The fields of an object that a share may hash.
pub(super) struct Hashed<'a> {
    key: &'a ObjectKey,
    version: ResourceVersion,
    uid: &'a str,
    owners: Owners<'a>,
}

/// Where the owners of an object are. They are read only if the share is by them.
enum Owners<'a> {
    Json(&'a [u8]),
    Protobuf(&'a ScannedMessage<'a>),
}

impl<'a> Hashed<'a> {
    pub(super) fn json(scanned: &'a ScannedObject<'_>, key: &'a ObjectKey, json: &'a [u8]) -> Self {
        let (version, uid) = (scanned.resource_version(), scanned.uid_text());
        Self { key, version, uid, owners: Owners::Json(json) }
    }

    pub(super) fn protobuf(scanned: &'a ScannedMessage<'a>) -> Self {
        let (version, uid) = (scanned.resource_version().clone(), scanned.uid_text());
        Self { key: scanned.key(), version, uid, owners: Owners::Protobuf(scanned) }
    }

    fn is_in(&self, share: &Share) -> Result<bool, Unreadable> {
        let value = match share.by() {
            ShareBy::Uid if self.uid.is_empty() => return Err(self.unreadable("the object has no uid")),
            ShareBy::Uid => Cow::Borrowed(self.uid),
            ShareBy::Namespace => Cow::Borrowed(self.key.namespace().unwrap_or_default()),
            ShareBy::ControllerUid => {
                let controller = self.owners.controller();
                match controller.map_err(|error| self.unreadable(&error.to_string()))? {
                    Some(uid) => uid,
                    None => return Ok(false),
                }
            }
        };
        Ok(share.ranges().contains(hash(&value)))
    }

    fn unreadable(&self, reason: &str) -> Unreadable {
        let (key, version) = (Some(self.key.clone()), Some(self.version.clone()));
        Unreadable { key, version, reason: reason.to_owned(), is_other_kind: false }
    }
}

impl Owners<'_> {
    fn controller(&self) -> Result<Option<Cow<'_, str>>, ScanError> {
        Ok(match self {
            Self::Json(json) => controller_uid(json)?.map(Cow::Owned),
            Self::Protobuf(scanned) => scanned.controller_uid()?.map(Cow::Borrowed),
        })
    }
}

impl ResponseReader {
    /// Whether the reader leaves an object out.
    pub(super) fn is_outside(&self, object: &Hashed<'_>) -> Result<bool, Unreadable> {
        self.share.as_ref().map_or(Ok(false), |share| Ok(!object.is_in(share)?))
    }
}
