//! Saves an informer's cache, and begins with a saved one.

use std::path::Path;

use informer_core::View;

use super::Informer;
use crate::saving::{LoadError, LoadedCache, SaveError, SavedCache, read, write};

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
