//! The clusters of a process: one, or several that do not hold each other up. Each of several has threads of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime;
use tokio::task::JoinSet;

use super::control::{Control, Next};
use super::endpoint::{Endpoint, Part};
use super::{ServeError, keep};
use crate::args::ServeArgs;
use crate::config::Loaded;
use crate::text::terminal::{say, speak_of};

/// A cluster that failed is tried again after this time.
const AGAIN: Duration = Duration::from_secs(60);

/// A cluster of several.
struct Member {
    args: ServeArgs,
    loaded: Loaded,
    part: Part,
    control: Control,
    /// How many clusters have failed and are not tried at the moment.
    failed: Arc<AtomicUsize>,
    /// How many clusters there are.
    count: usize,
}

/// Follows the cluster, or all of several, until somebody asks for the end.
///
/// # Errors
///
/// When it fails; of several, when all have failed: the first one that did so last.
pub(super) async fn run(
    args: &ServeArgs,
    loaded: Loaded,
    endpoint: &Endpoint,
    mut control: Control,
) -> Result<(), ServeError> {
    if loaded.config.clusters.is_none() {
        let mut loaded = loaded;
        return keep(args, &mut loaded, &endpoint.part(0), &mut control).await;
    }
    let members = loaded.members();
    let (failed, count) = (Arc::<AtomicUsize>::default(), members.len());
    let mut threads = JoinSet::new();
    for (at, (context, loaded)) in members.into_iter().enumerate() {
        let name = loaded.config.cluster.clone().unwrap_or_default();
        let mut args = args.clone();
        args.cluster.context = context;
        let (part, control) = (endpoint.part(at), control.of(&name));
        let member = Member { args, loaded, part, control, failed: failed.clone(), count };
        let runtime = {
            let name = name.clone();
            let mut builder = runtime::Builder::new_multi_thread();
            builder.worker_threads(1).enable_all().on_thread_start(move || speak_of(&name));
            builder.build().map_err(ServeError::Threads)?
        };
        threads.spawn_blocking(move || {
            speak_of(&name);
            let ended = runtime.block_on(Box::pin(member.run()));
            runtime.shutdown_background();
            ended.map_err(|source| ServeError::Member { cluster: name, source: Box::new(source) })
        });
    }
    let mut ended = Ok(());
    while let Some(member) = threads.join_next().await {
        if let Err(error) = member.map_err(ServeError::Ended).flatten() {
            control.end();
            ended = ended.and(Err(error));
        }
    }
    ended
}

impl Member {
    /// Follows the cluster until somebody asks for the end, and tries again when that fails.
    ///
    /// # Errors
    ///
    /// When all others have failed, too.
    async fn run(mut self) -> Result<(), ServeError> {
        loop {
            let kept = keep(&self.args, &mut self.loaded, &self.part, &mut self.control).await;
            let Err(error) = kept else { return Ok(()) };
            if self.failed.fetch_add(1, Ordering::SeqCst) + 1 == self.count {
                return Err(error);
            }
            say(&format!("{}; trying again", informer::error_chain(&error)));
            self.part.waits(error.to_string());
            tokio::select! {
                biased;
                next = self.control.next() => match next {
                    Next::End => return Ok(()),
                    Next::Reload(next) => self.loaded = *next,
                },
                () = tokio::time::sleep(AGAIN) => {}
            }
            self.failed.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
