//! Saves an informer's cache, and loads a saved one.

use std::path::Path;

use informer_core::View;

use super::Informer;
use crate::saving::{LoadError, LoadedCache, SaveError, SavedCache, read, write};

impl<T: View> Informer<T> {
    /// Saves the cache as it is now, with the version that it reflects, for [`Informer::load`] in a later process.
    /// [`FactoryBuilder::saved_in`](crate::FactoryBuilder::saved_in) does both by itself.
    ///
    /// The file is replaced in one step: if the process or the machine stops at any moment, the old file or the new one
    /// exists. The save blocks no reader and no watch: it works on a snapshot, on a thread for blocking work.
    ///
    /// The file contains the cache, and not what is pending for subscribers: a deletion that a subscriber has not taken at the
    /// time of the save is not reported to the process that loads the file.
    ///
    /// **The file contains the objects as they are in the cache, unencrypted, and the Secrets of an informer of Secrets.**
    /// On Unix only its owner may read it (mode 0600).
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
    /// When the initial list is not complete yet, the file cannot be written, or a name is missing. The server needs a name
    /// ([`FactoryBuilder::server_name`](crate::FactoryBuilder::server_name)) if the factory was made from a client or
    /// transport of your own, or tweaks list options. A transform of JSON or of a type needs one too
    /// ([`Transform::named`](crate::Transform::named)).
    ///
    /// # Cancel safety
    ///
    /// Safe: the file is written all the same; only the wait ends.
    pub async fn save(&self, path: impl AsRef<Path>) -> Result<SavedCache, SaveError> {
        let core = self.core();
        let description = core.description()?;
        let savable = core.savable().await.ok_or_else(SaveError::given_up)?;
        write(core.runtime(), path.as_ref().to_owned(), description, savable).await
    }

    /// Loads a saved cache, before the informer is started.
    ///
    /// The loaded objects can be read at once, and are dispatched as the initial list. Nothing shows yet how old they are:
    /// the informer becomes synced only when a server has confirmed that it has reached the saved version, and resumes the
    /// watch from there. Changes since the save then arrive as live changes. If the server no longer has that history, a
    /// list reveals the changes. They are dispatched as part of the initial list, deletions included
    /// ([`DeleteReason::Missed`](crate::DeleteReason::Missed)).
    ///
    /// Namespaces that the file lacks are listed as usual. Namespaces that the informer no longer selects are left out.
    ///
    /// # Errors
    ///
    /// When the file does not exist, is damaged, or belongs to another resource, selector, representation, transform (by
    /// name) or server (by URL and certificate authority, or by name). The informer is unchanged then, and lists. The file
    /// does not record what a function that tweaks list options does. Such a factory needs a server name: let it say what
    /// the function selects.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is loaded.
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
