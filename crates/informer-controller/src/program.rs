//! A process: its controllers, with the signals, the election and the port that they share.

mod endpoint;
mod listener;
mod signals;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::{Informer, Object, View};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::controller::Runnable;
use crate::election::Election;
use crate::error::RunError;
use crate::gate::TermClient;
use crate::leadership::Leadership;
use endpoint::Endpoint;
use listener::Listener;
use signals::Signals;
pub use signals::stop_signal;

/// Runs controllers as one process of a cluster: until a signal, behind one election or none, with health and metrics on one port.
/// It is the counterpart of controller-runtime's `Manager`.
///
/// ```no_run
/// use informer::SharedInformerFactory;
/// use informer::kube::Config;
/// use informer_controller::election::Election;
/// use informer_controller::{Context, Controller, Outcome, Program};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::infer().await?;
/// let factory = SharedInformerFactory::new(config.clone())?;
/// let maps = Controller::new("maps", &factory.informer::<ConfigMap>());
/// let secrets = Controller::new("secrets", &factory.informer::<Secret>());
/// let election = Election::builder(config.clone(), "shop", "example").build()?;
/// Program::new(config)
///     .election(&election)
///     .listen(([0, 0, 0, 0], 8080))?
///     .run([
///         maps.with(async |_: Context<ConfigMap>| Ok(Outcome::Done)),
///         secrets.with(async |_: Context<Secret>| Ok(Outcome::Done)),
///     ])
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// The port answers plain HTTP/1.1, to everybody who reaches it:
///
/// | path | answer |
/// |---|---|
/// | `/livez`, `/healthz` | 200 while the process runs |
/// | `/readyz` | 200 once all informers are synced, for a leader and for a standby; 503 with the reason before, and after the signal |
/// | `/metrics` | informers, controllers and the election as one OpenMetrics text |
pub struct Program {
    writes: TermClient,
    election: Option<Election>,
    listener: Option<Listener>,
    informers: Vec<Informer<Object>>,
    grace: Duration,
    /// `None` for the signals.
    until: Option<BoxFuture<'static, ()>>,
}

/// The part of the grace period that is left for the release of the lease: a quarter.
const FOR_RELEASE: u32 = 4;

impl Program {
    /// A program whose controllers write by this configuration, or through this client.
    pub fn new(writes: impl Into<TermClient>) -> Self {
        Self {
            writes: writes.into(),
            election: None,
            listener: None,
            informers: Vec::new(),
            grace: Duration::from_secs(20),
            until: None,
        }
    }

    /// Of several such processes, one reconciles: all its controllers, or none of them.
    #[must_use]
    pub fn election(mut self, election: &Election) -> Self {
        self.election = Some(election.clone());
        self
    }

    /// Answers questions about health and metrics at this address. The port 0 is a free one, which [`address`](Self::address) tells.
    ///
    /// # Errors
    ///
    /// When the address is taken, or is not this machine's.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> Result<Self, RunError> {
        let address = address.into();
        self.listener = Some(Listener::bind(address).map_err(|error| RunError::listen(address, error))?);
        Ok(self)
    }

    /// Where the program answers, with the actual port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(Listener::address)
    }

    /// An informer that no controller has. The program starts it, `/readyz` waits for it and `/metrics` shows it.
    #[must_use]
    pub fn informer<T: View>(mut self, informer: &Informer<T>) -> Self {
        self.informers.push(informer.cast());
        self
    }

    /// How long the program may take to end after the signal, with the release of the lease: 20 s by default, which fits in the 30 s of
    /// a pod's `terminationGracePeriodSeconds`. Reconciliations and their events have three quarters of it, or the
    /// [grace](crate::Controller::grace) of their controller if that is shorter.
    #[must_use]
    pub fn grace(mut self, limit: Duration) -> Self {
        self.grace = limit;
        self
    }

    /// Ends the program when `stop` is ready, and not by signals: for tests, and for programs that handle signals themselves.
    #[must_use]
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = Some(stop.boxed());
        self
    }

    /// Runs controllers until SIGINT or SIGTERM (Ctrl-C or Ctrl-Break on Windows), or until all have ended. Then running reconciliations
    /// end, their events are sent, and the lease is released, within the [grace period](Self::grace). A second signal ends the process at
    /// once, with the code 1.
    ///
    /// # Errors
    ///
    /// When a controller fails, as [`Controller::run`](crate::Controller::run) and
    /// [`run_elected`](crate::Controller::run_elected) do: then the others are stopped. The first error counts. Also when the
    /// process cannot listen to signals.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running reconciliations at their `await`. The lease is released, or expires.
    pub async fn run(self, controllers: impl IntoIterator<Item = Runnable>) -> Result<(), RunError> {
        let Self { writes, election, listener, informers, grace, until } = self;
        let mut stop = Stop::new(until)?;
        let leadership = match &election {
            Some(election) => Leadership::elected(election, writes)?,
            None => Leadership::Alone(writes.asking().map_err(RunError::client)?),
        };
        let controllers: Vec<_> = controllers.into_iter().collect();
        let stopping = CancellationToken::new();
        let endpoint = Endpoint::new(&controllers, &informers, election, stopping.clone());
        let _serving = match listener {
            Some(listener) => Some(listener.answer(move |request| endpoint.answer(request))?),
            None => None,
        };
        informers.iter().for_each(Informer::start);
        let of_controllers = grace - grace / FOR_RELEASE;
        let mut running = JoinSet::new();
        for controller in controllers {
            running.spawn(controller.run(leadership.clone(), stopping.clone(), of_controllers));
        }
        let result = tokio::select! {
            biased;
            () = stop.asked() => Ok(()),
            ended = all_or_first_error(&mut running) => ended,
        };
        stopping.cancel();
        if !running.is_empty() {
            tracing::info!(?grace, "stopping");
        }
        let rest = async {
            let mut result = Ok(());
            while !running.is_empty() {
                result = result.and(all_or_first_error(&mut running).await);
            }
            result
        };
        tokio::select! {
            biased;
            rest = tokio::time::timeout(grace, rest) => result.and(rest.unwrap_or_else(|_| {
                tracing::warn!(?grace, "the grace period is over; a lease that is not released expires");
                Ok(())
            })),
            () = stop.asked_again() => std::process::exit(1),
        }
    }
}

/// Waits until all have ended, or one has failed.
async fn all_or_first_error(running: &mut JoinSet<Result<(), RunError>>) -> Result<(), RunError> {
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(result) => result?,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    Ok(())
}

/// The event that ends a program.
enum Stop {
    Signals(Signals),
    /// `None` once it has happened.
    Asked(Option<BoxFuture<'static, ()>>),
}

impl Stop {
    fn new(until: Option<BoxFuture<'static, ()>>) -> Result<Self, RunError> {
        match until {
            Some(until) => Ok(Self::Asked(Some(until))),
            None => Signals::listen().map(Self::Signals).map_err(RunError::signals),
        }
    }

    async fn asked(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Asked(Some(until)) => {
                until.await;
                *self = Self::Asked(None);
            }
            Self::Asked(None) => std::future::pending().await,
        }
    }

    /// Only signals are repeated.
    async fn asked_again(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Asked(_) => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("election", &self.election)
            .field("address", &self.address())
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
