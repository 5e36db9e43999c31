//! How far the list and watch of a scope have come.

use informer_core::Scope;
use informer_core::engine::{Answer, Question, Reach};
use tokio::sync::oneshot;

use super::Core;
use super::driver::Message;
use crate::lock::lock;

impl Core {
    /// The reach of the scope that covers a namespace (`None`: a cluster-wide object). Returns `None` if no scope covers
    /// it.
    pub(crate) async fn reach(&self, namespace: Option<&str>) -> Option<Reach> {
        let scope = self.covering(namespace)?;
        if let Some(reach) = self.resting_reach(&scope) {
            return Some(reach);
        }
        let (answer, asked) = oneshot::channel();
        if self.messages.send(Message::Ask(Question::Reach(scope.clone()), answer)).is_ok()
            && let Ok(Answer::Reach(reach)) = asked.await
        {
            return Some(reach.unwrap_or_default());
        }
        // The driver has ended meanwhile, and returned the engine.
        Some(self.resting_reach(&scope).unwrap_or_default())
    }

    /// Whether a list and watch, if any is to run, covers a namespace.
    pub(crate) fn selects_namespace(&self, namespace: Option<&str>) -> bool {
        self.covering(namespace).is_some()
    }

    fn covering(&self, namespace: Option<&str>) -> Option<Scope> {
        let setup = lock(&self.setup);
        let own = namespace.map(Scope::of_namespace);
        own.into_iter().chain([Scope::All]).find(|scope| setup.scopes.contains(scope))
    }

    /// The reach before the start and after the stop, when no driver has the engine.
    fn resting_reach(&self, scope: &Scope) -> Option<Reach> {
        let setup = lock(&self.setup);
        Some(setup.engine.as_ref()?.reach(scope).ok().flatten().unwrap_or_default())
    }
}
