//! One period of leadership.

use std::fmt;
use std::sync::Arc;

use informer::kube::Client;
use informer::kube::client::Error;
use tokio_util::sync::CancellationToken;

use crate::gate::{Gate, GateKeeper, Loss, TermClient};

/// One period of leadership, from [`Election::acquire`](super::Election::acquire) until it is lost or released.
///
/// A task renews the lease meanwhile. Dropping the term ends it at once: its gate closes, and unless
/// [`release_on_stop(false)`](super::ElectionBuilder::release_on_stop) says otherwise, that task then gives the lease up.
///
/// ```no_run
/// # async fn example(election: informer_controller::election::Election, config: informer::kube::Config)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// loop {
///     let term = election.acquire().await?;
///     let client = term.client(config.clone()).await?;
///     tokio::select! {
///         () = lead(client) => break term.release().await,
///         loss = term.lost() => println!("{loss}; waiting for the next term"),
///     }
/// }
/// # Ok(()) }
/// # async fn lead(client: informer::kube::Client) {}
/// ```
pub struct Term {
    keeper: Arc<GateKeeper>,
    generation: u32,
    /// Cancelled to end the term.
    stop: CancellationToken,
    /// Cancelled when its task has ended.
    ended: CancellationToken,
}

impl Term {
    pub(super) fn new(keeper: Arc<GateKeeper>, generation: u32, ended: CancellationToken) -> Self {
        Self { keeper, generation, stop: CancellationToken::new(), ended }
    }

    pub(super) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// The gate of this term. It closes before the loss is reported.
    pub fn gate(&self) -> Gate {
        self.keeper.gate()
    }

    /// The number of this term: `leaseTransitions` of the lease. It rises with each term, unless somebody edits or deletes
    /// the lease.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// A client for the writes of this term: [`Gate::client`] of a configuration, or [`Gate::guard`] of a client.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be used.
    pub async fn client(&self, writes: impl Into<TermClient>) -> Result<Client, Error> {
        writes.into().of(&self.gate()).await
    }

    /// Resolves when the term is over, with the reason. By then its gate is closed. Cancel safe.
    pub async fn lost(&self) -> Loss {
        self.gate().closed().await.loss()
    }

    /// Ends the term and gives the lease up, so that another candidate can lead at once. Returns when the server has
    /// answered, or after the renew deadline. If it cannot be reached, the lease expires by itself.
    ///
    /// Let what this term started finish first: a request that is under way is cancelled, but the server may carry it out
    /// while the next leader is at work. Cancel safe: dropping the future changes nothing, the lease is released anyway.
    pub async fn release(self) {
        let ended = self.ended.clone();
        drop(self);
        ended.cancelled().await;
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.keeper.close(Loss::Released);
        self.stop.cancel();
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("generation", &self.generation)
            .field("gate", &self.gate())
            .finish_non_exhaustive()
    }
}
