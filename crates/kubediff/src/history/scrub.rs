//! A scrub by command: of a value, or of what is at a path, in chosen objects. The command does it itself, or leaves the order beside
//! the history for the daemon that writes to it.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use kubediff_history::{Details, KindName, Mask, ObjectId, Scope as Objects};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::path::{InvalidPattern, PathPattern};
use crate::{Scope, Secrets};

/// The cause that the history names.
pub(crate) const CAUSE: &str = "by `kubediff history scrub`";

/// An order to mask a value or a path in some objects. It has hashes in place of the value.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// Tells orders apart.
    pub(crate) id: u64,
    pub(crate) objects: Objects,
    pub(crate) path: Option<String>,
    /// The prints of the value, with its namespace.
    pub(crate) prints: Vec<(String, Vec<u8>)>,
}

/// An order to scrub that cannot be carried out, or left to the daemon.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// Its file cannot be written, read or removed.
    #[error("{} cannot be used", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its file has something else.
    #[error("{} is no order of `kubediff history scrub`; give the command again", file.display())]
    Form {
        /// The file.
        file: PathBuf,
    },
    /// Its path is none, or must not be masked.
    #[error("the path cannot be masked")]
    Path(#[source] InvalidPattern),
    /// The history cannot be written.
    #[error(transparent)]
    History(kubediff_history::Error),
    /// The daemon says why it did not carry it out.
    #[error("the daemon did not mask it: {0}")]
    Refused(String),
    /// The daemon cannot know the value.
    #[error(
        "the value was hashed with another key than the daemon's; put the daemon's `keyFile` beside the history, as `kubediff.key`"
    )]
    Key,
}

impl Order {
    /// Where an order for the daemon of this history lies.
    pub(crate) fn file_beside(history: &Path) -> PathBuf {
        beside(history, "-scrub")
    }

    /// Leaves it for the daemon, unless another order waits there.
    pub(crate) fn leave(&self, history: &Path) -> Result<bool, OrderError> {
        let file = Self::file_beside(history);
        let new = beside(history, &format!("-scrub-new-{:016x}", self.id));
        let write = || {
            write_new(&new, &serde_json::to_vec(self)?)?;
            // Unlike a rename, a link takes the place of no other order.
            let linked = fs::hard_link(&new, &file);
            fs::remove_file(&new)?;
            linked
        };
        match write() {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(OrderError::File { file, source }),
        }
    }

    /// The order that waits for the daemon of this history.
    pub(crate) fn waiting(history: &Path) -> Result<Option<Self>, OrderError> {
        let file = Self::file_beside(history);
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| OrderError::Form { file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(OrderError::File { file, source }),
        }
    }

    /// Takes away the order that waits: it was carried out, or cannot be, for this reason, which is left for its command.
    pub(crate) fn done(
        history: &Path,
        order: Option<&Self>,
        refused: Option<&OrderError>,
    ) -> Result<(), OrderError> {
        let file = Self::file_beside(history);
        let answer = match (order, refused) {
            (Some(order), Some(why)) => write_new(&order.answer(history), why.to_string().as_bytes()),
            _ => Ok(()),
        };
        answer.and_then(|()| fs::remove_file(&file)).map_err(|source| OrderError::File { file, source })
    }

    /// Whether the daemon has carried it out; the daemon's reason, if it cannot.
    pub(crate) fn is_done(&self, history: &Path) -> Result<bool, OrderError> {
        match Self::waiting(history) {
            Ok(Some(waiting)) if waiting.id == self.id => return Ok(false),
            Err(error @ OrderError::File { .. }) => return Err(error),
            _ => {}
        }
        let answer = self.answer(history);
        match fs::read_to_string(&answer) {
            Ok(why) => {
                fs::remove_file(&answer).map_err(|source| OrderError::File { file: answer, source })?;
                Err(OrderError::Refused(why))
            }
            Err(_) => Ok(true),
        }
    }

    /// The file with the daemon's reason.
    fn answer(&self, history: &Path) -> PathBuf {
        beside(history, &format!("-scrub-refused-{:016x}", self.id))
    }

    /// The mask that carries it out, with the key of these secrets.
    pub(crate) fn mask(&self, like: &Secrets) -> Result<Chosen, OrderError> {
        let mut secrets = like.with_same_key();
        if !secrets.restore(&self.prints).is_empty() {
            return Err(OrderError::Key);
        }
        if let Some(path) = &self.path {
            let path: PathPattern = path.parse().map_err(OrderError::Path)?;
            path.may_hide().map_err(OrderError::Path)?;
            secrets.hide(Scope::any(), path);
        }
        Ok(Chosen { secrets, objects: self.objects.clone() })
    }
}

fn beside(history: &Path, end: &str) -> PathBuf {
    let mut file = OsString::from(history);
    file.push(end);
    file.into()
}

/// Writes a file for its owner alone, and through no link.
fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Of a run that was killed.
    let _ = fs::remove_file(file);
    let mut written = options.write(true).create_new(true).open(file)?;
    written.write_all(bytes)?;
    written.sync_all()
}

/// Masks in the chosen objects.
pub(crate) struct Chosen {
    secrets: Secrets,
    objects: Objects,
}

impl Chosen {
    fn has(&self, object: &ObjectId) -> bool {
        let Objects { kinds, namespaces, name, .. } = &self.objects;
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let is_of = |kind: &KindName| kind.resource == object.resource && is(&kind.group, &object.gvk.group);
        let namespace = object.namespace.as_deref().unwrap_or_default();
        (kinds.is_empty() || kinds.iter().any(is_of))
            && (namespaces.is_empty() || namespaces.iter().any(|it| it == namespace))
            && is(name, &object.name)
    }
}

impl Mask for Chosen {
    fn object(&self, object: &ObjectId, content: &mut Value) {
        if self.has(object) {
            self.secrets.object(object, content);
        }
    }

    fn change(&self, object: &ObjectId, details: Details<'_>) {
        if self.has(object) {
            self.secrets.change(object, details);
        }
    }

    fn text(&self, text: &mut String) {
        if self.objects == Objects::default() {
            Mask::text(&self.secrets, text);
        }
    }
}
