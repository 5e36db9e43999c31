//! Events: a controller's reports to people about the objects that it works on.
//!
//! A reconciliation records an event with [`Context::event`](crate::Context::event); a program without a controller makes a
//! [`Recorder`] of its own.
//!
//! ```no_run
//! use informer_controller::recorder::Event;
//! use informer_controller::{Context, Failure, Outcome};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! async fn reconcile(context: Context<ConfigMap>) -> Result<Outcome, Failure> {
//!     let Some(map) = context.object() else { return Ok(Outcome::Done) };
//!     context.event(map, Event::normal("Copied", "Copy", "copied to 3 namespaces"));
//!     Ok(Outcome::Done)
//! }
//! ```
//!
//! The events that are sent, with the numbers of client-go:
//!
//! - Events are objects of `events.k8s.io/v1`, in the namespace of the object that they are about, or in `default` for an
//!   object of the cluster. The program needs the permission to `create` and `patch` them:
//!   [`Access::events`](crate::permissions::Access::events).
//! - Events that are equal (object, type, reason, action, note, related object) and at most 6 minutes apart are a **series**:
//!   one Event whose `series.count` grows. The server gets the count at the second one, every 30 minutes, when the series has
//!   ended, and when the recorder is flushed. (client-go leaves the note out of the comparison: there, later notes are lost.)
//! - A **spam filter** lets pass 25 Events of a type about an object, and then one every 5 minutes. Counting in a series is
//!   free.
//! - Events are sent in the background, one request at a time. They never delay a reconciliation and are never an error:
//!   beyond 1000 that wait, they are lost. An unavailable server is asked again every 10 to 12.5 s, 12 times per event.
//!   [`Recorder::stats`] counts what became of them.
//!
//! Memory: at most 4096 series, 4096 objects of the spam filter, and 2000 waiting events.

mod bounded;
mod correlator;
#[cfg(test)]
mod correlator_tests;
mod event;
mod sender;
mod sink;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer::kube::Client;
use tokio::sync::{mpsc, oneshot};

use crate::host::{Host, host_name};
use crate::writer::Target;
use event::{Reference, Reporter, Subject};
use sender::{Message, Sender};
use sink::Sink;

pub use event::{Event, EventType};

/// The number of events that may wait for the background task.
const BUFFER: usize = 1000;

/// Records events. A clone records for the same reporter, in the same series.
///
/// ```no_run
/// use informer::ObjectRef;
/// use informer::kube::Client;
/// use informer_controller::recorder::{Event, Recorder};
/// use k8s_openapi::api::core::v1::Node;
///
/// # async fn example(client: Client, node: Node) {
/// let recorder = Recorder::start(client, "node-doctor");
/// if let Some(node) = ObjectRef::of(&node) {
///     recorder.record(&node, Event::warning("DiskSlow", "Probe", "a write took 3 s"));
/// }
/// recorder.flush(std::time::Duration::from_secs(5)).await;
/// # }
/// ```
///
/// When the last clone is dropped, what waits is sent within 10 s, without repetitions.
#[derive(Clone)]
pub struct Recorder {
    messages: mpsc::Sender<Message>,
    host: Host,
    counters: Arc<Counters>,
}

/// Makes a [`Recorder`].
#[derive(Clone)]
pub struct Builder {
    controller: String,
    instance: String,
    host: Host,
}

/// The counts of a [`Recorder`]'s events, by their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that the server has carried out: new Events, and counts of series.
    pub written: u64,
    /// Events that the spam filter did not let pass.
    pub filtered: u64,
    /// Events that the server refused.
    pub refused: u64,
    /// Events that were dropped because too many waited, or because the server did not answer.
    pub lost: u64,
}

#[derive(Default)]
struct Counters {
    written: AtomicU64,
    filtered: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
}

impl Recorder {
    /// A recorder for a reporter, for example the name of a controller. Its instance is this name with the name of the host.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(client: Client, controller: &str) -> Self {
        Self::builder(controller).start(client)
    }

    /// A recorder with options.
    pub fn builder(controller: &str) -> Builder {
        Builder {
            controller: controller.to_owned(),
            instance: format!("{controller}-{}", host_name()),
            host: Host::default(),
        }
    }

    /// Records an event about an object that the server has: a [`Target`]. Returns at once.
    pub fn record<K>(&self, about: impl Target<K>, event: Event) {
        let Some(regarding) = Reference::to(about) else { return };
        let subject = Subject { regarding, event };
        let message = Message::Observed(self.host.now(), Box::new(subject));
        if self.messages.try_send(message).is_err() {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything that was recorded before has been sent or is lost, the counts of series included. Returns
    /// whether that was within `limit`. An event that the server does not accept meanwhile is not sent again.
    ///
    /// # Cancel safety
    ///
    /// Safe: the events that wait are sent all the same.
    pub async fn flush(&self, limit: Duration) -> bool {
        let flushing = async {
            let (done, flushed) = oneshot::channel();
            self.messages.send(Message::Flush(done)).await.is_ok() && flushed.await.is_ok()
        };
        tokio::time::timeout(limit, flushing).await.unwrap_or(false)
    }

    /// The counts of the events so far, by their end.
    pub fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { written, filtered, refused, lost } = &*self.counters;
        Stats { written: read(written), filtered: read(filtered), refused: read(refused), lost: read(lost) }
    }
}

impl Builder {
    /// The name of this process among those with the same reporter. By default the reporter with the name of the host: of the
    /// pod, in a container.
    #[must_use]
    pub fn instance(mut self, instance: &str) -> Self {
        instance.clone_into(&mut self.instance);
        self
    }

    /// The clock of the times in Events, and the seed of the random pauses before repeated requests. Which events form a
    /// series is decided by tokio's clock.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Starts the background task.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(self, client: Client) -> Recorder {
        let (messages, received) = mpsc::channel(BUFFER);
        let counters = Arc::<Counters>::default();
        let reporter = Reporter::new(&self.controller, &self.instance);
        let sender = Sender::new(Sink::new(client, reporter), counters.clone(), self.host.seed());
        tokio::spawn(sender.run(received));
        Recorder { messages, host: self.host, counters }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, instance, .. } = self;
        f.debug_struct("Builder")
            .field("controller", controller)
            .field("instance", instance)
            .finish_non_exhaustive()
    }
}
