//! The saved part of a cache, and the start from a loaded one (design D10).

use std::sync::Arc;

use informer_core::engine::{Answer, Engine, Lent, Question};
use informer_core::saved::Saved;
use informer_core::share::Share;
use tokio::sync::oneshot;

use super::driver::Message;
use super::{Core, Phase, Setup};
use crate::lock::lock;
use crate::options::settings::Representation;
use crate::saving::{Description, Savable, Unnamed};

impl Core {
    /// The content to be saved now. `None` if user code does not return, not even for a stop.
    pub(crate) async fn savable(&self) -> Option<Savable> {
        if let Some(savable) = self.resting() {
            return Some(savable);
        }
        let (answer, asked) = oneshot::channel();
        if self.messages.send(Message::Ask(Question::Checkpoint, answer)).is_ok()
            && let Ok(Answer::Checkpoint(checkpoint, schema)) = asked.await
        {
            return Some(Savable { checkpoint: *checkpoint, schema });
        }
        // The driver has ended meanwhile, and returned the engine.
        self.resting()
    }

    /// The content before the start and after the stop, when no driver has the engine.
    fn resting(&self) -> Option<Savable> {
        savable(lock(&self.setup).engine.as_ref()?).ok()
    }

    /// The cluster, resource and selection that the cache is of. Namespaces are not part of it: each one is saved with its
    /// own version.
    pub(crate) fn description(&self) -> Result<Description, Unnamed> {
        let chosen = self.chosen();
        let transform = match &chosen.transform {
            None => String::new(),
            Some(transform) => transform.name().ok_or(Unnamed::Transform)?,
        };
        let content = match chosen.representation {
            Representation::Whole => "whole",
            Representation::Metadata => "metadata",
        };
        Ok([
            ("server", self.server.name().ok_or(Unnamed::Server)?.to_owned()),
            ("resource", self.served().to_string()),
            ("kind", self.served().kind.clone()),
            ("label selector", self.selection.labels().to_string()),
            ("field selector", self.selection.fields().to_string()),
            ("share", self.selection.share().map(Share::to_string).unwrap_or_default()),
            ("content", content.to_owned()),
            ("transform", transform),
        ])
    }

    /// Whether it is too late to load a saved cache.
    pub(crate) fn is_begun(&self) -> bool {
        lock(&self.setup).phase != Phase::New
    }

    /// Loads a saved cache. Returns the number of its objects, or `None` if it is too late.
    pub(crate) fn load(&self, saved: Saved) -> Option<usize> {
        let mut setup = lock(&self.setup);
        if setup.phase != Phase::New || self.life.is_stopped() {
            return None;
        }
        setup.phase = Phase::Loaded;
        Some(self.begin_with(&mut setup, saved))
    }

    /// Starts an informer that waited for its file, with the file's content if there is any.
    pub(crate) fn begin(self: &Arc<Self>, saved: Option<Saved>) {
        let mut setup = lock(&self.setup);
        if setup.phase != Phase::Loading {
            return;
        }
        if let Some(saved) = saved {
            self.begin_with(&mut setup, saved);
        }
        self.run(&mut setup);
    }

    fn begin_with(&self, setup: &mut Setup, saved: Saved) -> usize {
        let saved =
            if self.settings.decodes_managed_fields { saved } else { saved.skipping_managed_fields() };
        let Setup { engine, scopes, .. } = setup;
        if let Some(engine) = engine {
            engine.load(saved, scopes);
            self.publish_all(engine);
        }
        self.progress.changed();
        self.cache.len()
    }
}

fn savable(engine: &Engine) -> Result<Savable, Lent> {
    Ok(Savable { checkpoint: engine.checkpoint()?, schema: engine.content_schema().to_owned() })
}
