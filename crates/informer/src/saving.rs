//! Saves a cache and starts from it, so that a restart has no blind spot (design D10, contract P).

mod error;
mod replace;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use informer_core::saved::{self, Saved};
use informer_core::{Checkpoint, Shelf};

use crate::options::resource::ResourceType;
use crate::options::runtime::Runtime;
use crate::options::selection::Selection;

pub(crate) use error::Unnamed;
pub use error::{LoadError, SaveError};
use replace::Step;
pub(crate) use replace::{make_directory, remove_abandoned};

/// The origin of a saved cache: names and values, such as its server and resource.
pub(crate) type Description = [(&'static str, String); 8];

/// The content of a saved file.
pub(crate) struct Savable {
    pub(crate) checkpoint: Checkpoint,
    /// The fingerprint of the schema that the content was read with; empty while it is unknown.
    pub(crate) schema: String,
}

/// A cache that was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedCache {
    /// How many objects it has.
    pub objects: usize,
    /// The length of the file.
    pub bytes: u64,
}

/// A cache that was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedCache {
    /// The number of objects that were loaded.
    pub objects: usize,
}

/// The file of one informer. Its name consists of the resource and a checksum of the description and the namespaces.
pub(crate) fn file(
    directory: &Path,
    resource: &ResourceType,
    selection: &Selection,
    description: &Description,
) -> PathBuf {
    let mut sum = crc32fast::Hasher::new();
    let namespaces = selection.namespaces().map(|namespaces| namespaces.join(","));
    let texts = description.iter().map(|(_, text)| text).chain(&namespaces);
    for text in texts {
        sum.update(text.as_bytes());
        sum.update(&[0]);
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
    let name = resource.to_string().replace(|letter| !is_plain(letter), "_");
    directory.join(format!("{name}-{:08x}.cache", sum.finalize()))
}

pub(crate) async fn write(
    runtime: &Runtime,
    path: PathBuf,
    description: Description,
    savable: Savable,
) -> Result<SavedCache, SaveError> {
    if savable.checkpoint.sources.is_empty() {
        return Err(SaveError::empty());
    }
    let written = runtime.blocking(move || write_now(&path, &description, &savable, &mut |_: Step| ()));
    written.await.unwrap_or_else(|| Err(SaveError::given_up()))
}

/// Writes the file, and calls `reached` after each step.
fn write_now(
    path: &Path,
    description: &Description,
    Savable { checkpoint, schema }: &Savable,
    reached: &mut dyn FnMut(Step),
) -> Result<SavedCache, SaveError> {
    let (objects, bytes) = replace::replace(path, reached, |file| {
        Ok(saved::save_with_note(file, description, schema, checkpoint)?)
    })?;
    Ok(SavedCache { objects, bytes })
}

pub(crate) async fn read(
    runtime: &Runtime,
    path: PathBuf,
    description: Description,
    limit: usize,
    shelf: Arc<Shelf>,
) -> Result<Saved, LoadError> {
    let read = runtime.blocking(move || {
        let file = File::open(path).map_err(saved::LoadError::io)?;
        Ok(saved::load(BufReader::with_capacity(BUFFER, file), &description, limit, &*shelf)?)
    });
    read.await.unwrap_or_else(|| Err(LoadError::given_up()))
}

const BUFFER: usize = 64 * 1024;
