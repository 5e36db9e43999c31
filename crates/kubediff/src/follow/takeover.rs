//! Going on where another process has ended.

use jiff::Timestamp;

use super::definitions::Definitions;
use super::error::WatchError;
use super::shadow::{Led, Recorded};
use super::{Follow, Target};

/// The cause of a gap that has not come to its end, if the process does not see that.
const LISTED_AGAIN: &str = "another process took over, and had not listed it again";

impl Follow {
    /// Records from now on, after what another process has recorded. A target of which this process has missed something is listed again.
    /// Returns how many those are.
    ///
    /// # Errors
    ///
    /// When an informer cannot be made.
    pub(crate) async fn lead(&mut self, recorded: &Recorded) -> Result<(usize, Led), WatchError> {
        let led = self.inbox.lead(recorded);
        let is_asked = |target: &&Target| {
            let state = self.targets.get(target);
            // A list that was refused may have been none of this process's.
            !led.whole.contains(&target.text())
                && (state.is_some_and(|it| it.is_synced) || !self.denials.has(target))
        };
        let again: Vec<Target> = self.targets.keys().filter(is_asked).cloned().collect();
        for target in &again {
            self.streams.stop(target).await;
            self.outages.forget(target);
        }
        if !again.is_empty() {
            // They may have shared an informer that has stopped.
            self.definitions = Definitions::new(&self.factory)?;
            self.announced = false;
        }
        let now = Timestamp::now();
        let since = recorded.watched_until.map_or(now, |until| until.min(now));
        for target in &again {
            // Until it is listed: if it cannot be, nobody may think that it is watched.
            self.tell_lost(target, since, LISTED_AGAIN.to_owned());
            self.watch(target.clone(), true, now)?;
        }
        if again.is_empty() {
            self.tell_resources();
        }
        Ok((again.len(), led))
    }
}
