//! The environment that a program gets from the bench, in place of a kubeconfig, a clock and a source of randomness.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use informer::kube::Client;
use informer::kube::client::client::Body;
use informer::kube::client::client::retry::RetryPolicy;
use informer::{FactoryBuilder, SharedInformerFactory};
use informer_controller::election::{Election, ElectionBuilder};
use informer_controller::{Clock, Host};
use jiff::Timestamp;
use tokio::time::Sleep;
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, ServiceBuilder};

use crate::cluster::Cluster;
use crate::external::External;
use crate::wire::Wire;

/// The surroundings of a program under test: its way to the server, its clock, and its randomness.
///
/// The program must not reach around it: sockets, threads, files, the system's clock and randomness, and statics are not
/// simulated. See the [crate's documentation](crate#what-a-program-may-do).
#[derive(Clone)]
pub struct Env {
    wire: Wire,
}

impl Env {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire }
    }

    /// Starts to build a factory of informers. The factory is
    /// [deterministic](informer::FactoryBuilder::deterministic), and all its options are free.
    pub fn factory(&self) -> FactoryBuilder {
        SharedInformerFactory::builder_with_transport(self.wire.clone()).deterministic(self.seed())
    }

    /// A client of the server. It repeats what is answered with 429, 503 or 504, as a client that kube makes of a `Config`.
    pub fn client(&self) -> Client {
        let retries = RetryLayer::new(Retries(RetryPolicy::server_retry()));
        let stack = ServiceBuilder::new().layer(retries).map_err(BoxError::from).service(self.wire.clone());
        Client::new(stack, "default")
    }

    /// The clocks and the seed for [`Controller::host`](informer_controller::Controller::host). The clocks follow tokio's clock.
    pub fn host(&self) -> Host {
        let cluster = self.wire.cluster.clone();
        let wire = self.wire.clone();
        Host::default()
            .with_clock(self.clock())
            .with_uptime(move || cluster.now())
            .with_seed(self.seed())
            .with_observer(Arc::new(move |observed| wire.observe(observed)))
    }

    /// The clock, for everything that asks for the time. It follows tokio's clock.
    pub fn clock(&self) -> impl Clock + Clone + use<> {
        SimulatedClock(self.wire.cluster.clone())
    }

    /// A seed for what is random: another one for each run, replica and restart.
    pub fn seed(&self) -> u64 {
        let instance = self.wire.process.instance;
        let number = u64::from(instance.replica) << 32 | u64::from(instance.restarts);
        (self.wire.cluster.plan.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
    }

    /// Random numbers from [`seed`](Self::seed).
    pub fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed())
    }

    /// A name of this process that no other one has, as a pod's name: `program-0-2`. For leader election.
    pub fn identity(&self) -> String {
        identity(self.wire.process.instance)
    }

    /// Starts to build a candidate for the Lease `name` in `namespace`: with [`identity`](Self::identity), and with clocks and
    /// randomness of the simulation. It renews every 4 s: with client-go's 2 s, renewals were half of a rehearsal's work. Leaders
    /// write through [`client`](Self::client).
    pub fn election(&self, namespace: &str, name: &str) -> ElectionBuilder {
        Election::builder_with_transport(self.wire.clone(), namespace, name)
            .identity(&self.identity())
            .host(self.host())
            .retry_period(Duration::from_secs(4))
    }

    /// A system outside of the cluster, which the program manages: see [`External`].
    pub fn external(&self) -> External {
        External::new(self.wire.cluster.clone(), self.wire.process.clone())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({})", self.identity())
    }
}

/// kube's retries, whose own pace is random.
#[derive(Clone)]
struct Retries(RetryPolicy);

const RETRY: Duration = Duration::from_millis(5);

impl<R> Policy<Request<Body>, Response<R>, BoxError> for Retries {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        answer: &mut Result<Response<R>, BoxError>,
    ) -> Option<Sleep> {
        self.0.retry(request, answer).map(|_| tokio::time::sleep(RETRY))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<_, Response<R>, _>::clone_request(&mut self.0, request)
    }
}

pub(crate) fn identity(instance: crate::Instance) -> String {
    format!("program-{}-{}", instance.replica, instance.restarts)
}

#[derive(Clone)]
struct SimulatedClock(Arc<Cluster>);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let begin = Timestamp::new(self.0.plan.date, 0).unwrap_or(Timestamp::UNIX_EPOCH);
        begin.checked_add(self.0.now()).unwrap_or(Timestamp::MAX)
    }
}
