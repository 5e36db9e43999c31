//! The runtime of the tasks: one thread of the factory's own for the connections, or the caller's runtime.
//!
//! To read, decode and pack on one current-thread runtime costs half of the CPU that the same work costs on a
//! multi-threaded one, where it wakes other threads (design D3a).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

/// A place to spawn tasks.
#[derive(Clone)]
pub(crate) struct Runtime {
    handle: Handle,
    /// Whether work that blocks runs where it is asked for, instead of on a thread.
    inline: bool,
    /// Ends the thread with the last clone.
    _thread: Option<Arc<Thread>>,
}

struct Thread {
    end: Option<oneshot::Sender<()>>,
}

/// When the thread ends, its tasks have been asked to stop. The thread waits for them for this long at most.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Runtime {
    /// The runtime that the caller runs on.
    pub(crate) fn current() -> Result<Self, tokio::runtime::TryCurrentError> {
        Ok(Self { handle: Handle::try_current()?, inline: false, _thread: None })
    }

    /// This runtime, which uses no thread for blocking work.
    pub(crate) fn inline(self) -> Self {
        Self { inline: true, ..self }
    }

    /// A new thread with a runtime of its own.
    pub(crate) fn own_thread() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new().name("informer".to_owned()).spawn(move || {
            // An error means that the sender was dropped, which ends the thread as well.
            let _ = runtime.block_on(ended);
            runtime.shutdown_timeout(LAST_WORDS);
        })?;
        Ok(Self { handle, inline: false, _thread: Some(Arc::new(Thread { end: Some(end) })) })
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// Runs `work` on this runtime. `None` if it panicked, or the runtime ended. Dropping the future cancels it.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        work: impl Future<Output = R> + Send + 'static,
    ) -> BoxFuture<'static, Option<R>> {
        let task = AbortOnDropHandle::new(self.handle.spawn(work));
        Box::pin(async move { task.await.ok() })
    }

    /// Runs `work`, which blocks, on a thread for blocking work, or here if this runtime is [inline](Self::inline). `None`
    /// if it panicked, or the runtime ended. The work continues when the future is dropped.
    pub(crate) fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> BoxFuture<'static, Option<R>> {
        if self.inline {
            let result = catch_unwind(AssertUnwindSafe(work)).ok();
            return Box::pin(std::future::ready(result));
        }
        let result = self.handle.spawn_blocking(work);
        Box::pin(async move { result.await.ok() })
    }

    /// Calls `build` in the context of this runtime, where it can spawn tasks.
    pub(crate) fn enter<R>(&self, build: impl FnOnce() -> R) -> R {
        let _guard = self.handle.enter();
        build()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
    }
}
