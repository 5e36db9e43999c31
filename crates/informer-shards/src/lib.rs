//! Shards: several processes that run the same controller divide the objects among themselves.
//!
//! Each process is a **member**. A Lease of `coordination.k8s.io` holds the **map**: which member has which hashes. Each
//! member holds a Lease of its own, like the leader of an [election](informer_controller::election), and **acknowledges** a map there: it
//! does nothing outside of its part any more. A member begins with its part when all members have acknowledged the map.
//!
//! ```no_run
//! use informer::SharedInformerFactory;
//! use informer::kube::Config;
//! use informer_controller::{Context, Controller, Outcome, stop_signal};
//! use informer_shards::Shards;
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::infer().await?;
//! let shards = Shards::builder(config.clone(), "shop", "example").build()?;
//! shards
//!     .until(stop_signal())
//!     .run(config.clone(), move |share| {
//!         let factory = SharedInformerFactory::builder(config.clone()).build()?.with_share(share.clone());
//!         let maps = factory.informer::<ConfigMap>();
//!         let reconcile = async |context: Context<ConfigMap>| {
//!             println!("{}", context.key());
//!             Ok(Outcome::Done)
//!         };
//!         Ok((Controller::new("example", &maps), reconcile))
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! Clause Q9 of `docs/CONTRACT.md`: each object has one shard, and each shard at most one owner.
//!
//! - No two members act on the same hash, as far as a Lease can promise that: no request of a member starts after its
//!   renew deadline ([`gate`](informer_controller::gate) says what else can happen, and why writes carry preconditions).
//! - A new owner reconciles its whole share. It syncs its informers while the former owner lets go.
//! - When a member crashes or freezes, its hashes have no owner for the lease's duration and up to three retry periods (until
//!   its last renewal is seen, until its expiry is, and before somebody writes the next map), and then for as long as a planned
//!   change takes.
//!
//! A planned change (a member comes or leaves) stops the hashes that move, and no others, for at most
//!
//! > a look, until the last member sees the map + what still runs (at most [`grace`](informer_controller::Controller::grace)) + a write of the
//! > lease + a look of the new owner (each look at most a retry period) + what the new owner itself still runs
//!
//! and those that a member keeps for as long as its own running reconciliations take to end. The new informers list meanwhile;
//! that counts only if it takes longer. A member that joins begins after a random wait of up to a retry
//! period, in which others may join, and its own list.
//!
//! A member whose share only shrinks keeps its controller and its informers; one whose share grows gets a new controller. A member whose
//! reconciliations block their threads gives its lease up a second after `grace`, and joins again when they have ended.
//!
//! A process that joins while the lease of a crashed one still exists waits for that one's duration, too: it cannot know when it
//! was renewed last. The hashes that move to it have no owner until then. A process that restarts under its old identity avoids
//! this. (Members delete such a lease after ten further durations.)
//!
//! # What a share is
//!
//! [`ShareBy::Uid`], the default, divides the objects of each namespace evenly.
//!
//! - informers of owned objects need the share of their owners: `factory.with_share(share.of(ShareBy::ControllerUid))`;
//! - other related objects are read whole: `factory.with_share(None)`;
//! - an absent object belongs to the member that saw it go. If that member ends before it has reconciled this, nobody does.
//!   An action that must happen at a deletion needs a [finalizer](informer_controller::finalizer), or owner references.
//!
//! [`ShareBy::Namespace`] gives all objects of a namespace to one member: related objects of the same namespace are in the
//! same share, whatever their kind. Namespaces whose names differ only in their last characters (`team-0` to `team-9`) have nearly the same
//! hash, and so the same owner: Kubernetes hashes like that.
//!
//! The caches of a new controller may lack the last writes of the former one, by as much as its watches lag behind, as after
//! a change of the leader; also those that the same member wrote for hashes that it keeps. Give what you create names that
//! follow from the owner: a second creation then fails.
//!
//! # What somebody may edit, and what members do
//!
//! | edit | what members do |
//! |---|---|
//! | map deleted, cut off, or not each hash exactly once | go on with what they have, and write the next map, with a higher generation |
//! | map set back to an older one, or changed in place | as above: the next map is made from it |
//! | a map with a higher generation | follow it, and balance it when a member comes or leaves |
//! | a map of a newer version of this library, or [by](ShardsBuilder::by) another value | end their controllers, keep their leases, and never overwrite it; [`ShardsStatus::problem`] says so |
//! | a member's lease deleted, cleared or taken | that member stops at its next renewal and joins again; the others count it as live until it would have expired |
//! | `acknowledged` removed or changed | nobody begins with anything new until the member's next renewal has put it back |
//! | the label of a lease removed | the member's next renewal, or the next map, puts it back |
//! | times, other fields, other labels and annotations | nothing: they are kept |
//!
//! As with elections, one case cannot be noticed: somebody deletes the lease of a member that is not in the map any more and
//! still acts, and a member that begins just then has never seen it.

#![warn(missing_debug_implementations)]

mod access;
mod assignment;
mod bounds;
mod driver;
mod error;
mod handle;
mod logic;
mod map;
mod members;
mod metrics;
mod requests;
mod slot;
mod status;

/// The code of the page compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/shards.md")]
struct ShardsPage;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream};
use informer::View;
use informer::kube::{Client, Config};
use informer::share::{Share, ShareBy};
use informer::transport::{KubeTransport, Transport};
use informer_controller::election::{Election, ElectionBuilder};
use informer_controller::internals::Access;
use informer_controller::{Controller, Host, Reconcile, TermClient};
use tokio::sync::watch;

use access::{Names, default_identity};
use driver::{Driver, Shared};
pub use error::ShardsError;
pub use handle::ShardsHandle;
use logic::Logic;
pub use metrics::ShardsMetrics;
use requests::Requests;
pub use status::ShardsStatus;

/// A member of a set of processes that divide the objects of a controller among themselves.
///
/// The [module](self) has an example and says what is promised.
pub struct Shards {
    election: Election,
    shared: Arc<Shared>,
    logic: Logic,
    until: BoxFuture<'static, ()>,
}

impl Shards {
    /// Starts to build a member. The map is the lease `name` in `namespace`, and the member's own lease has that name and its
    /// identity. Its requests have connections of their own, with time limits that fit the renew deadline.
    pub fn builder(config: Config, namespace: &str, name: &str) -> ShardsBuilder {
        ShardsBuilder::new(Access::Config(Box::new(config)), namespace, name)
    }

    /// Starts to build a member on an existing client. Switch off the client's retries (`Config::default_retry`): they may
    /// outlast the renew deadline.
    pub fn builder_with_client(client: Client, namespace: &str, name: &str) -> ShardsBuilder {
        Self::builder_with_transport(KubeTransport::from_client(client), namespace, name)
    }

    /// Starts to build a member whose requests a transport carries.
    pub fn builder_with_transport(transport: impl Transport, namespace: &str, name: &str) -> ShardsBuilder {
        ShardsBuilder::new(Access::Transport(Arc::new(transport)), namespace, name)
    }

    /// Leaves when `stop` is ready: goes on until the other members have taken notice, for the lease's duration at most; then
    /// lets what runs end, and releases the lease.
    #[must_use]
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = stop.boxed();
        self
    }

    /// A handle to the member, for the time when it runs.
    pub fn handle(&self) -> ShardsHandle {
        ShardsHandle::new(self.shared.status.clone())
    }

    /// This member's identity, as the map shows it.
    pub fn identity(&self) -> &str {
        self.election.identity()
    }

    /// Where this member stands.
    pub fn status(&self) -> ShardsStatus {
        self.shared.status.borrow().clone()
    }

    /// A stream of statuses, as that of the [handle](ShardsHandle::status_changes).
    pub fn status_changes(&self) -> impl Stream<Item = ShardsStatus> + Send + use<> {
        self.handle().status_changes()
    }

    /// Joins, and runs a controller for the share that this member has, until [`until`](Self::until) ends it. `make` is called
    /// once for each new share: it makes informers that have the share, a controller of them, and its reconciler. A
    /// controller that is made while another one runs begins after the end of that one.
    ///
    /// `writes` is a configuration, or a client for the writes of the reconcilers; no request of a member starts after its
    /// renew deadline. The controller's own [`until`](Controller::until) and
    /// [`begin_when`](Controller::begin_when) have no effect.
    ///
    /// When the member's lease is lost, running reconciliations are dropped at their `await`, and it joins again.
    ///
    /// # Errors
    ///
    /// When the leases are forbidden or malformed, their namespace does not exist, `make` fails, or a controller ends by
    /// itself, as [`Controller::run`] says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running reconciliations at their `await`. The lease is released at once.
    pub async fn run<T: View, R: Reconcile<T>>(
        self,
        writes: impl Into<TermClient>,
        make: impl FnMut(&Share) -> Result<(Controller<T>, R), BoxError> + Send + 'static,
    ) -> Result<(), ShardsError> {
        let make = slot::maker(make);
        Driver::new(self.election, self.shared, self.logic, writes.into(), make).run(self.until).await
    }
}

/// Any error, of what a program does to make a controller.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").field("lease", &self.election).finish_non_exhaustive()
    }
}

/// Options of [`Shards`]. The durations are those of elections by default, and mean the same.
#[must_use = "a member is made by `build`"]
pub struct ShardsBuilder {
    /// That of the member's own lease.
    election: ElectionBuilder,
    namespace: String,
    name: String,
    by: ShareBy,
    identity: Option<String>,
}

impl ShardsBuilder {
    fn new(access: Access, namespace: &str, name: &str) -> Self {
        Self {
            election: ElectionBuilder::new(access, namespace, name),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            by: ShareBy::Uid,
            identity: None,
        }
    }

    /// By which value objects are divided: their uid, which is the default, or their namespace. All members say the same.
    pub fn by(mut self, by: ShareBy) -> Self {
        self.by = by;
        self
    }

    /// The member's identity: lower-case letters, digits, `-` and `.`. By default the name of the host and a random number.
    ///
    /// It should be unique for each process. If it is not, a restarted process waits until the lease of its predecessor has
    /// expired.
    pub fn identity(mut self, identity: &str) -> Self {
        self.identity = Some(identity.to_owned());
        self
    }

    /// How long other members wait after they have seen the last renewal; whole seconds, 15 s by default.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.election = self.election.lease_duration(duration);
        self
    }

    /// For how long a member acts after it has sent a renewal that is confirmed; 10 s by default. It must be less than the
    /// lease duration.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.election = self.election.renew_deadline(deadline);
        self
    }

    /// The time between two renewals, and between two looks at the leases of all members; 2 s by default. It must be less
    /// than the renew deadline by a factor of 1.2.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.election = self.election.retry_period(period);
        self
    }

    /// The clocks of deadlines and dates, and the seed of random waits.
    pub fn host(mut self, host: Host) -> Self {
        self.election = self.election.host(host);
        self
    }

    /// Makes the member, which joins when it [runs](Shards::run). Call it within the tokio runtime that is to drive its
    /// connections.
    ///
    /// # Errors
    ///
    /// When the names or durations are invalid, the configuration cannot be used, or there is no runtime.
    pub fn build(self) -> Result<Shards, ShardsError> {
        let identity = self.identity.unwrap_or_else(default_identity);
        let names = Names::new(&self.namespace, &self.name, &identity)?;
        if self.by == ShareBy::ControllerUid {
            return Err(ShardsError::invalid("objects are divided by their uid; what they own follows"));
        }
        let (timing, host) = self.election.parts()?;
        let leases = self.election.leases()?;
        let election = self.election.name(&names.own_lease()).identity(&identity).build()?;
        let logic = Logic::new(&identity, self.by, timing, host.seed());
        let shared = Shared {
            requests: Requests::new(leases, names, self.by),
            by: self.by,
            timing,
            host,
            status: Arc::new(watch::Sender::new(ShardsStatus::new(&self.name, &identity))),
        };
        let until = std::future::pending().boxed();
        Ok(Shards { election, shared: Arc::new(shared), logic, until })
    }
}

impl fmt::Debug for ShardsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardsBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_divided_by_uid_unless_the_program_says_otherwise() {
        let config = informer::kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        assert_eq!(Shards::builder(config, "shop", "example").by, ShareBy::Uid);
    }
}
