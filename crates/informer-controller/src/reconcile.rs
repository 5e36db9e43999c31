//! The user's reconciler, and its outcomes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::writer::WriteError;

/// Brings the world closer to what an object asks for.
///
/// It is called with the key of an object, not with a change: it reads what is there now, and does what is missing. Calls
/// for one object never overlap. A function `async fn(Context<T>)` is a reconciler too, and one with state is a reconciler
/// by [`with`].
///
/// ```
/// use informer_controller::{Context, Failure, Outcome, Reconcile};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// struct Greeter {
///     greeting: String,
/// }
///
/// impl Reconcile<ConfigMap> for Greeter {
///     async fn reconcile(&self, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
///         if let Some(map) = context.object() {
///             println!("{} {}", self.greeting, map.key());
///         }
///         Ok(Outcome::Done)
///     }
/// }
/// ```
pub trait Reconcile<T>: Send + Sync + 'static {
    /// Reconciles one object.
    ///
    /// The future is dropped at its next `await` when leadership is lost, or when the controller's grace period is over: a
    /// reconciler must be able to begin again after any `await`. A crash of the process demands the same.
    ///
    /// # Errors
    ///
    /// [`Failure`] says whether the object is tried again after a delay, or when it changes. Every error that `?` converts
    /// is tried again.
    fn reconcile(&self, context: Context<T>) -> impl Future<Output = Result<Outcome, Failure>> + Send;
}

impl<T, F, R> Reconcile<T> for F
where
    F: Fn(Context<T>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Failure>> + Send,
{
    fn reconcile(&self, context: Context<T>) -> impl Future<Output = Result<Outcome, Failure>> + Send {
        self(context)
    }
}

/// A reconciler from a function and the state that its calls share, with or without its `Arc`.
///
/// ```
/// use std::sync::Arc;
///
/// use informer_controller::{Context, Failure, Outcome, Reconcile, with};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// struct State {
///     greeting: String,
/// }
///
/// async fn reconcile(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
///     println!("{} {}", state.greeting, context.key());
///     Ok(Outcome::Done)
/// }
///
/// fn greeter(greeting: String) -> impl Reconcile<ConfigMap> {
///     with(State { greeting }, reconcile)
/// }
/// ```
pub fn with<S, F>(state: impl Into<Arc<S>>, reconcile: F) -> With<S, F> {
    With { state: state.into(), reconcile }
}

/// A reconciler with state: what [`with`] returns.
pub struct With<S, F> {
    state: Arc<S>,
    reconcile: F,
}

impl<T, S, F, R> Reconcile<T> for With<S, F>
where
    S: Send + Sync + 'static,
    F: Fn(Arc<S>, Context<T>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Failure>> + Send,
{
    fn reconcile(&self, context: Context<T>) -> impl Future<Output = Result<Outcome, Failure>> + Send {
        (self.reconcile)(self.state.clone(), context)
    }
}

impl<S, F> fmt::Debug for With<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("With").finish_non_exhaustive()
    }
}

/// The next step after a reconciliation that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, until the object or something related changes.
    Done,
    /// The object is reconciled again after this long, or at its next change if that is earlier. The outcome of that
    /// reconciliation then counts.
    After(Duration),
}

/// Why a reconciliation failed, and what happens next. Not an [`Error`](std::error::Error) itself, so that `?` converts
/// every error into it.
///
/// ```
/// use informer_controller::Failure;
///
/// fn port(text: &str) -> Result<u16, Failure> {
///     // Waiting does not make a wrong text right: only a change of the object does.
///     text.parse().map_err(Failure::give_up)
/// }
///
/// assert!(port("80").is_ok());
/// assert!(port("http").is_err_and(|failure| failure.gives_up()));
/// ```
pub struct Failure {
    error: Box<dyn std::error::Error + Send + Sync>,
    gives_up: bool,
}

impl Failure {
    /// The object is tried again, after a delay by the controller's rate limiter. `?` does the same.
    pub fn retry(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { error: error.into(), gives_up: false }
    }

    /// The object is not tried again before it or something related changes.
    pub fn give_up(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { error: error.into(), gives_up: true }
    }

    /// Whether this waits for a change instead of a delay.
    pub fn gives_up(&self) -> bool {
        self.gives_up
    }

    /// After how long a write may succeed that the server has refused for now, if that is the reason.
    pub(crate) fn not_now(&self) -> Option<Duration> {
        let first: &(dyn std::error::Error + 'static) = self.error.as_ref();
        let mut causes = std::iter::successors(Some(first), |error| error.source());
        causes.find_map(|error| error.downcast_ref::<WriteError>()).and_then(WriteError::retry_after)
    }

    /// The error.
    pub fn error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self.error.as_ref()
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure").field("gives_up", &self.gives_up).finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&informer::error_chain(self.error.as_ref()))
    }
}
