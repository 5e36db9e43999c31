//! Leader election by a Lease.
//!
//! Of the processes that run the same controller one leads, the others wait. They agree by an object: the process
//! whose name is in a Lease of `coordination.k8s.io` leads, as long as it renews that entry. Parameters and records are those of
//! client-go's `leaderelection`, so candidates in Go and in Rust can compete for one lease.
//!
//! ```no_run
//! use informer::kube::Config;
//! use informer_controller::election::Election;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::infer().await?;
//! let election = Election::builder(config.clone(), "shop", "cart-controller").build()?;
//! let term = election.acquire().await?;
//! // Everything that this client sends is sent as a leader.
//! let client = term.client(config).await?;
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! - No request through the term's client starts after the renew deadline. The deadline counts from the moment when the
//!   last confirmed renewal was *sent*, on a clock that counts the sleep of the machine. Other candidates wait for the lease
//!   duration, which is longer, from the moment when they *saw* that renewal.
//! - When the term is over, its gate closes first. Then requests under way are cancelled, and [`Term::lost`] resolves.
//!
//! The module [`gate`](crate::gate) says what is **not** promised: a Lease cannot fence. Two leaders at once are possible
//! in these cases too, and no candidate can notice them:
//!
//! - The clocks of two machines differ in speed by more than lease duration to renew deadline (3 to 2 by default).
//! - Somebody deletes the lease, or changes it to the form of a released one, and a candidate that has not seen it before
//!   starts then. The former leader notices at its next renewal.
//! - A candidate of another kind, such as client-go's, has the same identity: it takes a lease with its identity at once.
//!
//! # A lease that somebody edited
//!
//! | edit | what candidates do |
//! |---|---|
//! | holder cleared, or the whole spec | the leader's term ends at its next renewal; the others wait until the former lease would have expired |
//! | holder changed | the leader's term ends at its next renewal; the others wait for the lease's duration |
//! | lease deleted | the leader's term ends at its next renewal; the others wait until it would have expired, then create it |
//! | duration missing or not positive | counts as the candidate's own lease duration |
//! | duration of more than an hour | counts as an hour |
//! | times in the future or the past | nothing: times in a lease are never compared with a clock |
//! | other fields, labels, annotations | nothing: they are kept |
//!
//! A wall clock that jumps changes nothing either: it only dates what is written, and the dates of one term always rise.

mod driver;
mod error;
pub(crate) mod lease;
mod logic;
pub(crate) mod marks;
pub(crate) mod metrics;
pub(crate) mod requests;
mod status;
mod term;
pub(crate) mod timing;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::Stream;
use informer::kube::{Client, Config};
use informer::transport::{KubeTransport, Transport};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, oneshot, watch};

use crate::host::{Host, host_name};
use driver::{Driver, Shared};
pub use error::ElectionError;
use logic::Candidate;
pub use metrics::ElectionMetrics;
pub use status::ElectionStatus;
pub use term::Term;

use marks::Marks;
use requests::LeaseClient;
use timing::Timing;

/// A candidate of an election. A clone is a handle to the same candidate.
///
/// The [module](self) has an example and says what is promised.
#[derive(Clone)]
pub struct Election {
    shared: Arc<Shared>,
    candidate: Arc<Mutex<Candidate>>,
}

impl Election {
    /// Starts to build a candidate for the lease `name` in `namespace`. Its requests have connections of their own, with
    /// time limits that fit the renew deadline.
    pub fn builder(config: Config, namespace: &str, name: &str) -> ElectionBuilder {
        ElectionBuilder::new(Access::Config(Box::new(config)), namespace, name)
    }

    /// Starts to build a candidate on an existing client. Switch off the client's retries (`Config::default_retry`): they
    /// may outlast the renew deadline. Requests of others may delay those of the candidate.
    pub fn builder_with_client(client: Client, namespace: &str, name: &str) -> ElectionBuilder {
        Self::builder_with_transport(KubeTransport::from_client(client), namespace, name)
    }

    /// Starts to build a candidate whose requests a transport carries.
    pub fn builder_with_transport(transport: impl Transport, namespace: &str, name: &str) -> ElectionBuilder {
        ElectionBuilder::new(Access::Transport(Arc::new(transport)), namespace, name)
    }

    /// Waits until this candidate leads. The term begins when the server has confirmed it.
    ///
    /// While a term of this candidate lasts, a further call waits for its end first. A failure that may pass (no
    /// connection, an overloaded server) is retried; see [`status`](Self::status).
    ///
    /// Cancel safe: if the candidate wins just then, it gives the lease up again.
    ///
    /// # Errors
    ///
    /// When waiting will not help: the lease is forbidden or malformed, its namespace or the API of leases does not exist,
    /// or the server refuses the lease for another reason.
    pub async fn acquire(&self) -> Result<Term, ElectionError> {
        let candidate = self.candidate.clone().lock_owned().await;
        let (seat, won) = oneshot::channel();
        tokio::spawn(Driver::new(self.shared.clone(), candidate).run(seat));
        won.await.unwrap_or_else(|_| Err(ElectionError::shut_down()))
    }

    /// Waits until no campaign and no term of this candidate lasts, and its lease is released.
    pub(crate) async fn settled(&self) {
        drop(self.candidate.lock().await);
    }

    /// Takes the candidate for controllers, until the claim is dropped.
    pub(crate) fn claim(&self) -> Result<Claim, ElectionError> {
        if self.shared.is_claimed.swap(true, Ordering::AcqRel) {
            return Err(ElectionError::busy(self.shared.lease()));
        }
        Ok(Claim(self.shared.clone()))
    }

    /// Labels and annotations of every later write of this candidate's lease. A lease that it holds is written at once.
    #[doc(hidden)]
    pub fn mark(&self, change: impl FnOnce(&mut Marks)) {
        self.shared.marks.send_if_modified(|marks| {
            let before = marks.clone();
            change(marks);
            *marks != before
        });
    }

    /// This candidate's identity, as the lease shows it.
    pub fn identity(&self) -> &str {
        &self.shared.identity
    }

    /// Where the election stands: who leads, as far as this candidate knows.
    pub fn status(&self) -> ElectionStatus {
        self.shared.status.borrow().clone()
    }

    /// A stream of statuses, beginning with the current one. If the status changes several times between two polls, the
    /// stream returns only the latest. It never ends, and keeps the candidate alive.
    pub fn status_changes(&self) -> impl Stream<Item = ElectionStatus> + Send + use<> {
        let mut receiver = self.shared.status.subscribe();
        receiver.mark_changed();
        futures_util::stream::unfold((receiver, self.clone()), |(mut receiver, keep_alive)| async move {
            receiver.changed().await.ok()?;
            let status = receiver.borrow_and_update().clone();
            Some((status, (receiver, keep_alive)))
        })
    }

    /// The metrics at this moment.
    pub fn metrics(&self) -> ElectionMetrics {
        ElectionMetrics {
            name: self.shared.name.clone(),
            is_leading: self.status().is_leading(),
            slow_renewals: self.shared.slow_renewals.load(Ordering::Relaxed),
        }
    }
}

/// The place of controllers in an election: nobody else of this process has it.
pub(crate) struct Claim(Arc<Shared>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.is_claimed.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("lease", &self.shared.lease())
            .field("identity", &self.shared.identity)
            .finish_non_exhaustive()
    }
}

/// The way to the server.
#[doc(hidden)]
#[derive(Clone)]
pub enum Access {
    /// Over connections that are made for it.
    Config(Box<Config>),
    /// By somebody else's transport.
    Transport(Arc<dyn Transport>),
}

impl Access {
    /// A transport whose connections break when they are silent for as long as a request may take.
    fn transport(self, limit: Duration) -> Result<Arc<dyn Transport>, ElectionError> {
        Ok(match self {
            Self::Config(config) => Arc::new(KubeTransport::new(bounded(*config, limit))?),
            Self::Transport(transport) => transport,
        })
    }
}

/// Options of an [`Election`]. The durations are client-go's by default.
#[must_use = "a candidate is made by `build`"]
pub struct ElectionBuilder {
    access: Access,
    namespace: String,
    name: String,
    identity: Option<String>,
    timing: Timing,
    release_on_stop: bool,
    host: Host,
}

impl ElectionBuilder {
    #[doc(hidden)]
    pub fn new(access: Access, namespace: &str, name: &str) -> Self {
        Self {
            access,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: None,
            timing: Timing::default(),
            release_on_stop: true,
            host: Host::default(),
        }
    }

    /// The candidate's identity in the lease; by default the name of the host and a random number.
    ///
    /// It should be unique for each process. If it is not, a restarted process waits until the lease of its predecessor
    /// has expired.
    pub fn identity(mut self, identity: &str) -> Self {
        self.identity = Some(identity.to_owned());
        self
    }

    /// How long other candidates wait after they have seen the last renewal; whole seconds, 15 s by default.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.timing.lease_duration = duration;
        self
    }

    /// For how long a leader leads after it has sent a renewal that is confirmed; 10 s by default. It must be less than the
    /// lease duration.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.timing.renew_deadline = deadline;
        self
    }

    /// The time between two renewals, 2 s by default. Other candidates look at the lease after half to one
    /// of these, so that a released lease has a new holder within one. It must
    /// be less than the renew deadline by a factor of 1.2.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.timing.retry_period = period;
        self
    }

    /// Whether a term that is dropped or released gives the lease up, so that another candidate need not wait until it
    /// expires; true by default, other than in client-go, whose clients go on sending after a stop.
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.release_on_stop = release;
        self
    }

    /// The clocks of deadlines and dates, and the seed of random waits.
    pub fn host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// The name of the lease.
    #[doc(hidden)]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The durations, checked, and the host.
    #[doc(hidden)]
    pub fn parts(&self) -> Result<(Timing, Host), ElectionError> {
        self.timing.check()?;
        Ok((self.timing, self.host.clone()))
    }

    /// A client of its own for leases of the same namespace.
    #[doc(hidden)]
    pub fn leases(&self) -> Result<LeaseClient, ElectionError> {
        if Handle::try_current().is_err() {
            return Err(ElectionError::invalid("it must be built within a tokio runtime"));
        }
        let limit = self.timing.request_limit();
        Ok(LeaseClient::new(self.access.clone().transport(limit)?, &self.namespace, limit))
    }

    /// Makes the candidate. Call it within the tokio runtime that is to drive its connections.
    ///
    /// # Errors
    ///
    /// When the names or durations are invalid, the configuration cannot be used, or there is no runtime.
    pub fn build(self) -> Result<Election, ElectionError> {
        self.timing.check()?;
        for name in [&self.namespace, &self.name] {
            check_name(name)?;
        }
        let leases = self.leases()?;
        let identity = self.identity.unwrap_or_else(unique_identity);
        if identity.is_empty() {
            return Err(ElectionError::invalid("the identity is empty"));
        }
        let candidate = Candidate::new(&self.name, &identity, self.timing, self.host.seed());
        let shared = Shared {
            leases,
            name: self.name,
            identity,
            timing: self.timing,
            release_on_stop: self.release_on_stop,
            host: self.host,
            status: watch::Sender::new(ElectionStatus::default()),
            slow_renewals: AtomicU64::new(0),
            is_claimed: AtomicBool::new(false),
            marks: watch::Sender::default(),
        };
        Ok(Election { shared: Arc::new(shared), candidate: Arc::new(Mutex::new(candidate)) })
    }
}

/// Not the configuration: it has credentials.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl fmt::Debug for ElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// A configuration whose connections break when they are silent for as long as a request may take.
fn bounded(mut config: Config, limit: Duration) -> Config {
    let at_most = |timeout: Option<Duration>| Some(timeout.map_or(limit, |timeout| timeout.min(limit)));
    config.connect_timeout = at_most(config.connect_timeout);
    config.write_timeout = at_most(config.write_timeout);
    config
}

/// Names are parts of paths.
#[doc(hidden)]
pub fn check_name(name: &str) -> Result<(), ElectionError> {
    let is_valid =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_valid) {
        return Err(ElectionError::invalid(format!("`{name}` is not the name of a namespace or lease")));
    }
    Ok(())
}

/// The host's name and a random number, as Kubernetes' own components do it.
fn unique_identity() -> String {
    format!("{}_{:032x}", host_name(), fastrand::u128(..))
}
