//! Under which leadership a controller runs: without one, or elected.

use informer::kube::{Client, Config};

use crate::election::{Election, Term};
use crate::error::RunError;
use crate::gate::Loss;

/// How a controller comes to write.
pub(crate) enum Leadership {
    /// It is the only one of its kind.
    Alone(Client),
    /// It writes while it leads.
    Elected(Election, TermClient),
}

/// How the writes of a leader reach the server: a configuration, from which each term gets a client of its own
/// ([`Gate::client`](crate::gate::Gate::client)), or a ready-made client, which is weaker
/// ([`Gate::guard`](crate::gate::Gate::guard)).
#[derive(Clone)]
pub struct TermClient(Kind);

#[derive(Clone)]
enum Kind {
    Config(Box<Config>),
    Client(Client),
}

impl From<Config> for TermClient {
    fn from(config: Config) -> Self {
        Self(Kind::Config(Box::new(config)))
    }
}

impl From<Client> for TermClient {
    fn from(client: Client) -> Self {
        Self(Kind::Client(client))
    }
}

impl std::fmt::Debug for TermClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermClient").finish_non_exhaustive()
    }
}

/// The right to write, until it is lost.
pub(crate) struct Authority {
    client: Client,
    term: Option<Term>,
}

impl Leadership {
    /// A client of the same user, for requests that change nothing. No gate is below it.
    pub(crate) fn asking_client(&self) -> Result<Client, RunError> {
        match self {
            Self::Alone(client) | Self::Elected(_, TermClient(Kind::Client(client))) => Ok(client.clone()),
            Self::Elected(_, TermClient(Kind::Config(config))) => {
                Client::try_from((**config).clone()).map_err(RunError::client)
            }
        }
    }

    /// Waits until this process may write.
    pub(crate) async fn begin(&self) -> Result<Authority, RunError> {
        match self {
            Self::Alone(client) => Ok(Authority { client: client.clone(), term: None }),
            Self::Elected(election, writes) => {
                let term = election.acquire().await.map_err(RunError::election)?;
                let client = match &writes.0 {
                    Kind::Config(config) => {
                        term.client((**config).clone()).await.map_err(RunError::client)?
                    }
                    Kind::Client(client) => term.gate().guard(client.clone()),
                };
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
