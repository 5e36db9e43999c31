//! Under which leadership a controller runs: without one, or elected.

use informer::kube::Client;

use crate::election::{Election, Term};
use crate::error::RunError;
use crate::gate::{Loss, TermClient};

/// How a controller comes to write.
pub(crate) enum Leadership {
    /// It is the only one of its kind.
    Alone(Client),
    /// It writes while it leads.
    Elected(Election, TermClient),
}

/// The right to write, until it is lost.
pub(crate) struct Authority {
    client: Client,
    /// `None` if it is the only one of its kind.
    term: Option<Term>,
}

impl Leadership {
    /// A client of the same user, for requests that change nothing. No gate is below it.
    pub(crate) fn asking_client(&self) -> Result<Client, RunError> {
        match self {
            Self::Alone(client) => Ok(client.clone()),
            Self::Elected(_, writes) => writes.asking().map_err(RunError::client),
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
            Self::Elected(election, writes) => {
                let term = election.acquire().await.map_err(RunError::election)?;
                let client = term.client(writes.clone()).await.map_err(RunError::client)?;
                Ok(Authority { client, term: Some(term) })
            }
        }
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

    /// Gives the leadership up.
    pub(crate) async fn end(self) {
        if let Some(term) = self.term {
            term.release().await;
        }
    }
}
