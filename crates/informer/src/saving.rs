//! Saves a cache and starts from it, so that a restart has no blind spot (design D10, contract P).

mod error;
mod keeper;
mod replace;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use informer_core::saved::{self, Saved};
use informer_core::{Shelf, View};

use crate::informer::Informer;
use crate::resource::ResourceType;
use crate::runtime::Runtime;
use crate::selection::Selection;
use crate::shared::Savable;

pub(crate) use error::Unnamed;
pub use error::{LoadError, SaveError};
pub(crate) use keeper::keep;
use replace::Step;

/// How a factory's informers save themselves.
#[derive(Debug, Clone)]
pub(crate) struct Saving {
    pub(crate) directory: PathBuf,
    /// Zero: at the stop only.
    pub(crate) period: Duration,
    /// Whether Secrets are saved, too.
    pub(crate) secrets: bool,
}

/// What a saved cache is of.
pub(crate) type Description = [(&'static str, String); 7];

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
    /// How many objects were taken from it.
    pub objects: usize,
}

impl<T: View> Informer<T> {
    /// Saves the cache as it is now, with the version that it reflects, for [`Informer::load`] in a later process.
    /// [`FactoryBuilder::saved_in`](crate::FactoryBuilder::saved_in) does both by itself.
    ///
    /// The file is replaced in one step: whenever the process or the machine ends, the old one is there, or the new one.
    /// Nobody waits for this: it works on a snapshot, on a thread for blocking work.
    ///
    /// **The file has the objects as they are in the cache, unencrypted: Secrets too, where this is an informer of Secrets.** On
    /// Unix only its owner may read it (mode 0600).
    ///
    /// ```no_run
    /// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = factory.informer::<Pod>();
    /// match pods.load("/var/cache/shop/pods").await {
    ///     Ok(loaded) => println!("{} pods as they were", loaded.objects),
    ///     // They are listed.
    ///     Err(error) => println!("no pods to begin with: {}", informer::error_chain(&error)),
    /// }
    /// factory.start();
    /// // ...
    /// pods.save("/var/cache/shop/pods").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no content yet, the file cannot be written, or what the cache is of has no name: the server's, where
    /// the factory was made from a client or transport of one's own or tweaks list options
    /// ([`FactoryBuilder::server_name`](crate::FactoryBuilder::server_name)), or the transform's
    /// ([`Transform::named`](crate::Transform::named)).
    ///
    /// # Cancel safety
    ///
    /// Safe: the file is written all the same, only the waiting ends.
    pub async fn save(&self, path: impl AsRef<Path>) -> Result<SavedCache, SaveError> {
        let core = self.core();
        let description = core.description()?;
        let savable = core.savable().await.ok_or_else(SaveError::given_up)?;
        write(core.runtime(), path.as_ref().to_owned(), description, savable).await
    }

    /// Begins with a cache that was saved. Before the start.
    ///
    /// Its objects can be read at once, and are told as the first content. Nobody knows yet how old they are, so the
    /// informer is not synced before a server has said that it has come as far and goes on from there. What has happened
    /// since the save is then told as live changes. Where the server does not remember that far back, it is found out by a
    /// list, and told as part of the first content, deletions included ([`DeleteReason::Missed`](crate::DeleteReason::Missed)).
    ///
    /// Namespaces that the file lacks are listed as usual, those that are not looked at any more are left out.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is damaged, or is of something else: another resource, selector, kind of content,
    /// transform (by name) or server (by URL and certificate authority, or by name). Then nothing has changed, and the
    /// informer lists. What the function that tweaks list options does is not known here: name what it
    /// selects in the server's name, which it needs then.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is loaded then.
    pub async fn load(&self, path: impl AsRef<Path>) -> Result<LoadedCache, LoadError> {
        let core = self.core();
        if core.is_begun() {
            return Err(LoadError::already_started(&core.resource));
        }
        let limit = core.settings.item_limit;
        let saved =
            read(core.runtime(), path.as_ref().to_owned(), core.description()?, limit, core.shelf.clone());
        let objects = core.load(saved.await?).ok_or_else(|| LoadError::already_started(&core.resource))?;
        Ok(LoadedCache { objects })
    }
}

impl Saving {
    /// Whether this resource is saved. The metadata of Secrets is none of them, but it often repeats what is in them: `kubectl
    /// apply` notes the whole object in an annotation.
    fn takes(&self, resource: &ResourceType) -> bool {
        self.secrets || (resource.group.as_str(), resource.plural.as_str()) != ("", "secrets")
    }

    /// The file of one informer: named after its resource, and told from others by all that it is of, and where.
    fn file(&self, resource: &ResourceType, selection: &Selection, description: &Description) -> PathBuf {
        let mut sum = crc32fast::Hasher::new();
        let namespaces = selection.namespaces().map(|namespaces| namespaces.join(","));
        let texts = description.iter().map(|(_, text)| text).chain(&namespaces);
        for text in texts {
            sum.update(text.as_bytes());
            sum.update(&[0]);
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
        let name = resource.to_string().replace(|letter| !is_plain(letter), "_");
        self.directory.join(format!("{name}-{:08x}.cache", sum.finalize()))
    }
}

async fn write(
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

/// Tells `reached` of each step that was made.
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

async fn read(
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
