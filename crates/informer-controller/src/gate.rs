//! The gate: may a request start now?
//!
//! A leader may write only while its lease lasts. Between the look at the lease and the write lies time: a connection is
//! opened, the machine sleeps, the process is stopped by a debugger. So the question is asked again at the last moment, by
//! the connection itself, just before it hands bytes to the socket. A [`Gate`] is the answer: it is open until the renew
//! deadline of a term, by a clock that counts sleep, and each confirmed renewal moves the deadline on. Once closed it stays
//! closed: the next term has a gate of its own.
//!
//! [`Term::gate`](crate::election::Term::gate) returns the gate of a term. Its clients are made like this:
//!
//! ```no_run
//! use informer::kube::Config;
//! use informer::kube::client::Api;
//! use informer_controller::election::Term;
//! use informer_controller::gate::is_not_leading;
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # async fn example(term: Term, config: Config, map: ConfigMap) -> Result<(), informer::kube::client::Error> {
//! let maps: Api<ConfigMap> = Api::namespaced(term.gate().client(config).await?, "shop");
//! match maps.replace("cart", &Default::default(), &map).await {
//!     Err(error) if is_not_leading(&error) => println!("{error}"),
//!     written => drop(written?),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Informers do not use such a client: reading is harmless, and a candidate that waits for its turn has synced already.
//!
//! # What is promised
//!
//! | | [`Gate::client`] | [`Gate::guard`] |
//! |---|---|---|
//! | a request starts only while the gate is open | checked before each write to the socket | checked when the client gets it |
//! | requests under way are cancelled when it closes | their connections are closed, unsent bytes are discarded | their answers are dropped |
//!
//! Not promised: that a request which was sent is not carried out late. Bytes that have left the machine can be delayed by
//! the network or the server, and a process can be frozen between the check and the next instruction. A Lease cannot prevent
//! that, because the server does not check it on writes (it cannot *fence*). So each write should carry a precondition, its
//! object's resourceVersion or uid: it then fails with a conflict if the next leader has changed the object.

mod client;
mod connection;
mod latch;
mod layer;
mod refusal;
mod term_client;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer::kube::{Client, Config, client as kube};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::{Layer, service_fn};

#[doc(hidden)]
pub use client::Connector;
use informer_core::Time;
use latch::Latch;
use layer::GateLayer;
pub use refusal::{Loss, NotLeading, is_not_leading};
pub use term_client::TermClient;

use crate::host::{Host, LOOK};

/// Whether requests of one term of leadership may start. A clone is a handle to the same gate.
///
/// ```no_run
/// # async fn example(election: informer_controller::election::Election) -> Result<(), Box<dyn std::error::Error>> {
/// let term = election.acquire().await?;
/// let gate = term.gate();
/// assert!(gate.is_open());
///
/// term.release().await;
/// assert_eq!(gate.check().unwrap_err().to_string(), "not leading: this process gave up the lease");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gate(Arc<State>);

struct State {
    host: Host,
    latch: Latch,
    closed: CancellationToken,
}

impl Gate {
    /// Checks whether a request may start now. Reads a clock, and takes no lock.
    ///
    /// # Errors
    ///
    /// When the gate is closed.
    pub fn check(&self) -> Result<(), NotLeading> {
        self.left().map(drop)
    }

    /// Whether a request may start now.
    pub fn is_open(&self) -> bool {
        self.left().is_ok()
    }

    /// Resolves when the gate is closed. Needs tokio's timers. Cancel safe; keeps the gate alive, but not open.
    pub fn closed(&self) -> impl Future<Output = NotLeading> + Send + 'static {
        let gate = self.clone();
        async move {
            loop {
                match gate.left() {
                    Ok(left) => drop(timeout(left.min(LOOK), gate.0.closed.cancelled()).await),
                    Err(refusal) => return refusal,
                }
            }
        }
    }

    /// A client that sends requests only while the gate is open, over connections of its own. When the gate closes, they
    /// are closed, and bytes that are not sent yet are discarded. Requests then fail with an error for which
    /// [`is_not_leading`] is true.
    ///
    /// The client is otherwise kube's for this configuration, without its spans. Tokens are renewed as kube's clients do it.
    /// A client certificate is read now and used until the end. Credentials are read on a thread for blocking work, because
    /// that may run a program. Call it within the tokio runtime that is to drive the connections.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be used.
    pub async fn client(&self, config: Config) -> Result<Client, kube::Error> {
        self.client_over(config, client::tcp()).await
    }

    /// As [`client`](Self::client), over connections that `connector` opens. It is called for the server or the proxy, and
    /// TLS is added above it. Whether it discards unsent bytes when a connection is dropped is up to it.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be used.
    #[doc(hidden)]
    pub async fn client_over(
        &self,
        config: Config,
        connector: impl Connector,
    ) -> Result<Client, kube::Error> {
        let gate = self.clone();
        let making = tokio::task::spawn_blocking(move || client::client(&gate, &config, connector));
        making.await.unwrap_or_else(|stopped| Err(kube::Error::Service(stopped.into())))
    }

    /// A client that passes requests on to `client` while the gate is open, and drops those under way when it closes.
    ///
    /// This is for programs that have no configuration, only a ready-made client, and it is weaker: the gate is checked
    /// when a request is handed over. If `client` then waits for a connection, the request may be sent after the deadline,
    /// until the gate's close, which tokio's timers notice, drops it.
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(GateLayer::new(self.clone()).layer(service), namespace)
    }

    /// How long the gate stays open without a further renewal.
    fn left(&self) -> Result<Duration, NotLeading> {
        let state = &*self.0;
        state.latch.left(|| state.host.time(), || state.closed.cancel()).map_err(NotLeading::new)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.check() {
            Ok(()) => f.write_str("Gate(open)"),
            Err(refusal) => write!(f, "Gate({refusal})"),
        }
    }
}

/// The side of a gate that opens, extends and closes it. Dropping it closes the gate.
#[doc(hidden)]
#[derive(Debug)]
pub struct GateKeeper(Gate);

impl GateKeeper {
    /// A gate that is open until then, by the uptime of this host.
    pub fn open(host: &Host, until: Time) -> Self {
        let (host, latch, closed) = (host.clone(), Latch::open(until), CancellationToken::new());
        Self(Gate(Arc::new(State { host, latch, closed })))
    }

    /// The gate, for those who send requests.
    pub fn gate(&self) -> Gate {
        self.0.clone()
    }

    /// Keeps the gate open until then, at least.
    ///
    /// # Errors
    ///
    /// When the gate is closed, which is for good: requests may have been refused or cancelled already.
    pub fn extend(&self, until: Time) -> Result<(), NotLeading> {
        // A gate that has expired unnoticed stays closed.
        self.0.check()?;
        self.0.0.latch.extend(until).map_err(NotLeading::new)
    }

    /// Closes the gate. When this returns, no check passes any more, and requests under way are being cancelled. Does
    /// nothing if it is closed already.
    pub fn close(&self, loss: Loss) {
        self.0.0.latch.close(loss);
        self.0.0.closed.cancel();
    }
}

impl Drop for GateKeeper {
    fn drop(&mut self) {
        self.close(Loss::Released);
    }
}
