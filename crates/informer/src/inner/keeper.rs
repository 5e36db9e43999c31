//! Loads an informer's file at its start, and saves to it periodically and at the stop.
//!
//! A failure goes to the log and the metrics, and the informer continues: without a file it lists. The next save overwrites
//! a file that was refused.

use std::path::Path;
use std::sync::Arc;

use informer_core::saved::Saved;
use informer_core::store::SourcePoint;
use tokio::time::sleep;

use super::Core;
use crate::error_chain;
use crate::options::saving::Saving;
use crate::saving::{
    Description, LoadError, Savable, SaveError, SavedCache, file, make_directory, read, remove_abandoned,
    write,
};

/// Runs from the start of an informer to its end. With `loads`, the informer waits for its file before it starts.
pub(crate) async fn keep(core: Arc<Core>, saving: Saving, loads: bool) {
    let resource = &core.resource;
    if !saving.takes(resource) {
        tracing::info!(%resource, selection = %core.selection, "the informer is not saved: Secrets are left out unless `save_secrets` asks for them");
        return core.begin(None);
    }
    let description = match core.description() {
        Ok(description) => description,
        Err(error) => {
            tracing::warn!(%resource, selection = %core.selection, %error, "the informer is not saved");
            return core.begin(None);
        }
    };
    let path = file(&saving.directory, resource, &core.selection, &description);
    if loads {
        let saved = tokio::select! {
            biased;
            () = core.life.stopping() => return,
            saved = open(&core, &path, &description) => saved,
        };
        core.begin(saved);
    }
    let mut keeper = Keeper { saved: None, fails: false, core: &core };
    if loads {
        keeper.saved = core.savable().await.as_ref().map(Mark::of);
    }
    loop {
        let stops = tokio::select! {
            biased;
            () = core.life.stopping() => true,
            () = sleep(saving.period), if !saving.period.is_zero() => false,
        };
        keeper.save(&path, &description).await;
        if stops {
            return;
        }
    }
}

/// The content of the file, if the file is valid.
async fn open(core: &Core, path: &Path, description: &Description) -> Option<Saved> {
    let resource = &core.resource;
    let (file, limit) = (path.to_owned(), core.settings.item_limit);
    match read(core.runtime(), file, description.clone(), limit, core.shelf.clone()).await {
        Ok(saved) => {
            tracing::info!(%resource, selection = %core.selection, objects = saved.objects.len(), "starting from the saved cache");
            Some(saved)
        }
        Err(error) if LoadError::is_not_found(&error) => None,
        Err(error) => {
            let error = error_chain(&error);
            tracing::warn!(%resource, selection = %core.selection, path = %path.display(), error, "the saved cache cannot be used: the informer lists");
            None
        }
    }
}

struct Keeper<'a> {
    core: &'a Core,
    /// The state in the file.
    saved: Option<Mark>,
    /// Whether the last save failed, which the log has already.
    fails: bool,
}

/// Identifies a state of a cache.
#[derive(PartialEq, Eq)]
struct Mark {
    revision: u64,
    sources: Vec<SourcePoint>,
    schema: String,
}

impl Mark {
    fn of(Savable { checkpoint, schema }: &Savable) -> Self {
        let (revision, sources) = (checkpoint.snapshot.revision(), checkpoint.sources.clone());
        Self { revision, sources, schema: schema.clone() }
    }
}

impl Keeper<'_> {
    /// Saves the cache, unless the file has that state already.
    async fn save(&mut self, path: &Path, description: &Description) {
        // The file belongs to the resource that the informer was made for.
        if self.core.has_followed() {
            return;
        }
        let Some(savable) = self.core.savable().await else { return };
        let mark = Mark::of(&savable);
        if self.saved.as_ref() == Some(&mark) || mark.sources.is_empty() {
            return;
        }
        let resource = &self.core.resource;
        match self.write(path, description, savable).await {
            Ok(SavedCache { objects, bytes }) => {
                tracing::debug!(%resource, objects, bytes, "the informer was saved");
                self.core.counters.saves.add(1);
                (self.saved, self.fails) = (Some(mark), false);
            }
            Err(error) => {
                self.core.counters.failed_saves.add(1);
                if !std::mem::replace(&mut self.fails, true) {
                    let error = error_chain(&error);
                    tracing::warn!(%resource, selection = %self.core.selection, path = %path.display(), error, "the informer cannot be saved");
                }
            }
        }
    }

    async fn write(
        &self,
        path: &Path,
        description: &Description,
        savable: Savable,
    ) -> Result<SavedCache, SaveError> {
        let runtime = self.core.runtime();
        let own = path.to_owned();
        let prepared = runtime.blocking(move || {
            make_directory(own.parent().unwrap_or(&own))?;
            remove_abandoned(&own);
            Ok(())
        });
        if let Some(Err(error)) = prepared.await {
            return Err(SaveError::file("prepared for")(error));
        }
        write(runtime, path.to_owned(), description.clone(), savable).await
    }
}
