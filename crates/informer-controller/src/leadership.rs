//! Whether a controller may write: always, for one that runs without others, or in a term that it shares with the controllers of its
//! process.

use std::sync::{Arc, Weak};

use informer::kube::Client;
use tokio::sync::Mutex;

use crate::election::{Claim, Election, Term};
use crate::error::RunError;
use crate::gate::{Loss, TermClient};

/// How a controller comes to write.
#[derive(Clone)]
pub(crate) enum Leadership {
    /// It is the only one of its kind.
    Alone(Client),
    /// It writes while this process leads.
    Elected(Arc<Candidacy>),
}

/// The election of a process. Its controllers lead together.
pub(crate) struct Candidacy {
    election: Election,
    writes: TermClient,
    /// The term that they share, as long as one of them has it.
    term: Mutex<Weak<Term>>,
    _claim: Claim,
}

/// The right to write, until it is lost.
pub(crate) struct Authority {
    client: Client,
    /// `None` if it is the only one of its kind.
    term: Option<Arc<Term>>,
}

impl Leadership {
    /// A place in an election.
    ///
    /// # Errors
    ///
    /// When another run in this process has it: its controllers would never reconcile.
    pub(crate) fn elected(election: &Election, writes: TermClient) -> Result<Self, RunError> {
        let claim = election.claim().map_err(RunError::election)?;
        let candidacy =
            Candidacy { election: election.clone(), writes, term: Mutex::default(), _claim: claim };
        Ok(Self::Elected(Arc::new(candidacy)))
    }

    /// A client of the same user, for requests that change nothing. No gate is below it.
    pub(crate) fn asking_client(&self) -> Result<Client, RunError> {
        match self {
            Self::Alone(client) => Ok(client.clone()),
            Self::Elected(candidacy) => candidacy.writes.asking().map_err(RunError::client),
        }
    }

    /// Whether other processes may lead.
    pub(crate) fn is_elected(&self) -> bool {
        matches!(self, Self::Elected(..))
    }

    /// Waits until this process may write.
    pub(crate) async fn begin(&self) -> Result<Authority, RunError> {
        match self {
            Self::Alone(client) => Ok(Authority { client: client.clone(), term: None }),
            Self::Elected(candidacy) => {
                let term = candidacy.term().await?;
                let client = term.client(candidacy.writes.clone()).await.map_err(RunError::client)?;
                Ok(Authority { client, term: Some(term) })
            }
        }
    }

    /// After a [`begin`](Self::begin) that was dropped: waits until the lease is released that it may have taken.
    pub(crate) async fn given_up(&self) {
        let Self::Elected(candidacy) = self else { return };
        // Otherwise another controller of this process leads, or still waits for that.
        if candidacy.term.try_lock().is_ok_and(|term| term.strong_count() == 0) {
            candidacy.election.settled().await;
        }
    }
}

impl Candidacy {
    /// The term that lasts, or the next one.
    async fn term(&self) -> Result<Arc<Term>, RunError> {
        let mut current = self.term.lock().await;
        if let Some(term) = current.upgrade().filter(|term| term.gate().is_open()) {
            return Ok(term);
        }
        let term = Arc::new(self.election.acquire().await.map_err(RunError::election)?);
        *current = Arc::downgrade(&term);
        Ok(term)
    }
}

impl Authority {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Resolves when this process may not write any more.
    pub(crate) async fn lost(&self) -> Loss {
        match &self.term {
            Some(term) => term.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Gives the leadership up, if no other controller of this process has it.
    pub(crate) async fn end(self) {
        if let Some(term) = self.term.and_then(Arc::into_inner) {
            term.release().await;
        }
    }
}
